//! `uplink` with the kernel's sender: one box on the servers' side of the satellite, with the kernel's TCP on both sides.
//!
//! A client's connection arrives by TPROXY and is accepted in the server's name. The listener has the congestion control and
//! the rate of the link, and accepted connections inherit both, from the SYN-ACK on. The box then connects to the server, in the
//! client's name if the settings say so. Bytes never enter our memory: they are spliced from one socket into a pipe and from the
//! pipe into the other socket. All connections share one pipe. If a receiver takes less, the rest is read out of the pipe into
//! memory. So a connection has two descriptors, and memory only while it is held up.
//!
//! Each direction ends by itself, and a reset is passed on. If a server refuses, the client sees a connection that is reset at
//! once, as with `split`.
//!
//! Reading order: `pipe`; `pair`, two sockets and the data between them; [`Relaying`], all of them. Left out: a common rate of
//! all connections. The kernel's congestion control shares the link, each connection by itself.

mod config;
mod pair;
mod pipe;
mod readings;
mod work;

pub(crate) use config::has_congestion;
pub use config::{RelayConfig, RelayStats, congestion_controls};
pub use work::{RelayGateway, Relaying};
