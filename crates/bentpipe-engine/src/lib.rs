//! bentpipe's engine: the rules of protocols and links, and nothing else.
//!
//! It has no clock, no socket and no entropy. A driver brings time and packets; `bentpipe-sim` brings virtual time,
//! `bentpipe-io` real time. The protocol that was simulated is the one that moves real bytes.
//!
//! Reading order: [`units`], [`Machine`] and [`Context`], [`probe`], [`link`], [`tcp`], [`stp`]; [`splice`] two
//! connections back to back, [`spoof`] one that ends; [`arq`] and [`slacp`] below IP, [`mux`] many streams over one link,
//! [`compression`] of headers;
//! [`atm`] where packets travel in cells.
#![forbid(unsafe_code)]

pub mod arq;
pub mod atm;
pub mod compression;
pub mod link;
mod machine;
pub mod mux;
pub mod network;
pub mod probe;
mod rtt;
pub mod slacp;
pub mod splice;
pub mod spoof;
pub mod stp;
pub mod stream;
pub mod tcp;
pub mod units;
pub mod wire;

pub use machine::{Context, Machine, Step};
pub use probe::{NoProbe, Probe};
