//! The boundaries of the segments in flight, for a sender that counts segments.
//!
//! Consecutive segments of one length form one entry, so a flight of full segments is a single entry, created and
//! dropped once. The boundaries are those of the first transmission.

use alloc::collections::VecDeque;

/// Segments of `each` sequence numbers, from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    start: u64,
    end: u64,
    each: u64,
}

impl Row {
    /// Number of segments with bytes at or above `from`.
    fn count_from(&self, from: u64) -> u64 {
        (self.end - from.max(self.start)).div_ceil(self.each)
    }
}

/// The segments in flight, in order, without gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundaries {
    rows: VecDeque<Row>,
    /// Number of segments in all rows but the first.
    behind: u64,
}

impl Boundaries {
    /// Records a new segment, which begins where the last one ended.
    pub(super) fn sent(&mut self, start: u64, end: u64) {
        let inner = self.rows.len() > 1;
        match self.rows.back_mut() {
            Some(last) if last.each == end - start && last.end == start => {
                last.end = end;
                self.behind += inner as u64;
            }
            _ => {
                self.behind += !self.rows.is_empty() as u64;
                self.rows.push_back(Row { start, end, each: end - start });
            }
        }
    }

    /// Drops the segments below `una`, which are acknowledged.
    pub(super) fn advance(&mut self, una: u64) {
        while let Some(first) = self.rows.front_mut() {
            if first.end > una {
                // Rows begin at the start of a segment, even if an ACK ends inside one.
                let whole = (una.max(first.start) - first.start) / first.each;
                first.start += whole * first.each;
                return;
            }
            self.rows.pop_front();
            self.behind -= self.rows.front().map_or(0, |next| next.count_from(next.start));
        }
    }

    /// Number of segments with bytes at or above `una`, the last value advanced to.
    pub(super) fn count(&self) -> u64 {
        self.rows.front().map_or(0, |first| first.count_from(first.start)) + self.behind
    }

    /// The end of the oldest `segments` segments.
    pub(super) fn end_of(&self, segments: u64) -> u64 {
        let mut left = segments;
        let mut end = 0;
        for row in &self.rows {
            let here = row.count_from(row.start);
            if left <= here {
                return row.start + left * row.each;
            }
            (left, end) = (left - here, row.end);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One entry per segment.
    #[derive(Default)]
    struct Literal(VecDeque<(u64, u64)>);

    impl Literal {
        fn advance(&mut self, una: u64) {
            while self.0.front().is_some_and(|(_, end)| *end <= una) {
                self.0.pop_front();
            }
        }
    }

    proptest! {
        #[test]
        fn rows_count_as_segments_do(ops in prop::collection::vec((0..4u8, 1..6u64, 0..10u64), 1..200)) {
            let (mut rows, mut literal) = (Boundaries::default(), Literal::default());
            let (mut una, mut max) = (1, 1);
            for (kind, length, share) in ops {
                if kind < 3 {
                    // Most are full segments of 5.
                    let length = if kind < 2 { 5 } else { length };
                    rows.sent(max, max + length);
                    literal.0.push_back((max, max + length));
                    max += length;
                } else {
                    una += (max - una) * share / 9;
                    rows.advance(una);
                    literal.advance(una);
                }
                prop_assert_eq!(rows.count(), literal.0.len() as u64);
                for n in 1..=literal.0.len() {
                    prop_assert_eq!(rows.end_of(n as u64), literal.0[n - 1].1);
                }
                prop_assert_eq!(rows.end_of(1000), literal.0.back().map_or(0, |last| last.1));
            }
        }
    }

    #[test]
    fn a_flight_of_full_segments_is_one_row() {
        let mut rows = Boundaries::default();
        (0..10_000).for_each(|n| rows.sent(1 + n * 1460, 1 + (n + 1) * 1460));
        assert_eq!((rows.rows.len(), rows.count()), (1, 10_000));
    }
}
