//! Single rules of the model (draft-ietf-ccwg-bbr-06), each at its bound, by the names of its pseudocode.

use super::*;

const CALM: Round = Round { rtt: RTT, pipe: 0, tx_in_flight: 100 * MSS, lost: 0, phase: Phase::Open };

/// What an ACK of `newly` bytes shows, a round trip after they were sent. `is_app_limited`: the sender had nothing more to send.
fn seen(pipe: &Pipe, newly: u64, is_app_limited: bool) -> Delivered {
    let sample = RateSample {
        prior_delivered: pipe.delivered,
        delivered: newly,
        interval: RTT,
        is_app_limited,
        tx_in_flight: newly,
        lost: 0,
    };
    Delivered {
        now: pipe.now,
        rtt: Some(RTT),
        srtt: Some(RTT),
        sample: Some(sample),
        too_high: None,
        newly,
        delivered: pipe.delivered + newly,
        lost: 0,
        pipe: 0,
        pipe_before: newly,
        departure: Time::ZERO,
        phase: Phase::Open,
    }
}

/// A pipe that has been filled and is cruising.
fn cruising() -> Pipe {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe
}

/// UpdateMaxBw, CheckFullBWReached, AdaptLongTermModel: a rate that the application has limited counts if it is the highest. It does not
/// show that the path is full, and does not end a cycle of the filter.
#[test]
fn samples_of_an_idle_application() {
    let mut pipe = cruising();
    for (newly, rate) in [(50, 1e6), (110, 1.1e6)] {
        pipe.bbr.update_max_bw(&seen(&pipe, newly * MSS, true));
        assert_eq!(pipe.bbr.max_bw.max(), rate);
    }
    pipe.bbr.round_end = 0;
    for (is_app_limited, cycle) in [(true, 5), (false, 6)] {
        (pipe.bbr.cycle, pipe.bbr.ack_phase) = (5, AckPhase::Stopping);
        let seen = seen(&pipe, 100 * MSS, is_app_limited);
        pipe.bbr.on_delivered(&mut pipe.window, &seen);
        pipe.delivered += 100 * MSS;
        assert_eq!(pipe.bbr.cycle, cycle);
    }
    let mut start = Pipe::new();
    for _ in 0..6 {
        let seen = seen(&start, 10 * MSS, true);
        start.bbr.on_delivered(&mut start.window, &seen);
        start.delivered += 10 * MSS;
    }
    assert!(!start.bbr.filled.ever);
}

/// §5.3.1.3: six ACKs with losses end startup, five do not. The volume that was delivered in the last round trip bounds it, if that is more
/// than the product: here the minimum round trip has fallen to a fifth, and then the product is larger.
#[test]
fn six_losses_end_startup() {
    for (events, ends, millis, bound) in
        [(5, false, 20, f64::INFINITY), (6, true, 20, 80_000.0), (6, true, 90, 90_000.0)]
    {
        let mut pipe = Pipe::new();
        (0..4).for_each(|_| pipe.calm());
        let lossy = Round { rtt: RTT, pipe: 60 * MSS, tx_in_flight: 160 * MSS, lost: 10 * MSS, phase: Phase::Recovery };
        let before = pipe.delivered;
        for _ in 1..events {
            pipe.ack(Duration::from_millis(10), before, 10 * MSS, lossy);
        }
        pipe.bbr.min_rtt = Some(Duration::from_millis(millis));
        pipe.bbr.bw = 1e6;
        pipe.ack(Duration::from_millis(10), before + 10 * MSS, 10 * MSS, lossy);
        assert_eq!(pipe.bbr.filled.ever, ends, "{events}");
        assert_eq!(pipe.bbr.bounds.longterm, bound, "{millis}");
    }
}

/// AdaptLowerBoundsFromCongestion: losses set no short-term bounds while a probe looks for the limit, and a round trip's losses
/// count once.
#[test]
fn a_probe_has_no_short_term_bounds() {
    for (state, bounds) in [(State::Startup, false), (State::Cruise, true)] {
        let mut pipe = Pipe::new();
        pipe.until(state);
        pipe.calm();
        let few = Round { lost: MSS, ..CALM };
        pipe.round(80 * MSS, few);
        pipe.calm();
        assert_eq!(pipe.bbr.bounds.bw.is_finite(), bounds, "{state:?}");
        assert_eq!(pipe.bbr.bounds.events, 0);
    }
}

/// LossLowerBounds: the bounds are what was delivered, but at least 0.7 of what they were. HandleInflightTooHigh: the
/// volume in flight, but at least 0.7 of the target.
#[test]
fn bounds_by_hand() {
    for (newly, bw, inflight) in [(90, 9e5, 90_000.0), (50, 7e5, 70_000.0)] {
        let pipe = Pipe::new();
        let mut bounds = Bounds::NONE;
        bounds.note_loss(0);
        bounds.update_latest(&seen(&pipe, newly * MSS, false));
        bounds.adapt(1e6, 100_000.0);
        assert_eq!((bounds.bw, bounds.inflight), (bw, inflight));
        bounds.too_high((newly * MSS) as f64, 100_000.0);
        assert_eq!(bounds.longterm, inflight);
    }
}

/// SaveCwnd: the window of before a loss, not one of an earlier recovery; in a recovery the larger one.
#[test]
fn the_window_to_restore() {
    let mut pipe = cruising();
    let before = pipe.window.exact();
    for (phase, prior) in [(Phase::Open, before), (Phase::Recovery, 2.0 * before)] {
        (pipe.bbr.phase, pipe.bbr.prior) = (phase, 2.0 * before);
        pipe.bbr.save(&pipe.window);
        assert_eq!(pipe.bbr.prior, prior);
    }
}

/// IsTimeToProbeBW: after as many round trips as the target has segments, at most 63. The target is at most the window.
#[test]
fn probes_coexist_with_reno() {
    let mut pipe = cruising();
    (pipe.bbr.cycle_at, pipe.bbr.wait) = (pipe.now, Duration::from_secs(10));
    let mut probes = |segments: u64, rounds| {
        pipe.window.set((segments * MSS) as f64);
        pipe.bbr.rounds_since_probe = rounds;
        pipe.bbr.probes_again(&pipe.window, &seen(&pipe, MSS, false))
    };
    assert_eq!([probes(200, 62), probes(200, 63)], [false, true]);
    assert_eq!([probes(20, 19), probes(20, 20)], [false, true]);
}

/// §2.8: room of 15 % for others, but at least a segment. RaiseInflightLongtermSlope: at most a segment per segment.
#[test]
fn at_least_a_segment() {
    let mut pipe = cruising();
    for (longterm, left) in [(6000.0, 5000.0), (100_000.0, 85_000.0)] {
        pipe.bbr.bounds.longterm = longterm;
        assert_eq!(pipe.bbr.with_headroom(MSS as f64), left);
    }
    pipe.bbr.up_rounds = 0;
    pipe.window = Window::new(&TcpConfig { mss: MSS as u16, ..TcpConfig::default() }, 10);
    for expected in [10_000.0, 5000.0, 2500.0, 1250.0, 1000.0, 1000.0] {
        pipe.bbr.raise_slope(&pipe.window);
        assert_eq!(pipe.bbr.up_count, expected);
    }
}

/// IsTimeToCruise: not while more than a product is in flight, though there is no bound.
#[test]
fn going_down_ends_with_a_product_in_flight() {
    let mut pipe = cruising();
    pipe.bbr.start_down(pipe.now, pipe.delivered);
    for (flight, state) in [(150, State::Down), (101, State::Down), (100, State::Cruise)] {
        pipe.ack(Duration::from_millis(10), pipe.delivered, 100 * MSS, Round { pipe: flight * MSS, ..CALM });
        assert_eq!(pipe.bbr.state, state, "{flight}");
    }
}

/// AdaptLongTermModel: a volume that has lost little is no longer too high. BoundCwndForModel: the short-term bound limits the window.
#[test]
fn bounds_of_the_volume() {
    let mut pipe = cruising();
    pipe.bbr.bounds.longterm = 50_000.0;
    pipe.ack(Duration::from_millis(10), pipe.delivered, MSS, Round { tx_in_flight: 80 * MSS, ..CALM });
    assert_eq!(pipe.bbr.bounds.longterm, 80_000.0);
    (pipe.bbr.bounds.longterm, pipe.bbr.bounds.inflight) = (80_000.0, 30_000.0);
    assert_eq!(pipe.bbr.volume_cap(MSS as f64), 30_000.0);
}

/// SetPacingRate: until the path is full the rate only grows. SetCwnd: the first window grows until as much is delivered, however slow.
#[test]
fn a_slow_first_segment_slows_nothing() {
    let mut pipe = Pipe::new();
    let pace = |pipe: &Pipe| pipe.bbr.pacing;
    pipe.round(MSS, Round { pipe: 9 * MSS, tx_in_flight: MSS, ..CALM });
    assert_eq!(pipe.window.segments(), 11);
    // That of ten segments per round trip, and not of one.
    for _ in 0..2 {
        assert_eq!(pace(&pipe).map(f64::round), Some(277_000.0));
        pipe.round(MSS, Round { pipe: 9 * MSS, tx_in_flight: MSS, ..CALM });
    }
}

/// UpdateMinRTT: the minimum is valid for ten seconds, and then the one since the last probe for it replaces it.
#[test]
fn a_minimum_round_trip_expires() {
    let mut pipe = cruising();
    let slow = Duration::from_millis(120);
    (pipe.bbr.min_rtt, pipe.bbr.min_rtt_at) = (Some(RTT), pipe.now);
    for (seconds, min) in [(9, RTT), (11, slow)] {
        let now = pipe.bbr.min_rtt_at + Duration::from_secs(seconds);
        (pipe.bbr.recent_rtt, pipe.bbr.recent_rtt_at) = (Some(slow), now);
        let later = Delivered { now, rtt: Some(slow), ..seen(&pipe, MSS, false) };
        pipe.bbr.update_min_rtt(&later);
        assert_eq!(pipe.bbr.min_rtt, Some(min));
    }
}

/// CheckProbeRTT, CheckProbeRTTDone: a probe of the round trip belongs to no probe for bandwidth. At its end the short-term bounds are
/// gone, the sender cruises, and the next one is due five seconds later. At least four segments stay in flight.
#[test]
fn a_probe_of_the_round_trip_and_its_end() {
    let mut pipe = cruising();
    pipe.bbr.ack_phase = AckPhase::Init;
    pipe.now += Duration::from_secs(6);
    pipe.round(10 * MSS, Round { rtt: RTT + RTT, pipe: 50 * MSS, ..CALM });
    assert!(pipe.bbr.holds_back() && pipe.bbr.ack_phase == AckPhase::Stopping, "{:?}", pipe.bbr.ack_phase);
    (pipe.bbr.bounds.bw, pipe.bbr.bounds.inflight) = (9e5, 90_000.0);
    while pipe.bbr.holds_back() {
        pipe.round(10 * MSS, Round { rtt: RTT + RTT, pipe: 4 * MSS, ..CALM });
    }
    assert_eq!(pipe.bbr.state, State::Cruise);
    assert!(pipe.bbr.bounds.bw.is_infinite() && pipe.bbr.bounds.inflight.is_infinite());
    assert!(pipe.now.saturating_since(pipe.bbr.recent_rtt_at) < Duration::from_millis(600));
    pipe.bbr.bw = 1000.0;
    assert_eq!(pipe.bbr.probe_rtt_window(MSS as f64), 4000.0);
}

/// HandleRestartFromIdle: an ACK that delivers nothing does not end the pause; the next one still needs no probe.
#[test]
fn a_pause_lasts_until_something_is_delivered() {
    let mut pipe = cruising();
    pipe.now += Duration::from_secs(6);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    let empty = Delivered { newly: 0, sample: None, rtt: None, delivered: pipe.delivered, ..seen(&pipe, MSS, false) };
    pipe.bbr.on_delivered(&mut pipe.window, &empty);
    pipe.round(2 * MSS, Round { rtt: RTT + RTT, ..CALM });
    assert!(!pipe.bbr.holds_back(), "{:?}", pipe.bbr.state);
}

/// HandleSpuriousLossDetection: the search for a full path begins anew, so two round trips without growth do not count.
#[test]
fn a_needless_recovery_restarts_the_search() {
    let mut pipe = Pipe::new();
    (0..7).for_each(|_| pipe.calm());
    assert!(!pipe.bbr.filled.ever);
    pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
    (0..3).for_each(|_| pipe.calm());
    assert!(!pipe.bbr.filled.ever, "a new baseline, and two without growth");
    pipe.calm();
    assert!(pipe.bbr.filled.ever);
}
