//! Gateways between unmodified hosts: namespaces, veth, TUN, and a lossy link in the middle.
//!
//! ```text
//! client ── near gateway ══ sky ══ far gateway ── server
//! ```
#![cfg(target_os = "linux")]

mod hosts;
#[path = "../../../bentpipe-io/tests/it/real_time/namespace.rs"]
#[allow(dead_code)]
mod namespace;
mod packaged;
mod real_time;
mod seeds;
mod sky;
mod threads;
mod world;
