//! When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use super::adaptive::Adaptive;
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
    /// In-order segments not acknowledged yet; with `policy.adapt` bytes.
    pending: u32,
    /// Segments with data so far, for DAASS.
    data_segments: u32,
    had_gap: bool,
    /// This end has answered data with data; with `policy.adapt` soon after it.
    answers: bool,
    /// `due` is when a delayed ACK has waited in vain.
    is_delayed: bool,
    /// The ACK that is due goes out before anything is read.
    first: bool,
    /// The round trip, once it is known.
    rtt: Duration,
    /// With `policy.adapt`.
    adaptive: Adaptive,
    /// When the last segment with data came.
    last: Time,
    /// ACKs beyond the same gap: the number that they acknowledge, how many were sent at once, and how many wait.
    gap: u64,
    prompt: u8,
    waiting: u16,
    /// ACKs still to be sent at once.
    quick: u32,
    /// The last segment came so soon after another that they are joined.
    is_joined: bool,
}

/// Number of ACKs per gap that are sent at once: enough duplicates for the sender to detect a loss.
const PROMPT: u8 = 3;

/// The most segments that receive offload joins: 64 kB of them.
const MAX_JOINED: u32 = 44;

/// The least that a timeout of Linux is longer than the round trip.
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

    /// The round trip is known.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// A timeout of this end, by the round trip.
    fn timeout(&self) -> Duration {
        self.rtt + self.rtt.saturating_mul(2).max(MIN_VARIANCE)
    }

    /// ACKs adapt to the traffic.
    #[inline(always)]
    pub(super) fn adapts(&self) -> bool {
        self.policy.adapt
    }

    /// How many ACKs are sent at once where the policy asks for it; `window` is offered.
    fn quick_acks(&self, window: u64) -> u32 {
        if !self.policy.adapt {
            return self.policy.quick;
        }
        let max = match window / (2 * u64::from(self.adaptive.full())) {
            0 => 2,
            segments => u32::try_from(segments).unwrap_or(u32::MAX),
        };
        self.policy.quick.min(max)
    }

    /// True if ACKs are still to be sent at once.
    #[inline(always)]
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// No more ACKs are sent at once.
    pub(super) fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// Data has come beyond a gap at `rcv_nxt`, or one of several gaps was filled.
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

    /// The next ACK offers a larger window, so it does not wait, and does not count as a quick one: Linux sets the lowest bit of the count.
    pub(super) fn on_greater_window(&mut self) {
        self.quick |= 1;
    }

    /// A segment has arrived whose data was there already; `window` is offered.
    pub(super) fn on_repetition(&mut self, window: u64) {
        self.quick = self.quick.max(self.quick_acks(window));
        if self.policy.adapt {
            self.answers = false;
            self.adaptive.reset(self.policy.delay);
        }
    }

    /// With `policy.adapt`: a segment with `bytes` of new data has arrived beyond a gap; at most `mss` bytes are full.
    pub(super) fn adapt_beyond_gap(&mut self, bytes: u32, mss: u16) {
        self.adaptive.on_segment(bytes, mss);
    }

    /// The same for one in order. `window` is offered.
    pub(super) fn adapt(&mut self, now: Time, bytes: u32, mss: u16, window: u64) {
        self.adaptive.on_segment(bytes, mss);
        let gap = now.saturating_since(self.last);
        if self.adaptive.on_next(gap, self.policy.delay, self.timeout()) {
            let quick = self.quick_acks(window);
            // The lowest bit is set where the window has grown.
            self.quick = if self.quick > quick { self.quick } else { quick | (self.quick & 1) };
        }
        self.count(now);
    }

    /// A segment with data has arrived. After a gap that is longer than a timeout the sender has begun anew, or should have: it needs ACKs soon
    /// (Linux, `tcp_event_data_recv`).
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Time) {
        if self.data_segments == 0 {
            self.quick |= self.policy.quick;
        } else if now.saturating_since(self.last) > self.timeout() {
            self.quick = self.quick.max(self.policy.quick);
        }
        self.count(now);
    }

    /// Counts a segment with data.
    #[inline(always)]
    fn count(&mut self, now: Time) {
        if self.policy.gro > Duration::ZERO {
            self.is_joined = self.data_segments > 0 && now.saturating_since(self.last) <= self.policy.gro;
        }
        self.last = now;
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
        if self.is_starting() || self.quick > 0 || self.pending >= self.policy.every {
            self.acknowledge_soon();
        } else if self.due == NONE {
            self.due = match self.policy.tick {
                None => now + self.policy.delay,
                // The next expiry: one at this instant has passed.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            };
        }
    }

    /// With `policy.adapt`: a segment with `bytes` of data has come in order. Bytes are counted, and more than are full are acknowledged at once
    /// if the window offered does not shrink, which `shrinks` says given how many bytes are not acknowledged; otherwise once the program has read.
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

    /// With `policy.adapt`: the program has read, all that there was if `is_all`. What has not been acknowledged since need not wait.
    pub(super) fn on_read(&mut self, is_all: bool) {
        if self.due != NONE
            && (self.is_much_pending() || (is_all && self.policy.pushed && self.adaptive.ends(self.answers)))
        {
            self.acknowledge_soon();
        }
    }

    /// More bytes are pending than one segment less than `every` carry.
    fn is_much_pending(&self) -> bool {
        self.pending > self.adaptive.full().saturating_mul(self.policy.every.saturating_sub(1))
    }

    /// Each segment is acknowledged, since the sender is starting.
    #[inline(always)]
    fn is_starting(&self) -> bool {
        match self.policy.daass {
            Daass::Off => false,
            Daass::FirstSegments(n) => self.data_segments <= n,
            Daass::SlowStart => !self.had_gap,
        }
    }

    /// ACKs are sent at once for now.
    #[inline(always)]
    fn acks_at_once(&self) -> bool {
        self.quick > 0 && !(self.policy.adapt && self.answers)
    }

    /// The segment that has come in order ends what the peer sent together. The program reads it, and an ACK that an answer will not carry
    /// does not wait (Linux, `tcp_cleanup_rbuf`).
    pub(super) fn on_push(&mut self) {
        if self.policy.adapt {
            return self.adaptive.on_push();
        }
        if self.policy.pushed && !self.answers && self.due != NONE {
            self.acknowledge_soon();
        }
    }

    /// The segment that has just come asks for an ACK, at once or together with what joins it.
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

    /// This end sends data.
    #[inline(always)]
    pub(super) fn on_answer(&mut self, now: Time) {
        self.answers |= match self.policy.adapt {
            false => self.data_segments > 0,
            true => self.adaptive.is_soon(now.saturating_since(self.last)),
        };
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

    /// A delayed ACK that has waited in vain tells that this end does not answer, or else that the delay is too short.
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

#[cfg(test)]
#[path = "acks_tests.rs"]
mod tests;
