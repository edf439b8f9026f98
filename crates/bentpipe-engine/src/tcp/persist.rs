//! The persist timer: probes of a window that is closed or too small (RFC 9293 §3.8.6.1).

use crate::units::{Duration, Time};

/// Maximum number of times that the interval doubles.
const MAX_DOUBLINGS: u32 = 10;

/// The first interval between two probes, and the longest one.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Intervals {
    pub(in crate::tcp) first: Duration,
    pub(in crate::tcp) max: Duration,
}

/// When the next probe is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Persist {
    /// [`Time::NEVER`] while the timer is off.
    at: Time,
    probes: u32,
    /// A probe goes out now.
    due: bool,
}

impl Persist {
    pub(in crate::tcp) const fn new() -> Self {
        Persist { at: Time::NEVER, probes: 0, due: false }
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

    /// Starts the timer.
    pub(in crate::tcp) fn start(&mut self, now: Time, intervals: Intervals) {
        self.probes = 0;
        self.at = now + self.interval(intervals);
    }

    /// Restarts the interval if the timer is running.
    pub(in crate::tcp) fn restart(&mut self, now: Time, intervals: Intervals) {
        self.at = now + self.interval(intervals);
    }

    /// Stops the timer because the window is open. Returns true if it was running.
    #[inline(always)]
    pub(in crate::tcp) fn stop(&mut self) -> bool {
        let was_running = self.is_running();
        self.at = Time::NEVER;
        was_running
    }

    /// Makes a probe due if the timer has expired.
    pub(in crate::tcp) fn on_time(&mut self, now: Time, intervals: Intervals) {
        if self.at <= now {
            self.probes += 1;
            self.due = true;
            self.at = now + self.interval(intervals);
        }
    }

    /// Makes a probe due now.
    pub(in crate::tcp) fn probe_now(&mut self) {
        self.due = true;
    }

    /// True if a probe is due.
    #[inline(always)]
    pub(in crate::tcp) fn is_due(&self) -> bool {
        self.due
    }

    /// True if a probe is due; clears it.
    #[inline(always)]
    pub(in crate::tcp) fn take_due(&mut self) -> bool {
        self.due && core::mem::take(&mut self.due)
    }

    fn interval(&self, Intervals { first, max }: Intervals) -> Duration {
        first.saturating_mul(1 << self.probes.min(MAX_DOUBLINGS)).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_doubles_up_to_a_minute() {
        let rto = Intervals { first: Duration::from_secs(1), max: Duration::from_secs(60) };
        let mut persist = Persist::new();
        persist.start(Time::ZERO, rto);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (before, at) = (persist.deadline(), persist.deadline());
            persist.on_time(at.saturating_sub(Duration::from_nanos(1)), rto);
            assert_eq!((persist.deadline(), persist.take_due()), (before, false));
            persist.on_time(at, rto);
            assert!(persist.take_due());
            let next = persist.deadline();
            assert_eq!(next - at, Duration::from_secs((2 * seconds).min(60)));
        }
    }
}
