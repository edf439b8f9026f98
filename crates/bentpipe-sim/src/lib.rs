//! Runs a scenario in virtual time.
//!
//! A run is single-threaded and deterministic: the order of events is total, randomness comes from streams named by
//! component, and nothing depends on the machine. Replications run in parallel.
//!
//! # Example
//!
//! ```
//! use bentpipe_engine::NoProbe;
//! use bentpipe_sim::{Fingerprint, run};
//! use bentpipe_study::scenario::Scenario;
//!
//! let text = r#"
//! name = "demo"
//!
//! [[links]]
//! name = "sat"
//! between = ["server", "client"]
//! rate = "10 Mbit/s"
//! delay = "275 ms"
//! forward.queue = "300 ms"
//!
//! [[flows]]
//! name = "download"
//! from = "server"
//! to = "client"
//! bytes = "2 MB"
//! "#;
//! let scenario = Scenario::parse(text, "demo.toml", &[]).expect("no mistakes");
//! let result = run(&scenario, 1, &mut NoProbe).expect("there is a path");
//! let download = &result.flows[0];
//! let time = download.received_at.expect("it ends").saturating_since(download.start);
//! assert_eq!(download.delivered, 2_000_000);
//! assert!((5.0..6.0).contains(&time.as_secs_f64()), "{time:?}");
//!
//! // The same seed gives the same events.
//! let fingerprint = || {
//!     let mut events = Fingerprint::default();
//!     run(&scenario, 1, &mut events).expect("there is a path");
//!     events.value()
//! };
//! assert_eq!(fingerprint(), fingerprint());
//! ```
//!
//! # Where to start
//!
//! [`run()`] runs a scenario once, [`replicate`] with many seeds. An [`Observer`] receives the events, [`record`] writes
//! them to files, and [`Fingerprint`] hashes them. [`recommend`] compares systems for a path.
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
mod responses;
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
pub use responses::Responses;
pub use run::{RunError, RunResult, in_parallel, replicate, run, run_with};
pub use world::{FlowResult, Timers};
