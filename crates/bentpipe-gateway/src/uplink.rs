//! The `uplink` shape: one box on the servers' side of the satellite. Clients and servers are unchanged.
//!
//! Clients' TCP is routed into a TUN device, where the engine's TCP answers in the servers' names. Towards the client it uses any
//! variant of the engine, paced to the rate of the satellite link; towards the server it is an ordinary connection of the
//! kernel. A client's SYN is answered when the server has accepted, so if the server refuses, the client is refused. Segments of
//! foreign connections leave the device unchanged.
//!
//! Reading order: [`Uplink`], the connections, without I/O; `raw`, which sends their segments; [`Uplinking`], the other
//! I/O. Left out: discovery of the MTU towards clients, which is a setting (`mtu`); congestion beyond the link.

mod config;
mod machine;
mod opening;
mod raw;
mod readings;
mod reopening;
mod work;

pub use config::{UplinkConfig, UplinkStats};
pub use machine::{ConnectionId, Heard, Uplink, Uplinked};
pub use work::{UplinkGateway, Uplinking};

#[cfg(test)]
mod tests;
