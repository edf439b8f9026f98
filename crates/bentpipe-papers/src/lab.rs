//! Makes each run once, in parallel, until [`Options::stop`] returns true.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Duration;
use bentpipe_sim::{Observer, RunResult, Timers, in_parallel, run_with};
use bentpipe_study::scenario::Scenario;

use crate::request::{Options, Progress, ReproduceError};

/// Results in the order of the seeds.
pub(crate) type Runs = Rc<Vec<RunResult>>;

/// Makes runs and caches their results, so that a claim about a table's cell needs no new runs.
pub(crate) struct Lab<'a> {
    options: &'a Options,
    progress: Progress<'a>,
    /// The longest simulated time of a run.
    longest: Duration,
    /// Results by scenario, as TOML, and number of runs.
    known: RefCell<BTreeMap<(String, u32), Runs>>,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(options: &'a Options, progress: Progress<'a>) -> Self {
        Lab { options, progress, longest: Duration::MAX, known: RefCell::default() }
    }

    /// The same, with runs that end after this simulated time at the latest.
    pub(crate) fn ending_after(self, longest: Duration) -> Self {
        Lab { longest, ..self }
    }

    /// The request's options.
    pub(crate) fn options(&self) -> &Options {
        self.options
    }

    /// The first seed.
    pub(crate) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// The seeds of a number of runs, from the first seed on. 0 follows the largest one.
    pub(crate) fn seeds(&self, count: u32) -> impl Iterator<Item = u64> + use<> {
        let first = self.options.seed;
        (0..u64::from(count)).map(move |n| first.wrapping_add(n))
    }

    /// One run with the first seed.
    pub(crate) fn single(&self, what: &str, scenario: &Scenario) -> Result<RunResult, ReproduceError> {
        Ok(self.runs(what, scenario, 1)?[0].clone())
    }

    /// A number of runs of one scenario, from the first seed on.
    pub(crate) fn runs(&self, what: &str, scenario: &Scenario, count: u32) -> Result<Runs, ReproduceError> {
        Ok(self.sweep(what, std::slice::from_ref(scenario), count)?.remove(0))
    }

    /// A number of runs of each scenario, in parallel; results in the order of the scenarios.
    pub(crate) fn sweep(&self, what: &str, scenarios: &[Scenario], count: u32) -> Result<Vec<Runs>, ReproduceError> {
        let limited = |scenario: &Scenario| {
            let time_limit = scenario.time_limit.min(self.longest);
            Scenario { time_limit, ..scenario.clone() }
        };
        let scenarios: Vec<_> = scenarios.iter().map(limited).collect();
        // The lab sets the seeds, so scenarios that differ only in their seed have the same key.
        let key = |scenario: &Scenario| (scenario.with_seed(self.options.seed).to_toml(), count);
        let keys: Vec<_> = scenarios.iter().map(key).collect();
        let missing: Vec<_> = (0..keys.len())
            .filter(|&n| !self.known.borrow().contains_key(&keys[n]) && !keys[..n].contains(&keys[n]))
            .collect();
        let jobs: Vec<_> = missing.iter().flat_map(|&n| self.seeds(count).map(move |seed| (n, seed))).collect();
        let (done, total) = (AtomicUsize::new(0), jobs.len());
        let (stopped, progress) = (self.options.stop, self.progress);
        if total > 0 {
            progress(what, 0, total);
            let results = in_parallel(jobs, self.options.threads, |(n, seed)| {
                if stopped() {
                    return Ok(None);
                }
                let result = run_with(&scenarios[n], seed, &mut NoProbe, Timers::Lazy, |_| !stopped())?;
                progress(what, done.fetch_add(1, Ordering::Relaxed) + 1, total);
                Ok(Some(result))
            })?;
            self.go_on()?;
            let mut results = results.into_iter().map(|result| result.expect("a stop is an error above"));
            for n in missing {
                let runs = results.by_ref().take(count as usize).collect();
                self.known.borrow_mut().insert(keys[n].clone(), Rc::new(runs));
            }
        }
        Ok(keys.iter().map(|key| self.known.borrow()[key].clone()).collect())
    }

    /// One run with an observer.
    pub(crate) fn watched<O: Observer>(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut O,
    ) -> Result<RunResult, ReproduceError> {
        let result = run_with(scenario, seed, observer, Timers::Lazy, |_| !self.stopped())?;
        self.go_on()?;
        Ok(result)
    }

    /// Checks [`Options::stop`].
    ///
    /// # Errors
    /// Fails with [`ReproduceError::Cut`] if `stop` returns true.
    pub(crate) fn go_on(&self) -> Result<(), ReproduceError> {
        if self.stopped() { Err(ReproduceError::cut()) } else { Ok(()) }
    }

    fn stopped(&self) -> bool {
        (self.options.stop)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(segments: u32) -> Scenario {
        let text = format!(
            "name = \"lab\"\nseed = 7\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\n\
             delay = \"250 ms\"\n[links.forward]\nloss = \"1 %\"\n\
             [[flows]]\nname = \"data\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"{segments} segments\"\n"
        );
        Scenario::parse(&text, "lab.toml", &[]).expect("a plain scenario")
    }

    #[test]
    fn a_sweep_is_the_runs_one_by_one_and_each_is_made_once() {
        let asked = AtomicUsize::new(0);
        let progress = |_: &str, done: usize, _: usize| {
            asked.fetch_add(usize::from(done > 0), Ordering::Relaxed);
        };
        let options = Options { threads: 2, seed: 3, ..Options::default() };
        let lab = Lab::new(&options, &progress);
        let worlds = [scenario(20), scenario(40), scenario(20).with_seed(9)];
        let all = lab.sweep("all", &worlds, 4).expect("they run");
        assert_eq!(asked.load(Ordering::Relaxed), 8, "the third equals the first except for its seed");
        assert_eq!(all[0], all[2]);
        for (world, runs) in worlds.iter().zip(&all) {
            assert_eq!(&lab.runs("again", world, 4).expect("they run"), runs);
            let seeds: Vec<_> = runs.iter().map(|run| run.seed).collect();
            assert_eq!(seeds, [3, 4, 5, 6]);
            let direct = bentpipe_sim::run(world, 4, &mut NoProbe).expect("it runs");
            assert_eq!(runs[1], direct);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 8, "cached runs are not repeated");
    }

    #[test]
    fn the_seed_after_the_largest_is_0() {
        let options = Options { seed: u64::MAX, ..Options::default() };
        let runs = Lab::new(&options, &|_, _, _| ()).runs("x", &scenario(1), 2).expect("they run");
        assert_eq!([runs[0].seed, runs[1].seed], [u64::MAX, 0]);
    }

    #[test]
    fn a_stop_is_heard_before_the_next_run() {
        let options = Options { stop: || true, ..Options::default() };
        let lab = Lab::new(&options, &|_, _, _| ());
        assert!(matches!(lab.single("x", &scenario(20)), Err(ReproduceError::Cut { .. })));
        let mut nobody = NoProbe;
        assert!(matches!(lab.watched(&scenario(20), 1, &mut nobody), Err(ReproduceError::Cut { .. })));
    }
}
