//! The `uplink` shape: one box on the servers' side of the satellite. Nothing changes at clients or servers.
//!
//! Clients' TCP is routed into a TUN device, where the engine's own TCP answers in the servers' names: towards the client
//! any row of its table, over the satellite link and paced to its rate; towards the server an ordinary connection of the
//! kernel. A client's SYN is answered when the server has accepted, so what a server refuses is refused. Segments of
//! connections that are none of ours come out of the device again and go on as if it were not there.
//!
//! Reading order: [`Uplink`] the connections, without I/O; `pacer` when they may send; `raw` their way out; [`Uplinking`]
//! the doors. Left out: the path's MTU towards clients, which is told (`mtu`); congestion beyond the link.

mod config;
mod machine;
mod opening;
mod pacer;
mod raw;
mod readings;
mod reopening;
mod work;

pub use config::{UplinkConfig, UplinkStats};
pub use machine::{ConnectionId, Heard, Uplink, Uplinked};
pub use work::{UplinkGateway, Uplinking};

#[cfg(test)]
mod tests;
