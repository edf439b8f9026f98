//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP for the Internet, made for L4S queues (RFC 9330).
//!
//! Its packets are ECT(1) if both ends use accurate ECN. The share of marked packets is averaged over round trips
//! (alpha). A round trip with marks leaves 1 - alpha/2 of the window, so a queue can mark early and often while the
//! window hardly moves. Between marks, the window grows like Reno's. With short round trips, growth and average are as
//! slow as with a round trip of [`REFERENCE_RTT`] (§2.4.4); otherwise such flows would take over the link. Segments are
//! paced, which keeps bursts short (RFC 9331 §4.3, item 7).
//!
//! A loss halves the window. So does a mark if the peer knows only RFC 3168; packets are then ECT(0).

use super::reduction::{Factors, Reduces, react};
use super::{AckSample, CongestionRules, Marks, Properties, Window};
use crate::tcp::config::TcpConfig;
use crate::tcp::delivery::rate_of;
use crate::tcp::loss::LossReport;
use crate::tcp::startup::SlowStart;
use crate::units::{Duration, Rate, Time};

/// The weight of a round trip in the average (DCTCP's g, RFC 8257 §4.2).
const GAIN: f64 = 1.0 / 16.0;
/// Flows with shorter round trips behave as if theirs were this long.
const REFERENCE_RTT: Duration = Duration::from_millis(25);
/// The pacing rate in slow start, in windows per round trip; afterwards it is one.
const SLOW_START_GAIN: f64 = 2.0;
/// The minimum window, segments. RFC 9331 §4.3 (item 5) prefers less than one.
const MIN_WINDOW: f64 = 2.0;

/// Bytes delivered since the average was last updated.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// When it began, and the number whose acknowledgement ends it.
    begun: Time,
    end: u64,
    bytes: u64,
    marked: u64,
}

/// The state of Prague.
#[derive(Clone, Debug)]
pub(super) struct Prague {
    /// The average share of marked bytes; `None` before the first mark.
    alpha: Option<f64>,
    round: Round,
    srtt: Option<Duration>,
    factors: Factors,
}

impl Prague {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Prague { alpha: None, round: Round::default(), srtt: None, factors: Factors::new(config, 0.5, 0.8) }
    }

    /// Ends a round trip and begins the next one.
    fn average(&mut self, marks: &Marks) {
        let length = marks.srtt.unwrap_or(REFERENCE_RTT).max(REFERENCE_RTT);
        self.round.bytes += marks.bytes;
        self.round.marked += marks.marked.min(marks.bytes);
        let is_over = marks.snd_una > self.round.end && marks.now >= self.round.begun + length;
        if !is_over || self.round.bytes == 0 {
            return;
        }
        let share = self.round.marked as f64 / self.round.bytes as f64;
        if let Some(alpha) = &mut self.alpha {
            *alpha += GAIN * (share - *alpha);
        }
        self.round = Round { begun: marks.now, end: marks.snd_max, bytes: 0, marked: 0 };
    }

    /// The fraction of Reno's growth at which flows with short round trips are no faster than one with
    /// [`REFERENCE_RTT`]: a window grows by a segment per round trip, so the rate grows with the inverse square of the
    /// round trip.
    fn pace_of_growth(&self) -> f64 {
        let rtt = self.srtt.map_or(1.0, |srtt| srtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64());
        if rtt < 1.0 { rtt * rtt } else { 1.0 }
    }
}

impl Reduces for Prague {
    //= RFC 5681 §3.1, equation 4: "ssthresh = max (FlightSize / 2, 2*SMSS)"
    fn reduce(&mut self, window: &mut Window, loss: &LossReport) {
        let part = window.whole_units(loss.flight as f64 * self.factors.of(loss)) as f64;
        window.set_ssthresh(part.max(MIN_WINDOW * window.exact_mss()));
    }
}

impl CongestionRules for Prague {
    const NAME: &'static str = "Prague";
    const PROPERTIES: Properties =
        Properties { paces: true, is_scalable: true, resumes: false, heeds_unused: true, ..Properties::WINDOW_ONLY };

    fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
        self.srtt = ack.srtt;
        if window.in_slow_start() {
            start.on_ack(window, ack);
            return;
        }
        let (cwnd, mss) = (window.exact(), window.exact_mss());
        window.set(cwnd + self.pace_of_growth() * mss * ack.acked as f64 / cwnd);
    }

    /// The rate follows the round trip in any case: if the first one was long, pacing alone would keep the window unused.
    fn on_unused(&mut self, _: &mut Window, _: &mut SlowStart, ack: &AckSample) {
        self.srtt = ack.srtt;
    }

    fn on_marks(&mut self, window: &mut Window, marks: &Marks) {
        let grown = window.exact() - marks.before;
        if grown > 0.0 && marks.marked > 0 {
            // Marked bytes do not open the window.
            let unmarked = marks.bytes.saturating_sub(marks.marked) as f64 / marks.bytes.max(1) as f64;
            window.set(marks.before + grown * unmarked);
        }
        self.average(marks);
        if !marks.counts {
            return;
        }
        // The first mark ends slow start and halves the window, like a loss.
        let alpha = *self.alpha.get_or_insert(1.0);
        window.set_ssthresh((window.exact() * (1.0 - alpha / 2.0)).max(MIN_WINDOW * window.exact_mss()));
        window.set(window.exact_ssthresh());
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
        react(self, window, loss);
    }

    /// One window per round trip; two in slow start.
    #[inline(always)]
    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        let gain = if window.in_slow_start() { SLOW_START_GAIN } else { 1.0 };
        self.srtt.map(|srtt| rate_of(gain * window.exact() / srtt.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::loss::FoundBy;

    const MSS: u64 = 1000;

    fn prague(segments: u32) -> (Prague, Window, SlowStart) {
        let config = TcpConfig { mss: MSS as u16, ..TcpConfig::default() };
        let mut window = Window::new(&config, segments);
        window.set_ssthresh(2.0 * MSS as f64);
        (Prague::new(&config), window, SlowStart::new(&config.variant))
    }

    /// A round trip of 100 ms in which `marked` of 100 segments were marked, reported by one ACK that does not open the
    /// window.
    fn round(number: u64, marked: u64, window: &Window) -> Marks {
        Marks {
            now: Time::from_nanos(number * 100_000_000),
            before: window.exact(),
            bytes: 100 * MSS,
            marked: marked * MSS,
            counts: marked > 0,
            snd_una: 100 * MSS * number + 1,
            snd_max: 100 * MSS * (number + 1),
            srtt: Some(Duration::from_millis(100)),
        }
    }

    /// The first mark halves the window. Alpha is then 1 and moves by a sixteenth of its distance to the share. After
    /// 16 round trips with a quarter marked, it is 1/4 + 3/4 * (15/16)^16 = 0.517, and the next mark leaves 1 - 0.517/2
    /// of the window.
    #[test]
    fn the_reduction_follows_the_share_of_marks() {
        let (mut prague, mut window, _) = prague(100);
        let first = round(1, 25, &window);
        prague.on_marks(&mut window, &Marks { bytes: 0, ..first });
        assert_eq!((window.cwnd(), window.ssthresh()), (50_000, 50_000));
        for number in 2..=17 {
            let marks = round(number, 25, &window);
            prague.on_marks(&mut window, &Marks { counts: false, ..marks });
        }
        let alpha = 0.25 + 0.75 * libm::pow(15.0 / 16.0, 16.0);
        assert!((prague.alpha.expect("a mark has come") - alpha).abs() < 1e-12, "{:?}", prague.alpha);
        window.set(100_000.0);
        let last = round(17, 25, &window);
        prague.on_marks(&mut window, &last);
        assert!((window.exact() - 100_000.0 * (1.0 - alpha / 2.0)).abs() < 1e-6, "{}", window.exact());
    }

    /// With a round trip of 5 ms, the average moves once in 25 ms: four times in twenty round trips, in which half of the segments are
    /// marked.
    #[test]
    fn short_round_trips_average_slowly() {
        let (mut prague, mut window, _) = prague(100);
        prague.alpha = Some(1.0);
        for number in 1..=20 {
            let now = Time::from_nanos(number * 5_000_000);
            let srtt = Some(Duration::from_millis(5));
            let marks = Marks { now, srtt, counts: false, ..round(number, 50, &window) };
            prague.on_marks(&mut window, &marks);
        }
        let alpha = 0.5 + 0.5 * libm::pow(15.0 / 16.0, 4.0);
        assert!((prague.alpha.expect("it is set") - alpha).abs() < 1e-12, "{:?}", prague.alpha);
    }

    /// With a round trip of 50 ms, a window of 10 grows by a segment per window; with 12.5 ms, half of the reference,
    /// by a quarter.
    #[test]
    fn short_round_trips_grow_slowly() {
        let grown = |millis: f64| {
            let (mut prague, mut window, mut start) = prague(10);
            let srtt = Some(Duration::from_secs_f64_rounded(millis / 1e3));
            prague.on_ack(&mut window, &mut start, &AckSample { acked: 10 * MSS, srtt, ..AckSample::default() });
            (window.cwnd(), prague.pacing_rate(&window).expect("a round trip is known").bits_per_second())
        };
        // 8 * 11000 bytes per 50 ms, 8 * 10250 per 12.5 ms.
        assert_eq!((grown(50.0), grown(12.5)), ((11_000, 1_760_000), (10_250, 6_560_000)));
    }

    /// Marked bytes open nothing; three of four segments do.
    #[test]
    fn marked_segments_open_nothing() {
        let (mut prague, mut window, _) = prague(10);
        window.set(10_400.0);
        let marks = Marks { before: 10_000.0, bytes: 4 * MSS, marked: MSS, counts: false, ..round(1, 0, &window) };
        prague.on_marks(&mut window, &marks);
        assert_eq!(window.cwnd(), 10_300);
    }

    /// A loss halves the data in flight, and so does a mark reported by RFC 3168's echo.
    #[test]
    fn a_loss_halves() {
        for found_by in [FoundBy::DuplicateAcks, FoundBy::Mark] {
            let (mut prague, mut window, _) = prague(20);
            prague.on_loss(&mut window, &LossReport { found_by, flight: 20_000, peer_window: u64::MAX });
            assert_eq!((window.cwnd(), window.ssthresh()), (10_000, 10_000));
        }
    }

    /// The average moves once per round trip: not before what was sent at its start is acknowledged, however long that takes.
    #[test]
    fn a_round_trip_ends_with_what_was_sent_in_it() {
        let (mut prague, mut window, _) = prague(100);
        prague.alpha = Some(1.0);
        let mut alphas = Vec::new();
        for (number, snd_una, snd_max) in [(1, 1, 100), (2, 50, 150), (3, 100, 200), (4, 101, 250)] {
            let marks = Marks { snd_una, snd_max, counts: false, ..round(number, 50, &window) };
            prague.on_marks(&mut window, &marks);
            alphas.push(prague.alpha.expect("it is set"));
        }
        let [once, twice] = [1, 2].map(|n| 0.5 + 0.5 * libm::pow(15.0 / 16.0, n.into()));
        assert_eq!(alphas, [once, once, once, twice]);
    }

    /// 100 segments of 1000 bytes per 100 ms, and twice as much in slow start.
    #[test]
    fn slow_start_is_paced_at_two_windows() {
        let (mut prague, mut window, _) = prague(100);
        prague.srtt = Some(Duration::from_millis(100));
        for (ssthresh, bits) in [(1e9, 16_000_000), (2000.0, 8_000_000)] {
            window.set_ssthresh(ssthresh);
            assert_eq!(prague.pacing_rate(&window).map(Rate::bits_per_second), Some(bits));
        }
    }
}
