//! The figures of a paper, with the numbers read from them.

use indexmap::IndexMap;
use serde::Deserialize;

/// A figure of a paper, with the numbers read from it.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedFigure {
    /// Its id in the index of the papers.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Details.
    pub detail: Option<String>,
    /// Named numbers, with the unit in the name: `burst_start_s`.
    #[serde(default)]
    values: IndexMap<String, f64>,
    /// Points of its curves that the paper's text gives.
    #[serde(default)]
    pub points: Vec<Point>,
}

impl PublishedFigure {
    /// A named number.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

/// A point of a curve.
#[derive(Clone, Debug, Deserialize)]
pub struct Point {
    /// The curve.
    pub curve: String,
    /// Its x value as text.
    pub at: String,
    /// The x value as a number, if it is one.
    pub x: Option<f64>,
    /// Its y value.
    pub y: f64,
    /// A note.
    pub note: Option<String>,
}
