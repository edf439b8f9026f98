//! A queue that an entry can leave from the middle.

use alloc::collections::BTreeMap;

/// A queue. Each entry has a ticket, by which it is removed.
#[derive(Clone, Debug)]
pub(crate) struct Line<K> {
    entries: BTreeMap<u64, K>,
    next: u64,
}

impl<K> Default for Line<K> {
    fn default() -> Self {
        Line { entries: BTreeMap::new(), next: 0 }
    }
}

impl<K: Copy> Line<K> {
    /// Adds an entry at the end. Returns its ticket.
    pub(crate) fn push(&mut self, entry: K) -> u64 {
        self.next += 1;
        self.entries.insert(self.next, entry);
        self.next
    }

    /// The first entry.
    pub(crate) fn front(&self) -> Option<K> {
        self.entries.first_key_value().map(|(_, &entry)| entry)
    }

    /// Takes the first entry.
    pub(crate) fn pop(&mut self) -> Option<K> {
        self.entries.pop_first().map(|(_, entry)| entry)
    }

    /// Removes the entry with this ticket.
    pub(crate) fn remove(&mut self, ticket: u64) {
        self.entries.remove(&ticket);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
