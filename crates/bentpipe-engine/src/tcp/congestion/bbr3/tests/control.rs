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

/// SetCwnd, UpdateMaxInflight: the window grows by what is acknowledged, up to two products of 100 000 bytes and what ACKs have run ahead. An
/// ACK for a whole round trip runs ahead by a product.
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

/// CheckStartupHighLoss asks for a round trip of the recovery: an ACK of a segment that was sent before the recovery began, here the ACK before
/// it, does not end startup.
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

/// OnEnterFastRecovery after a timeout saves the bounds anew; in one recovery, the first ones stay. HandleSpuriousLossDetection restores them.
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
