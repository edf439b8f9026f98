//! The peer moves, or claims to.

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::packet::INIT;

/// Two distant ends, the first of which has moved.
fn moved() -> World {
    let mut world = World::new();
    world.delay = ms(300);
    world.run(seconds(2));
    world.at[0] = address(7);
    assert!(world.say(0, &[1; 100]));
    world
}

fn is_proven(world: &World, end: usize) -> bool {
    world.ends[end].allowance() == u64::MAX
}

#[test]
fn a_new_address_is_proven_in_a_round_trip() {
    let mut world = moved();
    world.run(ms(300));
    let allowance = 3 * 125 - 29;
    assert_eq!((world.ends[1].endpoint(), world.ends[1].allowance()), (Some(address(7)), allowance));
    assert_eq!(world.ends[1].proven_endpoint(), Some(address(1)));
    world.run(ms(599));
    assert!(!is_proven(&world, 1));
    world.run(ms(1));
    assert!(is_proven(&world, 1));
    assert_eq!(world.ends[1].proven_endpoint(), Some(address(7)));
    // Back again, without a new proof.
    world.at[0] = address(1);
    world.say(0, b"home");
    world.run(ms(300));
    assert!(is_proven(&world, 1) && world.ends[1].endpoint() == Some(address(1)));
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!(
        world.payloads[1],
        [vec![1; 100], b"home".to_vec()],
        "acknowledgements of address probes are for this end alone"
    );
}

#[test]
fn a_lost_probe_is_repeated() {
    let mut world = moved();
    world.cut[1] = true;
    world.run(ms(300 + 999));
    world.cut[1] = false;
    world.run(ms(600));
    assert!(!is_proven(&world, 1));
    world.run(ms(1));
    assert!(is_proven(&world, 1), "the third probe, after a second, was answered");
}

#[test]
fn both_may_move_at_once() {
    let mut world = moved();
    world.run(ms(300));
    // Its probe is on its way from here.
    world.at[1] = address(8);
    world.say(1, &[2; 100]);
    world.run(ms(300));
    assert_eq!([0, 1].map(|end| world.ends[end].endpoint()), [Some(address(8)), Some(address(7))]);
    world.run(ms(900));
    assert!(is_proven(&world, 0) && is_proven(&world, 1));
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
    world.run(ms(300));
    assert_eq!([0, 1].map(|end| world.payloads[end].last().map(Vec::len)), [Some(4); 2]);
}

/// Neither address is proven, and both ends have sent all that they may: without the probes beyond the limit they would stay
/// silent.
#[test]
fn both_have_moved_and_all_probes_were_lost() {
    let mut world = moved();
    world.run(ms(300));
    world.at[1] = address(8);
    world.say(1, &[2; 100]);
    world.run(ms(300));
    world.cut = [true; 2];
    // 375 bytes each: 12 probes, or fewer and a handshake.
    world.run(seconds(9));
    assert!([0, 1].iter().all(|&end| !is_proven(&world, end) && world.ends[end].allowance() < 29));
    world.cut = [false; 2];
    // Up to a second until the next probe.
    world.run(ms(1000 + 600));
    assert!(is_proven(&world, 0) && is_proven(&world, 1));
    assert_eq!(world.events, [[UP], [UP]]);
}

/// Probes and handshakes get through by themselves, but the bytes of a first message also allow an answer.
#[test]
fn a_first_message_pays_for_probes() {
    let mut world = moved();
    world.run(ms(300));
    let before = world.ends[1].allowance();
    world.now += ms(1);
    let first = world.first(0, world.wall(0) + 1);
    world.bring(1, address(7), &first);
    assert_eq!(world.ends[1].allowance(), before + 3 * INIT as u64 - 83);
    // A copy allows no further bytes.
    world.bring(1, address(7), &first);
    assert_eq!(world.ends[1].allowance(), before + 3 * INIT as u64 - 83);
}

/// Keepalives, probes and handshakes count towards the limit that the received bytes set.
#[test]
fn a_forged_address_gets_no_more_than_three_times() {
    let mut world = World::new();
    world.run(seconds(2));
    let begun = world.now;
    for (length, span) in [(0, 2), (3, 1), (0, 2), (0, 2), (100, 2), (300, 2)] {
        (world.at[0], world.cut[0]) = (address(9), false);
        world.say(0, &vec![1; length]);
        // Nothing arrives there, and nothing else is sent.
        (world.at[0], world.cut[0]) = (address(1), true);
        world.run(seconds(span));
        assert!(!is_proven(&world, 1));
        let [to, from] = [&world.bytes_to, &world.bytes_from].map(|bytes| bytes[&address(9)]);
        // And one probe per second beyond the limit.
        let unpaid = 29 * (1 + world.now.saturating_since(begun).as_millis_f64() as u64 / 1000);
        assert!(to <= 3 * from + unpaid, "{to} bytes for {from}");
        // An end that waits does so.
        assert!(world.settle().is_some_and(|wake| wake > world.now));
    }
    assert!(world.bytes_to[&address(9)] > INIT as u64);
    // A true answer ends it at once.
    world.cut[0] = false;
    assert!(world.say(0, b"here"));
    assert!(is_proven(&world, 1));
    assert_eq!((world.ends[1].endpoint(), world.events[1].len()), (Some(address(1)), 1));
}

/// The same while the peer is silent: other probes than those of the new address are not sent there.
#[test]
fn a_silent_forged_address_gets_one_probe_per_second() {
    let mut world = World::new();
    world.run(seconds(2));
    world.at[0] = address(9);
    world.say(0, b"");
    (world.at[0], world.cut[0]) = (address(1), true);
    world.run(seconds(14));
    let [to, from] = [&world.bytes_to, &world.bytes_from].map(|bytes| bytes[&address(9)]);
    assert!(to <= 3 * from + 29 * 15, "{to} bytes for {from}");
}

/// A peer that moves to a site with four uplinks, which its datagrams take in turn.
#[test]
fn new_addresses_in_turn_are_proven() {
    let mut world = moved();
    for n in 0..200u8 {
        world.at[0] = address(7 + n % 4);
        assert!(world.say(0, &[1; 100]));
        // A datagram sent to an address arrives when the peer is there again.
        world.run(ms(12));
    }
    for n in 7..=10 {
        world.at[0] = address(n);
        world.say(0, b"here");
        world.run(ms(300));
        assert!(is_proven(&world, 1), "{n}");
    }
}

/// The owner of an address long ago may no longer have it.
#[test]
fn a_proof_does_not_last_for_ever() {
    let mut world = moved();
    world.run(seconds(2));
    assert!(is_proven(&world, 1));
    world.run(seconds(600));
    assert!(is_proven(&world, 1), "each handshake proves it again");
    world.at[0] = address(1);
    world.say(0, b"back");
    world.run(ms(300));
    assert!(!is_proven(&world, 1));
    world.run(ms(600));
    assert!(is_proven(&world, 1));
    assert_eq!(world.events, [[UP], [UP]]);
}
