//! The engine in real time: the same machines that the simulator drives, between a TUN device and a monotonic clock.
//!
//! Reading order: [`Clock`] makes time; [`Tun`] is the door to the kernel; [`Endpoint`] a connection of the engine with
//! its bytes, IP packets in and out; [`Driver`] the loop, with a [`Link`](bentpipe_engine::link::Link) in each
//! direction between the door and the endpoint. [`LinkPort`] is one end of an S-LACP link with its bytes.
//!
//! The endpoint's address lies on the far side of the TUN device, so the host is an ordinary remote peer and its
//! kernel leaves our connections alone. [`tunnel`] and [`gateway`]: two boxes that carry other hosts' traffic. Linux only.
#![forbid(unsafe_code)]

mod clock;
mod driver;
mod endpoint;
pub mod gateway;
mod ring;
mod slacp;
mod tun;
pub mod tunnel;

pub use clock::{Clock, Lateness, isn};
pub use driver::{Counters, Datagram, Driver, Path, Turn, User};
pub use endpoint::{Endpoint, Peer};
pub use ring::Ring;
pub use slacp::{Emitted, LinkPort, LinkPortConfig, LinkPortStats};
pub use tun::Tun;
