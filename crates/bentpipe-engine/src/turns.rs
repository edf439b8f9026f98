//! Whose turn it is: FQ-CoDel's scheduler (RFC 8290 §4.2) without its hashing and its CoDel.
//!
//! It serves two levels: the hosts, and the streams of each host.

use super::line::Line;

/// The list that an entry stands in, and its ticket there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// None: it has nothing to send.
    #[default]
    Idle,
    /// Those that were quiet.
    Fresh(u64),
    /// Those with a backlog.
    Old(u64),
}

/// What an entry may send in one turn: an initial window of TCP (RFC 6928), so that a short answer goes in one.
pub(super) const QUANTUM: i64 = 14_600;

/// An entry's part in the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub(super) place: Place,
    pub(super) deficit: i64,
}

impl Turn {
    /// True if nothing was sent since it became active: nothing is lost if it is forgotten.
    pub(super) fn is_unused(&self) -> bool {
        self.place == Place::Idle || self.deficit == QUANTUM
    }
}

/// The two lists.
#[derive(Clone, Debug)]
pub(super) struct Turns<K> {
    fresh: Line<K>,
    old: Line<K>,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Turns { fresh: Line::default(), old: Line::default() }
    }
}

impl<K: Copy> Turns<K> {
    /// An entry has something to send.
    pub(super) fn wake(&mut self, id: K, turn: &mut Turn) {
        if turn.place == Place::Idle {
            *turn = Turn { place: Place::Fresh(self.fresh.push(id)), deficit: QUANTUM };
        }
    }

    /// The entry at the head.
    pub(super) fn head(&self) -> Option<K> {
        self.fresh.front().or_else(|| self.old.front())
    }

    /// True if no entry is active.
    pub(super) fn is_empty(&self) -> bool {
        self.head().is_none()
    }

    /// Removes an entry, wherever it stands.
    pub(super) fn remove(&mut self, turn: &mut Turn) {
        match core::mem::take(turn).place {
            Place::Idle => {}
            Place::Fresh(ticket) => self.fresh.remove(ticket),
            Place::Old(ticket) => self.old.remove(ticket),
        }
    }

    /// The head's deficit is used up: it goes behind all others.
    pub(super) fn rotate(&mut self, turn: &mut Turn) {
        let Some(id) = self.fresh.pop().or_else(|| self.old.pop()) else { return };
        *turn = Turn { place: Place::Old(self.old.push(id)), deficit: turn.deficit + QUANTUM };
    }

    //= RFC 8290 §4.2: "If the queue selected for dequeue came from the list of new queues, it is moved to _the end
    //= of_ the list of old queues", and only one that is found empty there leaves: else it would be new again at once
    /// The head has nothing to send.
    pub(super) fn rest(&mut self, turn: &mut Turn) {
        if let Some(id) = self.fresh.pop() {
            turn.place = Place::Old(self.old.push(id));
        } else {
            self.old.pop();
            turn.place = Place::Idle;
        }
    }
}
