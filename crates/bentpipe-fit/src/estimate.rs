//! An estimate, or the reason why there is none.

use serde::Serialize;

/// Confidence level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// What a capture says about one quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Estimate {
    /// A value, with the ends of its interval at [`CONFIDENCE`].
    Measured {
        /// The value.
        value: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
    },
    /// A lower bound.
    AtLeast {
        /// The bound.
        value: f64,
        /// Why the value is not known to be larger.
        why: String,
    },
    /// An upper bound.
    AtMost {
        /// The bound.
        value: f64,
        /// Why the value is not known to be smaller.
        why: String,
    },
    /// The value cannot be determined from the file.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Estimate {
    pub(crate) fn measured(value: f64, low: f64, high: f64) -> Self {
        Estimate::Measured { value, low, high }
    }

    pub(crate) fn at_least(value: f64, why: impl Into<String>) -> Self {
        Estimate::AtLeast { value, why: why.into() }
    }

    pub(crate) fn at_most(value: f64, why: impl Into<String>) -> Self {
        Estimate::AtMost { value, why: why.into() }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Estimate::Unknown { why: why.into() }
    }

    /// Only the lower end of an interval, for this reason.
    pub(crate) fn or_more(self, why: &str) -> Self {
        match self {
            Estimate::Measured { low, .. } => Self::at_least(low, why),
            other => other,
        }
    }

    /// Only the upper end of an interval, for this reason. A lower bound no longer holds.
    pub(crate) fn or_less(self, why: &str) -> Self {
        match self {
            Estimate::Measured { high, .. } => Self::at_most(high, why),
            Estimate::AtLeast { .. } => Self::unknown(why),
            other => other,
        }
    }

    /// The value or bound, if there is one.
    pub fn value(&self) -> Option<f64> {
        match *self {
            Estimate::Measured { value, .. } | Estimate::AtLeast { value, .. } | Estimate::AtMost { value, .. } => {
                Some(value)
            }
            Estimate::Unknown { .. } => None,
        }
    }

    /// The value, if it was measured: no bound.
    pub(crate) fn value_if_measured(&self) -> Option<f64> {
        match *self {
            Estimate::Measured { value, .. } => Some(value),
            _ => None,
        }
    }

    /// True if `truth` is not excluded, because it is in the interval or on the right side of the bound.
    pub fn allows(&self, truth: f64) -> bool {
        match *self {
            Estimate::Measured { low, high, .. } => low <= truth && truth <= high,
            Estimate::AtLeast { value, .. } => truth >= value,
            Estimate::AtMost { value, .. } => truth <= value,
            Estimate::Unknown { .. } => true,
        }
    }
}
