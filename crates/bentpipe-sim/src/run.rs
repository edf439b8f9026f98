//! A run of a scenario with a seed and an observer; and many runs in parallel.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_engine::NoProbe;
use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{FlowId, FlowSpec, Scenario, Workload};
use bentpipe_study::topology::Unreachable;
#[cfg(feature = "parallel")]
use rayon::prelude::*;

use crate::observe::{AnyObserver, Observer};
use crate::world::{FlowResult, Timers, World};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no path between the ends of a flow.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The scenario has a QUIC flow, but this program was built without QUIC.
    #[error("flows of QUIC need the feature `quic`, which this program was built without")]
    NoQuic,
    /// A flow without an end sends over a path that takes no time, so the time limit is never reached.
    #[error(
        "the clock stands still at {} s: flow `{flow}` sends without end over a path without rate and delay (expected an amount of data, \
         a rate or a delay)",
        at.as_secs_f64()
    )]
    StandsStill {
        /// When.
        at: Time,
        /// The flow's name.
        flow: String,
    },
    /// The threads for parallel runs could not be started.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The system's error.
        cause: String,
    },
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// When it ended: when all finite flows were done, or at the time limit.
    pub end: Time,
    /// True if the time limit ended it while a finite flow was not done.
    pub timed_out: bool,
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// The links, in the scenario's order.
    pub links: Vec<LinkCounters>,
    /// The link layers, in the scenario's order. In each pair, the end that sends on the first link comes first.
    pub layers: Vec<[Stats; 2]>,
    /// Packets in flight.
    pub in_flight: u64,
    /// Number of events: packets that reach a component of the network, and ends that act. Postponed and stopped timers
    /// are not counted.
    pub events: u64,
}

/// Runs a scenario once in virtual time.
///
/// # Errors
/// Fails if the ends of a flow are not connected, or if a flow without an end keeps the clock from advancing.
pub fn run<O: Observer>(scenario: &Scenario, seed: u64, observer: &mut O) -> Result<RunResult, RunError> {
    run_with(scenario, seed, observer, Timers::Lazy, |_| true)
}

/// Like [`run`], with a choice of timers, and with a function that is called regularly with the current time and
/// returns whether to continue.
///
/// # Errors
/// Those of [`run`].
pub fn run_with<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    observer: &mut O,
    timers: Timers,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<RunResult, RunError> {
    if O::WATCHES {
        run_watched(scenario, seed, AnyObserver(observer), timers, &mut go_on)
    } else {
        run_unwatched(scenario, seed, timers, &mut go_on)
    }
}

// The world is compiled here for these two, and not again in each crate that has an observer.

fn run_watched(
    scenario: &Scenario,
    seed: u64,
    mut watched: AnyObserver<'_>,
    timers: Timers,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, RunError> {
    run_world(scenario, seed, &mut watched, timers, go_on)
}

fn run_unwatched(
    scenario: &Scenario,
    seed: u64,
    timers: Timers,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, RunError> {
    run_world(scenario, seed, &mut NoProbe, timers, go_on)
}

fn run_world<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    observer: &mut O,
    timers: Timers,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, RunError> {
    /// Number of events between two calls of that function: some milliseconds of work.
    const EVENTS_PER_QUESTION: u32 = 1 << 17;
    /// Number of such calls at one instant after which the clock stands still: seconds of work.
    const MAX_QUESTIONS_AT_ONCE: u32 = 200;
    let mut world = World::new(scenario, seed, timers, O::WATCHES)?;
    let limit = Time::ZERO + scenario.time_limit;
    let mut until_question = EVENTS_PER_QUESTION;
    let (mut asked_at, mut at_once) = (Time::ZERO, 0);
    let mut exhausted = false;
    while !world.is_over() {
        if !world.step(limit, observer) {
            exhausted = true;
            break;
        }
        until_question -= 1;
        if until_question == 0 {
            until_question = EVENTS_PER_QUESTION;
            if !go_on(world.now) {
                break;
            }
            at_once = if world.now > asked_at { 0 } else { at_once + 1 };
            asked_at = world.now;
            if at_once == MAX_QUESTIONS_AT_ONCE
                && let Some(endless) = scenario.flows.iter().find(|flow| !is_finite(flow))
            {
                return Err(RunError::StandsStill { at: world.now, flow: endless.name.clone() });
            }
        }
    }
    let mut books = world.close(exhausted.then_some(limit));
    world.add_too_long(&mut books.links);
    // If events remain, the limit ended the run. Otherwise, it ended by itself.
    let end = if exhausted && (world.has_timers() || books.in_flight > 0) { limit } else { world.now };
    let flows: Vec<_> = FlowId::first(scenario.flows.len()).map(|flow| world.flow_result(flow)).collect();
    // A flow that was aborted does not wait for time, although its other end may know nothing of that.
    let is_open = |flow: &FlowResult| flow.aborted.is_none() && (flow.received_at.is_none() || flow.acked_at.is_none());
    let waits = scenario.flows.iter().zip(&flows).any(|(spec, flow)| is_finite(spec) && is_open(flow));
    Ok(RunResult {
        seed,
        end,
        timed_out: exhausted && !world.is_over() && waits,
        flows,
        links: books.links,
        layers: world.layer_stats(),
        in_flight: books.in_flight,
        events: world.events,
    })
}

/// True if a flow ends by itself.
fn is_finite(flow: &FlowSpec) -> bool {
    flow.kind.workload().is_some_and(Workload::ends)
}

/// Runs a scenario once per seed, on `threads` threads (0: one per core). The results are in the order of the seeds and
/// do not depend on the number of threads. `progress` receives the number of completed runs.
///
/// # Errors
/// Those of [`run`].
pub fn replicate(
    scenario: &Scenario,
    seeds: Range<u64>,
    threads: usize,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<RunResult>, RunError> {
    let done = AtomicUsize::new(0);
    in_parallel(seeds.collect(), threads, |seed| {
        let result = run(scenario, seed, &mut NoProbe);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        result
    })
}

/// Runs independent jobs on `threads` threads (0: one per core; without the feature `parallel`, on this thread). The
/// results are in the order of the jobs.
///
/// # Errors
/// Returns the error of the first failing job.
pub fn in_parallel<J: Send, R: Send>(
    jobs: Vec<J>,
    threads: usize,
    work: impl Fn(J) -> Result<R, RunError> + Sync,
) -> Result<Vec<R>, RunError> {
    run_all(jobs, threads, &work)?.into_iter().collect()
}

#[cfg(feature = "parallel")]
fn run_all<J: Send, R: Send>(
    jobs: Vec<J>,
    threads: usize,
    work: &(impl Fn(J) -> R + Sync),
) -> Result<Vec<R>, RunError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = if threads == 0 { cores } else { threads };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(wanted.min(cores).min(jobs.len()).max(1))
        .build()
        .map_err(|cause| RunError::Threads { threads, cause: cause.to_string() })?;
    // Jobs are taken one by one, since one may take as long as a hundred others: no thread reserves a share of them.
    Ok(pool.install(|| jobs.into_par_iter().with_max_len(1).map(work).collect()))
}

#[cfg(not(feature = "parallel"))]
fn run_all<J: Send, R: Send>(
    jobs: Vec<J>,
    _threads: usize,
    work: &(impl Fn(J) -> R + Sync),
) -> Result<Vec<R>, RunError> {
    Ok(jobs.into_iter().map(work).collect())
}
