//! Measurements: goodput as the paper defines it, and aborted transfers.

use bentpipe_sim::{FlowResult, RunResult};

use super::setting::{DATA_BITS, Setting};
use crate::lab::Lab;
use crate::published::{Expected, STP};
use crate::request::ReproduceError;

/// The runs of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Mean time of the completed transfers, seconds; `None` if none completed (S-Q09).
    pub(super) seconds: Option<f64>,
    /// Relative standard error of that mean.
    pub(super) error: f64,
    /// Share of aborted transfers.
    pub(super) aborted: f64,
}

/// The time in the paper's goodput, in seconds: "the ratio between the amount of sent data (without headers) and the time" from
/// the first data segment to the ACK of the last one (S-M11), without opening and closing. `None` if the transfer was aborted.
fn transfer_time(flow: &FlowResult) -> Option<f64> {
    let (begun, ended) = (flow.connected_at?, flow.acked_at?);
    flow.aborted.is_none().then(|| ended.saturating_since(begun).as_secs_f64())
}

impl Measured {
    fn of(runs: &[RunResult]) -> Self {
        let times: Vec<_> = runs.iter().filter_map(|run| transfer_time(&run.flows[0])).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let seconds = (!times.is_empty()).then_some(mean);
        let count = times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let error = if times.len() > 1 { (variance / count).sqrt() / mean } else { 0.0 };
        Measured { seconds, error, aborted: 1.0 - count / runs.len() as f64 }
    }

    /// Goodput in bit/s, from the mean time.
    pub(super) fn goodput(&self) -> Option<f64> {
        self.seconds.map(|seconds| DATA_BITS / seconds)
    }
}

/// The bit error rates of table 1, in the order of its columns.
pub(super) fn rates() -> impl Iterator<Item = f64> {
    let cells = &STP.table(1).expect("the paper has a table 1").cells;
    cells.iter().filter(|cell| cell.row == cells[0].row).map(|cell| rate(&cell.column))
}

/// The expectation of an experiment.
pub(super) fn expected(item: &str) -> &'static Expected {
    let item = STP.items.iter().find(|known| known.id == item).expect("an experiment of the paper");
    item.expected.as_ref().expect("it is compared")
}

/// The max distance that the expectation of an experiment allows, as a fraction.
pub(super) fn tolerance(item: &str) -> f64 {
    expected(item).high.expect("a max distance") / 100.0
}

/// A column heading as an error rate.
pub(super) fn rate(column: &str) -> f64 {
    column.parse().expect("columns are bit error rates")
}

/// Error rate and goodput of the cells of a row of table 1 that have a printed number.
pub(super) fn printed<'r>(row: &'r str) -> impl Iterator<Item = (f64, f64)> + 'r {
    let cells = STP.table(1).expect("the paper has a table 1").cells.iter();
    cells.filter(move |cell| cell.row == row).filter_map(|cell| Some((rate(&cell.column), cell.value?)))
}

/// Measures each setting with `count` runs.
pub(super) fn measure(
    lab: &Lab<'_>,
    what: &str,
    settings: &[Setting],
    count: u32,
) -> Result<Vec<Measured>, ReproduceError> {
    let scenarios: Vec<_> = settings.iter().map(Setting::scenario).collect();
    Ok(lab.sweep(what, &scenarios, count)?.iter().map(|runs| Measured::of(runs)).collect())
}
