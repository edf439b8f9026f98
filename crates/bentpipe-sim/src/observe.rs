//! Observers of a run: events of machines, and packets at links.

use bentpipe_engine::network::{EndId, LinkId, Watch};
use bentpipe_engine::probe::{Event, NoProbe, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ecn::Ecn;

use crate::packet::{Body, Packet, Parcel, Store};

pub use bentpipe_engine::network::{LINK_BASE, Passage};

/// An observer of a run. Links have the scenario's numbers. The `Who` of a machine is `2 * connection` for the end at
/// `from`, `2 * connection + 1` for the end at `to`, and [`LINK_BASE`] plus its number for a link. Connections are
/// numbered as in `bentpipe_study::topology::connections`.
pub trait Observer: Probe {
    /// Receives an event of a packet at a link.
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet);
}

impl Observer for NoProbe {
    #[inline(always)]
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &Packet) {}
}

/// Two observers at once.
#[derive(Debug)]
pub struct Both<'a, A, B>(pub &'a mut A, pub &'a mut B);

impl<A: Observer, B: Observer> Probe for Both<'_, A, B> {
    const WATCHES: bool = A::WATCHES || B::WATCHES;
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        self.0.event(now, who, event);
        self.1.event(now, who, event);
    }
}

impl<A: Observer, B: Observer> Observer for Both<'_, A, B> {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        self.0.packet(now, link, passage, packet);
        self.1.packet(now, link, passage, packet);
    }
}

/// An observer of unknown type: the world is compiled for this type and for no observer.
pub(crate) struct AnyObserver<'a>(pub(crate) &'a mut dyn Sink);

/// The methods of an [`Observer`], whose constant prevents its use as a `dyn` trait.
pub(crate) trait Sink {
    fn event(&mut self, now: Time, who: Who, event: &Event);
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet);
}

impl<O: Observer> Sink for O {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        Probe::event(self, now, who, event);
    }

    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        Observer::packet(self, now, link, passage, packet);
    }
}

impl Probe for AnyObserver<'_> {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        self.0.event(now, who, event);
    }
}

impl Observer for AnyObserver<'_> {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        self.0.packet(now, link, passage, packet);
    }
}

/// Adapts an observer to the network: looks packets up, and skips frames of link layers.
pub(crate) struct Watching<'a, O> {
    observer: &'a mut O,
    packets: &'a Store,
    /// Packets to this end or a later one are frames.
    first_layer_end: EndId,
    /// True if the packet that is delivered next carries a mark of the link, which it gets in the store afterwards.
    is_marked: bool,
}

impl<'a, O: Observer> Watching<'a, O> {
    #[inline(always)]
    pub(crate) fn new(observer: &'a mut O, packets: &'a Store, first_layer_end: EndId) -> Self {
        Watching { observer, packets, first_layer_end, is_marked: false }
    }
}

impl<O: Observer> Probe for Watching<'_, O> {
    const WATCHES: bool = O::WATCHES;

    #[inline(always)]
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        self.observer.event(now, who, event);
    }
}

impl<O: Observer> Watch<Parcel> for Watching<'_, O> {
    #[inline(always)]
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Parcel) {
        if O::WATCHES && packet.to() < self.first_layer_end {
            let mut packet = self.packets.get(*packet);
            if let (true, Body::Tcp(segment)) = (std::mem::take(&mut self.is_marked), &mut packet.body) {
                segment.ecn = Ecn::Ce;
            }
            self.observer.packet(now, link, passage, &packet);
        }
    }

    #[inline(always)]
    fn marked(&mut self) {
        self.is_marked = O::WATCHES;
    }
}
