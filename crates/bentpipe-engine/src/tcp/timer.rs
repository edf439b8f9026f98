//! The retransmission timer (RFC 6298 §5), and the segment whose round trip is being measured (§3).

use crate::rtt::{RtoConfig, RtoTiming, RttEstimator};
use crate::units::{Duration, Time};

/// The timer for retransmitting the oldest segment, and its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::tcp) struct RetransmissionTimer {
    /// When it expires; [`Time::NEVER`] while it is off.
    at: Time,
    /// The segment being timed: its end, and when it was sent.
    timed: Option<(u64, Time)>,
    /// Times that the timer has expired since new data was acknowledged.
    retries: u32,
    max_retries: u32,
    linear_syn_timeouts: u8,
    /// It follows segments: [`RtoTiming::Segments`].
    by_segments: bool,
    pub(in crate::tcp) rtt: RttEstimator,
}

impl RetransmissionTimer {
    pub(in crate::tcp) fn new(config: RtoConfig) -> Self {
        RetransmissionTimer {
            rtt: RttEstimator::new(config),
            at: Time::NEVER,
            timed: None,
            retries: 0,
            max_retries: config.max_retries,
            linear_syn_timeouts: config.linear_syn_timeouts,
            by_segments: config.timing == RtoTiming::Segments,
        }
    }

    /// Stops the timer. The estimate stays.
    pub(in crate::tcp) fn reset(&mut self) {
        (self.at, self.timed, self.retries) = (Time::NEVER, None, 0);
    }

    /// True if it follows segments ([`RtoTiming::Segments`]).
    #[inline(always)]
    pub(in crate::tcp) fn is_by_segments(&self) -> bool {
        self.by_segments
    }

    /// The peer sends no SACK blocks, so there is no RACK: it follows ACKs.
    pub(in crate::tcp) fn without_sack(&mut self) {
        self.by_segments = false;
    }

    /// True if a segment is being timed.
    pub(in crate::tcp) fn is_timing(&self) -> bool {
        self.timed.is_some()
    }

    /// When it expires; [`Time::NEVER`] while it is off.
    #[inline(always)]
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.at
    }

    #[inline(always)]
    pub(in crate::tcp) fn is_running(&self) -> bool {
        self.at != Time::NEVER
    }

    /// Starts or restarts the timer.
    #[inline(always)]
    pub(in crate::tcp) fn start(&mut self, now: Time) {
        self.at = self.rtt.deadline(now);
    }

    //= RFC 6298 §5.2, §5.3: off when all is acknowledged, restarted by an ACK of new data
    #[inline(always)]
    pub(in crate::tcp) fn restart(&mut self, now: Time, is_outstanding: bool) {
        self.at = if is_outstanding { self.rtt.deadline(now) } else { Time::NEVER };
    }

    /// Times that the timer has expired since new data was acknowledged.
    pub(in crate::tcp) fn retries(&self) -> u32 {
        self.retries
    }

    /// True if it has expired as often as allowed; `is_first_syn`: for a SYN without an answer.
    pub(in crate::tcp) fn is_exhausted(&self, is_first_syn: bool) -> bool {
        let more = if is_first_syn { u32::from(self.linear_syn_timeouts) } else { 0 };
        self.retries >= self.max_retries.saturating_add(more)
    }

    /// New data was acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn forget_retries(&mut self) {
        self.retries = 0;
    }

    /// Counts an expiry.
    pub(in crate::tcp) fn count_expiry(&mut self) {
        self.retries = self.retries.saturating_add(1);
    }

    /// Restarts with twice the timeout; with the same after the first timeouts of a SYN without an answer, if so set.
    pub(in crate::tcp) fn back_off(&mut self, now: Time, is_first_syn: bool) {
        if !is_first_syn || self.retries > u32::from(self.linear_syn_timeouts) {
            self.rtt.back_off();
        }
        self.start(now);
    }

    /// Times the segment that ends at `end` and is sent now, unless another is being timed.
    #[inline(always)]
    pub(in crate::tcp) fn time(&mut self, end: u64, now: Time) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    //= RFC 6298 §3: "RTT samples MUST NOT be made using segments that were retransmitted"
    /// Data from `seq` on is retransmitted.
    #[inline(always)]
    pub(in crate::tcp) fn retransmitted(&mut self, seq: u64) {
        if self.timed.is_some_and(|(end, _)| seq < end) {
            self.timed = None;
        }
    }

    /// Stops timing.
    pub(in crate::tcp) fn forget_timed(&mut self) {
        self.timed = None;
    }

    /// Everything before `ack` is acknowledged; `sample` is the round trip measured by timestamps. Returns whether the
    /// estimate has a new sample.
    #[inline(always)]
    pub(in crate::tcp) fn on_ack(&mut self, now: Time, ack: u64, sample: Option<Duration>) -> bool {
        let sent = match (sample, self.timed) {
            (Some(elapsed), _) => now.saturating_sub(elapsed),
            (None, Some((end, sent))) if ack >= end => sent,
            _ => return false,
        };
        self.timed = None;
        self.measure(sent, now);
        true
    }

    /// A segment was delivered after `elapsed`, though no new data is acknowledged or losses are being repaired.
    pub(in crate::tcp) fn on_delivery(&mut self, now: Time, elapsed: Duration) {
        self.measure(now.saturating_sub(elapsed), now);
    }

    /// Takes a round trip, which ends the backoff.
    #[inline(always)]
    fn measure(&mut self, sent: Time, now: Time) {
        self.rtt.reset_backoff();
        self.rtt.sample(sent, now);
    }

    /// A partial ACK: it ends the backoff if it covers what was timed, and gives no sample.
    pub(in crate::tcp) fn on_partial_ack(&mut self, ack: u64) {
        if self.timed.is_some_and(|(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's documentation of `tcp_syn_retries`: with 6 of them and `tcp_syn_linear_timeouts` 4 the last retransmission is after
    /// 67 s, and the connection is given up after 131 s.
    #[test]
    fn a_syn_is_repeated_as_linux_says() {
        let config = RtoConfig { max: Duration::from_secs(120), max_retries: 6, ..RtoConfig::RFC6298 };
        let expiries = |linear_syn_timeouts, is_first_syn| {
            let mut timer = RetransmissionTimer::new(RtoConfig { linear_syn_timeouts, ..config });
            timer.start(Time::ZERO);
            let mut at = Vec::new();
            loop {
                at.push(timer.deadline().as_nanos() / 1_000_000_000);
                if timer.is_exhausted(is_first_syn) {
                    return at;
                }
                timer.count_expiry();
                timer.back_off(timer.deadline(), is_first_syn);
            }
        };
        assert_eq!(expiries(4, true), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131]);
        // RFC 6298 §5.5 doubles each, and so does Linux after an answer.
        let doubled = [1, 3, 7, 15, 31, 63, 127];
        assert_eq!((expiries(0, true), expiries(4, false)), (doubled.to_vec(), doubled.to_vec()));
    }
}
