//! The claims of a paper, and bounds for our numbers.

use indexmap::IndexMap;
use serde::Deserialize;

/// A claim of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    /// Its id in the index of the papers.
    pub id: String,
    /// The statement.
    pub text: String,
    /// The quantity.
    pub metric: String,
    /// The conditions.
    pub conditions: String,
    /// The numbers as printed.
    pub printed: String,
    /// The tolerance, as text.
    pub tolerance: String,
    /// Its place in the paper.
    pub source: String,
    /// The printed number that ours is compared with, if any.
    pub value: Option<f64>,
    /// The min value that supports the claim.
    pub low: Option<f64>,
    /// The maximum.
    pub high: Option<f64>,
    /// Min and max value for the verdict `shape`: the approximate size or the ordering of the paper.
    pub shape: Option<Range>,
    /// Bounds of the claim's other statements, by name.
    #[serde(default)]
    limits: IndexMap<String, f64>,
    /// Unit of the numbers.
    pub unit: String,
    /// The derivation of the tolerance.
    pub derivation: String,
}

impl Claim {
    /// The bounds of the compared number.
    pub fn bounds(&self) -> Bounds {
        Bounds { low: self.low, high: self.high, shape: self.shape }
    }

    /// True if a number supports the claim.
    pub(crate) fn holds_for(&self, number: f64) -> bool {
        self.bounds().hold(number)
    }

    /// The bound with that name.
    ///
    /// # Panics
    /// Panics if the claim has none, which is an error in `make_expected.py`.
    pub fn limit(&self, name: &str) -> f64 {
        *self.limits.get(name).unwrap_or_else(|| panic!("{} has no limit `{name}`", self.id))
    }
}

/// Bounds for our number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Min value that supports the paper.
    pub low: Option<f64>,
    /// The maximum.
    pub high: Option<f64>,
    /// Min and max value for the verdict `shape`: the approximate size or the ordering of the paper.
    pub shape: Option<Range>,
}

impl Bounds {
    /// True if the number is within the bounds. NaN never is, and without bounds no number is.
    pub fn hold(&self, number: f64) -> bool {
        (self.low.is_some() || self.high.is_some()) && inside(self.low, self.high, number)
    }

    /// True if the number is in the range for the verdict `shape`.
    pub(crate) fn same_shape(&self, number: f64) -> bool {
        self.shape.is_some_and(|Range { low, high }| inside(low, high, number))
    }
}

/// A range; a missing end is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The minimum.
    pub low: Option<f64>,
    /// The maximum.
    pub high: Option<f64>,
}

fn inside(low: Option<f64>, high: Option<f64>, number: f64) -> bool {
    low.is_none_or(|low| low <= number) && high.is_none_or(|high| number <= high)
}

#[cfg(test)]
mod tests {
    use crate::published::PAPERS;

    /// The range with which a text begins, after a word at most: 36.1 and 72.1 in "36.1-72.1 / 33.1-66.2".
    fn range(text: &str) -> Option<(f64, f64)> {
        let ends = |word: &str| Some((word.split_once('-')?.0.parse().ok()?, word.split_once('-')?.1.parse().ok()?));
        text.split_whitespace().take(2).find_map(ends)
    }

    /// A row says "allowed: 36.1-72.1": if the tolerance is a range, it is that of the bounds, to half a percent.
    #[test]
    fn what_is_shown_as_allowed_is_allowed() {
        let near = |shown: f64, bound: Option<f64>| bound.is_some_and(|bound| (shown / bound - 1.0).abs() <= 0.005);
        let mut ranges = 0;
        for claim in PAPERS.iter().flat_map(|paper| &paper.claims) {
            let Some((low, high)) = range(&claim.tolerance) else { continue };
            assert!(near(low, claim.low) && near(high, claim.high), "{}: {claim:?}", claim.id);
            ranges += 1;
        }
        assert!(ranges >= 20, "{ranges}");
    }
}
