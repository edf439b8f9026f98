//! The engine in real time: the same machines that the simulator drives, between devices and a monotonic clock.
//!
//! Reading order: [`Clock`] gives the time, [`Waiter`] sleeps, [`Lateness`] measures how late it wakes. [`Tun`] is
//! the TUN device, [`TrainTun`] the same for several packets at a time. [`Endpoint`] is a connection of the engine
//! with its bytes, and [`Driver`] its loop. The endpoint's address is on the far side of the TUN device, so the host
//! is an ordinary remote peer and its kernel does not touch our connections. [`LinkPort`] is one end of an S-LACP
//! link with its bytes. [`Session`] records what was created on the machine until it is removed. Linux only.
#![forbid(unsafe_code)]

pub mod child;
mod clock;
mod driver;
mod endpoint;
mod lateness;
mod namespace;
mod note;
mod overruns;
mod priority;
mod ring;
mod session;
mod signals;
mod slacp;
mod train;
pub mod tun;
mod waiter;
mod wakeful;

pub use clock::{Clock, isn};
pub use driver::{Counters, Datagram, Driver, Path, Turn, User};
pub use endpoint::{Closing, Endpoint, Peer, Receipt};
pub use lateness::Lateness;
pub use namespace::{Namespace, addresses, ip, run};
pub use note::has_colour;
pub use priority::hurry;
pub use ring::Ring;
pub use session::{Made, Session};
pub use signals::{Caught, Signals};
pub use slacp::{Emitted, LinkPort, LinkPortConfig, LinkPortStats};
pub use train::{Buffers, Packet, Train, TrainTun};
pub use tun::{Tun, TunConfig};
pub use waiter::Waiter;
pub use wakeful::Wakeful;
