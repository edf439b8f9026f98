//! The statements of the paper.

use bentpipe_engine::stp::Arming;
use bentpipe_study::scenario::FlowKind;

use super::measure::rates;
use super::setting::{Setting, Transport};
use super::study::Study;
use super::tables::ratio;
use crate::published::{Claim, STP};
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};

/// The rates at which transfers come to an end; the last of the table's is none of them.
fn survivable() -> Vec<f64> {
    let mut rates: Vec<_> = rates().collect();
    rates.pop();
    rates
}

pub(super) fn rows(study: &Study<'_>) -> Result<Vec<Row>, ReproduceError> {
    STP.claims.iter().map(|claim| row(study, claim)).collect()
}

fn row(study: &Study<'_>, claim: &Claim) -> Result<Row, ReproduceError> {
    let rates = survivable();
    Ok(match claim.id.as_str() {
        "S-C01" => judged(claim, Some(window()), "STP's window of the path of figure 2"),
        "S-C02" => goodput(study, claim, Transport::STP, rates[0])?,
        "S-C03" => goodput(study, claim, Transport::Tcp, rates[0])?,
        "S-C04" => judged(claim, ratio(study, rates[0])?, "without errors"),
        "S-C05" => goodput(study, claim, Transport::STP, rates[1])?,
        "S-C06" => goodput(study, claim, Transport::STP, rates[2])?,
        "S-C07" => goodput(study, claim, Transport::STP, rates[3])?,
        "S-C08" => goodput(study, claim, Transport::Tcp, rates[1])?,
        "S-C09" => goodput(study, claim, Transport::Tcp, rates[2])?,
        "S-C10" => goodput(study, claim, Transport::Tcp, rates[3])?,
        "S-C11" => aborts(study, claim)?,
        "S-C12" => growth(study, claim, &rates)?,
        "S-C13" => drops(study, claim, rates[1], rates[3])?,
        id => unreachable!("the paper has no claim {id}"),
    })
}

/// By the claim's bounds.
fn judged(claim: &Claim, ours: Option<f64>, why: &str) -> Row {
    let verdict = if ours.is_some_and(|ours| claim.holds_for(ours)) { Verdict::Match } else { Verdict::Differs };
    let why = format!("{why}; {}", claim.derivation);
    Row::new(&claim.id, &claim.text, claim.value, ours, &claim.unit).within(claim.low, claim.high).judged(verdict, why)
}

fn window() -> f64 {
    let scenario = Setting::at_face_value(Transport::Stp(Arming::Departure), 0.0).scenario();
    let FlowKind::Stp(stp) = &scenario.flows[0].kind else { unreachable!("an STP flow") };
    stp.config.window(stp.config.mss) as f64
}

/// Kilobits per second. Where the printed rate does not give the number, but a loss of Eb/N0 that is one for the whole row
/// does, the shape is borne out and the axis is not.
fn goodput(study: &Study<'_>, claim: &Claim, transport: Transport, ber: f64) -> Result<Row, ReproduceError> {
    let face = study.face_value(transport, ber)?.goodput().map(|bits| bits / 1000.0);
    let row = judged(claim, face, "at the printed bit error rate");
    if ber == 0.0 || face.zip(claim.value).is_some_and(|(ours, paper)| (ours / paper - 1.0).abs() <= 0.05) {
        return Ok(row);
    }
    let loss = study.common_loss(transport)?;
    let shifted = study.with_loss(transport, ber)?.goodput().map(|bits| bits / 1000.0);
    let verdict = if shifted.is_some_and(|ours| claim.holds_for(ours)) { Verdict::Shape } else { Verdict::Differs };
    let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.1}"));
    let why = format!(
        "at face value {}; with {loss:.2} dB of Eb/N0 lost, the mean of what the row's cells take: {}; {}",
        number(face),
        number(shifted),
        claim.derivation
    );
    Ok(row.judged(verdict, why))
}

fn aborts(study: &Study<'_>, claim: &Claim) -> Result<Row, ReproduceError> {
    let worst = rates().last().expect("the table has columns");
    let [stp, tcp] = Transport::ROWS.map(|(_, transport)| study.face_value(transport, worst));
    let (stp, tcp) = (stp?.aborted, tcp?.aborted);
    let why = format!("STP {:.1} %, TCP {:.1} % of our transfers at face value", 100.0 * stp, 100.0 * tcp);
    Ok(judged(claim, Some(stp.min(tcp)), &why))
}

fn growth(study: &Study<'_>, claim: &Claim, rates: &[f64]) -> Result<Row, ReproduceError> {
    let ratios = rates.iter().map(|&ber| ratio(study, ber)).collect::<Result<Option<Vec<_>>, _>>()?;
    let least = ratios.as_ref().map(|all| all.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min));
    let listed = ratios.unwrap_or_default().iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(", ");
    Ok(judged(claim, least, &format!("at face value the ratios are {listed}")))
}

fn drops(study: &Study<'_>, claim: &Claim, from: f64, to: f64) -> Result<Row, ReproduceError> {
    let drop = |transport| -> Result<Option<f64>, ReproduceError> {
        let ends = [study.face_value(transport, from)?.goodput(), study.face_value(transport, to)?.goodput()];
        Ok(ends[0].zip(ends[1]).map(|(from, to)| 100.0 * (1.0 - to / from)))
    };
    let (stp, tcp) = (drop(Transport::STP)?, drop(Transport::Tcp)?);
    let both = stp.zip(tcp);
    let why =
        both.map_or("no goodput".to_owned(), |(stp, tcp)| format!("at face value STP {stp:.0} %, TCP {tcp:.0} %"));
    Ok(judged(claim, both.map(|(stp, tcp)| stp - tcp), &why))
}
