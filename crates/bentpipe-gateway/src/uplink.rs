//! The `uplink` shape: a single box on the servers' side of the satellite. Clients and servers are unchanged.
//!
//! Clients' TCP is routed into a TUN device, where the engine's TCP answers on behalf of the servers. Towards the
//! client, it uses any of the engine's variants, paced to the rate of the satellite link. Towards the server, there is
//! an ordinary connection of the kernel. A client's SYN is answered once the server has accepted, so if the server
//! refuses, the client is refused. Segments of foreign connections leave the device unchanged.
//!
//! Reading order: [`Uplink`] (the connections, without I/O); `raw` (sends their segments); [`Uplinking`] (the other
//! I/O). Not implemented: discovery of the MTU towards clients, which is a setting (`mtu`), and congestion beyond the
//! link.

mod config;
mod cut;
mod machine;
mod opening;
mod raw;
mod readings;
mod reopening;
mod standing;
mod waste;
mod work;

pub use config::{UplinkConfig, UplinkStats};
pub use machine::{ConnectionId, Heard, Uplink, Uplinked};
pub use work::{UplinkGateway, Uplinking};

#[cfg(test)]
mod tests;
