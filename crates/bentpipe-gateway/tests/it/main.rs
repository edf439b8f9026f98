//! Gateways between unmodified hosts: namespaces, veth, TUN, and a link in between that loses.
//!
//! ```text
//! client ── near gateway ══ sky ══ far gateway ── server
//! ```
#![cfg(target_os = "linux")]

#[cfg(feature = "command")]
mod command;
mod gigabyte;
mod hosts;
mod link;
mod mtu;
#[path = "../../../bentpipe-io/tests/it/linux/namespace.rs"]
#[allow(dead_code)]
mod namespace;
mod relay;
mod seeds;
mod sky;
mod split;
mod starving;
mod uplink;
mod world;
