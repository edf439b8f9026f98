//! The persist timer: probes of a window that is closed or too small (RFC 9293 §3.8.6.1).

use crate::units::{Duration, Time};

/// The interval doubles this often.
const MAX_DOUBLINGS: u8 = 10;

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
    /// When the peer has last said that the window is closed: milliseconds, of which the upper bits do not count.
    heard: u32,
    probes: u8,
    /// Probes since the peer's last answer.
    unanswered: u8,
    /// A probe goes out now.
    due: bool,
}

impl Persist {
    pub(in crate::tcp) const fn new() -> Self {
        Persist { at: Time::NEVER, heard: 0, probes: 0, unanswered: 0, due: false }
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
        (self.probes, self.unanswered) = (0, 0);
        self.at = now + self.interval(intervals);
    }

    /// An ACK arrives while the window is closed.
    pub(in crate::tcp) fn on_answer(&mut self, now: Time) {
        (self.heard, self.unanswered) = (millis(now), 0);
    }

    /// How long ago the last one did, if that is less than 49 days.
    pub(in crate::tcp) fn silence(&self, now: Time) -> Duration {
        Duration::from_millis(millis(now).wrapping_sub(self.heard).into())
    }

    /// True if `max` probes have had no answer.
    pub(in crate::tcp) fn is_exhausted(&self, max: u8) -> bool {
        self.unanswered >= max
    }

    /// True if probes are as far apart as they get.
    pub(in crate::tcp) fn is_slowest(&self, intervals: Intervals) -> bool {
        self.interval(intervals) == intervals.max
    }

    /// Starts the interval afresh, while the timer is running.
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
            self.probes = self.probes.saturating_add(1);
            self.unanswered = self.unanswered.saturating_add(1);
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

fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 §3.8.6.1: as long as the peer answers the probes, the connection stays open. Three without an answer exhaust a limit of
    /// three; an answer, or another closed window, begins a new count.
    #[test]
    fn only_unanswered_probes_are_counted() {
        let rto = Intervals { first: Duration::from_secs(1), max: Duration::from_secs(60) };
        let mut persist = Persist::new();
        let probe = |persist: &mut Persist| persist.on_time(persist.deadline(), rto);
        for again in [false, true] {
            persist.start(Time::ZERO, rto);
            assert!(!persist.is_exhausted(1), "{again}");
            (0..2).for_each(|_| probe(&mut persist));
            assert!(!persist.is_exhausted(3));
            probe(&mut persist);
            assert!(persist.is_exhausted(3));
            if !again {
                persist.on_answer(persist.deadline());
                assert!(!persist.is_exhausted(1));
                (0..3).for_each(|_| probe(&mut persist));
            }
        }
    }

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

    /// A window that closes again is probed from the first interval on.
    #[test]
    fn each_closed_window_begins_with_the_first_interval() {
        let rto = Intervals { first: Duration::from_secs(1), max: Duration::from_secs(60) };
        let mut persist = Persist::new();
        for _ in 0..2 {
            persist.start(Time::ZERO, rto);
            assert_eq!(persist.deadline(), Time::ZERO + Duration::from_secs(1));
            (0..3).for_each(|_| persist.on_time(persist.deadline(), rto));
            assert!(persist.stop());
        }
    }
}
