//! The figures of a paper, with the numbers that can be read off them.

use indexmap::IndexMap;
use serde::Deserialize;

/// A figure of a paper, with the numbers that can be read off it.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedFigure {
    /// Its id in the index of the papers.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// More about it.
    pub detail: Option<String>,
    /// Numbers that it names, each with its unit in its name: `burst_start_s`.
    #[serde(default)]
    values: IndexMap<String, f64>,
    /// Points of its curves that the paper names.
    #[serde(default)]
    pub points: Vec<Point>,
}

impl PublishedFigure {
    /// A number that it names.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

/// A point of a curve.
#[derive(Clone, Debug, Deserialize)]
pub struct Point {
    /// The curve.
    pub curve: String,
    /// Its abscissa in words.
    pub at: String,
    /// The same as a number, where it is one.
    pub x: Option<f64>,
    /// Its ordinate.
    pub y: f64,
    /// What has to be known about it.
    pub note: Option<String>,
}
