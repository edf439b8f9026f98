//! TCP Westwood+ (Mascolo et al., "TCP Westwood: Bandwidth estimation for enhanced transport over wireless links", MobiCom 2001; Grieco
//! and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004).
//!
//! After a loss, the window becomes what the path carries without a queue (the measured rate times the minimum round
//! trip) instead of half of its old value. A loss that is not congestion then costs nothing. Growth is Reno's.
//!
//! The rate is sampled once per round trip: the bytes delivered, in order or not, divided by the time. An exponential
//! filter smooths the samples. The papers count segments by ACKs and duplicate ACKs; here the scoreboard counts bytes.
//! Without RACK, the rate is not measured and the window is halved.

use super::reduction::{Reduces, react};
use super::reno::Reno;
use super::{AckSample, CongestionRules, Delivered, Properties, Window};
use crate::tcp::config::TcpConfig;
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Time};

/// The weight of the past in the filter: samples are filtered with 7/8 and 1/8, like the round trip.
const PAST: f64 = 7.0 / 8.0;
/// A sample covers at least this time; if round trips are shorter, several of them (Grieco and Mascolo 2004, §2).
const MIN_SAMPLE: Duration = Duration::from_millis(50);

/// The state of Westwood+.
#[derive(Clone, Debug)]
pub(super) struct Westwood {
    reno: Reno,
    /// The filtered rate, bytes per second; `None` before the first sample.
    rate: Option<f64>,
    min_rtt: Option<Duration>,
    /// When the current sample began, and the bytes delivered by then.
    since: Option<(Time, u64)>,
}

impl Westwood {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Westwood { reno: Reno::new(config), rate: None, min_rtt: None, since: None }
    }

    /// Takes what an ACK has delivered.
    fn sample(&mut self, seen: &Delivered) {
        if let Some(rtt) = seen.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let Some((began, before)) = self.since else {
            self.since = Some((seen.now, seen.delivered));
            return;
        };
        let elapsed = seen.now.saturating_since(began);
        let Some(srtt) = seen.srtt else { return };
        if elapsed < srtt.max(MIN_SAMPLE) {
            return;
        }
        let sample = (seen.delivered - before) as f64 / elapsed.as_secs_f64();
        self.rate = Some(self.rate.map_or(sample, |rate| PAST * rate + (1.0 - PAST) * sample));
        self.since = Some((seen.now, seen.delivered));
    }

    /// The bytes that the path carries without a queue.
    fn product(&self) -> Option<f64> {
        Some(self.rate? * self.min_rtt?.as_secs_f64())
    }
}

impl Reduces for Westwood {
    fn reduce(&mut self, window: &mut Window, loss: &LossReport) {
        match self.product() {
            // Never larger than the window: the rate only says what the path has carried.
            Some(product) => {
                let whole = window.whole_units(product.min(window.exact())) as f64;
                window.set_ssthresh(whole.max(2.0 * window.exact_mss()));
            }
            None => self.reno.on_loss(window, loss),
        }
    }

    fn after_timeout(&mut self) {
        // Data delivered after a pause is no sample of the rate.
        self.since = None;
    }
}

impl CongestionRules for Westwood {
    const NAME: &'static str = "Westwood+";
    const PROPERTIES: Properties = Properties { measures_rate: true, ..Properties::WINDOW_ONLY };

    #[inline(always)]
    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        self.reno.on_ack(window, start, ack);
    }

    fn on_delivered(&mut self, _: &mut Window, seen: &Delivered) {
        self.sample(seen);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        react(self, window, loss);
    }

    fn restart(&mut self, window: &mut Window, segments: u32) {
        self.since = None;
        self.reno.restart(window, segments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::loss::FoundBy;
    use crate::tcp::recovery::Phase;

    fn config() -> TcpConfig {
        TcpConfig { mss: 1000, ..TcpConfig::default() }
    }

    /// The state with `delivered` bytes in all at `millis` milliseconds, with round trips of 100 ms.
    fn seen(millis: u64, delivered: u64) -> Delivered {
        let rtt = Some(Duration::from_millis(100));
        Delivered {
            now: Time::from_nanos(millis * 1_000_000),
            rtt,
            srtt: rtt,
            sample: None,
            too_high: None,
            newly: 1000,
            delivered,
            lost: 0,
            pipe: 0,
            pipe_before: 0,
            departure: Time::ZERO,
            phase: Phase::Open,
        }
    }

    fn lost(found_by: FoundBy) -> LossReport {
        LossReport { found_by, flight: 60_000, peer_window: u64::MAX }
    }

    /// 40 000 bytes per 100 ms are 400 000 per second, and the product is 40 000 bytes: a window of 60 becomes 40, not
    /// 30. Half of that rate for one round moves the filter by an eighth of the difference: 375 000, which gives 37 500
    /// bytes.
    #[test]
    fn the_window_after_a_loss_is_rate_times_round_trip() {
        let (mut westwood, mut window) = (Westwood::new(&config()), Window::new(&config(), 60));
        window.set_ssthresh(60_000.0);
        for n in 0..=50 {
            westwood.on_delivered(&mut window, &seen(10 * n, 4000 * n));
        }
        westwood.on_loss(&mut window, &lost(FoundBy::DuplicateAcks));
        assert_eq!((window.cwnd(), window.ssthresh()), (40_000, 40_000));
        westwood.on_delivered(&mut window, &seen(600, 220_000));
        window.set(60_000.0);
        westwood.on_loss(&mut window, &lost(FoundBy::DuplicateAcks));
        assert_eq!(window.cwnd(), 37_500);
    }

    /// With a round trip of 10 ms a sample covers 50 ms: 40 000 bytes arrive in the first 10 ms of it, and 800 000 per second are the rate.
    #[test]
    fn a_sample_covers_fifty_milliseconds() {
        let (mut westwood, mut window) = (Westwood::new(&config()), Window::new(&config(), 60));
        let short = Some(Duration::from_millis(10));
        for (millis, rate) in [(0, None), (10, None), (49, None), (50, Some(800_000.0))] {
            let delivered = if millis == 0 { 0 } else { 40_000 };
            westwood.on_delivered(&mut window, &Delivered { rtt: short, srtt: short, ..seen(millis, delivered) });
            assert_eq!(westwood.rate, rate, "{millis} ms");
        }
    }

    /// A rate above what the window can carry does not open the window. A timeout restarts with one segment.
    #[test]
    fn a_loss_never_opens_the_window() {
        let (mut westwood, mut window) = (Westwood::new(&config()), Window::new(&config(), 20));
        for n in 0..=50 {
            westwood.on_delivered(&mut window, &seen(10 * n, 4000 * n));
        }
        westwood.on_loss(&mut window, &lost(FoundBy::DuplicateAcks));
        assert_eq!(window.cwnd(), 20_000);
        westwood.on_loss(&mut window, &lost(FoundBy::Timeout { repeated: false }));
        assert_eq!((window.cwnd(), window.ssthresh()), (1000, 20_000));
    }

    /// Before the first sample the window is halved.
    #[test]
    fn without_a_sample_the_window_is_halved() {
        let (mut westwood, mut window) = (Westwood::new(&config()), Window::new(&config(), 60));
        westwood.on_loss(&mut window, &lost(FoundBy::DuplicateAcks));
        assert_eq!((window.cwnd(), window.ssthresh()), (30_000, 30_000));
    }
}
