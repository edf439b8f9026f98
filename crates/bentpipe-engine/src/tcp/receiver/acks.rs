//! When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use crate::tcp::variant::{AckPolicy, Daass};
use crate::units::{Duration, Time};

/// An ACK is due at once.
const NOW: Time = Time::ZERO;
/// No ACK is due.
const NONE: Time = Time::NEVER;

/// The delayed ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSchedule {
    policy: AckPolicy,
    /// [`NOW`], [`NONE`], or when a delayed ACK must be sent.
    due: Time,
    /// In-order segments not acknowledged yet.
    pending: u32,
    /// Segments with data so far, for DAASS.
    data_segments: u32,
    had_gap: bool,
    /// The ACK that is due goes out before anything is read.
    first: bool,
    /// A twentieth of the round trip, once it is known.
    patience: Duration,
    /// ACKs beyond the same gap: the number that they acknowledge, how many were sent at once, and how many wait.
    gap: u64,
    prompt: u32,
    waiting: u32,
}

/// ACKs beyond a gap that are sent at once: as many as tell the sender of a loss.
const PROMPT: u32 = 3;
/// At most this many ACKs become one (Linux's `tcp_comp_sack_nr`).
const COMPRESSED: u32 = 44;

impl AckSchedule {
    pub(super) fn new(mut policy: AckPolicy) -> Self {
        if policy.delay == Duration::ZERO && policy.tick.is_none() {
            // Without a delay the ACK is immediate.
            policy.every = 1;
        }
        AckSchedule {
            policy,
            due: NONE,
            pending: 0,
            data_segments: 0,
            had_gap: false,
            first: false,
            patience: Duration::MAX,
            gap: 0,
            prompt: 0,
            waiting: 0,
        }
    }

    /// The round trip is known.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.patience = rtt.div_floor(20);
    }

    /// Data has come beyond a gap at `rcv_nxt`, or one of several gaps was filled; `apart`: it lies apart from all that has come. Then an
    /// ACK that waits goes out, because an ACK has room for few ranges.
    pub(super) fn on_disorder(&mut self, now: Time, rcv_nxt: u64, apart: bool) {
        let Some(compress) = self.policy.compress else { return self.acknowledge_now() };
        if self.gap != rcv_nxt {
            (self.gap, self.prompt) = (rcv_nxt, 0);
        }
        if self.prompt < PROMPT || self.waiting == COMPRESSED || apart && self.waiting > 0 {
            self.prompt = (self.prompt + 1).min(PROMPT);
            return self.acknowledge_now();
        }
        self.waiting += 1;
        self.due = self.due.min(now + compress.min(self.patience));
    }

    /// A segment with data has arrived.
    #[inline(always)]
    pub(super) fn on_data(&mut self) {
        self.data_segments = self.data_segments.saturating_add(1);
    }

    /// A segment has arrived beyond a gap.
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
        if quick || self.pending >= self.policy.every {
            self.due = NOW;
        } else if self.due == NONE {
            self.due = match self.policy.tick {
                None => now + self.policy.delay,
                // The next expiry: one at this instant has passed.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            };
        }
    }

    /// A gap has been filled.
    pub(super) fn on_filled(&mut self) {
        self.first = self.policy.before_reading;
    }

    /// True if an ACK is due that goes out before anything is read.
    #[inline(always)]
    pub(super) fn is_first(&self) -> bool {
        self.first
    }

    /// Forces an immediate ACK.
    #[inline(always)]
    pub(super) fn acknowledge_now(&mut self) {
        self.due = NOW;
    }

    /// True if no ACK is due or delayed.
    pub(super) fn is_silent(&self) -> bool {
        self.due == NONE
    }

    #[inline(always)]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    /// When the delayed ACK must be sent; [`Time::NEVER`] if none is delayed.
    #[inline(always)]
    pub(super) fn deadline(&self) -> Time {
        if self.due == NOW { Time::NEVER } else { self.due }
    }

    /// An ACK is sent.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self) {
        self.due = NONE;
        self.pending = 0;
        self.waiting = 0;
        self.first = false;
    }
}
