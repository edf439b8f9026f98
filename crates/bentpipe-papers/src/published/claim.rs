//! The statements of a paper, and what a number of ours is allowed to be.

use indexmap::IndexMap;
use serde::Deserialize;

/// A statement of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    /// Its id in the index of the papers.
    pub id: String,
    /// The statement.
    pub text: String,
    /// What it is about.
    pub metric: String,
    /// Under which conditions.
    pub conditions: String,
    /// The numbers as they are printed.
    pub printed: String,
    /// What is allowed, in words.
    pub tolerance: String,
    /// Where it stands in the paper.
    pub source: String,
    /// The number that is compared, where there is one.
    pub value: Option<f64>,
    /// The least value that bears the claim out.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
    /// Least and greatest value that have the size or the ordering of the paper's where the number is out of bounds.
    pub shape: Option<Range>,
    /// Bounds of whatever else the claim states, by name.
    #[serde(default)]
    limits: IndexMap<String, f64>,
    /// Unit of the numbers.
    pub unit: String,
    /// Where the tolerance comes from.
    pub derivation: String,
}

impl Claim {
    /// The bounds of the number that is compared.
    pub fn bounds(&self) -> Bounds {
        Bounds { low: self.low, high: self.high, shape: self.shape }
    }

    /// Whether a number bears the claim out.
    pub fn holds_for(&self, number: f64) -> bool {
        self.bounds().hold(number)
    }

    /// The bound of that name.
    ///
    /// # Panics
    /// The claim has none of that name: a slip in `make_expected.py`.
    pub fn limit(&self, name: &str) -> f64 {
        *self.limits.get(name).unwrap_or_else(|| panic!("{} has no limit `{name}`", self.id))
    }
}

/// What a number of ours is allowed to be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Least value that bears the paper out.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
    /// Least and greatest value that have its size or its ordering.
    pub shape: Option<Range>,
}

impl Bounds {
    /// Whether the number bears the paper out. Without a bound nothing does, and what is not a number never does.
    pub fn hold(&self, number: f64) -> bool {
        (self.low.is_some() || self.high.is_some()) && inside(self.low, self.high, number)
    }

    /// Whether the number has the size or the ordering of the paper's.
    pub fn same_shape(&self, number: f64) -> bool {
        self.shape.is_some_and(|Range { low, high }| inside(low, high, number))
    }
}

/// From one number to another; what is not given is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The least.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
}

fn inside(low: Option<f64>, high: Option<f64>, number: f64) -> bool {
    low.is_none_or(|low| low <= number) && high.is_none_or(|high| number <= high)
}
