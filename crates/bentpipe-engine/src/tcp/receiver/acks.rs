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
    /// This end has answered data with data.
    answers: bool,
    /// The ACK that is due goes out before anything is read.
    first: bool,
    /// A twentieth of the round trip, once it is known, and a timeout of this end by it.
    patience: Duration,
    long_gap: Duration,
    /// When the last segment with data came.
    last: Time,
    /// ACKs beyond the same gap: the number that they acknowledge, how many were sent at once, and how many wait.
    gap: u64,
    prompt: u32,
    waiting: u32,
    /// ACKs still to be sent at once.
    quick: u32,
    /// The last segment came so soon after another that they are joined.
    is_joined: bool,
}

/// Number of ACKs per gap that are sent at once: enough duplicates for the sender to detect a loss.
const PROMPT: u32 = 3;

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
            first: false,
            patience: Duration::MAX,
            long_gap: Duration::MAX,
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
        self.patience = rtt.div_floor(20);
        self.long_gap = rtt + rtt.saturating_mul(2).max(MIN_VARIANCE);
    }

    /// Data has come beyond a gap at `rcv_nxt`, or one of several gaps was filled.
    pub(super) fn on_disorder(&mut self, now: Time, rcv_nxt: u64) {
        let Some(compress) = self.policy.compress else { return self.acknowledge_now() };
        if self.quick > 0 || self.waiting >= compress.max {
            return self.acknowledge_now();
        }
        if self.gap != rcv_nxt {
            (self.gap, self.prompt) = (rcv_nxt, 0);
        }
        if self.prompt < PROMPT {
            self.prompt += 1;
            return self.acknowledge_now();
        }
        self.waiting += 1;
        self.due = self.due.min(now + compress.delay.min(self.patience) + compress.slack);
    }

    /// True if an ACK of data beyond a gap waits for more.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The next ACK offers a larger window, so it does not wait, and does not count as a quick one: Linux sets the lowest bit of the count.
    pub(super) fn on_greater_window(&mut self) {
        self.quick |= 1;
    }

    /// A segment has arrived whose data was there already.
    pub(super) fn on_repetition(&mut self) {
        self.quick = self.quick.max(self.policy.quick);
    }

    /// A segment with data has arrived. After a gap that is longer than a timeout the sender has begun anew, or should have: it needs ACKs soon
    /// (Linux, `tcp_event_data_recv`).
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Time) {
        if self.data_segments == 0 {
            self.quick |= self.policy.quick;
        } else if now.saturating_since(self.last) > self.long_gap {
            self.quick = self.quick.max(self.policy.quick);
        }
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
        let quick = match self.policy.daass {
            Daass::Off => false,
            Daass::FirstSegments(n) => self.data_segments <= n,
            Daass::SlowStart => !self.had_gap,
        };
        if quick || self.quick > 0 || self.pending >= self.policy.every {
            self.acknowledge_soon();
        } else if self.due == NONE {
            self.due = match self.policy.tick {
                None => now + self.policy.delay,
                // The next expiry: one at this instant has passed.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            };
        }
    }

    /// The segment that has come in order ends what the peer sent together. The program reads it, and an ACK that an answer will not carry
    /// does not wait (Linux, `tcp_cleanup_rbuf`).
    pub(super) fn on_push(&mut self) {
        if self.policy.pushed && !self.answers && self.due != NONE {
            self.acknowledge_soon();
        }
    }

    /// The segment that has just come asks for an ACK, at once or together with what joins it.
    #[inline(always)]
    fn acknowledge_soon(&mut self) {
        if self.is_joined && self.pending < MAX_JOINED {
            self.due = self.due.min(self.last + self.policy.gro);
        } else {
            self.due = NOW;
        }
    }

    /// This end sends data.
    #[inline(always)]
    pub(super) fn on_answer(&mut self) {
        self.answers |= self.data_segments > 0;
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
        self.quick = self.quick.saturating_sub(1);
        self.first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Compress;

    fn at(micros: u64) -> Time {
        Time::from_nanos(1_000_000_000 + 1000 * micros)
    }

    fn schedule(max: u32) -> AckSchedule {
        let compress = Some(Compress { max, ..Compress::LINUX });
        AckSchedule::new(AckPolicy { compress, ..AckPolicy::DELAYED })
    }

    /// The times of ACKs where a segment comes every `spacing` microseconds beyond one gap, until `end`.
    fn acks(mut schedule: AckSchedule, spacing: u64, end: u64) -> Vec<u64> {
        let mut sent = Vec::new();
        for now in 0..end {
            if schedule.is_due(at(now)) {
                schedule.acknowledged();
                sent.push(now);
            }
            if now % spacing == 0 {
                schedule.on_disorder(at(now), 1);
                if schedule.is_due(at(now)) {
                    schedule.acknowledged();
                    sent.push(now);
                }
            }
        }
        sent
    }

    /// 20 Mbit/s: a segment per 600 us. Three at once, then each ACK waits 1.1 ms from the first segment that it tells of: of 1800 and
    /// 2400 us, of 3000 and 3600, ...
    #[test]
    fn acks_beyond_a_gap_wait_for_each_other() {
        assert_eq!(acks(schedule(44), 600, 5000), [0, 600, 1200, 2900, 4100]);
        let mut near = schedule(44);
        // A twentieth of 8 ms, and the slack: 500 us.
        near.on_round_trip(Duration::from_millis(8));
        assert_eq!(acks(near, 300, 3000), [0, 300, 600, 1400, 2000, 2600]);
    }

    /// Two wait, and the third sends all; with none that may wait each goes at once.
    #[test]
    fn no_more_wait_than_may() {
        assert_eq!(acks(schedule(2), 100, 1100), [0, 100, 200, 500, 800]);
        assert_eq!(acks(schedule(0), 100, 600), [0, 100, 200, 300, 400, 500]);
    }

    /// A round trip of 100 ms: the first timeout is 300 ms. Three ACKs at once at the start, and three after a pause of 301 ms; not after 300.
    #[test]
    fn a_long_gap_makes_acks_quick() {
        for (pause, at_once) in [(300_000, [true, true, true, false, true, false]), (300_001, [true; 6])] {
            let mut schedule = AckSchedule::new(AckPolicy { quick: 3, ..AckPolicy::DELAYED });
            schedule.on_round_trip(Duration::from_millis(100));
            let acks = [0, 0, 0, pause, pause, pause].map(|micros| {
                schedule.on_data(at(micros));
                schedule.on_in_order(at(micros), false);
                let is_due = schedule.is_due(at(micros));
                if is_due {
                    schedule.acknowledged();
                }
                is_due
            });
            assert_eq!(acks, at_once, "{pause}");
        }
    }

    /// Packets of five segments are acknowledged by two, two and one; of an end that answers, only every other segment is.
    #[test]
    fn the_end_of_a_packet_is_acknowledged() {
        for (answers, expected) in [(false, [2, 4, 5, 7, 9, 10]), (true, [2, 4, 6, 8, 10, 12])] {
            let mut schedule = AckSchedule::new(AckPolicy { pushed: true, ..AckPolicy::DELAYED });
            let mut acks = Vec::new();
            for segment in 1..=12 {
                schedule.on_data(at(0));
                schedule.on_in_order(at(0), false);
                if segment % 5 == 0 {
                    schedule.on_push();
                }
                if schedule.is_due(at(0)) {
                    schedule.acknowledged();
                    acks.push(segment);
                }
                if answers {
                    schedule.on_answer();
                }
            }
            assert_eq!(acks[..6], expected, "{answers}");
        }
    }

    /// A segment every 2 us: the second asks for an ACK, which goes out 20 us later; a quick ACK of the first one goes at once. Those that
    /// come every 30 us are acknowledged by twos, and of a hundred at one instant 44 at once.
    #[test]
    fn segments_that_come_together_are_acknowledged_together() {
        let gro = Duration::from_micros(20);
        for (quick, spacing, expected) in [
            (0, 2, [(22, 11), (44, 11), (66, 11)].as_slice()),
            (1, 2, &[(0, 1), (24, 11), (46, 11), (68, 11)]),
            (0, 30, &[(30, 2), (90, 2)]),
            (0, 0, &[(0, 44), (0, 44)]),
        ] {
            let mut schedule = AckSchedule::new(AckPolicy { gro, quick, ..AckPolicy::DELAYED });
            let (mut acks, mut pending) = (Vec::new(), 0);
            for now in 0..100 {
                let mut acknowledge = |schedule: &mut AckSchedule, pending: &mut u32| {
                    if schedule.is_due(at(now)) {
                        acks.push((now, core::mem::take(pending)));
                        schedule.acknowledged();
                    }
                };
                acknowledge(&mut schedule, &mut pending);
                let come = if spacing == 0 { 100 * u32::from(now == 0) } else { u32::from(now % spacing == 0) };
                for _ in 0..come {
                    pending += 1;
                    schedule.on_data(at(now));
                    schedule.on_in_order(at(now), false);
                    acknowledge(&mut schedule, &mut pending);
                }
            }
            assert_eq!(&acks[..expected.len()], expected, "{quick} {spacing}");
        }
    }

    /// Each gap has three ACKs at once.
    #[test]
    fn another_gap_begins_anew() {
        let mut schedule = schedule(44);
        let at_once = |rcv_nxt| {
            schedule.on_disorder(at(0), rcv_nxt);
            let is_due = schedule.is_due(at(0));
            schedule.acknowledged();
            is_due
        };
        assert_eq!([1, 1, 1, 1, 2, 2, 2, 2].map(at_once), [true, true, true, false, true, true, true, false]);
    }
}
