//! Links in a row. What becomes of a packet on a link is known when it is offered: its departure, since the queue is
//! FIFO, and its loss, since the channel is a process in time. So where a link is fed by one other link and by nothing
//! else, packets come to it in the order in which they came to that one, and all of their way through both is known when
//! they enter the first. Such links form a chain: a packet costs one event, at the end of its chain.
//!
//! The links compute ahead of the clock, and what they count must not be ahead of it. So a passage from one link of a chain to the
//! next is written down here, and counted when its instant has passed. The literal network, one event per link, is the
//! twin in tests; it is what runs where somebody watches, who must be told things in order of time.

use std::collections::VecDeque;

use super::LinkId;
use super::due::Due;
use crate::link::{Link, Wire};
use crate::probe::DropReason;
use crate::units::Time;

/// What became of a packet at the far end of a link, where the next link of its chain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The channel lost it.
    Lost,
    /// The next link took it.
    Admitted,
    /// The next link refused it.
    Refused(DropReason),
}

/// A packet that passes from one link to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) arrives: Time,
    pub(super) begun: Time,
    pub(super) length: u32,
    /// How many waited at the next link then, or 0.
    pub(super) waiting: u32,
    pub(super) next: LinkId,
    pub(super) fate: Fate,
}

/// What is written down of the passages behind each link.
#[derive(Clone, Debug)]
pub(super) struct Passages {
    /// By link, in order of time.
    rings: Vec<VecDeque<Passing>>,
    /// How many were counted, and the instant of the last one.
    pub(super) counted: u64,
    pub(super) last: Time,
}

impl Passages {
    pub(super) fn new(links: usize) -> Self {
        Passages { rings: vec![VecDeque::new(); links], counted: 0, last: Time::ZERO }
    }

    /// Writes a passage down that may be yet to come. Those before `now` are counted when room is wanted, so that the
    /// ring is never larger than twice what is on its way.
    #[inline(always)]
    pub(super) fn note<P: Wire>(&mut self, from: usize, passing: Passing, links: &mut [Link<P>], now: Time) {
        let ring = &mut self.rings[from];
        if ring.len() == ring.capacity() {
            self.make_room(from, links, now);
        }
        self.rings[from].push_back(passing);
    }

    #[cold]
    #[inline(never)]
    fn make_room<P: Wire>(&mut self, from: usize, links: &mut [Link<P>], now: Time) {
        self.count_ring(from, links, Due::new(now, Time::ZERO, 0));
        let ring = &mut self.rings[from];
        if 2 * ring.len() >= ring.capacity() {
            ring.reserve(ring.capacity().max(64));
        }
    }

    /// Counts all passages that come before `end`.
    pub(super) fn count<P: Wire>(&mut self, links: &mut [Link<P>], end: Due) {
        for from in 0..self.rings.len() {
            self.count_ring(from, links, end);
        }
    }

    fn count_ring<P: Wire>(&mut self, from: usize, links: &mut [Link<P>], end: Due) {
        while let Some(&Passing { arrives, begun, length, waiting, next, fate }) = self.rings[from].front()
            && Due::new(arrives, begun, from) < end
        {
            self.rings[from].pop_front();
            self.counted += 1;
            self.last = self.last.max(arrives);
            links[from].note_arrival(length, fate == Fate::Lost);
            match fate {
                Fate::Lost => {}
                Fate::Admitted => links[next.index()].note_offered(Ok(waiting)),
                Fate::Refused(reason) => links[next.index()].note_offered(Err(reason)),
            }
        }
    }
}
