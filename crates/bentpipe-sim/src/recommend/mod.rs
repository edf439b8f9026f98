//! Recommends a system for a path: formulas first, then paired runs, then a verdict and where it would change.
//!
//! The verdict is the simplest system that is as good as the fastest: the runs do not show with 95 % confidence that it is
//! slower, or they show that it is slower by a margin at most. In each replication, all systems meet the same fades.
//!
//! On a path without random draws, each system runs once.
//!
//! Reading order: `system` (the candidates), `estimate` (the formulas), `verdict` (the choice), `flip` (where the
//! choice changes).

mod estimate;
mod flip;
mod system;
mod verdict;

use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Duration;
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{Scenario, Workload};
use bentpipe_study::stats::Sample;
use serde::Serialize;

use crate::run::{RunError, in_parallel, run_with};
use crate::world::Timers;

pub use flip::{Dimension, Flip};
pub use system::{System, Unfit};
pub use verdict::{Gain, Verdict};

use system::Ground;

/// A system whose estimate is this many times the smallest one is hopeless. The margin is wide, because steady-state
/// formulas can be wrong by a factor of several in either direction, and slow systems are worth knowing.
const HOPELESS: f64 = 30.0;

/// The options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Replications for the verdict, at least 2.
    pub reps: u32,
    /// Replications at each point of the search for changes of the choice; 0 does not search.
    pub flip_reps: u32,
    /// Maximum slowdown of a system that counts as good as the best: 0.05 is 5 %.
    pub margin: f64,
    /// Number of parallel runs (0: one per core). The results do not depend on it.
    pub threads: usize,
    /// Called regularly. If it returns true, the work stops.
    pub stop: fn() -> bool,
}

/// One system on the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The system.
    pub system: System,
    /// Why it does not fit the path; the other fields are then empty.
    pub unfit: Option<String>,
    /// Time according to the formulas, in seconds.
    pub estimate_s: Option<f64>,
    /// The minimum time that the links allow this system, in seconds: some systems open without a round trip.
    pub limit_s: Option<f64>,
    /// True if it was not simulated because its estimate is hopeless.
    pub hopeless: bool,
    /// Times of the transfer by replication, seconds; `None` if it did not finish.
    pub times_s: Vec<Option<f64>>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// Name of the transfer.
    pub flow: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// Name of the satellite link.
    pub link: String,
    /// The minimum time that the links allow any of the systems, in seconds.
    pub limit_s: Option<f64>,
    /// The systems, in order.
    pub candidates: Vec<Candidate>,
    /// The choice; `None` if no transfer finished.
    pub verdict: Option<Verdict>,
    /// True if nothing on the path is random, so that each system was run once.
    pub deterministic: bool,
    /// Where the choice changes.
    pub flips: Vec<Flip>,
    /// Dimensions in which no change was looked for, because the satellite link's schedule, trace or phases set them.
    pub held: Vec<Dimension>,
    /// True if the search for changes was completed.
    pub searched: bool,
    /// True if the search was stopped before its end.
    pub interrupted: bool,
}

impl Candidate {
    /// The time according to the formulas, if it is within 30 % of the median of the runs; otherwise it says nothing
    /// about this path.
    pub fn sound_estimate_s(&self) -> Option<f64> {
        let median = self.median_s()?;
        self.estimate_s.filter(|estimate| (estimate / median - 1.0).abs() <= 0.3)
    }

    /// A quantile of its times in seconds; `None` if it falls on a transfer that did not finish (these count as the
    /// slowest).
    pub fn quantile_s(&self, p: f64) -> Option<f64> {
        Sample::with_unfinished(self.times_s.iter().copied()).ok()?.finite_quantile(p)
    }

    /// The median of its times in seconds.
    pub fn median_s(&self) -> Option<f64> {
        self.quantile_s(0.5)
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RecommendError {
    /// Nothing to recommend for.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The simulator cannot run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What is being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The systems on the path.
    Choice,
    /// The systems on changed paths. How many paths a search needs is not known.
    Changes {
        /// The number of this search.
        search: usize,
        /// The number of searches.
        of: usize,
    },
}

/// Receives the number of completed runs and their total, at this stage on one path.
pub type Progress<'a> = &'a (dyn Fn(Stage, usize, usize) + Sync);

/// Recommends a system for the first TCP transfer of a scenario that describes the bare path.
///
/// # Errors
/// Fails if there is no such transfer, if the path is not bare, if the ends are not connected, or if threads cannot be
/// started.
pub fn recommend(
    scenario: &Scenario,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Recommendation, RecommendError> {
    let ground = Ground::of(scenario)?;
    let spec = &scenario[ground.flow];
    let Some(Workload::Bulk(bytes)) = spec.kind.workload() else { return Err(Unfit::NoTransfer.into()) };
    let candidates =
        candidates(scenario, &ground, options.reps, options, &|done, of| progress(Stage::Choice, done, of))?;
    let deterministic = scenario.random_parts().is_empty();
    let verdict = verdict::choose(&candidates, options.margin, deterministic);
    let (mut flips, mut searched) = (Vec::new(), false);
    if let Some(verdict) = &verdict
        && options.flip_reps > 0
    {
        flips = flip::search(scenario, &ground, verdict.system, options, progress)?;
        searched = !(options.stop)();
    }
    Ok(Recommendation {
        flow: spec.name.clone(),
        bytes: bytes.get(),
        link: scenario[ground.there].name.clone(),
        limit_s: candidates.iter().filter_map(|candidate| candidate.limit_s).reduce(f64::min),
        candidates,
        verdict,
        deterministic,
        flips,
        held: flip::held(scenario, &ground),
        searched,
        interrupted: (options.stop)(),
    })
}

/// The scenario with this system on the path of its first transfer.
///
/// # Errors
/// Fails in the same cases as [`recommend`], and if the system does not fit.
pub fn equipped(scenario: &Scenario, system: System) -> Result<Scenario, Unfit> {
    Ground::of(scenario)?.with(scenario, system)
}

/// The minimum time that the links allow a transfer, seconds.
fn limit(world: &Scenario, ground: &Ground) -> Option<f64> {
    flow_limit(world, &world[ground.flow]).ok().flatten()?.time.map(Duration::as_secs_f64)
}

/// Estimates all systems, and simulates those that are not hopeless.
fn candidates(
    scenario: &Scenario,
    ground: &Ground,
    reps: u32,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Candidate>, RunError> {
    let worlds: Vec<_> = System::ALL.map(|system| ground.with(scenario, system)).into_iter().collect();
    let estimates: Vec<_> = (System::ALL.iter().zip(&worlds))
        .map(|(&system, world)| world.as_ref().ok().and_then(|_| estimate::estimate(scenario, ground, system)))
        .collect();
    let min = estimates.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let hopeless: Vec<_> = estimates.iter().map(|estimate| estimate.is_some_and(|e| e > HOPELESS * min)).collect();
    let runs: Vec<usize> = (0..worlds.len()).filter(|&n| worlds[n].is_ok() && !hopeless[n]).collect();
    let seeds = 0..if scenario.random_parts().is_empty() { 1 } else { u64::from(reps) };
    let jobs: Vec<_> = seeds.flat_map(|n| runs.iter().map(move |&system| (n, system))).collect();
    let (done, of) = (AtomicUsize::new(0), jobs.len());
    let times = in_parallel(jobs, options.threads, |(n, system)| {
        if (options.stop)() {
            return Ok(None);
        }
        let world = worlds[system].as_ref().expect("only those that fit are run");
        let seed = scenario.seed.wrapping_add(n);
        let result = run_with(world, seed, &mut NoProbe, Timers::Lazy, |_| !(options.stop)())?;
        let flow = &result.flows[ground.flow.index()];
        let time = flow.received_at.map(|end| end.saturating_since(flow.start).as_secs_f64());
        // An aborted run ends like any other.
        if time.is_none() && (options.stop)() {
            return Ok(None);
        }
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, of);
        Ok(Some(time))
    })?;
    // After an interrupt only whole replications count: times are compared pair by pair.
    let whole: Vec<Vec<Option<f64>>> =
        times.chunks(runs.len().max(1)).filter_map(|all| all.iter().copied().collect()).collect();
    let times_of = |system: usize| {
        let place = runs.iter().position(|&run| run == system);
        place.map_or(Vec::new(), |place| whole.iter().map(|all| all[place]).collect())
    };
    let all = System::ALL.into_iter().enumerate().map(|(n, system)| Candidate {
        system,
        unfit: worlds[n].as_ref().err().map(ToString::to_string),
        estimate_s: estimates[n],
        limit_s: worlds[n].as_ref().ok().and_then(|world| limit(world, ground)),
        hopeless: hopeless[n],
        times_s: times_of(n),
    });
    Ok(all.collect())
}

#[cfg(test)]
mod tests;
