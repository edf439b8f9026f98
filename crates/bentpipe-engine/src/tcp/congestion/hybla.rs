//! TCP Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of Satellite
//! Communications and Networking 22(5), 2004).
//!
//! The window grows as fast in time as Reno's with a round trip of [`RTT0`]: with rho = RTT / RTT0, at least 1, each
//! ACK adds 2^rho - 1 segments in slow start and rho² / cwnd in congestion avoidance. Over GEO, rho is about 24, and
//! the first ACK would open the window without limit. The paper's remedies are implemented: the first threshold comes
//! from the spacing of the first ACKs (Hoe's estimate of the rate, times the round trip), and the sender paces a window
//! per round trip. The paper's SACK and timestamps are settings of the row.
//!
//! ACKs of paced segments would show the pace, not the bottleneck. So pacing begins when the threshold is known, and
//! the estimate uses ACKs of one flight, all of whose segments left before the first of them was acknowledged.
//!
//! rho follows the minimum round trip, so a queue does not make the sender faster. Unlike in the paper, the initial
//! window is not multiplied by rho: the first ACK has the same effect.

use super::reduction::{Factors, Reduces, react};
use super::{AckSample, CongestionRules, Properties, Window};
use crate::tcp::config::TcpConfig;
use crate::tcp::delivery::rate_of;
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Rate, Time};

/// The round trip of the Reno connection that grows as fast (§3.1).
const RTT0: Duration = Duration::from_millis(25);
/// Upper bound of rho in 2^rho, so that windows are finite.
const MAX_RHO_IN_SLOW_START: f64 = 16.0;
/// Number of ACKs of a flight whose spacing gives the rate.
const SPACED_ACKS: u32 = 3;

/// Hoe's estimate: the first ACKs, spaced by the bottleneck.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    Counting(Option<Flight>),
    Over,
}

/// The ACKs of a flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// When the first of them arrived, and what had been sent then.
    first: Time,
    end: u64,
    /// Bytes acknowledged since, and the number of ACKs.
    acked: u64,
    acks: u32,
}

/// The state of Hybla.
#[derive(Clone, Debug)]
pub(super) struct Hybla {
    min_rtt: Option<Duration>,
    spacing: Spacing,
    factors: Factors,
}

impl Hybla {
    pub(super) fn new(config: &TcpConfig) -> Self {
        // A configured threshold needs no estimate.
        let known = config.initial_ssthresh.is_some();
        let spacing = if known { Spacing::Over } else { Spacing::Counting(None) };
        Hybla { min_rtt: None, spacing, factors: Factors::new(config, 0.5, 0.8) }
    }

    fn measure(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
    }

    fn rho(&self) -> f64 {
        self.min_rtt.map_or(1.0, |rtt| rtt.as_secs_f64() / RTT0.as_secs_f64()).max(1.0)
    }

    /// The rate in bytes per second that the spacing of the first ACKs shows, once there are enough of them.
    fn spaced(&mut self, ack: &AckSample) -> Option<f64> {
        let Spacing::Counting(flight) = &mut self.spacing else { return None };
        let Some(flight) = flight.as_mut().filter(|flight| ack.snd_una <= flight.end) else {
            *flight = Some(Flight { first: ack.now, end: ack.snd_max, acked: 0, acks: 1 });
            return None;
        };
        flight.acked += ack.acked;
        flight.acks += 1;
        let elapsed = ack.now.saturating_since(flight.first);
        if flight.acks < SPACED_ACKS || elapsed == Duration::ZERO {
            return None;
        }
        let rate = flight.acked as f64 / elapsed.as_secs_f64();
        self.spacing = Spacing::Over;
        Some(rate)
    }
}

impl Reduces for Hybla {
    //= RFC 5681 §3.1, equation 4: "ssthresh = max (FlightSize / 2, 2*SMSS)"
    fn reduce(&mut self, window: &mut Window, loss: &LossReport) {
        let part = window.whole_units(loss.flight as f64 * self.factors.of(loss)) as f64;
        window.set_ssthresh(part.max(2.0 * window.exact_mss()));
        self.spacing = Spacing::Over;
    }
}

impl CongestionRules for Hybla {
    const NAME: &'static str = "Hybla";
    const PROPERTIES: Properties = Properties { paces: true, heeds_unused: true, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, window: &mut Window, _: &mut SlowStart, ack: &AckSample) {
        self.measure(ack);
        let mss = window.exact_mss();
        if let (Some(rate), Some(rtt)) = (self.spaced(ack), self.min_rtt) {
            window.set_ssthresh((rate * rtt.as_secs_f64()).max(2.0 * mss));
        }
        let (rho, cwnd, acked) = (self.rho(), window.exact() / mss, ack.acked as f64 / mss);
        let grown = if window.in_slow_start() {
            let per_segment = libm::exp2(rho.min(MAX_RHO_IN_SLOW_START)) - 1.0;
            // Until the rate is known, the window grows as in Reno.
            let per_segment = if matches!(self.spacing, Spacing::Over) { per_segment } else { 1.0 };
            (cwnd + acked * per_segment).min((window.exact_ssthresh() / mss).max(cwnd))
        } else {
            cwnd + acked * rho * rho / cwnd
        };
        window.set(grown * mss);
    }

    fn on_unused(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        // Segments that are spaced over a round trip never fill a window that grows by more than itself in that time.
        if ack.is_held {
            return self.on_ack(window, start, ack);
        }
        self.measure(ack);
        // What the application sends late is acknowledged late.
        if let Spacing::Counting(flight) = &mut self.spacing {
            *flight = None;
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        react(self, window, loss);
    }

    /// One window per round trip, once the first threshold is known.
    #[inline(always)]
    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        let Spacing::Over = self.spacing else { return None };
        self.min_rtt.map(|rtt| rate_of(window.exact() / rtt.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::loss::FoundBy;

    const MSS: u64 = 1000;

    fn hybla(segments: u32, ssthresh: Option<u32>) -> (Hybla, Window, SlowStart) {
        let config = TcpConfig { mss: MSS as u16, initial_ssthresh: ssthresh, ..TcpConfig::default() };
        (Hybla::new(&config), Window::new(&config, segments), SlowStart::new(&config.variant))
    }

    fn ack(micros: u64, acked: u64, rtt: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt));
        AckSample { now: Time::from_nanos(micros * 1000), acked, rtt, ..AckSample::default() }
    }

    /// rho = 100/25 = 4: each segment adds 2^4 - 1 = 15 in slow start, and 16/cwnd in congestion avoidance. With a
    /// round trip below 25 ms, rho is 1: one segment, and 1/cwnd.
    #[test]
    fn growth_by_hand() {
        for (rtt, slow, avoiding) in [(100, 25.0, 100.0 + 16.0 / 100.0), (20, 11.0, 100.0 + 1.0 / 100.0)] {
            let (mut hybla, mut window, mut start) = hybla(10, Some(1000));
            hybla.on_ack(&mut window, &mut start, &ack(0, MSS, rtt));
            assert_eq!(window.exact() / 1000.0, slow);
            window.set(100_000.0);
            window.set_ssthresh(50_000.0);
            hybla.on_ack(&mut window, &mut start, &ack(0, MSS, rtt));
            assert!((window.exact() / 1000.0 - avoiding).abs() < 1e-9);
        }
    }

    /// Over GEO, the second ACK after the first arrives 2 ms later, each for one segment: 2000 bytes in 2 ms are 1
    /// MB/s, and times 600 ms that is 600 segments. The window opens to that size at once and is paced over the round
    /// trip.
    #[test]
    fn the_spacing_of_the_first_acks_gives_the_threshold() {
        let (mut hybla, mut window, mut start) = hybla(10, None);
        for micros in [600_000, 601_000] {
            hybla.on_ack(&mut window, &mut start, &ack(micros, MSS, 600));
        }
        assert_eq!(window.segments(), 12, "as anyone");
        hybla.on_ack(&mut window, &mut start, &ack(602_000, MSS, 600));
        assert_eq!((window.ssthresh(), window.segments()), (600_000, 600));
        assert_eq!(hybla.pacing_rate(&window).map(|rate| rate.bits_per_second()), Some(8_000_000));
    }

    /// With a window of two, the third ACK belongs to the next flight, a round trip later: it says nothing about the
    /// rate, the three ACKs of that flight do. Until then ACKs clock the segments, since ACKs of paced ones would show
    /// the sender's own rate.
    #[test]
    fn the_acks_of_one_flight_are_spaced() {
        let (mut hybla, mut window, mut start) = hybla(2, None);
        let sample = |micros, snd_una, snd_max| AckSample { snd_una, snd_max, ..ack(micros, MSS, 600) };
        for (micros, una, max) in [(600_000, 1, 2), (601_000, 2, 4), (1_200_000, 3, 6), (1_201_000, 4, 8)] {
            hybla.on_ack(&mut window, &mut start, &sample(micros, una * MSS, max * MSS));
            assert_eq!(hybla.pacing_rate(&window), None);
        }
        assert_eq!(window.segments(), 6, "as Reno");
        hybla.on_ack(&mut window, &mut start, &sample(1_202_000, 5 * MSS, 10 * MSS));
        assert_eq!((window.ssthresh(), window.segments()), (600_000, 600));
    }

    /// The window grows while pacing holds a segment back, but not while the application has nothing to send.
    #[test]
    fn a_window_that_is_paced_is_in_use() {
        let (mut hybla, mut window, mut start) = hybla(100, Some(50));
        for (is_held, segments) in [(false, 100.0), (true, 100.0 + 16.0 / 100.0)] {
            hybla.on_unused(&mut window, &mut start, &AckSample { is_held, ..ack(0, MSS, 100) });
            assert!((window.exact() / 1000.0 - segments).abs() < 1e-9, "{is_held}");
        }
    }

    /// While the application sends less than the window, its ACKs show its own pauses.
    #[test]
    fn an_unused_window_is_not_measured() {
        let (mut hybla, mut window, mut start) = hybla(10, None);
        hybla.on_ack(&mut window, &mut start, &ack(600_000, MSS, 600));
        hybla.on_unused(&mut window, &mut start, &ack(610_000, MSS, 600));
        for micros in [620_000, 621_000] {
            hybla.on_ack(&mut window, &mut start, &ack(micros, MSS, 600));
            assert_eq!(hybla.pacing_rate(&window), None);
        }
        hybla.on_ack(&mut window, &mut start, &ack(622_000, MSS, 600));
        assert_eq!(window.ssthresh(), 600_000);
    }

    #[test]
    fn a_loss_halves_the_window() {
        let (mut hybla, mut window, _) = hybla(100, None);
        let loss = |found_by| LossReport { found_by, flight: 100_000, peer_window: u64::MAX };
        hybla.on_loss(&mut window, &loss(FoundBy::DuplicateAcks));
        assert_eq!((window.cwnd(), window.ssthresh()), (50_000, 50_000));
        hybla.on_loss(&mut window, &loss(FoundBy::Timeout { repeated: false }));
        assert_eq!((window.cwnd(), window.ssthresh()), (1000, 50_000));
    }

    /// With a round trip of 600 ms rho is 24, of which 16 count in slow start: a segment adds 2^16 - 1.
    #[test]
    fn a_long_round_trip_opens_a_finite_window() {
        let (mut hybla, mut window, mut start) = hybla(10, Some(1_000_000));
        hybla.on_ack(&mut window, &mut start, &ack(0, MSS, 600));
        assert_eq!(window.segments(), 10 + 65_535);
    }
}
