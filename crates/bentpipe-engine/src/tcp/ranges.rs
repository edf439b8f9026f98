//! Sorted, disjoint ranges of sequence numbers.
//!
//! There are few ranges (one per gap) and they change at the ends, so a deque with binary search beats a tree.

use alloc::collections::VecDeque;

/// An empty set keeps memory for this many ranges.
const KEPT_CAPACITY: usize = 256;

/// A set of sequence numbers as half-open ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    pub(crate) const fn new() -> Self {
        Ranges { ranges: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<(u64, u64)>()
    }

    /// Frees the memory of a set that was once large and is now empty.
    #[inline]
    pub(crate) fn shrink_if_empty(&mut self) {
        if self.ranges.is_empty() && self.ranges.capacity() > KEPT_CAPACITY {
            self.ranges = VecDeque::new();
        }
    }

    /// The first range that shares members with `start..end`.
    pub(crate) fn first_overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let range = self.ranges.get(self.index_after(start)).filter(|range| range.0 < end)?;
        Some((start.max(range.0), end.min(range.1)))
    }

    /// True if `start..end` would grow a range instead of adding one.
    pub(crate) fn touches(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < start);
        self.ranges.get(at).is_some_and(|range| range.0 <= end)
    }

    /// True if adding `start..end` leaves at most `max` ranges.
    #[inline]
    pub(crate) fn has_room(&self, start: u64, end: u64, max: usize) -> bool {
        self.len() < max || self.touches(start, end)
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// One past the highest member, or 0.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |r| r.1)
    }

    /// The ranges from the highest down.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// Index of the first range that ends after `seq`.
    #[inline]
    fn index_after(&self, seq: u64) -> usize {
        self.ranges.partition_point(|r| r.1 <= seq)
    }

    /// Adds `start..end` and calls `fresh` with each new part. Returns true if there was one.
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) -> bool {
        debug_assert!(start < end);
        // Most arrivals extend the highest range or are beyond it.
        match self.ranges.back_mut() {
            None => {
                self.ranges.push_back((start, end));
                fresh(start, end);
                return true;
            }
            Some(last) if start >= last.0 => {
                if start > last.1 {
                    self.ranges.push_back((start, end));
                    fresh(start, end);
                    return true;
                }
                if end <= last.1 {
                    return false;
                }
                fresh(last.1, end);
                last.1 = end;
                return true;
            }
            Some(_) => {}
        }
        // What an ACK reports again is mostly in the ranges below the highest one, since it reports the last changes.
        for range in self.ranges.iter().rev().take(4).skip(1) {
            if start >= range.0 {
                if end <= range.1 {
                    return false;
                }
                break;
            }
        }
        // `first` is the first range that touches start..end or lies after it.
        let first = self.ranges.partition_point(|r| r.1 < start);
        let mut merged = (start, end);
        let (mut at, mut last, mut any) = (start, first, false);
        while let Some(&(s, e)) = self.ranges.get(last)
            && s <= end
        {
            if at < s {
                fresh(at, s);
                any = true;
            }
            at = at.max(e);
            merged = (merged.0.min(s), merged.1.max(e));
            last += 1;
        }
        if at < end {
            fresh(at, end);
            any = true;
        }
        if last == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if last > first + 1 {
                self.ranges.drain(first + 1..last);
            }
        }
        any
    }

    /// Removes everything below `seq`; calls `removed` with each part.
    #[inline]
    pub(crate) fn remove_below(&mut self, seq: u64, mut removed: impl FnMut(u64, u64)) {
        while let Some(first) = self.ranges.front_mut() {
            if first.0 >= seq {
                return;
            }
            if first.1 > seq {
                removed(first.0, seq);
                first.0 = seq;
                return;
            }
            removed(first.0, first.1);
            self.ranges.pop_front();
        }
    }

    /// The range that contains `seq`.
    pub(crate) fn holding(&self, seq: u64) -> Option<(u64, u64)> {
        self.ranges.get(self.index_after(seq)).copied().filter(|r| r.0 <= seq)
    }

    /// The first gap at or after `seq` that lies below a member of the set, as `(start, end)`.
    pub(crate) fn gap_from(&self, seq: u64) -> Option<(u64, u64)> {
        let index = self.index_after(seq);
        let range = self.ranges.get(index)?;
        if range.0 > seq {
            return Some((seq, range.0));
        }
        self.ranges.get(index + 1).map(|next| (range.1, next.0))
    }

    /// The number of members in `from..to`.
    pub(crate) fn count_in(&self, from: u64, to: u64) -> u64 {
        let overlap = |r: &(u64, u64)| r.1.min(to) - r.0.max(from);
        self.ranges.iter().skip(self.index_after(from)).take_while(|r| r.0 < to).map(overlap).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        /// The ranges and a plain set of numbers agree after any sequence of operations.
        #[test]
        fn agrees_with_a_plain_set(operations in prop::collection::vec((0u64..60, 1u64..12, any::<bool>()), 1..60)) {
            let (mut ranges, mut plain) = (Ranges::new(), BTreeSet::new());
            for (seq, len, insert) in operations {
                if insert {
                    let mut fresh = Vec::new();
                    let any = ranges.insert(seq, seq + len, |s, e| fresh.extend(s..e));
                    let expected: Vec<u64> = (seq..seq + len).filter(|n| plain.insert(*n)).collect();
                    prop_assert_eq!(any, !expected.is_empty());
                    prop_assert_eq!(fresh, expected);
                } else {
                    let mut removed = Vec::new();
                    ranges.remove_below(seq, |s, e| removed.extend(s..e));
                    let above = plain.split_off(&seq);
                    prop_assert_eq!(removed, plain.into_iter().collect::<Vec<_>>());
                    plain = above;
                }
                let members: Vec<u64> = ranges.ranges.iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(&members, &plain.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                for at in [0, 7, 31, seq] {
                    let gap = (at..ranges.end()).find(|n| !plain.contains(n));
                    prop_assert_eq!(ranges.gap_from(at).map(|g| g.0), gap);
                    prop_assert_eq!(ranges.count_in(at, at + 20), plain.range(at..at + 20).count() as u64);
                    prop_assert_eq!(ranges.holding(at).is_some(), plain.contains(&at));
                    let first = (at..at + 9).find(|n| plain.contains(n));
                    let upto = first.and_then(|first| (first..at + 9).find(|n| !plain.contains(n)));
                    let overlap = first.map(|first| (first, upto.unwrap_or(at + 9)));
                    prop_assert_eq!(ranges.first_overlap(at, at + 9), overlap);
                    let touched = (at.saturating_sub(1)..at + 10).any(|n| plain.contains(&n));
                    prop_assert_eq!(ranges.touches(at, at + 9), touched);
                }
            }
        }
    }
}
