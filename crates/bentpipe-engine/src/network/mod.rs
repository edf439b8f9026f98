//! Links, cell ports and processors, and the paths over them: one network for every driver.
//!
//! A driver lays paths ([`Routes::lead`]) and sends packets ([`Network::offer`] to a link, [`Network::enter`] to a
//! station). Both return the reason of a drop that is decided at once, such as that of a full queue. At the time of
//! [`Network::first`], the driver takes the packets that have passed ([`Network::take`]) and gets their next hop
//! ([`Hop`]). Ends and link layers belong to the driver. Events are ordered by [`Due`].
//!
//! Without an observer, a packet can pass links in a row with one event in all, not one per link: these links form a
//! chain.

mod chain;
mod dual;
mod due;
mod id;
mod layers;
mod managed;
#[allow(clippy::module_inception)]
mod network;
mod routes;

pub use chain::Books;
pub use due::{Age, Due, Tournament};
pub use layers::LayerEnds;
pub use managed::ManagedLink;
pub use network::{Network, Station, Taken};
pub use routes::Routes;

use crate::link::Wire;
use crate::probe::{DropReason, NoProbe, Probe};
use crate::units::Time;

crate::ids! {
    /// A link of the network.
    LinkId,
    /// A cell port or a processor.
    StationId,
    /// A destination of packets: the end of a connection, a host, or the end of a link layer.
    EndId,
}

/// A packet with a destination.
pub trait Bound: Wire {
    /// The destination.
    fn to(&self) -> EndId;
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// This link.
    Link(LinkId),
    /// This station.
    Station(StationId),
    /// A link layer over a link: the packet leaves the network here and returns after the layer.
    Layer {
        /// The layer's receiving end.
        end: EndId,
        /// The link that this end sends on.
        link: LinkId,
    },
    /// It has arrived.
    Arrived,
}

/// An event of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives at the queue.
    Offered,
    /// It is lost.
    Dropped(DropReason),
    /// It leaves at the far end.
    Delivered,
}

/// Added to the number of a link to make its [`Who`](crate::probe::Who).
pub const LINK_BASE: u32 = 1 << 31;

/// A probe that also observes packets at links.
pub trait Watch<P>: Probe {
    /// Receives an event of a packet at a link.
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &P);

    /// The link has marked the packet that is delivered next.
    #[inline(always)]
    fn marked(&mut self) {}
}

impl<P> Watch<P> for NoProbe {
    #[inline(always)]
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &P) {}
}
