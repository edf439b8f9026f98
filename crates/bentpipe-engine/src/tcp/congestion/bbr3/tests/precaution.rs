//! Probes after one that lost too much (draft-ietf-ccwg-bbr-06 §5.3.3.6).

use super::*;

/// A round trip that delivers 100 segments, after which `pipe` are in flight.
fn busy(pipe: u64) -> Round {
    Round { rtt: RTT, pipe: pipe * MSS, tx_in_flight: (100 + pipe) * MSS, lost: 0, phase: Phase::Open }
}

/// A probe has lost 4500 of 150 000 bytes, which bounds the volume at 149 000 - 520/0.98 = 148 469.4. The next probe is under way.
fn probe_after_losses() -> Pipe {
    let mut pipe = Pipe::new();
    pipe.until(State::Up);
    pipe.round(100 * MSS, Round { tx_in_flight: 150 * MSS, lost: 4500, ..busy(40) });
    assert_eq!(pipe.bounds(), (148_469, true, false));
    pipe.until(State::Up);
    pipe
}

impl Pipe {
    /// The volume at which a probe lost too much, whether the last did, and whether the last was a precaution.
    fn bounds(&self) -> (u64, bool, bool) {
        (self.bbr.bounds.longterm as u64, self.bbr.was_too_high, self.bbr.was_precautionary)
    }
}

/// The probe ends when another segment does not fit below the bound: at 148 in flight, not at 147. A round trip later another one begins
/// with its refill, and stays at the bound, though the rate does not grow. It raises it: after a window of ACKs by a segment, then by two
/// and four per window. 100 000 bytes are less than a window; 200 000 are 2.7 halves; 51 531 left of them and 100 000 more are 4.1
/// quarters.
#[test]
fn a_probe_at_the_bound_is_a_precaution_and_the_next_one_is_not() {
    let mut pipe = probe_after_losses();
    pipe.round(100 * MSS, busy(47));
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Up, (148_469, true, false)));
    pipe.round(100 * MSS, busy(48));
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Down, (148_469, false, true)));
    pipe.round(100 * MSS, busy(40));
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Refill, (148_469, false, false)));
    pipe.round(100 * MSS, busy(40));
    let mut bounds = Vec::new();
    for in_flight in [48, 48, 50] {
        pipe.round(100 * MSS, Round { tx_in_flight: 100 * MSS, ..busy(in_flight) });
        assert_eq!(pipe.bbr.state, State::Up);
        bounds.push(pipe.bounds().0);
    }
    assert_eq!(bounds, [148_469, 150_469, 154_469]);
    pipe.round(100 * MSS, busy(54));
    assert_eq!(pipe.bbr.state, State::Up, "the rate has not grown for more than three round trips");
}

/// If the round trip after the precaution shows too many losses, the sender cruises, and the next probe is a precaution again.
#[test]
fn losses_of_a_precaution_make_the_next_probe_one() {
    let mut pipe = probe_after_losses();
    pipe.round(100 * MSS, busy(48));
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Down, (148_469, false, true)));
    pipe.round(100 * MSS, Round { tx_in_flight: 148 * MSS, lost: 4000, ..busy(40) });
    assert!(matches!(pipe.bbr.state, State::Down | State::Cruise), "{:?}", pipe.bbr.state);
    // 147 000 + (2940 - 3000) / 0.98
    assert_eq!(pipe.bounds(), (146_938, true, true));
    pipe.until(State::Up);
    pipe.round(100 * MSS, busy(46));
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Down, (146_938, false, true)));
}

/// A probe that ends because the path is full, below the bound, was no precaution: the sender cruises after it.
#[test]
fn a_probe_below_the_bound_is_none() {
    let mut pipe = probe_after_losses();
    for _ in 0..3 {
        assert_eq!(pipe.bbr.state, State::Up);
        pipe.calm();
    }
    assert_eq!((pipe.bbr.state, pipe.bounds()), (State::Down, (148_469, false, false)));
    pipe.calm();
    assert_eq!(pipe.bbr.state, State::Cruise);
}
