//! `uplink` with the kernel's sender: one box on the servers' side of the satellite, with the kernel's TCP on both sides.
//!
//! A client's connection arrives by TPROXY and is accepted on behalf of the server. The listener has the congestion
//! control and the rate of the link, and accepted connections inherit both, from the SYN-ACK on. The box then connects
//! to the server, with the client's address if the settings say so. Data is spliced from one socket into a pipe, and
//! from the pipe into the other socket, without being copied into the process. All connections share one pipe. If a
//! receiver accepts less than the pipe holds, the rest is read into memory. So a connection has two descriptors, and
//! takes memory only while its receiver is slow.
//!
//! Each direction ends separately, and a reset is passed on. If a server refuses, the client's connection is reset at
//! once, as with `split`.
//!
//! Reading order: `pipe`; `pair` (two sockets and the data between them); `timeouts` (how long a client may be silent);
//! [`Relaying`] (all pairs). Not implemented: a common rate limit for all connections. Each connection's congestion
//! control finds its own share of the link.

mod config;
mod pair;
mod pipe;
mod readings;
mod timeouts;
mod work;

pub(crate) use config::has_congestion;
pub use config::{RelayConfig, RelayStats, congestion_controls};
pub use work::{RelayGateway, Relaying};
