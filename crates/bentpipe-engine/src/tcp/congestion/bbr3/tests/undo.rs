//! Recoveries that were needless (draft-ietf-ccwg-bbr-06 §5.5.11).

use super::*;

const ENTERED: LossReport = LossReport { found_by: FoundBy::DuplicateAcks, flight: 0, peer_window: 0 };

/// An ACK of 10 segments during a recovery that shows one in ten to be lost.
fn lossy() -> Round {
    Round { rtt: RTT, pipe: 160 * MSS, tx_in_flight: 100 * MSS, lost: 10 * MSS, phase: Phase::Recovery }
}

/// The losses of a recovery end a probe, and further losses follow. If all were none, the probe begins again with its refill.
#[test]
fn a_probe_begins_again() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.bbr.on_loss(&mut pipe.window, &ENTERED);
    for _ in 0..3 {
        pipe.ack(Duration::from_millis(10), pipe.delivered - MSS, 10 * MSS, lossy());
        assert_eq!(pipe.bbr.state, State::Down);
    }
    assert!(pipe.bbr.bounds.longterm.is_finite());
    pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
    assert_eq!((pipe.bbr.state, pipe.bbr.bounds.longterm), (State::Refill, f64::INFINITY));
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Up);
}

/// A timer finds the losses: the control hears of them before the recovery begins.
#[test]
fn a_probe_begins_again_after_losses_found_by_a_timer() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.find_lost(10 * MSS, false);
    pipe.bbr.on_loss(&mut pipe.window, &ENTERED);
    assert_eq!(pipe.bbr.state, State::Down);
    pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
    assert_eq!((pipe.bbr.state, pipe.bbr.bounds.longterm), (State::Refill, f64::INFINITY));
}

/// What an earlier recovery has ended, a later one does not give back, nor the bound.
#[test]
fn an_earlier_recovery_stands() {
    for again in [ENTERED, LossReport { found_by: FoundBy::Timeout { repeated: false }, ..ENTERED }] {
        let mut pipe = Pipe::new();
        pipe.until(State::Up);
        pipe.bbr.on_loss(&mut pipe.window, &ENTERED);
        pipe.round(100 * MSS, lossy());
        let bound = pipe.bbr.bounds.longterm;
        pipe.calm();
        let state = pipe.bbr.state;
        pipe.bbr.on_loss(&mut pipe.window, &again);
        pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
        assert_eq!((pipe.bbr.state, pipe.bbr.bounds.longterm), (state, bound));
    }
}

/// Startup goes on if losses have ended it: in a probe of the round trip once that is over. The path is not full.
#[test]
fn startup_goes_on() {
    for probes in [false, true] {
        let mut pipe = Pipe::new();
        leave_startup_by_losses(&mut pipe);
        if probes {
            pipe.bbr.state = State::ProbeRtt(None);
        }
        pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
        let state = if probes { State::ProbeRtt(None) } else { State::Startup };
        assert_eq!((pipe.bbr.state, pipe.bbr.filled.ever), (state, false));
        assert_eq!(pipe.bbr.bounds.longterm, f64::INFINITY);
    }
}

/// A needless recovery during which a probe ends because the path is full: the losses did not end it, and it does not begin again. Revision
/// 05 compared the states before and after.
#[test]
fn a_recovery_that_ended_nothing_changes_no_state() {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.bbr.on_loss(&mut pipe.window, &ENTERED);
    let few = Round { tx_in_flight: 100 * MSS, lost: MSS, ..lossy() };
    while pipe.bbr.state == State::Up {
        pipe.round(100 * MSS, few);
    }
    let state = pipe.bbr.state;
    pipe.bbr.on_spurious_timeout(&mut pipe.window, 0, 0);
    assert_eq!(pipe.bbr.state, state);
}
