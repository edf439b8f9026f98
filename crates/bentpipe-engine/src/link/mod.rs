//! A link: queue, serializer, propagation delay, channel.
//!
//! Reading order: [`config`](LinkConfig) says what can be built, [`queue`](Red) admits, [`channel`](Channel) is the
//! state of the sky over time, `sequence` loses packets by their order, [`RateTrace`] is a rate that a
//! record gives, [`BurstSchedule`] lets a line send in turns, [`Link`] puts them in a row. Two kin:
//! [`CellPort`] sends packets cell by cell, [`Server`] works on one after the other. Generic over the packet: all a
//! link must know of one is its length on the line.

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
