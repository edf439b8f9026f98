//! What the check of a claim found, and how the claim fares by it.

use crate::Verdict;
use crate::published::Claim;

/// What a check found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The number that the claim is about.
    pub(crate) number: f64,
    /// Whether all else that the claim states holds.
    pub(crate) holds: bool,
    /// Whether the ordering or the size is right where the number is not.
    pub(crate) shape: bool,
    /// The other numbers.
    pub(crate) note: String,
}

impl Finding {
    /// All that the claim states besides holds, as far as is known yet.
    pub(crate) fn new(number: f64, note: impl Into<String>) -> Self {
        Finding { number, holds: true, shape: false, note: note.into() }
    }

    /// The claim needs this as well.
    pub(crate) fn and(self, condition: bool) -> Self {
        Finding { holds: self.holds && condition, ..self }
    }

    /// If the number is off, the ordering or size still is as stated where this holds.
    pub(crate) fn or_shape(self, condition: bool) -> Self {
        Finding { shape: condition, ..self }
    }

    /// How the claim fares.
    pub(crate) fn verdict(&self, claim: &Claim) -> Verdict {
        if self.holds && claim.holds_for(self.number) {
            Verdict::Match
        } else if self.shape {
            Verdict::Shape
        } else {
            Verdict::Differs
        }
    }
}
