//! The 25 claims, each as a named check on our runs. `studies/acts/expected.toml` has the printed values
//! and the bounds.

mod congested;
mod formulas;
mod traces;
mod uncongested;

use crate::Row;
use crate::finding::{self, Check};
use crate::lab::Lab;
use crate::published::{ACTS, Claim};
use crate::request::ReproduceError;

const CHECKS: &[(&str, Check)] = &[
    ("A-C01", formulas::c01),
    ("A-C02", uncongested::c02),
    ("A-C03", uncongested::c03),
    ("A-C04", formulas::c04),
    ("A-C05", uncongested::c05),
    ("A-C06", uncongested::c06),
    ("A-C07", congested::c07),
    ("A-C08", uncongested::c08),
    ("A-C09", uncongested::c09),
    ("A-C10", congested::c10),
    ("A-C11", congested::c11),
    ("A-C12", congested::c12),
    ("A-C13", congested::c13),
    ("A-C14", congested::c14),
    ("A-C15", traces::c15),
    ("A-C16", formulas::c16),
    ("A-C17", formulas::c17),
    ("A-C18", formulas::c18),
    ("A-C19", formulas::c19),
    ("A-C20", traces::c20),
    ("A-C21", traces::c21),
    ("A-C22", traces::c22),
    ("A-C23", uncongested::c23),
    ("A-C24", formulas::c24),
    ("A-C25", congested::c25),
];

/// The row of one claim.
pub(super) fn row(lab: &Lab<'_>, id: &str) -> Result<Row, ReproduceError> {
    finding::row(&ACTS, CHECKS, lab, id)
}

/// All rows.
pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    finding::rows(&ACTS, CHECKS, lab)
}

/// A claim of the paper.
pub(super) fn published(id: &str) -> &'static Claim {
    ACTS.claim(id).expect("a claim of the paper")
}

/// A number of the text.
fn number(id: &str) -> f64 {
    ACTS.number(id).and_then(|number| number.value).expect("a number of the text")
}

/// The round trip of a place as table 4 prints it, seconds.
fn round_trip(place: &str) -> f64 {
    ACTS.table(4).and_then(|table| table.value("RTT", place)).expect("table 4 has three round trips") / 1e3
}

/// Max distance of ours from the printed values, percent.
fn farthest(pairs: &[(f64, f64)]) -> f64 {
    super::worlds::maximum(
        &pairs.iter().map(|(ours, printed)| 100.0 * (ours / printed - 1.0).abs()).collect::<Vec<_>>(),
    )
}

fn each(pairs: &[(f64, f64)]) -> String {
    pairs.iter().map(|(ours, printed)| format!("{ours:.1} for {printed:.1}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_check() {
        finding::assert_each_claim_has_its_check(&ACTS, CHECKS);
    }
}
