//! The window and the states around it (draft-ietf-ccwg-bbr-06 §5.6.4), by the names of the pseudocode.

use super::*;
use crate::tcp::variant::Variant;

const CALM: Round = Round { rtt: RTT, pipe: 0, tx_in_flight: 100 * MSS, lost: 0, phase: Phase::Open };

/// A pipe that has been filled and is cruising at 1 MB/s, 100 ms from a probe.
fn cruising() -> Pipe {
    let mut pipe = Pipe::new();
    pipe.until(State::Cruise);
    pipe
}

/// SetCwnd, UpdateMaxInflight: the window grows by what is acknowledged, up to two products of 100 000 bytes and what
/// ACKs have run ahead. An ACK for a whole round trip runs ahead by a product.
#[test]
fn the_window_by_hand() {
    for (window, newly, after) in [(50_000.0, 10, 60_000), (500_000.0, 10, 300_000), (295_000.0, 100, 300_000)] {
        let mut pipe = cruising();
        pipe.window.set(window);
        pipe.round(newly * MSS, CALM);
        assert_eq!(pipe.window.cwnd(), after, "{window} {newly}");
    }
}

/// RestoreCwnd: the window of before comes back when the recovery ends, and at no other time.
#[test]
fn the_window_returns_at_the_end_of_a_recovery() {
    let mut pipe = cruising();
    pipe.window.set(50_000.0);
    pipe.bbr.prior = 250_000.0;
    let seen = [Phase::Open, Phase::Recovery, Phase::Recovery, Phase::Open, Phase::Open].map(|phase| {
        pipe.ack(Duration::from_millis(10), pipe.delivered, MSS, Round { phase, ..CALM });
        pipe.window.cwnd() / MSS
    });
    assert_eq!(seen, [51, 52, 53, 251, 252]);
}

/// CheckStartupHighLoss asks for a round trip of the recovery: an ACK of a segment that was sent before the recovery
/// began, here the ACK before it, does not end startup.
#[test]
fn a_round_trip_of_a_recovery_begins_with_it() {
    for (prior, ends) in [(50, false), (60, true)] {
        let mut pipe = Pipe::new();
        (0..4).for_each(|_| pipe.calm());
        let lossy = Round { rtt: RTT, pipe: 60 * MSS, tx_in_flight: 160 * MSS, lost: 10 * MSS, phase: Phase::Open };
        let before = pipe.delivered;
        for phase in [Phase::Open, Phase::Open, Phase::Open, Phase::Open, Phase::Open, Phase::Recovery] {
            pipe.ack(Duration::from_millis(10), before, 10 * MSS, Round { phase, ..lossy });
        }
        let recovers = Round { phase: Phase::Recovery, ..lossy };
        pipe.ack(Duration::from_millis(10), before + prior * MSS, 10 * MSS, recovers);
        assert_eq!(pipe.bbr.state != State::Startup, ends, "{prior}");
    }
}

/// Without SACK there is no rate, and the window grows as in slow start.
#[test]
fn without_sack_the_window_doubles() {
    for (latest_rtt, window) in [(None, 20), (Some(RTT), 10)] {
        let mut pipe = Pipe::new();
        let mut start = SlowStart::new(&Variant::named("bbr3").expect("a variant"));
        for _ in 0..10 {
            let ack = AckSample { acked: MSS, flight: 10 * MSS, latest_rtt, ..AckSample::default() };
            pipe.bbr.on_ack(&mut pipe.window, &mut start, &ack);
        }
        assert_eq!(pipe.window.segments(), window);
    }
}

/// OnEnterFastRecovery after a timeout saves the bounds anew; in one recovery, the first ones stay.
/// HandleSpuriousLossDetection restores them.
#[test]
fn a_recovery_after_a_timeout_is_another_one() {
    for (first, restored) in [(FoundBy::Timeout { repeated: false }, 50_000.0), (FoundBy::DuplicateAcks, 90_000.0)] {
        let mut pipe = cruising();
        let loss = |found_by| LossReport { found_by, flight: 0, peer_window: 0 };
        pipe.bbr.bounds.longterm = 90_000.0;
        pipe.bbr.on_loss(&mut pipe.window, &loss(first));
        pipe.bbr.bounds.longterm = 50_000.0;
        pipe.bbr.on_loss(&mut pipe.window, &loss(FoundBy::DuplicateAcks));
        pipe.bbr.bounds.longterm = 30_000.0;
        pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
        assert_eq!(pipe.bbr.bounds.longterm, restored);
    }
}

/// AdaptLongTermModel: the filter of the maximum rate only advances in a state of the cycle.
#[test]
fn a_probe_of_the_round_trip_does_not_advance_the_filter() {
    for (state, cycle) in [(State::Cruise, 6), (State::ProbeRtt(None), 5)] {
        let mut pipe = cruising();
        (pipe.bbr.cycle, pipe.bbr.ack_phase, pipe.bbr.state) = (5, AckPhase::Stopping, state);
        pipe.round(100 * MSS, Round { pipe: 90 * MSS, ..CALM });
        assert_eq!(pipe.bbr.cycle, cycle);
    }
}

/// UpdateMinRTT: no probe is due at the start, however late that is, and a lower round trip counts at once.
#[test]
fn the_first_round_trip_is_as_good_as_a_probe() {
    let mut pipe = Pipe::new();
    pipe.now = Time::ZERO + Duration::from_secs(10);
    for millis in [100, 90, 95] {
        pipe.round(10 * MSS, Round { rtt: Duration::from_millis(millis), ..CALM });
    }
    assert_eq!((pipe.bbr.state, pipe.bbr.min_rtt), (State::Startup, Some(Duration::from_millis(90))));
}

/// ExitProbeRTT: until the path has been full, startup goes on.
#[test]
fn a_probe_of_the_round_trip_in_startup_returns_to_it() {
    let mut pipe = Pipe::new();
    pipe.calm();
    pipe.bbr.state = State::ProbeRtt(Some((pipe.now, true)));
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Startup);
}

/// CheckDrainDone: with more than a product in flight, the drain ends when the round trip after three more begins.
#[test]
fn a_drain_ends_after_three_round_trips_and_the_one_it_began_in() {
    let mut pipe = Pipe::new();
    let queued = Round { pipe: 150 * MSS, tx_in_flight: 200 * MSS, ..CALM };
    let mut rounds = 0;
    while pipe.bbr.state == State::Startup {
        pipe.round(100 * MSS, queued);
    }
    while matches!(pipe.bbr.state, State::Drain(_)) && rounds < 10 {
        pipe.round(100 * MSS, queued);
        rounds += 1;
    }
    assert_eq!((pipe.bbr.state, rounds), (State::Down, 4));
}

/// SetSendQuantum, QuantizationBudget: three times what leaves in a millisecond, which is between two segments and 64
/// kB; while a probe goes up, two segments more.
#[test]
fn budgets_by_hand() {
    let mut pipe = Pipe::new();
    for (pacing, budget) in [(None, 6000.0), (Some(1e6), 6000.0), (Some(3e7), 90_000.0), (Some(1e8), 196_608.0)] {
        pipe.bbr.pacing = pacing;
        for (state, more) in [(State::Cruise, 0.0), (State::Up, 2000.0)] {
            pipe.bbr.state = state;
            assert_eq!(pipe.bbr.budget(5000.0, 1000.0), budget + more, "{pacing:?}");
            assert_eq!(pipe.bbr.budget(200_000.0, 1000.0), 200_000.0 + more);
        }
    }
}

/// SetCwnd, BoundCwndForProbeRTT, BoundCwndForModel: at least four segments, whatever the bounds. A probe of the round
/// trip lowers the window to half a product, and does not raise it.
#[test]
fn small_windows_by_hand() {
    for (state, window, bound, after) in [
        (State::Cruise, 1000.0, f64::INFINITY, 4000),
        (State::Cruise, 50_000.0, 1000.0, 4000),
        (State::ProbeRtt(None), 20_000.0, f64::INFINITY, 21_000),
        (State::ProbeRtt(None), 90_000.0, f64::INFINITY, 50_000),
    ] {
        let mut pipe = cruising();
        pipe.bbr.state = state;
        pipe.window.set(window);
        pipe.bbr.bounds.inflight = bound;
        pipe.ack(Duration::from_millis(10), pipe.delivered, MSS, Round { pipe: 99 * MSS, ..CALM });
        assert_eq!(pipe.window.cwnd(), after, "{state:?} {window} {bound}");
    }
}

/// CheckStartupHighLoss: losses without a recovery end nothing, and neither do those of a recovery outside startup.
#[test]
fn only_a_recovery_in_startup_ends_it() {
    for (state, phase) in [(State::Startup, Phase::Open), (State::Cruise, Phase::Recovery)] {
        let mut pipe = Pipe::new();
        if state == State::Startup {
            (0..4).for_each(|_| pipe.calm())
        } else {
            _ = pipe.until(state)
        }
        let lossy = Round { rtt: RTT, pipe: 60 * MSS, tx_in_flight: 160 * MSS, lost: 10 * MSS, phase };
        let before = pipe.delivered;
        (0..7).for_each(|_| pipe.ack(Duration::from_millis(10), before, 10 * MSS, lossy));
        pipe.ack(Duration::from_millis(10), before + 10 * MSS, 10 * MSS, lossy);
        assert_eq!((pipe.bbr.state, pipe.bbr.bounds.longterm), (state, f64::INFINITY));
    }
}

/// StartRound: each phase counts its own round trips, from what is delivered as it begins. A refill lasts until the round trip that begins
/// with it is over.
#[test]
fn phases_begin_round_trips() {
    let mut pipe = cruising();
    pipe.bbr.start_down(pipe.now, 77);
    assert_eq!(pipe.bbr.round_end, 77);
    let began = pipe.delivered;
    pipe.bbr.start_refill(began);
    assert_eq!((pipe.bbr.round_end, pipe.bbr.ack_phase), (began, AckPhase::Refilling));
    let busy = Round { pipe: 90 * MSS, ..CALM };
    pipe.ack(Duration::from_millis(10), began - MSS, MSS, busy);
    assert_eq!(pipe.bbr.state, State::Refill);
    pipe.ack(Duration::from_millis(10), began, MSS, busy);
    assert_eq!((pipe.bbr.state, pipe.bbr.round_end), (State::Up, pipe.delivered));
    pipe.bbr.state = State::ProbeRtt(None);
    pipe.ack(Duration::from_millis(10), began, MSS, Round { pipe: 50 * MSS, ..CALM });
    assert!(matches!(pipe.bbr.state, State::ProbeRtt(Some(_))) && pipe.bbr.round_end == pipe.delivered);
}

/// AdaptLongTermModel: the filter advances once, in the round trip after the probe.
#[test]
fn the_filter_advances_once_per_probe() {
    let mut pipe = cruising();
    (pipe.bbr.cycle, pipe.bbr.ack_phase, pipe.bbr.round_end) = (5, AckPhase::Stopping, pipe.delivered + 100 * MSS);
    let busy = Round { pipe: 90 * MSS, ..CALM };
    let cycles = [0, 0, 100, 0, 100].map(|segments| {
        let prior = if segments == 0 { pipe.delivered - MSS } else { pipe.bbr.round_end };
        pipe.ack(Duration::from_millis(10), prior, 50 * MSS, busy);
        pipe.bbr.cycle
    });
    assert_eq!(cycles, [5, 5, 6, 6, 6]);
}

/// UpdateMaxBw: a sample that the application has limited does not displace a higher one, however old.
#[test]
fn a_limited_sample_displaces_nothing() {
    let mut pipe = cruising();
    pipe.bbr.cycle += 5;
    let sample = |is_app_limited| RateSample {
        prior_delivered: pipe.delivered,
        delivered: 50 * MSS,
        interval: RTT,
        is_app_limited,
        tx_in_flight: 50 * MSS,
        lost: 0,
    };
    let [limited, full] = [true, false].map(sample);
    let mut filled = Filled::default();
    let seen = |sample| Delivered {
        now: pipe.now,
        rtt: Some(RTT),
        srtt: Some(RTT),
        sample: Some(sample),
        too_high: None,
        newly: 50 * MSS,
        delivered: pipe.delivered + 50 * MSS,
        lost: 0,
        pipe: 0,
        pipe_before: 50 * MSS,
        departure: Time::ZERO,
        phase: Phase::Open,
    };
    for (sample, max) in [(limited, 1e6), (full, 5e5)] {
        let seen = seen(sample);
        pipe.bbr.update_max_bw(&seen);
        assert_eq!(pipe.bbr.max_bw.max(), max);
    }
    // CheckFullBWReached: once a probe has filled the path, a higher rate does not make it unfilled.
    (0..5).for_each(|_| filled.on_round(&full));
    assert!(filled.now);
    filled.on_round(&RateSample { delivered: 100 * MSS, ..full });
    assert!(filled.now);
}

/// ProbeInflightLongtermUpward: the bound rises only while a probe goes up, here by a segment for the window that is acknowledged, and the
/// slope is raised once per round trip.
#[test]
fn the_bound_rises_while_a_probe_goes_up() {
    for (state, bound) in [(State::Cruise, 100_000.0), (State::Up, 101_000.0)] {
        let mut pipe = cruising();
        pipe.window.set(100_000.0);
        pipe.bbr.up_rounds = 0;
        pipe.bbr.raise_slope(&pipe.window);
        (pipe.bbr.state, pipe.bbr.bounds.longterm, pipe.bbr.cycle_at) = (state, 100_000.0, pipe.now);
        for _ in 0..2 {
            let all = Round { pipe: 50 * MSS, tx_in_flight: MSS, ..CALM };
            pipe.window.set(100_000.0);
            pipe.ack(Duration::from_millis(10), 0, 50 * MSS, all);
        }
        assert_eq!(
            (pipe.bbr.bounds.longterm, pipe.bbr.up_count, pipe.bbr.up_rounds),
            (bound, 100_000.0, 1),
            "{state:?}"
        );
    }
}

/// HandleInflightTooHigh: losses that come after the probe has ended set the bound, but end no other phase, and are not
/// what an undo returns to. Each probe is judged once.
#[test]
fn losses_of_a_probe_that_has_ended() {
    let mut pipe = cruising();
    pipe.bbr.is_judging = true;
    let (state, cycle_at) = (pipe.bbr.state, pipe.bbr.cycle_at);
    pipe.now += Duration::from_millis(1);
    pipe.find_lost(10 * MSS, false);
    assert!(pipe.bbr.bounds.longterm.is_finite() && pipe.bbr.was_too_high);
    assert_eq!((pipe.bbr.state, pipe.bbr.cycle_at, pipe.bbr.is_judging), (state, cycle_at, false));
    pipe.bbr.bounds.longterm = 5000.0;
    let mark = LossReport { found_by: FoundBy::Mark, flight: 120 * MSS, peer_window: u64::MAX };
    pipe.bbr.on_loss(&mut pipe.window, &mark);
    pipe.find_lost(10 * MSS, false);
    assert_eq!(pipe.bbr.bounds.longterm, 5000.0);
    // RestoreCwnd, and no return to a probe.
    pipe.window.set(50_000.0);
    pipe.bbr.prior = 250_000.0;
    pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
    assert_eq!((pipe.window.cwnd(), pipe.bbr.state, pipe.bbr.bounds.events), (250_000, state, 0));
}

/// ResetCongestionSignals: what was delivered before does not count for the bounds of the losses after.
#[test]
fn signals_are_reset() {
    let mut pipe = cruising();
    pipe.bbr.bounds.reset_signals();
    pipe.bbr.bounds.note_loss(0);
    pipe.bbr.bounds.adapt(1e6, 100_000.0);
    assert!((pipe.bbr.bounds.bw - 7e5).abs() < 1.0 && (pipe.bbr.bounds.inflight - 70_000.0).abs() < 1.0);
}

/// IsTimeToCruise: nor while more is in flight than the bound leaves, 85 % of it. CheckDrainDone: a product of 100
/// segments is drained with 100 in flight. TargetInflight: a product of 20 segments makes probes 20 round trips apart.
#[test]
fn products_by_hand() {
    let mut pipe = cruising();
    pipe.bbr.start_down(pipe.now, pipe.delivered);
    pipe.bbr.bounds.longterm = 100_000.0;
    for (flight, state) in [(86, State::Down), (85, State::Cruise)] {
        pipe.ack(Duration::from_millis(10), pipe.delivered - MSS, MSS, Round { pipe: flight * MSS, ..CALM });
        assert_eq!(pipe.bbr.state, state, "{flight}");
    }
    for (flight, drains) in [(101, true), (100, false)] {
        (pipe.bbr.state, pipe.bbr.bw) = (State::Drain(u64::MAX), 1e6);
        pipe.ack(Duration::from_millis(10), pipe.delivered - MSS, MSS, Round { pipe: flight * MSS, ..CALM });
        assert_eq!(matches!(pipe.bbr.state, State::Drain(_)), drains, "{flight}");
    }
    (pipe.bbr.min_rtt, pipe.bbr.bw) = (Some(Duration::from_millis(20)), 1e6);
    pipe.window.set(200_000.0);
    assert!((pipe.bbr.target(&pipe.window) - 20_000.0).abs() < 1.0);
}

/// HandleProbeRTT: 200 ms and a round trip have to pass. CheckProbeRTTDone: the next probe is due five seconds after the end.
#[test]
fn a_probe_of_the_round_trip_lasts_for_one() {
    let mut pipe = cruising();
    pipe.now += Duration::from_secs(6);
    let long = Round { rtt: RTT + RTT, pipe: 4 * MSS, ..CALM };
    pipe.ack(long.rtt, pipe.delivered, MSS, long);
    let began = pipe.delivered;
    for (prior, probes) in [(began - MSS, true), (began - MSS, true), (began, false)] {
        assert!(pipe.bbr.holds_back());
        pipe.ack(Duration::from_millis(150), prior, MSS, long);
        assert_eq!(pipe.bbr.holds_back(), probes);
    }
    assert_eq!(pipe.bbr.recent_rtt_at, pipe.now);
    // A pause spares one probe, not those after it.
    pipe.now += Duration::from_secs(6);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    for probes in [false, true] {
        pipe.ack(long.rtt, pipe.delivered, MSS, long);
        assert_eq!(pipe.bbr.holds_back(), probes);
        pipe.now += Duration::from_secs(6);
    }
}
