//! When keys begin and end, which handshakes are dropped, and what is counted.

use bentpipe_engine::units::Duration;

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::packet::INIT;
use crate::tunnel::{TunnelStats, What};

/// Keys expire at an age of 240 s, even if the driver has not polled.
#[test]
fn old_keys_neither_seal_nor_open() {
    let mut world = World::new();
    world.settle();
    let made = world.now;
    let kept = [b"early", b"later"].map(|text| world.keep_back(0, text));
    world.now = made + (seconds(240) - Duration::from_nanos(1));
    world.bring(1, address(1), &kept[0]);
    assert!(world.ends[0].may_seal(world.now));
    assert!(world.say(0, b"last"));
    world.now = made + seconds(240);
    world.bring(1, address(1), &kept[1]);
    assert!(!world.ends[0].may_seal(world.now));
    assert!(!world.say(0, b"more"));
    assert_eq!(world.payloads[1], [b"early".to_vec(), b"last".to_vec()]);
    assert_eq!(world.ends[1].stats().unknown, 1);
}

/// The confirmation of a handshake comes after the keys have expired, or after they were wiped.
#[test]
fn old_keys_are_not_confirmed() {
    for is_polled in [false, true] {
        let mut world = World::new();
        let answer = world.called(0);
        world.bring(0, address(2), &answer);
        let confirmation = world.answers(0).remove(0);
        world.now += seconds(240);
        let own = u32::from_le_bytes(*answer[1..].first_chunk().expect("a number"));
        if is_polled {
            world.answers(1);
            assert!(!world.ends[1].has_session(own), "it is wiped");
        }
        world.bring(1, address(1), &confirmation);
        assert_eq!((world.ends[1].is_up(), world.ends[1].stats().unknown), (false, 1));
    }
}

#[test]
fn datagrams_are_counted() {
    let mut world = World::new();
    world.settle();
    assert!(world.say(0, b"one") && world.say(0, b"two") && world.say(1, b"three"));
    let mut other = world.sent.last().expect("just sent").1.clone();
    world.bring(0, address(2), &other);
    other[1] ^= 1;
    world.bring(0, address(2), &other);
    world.bring(0, address(2), b"something else");
    let [first, second] = world.ends.each_ref().map(|end| end.stats());
    let up = TunnelStats { handshakes: 1, ..TunnelStats::default() };
    // The first datagram confirms the handshake.
    assert_eq!(first, TunnelStats { sent: 3, received: 1, refused: 1, unknown: 1, garbage: 1, ..up });
    assert_eq!(second, TunnelStats { sent: 1, received: 3, ..up });
}

/// Somebody who sees the answer to a handshake knows the number of the new session, but not its keys.
#[test]
fn a_forged_confirmation_is_refused() {
    let mut world = World::new();
    world.delay = ms(300);
    world.run(ms(450));
    let answer = world.sent.last().expect("it is on its way").1.clone();
    let forged = [&[3], &answer[1..5], &[0; 20]].concat();
    world.bring(1, address(9), &forged);
    assert_eq!((world.ends[1].stats().refused, world.ends[1].is_up()), (1, false));
    world.run(seconds(1));
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!(world.ends[1].endpoint(), Some(address(1)));
}

/// Silence after an acknowledgement is no reason to doubt the keys: it has no answer.
#[test]
fn an_acknowledgement_asks_for_nothing() {
    let mut world = World::new();
    world.run(seconds(6));
    assert!(world.tell(0, What::Probe, &7u32.to_le_bytes()));
    world.run(seconds(4));
    assert_eq!(world.payloads[0], [7u32.to_le_bytes()], "it was acknowledged");
    assert_eq!([0, 1].map(|end| world.begun(end)), [1, 0]);
}

/// New keys answer a payload that was lost: no second handshake follows.
#[test]
fn a_doubt_costs_one_handshake() {
    let mut world = World::new();
    world.run(seconds(6));
    world.keep_back(0, b"lost");
    // Until the next keepalives.
    world.run(ms(3900));
    assert_eq!(world.begun(0), 2);
    assert_eq!(world.ends[0].stats().handshakes, 2);
}

/// Both begin at once, and the peer has shown before that it is live: its first message ends this end's handshake without a
/// cookie. Only the keys in use and those before them are kept, not those of the handshake that lost.
#[test]
fn a_live_peer_proves_itself_once() {
    let mut world = World::naming([None, Some(address(1))]);
    world.delay = ms(300);
    world.run(seconds(10));
    let now = world.now;
    world.ends.iter_mut().for_each(|end| end.renew(now));
    world.run(seconds(1));
    let stats = world.ends[0].stats();
    assert_eq!((stats.cookies, stats.handshakes, world.ends[0].may_seal(world.now)), (0, 2, true));
    for end in [0, 1] {
        let handshakes = world.sent.iter().filter(|(from, datagram)| *from == end && datagram[0] <= 2);
        let numbers: Vec<_> = handshakes
            .map(|(_, datagram)| u32::from_le_bytes(*datagram[1..].first_chunk().expect("a number")))
            .collect();
        let kept = numbers.iter().filter(|number| world.ends[end].has_session(**number)).count();
        assert_eq!((numbers.len(), kept), (3, 2), "end {end}");
    }
}

/// A peer that has proved that it is live, and whose answers were lost until its cookie was too old, need not prove it again.
#[test]
fn a_proof_of_life_outlasts_its_cookie() {
    let mut world = World::naming([Some(address(2)), Some(address(1))]);
    world.answers(0);
    for _ in 0..2 {
        let first = world.answers(1).remove(0);
        world.bring(0, address(2), &first);
        let answer = world.answers(0).remove(0);
        if world.ends[0].stats().cookies == 1 && answer[0] != 2 {
            world.bring(1, address(1), &answer);
        }
    }
    assert_eq!((world.ends[0].stats().cookies, world.ends[0].is_up()), (1, false));
    world.cut = [true; 2];
    world.run(seconds(130));
    world.cut[1] = false;
    world.run(seconds(5));
    assert_eq!(world.ends[0].stats().cookies, 1);
    world.cut[0] = false;
    world.run(seconds(5));
    assert_eq!((world.ends[0].stats().cookies, world.events), (1, [vec![UP], vec![UP]]));
}

#[test]
fn a_late_datagram_moves_nobody() {
    let mut world = World::new();
    world.settle();
    let late = world.keep_back(0, b"late");
    world.at[0] = address(7);
    world.say(0, b"new");
    world.bring(1, address(1), &late);
    assert_eq!(world.ends[1].endpoint(), Some(address(7)));
    assert_eq!(world.payloads[1], [b"new".to_vec(), b"late".to_vec()]);
}

/// An end that has just dropped its keys still learns where the peer is.
#[test]
fn a_peer_may_move_while_keys_are_made() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[1].renew(now);
    world.at[0] = address(7);
    world.say(0, b"here");
    assert_eq!(world.ends[1].endpoint(), Some(address(7)));
}

/// Data under the keys of an old link does not reach the new one.
#[test]
fn what_was_sent_before_a_restart_is_lost() {
    for restarts in [0, 1] {
        let mut world = World::new();
        world.settle();
        let old = [0, 1].map(|end| world.keep_back(end, b"old"));
        let now = world.now;
        world.ends[restarts].start_over(now);
        world.run(seconds(1));
        assert_eq!(world.events, [[UP, UP], [UP, UP]]);
        for end in [0, 1] {
            world.bring(end, world.at[1 - end], &old[1 - end]);
            assert_eq!(world.ends[end].stats().unknown, 1);
        }
        assert_eq!(world.payloads, [[[0; 0]; 0]; 2]);
    }
}

/// A link that must start over does so at once, even just after a handshake, and does not repeat its first message whenever it is told
/// so again.
#[test]
fn starting_over_is_quick_and_patient() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].start_over(now);
    world.settle();
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
    world.cut = [true; 2];
    let before = world.begun(0);
    for _ in 0..10 {
        let now = world.now;
        world.ends[0].start_over(now);
        world.run(ms(10));
    }
    assert_eq!(world.begun(0), before + 1);
}

/// The copy of a virtual machine has the handshakes that its original has begun and answered. If both completed one, they
/// would use the same keys.
#[test]
fn a_copy_drops_unfinished_handshakes() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].renew(now);
    let answer = world.called(0);
    world.ends[0].renew(now);
    world.bring(0, address(2), &answer);
    assert_eq!((world.ends[0].stats().handshakes, world.ends[0].stats().refused), (1, 1));
    // The next one begins without a pause.
    let second = world.answers(0).remove(0);
    assert_eq!(second.len(), INIT);
    world.bring(1, address(1), &second);
    let answer = world.answers(1).remove(0);
    world.bring(0, address(2), &answer);
    let confirmation = world.answers(0).remove(0);
    world.ends[1].renew(now);
    world.bring(1, address(1), &confirmation);
    assert_eq!((world.ends[1].stats().handshakes, world.ends[1].stats().unknown), (1, 1));
    world.run(seconds(5));
    assert_eq!(world.events, [[UP], [UP]], "the same link");
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
}
