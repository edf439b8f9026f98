//! Whose turn it is: FQ-CoDel's scheduler (RFC 8290 §4.2) without its hashing and its CoDel.

use std::collections::VecDeque;

use crate::wire::mux::StreamId;

/// In which list a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// In none: it has nothing to send.
    #[default]
    Idle,
    /// Among those that were quiet.
    Fresh,
    /// Among those with a backlog.
    Old,
}

/// What a stream may send in one turn: an initial window of TCP (RFC 6928), so that a short answer goes in one.
pub(super) const QUANTUM: i64 = 14_600;

/// A stream's part in the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub(super) place: Place,
    pub(super) deficit: i64,
}

/// The two lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    fresh: VecDeque<StreamId>,
    old: VecDeque<StreamId>,
}

impl Turns {
    /// A stream has something to send.
    pub(super) fn wake(&mut self, id: StreamId, turn: &mut Turn) {
        if turn.place == Place::Idle {
            *turn = Turn { place: Place::Fresh, deficit: QUANTUM };
            self.fresh.push_back(id);
        }
    }

    /// The stream at the head, which may have gone in the meantime.
    pub(super) fn head(&self) -> Option<StreamId> {
        self.fresh.front().or(self.old.front()).copied()
    }

    /// The head has gone.
    pub(super) fn drop_head(&mut self) {
        if self.fresh.pop_front().is_none() {
            self.old.pop_front();
        }
    }

    /// The head's deficit is used up: it goes behind all others.
    pub(super) fn rotate(&mut self, turn: &mut Turn) {
        let Some(id) = self.fresh.pop_front().or_else(|| self.old.pop_front()) else { return };
        *turn = Turn { place: Place::Old, deficit: turn.deficit + QUANTUM };
        self.old.push_back(id);
    }

    //= RFC 8290 §4.2: "If the queue selected for dequeue came from the list of new queues, it is moved to _the end
    //= of_ the list of old queues", and only one that is found empty there leaves: else it would be new again at once
    /// The head has nothing to send.
    pub(super) fn rest(&mut self, turn: &mut Turn) {
        if let Some(id) = self.fresh.pop_front() {
            turn.place = Place::Old;
            self.old.push_back(id);
        } else {
            self.old.pop_front();
            turn.place = Place::Idle;
        }
    }
}
