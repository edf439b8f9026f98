//! A line with a recorded rate: a list of instants, at each of which it carries up to 1500 bytes.
//!
//! The format is mahimahi's packet-delivery trace (Netravali et al. 2015, "Mahimahi: Accurate Record-and-Replay for
//! HTTP", USENIX ATC, and the manual page mm-link(1)): "each line gives a timestamp in milliseconds and represents an
//! opportunity for one 1500-byte packet to be drained from the bottleneck queue"; "bytes", not packets, are counted, so
//! small packets share an opportunity and a packet may take several; "opportunities are wasted if bytes are unavailable
//! at the instant of the delivery opportunity". The trace repeats when it is over; its last instant is its length.
//!
//! A packet that arrives at the instant of an opportunity can use it. As the queue is FIFO, a packet's opportunities
//! are known when it arrives: those after the last packet's or, after a pause, the first one from now on.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::units::{Duration, Rate, Time};

/// Bytes per opportunity.
const OPPORTUNITY: u64 = 1500;
const NANOS: u64 = 1_000_000;

/// Why a list of instants is not a valid trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTrace {
    /// There are no instants.
    Empty,
    /// The instant with this index, from 0, is earlier than the previous one.
    Backwards(usize),
    /// The last instant is zero, so the trace has no length.
    NoLength,
    /// The instant with this index, from 0, is later than [`RateTrace::MAX_MILLIS`].
    TooLate(usize),
}

impl core::fmt::Display for BadTrace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BadTrace::Empty => f.write_str("a trace has no instants"),
            BadTrace::Backwards(n) => write!(f, "instant {n} is earlier than the previous one"),
            BadTrace::NoLength => f.write_str("a trace ends at 0 ms, so it has no length"),
            BadTrace::TooLate(n) => write!(f, "instant {n} is later than {} ms", RateTrace::MAX_MILLIS),
        }
    }
}

impl core::error::Error for BadTrace {}

/// Instants of delivery, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    millis: Vec<u64>,
}

impl RateTrace {
    /// Maximum length of a trace: about eleven days.
    pub const MAX_MILLIS: u64 = 1_000_000_000;

    /// A trace from a list of instants in order.
    ///
    /// # Errors
    /// Returns [`BadTrace`] if the instants are not a valid trace.
    pub fn new(millis: Vec<u64>) -> Result<RateTrace, BadTrace> {
        if let Some(at) = millis.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(BadTrace::Backwards(at + 1));
        }
        if let Some(at) = millis.iter().position(|&at| at > Self::MAX_MILLIS) {
            return Err(BadTrace::TooLate(at));
        }
        match millis.last() {
            None => Err(BadTrace::Empty),
            Some(0) => Err(BadTrace::NoLength),
            Some(_) => Ok(RateTrace { millis }),
        }
    }

    /// The instants.
    pub fn millis(&self) -> &[u64] {
        &self.millis
    }

    /// The rate if all opportunities are used, rounded down to bits per second; at least 1 bit/s.
    pub fn mean(&self) -> Rate {
        let bits = self.millis.len() as u128 * u128::from(OPPORTUNITY * 8 * 1000) / u128::from(self.length());
        Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX).max(1)).expect("not zero")
    }

    /// Bytes of all opportunities until `end`.
    pub(super) fn capacity(&self, end: Time) -> u64 {
        self.from(end + Duration::from_ticks(1)) * OPPORTUNITY
    }

    /// When a line that follows this trace has sent `bytes`, if it sends nothing else from `start` on.
    pub(super) fn sent_by(&self, start: Time, bytes: u64) -> Time {
        self.at(self.from(start) + bytes.max(1).div_ceil(OPPORTUNITY) - 1)
    }

    fn length(&self) -> u64 {
        self.millis[self.millis.len() - 1]
    }

    /// The instant of an opportunity, numbered over all repetitions.
    fn at(&self, index: u64) -> Time {
        let count = self.millis.len() as u64;
        let millis = (index / count) * self.length() + self.millis[(index % count) as usize];
        Time::from_nanos(millis.saturating_mul(NANOS))
    }

    /// The number of the first opportunity that is not before `now`.
    fn from(&self, now: Time) -> u64 {
        let tick = Duration::from_millis(1).as_ticks();
        let (length, count) = (self.length() * tick, self.millis.len() as u64);
        let (mut round, mut within) = (now.as_ticks() / length, now.as_ticks() % length);
        if within == 0 && round > 0 {
            // The last instant of a repetition is the start of the next.
            (round, within) = (round - 1, length);
        }
        round * count + self.millis.partition_point(|&millis| millis * tick < within) as u64
    }
}

/// A line that follows a trace.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    trace: Arc<RateTrace>,
    /// The last used opportunity, numbered over all repetitions, its instant, and its remaining bytes.
    last: u64,
    at: Time,
    left: u64,
}

impl Opportunities {
    pub(super) fn new(trace: Arc<RateTrace>) -> Self {
        let at = trace.at(0);
        Opportunities { trace, last: 0, at, left: OPPORTUNITY }
    }

    /// The start and duration of the transmission of a packet of `bytes` bytes that arrives now.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit(&mut self, now: Time, bytes: u32) -> (Time, Duration) {
        let mut wanted = u64::from(bytes.max(1));
        if self.at < now {
            self.last = self.trace.from(now);
            self.left = OPPORTUNITY;
        } else if self.left == 0 {
            self.last += 1;
            self.left = OPPORTUNITY;
        }
        let begun = self.trace.at(self.last);
        if wanted > self.left {
            wanted -= self.left;
            let more = wanted.div_ceil(OPPORTUNITY);
            self.last += more;
            self.left = more * OPPORTUNITY;
        }
        self.left -= wanted;
        self.at = self.trace.at(self.last);
        (begun, self.at - begun)
    }
}

#[cfg(test)]
#[path = "opportunities_tests.rs"]
mod tests;
