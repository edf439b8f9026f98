//! Gaps in the bytes that have passed: data that was lost, or is late, before the tap.

use std::collections::BTreeMap;

/// Maximum number of open gaps.
const MAX_HOLES: usize = 1 << 16;

/// A part of a gap that arrived later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Nanoseconds since the gap was first seen.
    pub(crate) after: i64,
}

/// Open gaps, and the outcome of earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    open: BTreeMap<u64, (u64, i64)>,
    pub(crate) fills: Vec<Fill>,
}

impl Holes {
    /// Records that the bytes from `start` to `end` were skipped.
    pub(super) fn open(&mut self, start: u64, end: u64, at: i64) {
        if self.open.len() < MAX_HOLES {
            self.open.insert(start, (end, at));
        }
    }

    /// Records that these bytes pass. Returns true if they were missing.
    pub(super) fn fill(&mut self, start: u64, end: u64, at: i64) -> bool {
        let before = self.open.range(..start).next_back().filter(|(_, (stop, _))| *stop > start).map(|(&key, _)| key);
        let hit: Vec<u64> = self.open.range(before.unwrap_or(start)..end).map(|(&key, _)| key).collect();
        for key in &hit {
            let (stop, since) = self.open.remove(key).expect("just found");
            if *key < start {
                self.open.insert(*key, (start, since));
            }
            if stop > end {
                self.open.insert(end, (stop, since));
            }
            self.fills.push(Fill { start: start.max(*key), end: end.min(stop), after: at - since });
        }
        !hit.is_empty()
    }

    /// Records that everything up to `acked` has been received. Returns the number of bytes in gaps below it, which the
    /// capture has missed.
    pub(super) fn acknowledged(&mut self, acked: u64) -> u64 {
        let mut missed = 0;
        while let Some(entry) = self.open.first_entry().filter(|entry| entry.get().0 <= acked) {
            let start = *entry.key();
            missed += entry.remove().0 - start;
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_filled_from_the_middle() {
        let mut holes = Holes::default();
        holes.open(100, 200, 5);
        assert!(holes.fill(120, 150, 9));
        assert!(!holes.fill(120, 150, 10));
        assert!(holes.fill(90, 120, 11));
        assert_eq!(holes.fills, [Fill { start: 120, end: 150, after: 4 }, Fill { start: 100, end: 120, after: 6 }]);
        assert_eq!(holes.acknowledged(199), 0);
        assert_eq!(holes.acknowledged(200), 50);
    }
}
