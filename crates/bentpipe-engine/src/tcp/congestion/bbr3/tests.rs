//! BBRv3 on a pipe of 100 segments of 1000 bytes: 1 MB/s and 100 ms.

mod control;
mod model;
mod precaution;
mod undo;

use super::*;
use crate::tcp::delivery::{LostSample, RateSample};

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// One ACK per round trip, for what was sent in the previous one: at most 100 segments.
struct Pipe {
    bbr: Bbr3,
    window: Window,
    now: Time,
    delivered: u64,
}

/// What a round trip shows besides its deliveries.
#[derive(Clone, Copy)]
struct Round {
    rtt: Duration,
    /// In flight after it, and when the newest delivered segment was sent.
    pipe: u64,
    tx_in_flight: u64,
    lost: u64,
    phase: Phase,
}

impl Pipe {
    fn new() -> Self {
        let config = TcpConfig { mss: MSS as u16, ..TcpConfig::default() };
        Pipe { bbr: Bbr3::new(&config), window: Window::new(&config, 10), now: Time::ZERO, delivered: 0 }
    }

    /// A round trip reported by a single ACK.
    fn round(&mut self, newly: u64, round: Round) {
        self.ack(round.rtt, self.delivered, newly, round);
    }

    /// An ACK, `elapsed` after the last one, of a segment that was sent when `prior_delivered` bytes were delivered.
    fn ack(&mut self, elapsed: Duration, prior_delivered: u64, newly: u64, round: Round) {
        let Round { rtt, pipe, tx_in_flight, lost, phase } = round;
        self.now += elapsed;
        self.delivered += newly;
        let delivered = self.delivered - prior_delivered;
        let sample =
            RateSample { prior_delivered, delivered, interval: rtt, is_app_limited: false, tx_in_flight, lost };
        let segment = LostSample { size: MSS, tx_in_flight, lost, is_app_limited: false };
        self.bbr.on_delivered(
            &mut self.window,
            &Delivered {
                now: self.now,
                rtt: Some(rtt),
                srtt: Some(rtt),
                sample: Some(sample),
                too_high: Some(segment).filter(LostSample::is_too_high),
                newly,
                delivered: self.delivered,
                lost,
                pipe,
                pipe_before: pipe + newly,
                departure: Time::ZERO,
                phase,
            },
        );
    }

    /// A timer finds `lost` of 100 segments lost, the last of which was sent with them all in flight.
    fn find_lost(&mut self, lost: u64, is_app_limited: bool) {
        let segment = LostSample { size: MSS, tx_in_flight: 100 * MSS, lost, is_app_limited };
        let found = FoundLost { now: self.now, delivered: self.delivered, too_high: Some(segment) };
        self.bbr.on_found_lost(&mut self.window, &found);
    }

    /// A round trip of a window, without losses and with an empty queue at its end.
    fn calm(&mut self) {
        let newly = self.window.cwnd().min(100 * MSS);
        self.round(newly, Round { rtt: RTT, pipe: 0, tx_in_flight: newly, lost: 0, phase: Phase::Open });
    }

    fn until(&mut self, state: State) -> u32 {
        (0..200)
            .find(|_| {
                let is_there = self.bbr.state == state;
                if !is_there {
                    self.calm();
                }
                is_there
            })
            .unwrap_or_else(|| panic!("never {state:?}, but {:?}", self.bbr.state))
    }

    /// The pacing rate as a share of 1 MB/s, percent.
    fn pace(&self) -> f64 {
        self.bbr.pacing.expect("it paces") / 1e4
    }
}

/// 10, 20, 40, 80 and 100 segments per round trip, of which each is more than 1.25 times the one before; three more without growth
/// end startup. The sender drains at half of 99 % of the rate, unless nothing is in flight: then it goes down at 0.9 at once.
#[test]
fn startup_ends_when_the_rate_no_longer_grows() {
    let mut pipe = Pipe::new();
    for expected in [20, 40, 80, 160] {
        pipe.calm();
        assert_eq!((pipe.window.segments(), pipe.bbr.state), (expected, State::Startup));
    }
    pipe.calm();
    assert!((pipe.pace() - 277.0 * MARGIN).abs() < 1.0, "{}", pipe.pace());
    let queued = Round { rtt: RTT, pipe: 150 * MSS, tx_in_flight: 200 * MSS, lost: 0, phase: Phase::Open };
    pipe.round(100 * MSS, queued);
    pipe.round(100 * MSS, queued);
    assert_eq!(pipe.bbr.state, State::Startup);
    pipe.round(100 * MSS, queued);
    assert!(matches!(pipe.bbr.state, State::Drain(_)), "{:?}", pipe.bbr.state);
    assert!((pipe.pace() - 49.5).abs() < 0.1, "{}", pipe.pace());
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Cruise, "by way of down");
}

/// Six ACKs with losses of more than 2 % in a round trip of a recovery end startup. The product, or what that round trip delivered, bounds
/// the volume: 80 000 bytes or 70 000.
#[test]
fn startup_ends_by_losses() {
    let mut pipe = Pipe::new();
    leave_startup_by_losses(&mut pipe);
    assert!(pipe.bbr.filled.ever && pipe.bbr.state != State::Startup, "{:?}", pipe.bbr.state);
    assert_eq!(pipe.bbr.bounds.longterm, 80_000.0);
}

/// Four round trips of up to 80 segments: 800 kB/s and a product of 80 000 bytes. Then seven ACKs of 10 segments that show losses, the
/// first of which begins a recovery. The eighth is of a segment that was sent after that ACK: a round trip of the recovery.
fn leave_startup_by_losses(pipe: &mut Pipe) {
    for _ in 0..4 {
        pipe.calm();
    }
    let lossy = Round { rtt: RTT, pipe: 60 * MSS, tx_in_flight: 160 * MSS, lost: 10 * MSS, phase: Phase::Recovery };
    let before = pipe.delivered;
    for _ in 0..7 {
        pipe.ack(Duration::from_millis(10), before, 10 * MSS, lossy);
        assert_eq!(pipe.bbr.state, State::Startup);
    }
    pipe.ack(Duration::from_millis(10), before + 10 * MSS, 10 * MSS, lossy);
}

/// The recovery must have lasted for a round trip: six ACKs with losses before it are not enough.
#[test]
fn losses_before_a_recovery_do_not_end_startup() {
    let mut pipe = Pipe::new();
    for _ in 0..4 {
        pipe.calm();
    }
    let lossy = Round { rtt: RTT, pipe: 60 * MSS, tx_in_flight: 160 * MSS, lost: 10 * MSS, phase: Phase::Open };
    let before = pipe.delivered;
    for phase in [Phase::Open, Phase::Open, Phase::Open, Phase::Open, Phase::Open, Phase::Recovery] {
        pipe.ack(Duration::from_millis(10), before, 10 * MSS, Round { phase, ..lossy });
    }
    let recovers = Round { phase: Phase::Recovery, ..lossy };
    pipe.ack(Duration::from_millis(10), before + 10 * MSS, 10 * MSS, recovers);
    assert_eq!(pipe.bbr.state, State::Startup);
}

/// A cycle: down at 0.9, cruising at 1, a round trip of refilling, up at 1.25 until the rate has not grown for three round trips. The
/// next probe comes 2 to 3 s after the beginning of the cycle: 20 to 31 round trips.
#[test]
fn a_cycle_probes_every_two_to_three_seconds() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    assert!((pipe.pace() - 99.0).abs() < 0.1, "{}", pipe.pace());
    let waited = pipe.until(State::Refill);
    assert!((18..=31).contains(&waited), "{waited}");
    assert!((pipe.pace() - 99.0).abs() < 0.1, "{}", pipe.pace());
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Up);
    assert!((pipe.pace() - 125.0 * MARGIN).abs() < 0.1, "{}", pipe.pace());
    for _ in 0..2 {
        pipe.calm();
        assert_eq!(pipe.bbr.state, State::Up);
    }
    pipe.calm();
    assert!(matches!(pipe.bbr.state, State::Down | State::Cruise), "{:?}", pipe.bbr.state);
}

/// 3 % lost by a probe with 150 segments in flight: before the lost segment of 1000 B 3500 of 149 000 were lost, more than 2980, so that
/// 149 000 - 520/0.98 bytes were too much; the bound is that or 0.7 of the product. Cruising leaves 15 % of it.
#[test]
fn a_probe_that_loses_bounds_the_volume() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    let lossy = Round { rtt: RTT, pipe: 40 * MSS, tx_in_flight: 150 * MSS, lost: 4500, phase: Phase::Recovery };
    pipe.bbr.on_loss(&mut pipe.window, &LossReport { found_by: FoundBy::DuplicateAcks, flight: 0, peer_window: 0 });
    pipe.round(100 * MSS, lossy);
    assert!(matches!(pipe.bbr.state, State::Down | State::Cruise), "{:?}", pipe.bbr.state);
    let bound = 149_000.0 - 520.0 / 0.98;
    assert!((pipe.bbr.bounds.longterm - bound).abs() < 1e-6, "{}", pipe.bbr.bounds.longterm);
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Cruise);
    assert_eq!(pipe.window.cwnd(), (bound * 0.85) as u64);
}

/// Cruising, a round trip with a loss bounds the rate to what it delivered, or 0.7 of before; the next probe forgets it.
#[test]
fn losses_while_cruising_bound_the_rate_until_the_next_probe() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    let lossy = Round { rtt: RTT, pipe: 20 * MSS, tx_in_flight: 100 * MSS, lost: MSS, phase: Phase::Open };
    pipe.round(80 * MSS, lossy);
    pipe.round(80 * MSS, Round { lost: 0, ..lossy });
    let bound = pipe.bbr.bounds.bw;
    assert!((700_000.0..1_000_001.0).contains(&bound), "{bound}");
    assert!(pipe.pace() <= bound * 0.99 / 1e4 + 0.01);
    pipe.until(State::Refill);
    assert_eq!((pipe.bbr.bounds.bw, pipe.bbr.bounds.inflight), (f64::INFINITY, f64::INFINITY));
}

/// Five seconds with a longer round trip: half a product in flight for 200 ms and a round trip, then the window of before.
#[test]
fn the_round_trip_is_probed_every_five_seconds() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    let (began, before) = (pipe.now, pipe.window.segments());
    let queued =
        Round { rtt: Duration::from_millis(120), pipe: 40 * MSS, tx_in_flight: 120 * MSS, lost: 0, phase: Phase::Open };
    while !matches!(pipe.bbr.state, State::ProbeRtt(_)) {
        // 1 MB/s, as before.
        pipe.round(120 * MSS, queued);
        assert!(pipe.now < began + Duration::from_secs(9), "never probes");
    }
    assert!(pipe.now > began + Duration::from_secs(4), "not before");
    assert_eq!(pipe.window.segments(), 50, "half of 1 MB/s times 100 ms");
    let started = pipe.now;
    while matches!(pipe.bbr.state, State::ProbeRtt(_)) {
        pipe.round(40 * MSS, Round { pipe: 10 * MSS, rtt: RTT, ..queued });
    }
    let lasted = pipe.now.saturating_since(started);
    assert!((Duration::from_millis(200)..=Duration::from_millis(500)).contains(&lasted), "{lasted:?}");
    assert!(pipe.window.segments() + 2 >= before.min(200), "{} {before}", pipe.window.segments());
}

/// A mark bounds like a loss: outside probes the rate, and a probe it ends.
#[test]
fn a_mark_counts_as_a_loss() {
    let mark = LossReport { found_by: FoundBy::Mark, flight: 120 * MSS, peer_window: u64::MAX };
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe.bbr.on_loss(&mut pipe.window, &mark);
    pipe.calm();
    assert!(pipe.bbr.bounds.bw.is_finite());
    pipe.until(State::Up);
    pipe.bbr.on_loss(&mut pipe.window, &mark);
    pipe.calm();
    assert!(matches!(pipe.bbr.state, State::Down | State::Cruise), "{:?}", pipe.bbr.state);
    assert_eq!(pipe.bbr.bounds.longterm, 120_000.0);
}

/// From the second probe on the window is at the bound of the one before: the mark ends the probe nevertheless.
#[test]
fn a_mark_ends_a_probe_at_its_bound() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.bbr.bounds.longterm = pipe.window.exact();
    pipe.bbr.on_loss(&mut pipe.window, &LossReport { found_by: FoundBy::Mark, flight: 120 * MSS, peer_window: 0 });
    assert_eq!(pipe.bbr.state, State::Down);
}

/// Losses that a timer has found (§5.5.10.3: "fast recovery, RTO recovery, TLP recovery"): they bound the rate while cruising, and end a
/// probe.
#[test]
fn losses_found_by_a_timer_count() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe.find_lost(10 * MSS, false);
    pipe.calm();
    assert!(pipe.bbr.bounds.bw.is_finite() && pipe.bbr.bounds.inflight.is_finite());
    pipe.until(State::Up);
    pipe.find_lost(10 * MSS, false);
    assert_eq!(pipe.bbr.state, State::Down);
    assert!(pipe.bbr.bounds.longterm.is_finite());
}

/// A probe that the application limits and that loses too much ends, without a bound: HandleInflightTooHigh asks for the limit only
/// where it sets the bound.
#[test]
fn a_probe_limited_by_the_application_ends_too() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.find_lost(10 * MSS, true);
    assert_eq!((pipe.bbr.state, pipe.bbr.bounds.longterm), (State::Down, f64::INFINITY));
}

/// A second round trip with losses lowers the bound of the first one, however small the window has become since: 0.7 of 0.7.
#[test]
fn a_second_lossy_round_trip_lowers_the_bound() {
    let mut bounds = Bounds::NONE;
    bounds.note_loss(0);
    bounds.adapt(1e6, 100_000.0);
    bounds.adapt(1e6, 4_000.0);
    assert!((bounds.inflight - 49_000.0).abs() < 1e-6 && (bounds.bw - 490_000.0).abs() < 1e-6, "{bounds:?}");
}

/// Twelve seconds without anything to send: the next ACK gives a round trip without a probe, and the sender paces at the rate, not at the
/// gain of its state (draft-ietf-ccwg-bbr-06 §5.4.1, HandleRestartFromIdle).
#[test]
fn a_pause_needs_no_probe_of_the_round_trip() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.now += Duration::from_secs(12);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    assert!((pipe.pace() - 99.0).abs() < 0.1, "{}", pipe.pace());
    for newly in [2, 100, 100] {
        pipe.round(newly * MSS, Round { rtt: RTT, pipe: 0, tx_in_flight: newly * MSS, lost: 0, phase: Phase::Open });
        assert!(!pipe.bbr.holds_back(), "{:?}", pipe.bbr.state);
    }
}

/// A probe of the round trip that would have ended in a pause ends when sending begins again.
#[test]
fn a_pause_ends_a_probe_of_the_round_trip() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    let before = pipe.window.segments();
    pipe.now += Duration::from_secs(6);
    for _ in 0..2 {
        pipe.round(4 * MSS, Round { rtt: RTT + RTT, pipe: 0, tx_in_flight: 4 * MSS, lost: 0, phase: Phase::Open });
        assert!(pipe.bbr.holds_back(), "{:?}", pipe.bbr.state);
    }
    pipe.now += Duration::from_secs(1);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    assert!(!pipe.bbr.holds_back());
    assert!(pipe.window.segments() + 2 >= before.min(200), "{} {before}", pipe.window.segments());
}

/// The window counts as used for a round trip: until an ACK of what was sent after it was used. Until then the bound limits the rate.
#[test]
fn a_window_counts_as_used_for_a_round_trip() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    let segments = u64::from(pipe.window.segments());
    let seen = |pipe: &mut Pipe, prior, pipe_before| {
        let few = Round { rtt: RTT, pipe: pipe_before - MSS, tx_in_flight: MSS, lost: 0, phase: Phase::Open };
        pipe.bbr.bounds.longterm = pipe.window.exact();
        pipe.ack(Duration::from_millis(10), prior, MSS, few);
        pipe.bbr.limited_at.is_some()
    };
    let before = pipe.delivered;
    assert!(!seen(&mut pipe, before, 5 * MSS));
    assert!(seen(&mut pipe, before, segments * MSS));
    let used = pipe.delivered;
    assert!(seen(&mut pipe, used - MSS, 5 * MSS));
    assert!(!seen(&mut pipe, used, 5 * MSS));
}

/// A rate of two cycles before counts until the next one is measured: AdvanceMaxBwFilter only counts the cycle.
#[test]
fn an_old_rate_counts_until_the_next_one() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe.bbr.max_bw = MaxFilter::new(1);
    pipe.bbr.max_bw.update(0, 1e6);
    (pipe.bbr.cycle, pipe.bbr.ack_phase) = (1, AckPhase::Stopping);
    let half = Round { rtt: RTT, pipe: 0, tx_in_flight: 50 * MSS, lost: 0, phase: Phase::Open };
    pipe.round(50 * MSS, half);
    assert_eq!((pipe.bbr.cycle, pipe.bbr.bw), (2, 1e6));
    pipe.round(50 * MSS, half);
    assert_eq!(pipe.bbr.bw, 5e5);
}

/// Without a round trip the product is the initial window, whatever the gain (§5.6.4.2, BDPMultiple).
#[test]
fn without_a_round_trip_the_product_is_the_initial_window() {
    let pipe = Pipe::new();
    assert_eq!(pipe.bbr.products(CWND_GAIN, 1e6, 1000.0), 10_000.0);
}

/// Two draws, of the time and of the round trips: all four combinations of early and late occur (§5.3.3.8.3, PickProbeWait).
#[test]
fn the_waits_are_drawn_apart() {
    let mut pipe = Pipe::new();
    let mut seen = alloc::collections::BTreeSet::new();
    for n in 0..100 {
        pipe.bbr.start_down(Time::from_nanos(n * 1_000_003), 0);
        let half = MIN_PROBE_WAIT + Duration::from_millis(500);
        seen.insert((pipe.bbr.rounds_since_probe, pipe.bbr.wait > half));
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// The bound of the losses that ended startup does not bound the window while draining, by the pseudocode (§5.6.4.7, BoundCwndForModel).
#[test]
fn draining_has_no_long_term_bound() {
    let mut pipe = Pipe::new();
    pipe.bbr.bounds.longterm = 50_000.0;
    let mut cap = |state| {
        pipe.bbr.state = state;
        pipe.bbr.volume_cap(1000.0)
    };
    assert_eq!([cap(State::Drain(9)), cap(State::Down), cap(State::Cruise)], [f64::INFINITY, 50_000.0, 42_500.0]);
}

/// The window to return to after a probe of the round trip is at least the one of the last recovery: CheckProbeRTT changes the state before
/// SaveCwnd (§5.3.4.3).
#[test]
fn a_probe_of_the_round_trip_keeps_a_greater_window() {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe.bbr.prior = 500_000.0;
    pipe.now += Duration::from_secs(6);
    pipe.round(4 * MSS, Round { rtt: RTT + RTT, pipe: 0, tx_in_flight: 4 * MSS, lost: 0, phase: Phase::Open });
    assert!(pipe.bbr.holds_back());
    assert_eq!(pipe.bbr.prior, 500_000.0);
}

/// A path that holds one segment, 1 MB/s and 1 ms, is drained with six in flight: three bursts of two segments (QuantizationBudget).
#[test]
fn a_short_path_is_drained_at_the_budget() {
    for (segments, state) in [(6, State::Down), (7, State::Drain(u64::MAX))] {
        let mut bbr = Pipe::new().bbr;
        (bbr.state, bbr.bw, bbr.min_rtt) = (State::Drain(u64::MAX), 1e6, Some(Duration::from_millis(1)));
        let seen = Delivered {
            now: Time::ZERO,
            rtt: None,
            srtt: None,
            sample: None,
            too_high: None,
            newly: 0,
            delivered: 0,
            lost: 0,
            pipe: segments * MSS,
            pipe_before: segments * MSS,
            departure: Time::ZERO,
            phase: Phase::Open,
        };
        bbr.leave_startup(&seen, MSS as f64);
        assert_eq!(bbr.state, state, "{segments}");
    }
}
