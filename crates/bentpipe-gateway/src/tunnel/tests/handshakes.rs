//! Answers to handshakes that are late, forged or repeated, and links that restart at both ends or at neither.

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::Note;
use crate::tunnel::packet::INIT;

/// This end starts over while the answer to a first message that continues the link is on its way.
#[test]
fn an_answer_does_not_continue_a_link_that_starts_over() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].renew(now);
    let answer = world.called(0);
    world.ends[0].start_over(now);
    world.bring(0, address(2), &answer);
    assert_eq!(world.ends[0].stats().handshakes, 1);
    world.run(seconds(10));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
}

/// The link has restarted at one end, whose confirmation was lost. The other end, which remembers the old link, must not
/// continue it when it makes new keys.
#[test]
fn a_lost_confirmation_leaves_no_half_link() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].start_over(now);
    let answer = world.called(0);
    world.bring(0, address(2), &answer);
    assert_eq!(world.events[0], [UP, UP]);
    let lost = world.answers(0);
    assert_eq!(lost.len(), 1);
    world.ends[1].renew(now);
    world.run(seconds(1));
    assert_eq!(world.events, [vec![UP, UP, UP], vec![UP, UP]]);
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
    assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
}

/// An end that drops its own handshake for the peer's gives that one the time of a handshake.
#[test]
fn a_dropped_handshake_is_not_repeated_at_once() {
    let mut world = World::naming([Some(address(2)), Some(address(1))]);
    world.delay = ms(300);
    world.run(seconds(10));
    let (now, before) = (world.now, [0, 1].map(|end| world.begun(end)));
    world.cut[0] = true;
    world.ends[0].renew(now);
    world.run(ms(1600));
    world.cut[0] = false;
    let now = world.now;
    world.ends[1].renew(now);
    world.run(ms(1500));
    assert_eq!([0, 1].map(|end| world.begun(end) - before[end]), [1, 1]);
    assert_eq!(world.events, [[UP], [UP]]);
}

/// Somebody who sees a first message knows its number. Without mac1 its answer is not read, and no wrong key is suspected.
#[test]
fn a_forged_answer_is_not_read() {
    let mut world = World::new();
    world.delay = ms(300);
    world.run(ms(100));
    let first = world.sent[0].1.clone();
    let forged = [&[2, 0, 0, 0, 0], &first[1..5], &[7; 74]].concat();
    world.bring(0, address(2), &forged);
    world.run(seconds(1));
    assert_eq!((world.ends[0].stats().refused, &world.notes[0][..]), (1, &[][..]));
    assert_eq!(world.events, [[UP], [UP]]);
}

/// The answer comes from another address than the one that was called: the peer has moved meanwhile.
#[test]
fn an_answer_says_where_the_peer_is() {
    let mut world = World::new();
    let answer = world.called(0);
    world.bring(0, address(7), &answer);
    assert_eq!((world.ends[0].endpoint(), world.ends[0].is_proven()), (Some(address(7)), false));
}

/// While the link is up, new keys are made where the peer is, not where it was configured.
#[test]
fn handshakes_follow_the_peer() {
    let mut world = World::new();
    world.settle();
    world.at[1] = address(7);
    world.say(1, b"moved");
    world.run(seconds(1));
    let before = world.bytes_to[&address(2)];
    for _ in 0..4 {
        let now = world.now;
        world.ends[0].renew(now);
        world.run(seconds(1));
    }
    assert_eq!((world.ends[0].stats().handshakes, world.bytes_to[&address(2)]), (5, before));
}

/// First messages of both ends cross: one of them is asked for a cookie, which is no fault of its clock.
#[test]
fn crossing_first_messages_need_no_operator() {
    let mut world = World::naming([Some(address(2)), Some(address(1))]);
    world.delay = ms(300);
    world.run(seconds(9));
    assert!(world.ends[0].stats().cookies > 0);
    assert_eq!(world.notes, [[], []]);
}

/// A clock that shows the same time as at the last handshake is behind it.
#[test]
fn the_same_timestamp_is_late() {
    let mut world = World::new();
    world.run(seconds(10));
    world.off[0] = -10;
    world.restart(0);
    world.run(seconds(5));
    assert_eq!(world.notes, [[Note::OwnClock], [Note::PeersClock]]);
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
}

/// After many handshakes an unanswered one is nothing new.
#[test]
fn an_address_that_answers_is_not_suspected() {
    let mut world = World::new();
    for _ in 0..20 {
        world.run(seconds(3));
        let now = world.now;
        world.ends[0].renew(now);
    }
    assert!(world.begun(0) >= 20);
    assert_eq!(world.notes, [[], []]);
}

/// The first cookie causes the first message to be repeated at once. Others do so after a second: cookies of an end under attack must
/// not cause a flood. A copy of a cookie is refused.
#[test]
fn cookies_cause_no_flood() {
    let mut world = World::naming([Some(address(2)), None]);
    // The second end reads no more first messages without a cookie. Then this one arrives from elsewhere, so that its cookie proves
    // nothing. Returns the cookie for it.
    let cookie_for = |world: &mut World, first: &[u8], from: u8| {
        world.now += ms(20);
        for n in 0..30 {
            let datagram = world.first(0, u64::from(from) * 100 + n);
            world.bring(1, address(9), &datagram);
        }
        world.answers(1);
        let before = world.ends[1].stats().cookies;
        world.bring(1, address(from), first);
        assert_eq!(world.ends[1].stats().cookies, before + 1);
        world.answers(1).remove(0)
    };
    let first = world.answers(0).remove(0);
    let cookie = cookie_for(&mut world, &first, 6);
    world.bring(0, address(2), &cookie);
    world.bring(0, address(2), &cookie);
    assert_eq!(world.ends[0].stats().refused, 1);
    let given = world.now;
    let second = world.answers(0).remove(0);
    assert_eq!(second.len(), INIT);
    let cookie = cookie_for(&mut world, &second, 7);
    world.bring(0, address(2), &cookie);
    assert_eq!(world.answers(0), Vec::<Vec<u8>>::new(), "after {:?}", world.now.saturating_since(given));
    let given = world.now;
    let third = loop {
        world.now += ms(10);
        if let Some(third) = world.answers(0).pop() {
            break third;
        }
        assert!(world.now < given + ms(2250));
    };
    let cookie = cookie_for(&mut world, &third, 8);
    world.bring(0, address(2), &cookie);
    assert_eq!(world.answers(0).len(), 1);
}
