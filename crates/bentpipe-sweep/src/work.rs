//! Runs a plan on the threads of this machine.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::estimate::Estimate;
use crate::plan::{Plan, PlanError, Progress};
use crate::run::run_point;
use crate::store::{Store, StoreError};
use crate::threads::{ThreadsError, pool};

/// How long a thread without work waits before it checks again whether to stop.
const WAIT: Duration = Duration::from_millis(100);

/// Why a sweep ended early. The runs so far are kept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A run could not be planned or executed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A result could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The threads could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// The state that the threads share.
struct Shared<'a> {
    plan: &'a mut Plan,
    store: &'a mut Store,
    estimate: Estimate,
    failed: Option<SweepError>,
}

/// Does the runs of a plan on `threads` threads (0: one per core, the maximum) and stores each as it ends. Calls `stop`
/// every few milliseconds, and `progress` after each run, with the maximum remaining time; one call of `progress` at a time, in order.
/// Returns true if all runs are done.
///
/// The runs and their results do not depend on the threads.
///
/// # Errors
/// Fails if a run cannot be planned, executed or stored; runs that ended before are stored.
pub fn sweep(
    plan: &mut Plan,
    store: &mut Store,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress, Option<Duration>) + Sync),
) -> Result<bool, SweepError> {
    let pool = pool(threads)?;
    let estimate = Estimate::new(plan.spec().candidates.len(), pool.current_num_threads());
    let shared = Mutex::new(Shared { plan, store, estimate, failed: None });
    let news = Condvar::new();
    pool.broadcast(|_| work(&shared, &news, stop, progress));
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Also after a failure, to save what can be saved.
    let synced = shared.store.sync();
    match shared.failed {
        Some(error) => Err(error),
        None => {
            synced?;
            Ok(shared.plan.is_finished())
        }
    }
}

/// One thread.
fn work(
    shared: &Mutex<Shared<'_>>,
    news: &Condvar,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress, Option<Duration>) + Sync),
) {
    let take = || -> MutexGuard<'_, Shared<'_>> { shared.lock().unwrap_or_else(PoisonError::into_inner) };
    let fail = |error: SweepError| {
        take().failed.get_or_insert(error);
        news.notify_all();
    };
    loop {
        let job = {
            let mut all = take();
            if all.failed.is_some() || stop() || all.plan.is_finished() {
                return;
            }
            let Shared { plan, store, .. } = &mut *all;
            match plan.next(|key| store.get(key).map(|row| row.value)) {
                Ok(Some(job)) => job,
                Ok(None) => {
                    if plan.is_waiting() {
                        drop(news.wait_timeout(all, WAIT));
                    }
                    continue;
                }
                Err(error) => {
                    drop(all);
                    return fail(error.into());
                }
            }
        };
        let started = Instant::now();
        let row = match run_point(&job, || !stop()) {
            Ok(Some(row)) => row,
            Ok(None) => return,
            Err(error) => return fail(error.into()),
        };
        let took = started.elapsed();
        let mut all = take();
        let Shared { plan, store, estimate, .. } = &mut *all;
        let kept = store.append(row.clone());
        plan.completed(&job, &row, |key| store.get(key).map(|row| row.value));
        estimate.add(job.candidate, took);
        let now = plan.progress();
        let left = estimate.left(&now);
        let due = store.sync_due();
        if kept.is_ok() {
            // Another thread with later figures waits for the lock.
            progress(now, left);
        }
        drop(all);
        news.notify_all();
        if let Err(error) = kept {
            return fail(error.into());
        }
        if let Some((file, path)) = due
            && let Err(source) = file.sync_data()
        {
            return fail(StoreError::Io { path, source }.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Base, Spec};

    const SCENARIO: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"9 ms\"\nloss = \"1 %\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 kB\"\n";

    /// A thread that is held up while it tells the progress is not overtaken.
    #[test]
    fn progress_only_grows() {
        let base = Base { text: SCENARIO.to_owned(), name: "t.toml".to_owned(), settings: Vec::new() };
        let spec = Spec::parse("scenario = \"t\"\nrepetitions = 100\n", "s.toml", &|_| Ok(base.clone()));
        let mut plan = Plan::new(spec.unwrap_or_else(|errors| panic!("{errors}")));
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("it opens");
        let told = Mutex::new(Vec::new());
        let tell = |now: Progress, _| {
            if now.done.is_multiple_of(10) {
                std::thread::sleep(Duration::from_millis(5));
            }
            told.lock().expect("no panic").push(now.done);
        };
        assert!(sweep(&mut plan, &mut store, 4, &|| false, &tell).expect("they run"));
        assert_eq!(told.into_inner().expect("no panic"), Vec::from_iter(1..=100));
    }
}
