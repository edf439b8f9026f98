//! The nouns of an experiment: text to values, events to columns, columns to statistics. Nothing runs here.
//!
//! Reading order: [`scenario`] is the language that experiments are written in, [`topology`] finds who is wired to
//! whom; [`limit`] says what physics allows and [`model`] what the literature predicts; [`trace`] writes what happened,
//! [`stats`] turns samples into statements, [`report`] leaves them behind.
#![forbid(unsafe_code)]

pub mod limit;
pub mod model;
pub mod report;
pub mod scenario;
pub mod stats;
pub mod topology;
pub mod trace;
pub mod wiring;
