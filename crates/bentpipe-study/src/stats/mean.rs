//! The mean, with Student's t interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Interval, StatsError, check_level, check_values};

/// Arithmetic mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation with divisor n-1; zero for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The quantile `p` of Student's t with `freedom` degrees of freedom.
fn t_quantile(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("scale and freedom are above zero").inverse_cdf(p)
}

/// Confidence interval of the mean: mean ± t(n-1) s / sqrt(n). It is exact for normal values, and good if the mean of n
/// values is nearly normal. For skewed times of few runs, prefer [`bootstrap_interval`](super::bootstrap_interval).
///
/// # Errors
/// Fails for fewer than two values, a value that is not finite, or a confidence outside 0..1.
pub fn mean_interval(values: &[f64], confidence: f64) -> Result<Interval, StatsError> {
    check_level(confidence)?;
    check_values(values, 2)?;
    let n = values.len() as f64;
    let half = t_quantile(0.5 + confidence / 2.0, n - 1.0) * standard_deviation(values) / n.sqrt();
    let centre = mean(values);
    Ok(Interval { low: centre - half, high: centre + half, confidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_interval_by_hand() {
        // Mean 5, squares 9 + 1 + 1 + 9 = 20, s = sqrt(20/3) = 2.582; t(3, 97.5 %) = 3.18245 from the tables.
        let interval = mean_interval(&[2.0, 4.0, 6.0, 8.0], 0.95).expect("four values");
        let half = 3.182_446 * (20.0_f64 / 3.0).sqrt() / 2.0;
        assert!((interval.low - (5.0 - half)).abs() < 1e-5, "{interval:?} {half}");
        assert!((interval.high - (5.0 + half)).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(mean_interval(&[1.0], 0.95), Err(StatsError::TooFew { have: 1, need: 2 }));
        assert_eq!(mean_interval(&[1.0, 2.0], 1.0), Err(StatsError::BadLevel(1.0)));
    }
}
