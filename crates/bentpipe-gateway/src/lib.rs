//! The gateway in real time: two boxes with a tunnel between them, a hub with many terminals, or one box at the uplink.
//!
//! - `link` ([`LinkShape`]): IP packets from a TUN device, carried by S-LACP. No connection is terminated.
//! - `split` ([`SplitShape`]): TCP connections are terminated on behalf of the destination, and continue from the other
//!   box on behalf of the client. Between the boxes, their data is carried as streams of the engine's
//!   [`mux`](bentpipe_engine::mux).
//! - `uplink` ([`UplinkGateway`]): a single box. The engine's TCP serves clients through a TUN device, and the kernel's
//!   TCP talks to servers. With the kernel's TCP on both sides, it is [`RelayGateway`].
//!
//! One thread runs one loop. Sockets, the TUN device and a timer wake it; the machines decide what to do.
//!
//! Reading order:
//!
//! 1. [`Satellite`], the properties of the link; [`Carrier`], the tunnel and the link in it, without I/O.
//! 2. [`Shape`], the interface between the loop and a shape; [`LinkShape`], [`SplitShape`], [`BothShapes`].
//! 3. [`Hub`], the carriers of all peers; [`Reach`], the prefixes behind each peer.
//! 4. [`Uplink`] and [`Relaying`], the shapes with a single box.
//! 5. [`Loop`]; [`Gateway`], its work for boxes with tunnels; `udp` and `timer`, their I/O.
//! 6. [`Rules`], installed in the kernel; [`Readings`], the measured values; [`Control`] and [`Scrape`], which serve
//!    them.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "command"),
    allow(dead_code, unused_imports, unused_macros, reason = "the command alone uses some")
)]

mod access;
mod both;
mod bucket;
mod buffer;
mod carrier;
#[cfg(feature = "command")]
pub mod command;
mod conn;
mod control;
mod dialer;
mod half_open;
mod hub;
mod key_file;
mod link;
mod listeners;
mod log;
mod metrics;
mod parts;
mod path_mtu;
mod peers;
mod policy;
mod pool;
mod ports;
mod readings;
mod relay;
mod resume;
mod rules;
mod run;
mod satellite;
mod scrape;
pub mod settings;
mod shape;
mod shares;
mod shortfall;
mod sockets;
mod split;
mod state;
#[cfg(test)]
mod test_hosts;
mod timer;
mod trouble;
pub mod tunnel;
mod tunnelled;
mod udp;
mod uplink;

pub use access::Access;
pub use bentpipe_engine::gateway::{Satellite, line_overhead, max_packet};
pub use both::BothShapes;
pub use carrier::{Carried, Carrier, CarrierStats, PathChange};
pub use control::{Control, ask};
pub use hub::{AddError, Hub, Meter, Slot, TerminalConfig};
pub use key_file::KeyFileError;
pub use link::LinkShape;
pub use metrics::{Metric, metrics};
pub use peers::{Carries, PeerConfig, Reach};
pub use policy::{Destination, Policy, Prefix, Refusal, Sources};
pub use readings::{Published, Reading, Readings, Value};
pub use relay::{RelayConfig, RelayGateway, RelayStats, Relaying, congestion_controls};
pub use rules::{Instance, Rules};
pub use run::{GatewayStats, Loop, Stop, Work};
pub use satellite::{for_packets, for_streams};
pub use scrape::Scrape;
pub use shape::{Shape, Turn};
pub use sockets::ClientAddress;
pub use split::{Fallback, SplitConfig, SplitShape, SplitStats};
pub use tunnelled::{Gateway, Tunnelled};
pub use uplink::{ConnectionId, Heard, Uplink, UplinkConfig, UplinkGateway, UplinkStats, Uplinked, Uplinking};
