//! The result of a check, and the verdict of a claim or an expectation that follows from it.

use crate::lab::Lab;
use crate::published::{Bounds, Claim, Paper};
use crate::request::ReproduceError;
use crate::{Row, Verdict};

/// The result of a check, unless a run failed.
pub(crate) type Checked = Result<Finding, ReproduceError>;

/// The check of a claim on our runs.
pub(crate) type Check = fn(&Lab<'_>) -> Checked;

/// The checks of a paper's claims: each claim's id, and the function that makes the needed runs in `L` and returns the
/// number.
pub(crate) type Checks<L> = [(&'static str, fn(&L) -> Checked)];

/// The row of one claim.
pub(crate) fn row<L>(paper: &Paper, checks: &Checks<L>, lab: &L, id: &str) -> Result<Row, ReproduceError> {
    let (_, check) = checks.iter().find(|(known, _)| *known == id).expect("each claim has a check");
    Ok(check(lab)?.row(paper.claim(id).expect("a claim of the paper")))
}

/// The rows of all claims.
pub(crate) fn rows<L>(paper: &Paper, checks: &Checks<L>, lab: &L) -> Result<Vec<Row>, ReproduceError> {
    checks.iter().map(|(id, _)| row(paper, checks, lab, id)).collect()
}

/// Panics unless the paper's claims and the checks match, in the same order.
#[cfg(test)]
pub(crate) fn assert_each_claim_has_its_check<L>(paper: &Paper, checks: &Checks<L>) {
    let checked: Vec<_> = checks.iter().map(|(id, _)| *id).collect();
    let stated: Vec<_> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(checked, stated);
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The number that the claim is about.
    pub(crate) number: f64,
    /// True if the claim's other statements hold.
    pub(crate) holds: bool,
    /// True if the ordering or the approximate size is right even if the number is not.
    pub(crate) shape: bool,
    /// The other numbers.
    pub(crate) note: String,
}

impl Finding {
    /// A finding whose other statements hold so far.
    pub(crate) fn new(number: f64, note: impl Into<String>) -> Self {
        Finding { number, holds: true, shape: false, note: note.into() }
    }

    /// Adds a condition of the claim.
    pub(crate) fn and(self, condition: bool) -> Self {
        Finding { holds: self.holds && condition, ..self }
    }

    /// Adds the condition for the verdict `shape` if the number is off.
    pub(crate) fn or_shape(self, condition: bool) -> Self {
        Finding { shape: condition, ..self }
    }

    /// The verdict on the claim.
    pub(crate) fn verdict(&self, claim: &Claim) -> Verdict {
        self.within(claim.bounds())
    }

    /// The verdict on a number with these bounds.
    pub(crate) fn within(&self, bounds: Bounds) -> Verdict {
        if self.holds && bounds.hold(self.number) {
            Verdict::Match
        } else if self.shape || (self.holds && bounds.same_shape(self.number)) {
            Verdict::Shape
        } else {
            Verdict::Differs
        }
    }

    /// The row of a claim.
    pub(crate) fn row(&self, claim: &Claim) -> Row {
        let ours = self.number.is_finite().then_some(self.number);
        Row::new(claim.id.as_str(), claim.text.as_str(), claim.value, ours, &claim.unit)
            .within(claim.low, claim.high)
            .judged(self.verdict(claim), format!("{}; allowed: {} ({})", self.note, claim.tolerance, claim.derivation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{PAPERS, Range};

    /// Numbers outside these bounds, and one inside.
    fn outside_and_inside(bounds: Bounds) -> (Vec<f64>, f64) {
        let step = |x: f64| 1.0 + x.abs();
        let below = bounds.low.map(|low| low - step(low));
        let above = bounds.high.map(|high| high + step(high));
        let inside = bounds.low.or(bounds.high).expect("each claim has a bound");
        (below.into_iter().chain(above).collect(), inside)
    }

    /// Every claim of the five papers can get each verdict of a comparison: through its number, its other statements, or
    /// its shape.
    #[test]
    fn every_claim_can_fail() {
        for claim in PAPERS.iter().flat_map(|paper| &paper.claims) {
            assert!(claim.low.is_some() || claim.high.is_some(), "{}: a claim without bounds cannot fail", claim.id);
            let (outside, inside) = outside_and_inside(claim.bounds());
            let by = |finding: Finding| finding.verdict(claim);
            for number in outside.into_iter().chain([f64::NAN]) {
                assert_ne!(by(Finding::new(number, "")), Verdict::Match, "{} with {number}", claim.id);
                assert_eq!(by(Finding::new(number, "").or_shape(true)), Verdict::Shape, "{} with {number}", claim.id);
            }
            assert_eq!(by(Finding::new(inside, "")), Verdict::Match, "{}", claim.id);
            assert_eq!(by(Finding::new(inside, "").and(false)), Verdict::Differs, "{}", claim.id);
            assert_eq!(by(Finding::new(f64::NAN, "")), Verdict::Differs, "{}", claim.id);
            assert_eq!(Finding::new(f64::NAN, "").row(claim).ours, None, "NaN is no number");
        }
    }

    #[test]
    fn the_size_can_be_right_where_the_number_is_not() {
        let bounds = Bounds { low: Some(9.0), high: Some(11.0), shape: Some(Range { low: Some(5.0), high: None }) };
        let verdicts = [10.0, 12.0, 4.0, f64::NAN].map(|number| Finding::new(number, "").within(bounds));
        assert_eq!(verdicts, [Verdict::Match, Verdict::Shape, Verdict::Differs, Verdict::Differs]);
        assert_eq!(Finding::new(12.0, "").and(false).within(bounds), Verdict::Differs);
        assert_eq!(Finding::new(1.0, "").within(Bounds::default()), Verdict::Differs, "without bounds nothing matches");
    }
}
