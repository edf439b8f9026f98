//! Pacing: segments leave at a rate instead of in bursts.
//!
//! The rate is set by the congestion control, or is a multiple of a window per round trip ([`Pacing::gains`]). Segments
//! that leave together form a packet. It has one segment or, with a quantum, several, as on hosts whose network card
//! divides data into segments. The next packet waits for the time that this one takes at the rate.

use alloc::boxed::Box;

use crate::units::{Duration, Rate, Time};

/// How segments are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// The pacing rate in percent of a window per round trip, for a control that sets no rate: below half of the
    /// threshold, and from there on. `None`: ACKs alone clock the sender.
    pub gains: Option<(u32, u32)>,
    /// Segments that take at most this long at the rate leave together. At least two do; below 1.2 Mbit/s, one if the control
    /// sets the rate. Zero: each segment leaves by itself.
    pub quantum: Duration,
    /// A packet that leaves late shortens the wait of the next one, by at most half of its own time. Off: the lost time
    /// is not made up.
    pub credit: bool,
    /// The number of segments at the start that are not paced.
    pub unpaced: u32,
    /// The maximum rate of payload (Linux's SO_MAX_PACING_RATE). A control that sets no rate and has no gains then uses
    /// [`Pacing::LINUX_GAINS`].
    pub max_rate: Option<Rate>,
}

impl Pacing {
    /// Each segment by itself, if the control sets a rate.
    pub const PLAIN: Pacing =
        Pacing { gains: None, quantum: Duration::ZERO, credit: false, unpaced: 0, max_rate: None };

    /// Linux, tcp_output.c. The quantum is 1/1024 of a second (`tcp_tso_autosize`). `tcp_update_skb_after_send` gives
    /// the credit and leaves the first ten segments unpaced, as the queue discipline fq did before it. BBR v1 paces
    /// this way, and so does any control behind fq.
    pub const LINUX: Pacing =
        Pacing { gains: None, quantum: Duration::from_nanos(976_562), credit: true, unpaced: 10, max_rate: None };

    /// tcp_pacing_ss_ratio and tcp_pacing_ca_ratio of Linux.
    pub const LINUX_GAINS: (u32, u32) = (200, 120);
}

/// Maximum bytes that leave together: what a network card takes (Linux's `sk_gso_max_size`), 64 kB without a byte and without 320 bytes for
/// headers (`MAX_TCP_HEADER`).
pub(in crate::tcp) const MAX_TOGETHER: u64 = 65_215;
/// Minimum number of segments that leave together.
pub(in crate::tcp) const MIN_TOGETHER: u64 = 2;
/// Below this rate a packet has one segment (Linux's `bbr_min_tso_segs`).
const SLOW: u64 = 1_200_000;

/// Minimum number of segments that leave together at a rate that a control has set.
pub(in crate::tcp) fn min_together(rate: Rate) -> u64 {
    if rate.bits_per_second() < SLOW { 1 } else { MIN_TOGETHER }
}

/// What leaves together.
#[derive(Clone, Copy, Debug)]
struct Together {
    quantum: Duration,
    /// The control sets the rate.
    is_set: bool,
    /// When they left, when they could have left, the bytes so far, and how many more segments fit.
    at: Time,
    could: Time,
    bytes: u64,
    left: u64,
}

impl Together {
    /// Adds a segment that leaves at `now`. `next`: when a packet may leave.
    fn add(&mut self, now: Time, next: Time, bytes: u64, rate: Rate) {
        if self.at != now || self.left == 0 {
            let fitting = rate.bytes_in_floor(self.quantum).min(MAX_TOGETHER) / bytes.max(1);
            let min = if self.is_set { min_together(rate) } else { MIN_TOGETHER };
            let left = fitting.max(min);
            *self = Together { at: now, could: next, bytes: 0, left, ..*self };
        }
        self.bytes += bytes;
        self.left -= 1;
    }

    fn goes_on(&self, now: Time) -> bool {
        self.at == now && self.left > 0
    }
}

/// Delays segments to a rate. Unused if there is no rate.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Pacer {
    /// The earliest time at which the next packet may leave.
    next: Time,
    /// True if a segment was delayed.
    is_holding: bool,
    keeps_credit: bool,
    /// Segments that may still leave at once.
    unpaced: u32,
    /// If there is a quantum.
    together: Option<Box<Together>>,
}

impl Pacer {
    /// `is_set`: the control sets the rate.
    pub(in crate::tcp) fn new(pacing: &Pacing, is_set: bool) -> Self {
        let quantum = pacing.quantum;
        let together = || Box::new(Together { quantum, is_set, at: Time::NEVER, could: Time::ZERO, bytes: 0, left: 0 });
        Pacer {
            next: Time::ZERO,
            is_holding: false,
            keeps_credit: pacing.credit,
            unpaced: pacing.unpaced,
            together: (quantum > Duration::ZERO).then(together),
        }
    }

    /// True if a segment may leave now. If not, [`Self::deadline`] gives the time.
    #[inline(always)]
    pub(in crate::tcp) fn may_send(&mut self, now: Time) -> bool {
        self.is_holding = now < self.next && !self.together.as_ref().is_some_and(|packet| packet.goes_on(now));
        !self.is_holding
    }

    /// True if a segment was delayed.
    #[inline(always)]
    pub(in crate::tcp) fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// The earliest time, from `now` on, at which a segment may leave.
    pub(in crate::tcp) fn earliest(&self, now: Time) -> Time {
        self.next.max(now)
    }

    /// When the delayed segment may leave; [`Time::NEVER`] if none was delayed.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        if self.is_holding { self.next } else { Time::NEVER }
    }

    /// Ends a delay that is over, even if nothing is sent then. Returns true if there was one.
    pub(in crate::tcp) fn on_time(&mut self, now: Time) -> bool {
        let is_over = self.deadline() <= now;
        self.is_holding &= !is_over;
        is_over
    }

    /// Records payload bytes that leave now.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self, now: Time, bytes: u16, rate: Rate) {
        self.unpaced = self.unpaced.saturating_sub(1);
        if self.unpaced > 0 {
            self.next = self.next.max(now);
            return;
        }
        let (mut could, mut bytes) = (self.next, u64::from(bytes));
        if let Some(packet) = &mut self.together {
            packet.add(now, could, bytes, rate);
            (could, bytes) = (packet.could, packet.bytes);
        }
        let takes = rate.time_for_ceil(bytes);
        let late = if self.keeps_credit { now.saturating_since(could) } else { Duration::ZERO };
        self.next = could.max(now) + (takes - late.min(takes.div_floor(2)));
    }
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
