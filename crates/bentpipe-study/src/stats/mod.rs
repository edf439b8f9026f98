//! Statistics of samples: quantiles, means, differences and ratios, each with its confidence interval.
//!
//! Only [`mean_interval`] and its users make an assumption about the distribution: the mean must be nearly normal.
//! Functions that draw at random take a [`Stream`](bentpipe_engine::stream::Stream), so the same seed gives the same
//! interval.
//!
//! Reading order: [`Sample`] has the quantiles, [`median_interval`] their distribution-free interval, and
//! [`mean_interval`] Student's t. [`paired_ratio`] compares two systems with the same seeds. [`bootstrap_interval`]
//! resamples, and [`Subsets`] tests whether a small sample could give a published figure.

mod mean;
mod order;
mod paired;
mod resample;
mod sample;

pub use mean::{mean, mean_interval, standard_deviation};
pub use order::median_interval;
pub use paired::{Comparison, paired_ratio};
pub use resample::{Subsets, bootstrap_interval, median_ratio_interval};
pub use sample::{FiveNumbers, Sample};

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence in 0..1. Order statistics allow only some levels, so this is the level reached.
    pub confidence: f64,
}

impl Interval {
    /// True if `x` is inside or at an end.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// Why a statistic cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Too few values.
    #[error("{have} values: at least {need} needed")]
    TooFew {
        /// Values given.
        have: usize,
        /// Values needed.
        need: usize,
    },
    /// A value is infinite or NaN, or not above zero for a ratio.
    #[error("value {index} is {value}, which cannot be used here")]
    BadValue {
        /// Its index.
        index: usize,
        /// The value.
        value: f64,
    },
    /// The two samples of a pair differ in length.
    #[error("{left} values cannot be paired with {right}")]
    Unpaired {
        /// Values on the left.
        left: usize,
        /// Values on the right.
        right: usize,
    },
    /// A probability outside 0..1.
    #[error("{0} is not a level between 0 and 1")]
    BadLevel(f64),
}

fn check_level(level: f64) -> Result<(), StatsError> {
    if level > 0.0 && level < 1.0 { Ok(()) } else { Err(StatsError::BadLevel(level)) }
}

fn check_values(values: &[f64], need: usize) -> Result<(), StatsError> {
    if values.len() < need {
        return Err(StatsError::TooFew { have: values.len(), need });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::BadValue { index, value: values[index] }),
        None => Ok(()),
    }
}
