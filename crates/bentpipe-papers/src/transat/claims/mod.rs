//! The paper's claims, each as a named check on our runs.
//!
//! A check computes the claim's number and whether its other statements hold. `studies/transat/expected.toml` has the
//! published number and the tolerance.
//!
//! Reading order: `optimal` (no errors), `traces` (single packets), `bursts` (tables 3 to 14), `extended` (longer
//! delays, longer transfers, and the paper's expectations without runs).

mod bursts;
mod extended;
mod optimal;
mod traces;

use super::lab::Lab;
use crate::Row;
use crate::finding::{self, Checked};
use crate::published::TRANSAT;
use crate::request::ReproduceError;

type Check = fn(&Lab<'_>) -> Checked;

/// The check of each claim. The function is named after the claim.
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

/// Rows of all claims.
pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    finding::rows(&TRANSAT, CHECKS, lab)
}

/// The row of a single claim.
pub(super) fn claim(lab: &Lab<'_>, id: &str) -> Result<Row, ReproduceError> {
    finding::row(&TRANSAT, CHECKS, lab, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_check() {
        finding::assert_each_claim_has_its_check(&TRANSAT, CHECKS);
    }
}
