//! When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use super::Receiver;
use super::adaptive::Adaptive;
use crate::tcp::ecn::Urgency;
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
    /// In-order segments not acknowledged yet; with `policy.adapt`, bytes.
    pending: u32,
    /// Number of segments with data so far, for DAASS.
    data_segments: u32,
    had_gap: bool,
    /// This end has answered data with data; with `policy.adapt`, soon after that data.
    answers: bool,
    /// `due` is set by a delayed ACK; if that time comes, the ACK has waited in vain.
    is_delayed: bool,
    /// The ACK that is due leaves before the program reads anything.
    first: bool,
    /// The round trip, once it is known.
    rtt: Duration,
    /// Used with `policy.adapt`.
    adaptive: Adaptive,
    /// When the last segment with data arrived, if the policy asks for the time between segments.
    last: Time,
    /// ACKs beyond the same gap: their acknowledgement number, how many were sent at once, and how many wait.
    gap: u64,
    prompt: u8,
    waiting: u16,
    /// How many ACKs are still to be sent at once.
    quick: u32,
    /// The last segment followed another so closely that they are joined.
    is_joined: bool,
}

/// Number of ACKs per gap that are sent at once: enough duplicates for the sender to detect a loss.
const PROMPT: u8 = 3;

/// Maximum number of segments that receive offload joins: 64 kB of them.
const MAX_JOINED: u32 = 44;

/// How many ACKs leave at once after a mark, with `policy.adapt`.
const QUICK_AFTER_MARK: u32 = 2;

/// Minimum difference between a Linux timeout and the round trip.
const MIN_VARIANCE: Duration = Duration::from_millis(200);

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
            answers: false,
            is_delayed: false,
            first: false,
            rtt: Duration::MAX,
            adaptive: Adaptive::new(),
            last: Time::ZERO,
            gap: 0,
            prompt: 0,
            waiting: 0,
            quick: 0,
            is_joined: false,
        }
    }

    /// Takes the measured round trip.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The retransmission timeout of this end, estimated from the round trip.
    fn timeout(&self) -> Duration {
        self.rtt + self.rtt.saturating_mul(2).max(MIN_VARIANCE)
    }

    /// True if ACKs adapt to the traffic.
    #[inline(always)]
    pub(super) fn adapts(&self) -> bool {
        self.policy.adapt
    }

    /// How many ACKs are sent at once when the policy asks for quick ACKs; `window` is the offered window.
    fn quick_acks(&self, window: u64) -> u32 {
        if self.policy.adapt { self.quick_within(window, self.policy.quick) } else { self.policy.quick }
    }

    /// At most `most`, and half as many as the full segments that the window holds.
    fn quick_within(&self, window: u64, most: u32) -> u32 {
        let max = match window / (2 * u64::from(self.adaptive.full())) {
            0 => 2,
            segments => u32::try_from(segments).unwrap_or(u32::MAX),
        };
        most.min(max)
    }

    /// True if ACKs are still to be sent at once.
    #[inline(always)]
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Stops sending ACKs at once.
    pub(super) fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// Takes data that arrived beyond a gap at `rcv_nxt`, or that filled one of several gaps.
    pub(super) fn on_disorder(&mut self, now: Time, rcv_nxt: u64) {
        let Some(compress) = self.policy.compress else { return self.acknowledge_now() };
        if self.acks_at_once() || u32::from(self.waiting) >= compress.max {
            return self.acknowledge_now();
        }
        if self.gap != rcv_nxt {
            (self.gap, self.prompt) = (rcv_nxt, 0);
        }
        if self.prompt < PROMPT {
            self.prompt += 1;
            return self.acknowledge_now();
        }
        self.waiting = self.waiting.saturating_add(1);
        self.due = self.due.min(now + compress.delay.min(self.rtt.div_floor(20)) + compress.slack);
    }

    /// True if an ACK of data beyond a gap waits for more.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Makes the next ACK leave at once because it offers a larger window. It does not count as a quick ACK: Linux sets
    /// the lowest bit of the count.
    pub(super) fn on_greater_window(&mut self) {
        self.quick |= 1;
    }

    /// Takes a segment whose data had already arrived; `window` is the offered window.
    pub(super) fn on_repetition(&mut self, window: u64) {
        self.quick = self.quick.max(self.quick_acks(window));
        if self.policy.adapt {
            self.answers = false;
            self.adaptive.reset(self.policy.delay);
        }
    }

    /// Takes a segment whose ECN field or flags concern the ACKs; `window` is the offered window. With `policy.adapt` two ACKs leave at
    /// once after the first mark, since the peer's window may become small, and the one of its reduction does (Linux, `__tcp_ecn_check_ce`,
    /// `tcp_ecn_accept_cwr`).
    pub(super) fn heed(&mut self, urgency: Urgency, window: u64) {
        match urgency {
            Urgency::Now => self.acknowledge_now(),
            Urgency::Marked if self.policy.adapt => {
                self.quick = self.quick.max(self.quick_within(window, QUICK_AFTER_MARK));
                self.answers = false;
                self.adaptive.reset(self.policy.delay);
            }
            Urgency::Reduced if self.policy.adapt => self.acknowledge_now(),
            Urgency::None | Urgency::Marked | Urgency::Reduced => {}
        }
    }

    /// With `policy.adapt`: takes a segment with `bytes` of new data beyond a gap; a full segment has at most `mss`
    /// bytes.
    pub(super) fn adapt_beyond_gap(&mut self, bytes: u32, mss: u16) {
        self.adaptive.on_segment(bytes, mss);
    }

    /// With `policy.adapt`: takes an in-order segment. `window` is the offered window.
    pub(super) fn adapt(&mut self, now: Time, bytes: u32, mss: u16, window: u64) {
        self.adaptive.on_segment(bytes, mss);
        let gap = now.saturating_since(self.last);
        if self.adaptive.on_next(gap, self.policy.delay, self.timeout()) {
            let quick = self.quick_acks(window);
            // The lowest bit is set if the window has grown.
            self.quick = if self.quick > quick { self.quick } else { quick | (self.quick & 1) };
        }
        self.note_time(now);
        self.data_segments = self.data_segments.saturating_add(1);
    }

    /// Takes a segment with data. After a pause longer than a timeout, the sender has restarted, or should have, and
    /// needs ACKs soon (Linux, `tcp_event_data_recv`).
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Time) {
        if self.policy.quick > 0 || self.policy.gro > Duration::ZERO {
            self.look_for_pause(now);
            self.note_time(now);
        }
        self.data_segments = self.data_segments.saturating_add(1);
    }

    #[inline(never)]
    fn look_for_pause(&mut self, now: Time) {
        if self.data_segments == 0 {
            self.quick |= self.policy.quick;
        } else if now.saturating_since(self.last) > self.timeout() {
            self.quick = self.quick.max(self.policy.quick);
        }
    }

    /// Records when a segment with data arrives.
    #[inline(always)]
    fn note_time(&mut self, now: Time) {
        if self.policy.gro > Duration::ZERO {
            self.is_joined = self.data_segments > 0 && now.saturating_since(self.last) <= self.policy.gro;
        }
        self.last = now;
    }

    /// Takes a segment that arrived beyond a gap.
    pub(super) fn on_gap(&mut self) {
        self.had_gap = true;
    }

    /// Takes an in-order segment. `is_long`: it has more payload than a full segment, so it was joined from several on
    /// the way.
    #[inline(always)]
    pub(super) fn on_in_order(&mut self, now: Time, is_long: bool) {
        //= RFC 5681 §4.2: "an ACK SHOULD be generated for at least every second full-sized segment"
        self.pending += 1 + is_long as u32;
        if self.is_starting() || self.quick > 0 || self.pending >= self.policy.every {
            self.acknowledge_soon();
        } else if self.due == NONE {
            self.due = match self.policy.tick {
                None => now + self.policy.delay,
                // The next expiry; one at this very instant is already over.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            };
        }
    }

    /// With `policy.adapt`: takes an in-order segment with `bytes` of data. Bytes count: if more are pending than
    /// `every` less one full segments carry, they are acknowledged at once if the offered window does not shrink,
    /// otherwise once the program has read. `shrinks` tells whether it shrinks, given the number of unacknowledged
    /// bytes.
    pub(super) fn on_in_order_adaptively(&mut self, now: Time, bytes: u32, shrinks: impl FnOnce(u64) -> bool) {
        self.pending = self.pending.saturating_add(bytes);
        let is_asked = self.is_starting() || self.acks_at_once();
        if is_asked || (self.is_much_pending() && !shrinks(u64::from(self.pending))) {
            return self.acknowledge_soon();
        }
        let wait = self.adaptive.wait(self.policy.delay, self.rtt);
        if self.due == NONE {
            self.due = now + wait;
        } else if self.due <= now + wait.div_floor(4) {
            return self.acknowledge_now();
        } else {
            self.due = self.due.min(now + wait);
        }
        self.is_delayed = true;
    }

    /// With `policy.adapt`: records that the program has read; `is_all`: everything that had arrived. Data not
    /// acknowledged since then need not wait.
    pub(super) fn on_read(&mut self, is_all: bool) {
        if self.due != NONE
            && (self.is_much_pending() || (is_all && self.policy.pushed && self.adaptive.ends(self.answers)))
        {
            self.acknowledge_soon();
        }
    }

    /// True if more bytes are pending than `every` less one segments carry.
    fn is_much_pending(&self) -> bool {
        self.pending > self.adaptive.full().saturating_mul(self.policy.every.saturating_sub(1))
    }

    /// True if each segment is acknowledged because the sender is starting.
    #[inline(always)]
    fn is_starting(&self) -> bool {
        match self.policy.daass {
            Daass::Off => false,
            Daass::FirstSegments(n) => self.data_segments <= n,
            Daass::SlowStart => !self.had_gap,
        }
    }

    /// True while ACKs are sent at once.
    #[inline(always)]
    fn acks_at_once(&self) -> bool {
        self.quick > 0 && !(self.policy.adapt && self.answers)
    }

    /// Records that the in-order segment ends a burst of the peer. The program reads it, and an ACK that no answer will
    /// carry does not wait (Linux, `tcp_cleanup_rbuf`).
    pub(super) fn on_push(&mut self) {
        if self.policy.adapt {
            return self.adaptive.on_push();
        }
        if self.policy.pushed && !self.answers && self.due != NONE {
            self.acknowledge_soon();
        }
    }

    /// Acknowledges the segment that has just arrived, at once or together with the segments that join it.
    #[inline(always)]
    fn acknowledge_soon(&mut self) {
        let max = if self.policy.adapt { MAX_JOINED.saturating_mul(self.adaptive.full()) } else { MAX_JOINED };
        if self.is_joined && self.pending < max {
            self.is_delayed = false;
            self.due = self.due.min(self.last + self.policy.gro);
        } else {
            self.due = NOW;
        }
    }

    /// Records that this end sends data.
    #[inline(always)]
    pub(super) fn on_answer(&mut self, now: Time) {
        self.answers |= match self.policy.adapt {
            false => self.data_segments > 0,
            true => self.adaptive.is_soon(now.saturating_since(self.last)),
        };
    }

    /// Records that a gap has been filled.
    pub(super) fn on_filled(&mut self) {
        self.first = self.policy.before_reading;
    }

    /// True if an ACK is due that leaves before the program reads anything.
    #[inline(always)]
    pub(super) fn is_first(&self) -> bool {
        self.first
    }

    /// Forces an immediate ACK.
    #[inline(always)]
    pub(super) fn acknowledge_now(&mut self) {
        self.due = NOW;
    }

    /// Acknowledges the peer's SYN. Linux does so before its program writes anything.
    pub(super) fn acknowledge_syn(&mut self) {
        (self.due, self.first) = (NOW, self.policy.before_reading);
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

    /// Records that an ACK is sent.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self, now: Time) {
        if self.policy.adapt {
            self.adapt_to_ack(now);
        } else {
            self.quick = self.quick.saturating_sub(1);
        }
        self.due = NONE;
        self.pending = 0;
        self.waiting = 0;
        self.first = false;
    }

    /// Adapts to a delayed ACK that has waited in vain: either this end does not answer, or the delay is too short.
    fn adapt_to_ack(&mut self, now: Time) {
        if self.is_delayed && self.due != NOW && self.due <= now && self.waiting == 0 {
            if core::mem::take(&mut self.answers) {
                self.adaptive.reset(self.policy.delay);
            } else {
                self.adaptive.on_timer(self.policy.delay);
            }
        }
        if self.quick > 0 && self.due != NONE {
            self.quick -= 1;
            if self.quick == 0 {
                self.adaptive.reset(self.policy.delay);
            }
        }
        self.is_delayed = false;
        self.adaptive.acknowledged();
    }
}

impl Receiver {
    /// Acknowledges the SYN that ends an active opening.
    pub(in crate::tcp) fn acknowledge_syn(&mut self) {
        self.acks.acknowledge_syn();
    }

    /// Takes a segment whose ECN field or flags concern its acknowledgement.
    pub(in crate::tcp) fn heed(&mut self, urgency: Urgency) {
        self.acks.heed(urgency, self.window.offered(self.rcv_nxt));
    }
}

#[cfg(test)]
#[path = "acks_tests.rs"]
mod tests;
