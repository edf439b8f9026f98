//! BBR on a pipe of 100 segments of 1000 bytes: 1 MB/s and 100 ms.

#[path = "tests/rules.rs"]
mod rules;

use super::*;
use crate::tcp::delivery::RateSample;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn window() -> Window {
    Window::new(&TcpConfig { mss: MSS as u16, ..TcpConfig::default() }, 10)
}

/// One ACK per round trip, for what was sent in the previous one: at most 100 segments.
struct Pipe {
    bbr: Bbr,
    window: Window,
    now: Time,
    delivered: u64,
}

impl Pipe {
    fn new() -> Self {
        Pipe { bbr: Bbr::new(&TcpConfig::default()), window: window(), now: Time::ZERO, delivered: 0 }
    }

    /// A round trip of `rtt` that delivers `newly`, with `pipe` in flight after it.
    fn round(&mut self, rtt: Duration, newly: u64, pipe: u64, phase: Phase, lost: u64) {
        self.now += rtt;
        self.delivered += newly;
        let seen = self.seen(rtt, newly, pipe, phase, lost);
        self.bbr.on_delivered(&mut self.window, &seen);
    }

    /// What its ACK shows.
    fn seen(&self, rtt: Duration, newly: u64, pipe: u64, phase: Phase, lost: u64) -> Delivered {
        let prior_delivered = self.delivered - newly;
        let sample = RateSample {
            prior_delivered,
            delivered: newly,
            interval: rtt,
            is_app_limited: false,
            ..RateSample::default()
        };
        Delivered {
            now: self.now,
            rtt: Some(rtt),
            srtt: Some(rtt),
            sample: Some(sample),
            too_high: None,
            newly,
            delivered: self.delivered,
            lost,
            pipe,
            pipe_before: pipe + newly,
            departure: Time::ZERO,
            phase,
        }
    }

    fn fill(&mut self) {
        for _ in 0..12 {
            let newly = self.window.cwnd().min(100 * MSS);
            self.round(RTT, newly, 0, Phase::Open, 0);
        }
    }
}

/// A timeout of the SYN has left a window of one segment when its ACK comes. The connection begins with ten, and with their rate: 100
/// segments of 1000 bytes per second, times the gain of the start.
#[test]
fn a_lost_syn_does_not_slow_the_start() {
    let mut pipe = Pipe::new();
    pipe.window.set_segments(1);
    pipe.bbr.phase = Phase::Loss;
    let seen = Delivered { sample: None, ..pipe.seen(RTT, 0, 0, Phase::Loss, 0) };
    pipe.bbr.on_delivered(&mut pipe.window, &seen);
    pipe.bbr.restart(&mut pipe.window, 10);
    assert_eq!(pipe.bbr.pacing.map(f64::round), Some((100_000.0 * HIGH_GAIN * MARGIN).round()));
    assert_eq!((pipe.window.cwnd(), pipe.bbr.phase), (10 * MSS, Phase::Open));
}

/// 10, 20, 40, 80 and then 100 segments per round trip; three without growth later the pipe is full, and drained because nothing is
/// in flight. The window is two products: 200 segments, three bursts of two, and two more in the phase that probes.
#[test]
fn startup_ends_when_the_rate_no_longer_grows() {
    let mut pipe = Pipe::new();
    for expected in [20, 40, 80, 160] {
        let newly = pipe.window.cwnd().min(100 * MSS);
        pipe.round(RTT, newly, 0, Phase::Open, 0);
        assert_eq!(pipe.window.segments(), expected);
        assert_eq!(pipe.bbr.mode, Mode::Startup);
    }
    pipe.fill();
    assert!(pipe.bbr.is_full && matches!(pipe.bbr.mode, Mode::ProbeBw(..)), "{:?}", pipe.bbr.mode);
    assert_eq!(pipe.bbr.rate.max(), 1e6);
    let room = pipe.bbr.room_for_bunches(MSS as f64);
    let without = f64::from(pipe.window.segments()) - room;
    assert!((206.0..=208.0).contains(&without), "{without}");
}

/// The third round trip without growth shows that the pipe is full, and its ACK already begins to drain it (Linux's `bbr_update_model`).
#[test]
fn a_full_pipe_is_drained_at_once() {
    let mut pipe = Pipe::new();
    while !pipe.bbr.is_full {
        assert_eq!(pipe.bbr.mode, Mode::Startup);
        let newly = pipe.window.cwnd().min(100 * MSS);
        pipe.round(RTT, newly, 150 * MSS, Phase::Open, 0);
    }
    assert_eq!(pipe.bbr.mode, Mode::Drain);
}

/// At 1 MB/s five segments are delivered in the 5 ms until the next packet leaves. Where more shall be in flight that packet counts: two
/// segments.
#[test]
fn what_is_in_flight_counts_when_the_next_packet_leaves() {
    let mut pipe = Pipe::new();
    pipe.fill();
    for (gain, millis, expected) in [(1.25, 0, 102.0), (1.25, 5, 97.0), (0.75, 5, 95.0), (0.75, 5000, 0.0)] {
        let departure = pipe.now + Duration::from_millis(millis);
        let seen = Delivered { departure, ..pipe.seen(RTT, 0, 100 * MSS, Phase::Open, 0) };
        assert_eq!(pipe.bbr.inflight_at_departure(&seen, gain, seen.pipe, MSS as f64), expected, "{gain} {millis}");
    }
}

/// Linux's `bbr_tso_segs_goal`: what the rate carries in 1/1024 s, at least one segment below 1.2 Mbit/s and two from there on, at most 64
/// kB without headers (65 215 bytes) and 127 segments.
#[test]
fn bursts_are_bounded() {
    let mut bbr = Bbr::new(&TcpConfig::default());
    for (bits, mss, segments) in [
        (16e3, 1000.0, 1.0),
        (1_199_999.0, 1000.0, 1.0),
        (1.2e6, 1000.0, 2.0),
        (40.96e6, 1000.0, 5.0),
        (10e9, 1000.0, 65.0),
        (10e9, 500.0, 127.0),
    ] {
        bbr.pacing = Some(bits / 8.0);
        assert_eq!(bbr.burst(mss), segments, "{bits} bit/s, {mss} B");
    }
}

/// At 15 kB/s and 400 ms two products are 12 segments, with room for three bursts of one segment.
#[test]
fn at_a_low_rate_there_is_room_for_single_segments() {
    let mut pipe = Pipe::new();
    let rtt = Duration::from_millis(400);
    for _ in 0..12 {
        let newly = pipe.window.cwnd().min(6 * MSS);
        pipe.round(rtt, newly, 0, Phase::Open, 0);
    }
    assert!(pipe.bbr.is_full && pipe.bbr.rate.max() == 15e3, "{}", pipe.bbr.rate.max());
    // Even, and two more where it probes.
    let more = if matches!(pipe.bbr.mode, Mode::ProbeBw(0, _)) { 2.0 } else { 0.0 };
    assert_eq!(pipe.bbr.inflight(2.0, MSS as f64), 16.0 + more);
}

/// The pacing rate is 1.25, 0.75 and then six times 1 of 99 % of 1 MB/s.
#[test]
fn the_cycle_has_eight_phases() {
    let mut pipe = Pipe::new();
    pipe.fill();
    let mut gains = Vec::new();
    for _ in 0..16 {
        // As much in flight as the phase wants, and a little longer than a round trip.
        let (_, inflight) = (pipe.now, pipe.bbr.inflight(1.25, MSS as f64) as u64 * MSS);
        pipe.round(RTT + Duration::from_millis(1), 101 * MSS, inflight - 101 * MSS, Phase::Open, 0);
        gains.push((pipe.bbr.pacing.expect("it paces") / 1e6 / MARGIN * 100.0).round() as u32);
    }
    let up = gains.iter().position(|&gain| gain == 125).expect("it probes");
    assert_eq!(gains[up..up + 8], [125, 75, 100, 100, 100, 100, 100, 100]);
}

/// In the first round trip of a recovery the window is what is in flight and what has arrived; afterwards it is what it was.
#[test]
fn a_recovery_conserves_packets_and_forgets() {
    let mut pipe = Pipe::new();
    pipe.fill();
    let before = pipe.window.segments();
    pipe.bbr.on_loss(&mut pipe.window, &LossReport { found_by: FoundBy::DuplicateAcks, flight: 0, peer_window: 0 });
    pipe.round(RTT, 2 * MSS, 90 * MSS, Phase::Recovery, 5 * MSS);
    assert_eq!(pipe.window.segments(), 92);
    pipe.round(RTT, 100 * MSS, 90 * MSS, Phase::Open, 0);
    assert!(pipe.window.segments().abs_diff(before) <= 2, "{} {before}", pipe.window.segments());
    assert_eq!(pipe.bbr.rate.max(), 1e6);
}

/// Ten seconds without a lower round trip: four segments for 200 ms and a round trip, and then the window of before.
#[test]
fn the_round_trip_is_probed_every_ten_seconds() {
    let mut pipe = Pipe::new();
    pipe.fill();
    let queued = Duration::from_millis(120);
    let mut low = 0;
    for _ in 0..100 {
        let newly = pipe.window.cwnd().min(100 * MSS);
        pipe.round(queued, newly, 0, Phase::Open, 0);
        low += u32::from(pipe.window.segments() == 4);
    }
    // 12 s: once. Two round trips of 120 ms are more than 200 ms.
    assert!((2..=4).contains(&low), "{low}");
    assert!(pipe.window.segments() >= 200, "two products: {}", pipe.window.segments());
}

/// Twelve seconds without anything to send: the queue is empty, so the next ACK gives a round trip without a probe, and the sender paces at
/// the rate, not at the gain of its phase. Linux: `idle_restart`.
#[test]
fn a_pause_needs_no_probe_of_the_round_trip() {
    let mut pipe = Pipe::new();
    pipe.fill();
    pipe.now += Duration::from_secs(12);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    assert_eq!(pipe.bbr.pacing, Some(1e6 * MARGIN));
    for newly in [2, 100, 100] {
        pipe.round(RTT, newly * MSS, 0, Phase::Open, 0);
        assert!(matches!(pipe.bbr.mode, Mode::ProbeBw(..)), "{:?}", pipe.bbr.mode);
    }
    assert!(pipe.window.segments() >= 200, "{}", pipe.window.segments());
}

/// A probe that would have ended in a pause ends when sending begins again.
#[test]
fn a_pause_ends_a_probe_of_the_round_trip() {
    let mut pipe = Pipe::new();
    pipe.fill();
    let before = pipe.window.segments();
    pipe.bbr.min_rtt_at = Time::ZERO;
    pipe.now += Duration::from_secs(12);
    for _ in 0..2 {
        pipe.round(RTT + RTT, 4 * MSS, 0, Phase::Open, 0);
        assert!(pipe.bbr.holds_back() && pipe.window.segments() == 4, "{:?}", pipe.bbr.mode);
    }
    pipe.now += Duration::from_secs(1);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    assert!(!pipe.bbr.holds_back());
    assert!(pipe.window.segments() >= before, "{}", pipe.window.segments());
}

/// A round trip that only equals the minimum does not postpone a probe (Linux 5.10 and later; the draft has "<=").
#[test]
fn only_a_lower_round_trip_puts_off_the_probe() {
    for (rtt, is_probed) in [(RTT, true), (RTT - Duration::from_millis(1), false)] {
        let mut pipe = Pipe::new();
        pipe.fill();
        // The minimum is 8 s old; another round trip, and 2 s more.
        pipe.now += Duration::from_secs(8);
        for rtt in [rtt].into_iter().chain([RTT; 20]) {
            pipe.round(rtt, 100 * MSS, 100 * MSS, Phase::Open, 0);
        }
        assert_eq!(pipe.bbr.holds_back(), is_probed, "{rtt:?}");
    }
}

/// The ACK of a lone segment that is not full may have been delayed: it does not replace a minimum round trip that has expired.
#[test]
fn a_delayed_ack_is_no_least_round_trip() {
    let mut pipe = Pipe::new();
    pipe.fill();
    pipe.now += Duration::from_secs(12);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    pipe.round(RTT + RTT, MSS - 1, 0, Phase::Open, 0);
    assert_eq!(pipe.bbr.min_rtt, Some(RTT));
    pipe.round(RTT + RTT, MSS, 0, Phase::Open, 0);
    assert_eq!(pipe.bbr.min_rtt, Some(RTT + RTT));
}
