//! Tables 1 and 2: a row for each printed cell at the printed error rate ("at face value"), with the error rate that would
//! reproduce it.

use super::measure::{Measured, rate, tolerance};
use super::setting::Transport;
use super::study::Study;
use crate::published::{Cell, STP};
use crate::request::ReproduceError;
use crate::{Row, Verdict};

/// Tolerance of a cell at the printed bit error rate, as a fraction.
fn near() -> f64 {
    tolerance("S-E06")
}

/// Tolerance of a cell with a common loss of Eb/N0 for its row, as a fraction.
fn rough() -> f64 {
    tolerance("S-E07")
}

fn within(ours: f64, paper: f64, part: f64) -> bool {
    (ours / paper - 1.0).abs() <= part
}

fn transport(row: &str) -> Transport {
    Transport::ROWS.iter().find(|(name, _)| *name == row).expect("the table has the rows of the study").1
}

/// The row of a table, with the worst verdict of its cells.
fn summary(id: &str, title: &str, rows: &[Row]) -> Row {
    let worst = rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Differs);
    let near = rows.iter().filter(|row| row.verdict == Verdict::Match).count();
    let why = format!(
        "{near} of {} cells match at the printed bit error rate, the others at most with a loss of Eb/N0: see each cell",
        rows.len()
    );
    Row::new(id, title, Some(rows.len() as f64), Some(near as f64), "cells").judged(worst, why)
}

/// Table 1.
pub(super) fn goodput(study: &Study<'_>) -> Result<Vec<Row>, ReproduceError> {
    let table = STP.table(1).expect("the paper has a table 1");
    let mut rows = table.cells.iter().map(|cell| goodput_of(study, cell)).collect::<Result<Vec<_>, _>>()?;
    rows.insert(0, summary("S-T01", &table.title, &rows));
    Ok(rows)
}

fn goodput_of(study: &Study<'_>, cell: &Cell) -> Result<Row, ReproduceError> {
    let (transport, ber) = (transport(&cell.row), rate(&cell.column));
    let ours = study.face_value(transport, ber)?;
    let id = format!("S-T01/{}/{}", cell.row, cell.column);
    let item = format!("goodput of {} at a BER of {}", cell.row, cell.column);
    let row = Row::new(id, item, cell.value, ours.goodput(), "bit/s");
    let Some(paper) = cell.value else {
        let verdict = if ours.aborted > 0.99 { Verdict::Match } else { Verdict::Differs };
        return Ok(row.judged(verdict, format!("{:.1} % of our transfers are aborted", 100.0 * ours.aborted)));
    };
    let Some(goodput) = ours.goodput() else {
        return Ok(row.judged(Verdict::Differs, "none of our transfers finishes"));
    };
    let row = row.within(Some(paper * (1.0 - near())), Some(paper * (1.0 + near())));
    if ber == 0.0 {
        let verdict = if within(goodput, paper, near()) { Verdict::Match } else { Verdict::Differs };
        return Ok(
            row.judged(verdict, "no errors; the tolerance is for headers and ACKs that the paper does not describe")
        );
    }
    let found = study.effective()?.iter().find(|found| found.transport == transport && found.nominal == ber);
    let found = found.expect("each printed cell with errors has been searched");
    let (loss, shifted) = (study.common_loss(transport)?, study.with_loss(transport, ber)?);
    let verdict = if within(goodput, paper, near()) {
        Verdict::Match
    } else if shifted.goodput().is_some_and(|goodput| within(goodput, paper, rough())) {
        Verdict::Shape
    } else {
        Verdict::Differs
    };
    let why = format!(
        "at face value{}; the printed goodput needs a BER of {:.2e}, {:.0} times the printed one (a frame loss of {:.2e}, \
         {:.2} dB of Eb/N0); {loss:.2} dB, the mean of the row, gives {}",
        given_up(&ours),
        found.rate(),
        found.rate() / ber,
        found.frame_loss(),
        found.loss_db,
        shifted.goodput().map_or("no completed transfer".to_owned(), |goodput| format!("{goodput:.0} bit/s")),
    );
    Ok(row.judged(verdict, why))
}

fn given_up(measured: &Measured) -> String {
    match measured.aborted {
        0.0 => String::new(),
        part => format!(", {:.1} % aborted and excluded", 100.0 * part),
    }
}

/// STP's goodput over TCP's on channel A; `None` if no transfer of one of them finishes.
pub(super) fn ratio(study: &Study<'_>, ber: f64) -> Result<Option<f64>, ReproduceError> {
    let [stp, tcp] = Transport::ROWS.map(|(_, transport)| study.face_value(transport, ber));
    Ok(stp?.goodput().zip(tcp?.goodput()).map(|(stp, tcp)| stp / tcp))
}

/// The same with each row's loss of Eb/N0.
pub(super) fn shifted_ratio(study: &Study<'_>, ber: f64) -> Result<Option<f64>, ReproduceError> {
    if ber == 0.0 {
        return ratio(study, ber);
    }
    let [stp, tcp] = Transport::ROWS.map(|(_, transport)| study.with_loss(transport, ber));
    Ok(stp?.goodput().zip(tcp?.goodput()).map(|(stp, tcp)| stp / tcp))
}

/// Table 2.
pub(super) fn ratios(study: &Study<'_>) -> Result<Vec<Row>, ReproduceError> {
    let table = STP.table(2).expect("the paper has a table 2");
    let mut rows = table.cells.iter().map(|cell| ratio_of(study, cell)).collect::<Result<Vec<_>, _>>()?;
    rows.insert(0, summary("S-T02", &table.title, &rows));
    Ok(rows)
}

fn ratio_of(study: &Study<'_>, cell: &Cell) -> Result<Row, ReproduceError> {
    let ber = rate(&cell.column);
    let ours = ratio(study, ber)?;
    let id = format!("S-T02/{}", cell.column);
    let row = Row::new(id, format!("STP's goodput over TCP's at a BER of {}", cell.column), cell.value, ours, "ratio");
    let Some((paper, ours)) = cell.value.zip(ours) else {
        let [stp, tcp] = Transport::ROWS.map(|(_, transport)| study.face_value(transport, ber));
        let (stp, tcp) = (stp?.aborted, tcp?.aborted);
        let verdict = if cell.value.is_none() && stp.min(tcp) > 0.99 { Verdict::Match } else { Verdict::Differs };
        let why = format!("aborted: {:.1} % of STP's transfers, {:.1} % of TCP's", 100.0 * stp, 100.0 * tcp);
        return Ok(row.judged(verdict, why));
    };
    let row = row.within(Some(paper * (1.0 - near())), Some(paper * (1.0 + near())));
    if within(ours, paper, near()) {
        return Ok(row.judged(Verdict::Match, "at face value"));
    }
    let shifted = shifted_ratio(study, ber)?;
    // Each of the two goodputs may be off by `rough`, so their ratio by twice as much.
    let verdict = if shifted.is_some_and(|ratio| within(ratio, paper, 2.0 * rough())) {
        Verdict::Shape
    } else {
        Verdict::Differs
    };
    let why = format!(
        "at face value hardly any of the paper's transfers would lose a segment; with the losses of Eb/N0 that table 1 needs, \
         {:.2} and {:.2} dB, {}: the two protocols did not have the same channel (S-Q04)",
        study.common_loss(Transport::STP)?,
        study.common_loss(Transport::Tcp)?,
        shifted.map_or("one of them finishes nothing".to_owned(), |ratio| format!("the ratio is {ratio:.2}")),
    );
    Ok(row.judged(verdict, why))
}
