//! Ends that carry different things.

use super::*;
use Carries::{Packets, Streams};
use world::{address, first, seconds};

/// Ends that carry these; `None` is an earlier version.
fn carrying(carries: [Option<Carries>; 2], names: [Option<std::net::SocketAddr>; 2]) -> World {
    let mut world = World::naming(names);
    for end in [0, 1] {
        set(&mut world, end, carries[end]);
    }
    world
}

/// Restarts an end that carries this.
fn set(world: &mut World, end: usize, carries: Option<Carries>) {
    world.ends[end] = Tunnel::new(TunnelConfig { carries, ..world.config(end) }, world.now);
}

fn note(of: u8, theirs: Carries, ours: Carries) -> Note {
    Note::OtherShape { at: address(of), theirs, ours }
}

/// No session begins, both operators are told, and the link comes up as soon as one of the files is changed.
#[test]
fn a_peer_of_another_shape_is_refused() {
    let (one, other) = (Some(address(1)), Some(address(2)));
    for names in [[other, None], [None, one], [other, one]] {
        let mut world = carrying([Some(Streams), Some(Packets)], names);
        world.run(seconds(50));
        assert_eq!(world.events, [[], []], "{names:?}");
        assert_eq!(world.notes, [vec![note(2, Packets, Streams)], vec![note(1, Streams, Packets)]], "{names:?}");
        assert_eq!([0, 1].map(|end| world.ends[end].other_shape()), [Some(Packets), Some(Streams)]);
        assert!(!world.say(0, b"nothing") && !world.say(1, b"nothing"));
        for (end, datagram) in world.sent.iter().filter(|(_, datagram)| datagram[0] <= 2) {
            let own = u32::from_le_bytes(*datagram[1..].first_chunk().expect("a number"));
            assert!(!world.ends[*end].has_session(own), "{names:?}");
        }
        set(&mut world, 1, Some(Streams));
        world.run(seconds(3));
        assert_eq!(world.events, [[UP], [UP]], "{names:?}");
        assert_eq!([0, 1].map(|end| world.ends[end].other_shape()), [None, None]);
    }
}

/// A peer that restarts with another shape ends the link at once, not after `dead_after`.
#[test]
fn a_peer_that_changes_its_shape_takes_the_link_down() {
    for changed in [0, 1] {
        let mut world = carrying([Some(Streams); 2], [Some(address(2)), Some(address(1))]);
        world.run(seconds(10));
        assert_eq!(world.events, [[UP], [UP]]);
        set(&mut world, changed, Some(Packets));
        world.run(seconds(1));
        assert_eq!(world.events[1 - changed], [UP, Event::Down], "{changed}");
        assert_eq!(world.events[changed], [UP]);
        assert!(!world.ends[1 - changed].is_up() && !world.say(1 - changed, b"nothing"));
        world.run(seconds(50));
        assert_eq!(world.events[1 - changed], [UP, Event::Down], "it goes down once");
    }
}

/// The peer's handshake was answered, and then the peer has restarted with another shape. The first datagram under the old
/// handshake is late.
#[test]
fn a_refused_peer_does_not_come_up_late() {
    let mut world = carrying([Some(Streams); 2], [Some(address(2)), None]);
    let first = world.answers(0).remove(0);
    world.bring(1, address(1), &first);
    let answer = world.answers(1).remove(0);
    world.bring(0, address(2), &answer);
    let confirmation = world.answers(0).remove(0);
    world.now += seconds(1);
    set(&mut world, 0, Some(Packets));
    let first = world.answers(0).remove(0);
    world.bring(1, address(1), &first);
    assert_eq!(world.ends[1].other_shape(), Some(Packets));
    world.bring(1, address(1), &confirmation);
    assert!(!world.ends[1].is_up());
    assert_eq!(world.events[1], []);
}

/// An earlier version says nothing about it. The ends agree on a cipher, whichever of them begins.
#[test]
fn an_earlier_version_is_understood() {
    for carries in [[None, Some(Streams)], [None, Some(Packets)], [Some(Packets), None], [None, None]] {
        let mut world = carrying(carries, [Some(address(2)), None]);
        world.run(seconds(10));
        assert_eq!(world.events, [[UP], [UP]], "{carries:?}");
        assert!(world.say(0, b"ping") && world.say(1, b"pong"));
        assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
        assert_eq!(world.notes, [[], []]);
    }
}

/// The peer had another shape once, and somebody has recorded its handshake. An end that was restarted since does not
/// know that it is old, and asks for a cookie.
#[test]
fn a_recording_does_not_take_the_link_down() {
    let mut world = carrying([Some(Streams); 2], [Some(address(2)), None]);
    let endpoint = Some(address(2));
    let recording =
        first(TunnelConfig { carries: Some(Packets), endpoint, ..world.config(0) }, world.now, world.wall(0));
    // The second end answers, but it has not heard a later timestamp: the peer's clock was set back.
    world.off = [-1000, 0];
    world.run(seconds(10));
    assert_eq!(world.events, [[UP], [UP]]);
    let cookies = world.ends[1].stats().cookies;
    world.ends[1].forget_that_the_peer_is_live();
    world.bring(1, address(9), &recording);
    world.run(seconds(10));
    assert_eq!((world.ends[1].stats().cookies, &world.events[1][..]), (cookies + 1, &[UP][..]));
    assert_eq!(world.ends[1].other_shape(), None);
}
