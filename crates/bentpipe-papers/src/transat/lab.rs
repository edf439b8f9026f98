//! Where the runs are made, each once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bentpipe_engine::units::Duration;
use bentpipe_sim::{FlowResult, RunResult, replicate, run};
use bentpipe_study::scenario::{FlowKind, Scenario};

use super::record::{Recorder, recorder};
use super::setting::Setting;
use crate::reproduce::{Options, Progress, ReproduceError};

/// Results in the order of the seeds.
type Runs = Rc<Vec<RunResult>>;

/// Makes runs and remembers their results: a claim about a cell that a table has computed costs nothing.
pub(super) struct Lab<'a> {
    options: &'a Options,
    progress: Progress<'a>,
    known: RefCell<BTreeMap<(Setting, u32), Runs>>,
}

/// From the start of a flow to the arrival of its last missing byte at the receiver, seconds: the paper's elapsed time
/// as far as its tables tell. `None` for a flow that did not end or has no end (CBR).
pub(super) fn elapsed(flow: &FlowResult) -> Option<f64> {
    flow.received_at
        .map(|end| end.saturating_since(flow.start))
        .filter(|&t| t > Duration::ZERO)
        .map(Duration::as_secs_f64)
}

impl<'a> Lab<'a> {
    pub(super) fn new(options: &'a Options, progress: Progress<'a>) -> Self {
        Lab { options, progress, known: RefCell::default() }
    }

    /// The first seed.
    pub(super) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// One run with the first seed.
    pub(super) fn single(&self, setting: &Setting) -> Result<RunResult, ReproduceError> {
        Ok(self.runs(setting, 1)?[0].clone())
    }

    /// As many runs as were asked for.
    pub(super) fn replications(&self, setting: &Setting) -> Result<Runs, ReproduceError> {
        self.runs(setting, self.options.reps)
    }

    /// So many runs.
    pub(super) fn runs(&self, setting: &Setting, count: u32) -> Result<Runs, ReproduceError> {
        let key = (setting.clone(), count);
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let what = setting.to_string();
        let scenario = setting.scenario();
        let first = self.options.seed;
        let total = count as usize;
        let seeds = first..first + count as u64;
        let results = replicate(&scenario, seeds, self.options.threads, |done| (self.progress)(&what, done, total))?;
        for result in &results {
            check_ended(&scenario, result, &what)?;
        }
        let results = Rc::new(results);
        self.known.borrow_mut().insert(key, results.clone());
        Ok(results)
    }

    /// One run with the first seed, with everything that happened.
    pub(super) fn traced(&self, setting: &Setting) -> Result<(RunResult, Recorder), ReproduceError> {
        self.traced_with_seed(setting, self.options.seed)
    }

    /// The same with another seed.
    pub(super) fn traced_with_seed(
        &self,
        setting: &Setting,
        seed: u64,
    ) -> Result<(RunResult, Recorder), ReproduceError> {
        let scenario = setting.scenario().with_seed(seed);
        let mut recorder = recorder(&scenario);
        let result = run(&scenario, seed, &mut recorder)?;
        check_ended(&scenario, &result, &setting.to_string())?;
        Ok((result, recorder))
    }
}

fn check_ended(scenario: &Scenario, result: &RunResult, what: &str) -> Result<(), ReproduceError> {
    let tcp = |kind: &FlowKind| matches!(kind, FlowKind::Tcp(_));
    let ended =
        scenario.flows.iter().zip(&result.flows).all(|(spec, flow)| !tcp(&spec.kind) || elapsed(flow).is_some());
    if ended { Ok(()) } else { Err(ReproduceError::Unfinished { what: what.into(), seed: result.seed }) }
}
