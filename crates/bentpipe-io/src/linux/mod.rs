//! What opens a device, waits or changes the computer: all that needs Linux.

pub mod child;
mod clock;
mod descendants;
mod dial;
mod driver;
mod namespace;
mod overruns;
mod priority;
mod session;
mod signals;
mod train;
pub mod tun;
mod waiter;
mod wakeful;

pub use clock::Clock;
pub use descendants::Descendants;
pub use dial::{dial, is_served};
pub use driver::{Counters, Datagram, Driver, Path, Turn, User};
pub use namespace::{Namespace, addresses, ip, program, run, succeeded};
pub use priority::{hurry, prefer};
pub use session::{Made, Session};
pub use signals::{Caught, Signals, is_ignored};
pub use train::{Buffers, Packet, Train, TrainTun};
pub use tun::{Tun, TunConfig};
pub use waiter::Waiter;
pub use wakeful::Wakeful;
