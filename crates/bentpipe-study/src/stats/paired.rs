//! Compares two systems with the same seeds.
//!
//! In each run, both systems met the same bursts, so the difference within a pair varies less than either time. The
//! ratio is computed on logarithms: the interval is that of the geometric mean ratio, and b/a is exactly the inverse of
//! a/b.

use super::{Interval, StatsError, check_values, mean, mean_interval};

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Geometric mean ratio.
    pub estimate: f64,
    /// Its confidence interval.
    pub interval: Interval,
}

fn pairs(a: &[f64], b: &[f64]) -> Result<(), StatsError> {
    if a.len() != b.len() {
        return Err(StatsError::Unpaired { left: a.len(), right: b.len() });
    }
    check_values(a, 2)?;
    check_values(b, 2)
}

/// Geometric mean of `b / a`, pair by pair, with the t interval of its logarithm.
///
/// # Errors
/// Fails for samples of different length, fewer than two pairs, a value that is not finite or not above zero, or a confidence
/// outside 0..1.
pub fn paired_ratio(a: &[f64], b: &[f64], confidence: f64) -> Result<Comparison, StatsError> {
    pairs(a, b)?;
    for values in [a, b] {
        if let Some(index) = values.iter().position(|&v| v <= 0.0) {
            return Err(StatsError::BadValue { index, value: values[index] });
        }
    }
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let Interval { low, high, confidence } = mean_interval(&logs, confidence)?;
    Ok(Comparison { estimate: mean(&logs).exp(), interval: Interval { low: low.exp(), high: high.exp(), confidence } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_invert() {
        let (a, b) = ([1.0, 2.0, 4.0], [2.0, 2.0, 16.0]);
        // ln ratios: ln 2, 0, 2 ln 2; their mean is ln 2.
        let there = paired_ratio(&a, &b, 0.9).expect("three pairs");
        let back = paired_ratio(&b, &a, 0.9).expect("three pairs");
        assert!((there.estimate - 2.0).abs() < 1e-12, "{there:?}");
        assert!((there.interval.low * back.interval.high - 1.0).abs() < 1e-12);
        assert_eq!(paired_ratio(&a, &[1.0, 0.0, 1.0], 0.9), Err(StatsError::BadValue { index: 1, value: 0.0 }));
        let (index, value) = (2, f64::INFINITY);
        assert_eq!(paired_ratio(&[1.0, 1.0, value], &b, 0.9), Err(StatsError::BadValue { index, value }));
        assert_eq!(paired_ratio(&a, &[1.0], 0.9), Err(StatsError::Unpaired { left: 3, right: 1 }));
    }
}
