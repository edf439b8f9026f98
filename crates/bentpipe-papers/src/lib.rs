//! Published results, and whether bentpipe bears them out: the only place where the numbers of a paper meet ours.
//!
//! [`published`] holds what is printed. Each paper has a room: [`transat`], `minei`, `acts`, `hybrid`, `stp`; what they
//! share is `lab`, where runs are made, `drawing`, which shows topologies, and `inventory`, where each item can be seen.
//! [`reproduce`] is the door: it runs what is asked for and answers with rows. `request` is what can be asked for.
#![forbid(unsafe_code)]

mod acts;
mod drawing;
mod finding;
mod hybrid;
mod inventory;
mod lab;
mod markdown;
mod minei;
pub mod published;
pub mod reproduce;
mod request;
mod stp;
pub mod transat;

pub use markdown::to_markdown;

pub use bentpipe_study::report::{Row, Tally, Verdict, render_text, to_json};
