//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: End to end congestion avoidance on a global Internet", IEEE JSAC 13(8), 1995).
//!
//! Once per round trip, the sender compares its actual rate with the rate that it would have without a queue. The
//! difference, times the minimum round trip, is its share of the queue in segments. The window grows by one segment if
//! the share is below [`ALPHA`] and shrinks by one if it is above [`BETA`]. Slow start doubles the window every other
//! round trip and ends at [`GAMMA`].
//!
//! The round trip of a round is the minimum of its samples, so that a delayed ACK does not count as a queue; the paper
//! uses the round trip of one segment. Losses reduce the window as in Reno. The paper's own retransmission mechanism is
//! not implemented: RACK (RFC 8985), which the row uses, retransmits as early.

use super::reno::Reno;
use super::{AckSample, CongestionRules, Window};
use crate::tcp::config::TcpConfig;
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::Duration;

/// Queued segments below which the window grows, above which it shrinks, and at which slow start ends (§5.2,
/// "Vegas-1,3").
const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;
const GAMMA: f64 = 1.0;

/// The state of Vegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    reno: Reno,
    /// BaseRTT: the minimum round trip so far.
    base_rtt: Option<Duration>,
    /// The sequence number whose ACK ends the round, and the round's minimum round trip so far.
    round_end: u64,
    min_rtt: Option<Duration>,
    /// True if slow start opens the window in this round.
    opens: bool,
}

impl Vegas {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Vegas { reno: Reno::new(config), base_rtt: None, round_end: 0, min_rtt: None, opens: true }
    }

    fn measure(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// The segments queued during the round that ends, with a window of `cwnd`: (Expected - Actual) * BaseRTT.
    fn queued(&self, cwnd: f64) -> Option<f64> {
        let (base, rtt) = (self.base_rtt?.as_secs_f64(), self.min_rtt?.as_secs_f64());
        Some(cwnd * (rtt - base) / rtt)
    }

    /// Adjusts the window at the end of a round trip.
    fn judge(&mut self, window: &mut Window) {
        let mss = window.exact_mss();
        let cwnd = window.exact() / mss;
        let Some(queued) = self.queued(cwnd) else { return };
        if window.in_slow_start() {
            if queued > GAMMA {
                window.set_ssthresh(window.exact());
            }
            self.opens = !self.opens;
            return;
        }
        if queued < ALPHA {
            window.set((cwnd + 1.0) * mss);
        } else if queued > BETA {
            // No minimum is needed: the window is larger than its part in the queue.
            window.set((cwnd - 1.0) * mss);
            // A window that shrinks is no longer in slow start.
            window.set_ssthresh(window.exact_ssthresh().min(window.exact()));
        }
    }
}

impl CongestionRules for Vegas {
    const NAME: &'static str = "Vegas";

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        self.measure(ack);
        if ack.snd_una > self.round_end {
            self.judge(window);
            (self.round_end, self.min_rtt) = (ack.snd_max, None);
        }
        if window.in_slow_start() && self.opens {
            start.on_ack(window, ack);
        }
    }

    fn on_unused(&mut self, _: &mut Window, _: &mut SlowStart, ack: &AckSample) {
        self.measure(ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        self.reno.on_loss(window, loss);
        self.opens = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1000;

    fn vegas(segments: u32) -> (Vegas, Window, SlowStart) {
        let config = TcpConfig { mss: MSS, ..TcpConfig::default() };
        (Vegas::new(&config), Window::new(&config, segments), SlowStart::new(&config.variant))
    }

    /// Runs a round trip of `rtt` milliseconds, with an ACK for each segment of the window; the last one ends it.
    fn round(vegas: &mut Vegas, window: &mut Window, start: &mut SlowStart, una: &mut u64, rtt: u64) {
        let segments = u64::from(window.segments());
        let (first, end) = (*una, *una + segments * u64::from(MSS));
        while *una < end {
            *una += u64::from(MSS);
            let snd_max = if *una == first + u64::from(MSS) { end } else { *una + window.cwnd() };
            let rtt = Some(Duration::from_millis(rtt));
            let ack = AckSample { acked: u64::from(MSS), snd_una: *una, snd_max, rtt, ..AckSample::default() };
            vegas.on_ack(window, start, &ack);
        }
    }

    /// Base 100 ms, a window of 20. At 105 ms, 20 * 5/105 = 0.95 are queued: one more. Then 21 * 10/110 = 1.9: no
    /// change. 21 * 20/120 = 3.5: one less.
    #[test]
    fn the_window_keeps_one_to_three_segments_queued() {
        let (mut vegas, mut window, _) = vegas(20);
        window.set_ssthresh(20_000.0);
        vegas.base_rtt = Some(Duration::from_millis(100));
        for (rtt, segments) in [(105, 21), (110, 21), (120, 20), (104, 21)] {
            vegas.min_rtt = Some(Duration::from_millis(rtt));
            vegas.judge(&mut window);
            assert_eq!((window.segments(), window.in_slow_start()), (segments, false), "{rtt} ms");
        }
    }

    /// Without a queue, the window doubles every other round trip: 4, 4, 8, 8, 16. A window of 16 with a round trip of
    /// 106 instead of 100 ms has 16 * 6/106 = 0.9 segments queued. With 108 ms it has 1.2, and slow start is over.
    #[test]
    fn slow_start_opens_every_other_round() {
        let (mut vegas, mut window, mut start) = vegas(4);
        let (mut una, mut windows) = (1, Vec::new());
        for _ in 0..5 {
            windows.push(window.segments());
            round(&mut vegas, &mut window, &mut start, &mut una, 100);
        }
        assert_eq!(windows, [4, 4, 8, 8, 16]);
        for (rtt, is_over) in [(106, false), (108, true)] {
            vegas.min_rtt = Some(Duration::from_millis(rtt));
            vegas.judge(&mut window);
            assert_eq!((window.segments(), !window.in_slow_start()), (16, is_over), "{rtt} ms");
        }
    }

    /// A loss halves the window of 20 (RFC 5681, equation 4).
    #[test]
    fn a_loss_halves_the_window() {
        use crate::tcp::loss::FoundBy;
        let (mut vegas, mut window, _) = vegas(20);
        let loss = LossReport { found_by: FoundBy::DuplicateAcks, flight: 20_000, peer_window: u64::MAX };
        vegas.on_loss(&mut window, &loss);
        assert_eq!((window.segments(), window.ssthresh()), (10, 10_000));
        // The slow start after a timeout opens the window from its first round trip on.
        vegas.opens = false;
        vegas.on_loss(&mut window, &LossReport { found_by: FoundBy::Timeout { repeated: false }, ..loss });
        assert!(vegas.opens && window.segments() == 1);
    }
}
