//! How many packets a receiver keeps for repair frames: as many as its peer sends in the time by which a repair frame
//! may be late.
//!
//! The rates of the two directions may differ, and a receiver does not know its peer's rate, so it counts arrivals.

use alloc::collections::VecDeque;

use crate::slacp::config::SlacpConfig;
use crate::units::{Duration, Time};

/// Number of notes per span. A count may include up to one such fraction of a span too much.
const NOTES: u64 = 16;

/// The largest number of packets that have arrived within a span so far.
///
/// It never decreases, so an outage or pause does not shorten it. The first kept packet never moves back: the count
/// grows only by packets that arrived within the last span, and these are still kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    span: Duration,
    /// The number of packets at an instant, oldest first. The second entry is younger than the span.
    notes: VecDeque<(Time, u64)>,
    count: u64,
}

impl Kept {
    pub(super) fn new(span: Duration) -> Self {
        Kept { span, notes: VecDeque::new(), count: SlacpConfig::MIN_KEPT.into() }
    }

    /// The number of packets to keep.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Records an arrival: the number of packets was `before`, and is `after` now.
    pub(super) fn on_packet(&mut self, now: Time, before: u64, after: u64) {
        if self.span == Duration::ZERO {
            return;
        }
        let part = self.span.div_floor(NOTES);
        if self.notes.back().is_none_or(|&(at, _)| now >= at + part) {
            self.notes.push_back((now, before));
        }
        while self.notes.get(1).is_some_and(|&(at, _)| at + self.span <= now) {
            self.notes.pop_front();
        }
        let since = self.notes.front().map_or(before, |&(_, count)| count);
        self.count = self.count.max(after - since).min(SlacpConfig::MAX_KEPT.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// One packet per millisecond, then ten: the 16 notes of a span of 160 ms are 10 ms apart.
    #[test]
    fn as_many_as_come_in_a_span() {
        let mut kept = Kept::new(MS(1600));
        let mut send = |from: u64, until: u64, per_ms: u64, end: &mut u64| {
            for ms in from..until {
                for _ in 0..per_ms {
                    kept.on_packet(Time::ZERO + MS(ms), *end, *end + 1);
                    *end += 1;
                }
            }
            kept.count()
        };
        let mut end = 0;
        assert_eq!(send(0, 500, 1, &mut end), 1024, "the minimum");
        assert_eq!(send(500, 1100, 1, &mut end), 1100, "all, as long as all came within a span");
        // A note is at most 100 ms older than the span, and the packets of its own instant count.
        let count = send(1100, 9000, 1, &mut end);
        assert!((1600..=1701).contains(&count), "{count}");
        let count = send(9000, 12_000, 10, &mut end);
        assert!((16_000..=17_010).contains(&count), "{count}");
        assert_eq!(send(60_000, 65_000, 1, &mut end), count, "a pause and a lower rate change nothing");
        assert_eq!(send(65_000, 68_000, 100, &mut end), u64::from(SlacpConfig::MAX_KEPT));
    }

    /// The first kept packet never moves back, so a packet that was dropped is never needed again.
    #[test]
    fn the_first_that_is_kept_only_advances() {
        let (mut kept, mut first) = (Kept::new(MS(800)), 0);
        for end in 0..200_000u64 {
            // Bursts of 100 per millisecond, and pauses.
            let ms = end / 100 + end / 3000 * 47 % 400 + end / 40_000 * 3000;
            kept.on_packet(Time::ZERO + MS(ms), end, end + 1);
            let next = (end + 1).saturating_sub(kept.count());
            assert!(next >= first, "{next} after {first}");
            first = next;
        }
    }
}
