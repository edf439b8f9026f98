//! The Rust part of the Python package `bentpipe`, whose Python code is in `python/bentpipe`: scenarios in, Arrow
//! tables and JSON out.
//!
//! The crates below do all computing. Users of the package see only `python/bentpipe`, which has the documentation.
//! Reading order: [`scenario`] and [`error`] (texts to scenarios, with the command's messages); [`run`] (one run and
//! many); [`sweep`] (many runs of many scenarios); [`flows`] (their results); [`record`] and [`packets`] (their events,
//! as [`table`]s); [`answers`] (the other commands); [`wait`] (Ctrl-C).

mod answers;
mod error;
mod events;
mod flows;
mod packets;
mod record;
mod run;
mod scenario;
mod sweep;
mod table;
mod wait;

use pyo3::prelude::*;

/// The internals of `python/bentpipe`, which has the documentation.
#[pymodule]
mod _bentpipe {
    #[pymodule_export]
    use crate::answers::{fit, hybrid, rate_under_loss, rates, recommend, reproduce, shipped, variants};
    #[pymodule_export]
    use crate::error::{RunError, ScenarioError};
    #[pymodule_export]
    use crate::run::{Run, Runs, run, runs};
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sweep::{Sweep, between, run_batch};
    #[pymodule_export]
    use crate::table::Table;

    use pyo3::prelude::*;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Runs the command `bentpipe` in this process. Returns its exit code.
    #[pyfunction]
    fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| bentpipe_cli::main_with(arguments))
    }
}
