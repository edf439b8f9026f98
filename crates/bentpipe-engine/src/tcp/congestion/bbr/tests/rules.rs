//! Single rules of BBR v1 and of Linux, each at its bound.

use super::*;

/// The sender has nothing more to send: a lower rate says nothing about the path, a higher one does, and no such round trip shows that the
/// pipe is full.
#[test]
fn samples_of_an_idle_application_count_only_if_higher() {
    let mut pipe = Pipe::new();
    for (newly, rate) in [(10, 1e5), (5, 1e5), (20, 2e5), (5, 2e5), (5, 2e5), (5, 2e5), (5, 2e5)] {
        pipe.now += RTT;
        pipe.delivered += newly * MSS;
        let mut seen = pipe.seen(RTT, newly * MSS, 0, Phase::Open, 0);
        seen.sample = seen.sample.map(|sample| RateSample { is_app_limited: true, ..sample });
        pipe.bbr.on_delivered(&mut pipe.window, &seen);
        assert_eq!((pipe.bbr.rate.max(), pipe.bbr.is_full), (rate, false));
    }
}

/// Linux's `bbr_is_next_cycle_phase`: the probe ends after a round trip with a loss or with 1.25 products in flight, the draining phase
/// as soon as one product is left. One product is 100 segments, with 6 of room.
#[test]
fn phases_end_by_what_is_in_flight() {
    for (phase, before, lost, millis, next) in [
        (0, 100, 0, 101, 0),
        (0, 100, 1, 101, 1),
        (0, 100, 1, 100, 0),
        (0, 140, 0, 101, 1),
        (1, 107, 0, 50, 1),
        (1, 106, 0, 50, 2),
        (1, 107, 0, 101, 2),
        (2, 10, 0, 50, 2),
    ] {
        let mut pipe = Pipe::new();
        pipe.fill();
        pipe.bbr.mode = Mode::ProbeBw(phase, pipe.now);
        pipe.now += Duration::from_millis(millis);
        let pipe_before = before * MSS;
        let seen = Delivered { pipe_before, departure: pipe.now, ..pipe.seen(RTT, MSS, 0, Phase::Open, lost) };
        pipe.bbr.advance_cycle(&seen, MSS as f64);
        let now = matches!(pipe.bbr.mode, Mode::ProbeBw(now, _) if now == next);
        assert!(now, "{phase} {before} {lost} {millis}: {:?}", pipe.bbr.mode);
    }
}

/// An ACK after a pause that delivers nothing does not end the pause: the next one does, and still needs no probe.
#[test]
fn a_pause_lasts_until_something_is_delivered() {
    let mut pipe = Pipe::new();
    pipe.fill();
    pipe.now += Duration::from_secs(12);
    pipe.bbr.on_restart_from_idle(&mut pipe.window, pipe.now);
    let empty = Delivered { rtt: None, sample: None, ..pipe.seen(RTT, 0, 0, Phase::Open, 0) };
    pipe.bbr.on_delivered(&mut pipe.window, &empty);
    pipe.round(RTT, 2 * MSS, 0, Phase::Open, 0);
    assert!(!pipe.bbr.holds_back(), "{:?}", pipe.bbr.mode);
}

/// The window to restore is that before the first loss (§4.2.3.4, BBRSaveCwnd), not one of an earlier recovery; within a recovery or a
/// probe of the round trip it is the larger one. Linux enters the probe first, so that it counts as one.
#[test]
fn the_window_to_restore() {
    let mut pipe = Pipe::new();
    pipe.fill();
    let before = pipe.window.exact();
    let lost = LossReport { found_by: FoundBy::DuplicateAcks, flight: 0, peer_window: 0 };
    pipe.bbr.prior = 2.0 * before;
    pipe.bbr.on_loss(&mut pipe.window, &lost);
    assert_eq!(pipe.bbr.prior, before);
    pipe.bbr.phase = Phase::Recovery;
    pipe.window.set(before / 2.0);
    pipe.bbr.on_loss(&mut pipe.window, &lost);
    assert_eq!(pipe.bbr.prior, before);
    // The minimum round trip expires.
    pipe.bbr.phase = Phase::Open;
    pipe.now += Duration::from_secs(12);
    pipe.round(RTT + RTT, MSS, 100 * MSS, Phase::Open, 0);
    assert!(pipe.bbr.holds_back() && pipe.bbr.prior == before, "{}", pipe.bbr.prior);
    // It is valid for ten seconds from the end of its probe.
    for _ in 0..4 {
        pipe.round(RTT + RTT, 4 * MSS, 0, Phase::Open, 0);
    }
    assert!(!pipe.bbr.holds_back());
    let ended = pipe.bbr.min_rtt_at;
    assert!(pipe.now.saturating_since(ended) < RTT + RTT + RTT, "{ended:?} {:?}", pipe.now);
}

/// Linux's `bbr_set_cwnd_to_recover_or_restore`: what is found lost leaves the window. An ACK that delivers nothing does not begin a
/// recovery. The first that delivers something does, and the window equals what is in flight until what is sent from then on is
/// acknowledged.
#[test]
fn the_first_round_trip_of_a_recovery() {
    let mut pipe = Pipe::new();
    pipe.fill();
    pipe.window.set(100.0 * MSS as f64);
    (pipe.bbr.phase, pipe.bbr.conserves) = (Phase::Recovery, false);
    pipe.round(RTT, 2 * MSS, 90 * MSS, Phase::Recovery, 5 * MSS);
    assert_eq!(pipe.window.segments(), 97);

    pipe.bbr.phase = Phase::Open;
    let empty = Delivered { rtt: None, sample: None, ..pipe.seen(RTT, 0, 60 * MSS, Phase::Recovery, 0) };
    pipe.bbr.on_delivered(&mut pipe.window, &empty);
    assert_eq!(pipe.window.segments(), 97);
    // An ACK for data that was delivered before the round trip began, and so belongs to it.
    let ack = |pipe: &mut Pipe, newly: u64, prior_delivered: u64, flight: u64| {
        pipe.delivered += newly * MSS;
        let mut seen = pipe.seen(RTT, newly * MSS, flight * MSS, Phase::Recovery, 0);
        seen.sample = seen.sample.map(|sample| RateSample { prior_delivered, ..sample });
        pipe.bbr.on_delivered(&mut pipe.window, &seen);
        pipe.window.segments()
    };
    let began = pipe.delivered;
    assert_eq!(ack(&mut pipe, 3, began - MSS, 60), 63);
    assert_eq!(ack(&mut pipe, 10, began, 60), 70, "sent before the recovery began");
    assert_eq!(ack(&mut pipe, 10, began + 3 * MSS, 100), 80, "sent since");
}

/// The first segment of ten arrives alone, at a rate at which a product is one segment: the window grows nevertheless until the first ten
/// are delivered (§4.2.3.4).
#[test]
fn a_slow_first_segment_does_not_hold_back_the_first_window() {
    let mut pipe = Pipe::new();
    assert_eq!(pipe.bbr.initial_window, 10.0);
    pipe.round(RTT, MSS, 9 * MSS, Phase::Open, 0);
    assert_eq!(pipe.window.segments(), 11);
    pipe.delivered = 10 * MSS;
    pipe.round(RTT, MSS, 9 * MSS, Phase::Open, 0);
    assert_eq!(pipe.window.segments(), 11);
}

/// A timeout forgets how long the rate has not grown (`bbr_set_state`): three more round trips without growth are needed, and one for a
/// new measure.
#[test]
fn after_a_timeout_the_pipe_must_prove_full_again() {
    for (with_timeout, is_full) in [(false, true), (true, false)] {
        let mut pipe = Pipe::new();
        for _ in 0..3 {
            pipe.round(RTT, 10 * MSS, 0, Phase::Open, 0);
        }
        if with_timeout {
            let timeout = FoundBy::Timeout { repeated: false };
            pipe.bbr.on_loss(&mut pipe.window, &LossReport { found_by: timeout, flight: 0, peer_window: 0 });
        }
        pipe.round(RTT, 10 * MSS, 0, Phase::Open, 0);
        assert_eq!(pipe.bbr.is_full, is_full);
    }
}

/// Two segments of room beyond an even number while it probes for more (`bbr_quantization_budget`).
#[test]
fn a_probe_has_room_for_two_more() {
    let mut pipe = Pipe::new();
    pipe.fill();
    for (phase, expected) in [(0, 108.0), (1, 106.0)] {
        pipe.bbr.mode = Mode::ProbeBw(phase, pipe.now);
        assert_eq!(pipe.bbr.inflight(1.0, MSS as f64), expected);
    }
}

/// 1 MB/s for a tenth of a second are 100 segments, the most for which there is room besides two products. A smaller window bounds it, too.
/// It counts for five to ten round trips, and a pause discards what came before it.
#[test]
fn room_for_bunches_is_bounded() {
    for (window, room) in [(400, 100.0), (60, 60.0)] {
        let mut pipe = Pipe::new();
        pipe.fill();
        pipe.bbr.aggregation = Aggregation::default();
        let bunch = pipe.seen(RTT, 300 * MSS, 0, Phase::Open, 0);
        pipe.bbr.aggregation.restart(pipe.now);
        pipe.bbr.aggregation.update(&bunch, 1e6, (window * MSS) as f64, false);
        assert_eq!(pipe.bbr.room_for_bunches(MSS as f64), room);
    }
    let mut extra = Aggregation::default();
    let pipe = Pipe { delivered: 1 << 30, ..Pipe::new() };
    let mut update = |millis, newly| {
        let seen = Delivered {
            now: Time::ZERO + Duration::from_millis(millis),
            ..pipe.seen(RTT, newly * MSS, 0, Phase::Open, 0)
        };
        extra.update(&seen, 1e6, 1e9, true);
        extra.extra()
    };
    update(0, 50);
    let rounds = (1..20).take_while(|&n| update(100 * n, 1) == 50_000.0).count();
    assert_eq!(rounds, 8, "to the end of the next span");
    let mut paused = Aggregation::default();
    let seen = |millis, newly| Delivered {
        now: Time::ZERO + Duration::from_millis(millis),
        ..pipe.seen(RTT, newly * MSS, 0, Phase::Open, 0)
    };
    paused.update(&seen(0, 50), 1e6, 1e9, false);
    paused.restart(Time::ZERO + Duration::from_millis(10));
    paused.update(&seen(10, 20), 1e6, 1e9, false);
    assert_eq!(paused.extra(), 50_000.0, "not 60 segments");
}
