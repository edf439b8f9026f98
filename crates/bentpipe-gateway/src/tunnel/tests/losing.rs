//! A peer that is given up: what is forgotten, and where it is called.

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::packet::INIT;

fn give_up(world: &mut World, end: usize) {
    let now = world.now;
    world.ends[end].give_up_for_test(now);
}

/// No key outlives the link, neither the last one nor the one before.
#[test]
fn a_lost_peer_is_not_understood() {
    let mut world = World::new();
    world.run(seconds(119));
    let before = world.keep_back(0, b"before");
    world.run(seconds(2));
    assert_eq!(world.ends[1].stats().handshakes, 2);
    let last = world.keep_back(0, b"last");
    give_up(&mut world, 1);
    for datagram in [before, last] {
        world.bring(1, address(1), &datagram);
    }
    assert_eq!((world.payloads[1].len(), world.ends[1].stats().unknown, world.ends[1].cipher()), (0, 2, None));
}

/// The peer was about to continue the link when this end gave it up.
#[test]
fn a_late_confirmation_continues_nothing() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].renew(now);
    let answer = world.called(0);
    world.bring(0, address(2), &answer);
    let confirmation = world.answers(0).remove(0);
    give_up(&mut world, 1);
    world.bring(1, address(1), &confirmation);
    assert_eq!((world.ends[1].stats().unknown, world.ends[1].is_up()), (1, false));
    world.run(seconds(3));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
}

/// The answer to a first message from before the loss is not used: that message told the peer a number of this end's memory which is
/// no longer right, and the next handshake would restart the link again.
#[test]
fn a_late_answer_begins_nothing() {
    let mut world = World::new();
    world.delay = ms(300);
    world.run(seconds(10));
    let now = world.now;
    world.ends[0].start_over(now);
    world.run(ms(100));
    assert_eq!(world.begun(0), 2, "it is on its way");
    give_up(&mut world, 0);
    world.run(seconds(200));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
}

/// A lost peer is called at its configured address first, and then where it was last.
#[test]
fn the_configured_address_comes_first() {
    let mut world = World::new();
    world.settle();
    world.at[1] = address(7);
    world.say(1, b"elsewhere");
    world.run(seconds(1));
    assert!(world.ends[0].is_proven() && world.ends[0].endpoint() == Some(address(7)));
    give_up(&mut world, 0);
    let before = [2, 7].map(|n| world.bytes_to[&address(n)]);
    let mut calls = Vec::new();
    world.cut = [true; 2];
    while calls.len() < 4 {
        let count = world.begun(0);
        world.run(ms(100));
        if world.begun(0) > count {
            calls.push([2, 7].map(|n| world.bytes_to[&address(n)]));
        }
    }
    let init = INIT as u64;
    let expected = [[init, 0], [init, init], [2 * init, init], [2 * init; 2]];
    assert_eq!(calls.iter().map(|now| [now[0] - before[0], now[1] - before[1]]).collect::<Vec<_>>(), expected);
}
