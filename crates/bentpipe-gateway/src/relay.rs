//! `uplink` with the kernel's sender: one box on the servers' side of the satellite, and both connections the kernel's own.
//!
//! A client's connection comes in by TPROXY and is accepted in the server's name, by a listener that has the congestion
//! control and the rate of the link, which those that it accepts inherit, their SYN-ACKs too. From here it goes on to the
//! server, in the client's name where it is told to. Bytes never come into our memory: they are spliced from one socket
//! into a pipe and from it into the other. There is one pipe for all connections; what a receiver does not take is read
//! out of it, so a connection has two descriptors, and memory only while it is held up.
//!
//! Each direction ends by itself, a reset is carried across, and as with `split` a server that refuses looks like a
//! connection that is reset at once.
//!
//! Reading order: `pipe`; `pair` two sockets and what goes between them; [`Relaying`] all of them. Left out: a rate that all
//! connections keep to together; the kernel's congestion control shares the link, each connection by itself.

mod config;
mod pair;
mod pipe;
mod readings;
mod work;

pub use config::{RelayConfig, RelayStats, congestion_controls, has_congestion};
pub use work::{RelayGateway, Relaying};
