//! The other commands, whose answers are JSON.

use std::path::PathBuf;

use arrow_array::builder::Float64Builder;
use bentpipe_cli::library;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_papers::reproduce::{self as studies, ReproduceError};
use bentpipe_papers::{Row, Tally};
use bentpipe_sim::recommend::{self as system, RecommendError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{failed, mistakes, raised};
use crate::scenario::Scenario;
use crate::table::{Table, columns};
use crate::wait::{interruptible, stopped};

/// Names of the shipped scenarios.
#[pyfunction]
pub(crate) fn shipped() -> Vec<&'static str> {
    library::SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// Names and descriptions of the engine's TCP variants.
#[pyfunction]
pub(crate) fn variants() -> Vec<(&'static str, &'static str)> {
    VARIANTS.iter().map(|(name, meaning, _)| (*name, *meaning)).collect()
}

/// The points of the hybrid model.
#[pyfunction]
#[pyo3(signature = (given, sweep))]
pub(crate) fn hybrid(
    py: Python<'_>,
    given: Vec<(String, String)>,
    sweep: Option<(String, String)>,
) -> PyResult<String> {
    let swept = sweep.as_ref().map(|(key, values)| (key.as_str(), values.as_str()));
    let points = interruptible(py, || library::hybrid(&given, swept, stopped))?;
    points.map_err(|failure| value(py, failure))
}

/// Rates of IP over ATM over SONET.
#[pyfunction]
#[pyo3(signature = (lines, mtu, transport))]
pub(crate) fn rates(
    py: Python<'_>,
    lines: Vec<String>,
    mtu: Option<String>,
    transport: Option<String>,
) -> PyResult<String> {
    library::rates(&lines, mtu.as_deref(), transport.as_deref()).map_err(|failure| value(py, failure))
}

/// The exception for a wrong argument of a model, which is not a mistake in a scenario.
fn value(py: Python<'_>, failure: library::Failure) -> PyErr {
    PyValueError::new_err(raised(py, failure).value(py).to_string())
}

/// Segments per second of TCP under random loss (Padhye and others 1998, equation 30); times in seconds.
#[pyfunction]
pub(crate) fn rate_under_loss(loss: f64, rtt_s: f64, rto_s: f64, every: f64) -> f64 {
    bentpipe_study::model::transfer::rate_under_loss(loss, rtt_s, rto_s, every)
}

columns! {
    /// Round trips over time.
    RoundTrips {
        time_s: Float64Builder, "Seconds since the start.";
        rtt_s: Float64Builder, "Round trip; of a capture the shortest in each 10 ms.";
    }
}

/// Fits a path to a capture or a ping log. Returns its estimates, its round trips, and a scenario that behaves like it.
#[pyfunction]
pub(crate) fn fit(py: Python<'_>, path: PathBuf) -> PyResult<(String, Table, Scenario)> {
    let command = format!("bentpipe.fit({:?})", path.display());
    let measured = interruptible(py, || library::measured(&path, &command, stopped))?;
    let (found, text) = measured.map_err(|failure| match failure {
        // To the command, a name without a file is wrong usage.
        library::Failure::Usage(message, _) if !path.exists() => failed(message),
        library::Failure::Usage(..) => value(py, failure),
        other => raised(py, other),
    })?;
    let mut round_trips = RoundTrips::default();
    for (at, took) in found.round_trips() {
        round_trips.time_s.append_value(*at);
        round_trips.rtt_s.append_value(*took);
    }
    let scenario = bentpipe_study::scenario::Scenario::parse(&text, &format!("{}.toml", path.display()), &[]);
    let scenario = scenario.map_err(|errors| mistakes(py, &errors))?;
    Ok((serde_json::to_string(&found).map_err(failed)?, round_trips.finish(), Scenario::of_value(scenario)))
}

/// Recommends a system for a path. Returns the answer, and the scenario with the system.
#[pyfunction]
pub(crate) fn recommend(
    py: Python<'_>,
    scenario: Py<Scenario>,
    reps: u32,
    flip_reps: u32,
    margin: f64,
    threads: usize,
) -> PyResult<(String, Option<Scenario>)> {
    let bare = &scenario.get().value;
    let options = system::Options { reps, flip_reps, margin, threads, stop: stopped };
    let found = interruptible(py, || system::recommend(bare, &options, &|_, _, _| ()))?;
    let found = found.map_err(|error| match error {
        RecommendError::Unfit(unfit) => PyValueError::new_err(format!("{}: {unfit}", bare.name)),
        RecommendError::Run(error) => failed(error),
    })?;
    let equipped = found.verdict.as_ref().and_then(|verdict| system::equipped(bare, verdict.system).ok());
    Ok((serde_json::to_string(&found).map_err(failed)?, equipped.map(Scenario::of_value)))
}

/// The rows of a paper beside ours.
#[pyfunction]
#[pyo3(signature = (paper, table, figure, reps, seed, threads))]
pub(crate) fn reproduce(
    py: Python<'_>,
    paper: &str,
    table: Option<u8>,
    figure: Option<u8>,
    reps: u32,
    seed: u64,
    threads: usize,
) -> PyResult<String> {
    let study = match paper {
        "transat" => studies::transat,
        "minei" => studies::minei,
        "acts" => studies::acts,
        "hybrid" => studies::hybrid,
        "stp" => studies::stp,
        "all" => studies::all,
        unknown => {
            let message = format!("no paper `{unknown}`; expected transat, minei, acts, hybrid, stp or all");
            return Err(PyValueError::new_err(message));
        }
    };
    let defaults = studies::Options::default();
    let threads = if threads == 0 { defaults.threads } else { threads };
    let options = studies::Options { table, figure, reps, seed, threads, stop: stopped, ..defaults };
    let rows: Vec<Row> = interruptible(py, || study(&options, &|_, _, _| ()))?.map_err(|error| match error {
        ReproduceError::NoSuchPart { .. }
        | ReproduceError::NoSuchKind { .. }
        | ReproduceError::WhosePart(_)
        | ReproduceError::TooFewReplications(_) => PyValueError::new_err(error.to_string()),
        _ => failed(error),
    })?;
    serde_json::to_string(&serde_json::json!({ "counts": Tally::of(&rows), "rows": rows })).map_err(failed)
}
