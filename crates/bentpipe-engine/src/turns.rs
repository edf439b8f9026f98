//! Taking turns: the scheduler of FQ-CoDel (RFC 8290 §4.2) without its hashing and its CoDel.
//!
//! It serves two levels: hosts, and the flows or streams of each host.

mod line;

pub(crate) use line::Line;

/// The list that an entry is in, and its ticket there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// None: it has nothing to send.
    #[default]
    Idle,
    /// Entries that were idle.
    Fresh(u64),
    /// Entries with a backlog.
    Old(u64),
}

/// An entry's position in the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    pub(crate) deficit: i64,
}

/// The two lists. An entry may send `QUANTUM` bytes in one turn.
#[derive(Clone, Debug)]
pub(crate) struct Turns<K, const QUANTUM: i64> {
    fresh: Line<K>,
    old: Line<K>,
}

impl<K, const QUANTUM: i64> Default for Turns<K, QUANTUM> {
    fn default() -> Self {
        Turns { fresh: Line::default(), old: Line::default() }
    }
}

impl<K: Copy, const QUANTUM: i64> Turns<K, QUANTUM> {
    /// True if an entry has sent nothing since it became active, so it can be forgotten without loss.
    pub(crate) fn is_unused(turn: &Turn) -> bool {
        // An old one that has used up its quantum to the byte has a whole one again.
        turn.place == Place::Idle || matches!(turn.place, Place::Fresh(_)) && turn.deficit == QUANTUM
    }

    /// Schedules an entry that has something to send.
    pub(crate) fn wake(&mut self, id: K, turn: &mut Turn) {
        if turn.place == Place::Idle {
            *turn = Turn { place: Place::Fresh(self.fresh.push(id)), deficit: QUANTUM };
        }
    }

    /// The entry at the head.
    pub(crate) fn head(&self) -> Option<K> {
        self.fresh.front().or_else(|| self.old.front())
    }

    /// True if no entry is active.
    pub(crate) fn is_empty(&self) -> bool {
        self.head().is_none()
    }

    /// Removes an entry, wherever it is.
    pub(crate) fn remove(&mut self, turn: &mut Turn) {
        match core::mem::take(turn).place {
            Place::Idle => {}
            Place::Fresh(ticket) => self.fresh.remove(ticket),
            Place::Old(ticket) => self.old.remove(ticket),
        }
    }

    /// Moves the head behind all others, because its deficit is used up.
    pub(crate) fn rotate(&mut self, turn: &mut Turn) {
        let Some(id) = self.fresh.pop().or_else(|| self.old.pop()) else { return };
        *turn = Turn { place: Place::Old(self.old.push(id)), deficit: turn.deficit + QUANTUM };
    }

    //= RFC 8290 §4.2: "If the queue selected for dequeue came from the list of new queues, it is moved to _the end
    //= of_ the list of old queues", and only one that is found empty there leaves: else it would be new again at once
    /// Handles a head that has nothing to send.
    pub(crate) fn rest(&mut self, turn: &mut Turn) {
        if let Some(id) = self.fresh.pop() {
            turn.place = Place::Old(self.old.push(id));
        } else {
            self.old.pop();
            turn.place = Place::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8290 §4.2: a new entry that has nothing more to send goes to the end of the old ones. If it wakes there, it is not new again, so
    /// it cannot starve the others by sending little at a time. Only one that is found empty there leaves.
    #[test]
    fn an_entry_that_empties_is_not_new_again() {
        let mut turns = Turns::<u32, 1000>::default();
        let mut entries = [Turn::default(); 3];
        turns.wake(1, &mut entries[1]);
        assert_eq!(turns.head(), Some(1));
        // It has sent more than its quantum: behind the others, with a quantum more.
        entries[1].deficit -= 1500;
        turns.rotate(&mut entries[1]);
        assert_eq!(entries[1].deficit, 500);
        turns.wake(2, &mut entries[2]);
        assert_eq!(turns.head(), Some(2), "a new one goes first");
        turns.rest(&mut entries[2]);
        turns.wake(2, &mut entries[2]);
        assert_eq!(turns.head(), Some(1), "one that was new goes behind the old ones");
        turns.rest(&mut entries[1]);
        assert_eq!((entries[1].place, turns.head()), (Place::Idle, Some(2)));
        turns.rest(&mut entries[2]);
        assert!(turns.is_empty());
    }

    /// An entry that has used up its quantum to the byte has sent something all the same: it must not be forgotten and come back as a new
    /// one.
    #[test]
    fn only_an_entry_that_has_sent_nothing_is_unused() {
        let (mut turns, mut turn) = (Turns::<u32, 1000>::default(), Turn::default());
        let is_unused = Turns::<u32, 1000>::is_unused;
        assert!(is_unused(&turn));
        turns.wake(1, &mut turn);
        assert!(is_unused(&turn));
        turn.deficit -= 1000;
        assert!(!is_unused(&turn));
        turns.rotate(&mut turn);
        assert!(turn.deficit == 1000 && !is_unused(&turn));
        turns.rest(&mut turn);
        assert!(is_unused(&turn));
    }
}
