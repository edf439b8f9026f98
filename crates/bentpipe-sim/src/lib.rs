//! Virtual time: runs a scenario on the engine.
//!
//! A run is single-threaded and deterministic: the order of events is total, randomness comes from streams named by
//! component, and nothing depends on the machine. Replications run in parallel. Reading order: [`run()`], `world`,
//! `endpoint`, `gateway`; [`Observer`] receives events, [`record`] writes them, [`Fingerprint`] shows that two runs
//! are equal.
#![forbid(unsafe_code)]

mod boxes;
mod bytes;
mod delays;
mod ended;
mod endpoint;
mod ends;
mod fingerprint;
mod gateway;
mod holding;
mod layer;
mod observe;
mod pacer;
mod packet;
#[cfg(feature = "quic")]
mod quic;
pub mod recommend;
pub mod record;
mod run;
mod socket;
mod spoofing;
mod transport;
mod udp;
mod workload;
mod world;

pub use delays::Delays;
pub use fingerprint::Fingerprint;
pub use observe::{Both, LINK_BASE, Observer, Passage};
pub use packet::{Body, Packet};
pub use run::{RunError, RunResult, in_parallel, replicate, run, run_with};
pub use world::{FlowResult, Timers};
