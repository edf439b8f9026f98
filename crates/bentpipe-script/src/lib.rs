//! Runs packetdrill scripts against the engine's TCP, in virtual time and with real bytes.
//!
//! - [`lang`] reads the language. `wire` has packets as scripts see them.
//! - [`host`] is the part of a kernel around connections: sockets and system calls.
//! - `play` runs a script's events in order.
//! - [`features`] finds features of a script that are not supported. [`expect`] reads the expected results of a tree of
//!   scripts.
#![forbid(unsafe_code)]

pub mod expect;
pub mod features;
pub mod host;
pub mod lang;
mod play;
mod run;
pub mod wire;

pub use play::Difference;
pub use run::{Options, Played, Verdict, run};
