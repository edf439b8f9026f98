//! The paper's statements, each as a named check on runs of ours.
//!
//! A check computes the number that the claim is about and says whether everything else it states holds too. The
//! published number and the tolerance stand in `studies/transat/expected.toml`. A check may come out false: then that
//! is what the row says.
//!
//! Reading order: `optimal` (no errors), `traces` (what packets do), `bursts` (tables 3 to 14), `extended` (longer
//! delays, longer transfers, and what the paper expects without having run it).

mod bursts;
mod extended;
mod optimal;
mod traces;

use super::lab::Lab;
use crate::Row;
use crate::finding::Finding;
use crate::published::TRANSAT;
use crate::reproduce::ReproduceError;

type Check = fn(&Lab<'_>) -> Result<Finding, ReproduceError>;

/// The check of each claim. The function is named as the claim.
const CHECKS: &[(&str, Check)] = &[
    ("T-C01", optimal::t_c01),
    ("T-C02", optimal::t_c02),
    ("T-C03", optimal::t_c03),
    ("T-C04", optimal::t_c04),
    ("T-C05", optimal::t_c05),
    ("T-C06", optimal::t_c06),
    ("T-C07", traces::t_c07),
    ("T-C08", optimal::t_c08),
    ("T-C09", traces::t_c09),
    ("T-C10", traces::t_c10),
    ("T-C11", optimal::t_c11),
    ("T-C12", optimal::t_c12),
    ("T-C13", optimal::t_c13),
    ("T-C14", optimal::t_c14),
    ("T-C15", optimal::t_c15),
    ("T-C16", optimal::t_c16),
    ("T-C17", bursts::t_c17),
    ("T-C18", bursts::t_c18),
    ("T-C19", optimal::t_c19),
    ("T-C20", bursts::t_c20),
    ("T-C21", bursts::t_c21),
    ("T-C22", bursts::t_c22),
    ("T-C23", bursts::t_c23),
    ("T-C24", traces::t_c24),
    ("T-C25", traces::t_c25),
    ("T-C26", traces::t_c26),
    ("T-C27", extended::t_c27),
    ("T-C28", extended::t_c28),
    ("T-C29", extended::t_c29),
    ("T-C30", extended::t_c30),
    ("T-C31", extended::t_c31),
    ("T-C32", extended::t_c32),
    ("T-C33", extended::t_c33),
    ("T-C34", extended::t_c34),
];

/// The row of one claim.
fn row(lab: &Lab<'_>, id: &str, check: Check) -> Result<Row, ReproduceError> {
    let claim = TRANSAT.claim(id).expect("a check for each published claim");
    let finding = check(lab)?;
    let verdict = finding.verdict(claim);
    let why = format!("{}. Allowed: {} ({})", finding.note, claim.tolerance, claim.derivation);
    Ok(Row::new(id, claim.text.as_str(), claim.value, Some(finding.number), &claim.unit)
        .within(claim.low, claim.high)
        .judged(verdict, why))
}

/// Rows of all claims.
pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    CHECKS.iter().map(|&(id, check)| row(lab, id, check)).collect()
}

/// The row of a single claim.
pub(super) fn claim(lab: &Lab<'_>, id: &str) -> Result<Row, ReproduceError> {
    let &(id, check) = CHECKS.iter().find(|(known, _)| *known == id).expect("a check for each published claim");
    row(lab, id, check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn each_claim_has_its_check() {
        let checks: Vec<_> = CHECKS.iter().map(|(id, _)| *id).collect();
        let claims: Vec<_> = TRANSAT.claims.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(checks, claims);
    }

    #[test]
    fn a_number_outside_its_bounds_is_no_match() {
        let claim = TRANSAT.claim("T-C03").expect("a claim");
        let (low, high) = (claim.low.expect("bounded"), claim.high.expect("bounded"));
        assert_eq!(Finding::new(low, "").verdict(claim), Verdict::Match);
        assert_eq!(Finding::new(high + 0.1, "").verdict(claim), Verdict::Differs);
        assert_eq!(Finding::new(high + 0.1, "").or_shape(true).verdict(claim), Verdict::Shape);
        assert_eq!(Finding::new(low, "").and(false).verdict(claim), Verdict::Differs);
    }
}
