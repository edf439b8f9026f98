//! A window that the application does not fill for longer than a retransmission timeout says nothing about the path any
//! more. It decays towards the part that is used (RFC 2861 §3, in Linux's form: `tcp_cwnd_validate`,
//! `tcp_cwnd_application_limited`). In Linux each ACK that may open the window begins the time afresh
//! (`tcp_cong_avoid`), so the window decays only if none has come for a timeout.

use super::{Congestion, Window};
use crate::units::{Duration, Time};

/// How much of a window is used, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Unused {
    /// When the window was last full, or decayed, or an ACK came.
    since: Time,
    /// Maximum outstanding bytes since then.
    used: u64,
    /// Whether the window was full in this round trip, the maximum outstanding bytes in it, and the number whose
    /// acknowledgement ends it.
    was_full: bool,
    peak: u64,
    end: u64,
}

impl Unused {
    /// Counts the window as full at `now`, because it was reduced or restarted.
    pub(in crate::tcp) fn begin(&mut self, now: Time) {
        (self.since, self.used) = (now, 0);
    }

    /// Counts the time from `now`: an ACK has come, or the program waits for room while the window has some.
    #[inline(always)]
    pub(in crate::tcp) fn postpone(&mut self, now: Time) {
        self.since = now;
    }

    /// Records that a segment has been sent, with data from `una` to `max` outstanding then. Returns the used part of
    /// the window if the window was not full for `rto`.
    pub(in crate::tcp) fn on_sent(
        &mut self,
        now: Time,
        (una, max): (u64, u64),
        window: &Window,
        rto: Duration,
    ) -> Option<u64> {
        let out = max - una;
        let is_full = out + window.mss() > window.whole();
        if una >= self.end || is_full || (!self.was_full && out > self.peak) {
            (self.was_full, self.peak, self.end) = (is_full, out, max);
        }
        if self.was_full || (window.in_slow_start() && window.whole() < 2 * self.peak) {
            self.begin(now);
            return None;
        }
        self.used = self.used.max(out);
        (now.saturating_since(self.since) >= rto).then_some(self.used)
    }
}

impl Congestion {
    /// Called when the first segment of a flight is sent, `idle` after the last one.
    #[inline(always)]
    pub(in crate::tcp) fn on_idle(&mut self, now: Time, idle: Duration) {
        self.control.on_idle(now, idle);
    }

    /// Starts with a window of `segments` unless it is already smaller.
    pub(in crate::tcp) fn restart_after_idle(&mut self, segments: u32) {
        if self.window.exceeds(segments) {
            self.restart(segments);
        }
    }

    /// Halves the window for each of the `timeouts` of an idle time, but not below `segments` (RFC 2861). Three
    /// quarters of the old window become the threshold, unless that is already higher, so slow start returns to it.
    pub(in crate::tcp) fn decay_after_idle(&mut self, timeouts: u32, segments: u32) {
        let cwnd = self.window.segments();
        self.remember(cwnd);
        let decayed = cwnd.checked_shr(timeouts).unwrap_or(0);
        self.restart(decayed.max(segments.min(cwnd)));
    }

    /// Reduces the window by half of what the application leaves unused, above `used` bytes and above the initial
    /// window of `segments` (RFC 2861). Three quarters of the old window become the threshold, unless that is already
    /// higher.
    pub(in crate::tcp) fn decay_unused(&mut self, used: u64, segments: u32) {
        let (cwnd, used) = (self.window.segments(), used.div_ceil(self.window.mss()) as u32);
        let used = used.max(segments);
        if used < cwnd {
            self.remember(cwnd);
            self.window.set(f64::from((cwnd + used) / 2) * self.window.exact_mss());
        }
    }

    /// Sets the threshold to three quarters of a window of `cwnd` segments, unless it is already higher.
    fn remember(&mut self, cwnd: u32) {
        let kept = f64::from(cwnd / 2 + cwnd / 4) * self.window.exact_mss();
        self.window.set_ssthresh(self.window.exact_ssthresh().max(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// A window of 20 segments, above the threshold: 20 fill it for the rest of the round trip; then only 3 are used
    /// for a timeout.
    #[test]
    fn a_window_is_unused_for_a_timeout() {
        let mut window = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::default() }, 20);
        window.set_ssthresh(10_000.0);
        let rto = Duration::from_millis(300);
        let mut unused = Unused::default();
        let mut sent = |millis, una, max| unused.on_sent(at(millis), (una, max), &window, rto);
        assert_eq!(sent(0, 1, 20_001), None, "full");
        assert_eq!(sent(90, 18_001, 20_001), None, "of the same round trip");
        assert_eq!(sent(100, 20_001, 21_001), None);
        assert_eq!(sent(100, 20_001, 23_001), None);
        assert_eq!(sent(200, 23_001, 24_001), None);
        assert_eq!(sent(390, 24_001, 25_001), Some(3000), "300 ms after the last segment of a full window");
        assert_eq!(sent(400, 5_001, 25_001), None, "full again");
    }

    /// In slow start, using half of the window counts as using all of it.
    #[test]
    fn in_slow_start_more_than_half_is_all() {
        let window = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::default() }, 20);
        let rto = Duration::from_millis(300);
        for (out, used) in [(10_000, Some(10_000)), (11_000, None)] {
            assert_eq!(Unused::default().on_sent(at(500), (1, 1 + out), &window, rto), used);
        }
    }

    /// A window of 40 segments of 1000 bytes: the threshold becomes 30. The window is halved once, twice, but not below
    /// the initial 10.
    #[test]
    fn a_window_decays_while_idle() {
        for (timeouts, segments) in [(1, 20), (2, 10), (3, 10), (40, 10)] {
            let config = TcpConfig { mss: 1000, ..TcpConfig::default() };
            let mut congestion = Congestion::new(&config, true);
            congestion.restart(40);
            congestion.window.set_ssthresh(5000.0);
            congestion.decay_after_idle(timeouts, 10);
            assert_eq!((congestion.window.segments(), congestion.window.ssthresh()), (segments, 30_000), "{timeouts}");
        }
    }
}
