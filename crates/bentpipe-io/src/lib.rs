//! The engine in real time: the same machines that the simulator drives, between devices and a monotonic clock.
//!
//! Reading order: [`Clock`] makes time, [`Waiter`] sleeps by it, [`Lateness`] says how well; [`Tun`] is the door to the
//! kernel. On these are built: [`Endpoint`] is a connection of the engine with its bytes and [`Driver`] its
//! loop: the endpoint's address lies on the far side of the TUN device, so the host is an ordinary remote peer and its
//! kernel leaves our connections alone. [`emulator`] puts the engine's links between network stacks: namespaces, each
//! with a [`TrainTun`]; [`Session`] remembers what was made on the machine until it is removed. [`LinkPort`] is one
//! end of an S-LACP link with its bytes. [`tunnel`] and [`gateway`]: two boxes that carry other hosts' traffic. Linux only.
#![forbid(unsafe_code)]

pub mod child;
mod clock;
mod driver;
pub mod emulator;
mod endpoint;
pub mod gateway;
mod lateness;
mod namespace;
mod nat;
mod overruns;
mod priority;
mod ring;
pub mod rootless;
mod session;
mod signals;
mod slacp;
mod train;
pub mod tun;
pub mod tunnel;
mod waiter;

pub use clock::{Clock, isn};
pub use driver::{Counters, Datagram, Driver, Path, Turn, User};
pub use endpoint::{Closing, Endpoint, Peer};
pub use lateness::Lateness;
pub use namespace::Namespace;
pub use nat::Outside;
pub use priority::hurry;
pub use ring::Ring;
pub use session::{Made, Session};
pub use signals::{Caught, Signals};
pub use slacp::{Emitted, LinkPort, LinkPortConfig, LinkPortStats};
pub use train::{Packet, TrainTun};
pub use tun::{Tun, TunConfig};
pub use waiter::Waiter;
