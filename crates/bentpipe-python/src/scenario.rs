//! Scenarios from files, shipped names, TOML and dictionaries.

use bentpipe_cli::library::{self, Failure};
use bentpipe_sim::record::Outlook;
use bentpipe_study::scenario;
use bentpipe_sweep::{Base, Setting};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::error::{failed, mistakes, raised};

/// The source of a scenario, kept so that further values can be set.
#[derive(Clone)]
enum Source {
    /// A file, or a shipped scenario.
    Named(String),
    /// A text, and its name in errors.
    Text(String, String),
}

/// Keys and values, as for `--set`.
type Sets = Vec<(String, String)>;

/// A scenario that has been read and checked.
#[pyclass(frozen, module = "bentpipe")]
pub(crate) struct Scenario {
    source: Source,
    sets: Sets,
    variant: Option<String>,
    hosts: Option<String>,
    pub(crate) value: scenario::Scenario,
}

impl Scenario {
    fn read(
        py: Python<'_>,
        source: Source,
        sets: Sets,
        variant: Option<String>,
        hosts: Option<String>,
    ) -> PyResult<Scenario> {
        let read = match &source {
            Source::Named(name) => library::open(name, &sets),
            Source::Text(text, name) => {
                scenario::Scenario::parse_with_warnings(text, name, &sets).map_err(Failure::Scenario)
            }
        };
        let (mut value, warnings) = read.map_err(|failure| raised(py, failure))?;
        if !warnings.0.is_empty() {
            let text = std::ffi::CString::new(warnings.render(false)).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
        }
        if let Some(variant) = &variant {
            value = library::with_variant(&value, variant).map_err(|failure| raised(py, failure))?;
        }
        if let Some(hosts) = &hosts {
            value = library::with_hosts(value, hosts).map_err(|failure| raised(py, failure))?;
        }
        Ok(Scenario { source, sets, variant, hosts, value })
    }

    /// The base of a sweep: the original text, in which the sweep sets values.
    pub(crate) fn base(&self, py: Python<'_>) -> PyResult<Base> {
        if self.variant.is_some() || self.hosts.is_some() {
            let message = "the scenario has been given a variant or hosts: give `variants` to the sweep, or write them into the scenario";
            return Err(PyValueError::new_err(message));
        }
        let (text, name) = match &self.source {
            Source::Named(name) => library::text(name).map_err(|failure| raised(py, failure))?,
            Source::Text(text, name) => (text.clone(), name.clone()),
        };
        let setting = |(key, value): &(String, String)| Setting { key: key.clone(), value: value.clone() };
        Ok(Base { text, name, settings: self.sets.iter().map(setting).collect() })
    }

    /// The same source with another value.
    pub(crate) fn of_value(value: scenario::Scenario) -> Scenario {
        let source = Source::Text(value.to_toml(), format!("{}.toml", value.name));
        Scenario { source, sets: Vec::new(), variant: None, hosts: None, value }
    }
}

#[pymethods]
impl Scenario {
    /// Reads a file or a shipped scenario, with changes as in [`Scenario::changed`].
    #[staticmethod]
    #[pyo3(signature = (name, sets=Vec::new(), variant=None, hosts=None))]
    fn named(
        py: Python<'_>,
        name: String,
        sets: Sets,
        variant: Option<String>,
        hosts: Option<String>,
    ) -> PyResult<Self> {
        Scenario::read(py, Source::Named(name), sets, variant, hosts)
    }

    /// Reads a text with such changes. Paths in it are relative to the folder of `name`.
    #[staticmethod]
    #[pyo3(signature = (text, name, sets=Vec::new(), variant=None, hosts=None))]
    fn text(
        py: Python<'_>,
        text: String,
        name: String,
        sets: Sets,
        variant: Option<String>,
        hosts: Option<String>,
    ) -> PyResult<Self> {
        Scenario::read(py, Source::Text(text, name), sets, variant, hosts)
    }

    /// Reads a dictionary given as JSON, with such changes.
    #[staticmethod]
    #[pyo3(signature = (json, name, sets=Vec::new(), variant=None, hosts=None))]
    fn json(
        py: Python<'_>,
        json: &str,
        name: String,
        sets: Sets,
        variant: Option<String>,
        hosts: Option<String>,
    ) -> PyResult<Self> {
        let table: toml::Table = serde_json::from_str(json).map_err(failed)?;
        let text = toml::to_string(&table).map_err(failed)?;
        Scenario::read(py, Source::Text(text, name), sets, variant, hosts)
    }

    /// The same scenario with further values, as by `--set`; with another variant; or with Linux's hosts.
    #[pyo3(signature = (sets, variant, hosts))]
    fn changed(&self, py: Python<'_>, sets: Sets, variant: Option<String>, hosts: Option<String>) -> PyResult<Self> {
        let all = self.sets.iter().cloned().chain(sets).collect();
        let variant = variant.or_else(|| self.variant.clone());
        Scenario::read(py, self.source.clone(), all, variant, hosts.or_else(|| self.hosts.clone()))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.value.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.value.description
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.value.seed
    }

    #[getter]
    fn time_limit_s(&self) -> f64 {
        self.value.time_limit.as_secs_f64()
    }

    /// Names of the flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.value.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    /// Names of the links.
    #[getter]
    fn links(&self) -> Vec<&str> {
        self.value.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// Names of the variants that it can use.
    #[getter]
    fn variants(&self) -> Vec<&str> {
        self.value.variant_names()
    }

    /// Name of the transfer for which `recommend` recommends.
    #[getter]
    fn transfer(&self) -> Option<&str> {
        library::transfer(&self.value)
    }

    /// What is drawn at random; empty if every seed gives the same run.
    #[getter]
    fn random_parts(&self) -> Vec<String> {
        self.value.random_parts()
    }

    fn to_toml(&self) -> String {
        self.value.to_toml()
    }

    /// The output of `bentpipe explain --json` about the flows.
    fn outlook(&self) -> PyResult<String> {
        let outlook = Outlook::new(&self.value).map_err(failed)?;
        serde_json::to_string(&outlook).map_err(failed)
    }

    /// Other processes receive the scenario in full.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let read = py.get_type::<Scenario>().getattr("text")?;
        Ok((read, (self.value.to_toml(), format!("{}.toml", self.value.name))))
    }

    fn __repr__(&self) -> String {
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (links, flows) = (self.value.links.len(), self.value.flows.len());
        format!("<Scenario {}: {}, {}>", self.value.name, counted(links, "link"), counted(flows, "flow"))
    }
}

/// Fails for a scenario that cannot be run: it has no flows, or a setting that would have no effect.
pub(crate) fn not_ready(py: Python<'_>, scenario: &scenario::Scenario) -> PyResult<()> {
    let message = match scenario.check_samples() {
        Err(lacking) => lacking.to_string(),
        Ok(()) if scenario.flows.is_empty() => format!("`{}` has no flows: add a [[flows]]", scenario.name),
        Ok(()) => return Ok(()),
    };
    Err(mistakes(py, &scenario::ScenarioErrors(vec![scenario::ScenarioError::without_place(&scenario.name, message)])))
}
