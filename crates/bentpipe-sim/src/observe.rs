//! Who watches a run: the events of machines, and the packets at the links.

use bentpipe_engine::probe::{DropReason, Event, NoProbe, Probe, Who};
use bentpipe_engine::units::Time;

use crate::packet::Packet;

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

/// A watcher of a run. Links have the numbers of the scenario; `Who` of a machine is `2 * flow` for the end at
/// `from`, `2 * flow + 1` for the one at `to`, and [`LINK_BASE`] plus its number for a link. The further legs of flows
/// that are split are numbered as if they were flows behind all others (`bentpipe_study::topology::connections`).
pub trait Observer: Probe {
    /// Takes note of a packet at the link with that number.
    fn packet(&mut self, now: Time, link: usize, passage: Passage, packet: &Packet);
}

/// Added to the number of a link to make its [`Who`].
pub const LINK_BASE: u32 = 1 << 31;

impl Observer for NoProbe {
    #[inline(always)]
    fn packet(&mut self, _: Time, _: usize, _: Passage, _: &Packet) {}
}

/// Two watchers at once.
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
