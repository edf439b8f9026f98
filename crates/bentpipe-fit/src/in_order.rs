//! Packets in order of time. A card with several queues may pass packets on out of order.

use std::collections::BTreeMap;

/// Maximum disorder in nanoseconds. A card collects packets for less than a timer tick of 10 ms.
pub(crate) const MAX_BACK_NS: i64 = 10_000_000;
/// The most packets that wait for earlier ones. A file may give all its packets the same time.
const MAX_WAITING: usize = 1 << 16;

/// Sorts packets by time as they are read; those of the same time stay as they are in the file.
pub(crate) struct InOrder<T> {
    /// By time and by place in the file.
    waiting: BTreeMap<(i64, u64), T>,
    read: u64,
    newest: i64,
    given: i64,
    /// The number of packets before whose time a later one was read, and the largest difference in nanoseconds.
    pub(crate) back: u64,
    pub(crate) max_back: i64,
}

impl<T> InOrder<T> {
    pub(crate) fn new() -> Self {
        InOrder { waiting: BTreeMap::new(), read: 0, newest: i64::MIN, given: i64::MIN, back: 0, max_back: 0 }
    }

    /// Takes the next packet of the file. Passes on those that no later packet may precede.
    pub(crate) fn take(&mut self, at: i64, packet: T, mut each: impl FnMut(i64, T)) {
        self.back += u64::from(at < self.newest);
        if self.read > 0 {
            self.max_back = self.max_back.max(self.newest.saturating_sub(at));
        }
        self.newest = self.newest.max(at);
        self.waiting.insert((at, self.read), packet);
        self.read += 1;
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0.saturating_add(MAX_BACK_NS) >= self.newest && self.waiting.len() <= MAX_WAITING {
                break;
            }
            self.give(&mut each);
        }
    }

    /// Passes on all that wait.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(i64, T)) {
        while !self.waiting.is_empty() {
            self.give(&mut each);
        }
    }

    /// The time never goes backwards, even if a packet comes too late.
    fn give(&mut self, each: &mut impl FnMut(i64, T)) {
        if let Some(((at, _), packet)) = self.waiting.pop_first() {
            self.given = self.given.max(at);
            each(self.given, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(times: &[i64]) -> (Vec<(i64, usize)>, u64, i64) {
        let (mut order, mut out) = (InOrder::new(), Vec::new());
        for (n, &at) in times.iter().enumerate() {
            order.take(at, n, |at, n| out.push((at, n)));
        }
        order.finish(|at, n| out.push((at, n)));
        (out, order.back, order.max_back)
    }

    #[test]
    fn a_little_disorder_is_sorted() {
        assert_eq!(sorted(&[5, 3, 3, 9]), (vec![(3, 1), (3, 2), (5, 0), (9, 3)], 2, 2));
        let late = 20 * MAX_BACK_NS;
        let (out, back, max_back) = sorted(&[0, late, late + MAX_BACK_NS, late, 1]);
        assert_eq!(out.iter().map(|&(_, n)| n).collect::<Vec<_>>(), [0, 4, 1, 3, 2]);
        assert_eq!((back, max_back), (2, late + MAX_BACK_NS - 1));
        assert!(out.is_sorted_by_key(|&(at, _)| at), "{out:?}");
    }

    #[test]
    fn few_packets_wait() {
        let mut order = InOrder::new();
        let mut given = 0;
        for _ in 0..3 * MAX_WAITING {
            order.take(7, (), |_, ()| given += 1);
            assert!(order.waiting.len() <= MAX_WAITING);
        }
        assert_eq!(given, 2 * MAX_WAITING);
        assert_eq!(sorted(&[i64::MAX, i64::MIN, i64::MAX]).1, 1, "any time can be read");
    }
}
