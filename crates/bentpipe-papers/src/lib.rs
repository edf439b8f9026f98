//! Published results, and whether bentpipe bears them out: the only place where the numbers of a paper meet ours.
//!
//! [`published`] holds what is printed, [`transat`] the study of TCP over a GEO link with the S-LACP link protocol.
//! [`reproduce`] is the door: it runs what is asked for and answers with rows.
#![forbid(unsafe_code)]

pub mod published;
pub mod reproduce;
pub mod transat;

pub use bentpipe_study::report::{Row, Verdict, render_text, to_json};
