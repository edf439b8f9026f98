//! When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use crate::tcp::variant::{AckPolicy, Daass};
use crate::units::{Duration, Time};

/// When an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    No,
    Now,
    By(Time),
}

/// The delayed ACK.
#[derive(Clone, Debug)]
pub(super) struct AckSchedule {
    policy: AckPolicy,
    due: Due,
    /// In-order segments not acknowledged yet.
    pending: u32,
    /// Segments with data so far, for DAASS.
    data_segments: u32,
    had_gap: bool,
}

impl AckSchedule {
    pub(super) fn new(policy: AckPolicy) -> Self {
        AckSchedule { policy, due: Due::No, pending: 0, data_segments: 0, had_gap: false }
    }

    /// A segment with data has come.
    #[inline(always)]
    pub(super) fn on_data(&mut self) {
        self.data_segments = self.data_segments.saturating_add(1);
    }

    /// A segment has come beyond a gap.
    pub(super) fn on_gap(&mut self) {
        self.had_gap = true;
    }

    /// A segment has come in order; `is_long`: it has more than a full segment's payload, so it was joined from several on
    /// its way.
    #[inline(always)]
    pub(super) fn on_in_order(&mut self, now: Time, is_long: bool) {
        //= RFC 5681 §4.2: "an ACK SHOULD be generated for at least every second full-sized segment"
        self.pending += 1 + is_long as u32;
        let quick = match self.policy.daass {
            Daass::Off => false,
            Daass::FirstSegments(n) => self.data_segments <= n,
            Daass::SlowStart => !self.had_gap,
        };
        let at_once = self.policy.delay == Duration::ZERO && self.policy.tick.is_none();
        if quick || at_once || self.pending >= self.policy.every {
            self.due = Due::Now;
        } else if self.due == Due::No {
            self.due = Due::By(match self.policy.tick {
                None => now + self.policy.delay,
                // The next expiry: one that falls on this instant has passed.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            });
        }
    }

    /// An ACK must go out now, whatever else.
    #[inline(always)]
    pub(super) fn acknowledge_now(&mut self) {
        self.due = Due::Now;
    }

    #[inline(always)]
    pub(super) fn is_due(&self, now: Time) -> bool {
        match self.due {
            Due::No => false,
            Due::Now => true,
            Due::By(at) => at <= now,
        }
    }

    /// When the delayed ACK must go out.
    #[inline(always)]
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.due {
            Due::By(at) => Some(at),
            Due::No | Due::Now => None,
        }
    }

    /// An ACK goes out.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self) {
        self.due = Due::No;
        self.pending = 0;
    }
}
