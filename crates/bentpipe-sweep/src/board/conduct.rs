//! How transports behave towards others and among themselves: the criteria of RFC 9743 that one bottleneck can show.
//!
//! Each check is a run on a link of the board, or two. All transports meet the same starts and losses, by the same seeds.

use std::sync::Arc;

use bentpipe_engine::link::{Change, Codel, Discipline, LinkConfig, Moves, Reorder, Track};
use bentpipe_engine::units::{Bytes, Duration, Probability};
use bentpipe_sim::{RunError, RunResult, in_parallel};
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, ScenarioErrors, Spread, Workload};
use serde::Serialize;

use super::SEED;
use super::cell::{Field, add_ping, bare, ping_p99_s};
use super::place::{PLACES, SATELLITE_FORWARD, Shipped};
use super::select::{Dimension, Selection};
use super::transport::{TRANSPORTS, Transport};
use crate::ranks::{Median, median};
use crate::run::run_whole;

/// The link on which it is measured: some hundred segments per window, a queue of one window.
const PLACE: &str = "10/2";
/// The connection beside which others are measured.
const BESIDE: &str = "linux-cubic";
/// Several of CUBIC's periods: K of RFC 9438 §4.2 for a window of 1100 segments (twice 10 Mbit/s x 650 ms) is 9.4 s.
const LASTS: Duration = Duration::from_secs(120);
/// Connections begin within this time, at random.
const STARTS: Duration = Duration::from_secs(1);
/// The delay of the second of two connections, and the time at the end over which its share is measured.
const LATER: Duration = Duration::from_secs(40);
/// Connections of an overload: each has an eighth of a window, 68 segments.
const MANY: usize = 8;
/// A short transfer beside a long one, bytes.
const SHORT: u64 = 2_000_000;
/// When a path changes: in the middle.
const CHANGES: Duration = Duration::from_secs(60);
/// The satellite leg's delay then grows by this much: a third of the round trip, as from one ground station to another.
const LONGER: Duration = Duration::from_millis(200);
/// An outage that begins then.
const OUTAGE: Duration = Duration::from_secs(5);
/// Of the packets one in a hundred is late by 40 packets of 1.2 ms.
const REORDERED: f64 = 0.01;
const LATE_BY: Duration = Duration::from_millis(48);

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Beside,
    Alike,
    Late,
    Alone,
    Lossy,
    Many,
    Short,
    Managed,
    Moved,
    Outage,
    Reordered,
}

impl Check {
    const ALL: [Check; 11] = [
        Check::Beside,
        Check::Alike,
        Check::Late,
        Check::Alone,
        Check::Lossy,
        Check::Many,
        Check::Short,
        Check::Managed,
        Check::Moved,
        Check::Outage,
        Check::Reordered,
    ];
}

/// How a transport behaves on a link of 10/2 Mbit/s and 650 ms whose queue holds 650 ms. Unless stated otherwise, connections last
/// 120 s and begin within a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conduct {
    /// The transport.
    pub transport: &'static str,
    /// Runs of each check.
    pub runs: usize,
    /// RFC 9743 §5.1.1, congestion collapse: packets that the queue drops while eight connections share the link, as a part of all.
    pub dropped_of_many: Option<Median>,
    /// §5.1.2, bufferbloat, and §5.2.2, traffic in real time: p99 of a ping beside one connection, seconds.
    pub ping_p99_s: Option<Median>,
    /// §5.1.3, losses: packets that the queue drops beside one connection alone, as a part of all.
    pub dropped: Option<Median>,
    /// The same: what one connection delivers with 1 % of random losses, as a part of what it delivers without.
    pub kept_under_loss: Option<Median>,
    /// §5.1.4, fairness among its own: Jain's index of two connections; 1 is even, 0.5 means that one has all.
    pub jain: Option<Median>,
    /// The same, convergence: the share of a connection that begins 40 s after one of its kind, in the last 40 s; 0.5 is even.
    pub share_of_later: Option<Median>,
    /// §5.2.1, controls that are in use: the share of a connection of linux-cubic beside one of this transport; 0.5 is even.
    pub share_of_cubic: Option<Median>,
    /// §5.2.3, short beside long flows: time of 2 MB of linux-cubic that begin 40 s after one connection of this transport, seconds;
    /// 80 if they did not finish in time.
    pub short_beside_s: Option<Median>,
    /// §7.1, active queue management: what one connection delivers over a queue with FQ-CoDel, as a part of what it delivers without.
    pub kept_under_fq_codel: Option<Median>,
    /// §7.3, varying delay, and §7.9, sudden changes in the path: the same if the delay grows by 200 ms after 60 s.
    pub kept_over_longer_path: Option<Median>,
    /// §7.8, transient events: the same with an outage of 5 s after 60 s, which alone takes a twenty-fourth of the time.
    pub kept_in_outage: Option<Median>,
    /// §7.7, extreme reordering: the same if one packet in a hundred is late by 40 others.
    pub kept_under_reordering: Option<Median>,
}

/// The scenarios of a transport, one for each check.
pub(super) struct Planned {
    transport: &'static str,
    scenarios: Vec<Scenario>,
    runs: u32,
}

/// The scenarios of the chosen transports.
pub(super) fn plan(selection: &Selection, runs: u32, shipped: Shipped<'_>) -> Result<Vec<Planned>, ScenarioErrors> {
    let cubic = TRANSPORTS.iter().find(|transport| transport.name == BESIDE).expect("it is on the board");
    let cubic = one(cubic, "0 %", shipped)?;
    let chosen = TRANSPORTS.iter().filter(|transport| selection.has(Dimension::Transport, transport.name));
    let planned = |transport: &'static Transport| {
        let (own, lossy) = (one(transport, "0 %", shipped)?, one(transport, "1 %", shipped)?);
        let scenarios = Check::ALL.map(|check| scenario(check, &own, &lossy, &cubic)).to_vec();
        Ok(Planned { transport: transport.name, scenarios, runs: runs.max(1) })
    };
    chosen.map(planned).collect()
}

/// An endless connection of this transport.
fn one(transport: &Transport, loss: &'static str, shipped: Shipped<'_>) -> Result<Scenario, ScenarioErrors> {
    let place = PLACES.iter().find(|place| place.name == PLACE).expect("it is on the board");
    let mut scenario = bare(place, Field { place: PLACE, loss, size: "100 MB" }, transport, shipped)?;
    for flow in &mut scenario.flows {
        set_workload(flow, Workload::Greedy { duration: None });
        flow.spread = Some(Spread { earliest: Duration::ZERO, width: STARTS });
    }
    scenario.time_limit = LASTS;
    Ok(scenario)
}

fn set_workload(flow: &mut FlowSpec, workload: Workload) {
    match &mut flow.kind {
        FlowKind::Tcp(tcp) => Arc::make_mut(tcp).workload = workload,
        FlowKind::Quic(quic) => {
            quic.workload = workload;
            // A code needs finite data.
            quic.repair = None;
        }
        FlowKind::Stp(_) | FlowKind::Udp(_) => {}
    }
}

fn scenario(check: Check, own: &Scenario, lossy: &Scenario, cubic: &Scenario) -> Scenario {
    let mut scenario = if check == Check::Lossy { lossy.clone() } else { own.clone() };
    let mut add = |other: &Scenario, name: &str, change: &dyn Fn(&mut FlowSpec)| {
        let mut flow = FlowSpec { name: name.to_owned(), ..other.flows[0].clone() };
        change(&mut flow);
        scenario.flows.push(flow);
    };
    let later = |flow: &mut FlowSpec| flow.spread = Some(Spread { earliest: LATER, width: STARTS });
    match check {
        Check::Beside => add(cubic, "beside", &|_| ()),
        Check::Alike => add(own, "beside", &|_| ()),
        Check::Late => add(own, "later", &later),
        Check::Alone => add_ping(&mut scenario),
        Check::Lossy => {}
        Check::Managed | Check::Moved | Check::Outage | Check::Reordered => change(check, satellite(&mut scenario)),
        Check::Many => (1..MANY).for_each(|n| add(own, &format!("beside {n}"), &|_| ())),
        Check::Short => add(cubic, "short", &|flow| {
            later(flow);
            set_workload(flow, Workload::Bulk(Bytes::new(SHORT)));
        }),
    }
    scenario
}

/// The direction of the satellite link in which the data goes.
fn satellite(scenario: &mut Scenario) -> &mut LinkConfig {
    let link = scenario.links.iter_mut().find(|link| link.name == SATELLITE_FORWARD).expect("all places have it");
    &mut link.config
}

/// Changes the path for a check.
fn change(check: Check, link: &mut LinkConfig) {
    let track = |initial: u64, changes: &[(Duration, u64)]| {
        let changes = changes.iter().map(|&(at, value)| Change { at, over: Duration::ZERO, value }).collect();
        Some(Arc::new(Track::new(initial, changes, None).expect("in order of time")))
    };
    let delay = link.delay.as_ticks();
    let moves = match check {
        Check::Managed => return link.queue.discipline = Discipline::FqCodel(Codel::DEFAULT),
        Check::Reordered => {
            let probability = Probability::new(REORDERED).expect("a probability");
            return link.reorder = Some(Reorder { probability, delay: LATE_BY });
        }
        Check::Moved => Moves { delay: track(delay, &[(CHANGES, delay + LONGER.as_ticks())]), ..Moves::default() },
        Check::Outage => {
            let rate = link.rate.expect("a satellite link has a rate").bits_per_second();
            Moves { rate: track(rate, &[(CHANGES, 0), (CHANGES + OUTAGE, rate)]), ..Moves::default() }
        }
        _ => return,
    };
    link.moves = Some(Arc::new(moves));
}

/// The cost of all checks, in the unit of `super::weight`.
pub(super) fn weight(all: &[Planned]) -> u64 {
    all.iter().map(|planned| u64::from(planned.runs) * Check::ALL.len() as u64 * WEIGHT).sum()
}

/// 10 Mbit/s for 120 s.
const WEIGHT: u64 = 150_000_000;

/// The results of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// The number of its check.
    value: Option<f64>,
    /// Packets that the bottleneck's queue dropped, as a part of all.
    dropped: Option<f64>,
    /// Bytes that the first connection delivered.
    delivered: f64,
}

fn measured(check: Check, scenario: &Scenario, result: &RunResult, earlier: Option<&RunResult>) -> Measured {
    let delivered = |n: usize, result: &RunResult| result.flows[n].delivered as f64;
    let counters =
        scenario.links.iter().position(|link| link.name == SATELLITE_FORWARD).map(|link| &result.links[link]);
    let value = match check {
        Check::Beside => ratio(delivered(1, result), delivered(0, result) + delivered(1, result)),
        Check::Alike => jain([0, 1].map(|n| delivered(n, result))),
        Check::Late => {
            let [first, later] = [0, 1].map(|n| delivered(n, result) - earlier.map_or(0.0, |run| delivered(n, run)));
            ratio(later, first + later)
        }
        Check::Alone => ping_p99_s(scenario, result),
        Check::Lossy | Check::Many => None,
        Check::Managed | Check::Moved | Check::Outage | Check::Reordered => None,
        Check::Short => {
            let short = &result.flows[1];
            // A transfer that did not finish counts as the rest of the run.
            let took = short.received_at.map(|at| at.saturating_since(short.start).as_secs_f64());
            Some(took.unwrap_or((LASTS - LATER).as_secs_f64()))
        }
    };
    Measured {
        value,
        dropped: counters.and_then(|counters| ratio(counters.dropped_full as f64, counters.offered as f64)),
        delivered: delivered(0, result),
    }
}

/// Runs a check; `None` if it was stopped.
fn measure(
    check: Check,
    scenario: &Scenario,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Measured>, RunError> {
    if stop() {
        return Ok(None);
    }
    let mut earlier = None;
    if check == Check::Late {
        // The same run, ended earlier.
        let mut shorter = scenario.clone();
        shorter.time_limit = LASTS - LATER;
        earlier = run_whole(&shorter, seed, || !stop())?;
    }
    let result = run_whole(scenario, seed, || !stop())?;
    Ok(result.map(|result| measured(check, scenario, &result, earlier.as_ref())))
}

pub(super) fn run(
    all: &[Planned],
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    add: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Conduct>, RunError> {
    let jobs = all.iter().enumerate().flat_map(|(n, planned)| {
        Check::ALL.into_iter().flat_map(move |check| (0..u64::from(planned.runs)).map(move |run| (n, check, run)))
    });
    let results = in_parallel(jobs.collect(), threads, |(n, check, run)| {
        let measured = measure(check, &all[n].scenarios[check as usize], SEED + run, stop)?;
        add(WEIGHT);
        Ok((n, check, measured))
    })?;
    // A transport is left out unless all its runs are done.
    let of = |n: usize, check: Check| -> Option<Vec<Measured>> {
        results.iter().filter(|result| (result.0, result.1) == (n, check)).map(|result| result.2).collect()
    };
    let conduct = |(n, planned): (usize, &Planned)| {
        let values = |check| Some(of(n, check)?.iter().filter_map(|run| run.value).collect::<Vec<_>>());
        let dropped = |check| Some(of(n, check)?.iter().filter_map(|run| run.dropped).collect::<Vec<_>>());
        let without = of(n, Check::Alone)?;
        let kept = |check| {
            let with = of(n, check)?;
            let pairs = with.iter().zip(&without);
            Some(median(pairs.filter_map(|(with, without)| ratio(with.delivered, without.delivered)).collect()))
        };
        Some(Conduct {
            transport: planned.transport,
            runs: planned.runs as usize,
            dropped_of_many: median(dropped(Check::Many)?),
            ping_p99_s: median(values(Check::Alone)?),
            dropped: median(dropped(Check::Alone)?),
            kept_under_loss: kept(Check::Lossy)?,
            jain: median(values(Check::Alike)?),
            share_of_later: median(values(Check::Late)?),
            share_of_cubic: median(values(Check::Beside)?),
            short_beside_s: median(values(Check::Short)?),
            kept_under_fq_codel: kept(Check::Managed)?,
            kept_over_longer_path: kept(Check::Moved)?,
            kept_in_outage: kept(Check::Outage)?,
            kept_under_reordering: kept(Check::Reordered)?,
        })
    };
    Ok(all.iter().enumerate().filter_map(conduct).collect())
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

    /// The changes that a check makes to the path: the delay and the rate at the times that the constants name.
    #[test]
    fn a_check_changes_the_path() {
        let rate = bentpipe_engine::units::Rate::from_bits_per_second(10_000_000);
        let link = |check| {
            let mut link = LinkConfig::clean(rate, Duration::from_millis(250));
            change(check, &mut link);
            link
        };
        assert_eq!(link(Check::Alone), LinkConfig::clean(rate, Duration::from_millis(250)));
        assert!(link(Check::Managed).has_managed_queue());
        assert_eq!(link(Check::Reordered).reorder.expect("it reorders").probability.get(), 0.01);
        let values = |track: Option<Arc<Track>>| track.expect("it moves").values().collect::<Vec<_>>();
        let ticks = |millis| Duration::from_millis(millis).as_ticks();
        assert_eq!(values(link(Check::Moved).moves.expect("it moves").delay.clone()), [ticks(250), ticks(450)]);
        assert_eq!(values(link(Check::Outage).moves.expect("it moves").rate.clone()), [10_000_000, 0, 10_000_000]);
    }

    #[test]
    fn jain_by_hand() {
        assert_eq!(jain([1.0, 1.0]), Some(1.0));
        assert_eq!(jain([1.0, 0.0]), Some(0.5));
        // (1 + 3)^2 / (2 (1 + 9))
        assert_eq!(jain([1.0, 3.0]), Some(0.8));
        assert_eq!(jain([0.0, 0.0]), None);
    }
}
