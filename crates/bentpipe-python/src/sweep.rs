//! Sweeps: the plan and the store are here. The runs are done on this machine's threads, or by any executor that takes
//! them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bentpipe_sweep::{
    Job, Lines, Plan, Portable, Range, Row, Scale, Spec, Store, Summary, SweepError, run_portable, sweep,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{failed, mistakes};
use crate::events::Column;
use crate::scenario::Scenario;
use crate::table::{Table, table};
use crate::wait::{interruptible, stopped};

struct State {
    plan: Plan,
    store: Store,
    /// Jobs handed to an executor, by their number.
    out: BTreeMap<u64, Vec<Job>>,
    next: u64,
}

/// A sweep with its folder open.
#[pyclass(frozen, module = "bentpipe")]
pub(crate) struct Sweep {
    state: Mutex<State>,
}

impl Sweep {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn close(state: &mut State) -> PyResult<()> {
    state.store.sync().map_err(storage_failed)?;
    if !state.plan.is_finished() {
        return Ok(());
    }
    state.store.compact().map_err(storage_failed)?;
    let path = state.store.folder().join("table.parquet");
    bentpipe_sweep::write_table(&path, &state.plan, &state.store).map_err(storage_failed)
}

fn storage_failed(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}

#[pymethods]
impl Sweep {
    /// The sweep described by a text in the language of sweep files, for this scenario, with its results in a folder.
    #[new]
    fn new(py: Python<'_>, text: &str, scenario: Py<Scenario>, folder: &str) -> PyResult<Self> {
        let base = scenario.get().base(py)?;
        let spec = Spec::parse(text, "sweep", &|_| Ok(base.clone())).map_err(|errors| mistakes(py, &errors))?;
        let store = Store::open(Path::new(folder)).map_err(storage_failed)?;
        let state = State { plan: Plan::new(spec), store, out: BTreeMap::new(), next: 0 };
        Ok(Sweep { state: Mutex::new(state) })
    }

    /// Does all runs on threads of this process. Returns true if all of them are done.
    fn run(&self, py: Python<'_>, threads: usize) -> PyResult<bool> {
        let done = interruptible(py, || {
            let mut state = self.state();
            let State { plan, store, .. } = &mut *state;
            sweep(plan, store, threads, &stopped, &|_, _| ())
        })?;
        done.map_err(|error| match error {
            SweepError::Store(error) => storage_failed(error),
            SweepError::Plan(_) | SweepError::Threads { .. } => failed(error),
        })
    }

    /// Takes up to `count` runs (at least one) of one candidate at one point. Returns a number for [`Sweep::give`] and the
    /// argument for [`run_batch`]; `None` if there is nothing to do until results arrive, or at all.
    fn take(&self, py: Python<'_>, count: usize) -> PyResult<Option<(u64, String)>> {
        py.detach(|| {
            let mut state = self.state();
            let State { plan, store, out, next } = &mut *state;
            loop {
                if plan.is_finished() || plan.is_waiting() {
                    return Ok(None);
                }
                let jobs = plan.next_batch(count.max(1), |key| store.get(key).map(|row| row.value)).map_err(failed)?;
                let Some(work) = Job::portable(&jobs) else { continue };
                let number = *next;
                *next += 1;
                out.insert(number, jobs);
                return Ok(Some((number, serde_json::to_string(&work).map_err(failed)?)));
            }
        })
    }

    /// Stores the rows of the work to which [`Sweep::take`] gave this number.
    fn give(&self, py: Python<'_>, number: u64, rows: Vec<Vec<u8>>) -> PyResult<()> {
        let rows: Result<Vec<Row>, _> = rows.iter().map(|row| Row::from_bytes(row)).collect();
        let rows = rows.map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| {
            let mut state = self.state();
            let State { plan, store, out, .. } = &mut *state;
            let jobs =
                out.remove(&number).ok_or_else(|| PyValueError::new_err("no work with this number is outstanding"))?;
            if !jobs.iter().map(|job| job.key).eq(rows.iter().map(|row| row.key)) {
                return Err(PyValueError::new_err("the rows are not those of the work with this number"));
            }
            for (job, row) in jobs.iter().zip(rows) {
                store.append(row.clone()).map_err(storage_failed)?;
                plan.completed(job, &row, |key| store.get(key).map(|row| row.value));
            }
            Ok(())
        })
    }

    #[getter]
    fn finished(&self) -> bool {
        self.state().plan.is_finished()
    }

    /// Four numbers: runs done, maximum number of runs wanted, points done, and points.
    #[getter]
    fn progress(&self) -> (u64, u64, usize, usize) {
        let progress = self.state().plan.progress();
        (progress.done, progress.at_most, progress.points_done, progress.points)
    }

    /// Writes all rows to the disk, those of a finished plan as Parquet, and releases the folder for other processes.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.state();
            let closed = close(&mut state);
            // This happens in any case: an exception's traceback may keep this object alive for long.
            state.store.release();
            closed
        })
    }

    /// One row for each flow of each run, in the order of the plan.
    fn runs(&self) -> Table {
        let state = self.state();
        let lines = Lines::of(&state.plan);
        let mut columns: Vec<Column> = lines.headings().iter().map(|heading| Column::of(heading.kind)).collect();
        let pushed: Result<(), std::convert::Infallible> = lines.each(&state.plan, &state.store, |cells| {
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
            Ok(())
        });
        let Ok(()) = pushed;
        let named = lines.headings().iter().zip(columns);
        table(named.map(|(heading, column)| (&*heading.name, &*heading.meaning, column.finish())))
    }

    /// Medians and paired differences, in the form of `bentpipe sweep --json`.
    fn summary(&self) -> PyResult<String> {
        let state = self.state();
        serde_json::to_string(&Summary::new(&state.plan, &state.store)).map_err(failed)
    }
}

/// Does the work returned by [`Sweep::take`]. Returns a row of bytes for each run.
#[pyfunction]
pub(crate) fn run_batch(py: Python<'_>, work: &str) -> PyResult<Vec<Py<PyBytes>>> {
    let work: Portable = serde_json::from_str(work).map_err(failed)?;
    let rows = interruptible(py, || run_portable(&work, || !stopped()))?;
    let rows: Vec<Row> = rows.map_err(failed)?;
    Ok(rows.iter().map(|row| PyBytes::new(py, &row.to_bytes()).unbind()).collect())
}

/// Values between two ends, in the form used in a scenario, at these fractions (0 to 1) of the way.
#[pyfunction]
pub(crate) fn between(from: &str, to: &str, log: bool, parts: Vec<f64>) -> PyResult<Vec<String>> {
    let scale = if log { Scale::Log } else { Scale::Linear };
    let range = Range::new(from, to, scale).map_err(PyValueError::new_err)?;
    Ok(parts.into_iter().map(|part| range.at(part)).collect())
}
