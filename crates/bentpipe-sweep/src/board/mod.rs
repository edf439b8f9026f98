//! The scoreboard: every transport over every link, with and without gateways.
//!
//! A [`Field`] is a transfer over a link, an [`Entry`] is a transport with or without a gateway. All entries of a field meet the same
//! fades, by the same seeds. If nothing is drawn at random there is one run.
//!
//! Reading order: `place`, the links; `transport`, the hosts; `cell`, one transfer; `select`, the choice of cells; `conduct`, several
//! connections on one link; `standing`, the tables; and this file, the whole board.

mod cell;
mod conduct;
mod place;
mod select;
mod standing;
mod transport;

use std::sync::atomic::{AtomicU64, Ordering};

use bentpipe_language::quantity::SIZE;
use bentpipe_sim::{RunError, in_parallel};
use bentpipe_study::scenario::ScenarioErrors;
use serde::Serialize;

use crate::ranks::{Median, Ranks, median};
use cell::{Ready, Sample, ready, sample};
use select::Dimension;

pub use cell::{Entry, Field, SHAPES};
pub use conduct::Conduct;
pub use place::{OWN_LOSS, PLACES, Place, Shipped};
pub use select::{Selection, UnknownWord};
pub use standing::{Row, Table};
pub use transport::{TRANSPORTS, Transport};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cells.
    pub selection: Selection,
    /// True to measure how the chosen transports behave, too.
    pub conduct: bool,
    /// Runs of each cell, with successive seeds; at least 1. A 95 % interval needs six.
    pub runs: u32,
    /// Runs in parallel (0: one per core); the results do not depend on it.
    pub threads: usize,
}

/// The seed of the first run of each cell.
const SEED: u64 = 1;

/// A cell and its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The transfer.
    #[serde(flatten)]
    pub field: Field,
    /// What carries it.
    #[serde(flatten)]
    pub entry: Entry,
    /// Why there is nothing to run; the other values are then missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// Runs.
    pub runs: usize,
    /// Runs whose transfer did not finish in time; they count as slower than all others.
    pub unfinished: usize,
    /// Time of the transfer, seconds; `None` if half of the runs or more did not finish.
    pub time_s: Option<Median>,
    /// Its median over the minimum time that the links allow TCP from end to end.
    pub x_limit: Option<f64>,
    /// Median of the 99th percentile of a ping beside the transfer, seconds: of its forward delay plus of its return delay.
    pub ping_p99_s: Option<f64>,
}

/// A link with its limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The transfer.
    #[serde(flatten)]
    pub field: Field,
    /// The minimum time that the links allow TCP from end to end, seconds.
    pub limit_s: Option<f64>,
}

/// The board, or the selected part of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Board {
    /// The seed of run 0, the same for all links; run n has this plus n.
    pub seed: u64,
    /// The transfers.
    pub limits: Vec<Limit>,
    /// The cells, by transfer, transport and shape.
    pub cells: Vec<Cell>,
    /// How transports behave on a shared link, if requested.
    pub conduct: Vec<Conduct>,
    /// True if it was stopped: cells without all of their runs are missing.
    pub interrupted: bool,
}

/// Why there is no board.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// A shipped scenario does not accept the values of the board.
    #[error(transparent)]
    Scenario(#[from] ScenarioErrors),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Receives the work done and the total work: bytes to be simulated, weighted by their cost.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A cell before it runs.
struct Planned {
    field: Field,
    entry: Entry,
    limit: Option<f64>,
    ready: Result<Ready, String>,
    weight: u64,
}

/// Runs the chosen part of the board. `shipped` returns the texts of the shipped scenarios; `stop` is called every few milliseconds.
///
/// # Errors
/// Fails if a shipped scenario does not accept the board's values, or if threads cannot be started.
pub fn board(
    options: &Options,
    shipped: Shipped<'_>,
    stop: &(dyn Fn() -> bool + Sync),
    progress: Progress<'_>,
) -> Result<Board, BoardError> {
    let (limits, planned) = plan(options, shipped, stop)?;
    let conducts =
        if options.conduct && !stop() { conduct::plan(&options.selection, options.runs, shipped)? } else { Vec::new() };
    let jobs = jobs(&planned, options.runs);
    let of = jobs.iter().map(|&(cell, _)| planned[cell].weight).sum::<u64>() + conduct::weight(&conducts);
    let done = AtomicU64::new(0);
    let add = |weight: u64| progress(done.fetch_add(weight, Ordering::Relaxed) + weight, of);
    let samples = in_parallel(jobs, options.threads, |(n, seed)| {
        let Ok(ready) = &planned[n].ready else { unreachable!("only what fits has jobs") };
        let sample = if stop() { None } else { sample(&ready.scenario, seed, stop)? };
        add(planned[n].weight);
        Ok((n, sample))
    })?;
    let conduct = conduct::run(&conducts, options.threads, stop, &add)?;
    let mut by_cell: Vec<Vec<Option<Sample>>> = vec![Vec::new(); planned.len()];
    samples.into_iter().for_each(|(n, sample)| by_cell[n].push(sample));
    let whole = planned.into_iter().zip(by_cell).filter_map(|(planned, samples)| {
        let samples: Option<Vec<Sample>> = samples.into_iter().collect();
        Some(result(planned, &samples?))
    });
    Ok(Board { seed: SEED, limits, cells: whole.collect(), conduct, interrupted: stop() })
}

/// The selected cells; those so far if it is stopped.
fn plan(
    options: &Options,
    shipped: Shipped<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<Limit>, Vec<Planned>), ScenarioErrors> {
    let is = |dimension, word| options.selection.has(dimension, word);
    let (mut limits, mut planned) = (Vec::new(), Vec::new());
    for place in PLACES.iter().filter(|place| is(Dimension::Place, place.name)) {
        for loss in place.losses.iter().filter(|loss| is(Dimension::Loss, loss)) {
            for size in place.sizes.iter().filter(|size| is(Dimension::Size, size)) {
                let field = Field { place: place.name, loss, size };
                let limit = cell::limit(place, field, shipped)?;
                limits.push(Limit { field, limit_s: limit });
                for transport in TRANSPORTS.iter().filter(|transport| is(Dimension::Transport, transport.name)) {
                    for shape in SHAPES.iter().filter(|shape| is(Dimension::Shape, shape)) {
                        if stop() {
                            return Ok((limits, planned));
                        }
                        let entry = Entry { transport: transport.name, shape };
                        let ready = ready(place, field, transport, shape, shipped)?;
                        let weight = weight(size, transport, shape);
                        planned.push(Planned { field, entry, limit, ready, weight });
                    }
                }
            }
        }
    }
    Ok((limits, planned))
}

/// The cost of a run, in bytes of TCP from end to end. QUIC costs about four times as much, a gateway twice (roughly measured; only
/// the estimate of the remaining time uses it).
fn weight(size: &str, transport: &Transport, shape: &str) -> u64 {
    let bytes = SIZE.parse(size).unwrap_or(0);
    bytes * if transport.is_quic() { 4 } else { 1 } * if shape == "plain" { 1 } else { 2 }
}

/// Cells and seeds of all runs: long transfers first, so that no thread is left alone with one at the end.
fn jobs(planned: &[Planned], runs: u32) -> Vec<(usize, u64)> {
    let mut jobs: Vec<(usize, u64)> = Vec::new();
    for (n, cell) in planned.iter().enumerate() {
        if let Ok(ready) = &cell.ready {
            let runs = if ready.is_constant { 1 } else { u64::from(runs.max(1)) };
            jobs.extend((0..runs).map(|run| (n, SEED + run)));
        }
    }
    jobs.sort_by_key(|&(n, seed)| (std::cmp::Reverse(planned[n].weight), n, seed));
    jobs
}

fn result(planned: Planned, samples: &[Sample]) -> Cell {
    let Planned { field, entry, limit, ready, .. } = planned;
    let times: Vec<Option<f64>> = samples.iter().map(|sample| sample.time_s).collect();
    let time_s = Ranks::of(&times).median();
    Cell {
        field,
        entry,
        unfit: ready.err(),
        runs: samples.len(),
        unfinished: times.iter().filter(|time| time.is_none()).count(),
        x_limit: time_s.zip(limit).map(|(time, limit)| time.median / limit),
        time_s,
        ping_p99_s: median(samples.iter().filter_map(|sample| sample.ping_s).collect()).map(|ping| ping.median),
    }
}
