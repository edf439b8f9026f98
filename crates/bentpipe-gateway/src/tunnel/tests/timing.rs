//! When datagrams are sent to a peer that is silent, lost, or only listening.

use bentpipe_engine::Step;
use bentpipe_engine::units::Duration;

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::packet::INIT;
use crate::tunnel::{DATA_OVERHEAD, Event, Todo, What};

/// Times, in milliseconds from now on, at which an end sends datagrams that begin with this byte.
fn times(world: &mut World, end: usize, kind: u8, span: Duration) -> Vec<u64> {
    let (begun, mut times) = (world.now, Vec::new());
    while world.now < begun + span {
        let count = world.sent.len();
        world.run(ms(10));
        let new = world.sent[count..].iter().filter(|(from, datagram)| *from == end && datagram[0] == kind);
        times.extend(new.map(|_| world.now.saturating_since(begun).as_nanos() / 1_000_000));
    }
    times
}

/// An idle peer's keepalive is due after 5 s. Then it is asked twice per second, and given up after 15 s.
#[test]
fn a_silent_peer_is_asked() {
    let mut world = World::new();
    world.settle();
    world.cut[1] = true;
    let asked = times(&mut world, 0, 6, seconds(14));
    assert_eq!(asked, (6000..=14_000).step_by(500).collect::<Vec<_>>());
    assert_eq!(world.events[0], [UP]);
    world.run(ms(1000));
    assert_eq!(world.events[0], [UP, Event::Down]);
}

/// An end wakes when its peer is to be given up, whatever else it waits for.
#[test]
fn a_silent_peer_is_given_up_on_time() {
    let mut world = World::new();
    let config = crate::tunnel::TunnelConfig { dead_after: ms(15_250), ..world.config(0) };
    world.ends[0] = crate::tunnel::Tunnel::new(config, world.now);
    world.settle();
    let dead_at = world.now + ms(15_250);
    world.cut = [true; 2];
    world.ends[1].give_up_for_test(world.now);
    world.run(ms(15_001));
    let mut out = [0; 1500];
    assert_eq!(world.ends[0].poll(world.now, world.wall(0), &mut out), Step::Wait(Some(dead_at)));
    world.now = dead_at;
    assert_eq!(world.ends[0].poll(world.now, world.wall(0), &mut out), Step::Do(Todo::Tell(Event::Down)));
}

/// First messages to a peer that has not answered for 1.5 s, and to a lost one: every 2 s, up to an eighth more.
#[test]
fn first_messages_are_repeated() {
    let mut world = World::new();
    world.settle();
    world.cut[1] = true;
    let begun = times(&mut world, 0, 1, seconds(100));
    assert_eq!(begun[0], 7500);
    let gaps: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.len() > 35 && gaps.iter().all(|gap| (2000..=2260).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap != gaps[0]), "ends that lost each other at once do not retry in step");
}

/// A payload that is not answered within 1.5 s makes this end doubt its keys. Later payloads do not postpone that.
#[test]
fn an_unanswered_payload_raises_doubt() {
    let mut world = World::new();
    world.run(seconds(3));
    world.cut[1] = true;
    world.say(0, b"one");
    world.run(ms(1000));
    world.say(0, b"two");
    assert_eq!(times(&mut world, 0, 1, ms(600)), [500]);
}

/// A peer that only listens still needs a keepalive, however much it is sent.
#[test]
fn who_only_listens_sends_keepalives() {
    let mut world = World::new();
    world.settle();
    let begun = world.sent.len();
    for _ in 0..300 {
        assert!(world.tell(0, What::Ack, &7u32.to_le_bytes()));
        world.run(ms(100));
    }
    let sent = &world.sent[begun..];
    let alive = sent.iter().filter(|(from, datagram)| *from == 1 && datagram.len() == DATA_OVERHEAD).count();
    assert_eq!(alive, 6, "in 30 s");
    assert!(sent.iter().all(|(_, datagram)| datagram[0] != 6 && datagram.len() != INIT), "nobody had to ask");
}

/// An end without a configured address calls where its peer was for 90 s, from its start and after each loss.
#[test]
fn a_remembered_address_is_called_for_a_while() {
    let mut world = World::new();
    let config = crate::tunnel::TunnelConfig { last_endpoint: Some(address(1)), ..world.config(1) };
    world.ends[1] = crate::tunnel::Tunnel::new(config, world.now);
    world.cut = [true; 2];
    let calls = times(&mut world, 1, 1, seconds(300));
    assert!(calls.last().is_some_and(|last| (87_700..90_000).contains(last)), "{calls:?}");
    // The peer calls, the link comes up and is lost.
    world.cut = [false; 2];
    world.run(seconds(3));
    assert_eq!(world.events[1], [UP]);
    world.cut = [true; 2];
    while world.events[1].len() < 2 {
        world.run(ms(10));
    }
    let calls = times(&mut world, 1, 1, seconds(300));
    assert!(calls.last().is_some_and(|last| (87_700..=90_000).contains(last)), "{calls:?}");
}
