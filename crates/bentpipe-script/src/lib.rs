//! Runs packetdrill scripts against the engine's TCP, in virtual time and with real bytes.
//!
//! Reading order: [`lang`] the language; `wire` packets as scripts see them; [`host`] a kernel's part
//! around connections; `play` a script's events in order; [`features`] unsupported features of a script;
//! [`expect`] expected results of a tree of scripts.
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
