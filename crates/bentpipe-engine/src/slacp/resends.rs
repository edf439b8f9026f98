//! The lost packets of a channel that wait for retransmission.

use alloc::collections::{BTreeSet, VecDeque};

/// Their numbers, in the order of retransmission. A number may remain here after its packet has arrived.
#[derive(Clone, Debug)]
pub(super) enum Resends {
    /// The oldest goes first: otherwise a packet that is lost again would wait, along with its flow, behind all later
    /// losses.
    Oldest(BTreeSet<u64>),
    /// The packet that was lost first goes first.
    Lost(VecDeque<u64>),
}

impl Resends {
    pub(super) fn new(oldest_first: bool) -> Self {
        if oldest_first { Resends::Oldest(BTreeSet::new()) } else { Resends::Lost(VecDeque::new()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Resends::Oldest(set) => set.is_empty(),
            Resends::Lost(queue) => queue.is_empty(),
        }
    }

    pub(super) fn push(&mut self, seq: u64) {
        match self {
            Resends::Oldest(set) => {
                set.insert(seq);
            }
            Resends::Lost(queue) => queue.push_back(seq),
        }
    }

    pub(super) fn pop(&mut self) -> Option<u64> {
        match self {
            Resends::Oldest(set) => set.pop_first(),
            Resends::Lost(queue) => queue.pop_front(),
        }
    }
}
