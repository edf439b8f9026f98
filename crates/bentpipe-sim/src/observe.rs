//! Observers of a run: events of machines, and packets at links.

use bentpipe_engine::network::{LinkId, Watch};
use bentpipe_engine::probe::{Event, NoProbe, Probe, Who};
use bentpipe_engine::units::Time;

use crate::packet::{Packet, Parcel, Store};

pub use bentpipe_engine::network::{LINK_BASE, Passage};

/// An observer of a run. Links have the numbers of the scenario; `Who` of a machine is `2 * flow` for the end at
/// `from`, `2 * flow + 1` for the one at `to`, and [`LINK_BASE`] plus its number for a link. The further legs of split
/// flows are numbered like flows after all others (`bentpipe_study::topology::connections`).
pub trait Observer: Probe {
    /// Receives an event of a packet at the link with this number.
    fn packet(&mut self, now: Time, link: usize, passage: Passage, packet: &Packet);
}

impl Observer for NoProbe {
    #[inline(always)]
    fn packet(&mut self, _: Time, _: usize, _: Passage, _: &Packet) {}
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
    fn packet(&mut self, now: Time, link: usize, passage: Passage, packet: &Packet) {
        self.0.packet(now, link, passage, packet);
        self.1.packet(now, link, passage, packet);
    }
}

/// Adapts an observer to the network: looks packets up, and skips frames of link layers.
pub(crate) struct Watching<'a, O> {
    observer: &'a mut O,
    packets: &'a Store,
    /// Packets to this end or a later one are frames.
    first_layer_end: usize,
}

impl<'a, O: Observer> Watching<'a, O> {
    #[inline(always)]
    pub(crate) fn new(observer: &'a mut O, packets: &'a Store, first_layer_end: usize) -> Self {
        Watching { observer, packets, first_layer_end }
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
        if O::WATCHES && packet.to.index() < self.first_layer_end {
            self.observer.packet(now, link.index(), passage, &self.packets.get(*packet));
        }
    }
}
