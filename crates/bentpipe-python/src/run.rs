//! One run, and many at once.

use std::time::{Duration, Instant};

use bentpipe_engine::NoProbe;
use bentpipe_sim::record::{Comparison, Measure, Summary};
use bentpipe_sim::{Observer, RunError as Broken, RunResult, Timers, in_parallel, run_with};
use bentpipe_study::scenario;
use pyo3::exceptions::{PyIndexError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::error::failed;
use crate::flows::{Channels, Compared, Flows, Links};
use crate::record::{KINDS, Recorder};
use crate::scenario::{Scenario, not_ready};
use crate::table::Table;
use crate::wait::{interruptible, stopped};

/// A run of a scenario.
#[pyclass(frozen, module = "bentpipe")]
pub(crate) struct Run {
    scenario: Py<Scenario>,
    result: RunResult,
    summary: Summary,
    took: Duration,
}

/// Runs on this thread without Python's lock, until Ctrl-C.
fn drive<O: Observer + Send>(
    py: Python<'_>,
    scenario: &scenario::Scenario,
    seed: u64,
    observer: &mut O,
) -> PyResult<RunResult> {
    let mut interrupted = None;
    let result = py.detach(|| {
        run_with(scenario, seed, observer, Timers::Lazy, |_| match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(raised) => {
                interrupted = Some(raised);
                false
            }
        })
    });
    match interrupted {
        Some(raised) => Err(raised),
        None => result.map_err(failed),
    }
}

/// Runs a scenario once.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, scenario: Py<Scenario>, seed: u64) -> PyResult<Run> {
    let value = &scenario.get().value;
    not_ready(py, value)?;
    let begun = Instant::now();
    let result = drive(py, value, seed, &mut NoProbe)?;
    let took = begun.elapsed();
    let summary = Summary::new(value, &result);
    Ok(Run { scenario, result, summary, took })
}

#[pymethods]
impl Run {
    #[getter]
    fn seed(&self) -> u64 {
        self.result.seed
    }

    #[getter]
    fn end_s(&self) -> f64 {
        self.summary.end_s
    }

    #[getter]
    fn timed_out(&self) -> bool {
        self.summary.timed_out
    }

    #[getter]
    fn events(&self) -> u64 {
        self.summary.events
    }

    /// The engine's computing time in seconds.
    #[getter]
    fn took_s(&self) -> f64 {
        self.took.as_secs_f64()
    }

    fn flows(&self) -> Table {
        let mut rows = Flows::default();
        let case = &self.scenario.get().value.name;
        self.summary.flows.iter().for_each(|flow| rows.push(case, self.result.seed, flow));
        rows.finish()
    }

    fn links(&self) -> Table {
        let mut rows = Links::default();
        let case = &self.scenario.get().value.name;
        self.summary.links.iter().for_each(|link| rows.push(case, self.result.seed, link));
        rows.finish()
    }

    fn channels(&self) -> Table {
        let mut rows = Channels::default();
        self.summary.channels.iter().for_each(|channel| rows.push(self.result.seed, channel));
        rows.finish()
    }

    /// The summary of one flow, by number, as in `bentpipe run --json`.
    fn flow(&self, number: usize) -> PyResult<String> {
        let flow = self.summary.flows.get(number).ok_or_else(|| PyIndexError::new_err("no such flow"))?;
        serde_json::to_string(flow).map_err(failed)
    }

    /// The summary of the run, as in `bentpipe run --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.summary).map_err(failed)
    }

    /// The tables of these kinds. The run is repeated: the same seed gives the same events.
    fn record(&self, py: Python<'_>, kinds: Vec<String>) -> PyResult<Vec<(&'static str, Table)>> {
        if let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            let known = KINDS.join(", ");
            return Err(PyValueError::new_err(format!("no trace `{unknown}`; expected one of {known}")));
        }
        let scenario = &self.scenario.get().value;
        let mut recorder = Recorder::new(scenario, self.result.seed, &kinds);
        let result = drive(py, scenario, self.result.seed, &mut recorder)?;
        // The number of events is not compared, because with an observer each link has its own.
        debug_assert_eq!(
            (result.end, &result.flows),
            (self.result.end, &self.result.flows),
            "the same seed, the same run"
        );
        Ok(recorder.finish(scenario, result.end))
    }
}

/// Runs of several scenarios with the same seeds.
#[pyclass(frozen, module = "bentpipe")]
pub(crate) struct Runs {
    cases: Vec<(String, scenario::Scenario)>,
    seeds: Vec<u64>,
    /// Results by seed, then by case.
    results: Vec<Vec<RunResult>>,
}

/// Runs each case once per seed, on `threads` threads (0: one per core).
#[pyfunction]
pub(crate) fn runs(
    py: Python<'_>,
    cases: Vec<(String, Py<Scenario>)>,
    seeds: Vec<u64>,
    threads: usize,
) -> PyResult<Runs> {
    let named = cases.iter().map(|(name, case)| (name.clone(), case.get().value.clone()));
    let cases: Vec<_> = named.collect();
    cases.iter().try_for_each(|(_, case)| not_ready(py, case))?;
    // A job is a single run: a replication of ten slow variants would keep one thread busy while the other waits.
    let jobs: Vec<_> = seeds.iter().flat_map(|&seed| (0..cases.len()).map(move |case| (seed, case))).collect();
    let results = interruptible(py, || {
        in_parallel(jobs, threads, |(seed, case)| {
            // A run asks only now and then, and a short one never.
            match stopped() {
                true => Ok(None),
                false => run_with(&cases[case].1, seed, &mut NoProbe, Timers::Lazy, |_| !stopped()).map(Some),
            }
        })
    })?;
    let results: Vec<Option<RunResult>> = results.map_err(|error: Broken| failed(error))?;
    let results: Option<Vec<RunResult>> = results.into_iter().collect();
    let results = results.ok_or_else(|| PyKeyboardInterrupt::new_err(()))?;
    let results = results.chunks(cases.len().max(1)).map(<[RunResult]>::to_vec).collect();
    Ok(Runs { cases, seeds, results })
}

impl Runs {
    /// Passes each run with the name of its case.
    fn each(&self, mut take: impl FnMut(&str, Summary)) {
        for ((name, scenario), case) in self.cases.iter().zip(0..) {
            let of_case = self.results.iter().map(|of_seed: &Vec<RunResult>| &of_seed[case]);
            of_case.for_each(|result| take(name, Summary::new(scenario, result)));
        }
    }
}

#[pymethods]
impl Runs {
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.seeds.clone()
    }

    /// One row per case, seed and flow.
    fn flows(&self) -> Table {
        let mut rows = Flows::default();
        self.each(|name, summary| summary.flows.iter().for_each(|flow| rows.push(name, summary.seed, flow)));
        rows.finish()
    }

    /// One row per case, seed and link.
    fn links(&self) -> Table {
        let mut rows = Links::default();
        self.each(|name, summary| summary.links.iter().for_each(|link| rows.push(name, summary.seed, link)));
        rows.finish()
    }

    /// The compared quantity, and a row per case, as in `bentpipe compare`.
    fn compare(&self) -> (&'static str, Table) {
        let seed = self.seeds.first().copied().unwrap_or_default();
        let comparison = Comparison::new(&self.cases, &self.results, seed);
        let mut rows = Compared::default();
        comparison.variants.iter().for_each(|row| rows.push(row));
        let measure = match comparison.measure {
            Measure::SlowestTimeS => "slowest_time_s",
            Measure::GoodputBitS => "goodput_bit_s",
        };
        (measure, rows.finish())
    }
}
