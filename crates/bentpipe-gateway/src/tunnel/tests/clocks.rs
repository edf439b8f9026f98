//! Wrong clocks, ends that restart, and which end begins.

use bentpipe_engine::units::Duration;

use super::world::{DECADE, HOUR, UP, World, address, seconds};
use crate::tunnel::{Event, Note, Tunnel, TunnelConfig};

const CHANGES: [i64; 4] = [HOUR, -HOUR, DECADE, -DECADE];

#[test]
fn a_clock_that_jumps_is_no_outage() {
    for end in [0, 1] {
        for change in CHANGES {
            let mut world = World::new();
            world.delay = Duration::from_millis(300);
            for second in 0..600 {
                world.run(seconds(1));
                world.off[end] = if second < 60 { 0 } else { change };
                assert!(second < 2 || world.say(0, b"a") && world.say(1, b"b"));
            }
            assert_eq!(world.events, [[UP], [UP]], "end {end}, {change} s");
            assert_eq!(world.notes.concat(), []);
            assert_eq!(world.ends[0].stats().handshakes, 5);
        }
    }
}

/// Either box restarts with a different time of day and without memory.
#[test]
fn a_clock_that_jumped_over_a_restart_costs_a_round_trip() {
    for end in [0, 1] {
        for change in CHANGES {
            let mut world = World::new();
            world.delay = Duration::from_millis(300);
            world.run(seconds(10));
            world.off[end] = change;
            world.restart(end);
            world.events = Default::default();
            let mut waited = 0;
            while world.events[0].is_empty() || world.events[1].is_empty() {
                world.say(1 - end, b"data");
                world.run(Duration::from_millis(100));
                waited += 1;
                assert!(waited < 50, "end {end}, {change} s: {:?}", world.events);
            }
            world.run(seconds(400));
            assert_eq!(world.events, [[UP], [UP]]);
            let stale = end == 0 && change < 0;
            assert_eq!(world.notes[0], if stale { vec![Note::OwnClock] } else { vec![] });
            assert_eq!(world.notes[1], if stale { vec![Note::PeersClock] } else { vec![] });
        }
    }
}

/// A box whose clock was once ten years ahead, is right again, and was restarted: one log line, and no second one at the next
/// handshakes, since it knows the timestamp to exceed.
#[test]
fn a_clock_that_was_ahead_is_forgiven() {
    let mut world = World::new();
    world.off[0] = DECADE;
    world.run(seconds(10));
    world.off[0] = 0;
    world.restart(0);
    world.run(seconds(1000));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
    assert_eq!(world.notes, [[Note::OwnClock], [Note::PeersClock]]);
}

/// A peer that sends the largest possible timestamp has to prove each handshake by a cookie, with no other effect.
#[test]
fn the_greatest_timestamp_is_survived() {
    let mut world = World::new();
    let first = world.first(0, u64::MAX);
    world.bring(1, address(1), &first);
    world.run(seconds(500));
    assert_eq!(world.events, [[UP], [UP]]);
    assert!(world.ends[1].stats().cookies >= 4, "{:?}", world.ends[1].stats());
}

/// With data in flight, the restart of either box is noticed within 3 s, and the link is up again, whichever box has the other's
/// address.
#[test]
fn a_restart_is_noticed_within_three_seconds() {
    for names in [[Some(address(2)), None], [Some(address(2)), Some(address(1))], [None, Some(address(1))]] {
        for end in [0, 1] {
            let mut world = World::naming(names);
            world.delay = Duration::from_millis(300);
            world.run(seconds(10));
            world.restart(end);
            world.events = Default::default();
            let begun = world.now;
            while world.events[0].is_empty() || world.events[1].is_empty() {
                world.say(0, b"data");
                world.say(1, b"data");
                world.run(Duration::from_millis(10));
            }
            let took = world.now.saturating_since(begun);
            // The last datagram from before it comes after half a round trip; 1.5 s of doubt; the handshake, and half a
            // round trip more until the other end has heard of it: 2.7 s.
            assert!(took <= seconds(3), "{names:?} {end}: {took:?}");
            assert_eq!(world.events, [[UP], [UP]]);
            assert!(world.say(0, b"new") && world.say(1, b"new"));
            world.run(seconds(1));
            assert_eq!(
                [0, 1].map(|n| world.payloads[n].last().cloned()),
                [Some(b"new".to_vec()), Some(b"new".to_vec())]
            );
        }
    }
}

/// An idle link: a box that restarts calls at once if it saved the peer's address; otherwise a missing keepalive reveals the restart.
#[test]
fn an_idle_restart_is_noticed() {
    for (noted, bound) in [(true, 1), (false, 10)] {
        let mut world = World::new();
        world.delay = Duration::from_millis(300);
        world.run(seconds(20));
        let last_endpoint = world.ends[1].endpoint().filter(|_| noted);
        world.ends[1] = Tunnel::new(TunnelConfig { last_endpoint, ..world.config(1) }, world.now);
        world.events = Default::default();
        world.run(seconds(bound));
        assert_eq!(world.events, [[UP], [UP]], "noted: {noted}");
    }
}

/// Both have each other's address, and begin at the same or different instants, on links of any length.
#[test]
fn both_may_begin() {
    for delay in [0, 1, 50, 300, 600, 950] {
        for offset in [0, 1, 100, 300, 700, 1900, 2100] {
            for first in [0, 1] {
                let mut world = World::naming([Some(address(2)), Some(address(1))]);
                world.delay = Duration::from_millis(delay);
                world.cut = [true; 2];
                world.cut[first] = false;
                world.at[first] = address(9);
                world.run(Duration::from_millis(offset));
                world.cut = [false; 2];
                world.at = [address(1), address(2)];
                let which = format!("delay {delay} ms, {offset} ms after {first}");
                world.run(seconds(9));
                assert_eq!(world.events, [[UP], [UP]], "{which}");
                for n in 0..400 {
                    world.run(seconds(1));
                    assert!(world.say(0, &[n as u8]) && world.say(1, &[n as u8]), "{which}");
                }
                world.run(seconds(2));
                assert_eq!(world.events, [[UP], [UP]], "{which}");
                assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (400, 400), "{which}");
            }
        }
    }
}

/// Of two configured addresses only one is right.
#[test]
fn either_name_may_be_wrong() {
    for wrong in [0, 1] {
        let mut names = [Some(address(2)), Some(address(1))];
        names[wrong] = Some(address(77));
        let mut world = World::naming(names);
        world.delay = Duration::from_millis(300);
        world.run(seconds(6));
        assert_eq!(world.events, [[UP], [UP]], "end {wrong} has a wrong name");
    }
}

/// The peer moved, was lost, and is back at its configured address.
#[test]
fn the_configured_address_is_tried_again() {
    let mut world = World::new();
    world.settle();
    world.at[1] = address(7);
    world.say(1, b"from elsewhere");
    assert_eq!(world.ends[0].endpoint(), Some(address(7)));
    world.at[1] = address(2);
    world.restart(1);
    world.run(seconds(30));
    assert_eq!(world.events[0], [UP, Event::Down, UP]);
}

/// An end without a configured address stops calling where its peer was.
#[test]
fn nobody_is_called_for_ever() {
    let mut world = World::new();
    world.settle();
    world.cut = [true; 2];
    world.run(seconds(110));
    let calls = world.sent.iter().filter(|(end, datagram)| *end == 1 && datagram[0] == 1).count();
    assert!(calls > 30, "{calls}");
    world.run(seconds(300));
    assert_eq!(world.sent.iter().filter(|(end, datagram)| *end == 1 && datagram[0] == 1).count(), calls);
}

/// Once the copy of a virtual machine runs, nothing more is sent under the old keys, and the link continues.
#[test]
fn renewed_keys_come_before_the_next_datagram() {
    for end in [0, 1] {
        let mut world = World::new();
        world.delay = Duration::from_millis(300);
        world.run(seconds(10));
        let now = world.now;
        world.ends[end].renew(now);
        assert!(!world.say(end, b"under old keys"));
        assert!(world.say(1 - end, b"heard"));
        world.run(seconds(1));
        assert!(world.say(end, b"under new keys"));
        world.run(seconds(1));
        assert_eq!(world.events, [[UP], [UP]], "the same link");
        assert_eq!(world.payloads[end].last(), Some(&b"heard".to_vec()));
        assert_eq!(world.payloads[1 - end].last(), Some(&b"under new keys".to_vec()));
    }
}
