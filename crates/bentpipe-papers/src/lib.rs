//! Compares published results with bentpipe's. No other crate has a paper's numbers.
//!
//! [`published`] has the printed values. Each paper has a module: [`transat`], `minei`, `acts`, `hybrid`, `stp`. They share `lab`, which
//! makes and caches runs, `finding`, which judges claims, and `inventory`, which has the references of each item. [`reproduce`] is the
//! entry point: it runs a `request` and returns rows. [`to_markdown`] and [`book`] write the rows as documents. [`scoreboard`] compares the
//! scoreboard with published results.
#![forbid(unsafe_code)]

mod acts;
pub mod book;
mod chapter;
mod finding;
mod hybrid;
mod inventory;
mod lab;
mod markdown;
mod minei;
pub mod published;
pub mod reproduce;
mod request;
pub mod scoreboard;
mod stp;
pub mod transat;

pub use markdown::to_markdown;

pub use bentpipe_study::report::{Row, Tally, Verdict, render_text, to_json};
