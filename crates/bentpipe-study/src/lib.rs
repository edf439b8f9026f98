//! The data of an experiment: text to values, events to columns, columns to statistics. Nothing runs here.
//!
//! Reading order: [`scenario`] is the language of experiments, [`topology`] finds paths; [`limit`] computes physical
//! bounds and [`model`] the literature's predictions; [`trace`] writes events, [`stats`] computes statistics of
//! samples, [`report`] writes the results; [`table`] and [`output`] are the files of all of them.
#![forbid(unsafe_code)]

pub mod csv;
pub mod drawing;
pub mod limit;
pub mod markup;
pub mod model;
#[cfg(feature = "files")]
pub mod output;
pub mod report;
pub mod scenario;
pub mod stats;
#[cfg(feature = "files")]
pub mod table;
pub mod topology;
#[cfg(feature = "files")]
pub mod trace;
pub mod wiring;
