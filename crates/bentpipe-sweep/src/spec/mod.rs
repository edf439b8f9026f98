//! A sweep file: the scenario, the keys and their values, the number of repetitions and the stopping rule.
//!
//! `grammar` has the keys, `read` turns a file into a [`Spec`], `range` gives the values between two ends, `check` tries them on
//! the scenario, `design` makes the points.

mod check;
pub(crate) mod design;
mod grammar;
mod range;
mod read;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use bentpipe_language::error::{ScenarioError, ScenarioErrors};
use bentpipe_language::text;
use bentpipe_sim::record::Measure;
use bentpipe_study::scenario::Scenario;

use crate::candidate::Candidate;
use crate::stop::Stop;

pub use grammar::{reference, schema};
pub(crate) use range::number;
pub use range::{Range, Scale};

/// Returns the text of a scenario by its name in a sweep file, if it is a shipped one.
pub type Shipped<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Returns the scenario with this name in a sweep file, or why there is none.
pub type Find<'a> = &'a dyn Fn(&str) -> Result<Base, String>;

/// The scenario of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its text.
    pub text: String,
    /// Its name in errors; the files that it names are relative to it.
    pub name: String,
    /// Values that are set before those of the sweep.
    pub settings: Vec<Setting>,
}

/// A value for a key of the scenario, as for `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Path of the key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A key that changes from point to point.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Path of the key as for `--set`.
    pub key: String,
    /// Its values.
    pub values: Values,
}

impl Axis {
    /// Removes listed values that are there already.
    fn drop_repeats(&mut self) {
        if let Values::List(list) = &mut self.values {
            let mut seen = BTreeSet::new();
            list.retain(|value| seen.insert(value.clone()));
        }
    }
}

/// The values of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The listed values.
    List(Vec<String>),
    /// Any value of a range.
    Between(Range),
}

/// How axes make points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// All combinations of the axes' values.
    Grid,
    /// The n-th values of all axes together.
    List,
    /// A Latin hypercube of this many points.
    LatinHypercube(u32),
}

/// A sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The file's name without its extension, or the caller's choice.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The scenario's text.
    pub scenario: String,
    /// Its name in errors; the files that it names are relative to it.
    pub scenario_name: String,
    /// Values in all runs.
    pub settings: Vec<Setting>,
    /// The quantity by which they are compared, which the values of the first point decide.
    pub measure: Measure,
    /// The candidates compared at each point; at least one.
    pub candidates: Vec<Candidate>,
    /// Index of the candidate with which the others are compared.
    pub baseline: usize,
    /// The keys that change.
    pub axes: Vec<Axis>,
    /// How they make points.
    pub design: Design,
    /// Maximum number of runs of each candidate at each point.
    pub repetitions: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The rule by which a point needs fewer repetitions.
    pub stop: Option<Stop>,
    /// Folder of the results, as in the file.
    pub output: Option<String>,
}

impl Spec {
    /// Reads a sweep file and the scenario that it names.
    ///
    /// # Errors
    /// Returns all mistakes in the file; or those of the scenario, if it cannot be read without the file's values.
    pub fn load(path: &Path, shipped: Shipped<'_>) -> Result<Spec, ScenarioErrors> {
        let name = path.display().to_string();
        let text = text::read(path)
            .map_err(|error| ScenarioErrors(vec![ScenarioError::without_place(&name, error.to_string())]))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Spec::parse(&text, &name, &|named| {
            let path = folder.join(named);
            let base = |text, name| Base { text, name, settings: Vec::new() };
            match (text::read(&path), shipped(named)) {
                (Ok(text), _) => Ok(base(text, path.display().to_string())),
                // A file that cannot be read is not replaced by a shipped scenario; a folder hides none.
                (Err(error), Some(text)) if error.kind() == ErrorKind::NotFound || path.is_dir() => {
                    Ok(base(text.to_owned(), format!("{named}.toml")))
                }
                (Err(error), None) if error.kind() == ErrorKind::NotFound => {
                    Err(format!("there is no file `{}` and no shipped scenario `{named}`", path.display()))
                }
                (Err(error), _) => Err(format!("`{}` cannot be read: {error}", path.display())),
            }
        })
    }

    /// Reads a sweep from text; `file_name` is used in errors, and `find` returns the scenario that it names.
    ///
    /// # Errors
    /// Returns all mistakes in the text; or those of the scenario, if it cannot be read without the text's values.
    pub fn parse(text: &str, file_name: &str, find: Find<'_>) -> Result<Spec, ScenarioErrors> {
        read::spec(text, file_name, find)
    }

    /// The scenario at a point whose axes have these values, for each candidate.
    ///
    /// # Errors
    /// Returns conflicts between the values, with their keys. If a candidate does not fit, the error has its name and no position.
    pub(crate) fn scenarios(&self, values: &[String]) -> Result<Vec<Scenario>, ScenarioErrors> {
        let scenario = Scenario::parse(&self.scenario, &self.scenario_name, &self.sets(values))?;
        let put = |candidate: &Candidate| {
            candidate.put_into(&scenario).map_err(|misfit| {
                let message = format!("{}: {misfit}", candidate.name);
                ScenarioErrors(vec![ScenarioError::without_place(&self.scenario_name, message)])
            })
        };
        self.candidates.iter().map(put).collect()
    }

    /// Keys and values of a point, those of all points first.
    pub fn sets(&self, values: &[String]) -> Vec<(String, String)> {
        let shared = self.settings.iter().map(|setting| (setting.key.clone(), setting.value.clone()));
        shared.chain(self.axes.iter().map(|axis| axis.key.clone()).zip(values.iter().cloned())).collect()
    }
}

#[cfg(test)]
mod tests;
