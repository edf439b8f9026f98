//! Links in a row. The fate of a packet on a link is known when it is offered: its departure, because the queue is
//! FIFO, and its loss, because the channel is a process in time. If a link is fed only by one other link, packets reach
//! it in the same order as that other link, so their whole passage through both is known when they enter the first.
//! Such links form a chain: a packet costs one event, at the end of its chain.
//!
//! The links thus compute and count ahead of the clock. So the latest passages between links of a chain are stored, and
//! when counters are read, future passages are subtracted. The literal network, with one event per link, is the twin in
//! tests. It also runs whenever there is an observer, which must see events in order of time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::LinkId;
use super::due::Due;
use crate::link::LinkCounters;
use crate::probe::DropReason;
use crate::units::Time;

/// The fate of a packet between two links of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The channel lost it.
    Lost,
    /// The next link admitted it.
    Admitted,
    /// The next link refused it.
    Refused(DropReason),
}

/// A packet that passes from one link to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) arrives: Time,
    pub(super) begun: Time,
    /// Bytes on the line, with the link's own header.
    pub(super) length: u32,
    pub(super) next: LinkId,
    pub(super) fate: Fate,
}

const NONE: Passing =
    Passing { arrives: Time::ZERO, begun: Time::ZERO, length: 0, next: LinkId(0), fate: Fate::Admitted };

/// The latest passages after a link, in order of time: all future ones and some earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// A ring whose length is a power of two; the next index is `count` modulo the length.
    places: Box<[Passing]>,
    count: u64,
    /// New maxima of the number of waiting packets at this link, if a chain feeds it, and when each was reached.
    records: VecDeque<(Due, u32)>,
}

impl Log {
    pub(super) fn new() -> Self {
        Log { places: Box::new([NONE; 16]), count: 0, records: VecDeque::new() }
    }

    /// Records a passage; the current time is `now`.
    #[inline(always)]
    pub(super) fn note(&mut self, passing: Passing, now: Time) {
        let at = self.place(self.count);
        let place = match self.places.get_mut(at) {
            Some(oldest) if oldest.arrives < now => oldest,
            _ => self.make_room(),
        };
        // Field by field: a copy of the whole struct would go through the stack in pieces and be read back before they
        // are stored.
        let Passing { arrives, begun, length, next, fate } = passing;
        place.arrives = arrives;
        place.begun = begun;
        place.length = length;
        place.next = next;
        place.fate = fate;
        self.count += 1;
    }

    #[inline(always)]
    fn place(&self, count: u64) -> usize {
        count as usize & self.places.len().wrapping_sub(1)
    }

    /// The fate of the last recorded passage.
    pub(super) fn amend(&mut self, fate: Fate) {
        let place = self.place(self.count - 1);
        self.places[place].fate = fate;
    }

    /// The place of the next passage, if the oldest one may still be in the future: doubles the ring, unless it has never been full.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> &mut Passing {
        let places = self.places.len();
        if self.count < places as u64 {
            return &mut self.places[self.count as usize];
        }
        // In order from the oldest one; the count continues from here.
        let mut all: Vec<Passing> = self.in_order().copied().collect();
        let turns = self.count / (2 * places as u64) * 2 * places as u64;
        let aligned = self.count - turns;
        all.resize(2 * places, NONE);
        // The newest one must precede the index of the next.
        let next = aligned as usize;
        all.rotate_right((next + places) % (2 * places));
        self.places = all.into_boxed_slice();
        &mut self.places[next]
    }

    /// Records a new maximum of waiting packets from `due` on.
    #[cold]
    pub(super) fn note_record(&mut self, due: Due, waiting: u32, now: Time) {
        while self.records.get(1).is_some_and(|next| next.0.at() < now) {
            self.records.pop_front();
        }
        self.records.push_back((due, waiting));
    }

    /// Iterates from the oldest stored passage on.
    fn in_order(&self) -> impl DoubleEndedIterator<Item = &Passing> {
        let places = self.places.len() as u64;
        (self.count.saturating_sub(places)..self.count).map(move |n| &self.places[(n % places) as usize])
    }
}

/// A network's counters at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// The counters by link.
    pub links: Vec<LinkCounters>,
    /// Number of packets inside.
    pub in_flight: u64,
    /// Number of packets that reached the end of a link without an event, and the time of the last one.
    pub passages: (u64, Time),
}

/// Subtracts the passages at or after `end`. Returns the number of earlier ones, and the time of the last.
pub(super) fn take_off_what_comes<'a>(
    logs: impl Iterator<Item = &'a Log> + Clone,
    links: &mut [LinkCounters],
    end: Due,
) -> (u64, Time) {
    let (mut count, mut last) = (0, Time::ZERO);
    for (from, log) in logs.clone().enumerate() {
        count += log.count;
        for &Passing { arrives, begun, length, next, fate } in log.in_order().rev() {
            if Due::new(arrives, begun, from) < end {
                last = last.max(arrives);
                break;
            }
            count -= 1;
            if fate == Fate::Lost {
                links[from].dropped_channel -= 1;
                continue;
            }
            links[from].delivered -= 1;
            links[from].delivered_bytes -= u64::from(length);
            let next = &mut links[next.index()];
            next.offered -= 1;
            if let Fate::Refused(reason) = fate {
                *next.dropped_for(reason) -= 1;
            }
        }
    }
    for (link, Log { records, .. }) in links.iter_mut().zip(logs) {
        if !records.is_empty() {
            link.max_waiting = records.iter().rev().find(|record| record.0 < end).map_or(0, |record| record.1);
        }
    }
    (count, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_all_that_is_yet_to_come() {
        let mut log = Log::new();
        let at = |tick: u64| Passing { arrives: Time::from_ticks(tick), ..NONE };
        let (mut arrives, mut now) = (100, 0);
        // The number of passages on their way is as many as fit into 100 ticks, then 1000, then 10, at one passage per
        // tick.
        for (distance, steps) in [(100, 777), (1000, 3333), (10, 500)] {
            for _ in 0..steps {
                arrives += 1;
                now = now.max(arrives - distance.min(arrives));
                log.note(at(arrives), Time::from_ticks(now));
                let kept = log.in_order().map(|passing| passing.arrives.as_ticks()).filter(|&arrives| arrives > 0);
                let kept: Vec<u64> = kept.collect();
                assert!(kept.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order, without a gap: {kept:?}");
                assert_eq!(kept.last(), Some(&arrives));
                assert!(kept[0] <= now.max(101), "{now} {kept:?}");
            }
        }
        assert_eq!((log.count, log.places.len()), (777 + 3333 + 500, 1024));
    }
}
