//! The paper's claims, each as a named check on our runs. `studies/minei/expected.toml` has the printed values
//! and the bounds; a check computes our number and the claim's other conditions.

mod bursts;
mod packets;
mod rates;

use crate::Row;
use crate::finding::{self, Check};
use crate::lab::Lab;
use crate::published::MINEI;
use crate::request::ReproduceError;

const CHECKS: &[(&str, Check)] = &[
    ("M-C01", rates::c01),
    ("M-C02", rates::c02),
    ("M-C03", rates::c03),
    ("M-C04", rates::c04),
    ("M-C05", rates::c05),
    ("M-C06", rates::c06),
    ("M-C07", rates::c07),
    ("M-C08", rates::c08),
    ("M-C09", rates::c09),
    ("M-C10", rates::c10),
    ("M-C11", packets::c11),
    ("M-C12", packets::c12),
    ("M-C13", packets::c13),
    ("M-C14", rates::c14),
    ("M-C15", rates::c15),
    ("M-C16", rates::c16),
    ("M-C17", rates::c17),
    ("M-C18", rates::c18),
    ("M-C19", rates::c19),
    ("M-C20", rates::c20),
    ("M-C21", rates::c21),
    ("M-C22", rates::c22),
    ("M-C23", packets::c23),
    ("M-C24", packets::c24),
    ("M-C25", packets::c25),
    ("M-C26", packets::c26),
    ("M-C27", packets::c27),
    ("M-C28", packets::c28),
    ("M-C29", packets::c29),
    ("M-C30", packets::c30),
    ("M-C31", packets::c31),
    ("M-C32", packets::c32),
    ("M-C33", packets::c33),
    ("M-C34", packets::c34),
    ("M-C35", bursts::c35),
    ("M-C36", bursts::c36),
    ("M-C37", bursts::c37),
    ("M-C38", bursts::c38),
    ("M-C39", bursts::c39),
    ("M-C40", bursts::c40),
    ("M-C41", bursts::c41),
    ("M-C42", bursts::c42),
    ("M-C43", bursts::c43),
    ("M-C44", bursts::c44),
    ("M-C45", bursts::c45),
    ("M-C46", bursts::c46),
    ("M-C47", bursts::c47),
    ("M-C48", bursts::c48),
    ("M-C49", packets::c49),
    ("M-C50", packets::c50),
];

/// The row of one claim.
pub(super) fn row(lab: &Lab<'_>, id: &str) -> Result<Row, ReproduceError> {
    finding::row(&MINEI, CHECKS, lab, id)
}

/// All rows.
pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    finding::rows(&MINEI, CHECKS, lab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_check() {
        finding::assert_each_claim_has_its_check(&MINEI, CHECKS);
    }
}
