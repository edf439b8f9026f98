//! The retransmission timer (RFC 6298 §5), and the segment whose round trip is being measured (§3).

use crate::rtt::{RtoConfig, RttEstimator};
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
        }
    }

    /// Stops the timer. The estimate stays.
    pub(in crate::tcp) fn reset(&mut self) {
        (self.at, self.timed, self.retries) = (Time::NEVER, None, 0);
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

    /// True if it has expired as often as allowed.
    pub(in crate::tcp) fn is_exhausted(&self) -> bool {
        self.retries >= self.max_retries
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

    /// Restarts with twice the timeout.
    pub(in crate::tcp) fn back_off(&mut self, now: Time) {
        self.rtt.back_off();
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
        self.rtt.reset_backoff();
        self.rtt.sample(sent, now);
        true
    }

    /// A partial ACK: it ends the backoff if it covers what was timed, and gives no sample.
    pub(in crate::tcp) fn on_partial_ack(&mut self, ack: u64) {
        if self.timed.is_some_and(|(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
    }
}
