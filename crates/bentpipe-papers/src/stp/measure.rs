//! What is measured: goodput as the paper defines it, and transfers that were given up.

use bentpipe_sim::{FlowResult, RunResult};

use super::setting::{DATA_BITS, Setting};
use crate::lab::Lab;
use crate::published::{Expected, STP};
use crate::request::ReproduceError;

/// The runs of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Mean time of the transfers that came to an end, seconds; `None` where none did (S-Q09).
    pub(super) seconds: Option<f64>,
    /// Standard error of that mean, as a share of it.
    pub(super) error: f64,
    /// Share of those that were given up.
    pub(super) aborted: f64,
}

/// "the ratio between the amount of sent data (without headers) and the time" from the first data segment to the ACK of
/// the last one (S-M11): opening and closing do not count.
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

    /// Goodput of the mean time, bit/s.
    pub(super) fn goodput(&self) -> Option<f64> {
        self.seconds.map(|seconds| DATA_BITS / seconds)
    }
}

/// The bit error rates of table 1, in the order of its columns.
pub(super) fn rates() -> impl Iterator<Item = f64> {
    let cells = &STP.table(1).expect("the paper has a table 1").cells;
    cells.iter().filter(|cell| cell.row == cells[0].row).map(|cell| rate(&cell.column))
}

/// What an experiment is compared with.
pub(super) fn expected(item: &str) -> &'static Expected {
    let item = STP.items.iter().find(|known| known.id == item).expect("an experiment of the paper");
    item.expected.as_ref().expect("it is compared")
}

/// The greatest distance that an experiment allows, as a share.
pub(super) fn tolerance(item: &str) -> f64 {
    expected(item).high.expect("a greatest distance") / 100.0
}

/// A column of the tables as a rate.
pub(super) fn rate(column: &str) -> f64 {
    column.parse().expect("columns are bit error rates")
}

/// Rate and printed goodput of a row of table 1, as far as there is one.
pub(super) fn printed<'r>(row: &'r str) -> impl Iterator<Item = (f64, f64)> + 'r {
    let cells = STP.table(1).expect("the paper has a table 1").cells.iter();
    cells.filter(move |cell| cell.row == row).filter_map(|cell| Some((rate(&cell.column), cell.value?)))
}

/// Runs of all settings at the same time, from one seed on.
pub(super) fn measure(
    lab: &Lab<'_>,
    what: &str,
    settings: &[Setting],
    count: u32,
) -> Result<Vec<Measured>, ReproduceError> {
    let scenarios: Vec<_> = settings.iter().map(Setting::scenario).collect();
    Ok(lab.sweep(what, &scenarios, count)?.iter().map(|runs| Measured::of(runs)).collect())
}
