//! The claims of the paper, each as a named check. Claims about formulas are checked with the model, claims about
//! behaviour with simulations. `studies/hybrid/expected.toml` has the printed values and the bounds.

mod end_to_end;
mod fading;
mod formulas;
mod shared;
mod splitting;

use super::measure::Measured;
use super::setting::Scheme;
use crate::Row;
use crate::finding::{self, Check};
use crate::lab::Lab;
use crate::published::{Claim, HYBRID};
use crate::request::ReproduceError;

const CHECKS: &[(&str, Check)] = &[
    ("H-C01", end_to_end::c01),
    ("H-C02", end_to_end::c02),
    ("H-C03", end_to_end::c03),
    ("H-C04", splitting::c04),
    ("H-C05", splitting::c05),
    ("H-C06", splitting::c06),
    ("H-C07", formulas::c07),
    ("H-C08", formulas::c08),
    ("H-C09", formulas::c09),
    ("H-C10", end_to_end::c10),
    ("H-C11", fading::c11),
    ("H-C12", fading::c12),
    ("H-C13", shared::c13),
    ("H-C14", shared::c14),
    ("H-C15", shared::c15),
    ("H-C16", shared::c16),
    ("H-C17", end_to_end::c17),
    ("H-C18", formulas::c18),
    ("H-C19", formulas::c19),
    ("H-C20", formulas::c20),
    ("H-C21", shared::c21),
];

/// The row of one claim.
pub(super) fn row(lab: &Lab<'_>, id: &str) -> Result<Row, ReproduceError> {
    finding::row(&HYBRID, CHECKS, lab, id)
}

/// All rows.
pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    finding::rows(&HYBRID, CHECKS, lab)
}

/// A claim of the paper.
fn published(id: &str) -> &'static Claim {
    HYBRID.claim(id).expect("a claim of the paper")
}

fn percent(part: f64) -> f64 {
    part * 100.0
}

/// R² of a straight line through the points.
fn straightness(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
    let (xy, xx, yy) = (sum(&|p| (p.0 - x) * (p.1 - y)), sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.1 - y).powi(2)));
    xy * xy / (xx * yy)
}

/// Slope of a straight line through the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

fn of_scheme(all: &[Measured], scheme: Scheme) -> Vec<&Measured> {
    all.iter().filter(|point| point.setting.scheme == scheme).collect()
}

fn listed(points: &[&Measured]) -> String {
    points.iter().map(|point| format!("{:.2}", point.per_mu)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_check() {
        finding::assert_each_claim_has_its_check(&HYBRID, CHECKS);
    }
}
