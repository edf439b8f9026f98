//! A link: queue, serializer, propagation delay, channel.
//!
//! Reading order: [`config`](LinkConfig) says what can be built, [`queue`](Red) admits, [`channel`](Channel) is the
//! state of the sky over time, `sequence` loses packets by their order, [`Link`] puts them in a row. Generic over the packet: all a link must know of one is
//! its length on the line.

mod channel;
mod config;
#[allow(clippy::module_inception)]
mod link;
pub mod modulation;
mod queue;
mod sequence;

pub use channel::{Burst, Channel, ChannelState};
pub use config::{
    ChannelConfig, Discipline, Distribution, ExtraDelay, LinkConfig, LossConfig, PacketBursts, QueueConfig, QueueLimit,
    RedConfig,
};
pub use link::{Arrival, Link, LinkCounters, Outcome, Wire};
pub use queue::Red;
