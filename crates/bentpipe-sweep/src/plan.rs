//! The runs of a sweep that are still to be done.
//!
//! A point gets its repetitions in rounds: when all candidates have those of a round, the stopping rule either ends the
//! point or starts the next round. So the runs of a sweep depend on results, but never on the order of their arrival.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bentpipe_sim::RunError;
use bentpipe_study::scenario::{Scenario, ScenarioErrors};

use rayon::prelude::*;

use crate::key::{Key, canonical, fingerprint};
use crate::row::Row;
use crate::spec::{Spec, design};
use crate::threads::{ThreadsError, pool};

/// Why a sweep cannot be planned or run.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Values that conflict.
    #[error("{at}:\n{errors}")]
    Point {
        /// The point: keys and values.
        at: String,
        /// What is wrong.
        errors: ScenarioErrors,
    },
    /// A run failed.
    #[error("{at}: {cause}")]
    Run {
        /// The point: keys and values.
        at: String,
        /// Why.
        cause: RunError,
    },
}

/// Points of [`Plan::survey`] whose scenarios are in memory at once.
const SURVEYED_AT_ONCE: usize = 256;

/// Why the progress of a sweep cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A point could not be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No threads.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// A run to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// Index of its point.
    pub point: usize,
    /// Index of its candidate.
    pub candidate: usize,
    /// Its repetition, from 0.
    pub repetition: u32,
    /// Its name.
    pub key: Key,
    at: Arc<Point>,
}

/// A point and its scenarios.
#[derive(Debug)]
struct Point {
    /// Keys and values in words.
    place: String,
    /// One for each candidate.
    scenarios: Vec<Scenario>,
}

impl Job {
    /// Its scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.at.scenarios[self.candidate]
    }

    /// The point in words, for errors.
    pub(crate) fn place(&self) -> String {
        self.at.place.clone()
    }
}

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Completed runs, including those of earlier calls.
    pub done: u64,
    /// Maximum number of runs; a stopping rule may need fewer.
    pub at_most: u64,
    /// Completed points.
    pub points_done: usize,
    /// Number of points.
    pub points: usize,
}

/// A point while it has runs to do.
#[derive(Debug)]
struct Open {
    /// Repetitions of this round.
    target: u32,
    /// Maximum repetitions: 1 if every seed gives the same run.
    max: u32,
    /// Missing runs of this round.
    missing: u64,
    /// Value of each candidate and repetition.
    values: Vec<Vec<Option<f64>>>,
    keys: Vec<u128>,
    at: Arc<Point>,
}

/// A point that can be opened. Making it takes most of the time of planning, and needs nothing of the plan.
struct Ready {
    at: Point,
    /// Fingerprint of each candidate.
    keys: Vec<u128>,
    /// True if seeds give different runs.
    is_random: bool,
}

impl Ready {
    fn new(spec: &Spec, values: &[String]) -> Result<Ready, PlanError> {
        let sets: Vec<_> =
            spec.axes.iter().zip(values).map(|(axis, value)| format!("{} = {value}", axis.key)).collect();
        let place = if sets.is_empty() { spec.name.clone() } else { sets.join(", ") };
        let scenarios = spec.scenarios(values).map_err(|errors| PlanError::Point { at: place.clone(), errors })?;
        let keys = scenarios.iter().map(|scenario| fingerprint(&canonical(scenario))).collect();
        let is_random = scenarios.iter().any(|scenario| !scenario.random_parts().is_empty());
        Ok(Ready { at: Point { place, scenarios }, keys, is_random })
    }
}

/// The runs of a sweep.
#[derive(Debug)]
pub struct Plan {
    spec: Arc<Spec>,
    points: Vec<Vec<String>>,
    /// The next point that has not been opened.
    next: usize,
    open: BTreeMap<usize, Open>,
    ready: VecDeque<Job>,
    /// Repetitions of each finished point.
    finished: Vec<Option<u32>>,
    /// Fingerprints of each opened point's candidates.
    fingerprints: Vec<Vec<u128>>,
    progress: Progress,
}

impl Plan {
    /// The plan of a sweep.
    pub fn new(spec: Spec) -> Plan {
        let points = design::points(&spec);
        let (finished, fingerprints) = (vec![None; points.len()], vec![Vec::new(); points.len()]);
        let runs = u64::from(spec.repetitions) * spec.candidates.len() as u64;
        let at_most = runs * points.len() as u64;
        let progress = Progress { done: 0, at_most, points_done: 0, points: points.len() };
        let (spec, open, ready) = (Arc::new(spec), BTreeMap::new(), VecDeque::new());
        Plan { spec, points, next: 0, open, ready, finished, fingerprints, progress }
    }

    /// The sweep.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The values of a point's axes.
    pub fn values(&self, point: usize) -> &[String] {
        &self.points[point]
    }

    /// The next run to do. `known` returns the value ([`Row::value`]) of a run that is done already. A call plans at most one point,
    /// so it is fast; `None` does not mean that there is nothing left, see [`Plan::is_waiting`] and [`Plan::is_finished`].
    ///
    /// # Errors
    /// Fails if the values of a point conflict.
    pub fn next(&mut self, known: impl Fn(&Key) -> Option<Option<f64>>) -> Result<Option<Job>, PlanError> {
        Ok(self.next_batch(1, known)?.pop())
    }

    /// As [`Plan::next`], up to `max` runs of one candidate at one point. With a `max` of 0 it never returns a run.
    ///
    /// # Errors
    /// Fails if the values of a point conflict.
    pub fn next_batch(
        &mut self,
        max: usize,
        known: impl Fn(&Key) -> Option<Option<f64>>,
    ) -> Result<Vec<Job>, PlanError> {
        if self.ready.is_empty() && self.next < self.points.len() {
            let point = self.next;
            self.next += 1;
            self.open(point, &known)?;
        }
        let Some(first) = self.ready.front() else { return Ok(Vec::new()) };
        let which = (first.point, first.candidate);
        let alike = self.ready.iter().take(max).take_while(|job| (job.point, job.candidate) == which).count();
        Ok(self.ready.drain(..alike).collect())
    }

    /// Takes the result of a job of [`Plan::next`], once.
    pub fn completed(&mut self, job: &Job, row: &Row, known: impl Fn(&Key) -> Option<Option<f64>>) {
        let Some(open) = self.open.get_mut(&job.point) else { return };
        open.values[job.candidate][job.repetition as usize] = row.value;
        open.missing -= 1;
        self.progress.done += 1;
        if open.missing == 0 {
            self.round_over(job.point, &known);
        }
    }

    /// True if there is nothing to do until results of jobs arrive.
    pub fn is_waiting(&self) -> bool {
        self.ready.is_empty() && self.next == self.points.len() && !self.open.is_empty()
    }

    /// True if all runs are done.
    pub fn is_finished(&self) -> bool {
        self.next == self.points.len() && self.open.is_empty()
    }

    /// The number of repetitions of a completed point.
    pub fn repetitions(&self, point: usize) -> Option<u32> {
        self.finished[point]
    }

    /// The key of a run of an opened point.
    pub fn key(&self, point: usize, candidate: usize, repetition: u32) -> Option<Key> {
        let scenario = *self.fingerprints[point].get(candidate)?;
        Some(Key { scenario, seed: self.spec.seed.wrapping_add(u64::from(repetition)) })
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// The progress of the sweep.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The progress if nothing more is run: the runs that `known` has are done, as for [`Plan::next`]. Plans all points on
    /// `threads` threads (0: one per core) and keeps none of their scenarios, since those of a hundred thousand points take
    /// gigabytes. Calls `planned` with the number of points that have been planned.
    ///
    /// # Errors
    /// Fails if the values of a point conflict, or if the threads cannot be started.
    pub fn survey(
        mut self,
        threads: usize,
        known: impl Fn(&Key) -> Option<Option<f64>>,
        planned: &dyn Fn(usize),
    ) -> Result<Progress, SurveyError> {
        let pool = pool(threads)?;
        let spec = self.spec.clone();
        while self.next < self.points.len() {
            let some = self.next..self.points.len().min(self.next + SURVEYED_AT_ONCE);
            let points = &self.points[some.clone()];
            let ready: Vec<_> = pool.install(|| points.par_iter().map(|values| Ready::new(&spec, values)).collect());
            for (point, ready) in some.zip(ready) {
                self.enter(point, ready?, &known);
                self.open.remove(&point);
                self.ready.clear();
                self.next = point + 1;
            }
            planned(self.next);
        }
        Ok(self.progress)
    }

    fn open(&mut self, point: usize, known: &impl Fn(&Key) -> Option<Option<f64>>) -> Result<(), PlanError> {
        let ready = Ready::new(&self.spec, &self.points[point])?;
        self.enter(point, ready, known);
        Ok(())
    }

    fn enter(&mut self, point: usize, ready: Ready, known: &impl Fn(&Key) -> Option<Option<f64>>) {
        let Ready { at, keys, is_random } = ready;
        self.fingerprints[point].clone_from(&keys);
        let values = vec![Vec::new(); keys.len()];
        let max = if is_random { self.spec.repetitions } else { 1 };
        self.progress.at_most -= u64::from(self.spec.repetitions - max) * keys.len() as u64;
        self.open.insert(point, Open { target: 0, max, missing: 0, values, keys, at: Arc::new(at) });
        self.round_over(point, known);
    }

    /// Ends a point whose round is over, or starts its next round.
    fn round_over(&mut self, point: usize, known: &impl Fn(&Key) -> Option<Option<f64>>) {
        let spec = self.spec.clone();
        loop {
            let open = self.open.get_mut(&point).expect("it is open");
            let stop = spec.stop.as_ref();
            let enough =
                |stop: &crate::stop::Stop| open.target >= stop.min && stop.is_enough(&open.values, spec.baseline);
            if open.target == open.max || stop.is_some_and(enough) {
                self.finished[point] = Some(open.target);
                self.progress.points_done += 1;
                let fewer = open.max - open.target;
                self.progress.at_most -= u64::from(fewer) * spec.candidates.len() as u64;
                self.open.remove(&point);
                return;
            }
            let first = open.target;
            open.target = stop.map_or(open.max, |stop| stop.next_look(first)).min(open.max);
            for candidate in 0..open.keys.len() {
                for repetition in first..open.target {
                    let seed = spec.seed.wrapping_add(u64::from(repetition));
                    let key = Key { scenario: open.keys[candidate], seed };
                    let value = known(&key);
                    open.values[candidate].push(value.flatten());
                    match value {
                        Some(_) => self.progress.done += 1,
                        None => {
                            open.missing += 1;
                            self.ready.push_back(Job { point, candidate, repetition, key, at: open.at.clone() });
                        }
                    }
                }
            }
            if open.missing > 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
