//! Distribution-free confidence intervals of quantiles, from order statistics.
//!
//! Among n independent values, the number below the quantile p is binomial(n, p) for any continuous distribution. So
//! the order statistics r and s (from 1) enclose the quantile with probability P(r <= B <= s-1) (David and Nagaraja
//! 2003, section 7.1). The ranks are as symmetric in probability as possible: each tail has at most half of the
//! remaining probability. If n is too small for that tail, the end is infinite and the interval is one-sided.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::{Interval, Sample, StatsError, check_level};

/// The confidence interval of the quantile `p` (0..1), at the level `confidence` (0..1) or above.
///
/// # Errors
/// Returns [`StatsError::BadLevel`] if `p` or `confidence` is not inside 0..1.
fn quantile_interval(sample: &Sample, p: f64, confidence: f64) -> Result<Interval, StatsError> {
    check_level(p)?;
    check_level(confidence)?;
    let sorted = sample.sorted();
    let n = sorted.len() as u64;
    let below = Binomial::new(p, n).expect("p lies in 0..1");
    let tail = (1.0 - confidence) / 2.0;
    // The max r with P(B <= r-1) <= tail: with fewer than r values below the quantile, the interval is above it.
    let r = (1..=n).take_while(|r| below.cdf(r - 1) <= tail).last();
    // The min s with P(B >= s) <= tail: with s or more values below the quantile, the interval is below it.
    let s = (1..=n).rev().take_while(|s| below.sf(s - 1) <= tail).last();
    let missed = r.map_or(0.0, |r| below.cdf(r - 1)) + s.map_or(0.0, |s| below.sf(s - 1));
    Ok(Interval {
        low: r.map_or(f64::NEG_INFINITY, |r| sorted[r as usize - 1]),
        high: s.map_or(f64::INFINITY, |s| sorted[s as usize - 1]),
        confidence: 1.0 - missed,
    })
}

/// The confidence interval of the median.
///
/// # Errors
/// Returns [`StatsError::BadLevel`] if `confidence` is not inside 0..1.
pub fn median_interval(sample: &Sample, confidence: f64) -> Result<Interval, StatsError> {
    quantile_interval(sample, 0.5, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting_to(n: u32) -> Sample {
        Sample::new((1..=n).map(f64::from).collect()).expect("good values")
    }

    #[test]
    fn ranks_of_the_median_as_tabled() {
        // Binomial(20, 1/2): P(B <= 5) = 21700 / 2^20 = 0.0207, P(B <= 6) = 0.0577. So ranks 6 and 15, 95.86 %.
        let interval = median_interval(&counting_to(20), 0.95).expect("levels in 0..1");
        assert_eq!((interval.low, interval.high), (6.0, 15.0));
        assert!((interval.confidence - (1.0 - 2.0 * 21700.0 / 1_048_576.0)).abs() < 1e-12, "{interval:?}");
        // Binomial(11, 1/2): P(B <= 1) = 12 / 2^11 = 0.0059, P(B <= 2) = 0.0327, more than half of 5 %.
        let interval = median_interval(&counting_to(11), 0.95).expect("levels in 0..1");
        assert_eq!((interval.low, interval.high), (2.0, 10.0));
    }

    #[test]
    fn too_few_values_leave_an_end_open() {
        // P(B = 0) = 1/16 is more than 2.5 %: four values bound no 95 % interval on either side.
        let interval = median_interval(&counting_to(4), 0.95).expect("levels in 0..1");
        assert_eq!((interval.low, interval.high), (f64::NEG_INFINITY, f64::INFINITY));
        // Binomial(10, 0.9): P(B <= 6) = 0.0128, P(B <= 7) = 0.0702, and P(B = 10) = 0.349 leaves the top open.
        let interval = quantile_interval(&counting_to(10), 0.9, 0.95).expect("levels in 0..1");
        assert_eq!((interval.low, interval.high), (7.0, f64::INFINITY));
        assert!((interval.confidence - 0.9872).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        // 2000 samples of 20 uniform draws; the median 1/2 must be inside in 95.86 %, give or take 4 deviations of
        // sqrt(0.9586 * 0.0414 / 2000) = 0.45 %.
        let mut stream = bentpipe_engine::stream::Stream::named(5, "test/coverage");
        let covered = (0..2000)
            .filter(|_| {
                let sample = Sample::new((0..20).map(|_| stream.uniform()).collect()).expect("good values");
                median_interval(&sample, 0.95).expect("levels in 0..1").contains(0.5)
            })
            .count();
        assert!((covered as f64 / 2000.0 - 0.9586).abs() < 4.0 * 0.0045, "{covered}");
    }
}
