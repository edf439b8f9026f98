//! Plays packetdrill's scripts against the engine's TCP, in virtual time and with real bytes.
//!
//! Reading order: [`lang`] the language; `wire` packets as scripts see them; [`host`] what a kernel does around
//! connections; `play` a script's events in order; [`features`] what a script needs and does not exist here;
//! [`expect`] what is expected of a tree of scripts.
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
