//! Published results compared with bentpipe's: the only place where a paper's numbers meet ours.
//!
//! [`published`] has the printed values. Each paper has a module: [`transat`], `minei`, `acts`, `hybrid`, `stp`. They
//! share `lab`, which makes runs, `drawing`, which draws topologies, and `inventory`, references for each item.
//! [`reproduce`] is the entry point: it runs a `request` and returns rows; [`to_markdown`] and [`book`] write them as documents. [`scoreboard`] has results of others beside the scoreboard's.
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
