//! Links, cell ports and processors, and the ways of packets over them: one network for every driver.
//!
//! A driver lays the ways ([`Routes::lead`]), puts packets in ([`Network::offer`] onto a link, [`Network::enter`] into a
//! station), and at the instant of [`Network::first`] takes out what has come to its end ([`Network::take`]). The network
//! says where that goes next ([`Hop`]); what lies outside of it, ends and link layers, is the driver's. Events are ordered
//! by [`Due`].
//!
//! Where nobody watches, links in a row can cost one event per packet instead of one each: a chain.

mod chain;
mod due;
#[allow(clippy::module_inception)]
mod network;
mod routes;

pub use chain::Books;
pub use due::{Age, Due, Tournament};
pub use network::{Network, Station, Taken};
pub use routes::Routes;

use crate::link::Wire;
use crate::probe::{DropReason, NoProbe, Probe};
use crate::units::Time;

/// Numbers of things of one kind, which cannot be taken for those of another.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline(always)]
            fn from(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                $name(index as u32)
            }
        }
    )*};
}

ids! {
    /// A link of the network.
    LinkId,
    /// A cell port or a processor.
    StationId,
    /// Where packets are bound for: the end of a connection, a host, or the end of a link layer.
    EndId,
}

/// A packet that knows where it is bound for.
pub trait Bound: Wire {
    /// The end.
    fn to(&self) -> EndId;
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// Onto this link.
    Link(LinkId),
    /// Into this station.
    Station(StationId),
    /// Into a link layer that lies over a link: out of the network, to come back behind the layer.
    Layer {
        /// The layer's end that takes it.
        end: EndId,
        /// The link that this end sends on.
        link: LinkId,
    },
    /// Nowhere: it has arrived.
    Arrived,
}

/// What a packet does at a link.
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

/// A probe that watches packets at links too.
pub trait Watch<P>: Probe {
    /// Takes note of a packet at a link.
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &P);
}

impl<P> Watch<P> for NoProbe {
    #[inline(always)]
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &P) {}
}
