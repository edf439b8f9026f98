//! One run, here or elsewhere.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunError, RunResult, Timers, run_with};
use bentpipe_study::scenario::{Scenario, ScenarioErrors};
use serde::{Deserialize, Serialize};

use crate::key::{ENGINE, Key, canonical, fingerprint};
use crate::plan::{Job, PlanError};
use crate::row::Row;

/// Does a run: a pure function of the job. Calls `go_on` every few milliseconds; returns `None` if it returned false.
///
/// # Errors
/// Fails if the ends of a flow are not connected.
pub fn run_point(job: &Job, go_on: impl FnMut() -> bool) -> Result<Option<Row>, PlanError> {
    run_key(job.scenario(), job.key, go_on).map_err(|cause| PlanError::Run { at: job.place(), cause })
}

fn run_key(scenario: &Scenario, key: Key, go_on: impl FnMut() -> bool) -> Result<Option<Row>, RunError> {
    Ok(run_whole(scenario, key.seed, go_on)?.map(|result| Row::new(key, scenario, &result)))
}

/// Runs a scenario. Returns `None` if `go_on` returned false before its end.
pub(crate) fn run_whole(
    scenario: &Scenario,
    seed: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Option<RunResult>, RunError> {
    let mut stopped = false;
    let result = run_with(scenario, seed, &mut NoProbe, Timers::Lazy, |_| {
        stopped = !go_on();
        !stopped
    })?;
    Ok((!stopped).then_some(result))
}

/// Runs of one scenario as plain data, which any machine with the same engine can execute without files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portable {
    /// The engine that must do it.
    pub engine: String,
    /// The resolved scenario as text.
    pub scenario: String,
    /// The seeds, one run each.
    pub seeds: Vec<u64>,
}

impl Job {
    /// Jobs of one point and candidate, such as those of [`Plan::next_batch`](crate::Plan::next_batch), as data for another machine;
    /// `None` without jobs.
    pub fn portable(jobs: &[Job]) -> Option<Portable> {
        let scenario = jobs.first()?.scenario().to_toml();
        let seeds = jobs.iter().map(|job| job.key.seed).collect();
        Some(Portable { engine: ENGINE.to_owned(), scenario, seeds })
    }
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

/// Does the runs. Calls `go_on` every few milliseconds, and returns the rows so far if it returns false.
///
/// # Errors
/// Fails if the engine differs, or if the scenario is invalid for this one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::spec::{Base, Spec};

    const SCENARIO: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"250 ms\"\nforward.loss = \"2 %\"\nforward.queue = \"50 packets\"\n[[links]]\nname = \"lan\"\n\
        between = [\"B\", \"C\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n[[links]]\nname = \"wan\"\nbetween = [\"D\", \"A\"]\n\
        rate = \"1 Gbit/s\"\ndelay = \"20 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"D\"\nto = \"C\"\nbytes = \"100 kB\"\n\
        start = \"1 s\"\n";

    fn plan() -> Plan {
        let text = "scenario = \"t\"\nvariants = [\"sack\", \"burst\"]\ngateways = [\"none\", \"uplink\", \"link\", \"split\"]\n\
            repetitions = 3\n[[axes]]\nkey = \"links.sat.delay\"\nvalues = [\"40 ms\", \"250 ms\"]\n";
        let base = Base { text: SCENARIO.to_owned(), name: "t.toml".to_owned(), settings: Vec::new() };
        Plan::new(Spec::parse(text, "s.toml", &|_| Ok(base.clone())).unwrap_or_else(|errors| panic!("{errors}")))
    }

    /// A remote worker's results equal this process's, for every variant and gateway.
    #[test]
    fn elsewhere_it_is_the_same_run() {
        let mut plan = plan();
        let mut runs = 0;
        while !plan.is_waiting() {
            let jobs = plan.next_batch(2, |_| None).expect("the points fit");
            let Some(work) = Job::portable(&jobs) else { continue };
            let there = run_portable(&work, || true).unwrap_or_else(|error| panic!("{error}"));
            let here = jobs.iter().map(|job| run_point(job, || true).expect("it runs").expect("to its end"));
            assert_eq!(there, here.collect::<Vec<_>>(), "{} {}", jobs[0].place(), jobs[0].candidate);
            runs += there.len();
        }
        assert_eq!(runs, 2 * 8 * 3);
    }

    /// A run that is asked to stop has no results.
    #[test]
    fn a_run_that_is_stopped_is_none() {
        let long = SCENARIO.replace("100 kB", "200 MB").replace("2 Mbit/s", "100 Mbit/s").replace("2 %", "0 %");
        let base = Base { text: long, name: "t.toml".to_owned(), settings: Vec::new() };
        let spec = Spec::parse("scenario = \"t\"\n", "s.toml", &|_| Ok(base.clone()));
        let mut plan = Plan::new(spec.unwrap_or_else(|errors| panic!("{errors}")));
        let job = plan.next(|_| None).expect("the point fits").expect("a run");
        assert_eq!(run_point(&job, || false).expect("it is no error"), None);
    }

    #[test]
    fn another_engine_refuses() {
        let jobs = plan().next_batch(1, |_| None).expect("the points fit");
        let work = Job::portable(&jobs).expect("a job");
        let other = Portable { engine: "0.0.0".to_owned(), ..work.clone() };
        let error = run_portable(&other, || true).expect_err("other numbers").to_string();
        assert!(error.contains("0.0.0") && error.contains(ENGINE), "{error}");
        assert_eq!(run_portable(&work, || false).expect("it is asked to stop").len(), 1, "a short run is not asked");
    }
}
