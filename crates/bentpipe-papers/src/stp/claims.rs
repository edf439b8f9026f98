//! The claims of the paper, each as a named check on our runs.

use bentpipe_study::scenario::FlowKind;

use super::measure::rates;
use super::setting::{Setting, Transport};
use super::study::Study;
use super::tables::{ratio, shifted_ratio};
use crate::Row;
use crate::finding::{self, Checked, Finding};
use crate::published::{Claim, STP};
use crate::request::ReproduceError;

type Check = fn(&Study<'_>) -> Checked;

const CHECKS: &[(&str, Check)] = &[
    ("S-C01", |_| Ok(Finding::new(window(), "STP's window of the path of figure 2"))),
    ("S-C02", |study| goodput(study, "S-C02", Transport::STP, 0)),
    ("S-C03", |study| goodput(study, "S-C03", Transport::Tcp, 0)),
    ("S-C04", |study| Ok(Finding::new(ratio(study, 0.0)?.unwrap_or(f64::NAN), "without errors"))),
    ("S-C05", |study| goodput(study, "S-C05", Transport::STP, 1)),
    ("S-C06", |study| goodput(study, "S-C06", Transport::STP, 2)),
    ("S-C07", |study| goodput(study, "S-C07", Transport::STP, 3)),
    ("S-C08", |study| goodput(study, "S-C08", Transport::Tcp, 1)),
    ("S-C09", |study| goodput(study, "S-C09", Transport::Tcp, 2)),
    ("S-C10", |study| goodput(study, "S-C10", Transport::Tcp, 3)),
    ("S-C11", |study| aborts(study)),
    ("S-C12", growth),
    ("S-C13", |study| drops(study)),
];

/// The error rates of the table at which the paper's transfers finish: all except the last.
fn survivable() -> Vec<f64> {
    let mut rates: Vec<_> = rates().collect();
    rates.pop();
    rates
}

pub(super) fn rows(study: &Study<'_>) -> Result<Vec<Row>, ReproduceError> {
    finding::rows(&STP, CHECKS, study)
}

/// A claim of the paper.
fn published(id: &str) -> &'static Claim {
    STP.claim(id).expect("a claim of the paper")
}

fn window() -> f64 {
    let scenario = Setting::at_face_value(Transport::STP, 0.0).scenario();
    let FlowKind::Stp(stp) = &scenario.flows[0].kind else { unreachable!("an STP flow") };
    stp.config.window(stp.config.mss) as f64
}

fn kbit(bits: Option<f64>) -> f64 {
    bits.map_or(f64::NAN, |bits| bits / 1000.0)
}

/// Goodput in kbit/s at the table's rate with this index. If our goodput is right only with a common loss of Eb/N0 for the
/// row, the verdict is `shape`: the printed error rates are not confirmed.
fn goodput(study: &Study<'_>, id: &str, transport: Transport, column: usize) -> Checked {
    let ber = survivable()[column];
    let face = kbit(study.face_value(transport, ber)?.goodput());
    if ber == 0.0 {
        return Ok(Finding::new(face, "without errors"));
    }
    let loss = study.common_loss(transport)?;
    let shifted = kbit(study.with_loss(transport, ber)?.goodput());
    let note = format!(
        "at face value {face:.1}; with {loss:.2} dB of Eb/N0 lost, the mean that the row's cells need: {shifted:.1}"
    );
    let claim = published(id);
    let near = (claim.limit("offset_low")..=claim.limit("offset_high")).contains(&shifted);
    Ok(Finding::new(face, note).or_shape(near))
}

fn aborts(study: &Study<'_>) -> Checked {
    let worst = rates().last().expect("the table has columns");
    let [stp, tcp] = Transport::ROWS.map(|(_, transport)| study.face_value(transport, worst));
    let (stp, tcp) = (stp?.aborted, tcp?.aborted);
    let note = format!("STP {:.1} %, TCP {:.1} % of our transfers at face value", 100.0 * stp, 100.0 * tcp);
    Ok(Finding::new(stp.min(tcp), note))
}

type Ratio = fn(&Study<'_>, f64) -> Result<Option<f64>, ReproduceError>;

fn growth(study: &Study<'_>) -> Checked {
    // The minimum quotient of successive ratios, and the ratios as text.
    let smallest = |ratio: Ratio| -> Result<(f64, String), ReproduceError> {
        let ratios = survivable().into_iter().map(|ber| ratio(study, ber)).collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(ratios) = ratios else { return Ok((f64::NAN, "none".to_owned())) };
        let min = ratios.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min);
        Ok((min, ratios.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(", ")))
    };
    let ((face, at_face), (shifted, offset)) = (smallest(ratio)?, smallest(shifted_ratio)?);
    let note = format!(
        "at face value the ratios are {at_face}; with the losses of Eb/N0 that table 1 needs {offset}, minimum quotient \
         {shifted:.3}"
    );
    Ok(Finding::new(face, note).or_shape(published("S-C12").holds_for(shifted)))
}

fn drops(study: &Study<'_>) -> Checked {
    let rates = survivable();
    let drop = |transport| -> Result<f64, ReproduceError> {
        let ends =
            [rates[1], rates[3]].map(|ber| Ok::<_, ReproduceError>(kbit(study.face_value(transport, ber)?.goodput())));
        let [from, to] = ends;
        Ok(100.0 * (1.0 - to? / from?))
    };
    let (stp, tcp) = (drop(Transport::STP)?, drop(Transport::Tcp)?);
    Ok(Finding::new(stp - tcp, format!("at face value STP {stp:.0} %, TCP {tcp:.0} %")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_check() {
        finding::assert_each_claim_has_its_check(&STP, CHECKS);
    }
}
