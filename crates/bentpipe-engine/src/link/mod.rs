//! A link: queue, serializer, propagation delay, channel.
//!
//! Reading order: [`config`](LinkConfig) has the settings, [`queue`](Red) admits packets, and [`channel`](Channel) is
//! the channel state over time. `sequence` loses packets by number. [`RateTrace`] is a recorded rate, [`BurstSchedule`]
//! a TDMA schedule, and [`Track`] a setting that changes with time; `motion` has their effect on packets. [`Link`]
//! combines them. There are two relatives: [`CellPort`] sends packets cell by cell, and [`Server`] processes packets
//! one at a time. All are generic over the packet, because a link needs only its length on the line.

mod admission;
mod cells;
mod channel;
mod config;
mod counters;
mod course;
mod dualpi2;
mod jitter;
mod line;
#[allow(clippy::module_inception)]
mod link;
pub mod modulation;
mod motion;
mod moving;
mod opportunities;
mod outcome;
mod queue;
mod retune;
mod ring;
mod sequence;
mod server;
mod sky;
mod slots;
mod track;

pub use cells::CellPort;
pub use channel::{Burst, Channel, ChannelState};
pub use config::{
    CellConfig, ChannelConfig, Codel, Discipline, Distribution, ExtraDelay, Jitter, LinkConfig, LossConfig, Moves,
    PacketBursts, QueueConfig, QueueLimit, RedConfig, Reorder, Sharing, Ties,
};
pub use course::Phases;
pub use dualpi2::DualPi2;
pub(crate) use dualpi2::{Coupled, Judgement};
pub(crate) use link::Transit;
pub use link::{Altered, Arrival, Link, LinkCounters, Outcome, Wire};
pub use opportunities::{BadTrace, RateTrace};
pub use queue::Red;
pub use server::Server;
pub use slots::{BadSchedule, BurstSchedule};
pub use track::{BadTrack, Change, Track};
