//! Pacing: segments leave at a rate instead of in bursts.

use crate::units::{Rate, Time};

/// Holds segments back to the rate that the congestion control names. Without a rate it is not asked.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Pacer {
    /// The next segment leaves at this instant at the earliest.
    next: Time,
    /// Something was held back.
    is_holding: bool,
}

impl Pacer {
    /// True if a segment may leave now. If not, [`Self::deadline`] names the instant.
    #[inline(always)]
    pub(in crate::tcp) fn may_send(&mut self, now: Time) -> bool {
        self.is_holding = now < self.next;
        !self.is_holding
    }

    /// When the segment that was held back may leave; [`Time::NEVER`] if none was.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        if self.is_holding { self.next } else { Time::NEVER }
    }

    /// Bytes of payload leave now. Time that was not used is lost: a pause is not followed by a burst.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self, now: Time, bytes: u16, rate: Rate) {
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
}
