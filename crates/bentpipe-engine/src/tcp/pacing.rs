//! Pacing: segments leave at a rate instead of in bursts.

use crate::units::{Rate, Time};

/// Delays segments to the congestion control's rate. Not used without a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Pacer {
    /// The earliest departure of the next segment.
    next: Time,
    /// True if a segment was delayed.
    is_holding: bool,
    /// Segments that may still leave at once.
    free: u32,
}

impl Pacer {
    /// The first `free` segments leave at once.
    pub(in crate::tcp) fn after(free: u32) -> Self {
        Pacer { free, ..Pacer::default() }
    }

    /// True if a segment may leave now. If not, [`Self::deadline`] gives the time.
    #[inline(always)]
    pub(in crate::tcp) fn may_send(&mut self, now: Time) -> bool {
        self.is_holding = now < self.next;
        !self.is_holding
    }

    /// When a segment may leave, at `now` or later.
    pub(in crate::tcp) fn earliest(&self, now: Time) -> Time {
        self.next.max(now)
    }

    /// When the delayed segment may leave; [`Time::NEVER`] if none was delayed.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        if self.is_holding { self.next } else { Time::NEVER }
    }

    /// Ends a delay that is over, even if nothing is sent then. Returns whether one was.
    pub(in crate::tcp) fn on_time(&mut self, now: Time) -> bool {
        let is_over = self.deadline() <= now;
        self.is_holding &= !is_over;
        is_over
    }

    /// Records payload bytes that leave now. Unused time is lost: no burst follows a pause.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self, now: Time, bytes: u16, rate: Rate) {
        self.free = self.free.saturating_sub(1);
        if self.free > 0 {
            return;
        }
        self.next = self.next.max(now) + rate.time_for_ceil(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_at_the_rate() {
        let rate = Rate::from_bits_per_second(8_000).expect("not zero");
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut pacer = Pacer::default();
        assert!(pacer.may_send(at(5)));
        // 2000 bytes take two seconds.
        pacer.sent(at(5), 2000, rate);
        assert!(!pacer.may_send(at(6)));
        assert_eq!(pacer.deadline(), at(7));
        assert!(pacer.may_send(at(7)));
        assert_eq!(pacer.deadline(), Time::NEVER);
        // A pause gives no credit.
        pacer.sent(at(20), 1000, rate);
        assert!(!pacer.may_send(at(20)));
        assert_eq!(pacer.deadline(), at(21));
    }

    #[test]
    fn a_delay_ends_with_nothing_to_send() {
        let rate = Rate::from_bits_per_second(8_000).expect("not zero");
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut pacer = Pacer::default();
        pacer.sent(at(5), 1000, rate);
        assert!(!pacer.may_send(at(5)));
        assert!(!pacer.on_time(at(5)));
        assert_eq!(pacer.deadline(), at(6));
        assert!(pacer.on_time(at(6)));
        assert_eq!(pacer.deadline(), Time::NEVER);
        assert!(!pacer.on_time(at(7)));
    }

    /// The first three leave at once; the fourth waits for the time of the third.
    #[test]
    fn the_first_segments_may_be_free() {
        let rate = Rate::from_bits_per_second(8_000).expect("not zero");
        let now = Time::from_nanos(5_000_000_000);
        let mut pacer = Pacer::after(3);
        for _ in 0..3 {
            assert!(pacer.may_send(now));
            pacer.sent(now, 2000, rate);
        }
        assert!(!pacer.may_send(now));
        assert_eq!(pacer.deadline(), now + crate::units::Duration::from_secs(2));
    }
}
