use super::*;

fn address(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 4500).into()
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

/// The id of a probe of the new address.
fn new_probe(reach: &mut Reach, now: Time) -> Option<u32> {
    std::iter::from_fn(|| reach.probe(now)).map(|(_, id)| id).find(|id| *id != SIGN_OF_LIFE)
}

/// Bytes sent to a new address count, however often the peer leaves it and comes back.
#[test]
fn three_bytes_for_one() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    for round in 0..10 {
        reach.heard(at(round), address(2), 100, true);
        assert_eq!((reach.at(), reach.allowance()), (Some(address(2)), 300));
        reach.sent(address(2), 300);
        assert_eq!(reach.allowance(), 0);
        reach.heard(at(round), address(1), 100, true);
        assert_eq!((reach.at(), reach.allowance()), (Some(address(1)), u64::MAX));
        reach.sent(address(1), 3000);
    }
    // A late datagram does not move the peer, but its bytes count.
    reach.heard(at(11), address(2), 50, false);
    assert_eq!(reach.at(), Some(address(1)));
    reach.heard(at(11), address(2), 50, true);
    assert_eq!(reach.allowance(), 300);
    // Another address has an account of its own, and the last four are kept.
    for n in [3, 4, 5] {
        reach.heard(at(12), address(n), 10, true);
        assert_eq!(reach.allowance(), 30);
    }
    reach.heard(at(13), address(2), 10, true);
    assert_eq!(reach.allowance(), 330);
    reach.heard(at(14), address(6), 10, true);
    reach.heard(at(15), address(2), 10, true);
    assert_eq!(reach.allowance(), 30, "only what has come since");
}

#[test]
fn the_last_four_proven_addresses_are_kept() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    for n in [2, 3, 4, 5] {
        reach.heard(at(0), address(n), 100, true);
        let id = new_probe(&mut reach, at(0)).expect("at once");
        // The peer is elsewhere again when its answer comes.
        reach.heard(at(0), address(1), 100, true);
        assert!(reach.on_ack(at(0), id));
    }
    for (n, proven) in [(3, true), (4, true), (5, true), (1, true), (3, true), (2, false), (1, true)] {
        reach.heard(at(0), address(n), 100, true);
        assert_eq!(reach.allowance() == u64::MAX, proven, "{n}");
    }
    reach.heard(at(0), address(2), 100, true);
    reach.give_up();
    assert_eq!((reach.at(), reach.allowance()), (Some(address(1)), u64::MAX));
}

/// An address that is proven again takes one place, not two.
#[test]
fn a_proof_is_renewed_in_its_place() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    (2..=4).for_each(|n| reach.prove(at(0), address(n)));
    (0..9).for_each(|_| reach.prove(at(0), address(3)));
    for n in 1..=4 {
        reach.heard(at(0), address(n), 100, true);
        assert_eq!(reach.allowance(), u64::MAX, "{n}");
    }
}

/// The peer's keys stay in use, but its handshakes go via another address.
#[test]
fn a_proof_ends() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    reach.prove(at(200_000), address(2));
    reach.heard(at(239_999), address(1), 100, true);
    assert_eq!(reach.allowance(), u64::MAX);
    reach.heard(at(240_000), address(1), 100, true);
    assert_eq!((reach.at(), reach.allowance()), (Some(address(1)), 300));
    reach.heard(at(439_999), address(2), 100, true);
    assert_eq!(reach.allowance(), u64::MAX);
    reach.heard(at(440_000), address(2), 100, true);
    assert_eq!(reach.allowance(), 300, "240 s after its proof");
}

#[test]
fn an_id_is_not_guessed() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    reach.heard(at(0), address(2), 100, true);
    let id = new_probe(&mut reach, at(0)).expect("at once");
    assert!(!reach.on_ack(at(0), id & !OWN), "one of the path's MTU");
    for guess in 1..=GUESSES {
        assert!(reach.on_ack(at(0), id ^ guess));
    }
    reach.on_ack(at(0), id);
    assert_eq!(reach.allowance(), 300, "it may have been guessed");
    reach.on_ack(at(1000), id);
    assert_eq!((reach.allowance(), reach.proven()), (u64::MAX, Some(address(2))));
}

/// Acknowledgements of the path's MTU, and those that come while no address is to be proven, do not count as guesses.
#[test]
fn other_acknowledgements_are_no_guesses() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    (0..100).for_each(|id| assert!(reach.on_ack(at(0), OWN | id)));
    reach.heard(at(0), address(2), 100, true);
    (0..100).for_each(|id| assert!(!reach.on_ack(at(0), id)));
    let id = new_probe(&mut reach, at(0)).expect("at once");
    assert!(reach.on_ack(at(0), id));
    assert_eq!(reach.proven(), Some(address(2)));
}

#[test]
fn the_configured_address_comes_before_the_remembered_one() {
    for (given, last, expected) in [(Some(1), Some(2), Some(1)), (None, Some(2), Some(2)), (None, None, None)] {
        let reach = Reach::new(given.map(address), last.map(address), at(0));
        assert_eq!(reach.at(), expected.map(address));
    }
}

/// The users of the address are told of a new one once, not of one that was known.
#[test]
fn a_move_is_told_once() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    reach.prove(at(0), address(1));
    reach.heard(at(0), address(2), 100, true);
    assert!(!reach.take_moved());
    reach.prove(at(0), address(2));
    assert_eq!([reach.take_moved(), reach.take_moved()], [true, false]);
    reach.prove(at(0), address(2));
    reach.heard(at(0), address(1), 100, true);
    assert!(!reach.take_moved(), "it was there before");
}

/// Addresses and ids of the probes of the next seconds, and their times in milliseconds. Nothing is answered.
fn probes(reach: &mut Reach, from: u64, until: u64) -> Vec<(u64, SocketAddr, bool)> {
    let mut probes = Vec::new();
    let mut now = from;
    while now <= until {
        while let Some((to, id)) = reach.probe(at(now)) {
            assert!(id == SIGN_OF_LIFE || id & OWN != 0);
            reach.sent(to, PROBE);
            probes.push((now, to, id == SIGN_OF_LIFE));
        }
        let Some(next) = reach.probe_at(at(now)) else { break };
        now = next.as_nanos() / 1_000_000;
    }
    probes
}

/// The last proven address is probed three times, and the new one until it is proven.
#[test]
fn both_addresses_are_probed() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    reach.heard(at(100), address(2), 1000, true);
    let (old, new) = ((address(1), true), (address(2), false));
    let expected = [100, 600, 1100].map(|at| [(at, old), (at, new)]).concat();
    let expected = expected.into_iter().chain([1600, 2100].map(|at| (at, new)));
    assert_eq!(probes(&mut reach, 100, 2100), expected.map(|(at, (to, old))| (at, to, old)).collect::<Vec<_>>());
    reach.prove(at(2200), address(2));
    assert_eq!((probes(&mut reach, 2200, 5000), reach.probe_at(at(2200))), (vec![], None));
    // A proof ends the probes of both.
    let mut other = Reach::new(Some(address(1)), None, at(0));
    other.heard(at(100), address(2), 1000, true);
    other.prove(at(200), address(2));
    assert_eq!((probes(&mut other, 200, 5000), other.probe_at(at(200))), (vec![], None));
    // Next time again, but not where the peer was long ago.
    reach.heard(at(3000), address(3), 1000, true);
    assert_eq!(probes(&mut reach, 3000, 9000).iter().filter(|(_, to, _)| *to == address(2)).count(), 3);
    reach.heard(at(250_000), address(4), 1000, true);
    assert!(probes(&mut reach, 250_000, 259_000).iter().all(|(_, to, _)| *to == address(4)));
}

/// The old address may be due before the new one: a single byte from there pays for no probe, so the next one waits for a second. 100 bytes
/// pay for it, and both are due at 600 ms.
#[test]
fn the_earlier_of_two_probes_is_waited_for() {
    for (bytes, new_at) in [(1, 1100), (100, 600)] {
        let mut reach = Reach::new(Some(address(1)), None, at(0));
        reach.heard(at(100), address(2), bytes, true);
        assert_eq!(probes(&mut reach, 100, 100).len(), 2);
        assert_eq!(reach.old(at(100)), Some((address(1), at(600))));
        assert_eq!((reach.new_at(), reach.probe_at(at(100))), (Some(at(new_at)), Some(at(600))), "{bytes} B");
    }
}

/// Beyond the limit there is one probe per second, and never two within half a second.
#[test]
fn probes_within_the_limit_come_first() {
    let mut reach = Reach::new(None, None, at(0));
    reach.heard(at(0), address(2), 9, true);
    assert_eq!(probes(&mut reach, 0, 0), [(0, address(2), false)], "beyond its 27 bytes");
    // Exactly a probe's length is left.
    reach.heard(at(100), address(3), 10, true);
    reach.sent(address(3), 1);
    assert_eq!(reach.allowance(), PROBE as u64);
    assert_eq!(probes(&mut reach, 100, 2700), [100, 1000, 2000].map(|at| (at, address(3), false)));
    // Just before the next one beyond the limit would be due.
    reach.heard(at(2900), address(4), 10, true);
    assert_eq!(probes(&mut reach, 2900, 4000), [2900, 3400].map(|at| (at, address(4), false)));
}

/// A lost peer has no unproven address, and stays where it was if that is proven, although it was elsewhere in between.
#[test]
fn a_lost_peer_has_no_new_address() {
    let mut reach = Reach::new(Some(address(1)), None, at(0));
    reach.heard(at(0), address(2), 100, true);
    reach.heard(at(0), address(1), 100, true);
    reach.prove(at(0), address(2));
    reach.heard(at(0), address(3), 100, false);
    reach.give_up();
    assert_eq!((reach.at(), reach.proven()), (Some(address(1)), Some(address(2))));
    reach.heard(at(0), address(4), 100, true);
    reach.give_up();
    assert_eq!(reach.at(), Some(address(2)));
    reach.heard(at(0), address(4), 10, true);
    assert_eq!(reach.allowance(), 30, "only what has come since");
}

/// The limit is used up, and there are more addresses than are kept: still exactly one probe per second.
#[test]
fn unpaid_probes_are_one_per_second() {
    let mut reach = Reach::new(None, None, at(0));
    let mut probes = 0;
    for millisecond in 0..10_000 {
        reach.heard(at(millisecond), address((millisecond % 7) as u8), 9, true);
        while let Some((to, _)) = reach.probe(at(millisecond)) {
            reach.sent(to, PROBE);
            probes += 1;
        }
        assert!(reach.probe_at(at(millisecond)).is_none_or(|next| next > at(millisecond)));
    }
    assert_eq!(probes, 10);
}
