//! How transports share a link: what a CUBIC connection is left beside each, and how two of a kind divide it.
//!
//! RFC 9743 lists what a new congestion control is evaluated by. Its items that two connections on one link can show are here:
//! fairness among its own (§5.1.4) and beside the controls that are in use (§5.2.1).

use std::sync::Arc;

use bentpipe_engine::units::Duration;
use bentpipe_sim::{RunError, in_parallel};
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, ScenarioErrors, Spread, Workload};
use serde::Serialize;

use super::SEED;
use super::cell::{Field, bare};
use super::place::{PLACES, Shipped};
use super::select::{Dimension, Selection};
use super::transport::{TRANSPORTS, Transport};
use crate::run::run_whole;
use crate::summary::{Median, median};

/// The link on which it is measured, without losses: some hundred segments per window, a queue of one window.
const PLACE: &str = "10/2";
/// The connection beside which others are measured.
const BESIDE: &str = "linux-cubic";
/// Several of CUBIC's periods: K of RFC 9438 §4.2 for a window of 1100 segments (twice 10 Mbit/s x 650 ms) is 9.4 s.
const LASTS: Duration = Duration::from_secs(120);
/// Both connections begin within this time, at random.
const STARTS: Duration = Duration::from_secs(1);

/// How a transport shares a link of 10 Mbit/s and 650 ms for 120 s, both connections beginning within a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// The transport.
    pub transport: &'static str,
    /// Runs.
    pub runs: usize,
    /// Share of a connection of linux-cubic beside it, of what both deliver: 0.5 is even.
    pub share_of_cubic: Option<Median>,
    /// Jain's index of two connections of this transport: 1 is even, 0.5 means that one has all.
    pub jain: Option<Median>,
}

/// The two scenarios of a transport.
pub(super) struct Shared {
    transport: &'static str,
    pairs: [Scenario; 2],
    runs: u32,
}

/// The scenarios of the chosen transports; none if the choice leaves out the bare path or the link.
pub(super) fn plan(selection: &Selection, runs: u32, shipped: Shipped<'_>) -> Result<Vec<Shared>, ScenarioErrors> {
    let is_measured = selection.has(Dimension::Place, PLACE) && selection.has(Dimension::Shape, "plain");
    if !is_measured || !selection.has(Dimension::Loss, "0 %") || !selection.has(Dimension::Size, "100 MB") {
        return Ok(Vec::new());
    }
    let other =
        one(TRANSPORTS.iter().find(|transport| transport.name == BESIDE).expect("it is on the board"), shipped)?;
    let chosen = TRANSPORTS.iter().filter(|transport| selection.has(Dimension::Transport, transport.name));
    let shared = |transport: &'static Transport| {
        let own = one(transport, shipped)?;
        let pairs = [pair(&own, &other), pair(&own, &own)];
        Ok(Shared { transport: transport.name, pairs, runs: runs.max(1) })
    };
    chosen.map(shared).collect()
}

/// An endless connection of this transport.
fn one(transport: &Transport, shipped: Shipped<'_>) -> Result<Scenario, ScenarioErrors> {
    let place = PLACES.iter().find(|place| place.name == PLACE).expect("it is on the board");
    let mut scenario = bare(place, Field { place: PLACE, loss: "0 %", size: "100 MB" }, transport, shipped)?;
    let endless = Workload::Greedy { duration: None };
    for flow in &mut scenario.flows {
        match &mut flow.kind {
            FlowKind::Tcp(tcp) => Arc::make_mut(tcp).workload = endless,
            FlowKind::Quic(quic) => quic.workload = endless,
            FlowKind::Stp(_) | FlowKind::Udp(_) => {}
        }
        flow.spread = Some(Spread { earliest: Duration::ZERO, width: STARTS });
    }
    scenario.time_limit = LASTS;
    Ok(scenario)
}

fn pair(one: &Scenario, two: &Scenario) -> Scenario {
    let mut both = one.clone();
    both.flows.extend(two.flows.iter().map(|flow| FlowSpec { name: "beside".to_owned(), ..flow.clone() }));
    both
}

/// What all of it costs, as `super::weight` counts.
pub(super) fn weight(all: &[Shared]) -> u64 {
    all.iter().map(|shared| 2 * u64::from(shared.runs) * WEIGHT).sum()
}

/// 10 Mbit/s for 120 s.
const WEIGHT: u64 = 150_000_000;

/// Bytes that the two connections have delivered; `None` if it was stopped.
fn delivered(scenario: &Scenario, seed: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<Option<[f64; 2]>, RunError> {
    if stop() {
        return Ok(None);
    }
    let result = run_whole(scenario, seed, || !stop())?;
    Ok(result.map(|result| [0, 1].map(|n| result.flows[n].delivered as f64)))
}

pub(super) fn run(
    all: &[Shared],
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    add: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Sharing>, RunError> {
    let jobs = all.iter().enumerate().flat_map(|(n, shared)| {
        (0..2).flat_map(move |pair| (0..u64::from(shared.runs)).map(move |run| (n, pair, run)))
    });
    let results = in_parallel(jobs.collect(), threads, |(n, pair, run)| {
        let scenario = &all[n].pairs[pair];
        let both = delivered(scenario, SEED + run, stop)?;
        add(WEIGHT);
        Ok((n, pair, both))
    })?;
    let of = |n: usize, pair: usize| -> Option<Vec<[f64; 2]>> {
        results.iter().filter(|result| (result.0, result.1) == (n, pair)).map(|result| result.2).collect()
    };
    let sharing = all.iter().enumerate().filter_map(|(n, shared)| {
        let (beside, alike) = (of(n, 0)?, of(n, 1)?);
        Some(Sharing {
            transport: shared.transport,
            runs: beside.len(),
            share_of_cubic: median(beside.into_iter().filter_map(|[own, cubic]| ratio(cubic, own + cubic)).collect()),
            jain: median(alike.into_iter().filter_map(jain).collect()),
        })
    });
    Ok(sharing.collect())
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Jain's index of two: the square of the sum over twice the sum of squares.
fn jain([one, two]: [f64; 2]) -> Option<f64> {
    ratio((one + two) * (one + two), 2.0 * (one * one + two * two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_by_hand() {
        assert_eq!(jain([1.0, 1.0]), Some(1.0));
        assert_eq!(jain([1.0, 0.0]), Some(0.5));
        // (1 + 3)^2 / (2 (1 + 9))
        assert_eq!(jain([1.0, 3.0]), Some(0.8));
        assert_eq!(jain([0.0, 0.0]), None);
    }
}
