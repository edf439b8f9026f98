//! Python's exceptions, with the command's messages.

use bentpipe_cli::library::Failure;
use bentpipe_study::scenario::ScenarioErrors;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(
    bentpipe,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be read. The text is the command's, with file, line and column; `mistakes` has a dict for each."
);
create_exception!(bentpipe, RunError, PyRuntimeError, "A run that failed.");

/// The exception for mistakes in a scenario.
pub(crate) fn mistakes(py: Python<'_>, errors: &ScenarioErrors) -> PyErr {
    let raised = ScenarioError::new_err(errors.render(false));
    let list = PyList::empty(py);
    let filled = errors.0.iter().try_for_each(|error| {
        let one = PyDict::new(py);
        one.set_item("file", &error.source)?;
        one.set_item("line", error.line)?;
        one.set_item("column", error.column)?;
        one.set_item("key", &error.key)?;
        one.set_item("message", &error.message)?;
        one.set_item("expected", &error.expected)?;
        one.set_item("help", &error.help)?;
        list.append(one)
    });
    match filled.and_then(|()| raised.value(py).setattr("mistakes", list)) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// The exception for a failure of the command. Wrong values count as mistakes in the scenario.
pub(crate) fn raised(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Scenario(errors) => mistakes(py, &errors),
        Failure::Usage(message, help) => {
            let text = help.map_or(message.clone(), |help| format!("{message}\n  help: {help}"));
            let raised = ScenarioError::new_err(text);
            match raised.value(py).setattr("mistakes", PyList::empty(py)) {
                Ok(()) => raised,
                Err(error) => error,
            }
        }
        Failure::Broken(message) | Failure::Command(message, _) => RunError::new_err(message),
        Failure::Pipe => RunError::new_err("the output is closed"),
    }
}

/// The exception for a failure of a run.
pub(crate) fn failed(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}
