//! One run, here or elsewhere.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunError, Timers, run_with};
use bentpipe_study::scenario::{Scenario, ScenarioErrors};
use serde::{Deserialize, Serialize};

use crate::key::{ENGINE, Key, canonical, fingerprint};
use crate::plan::{Job, PlanError};
use crate::row::Row;

/// Does a run: a pure function of the job. `go_on` is asked every few milliseconds; `None` if it said no.
///
/// # Errors
/// Fails if the ends of a flow are not connected.
pub fn run_point(job: &Job, go_on: impl FnMut() -> bool) -> Result<Option<Row>, PlanError> {
    run_key(job.scenario(), job.key, go_on).map_err(|cause| PlanError::Run { at: job.place(), cause })
}

fn run_key(scenario: &Scenario, key: Key, mut go_on: impl FnMut() -> bool) -> Result<Option<Row>, RunError> {
    let mut stopped = false;
    let result = run_with(scenario, key.seed, &mut NoProbe, Timers::Lazy, |_| {
        stopped = !go_on();
        !stopped
    })?;
    Ok((!stopped).then(|| Row::new(key, scenario, &result)))
}

/// Runs of one scenario as data that any machine with the same engine can do, without files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portable {
    /// The engine that must do it.
    pub engine: String,
    /// The resolved scenario as text.
    pub scenario: String,
    /// The seeds, one run each.
    pub seeds: Vec<u64>,
}

/// Why runs from elsewhere cannot be done here.
#[derive(Debug, thiserror::Error)]
pub enum PortableError {
    /// The numbers would not be those of the sweep.
    #[error("the sweep is of bentpipe {theirs}, this worker has {ENGINE}: install the same version everywhere")]
    Engine {
        /// The sweep's engine.
        theirs: String,
    },
    /// The text is not a scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioErrors),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Does the runs; `go_on` is asked every few milliseconds, and the rows so far are returned when it says no.
///
/// # Errors
/// Fails for another engine, or for a scenario that this one does not take.
pub fn run_portable(work: &Portable, mut go_on: impl FnMut() -> bool) -> Result<Vec<Row>, PortableError> {
    if work.engine != ENGINE {
        return Err(PortableError::Engine { theirs: work.engine.clone() });
    }
    let scenario = Scenario::parse(&work.scenario, "scenario", &[])?;
    // The text is resolved, so it reads back as the scenario that it was written from, and has its fingerprint.
    let fingerprint = fingerprint(&canonical(&scenario));
    let mut rows = Vec::with_capacity(work.seeds.len());
    for &seed in &work.seeds {
        match run_key(&scenario, Key { scenario: fingerprint, seed }, &mut go_on)? {
            Some(row) => rows.push(row),
            None => break,
        }
    }
    Ok(rows)
}
