//! A resource shared by several peers, such as memory. Each peer may use what the others leave, and each has a reserved
//! part.
//!
//! Half of the pool is reserved in equal parts. The unused rest of a peer's part stays reserved for it. A peer that
//! exceeds its part takes from the other half. So a single peer may use everything, and a greedy one among others at
//! most half plus its part.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::hub::Slot;

/// An amount, in any unit.
#[derive(Debug)]
pub(crate) struct Pool {
    total: u64,
    used: BTreeMap<Slot, u64>,
    /// The amount used or reserved in total; `None` if the total or the peers have changed since it was last needed. So thousands of
    /// peers may join one after the other.
    claimed: Cell<Option<u64>>,
}

impl Pool {
    pub(crate) fn new(total: u64) -> Self {
        Pool { total, used: BTreeMap::new(), claimed: Cell::new(None) }
    }

    /// True if there are several peers.
    pub(crate) fn is_shared(&self) -> bool {
        self.used.len() > 1
    }

    /// The part reserved for each peer.
    fn kept(&self) -> u64 {
        self.total / (2 * self.used.len().max(1) as u64)
    }

    fn claimed(&self) -> u64 {
        let kept = self.kept();
        let sum = || self.used.values().map(|used| (*used).max(kept)).sum();
        let claimed = self.claimed.get().unwrap_or_else(sum);
        self.claimed.set(Some(claimed));
        claimed
    }

    /// Changes the total. Existing use above it continues.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
        self.claimed.set(None);
    }

    /// Adds a peer.
    pub(crate) fn join(&mut self, slot: Slot) {
        self.used.entry(slot).or_insert(0);
        self.claimed.set(None);
    }

    /// Removes a peer.
    pub(crate) fn leave(&mut self, slot: Slot) {
        self.used.remove(&slot);
        self.claimed.set(None);
    }

    /// Sets a peer's use.
    pub(crate) fn set(&mut self, slot: Slot, now: u64) {
        let kept = self.kept();
        if let Some(used) = self.used.get_mut(&slot) {
            let before = std::mem::replace(used, now);
            self.claimed.set(self.claimed.get().map(|claimed| claimed - before.max(kept) + now.max(kept)));
        }
    }

    /// A peer's limit.
    pub(crate) fn limit(&self, slot: Slot) -> u64 {
        let Some(&used) = self.used.get(&slot) else { return 0 };
        self.total.saturating_sub(self.claimed() - used.max(self.kept()))
    }

    /// The use of all peers.
    pub(crate) fn in_use(&self) -> u64 {
        self.used.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn alone_a_peer_has_all() {
        let mut pool = Pool::new(1000);
        pool.join(Slot(0));
        assert_eq!(pool.limit(Slot(0)), 1000);
        pool.set(Slot(0), 900);
        assert_eq!((pool.limit(Slot(0)), pool.limit(Slot(1)), pool.in_use()), (1000, 0, 900));
    }

    #[test]
    fn the_greedy_leave_each_a_part() {
        let mut pool = Pool::new(1000);
        (0..5).for_each(|n| pool.join(Slot(n)));
        // 100 for each of the four others.
        assert_eq!(pool.limit(Slot(0)), 600);
        pool.set(Slot(0), 600);
        assert_eq!(pool.limit(Slot(1)), 100);
        pool.set(Slot(0), 200);
        assert_eq!(pool.limit(Slot(1)), 500);
        pool.leave(Slot(0));
        assert_eq!(pool.limit(Slot(1)), 1000 - 3 * 125);
    }

    proptest! {
        /// Peers that take as much as they may never hold more than the total, and none gets less than its part. A limit does not
        /// depend on when limits were asked for before.
        #[test]
        fn never_more_than_all(takes in prop::collection::vec((0u16..6, 0u64..2000), 1..60)) {
            let mut pool = Pool::new(1000);
            (0..6).for_each(|n| pool.join(Slot(n)));
            for (n, wanted) in takes {
                let limit = pool.limit(Slot(n));
                pool.claimed.set(None);
                prop_assert_eq!(pool.limit(Slot(n)), limit);
                prop_assert!(limit >= 1000 / 12, "{limit}");
                pool.set(Slot(n), wanted.min(limit));
                prop_assert!(pool.in_use() <= 1000);
            }
        }
    }
}
