//! Makes the runs of this study. A transfer that does not finish is an error.

use bentpipe_engine::units::Duration;
use bentpipe_sim::{FlowResult, RunResult};
use bentpipe_study::scenario::{FlowKind, Scenario};

use super::record::{Recorder, recorder};
use super::setting::Setting;
use crate::lab::Runs;
use crate::request::ReproduceError;

/// Runs settings and refuses results with unfinished transfers.
pub(super) struct Lab<'a> {
    general: &'a crate::lab::Lab<'a>,
}

/// Time from the start of a flow to the arrival of its last missing byte at the receiver, seconds. This is the paper's
/// elapsed time as far as its tables show. `None` for a flow that did not finish or is endless (CBR).
pub(super) fn elapsed(flow: &FlowResult) -> Option<f64> {
    flow.received_at
        .map(|end| end.saturating_since(flow.start))
        .filter(|&t| t > Duration::ZERO)
        .map(Duration::as_secs_f64)
}

impl<'a> Lab<'a> {
    pub(super) fn new(general: &'a crate::lab::Lab<'a>) -> Self {
        Lab { general }
    }

    /// The first seed.
    pub(super) fn seed(&self) -> u64 {
        self.general.seed()
    }

    /// The seeds of a number of runs.
    pub(super) fn seeds(&self, count: u32) -> impl Iterator<Item = u64> + use<> {
        self.general.seeds(count)
    }

    /// One run with the first seed.
    pub(super) fn single(&self, setting: &Setting) -> Result<RunResult, ReproduceError> {
        let (what, scenario) = (setting.to_string(), setting.scenario());
        let result = self.general.single(&what, &scenario)?;
        check_ended(&scenario, &result, &what)?;
        Ok(result)
    }

    /// The requested number of runs.
    pub(super) fn replications(&self, setting: &Setting) -> Result<Runs, ReproduceError> {
        self.runs(setting, self.general.options().reps)
    }

    /// A number of runs.
    pub(super) fn runs(&self, setting: &Setting, count: u32) -> Result<Runs, ReproduceError> {
        let (what, scenario) = (setting.to_string(), setting.scenario());
        let results = self.general.runs(&what, &scenario, count)?;
        results.iter().try_for_each(|result| check_ended(&scenario, result, &what))?;
        Ok(results)
    }

    /// One run with the first seed, with its full trace.
    pub(super) fn traced(&self, setting: &Setting) -> Result<(RunResult, Recorder), ReproduceError> {
        self.traced_with_seed(setting, self.seed())
    }

    /// The same with another seed.
    pub(super) fn traced_with_seed(
        &self,
        setting: &Setting,
        seed: u64,
    ) -> Result<(RunResult, Recorder), ReproduceError> {
        let scenario = setting.scenario().with_seed(seed);
        let mut recorder = recorder(&scenario);
        let result = self.general.watched(&scenario, seed, &mut recorder)?;
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
