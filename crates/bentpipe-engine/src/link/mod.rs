//! A link: queue, serializer, propagation delay, channel.
//!
//! Reading order: [`config`](LinkConfig) has the settings, [`queue`](Red) admits, [`channel`](Channel) is the
//! channel state over time, `sequence` loses packets by their number, [`RateTrace`] is a recorded rate,
//! [`BurstSchedule`] a TDMA schedule, [`Link`] combines them. Two relatives: [`CellPort`] sends packets cell by
//! cell, [`Server`] processes packets one at a time. All are generic over the packet: a link needs only its length
//! on the line.

mod admission;
mod cells;
mod channel;
mod config;
mod line;
#[allow(clippy::module_inception)]
mod link;
pub mod modulation;
mod opportunities;
mod queue;
mod ring;
mod sequence;
mod server;
mod sky;
mod slots;

pub use cells::{CellCounters, CellPort};
pub use channel::{Burst, Channel, ChannelState};
pub use config::{
    CellConfig, ChannelConfig, Discipline, Distribution, ExtraDelay, LinkConfig, LossConfig, PacketBursts, QueueConfig,
    QueueLimit, RedConfig, Sharing, Ties,
};
pub use link::{Arrival, Link, LinkCounters, Outcome, Transit, Wire};
pub use opportunities::{BadTrace, RateTrace};
pub use queue::Red;
pub use server::Server;
pub use slots::{BadSchedule, BurstSchedule};
