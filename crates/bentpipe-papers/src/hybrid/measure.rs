//! Simulated throughput in units of μ, with its confidence interval over seeds.

use bentpipe_sim::RunResult;
use bentpipe_study::model::hybrid::splitting::Split;
use bentpipe_study::model::hybrid::throughput::EndToEnd;
use bentpipe_study::stats::{mean, mean_interval};

use super::setting::{MSS, MU, Scheme, Setting};
use crate::lab::{Lab, Runs};
use crate::request::ReproduceError;

/// Max seeds per point. With this number, 95 % intervals of the throughput are a few percent wide.
pub(super) const SEEDS: u32 = 4;
const CONFIDENCE: f64 = 0.95;

/// A point of a curve.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) setting: Setting,
    /// Mean over the seeds of the throughput of all connections, in units of μ.
    pub(super) per_mu: f64,
    /// Half-width of its 95 % interval.
    pub(super) half: f64,
    /// Timeouts of all connections in all runs, and the total time in seconds.
    pub(super) timeouts: u64,
    pub(super) seconds: f64,
}

impl Measured {
    /// λ/μ by the model's closed forms.
    pub(super) fn model(&self) -> f64 {
        model(&self.setting)
    }

    /// Simulation over model, minus one.
    pub(super) fn off(&self) -> f64 {
        self.per_mu / self.model() - 1.0
    }
}

/// λ/μ of one connection by Eq. 39 or Eq. 52.
pub(super) fn model(setting: &Setting) -> f64 {
    let path = setting.path();
    match setting.scheme {
        Scheme::EndToEnd => EndToEnd::new(&path).expect("the paper's paths are in the model's range").per_mu,
        Scheme::Split => Split::new(&path).per_mu,
    }
}

fn throughput(setting: &Setting, run: &RunResult) -> f64 {
    let payload: u64 = run.flows.iter().map(|flow| flow.delivered).sum();
    payload as f64 / MSS as f64 / f64::from(setting.seconds) / MU
}

fn measured(setting: Setting, runs: &Runs) -> Measured {
    let values: Vec<_> = runs.iter().map(|run| throughput(&setting, run)).collect();
    let interval = mean_interval(&values, CONFIDENCE).expect("at least two seeds");
    Measured {
        setting,
        per_mu: mean(&values),
        half: (interval.high - interval.low) / 2.0,
        timeouts: runs.iter().flat_map(|run| &run.flows).map(|flow| flow.stats.timeouts).sum(),
        seconds: f64::from(setting.seconds) * runs.len() as f64,
    }
}

/// Measures each of these settings with at most `seeds` seeds.
pub(super) fn points(
    lab: &Lab<'_>,
    what: &str,
    settings: &[Setting],
    seeds: u32,
) -> Result<Vec<Measured>, ReproduceError> {
    let shortened = |&setting: &Setting| Setting { seconds: setting.seconds / lab.options().shortened, ..setting };
    let settings: Vec<_> = settings.iter().map(shortened).collect();
    let scenarios: Vec<_> = settings.iter().map(Setting::scenario).collect();
    let seeds = lab.options().reps.min(seeds);
    let runs = lab.sweep(what, &scenarios, seeds)?;
    Ok(settings.iter().zip(&runs).map(|(&setting, runs)| measured(setting, runs)).collect())
}
