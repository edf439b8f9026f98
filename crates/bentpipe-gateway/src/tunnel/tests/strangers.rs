//! Strangers cost little, get no answer, and cannot keep the peer out.

use bentpipe_engine::units::Duration;

use super::world::{UP, World, address, first, seconds};
use crate::tunnel::packet::{INIT, INIT_3};
use crate::tunnel::{DATA_OVERHEAD, Event, Note, PresharedKey, PrivateKey, Tunnel, TunnelConfig};

/// Well-formed first messages with unknown keys; data of unknown sessions; anything else.
#[test]
fn strangers_get_no_answer() {
    let mut world = World::new();
    world.settle();
    let (before, mut x) = (world.ends[1].stats(), 0x2545_f491_4f6c_dd1d_u64);
    for n in 0..10_000_u64 {
        let datagram = if n % 100 == 0 {
            let stranger = TunnelConfig::new(PrivateKey::generate(), world.keys[1].public(), Some(address(2)));
            first(stranger, world.now, world.wall(0))
        } else {
            let length = [INIT, 83, DATA_OVERHEAD, 69, 1200, INIT_3, 25][n as usize % 7];
            let mut datagram: Vec<u8> = (0..length)
                .map(|_| {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    (x >> 32) as u8
                })
                .collect();
            datagram[0] = 1 + (n % 4) as u8;
            datagram
        };
        world.bring(1, address(3), &datagram);
        if n % 10 == 0 {
            assert_eq!(world.answers(1), Vec::<Vec<u8>>::new());
        }
    }
    let stats = world.ends[1].stats();
    assert_eq!(stats.sent + stats.cookies + stats.throttled, before.sent);
    assert!(world.say(0, b"still") && world.say(1, b"here"));
    assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (1, 1));
}

/// The mark of a recorded message is useless: without the keys there is no mac1 for another message.
#[test]
fn a_recorded_mark_is_of_no_use() {
    let mut world = World::new();
    world.settle();
    let recorded = world.sent[0].1.clone();
    let before = world.ends[1].stats();
    for byte in 13..INIT - 16 {
        let mut changed = recorded.clone();
        changed[byte] ^= 1;
        world.bring(1, address(1), &changed);
    }
    let stats = world.ends[1].stats();
    assert_eq!((stats.garbage - before.garbage, stats.refused), ((INIT - 16 - 13) as u64, before.refused));
    assert_eq!(world.answers(1), Vec::<Vec<u8>>::new());
}

/// A recorded first message is replayed from the peer's address: the peer can still restart.
#[test]
fn a_recorded_first_message_keeps_nobody_out() {
    for restarts in [0, 1] {
        let mut world = World::new();
        world.delay = Duration::from_millis(300);
        world.run(seconds(10));
        let recorded = world.sent[0].1.clone();
        world.restart(restarts);
        world.events = Default::default();
        let begun = world.now;
        while world.events[0].is_empty() || world.events[1].is_empty() {
            for _ in 0..10 {
                world.bring(1, address(1), &recorded);
            }
            world.say(0, b"data");
            world.run(Duration::from_millis(1));
            assert!(world.now < begun + seconds(5), "end {restarts} restarted");
        }
        assert_eq!(world.events, [[UP], [UP]]);
    }
}

/// The same for ten minutes, during which keys are renewed five times.
#[test]
fn a_recorded_first_message_ends_no_tunnel() {
    let mut world = World::new();
    world.delay = Duration::from_millis(300);
    world.run(seconds(10));
    let recorded = world.sent[0].1.clone();
    for second in 0..600 {
        for _ in 0..100 {
            world.bring(1, address(1), &recorded);
        }
        world.run(seconds(1));
        assert!(world.say(0, &[second as u8]) && world.say(1, &[second as u8]), "{second}");
    }
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!((world.ends[1].stats().handshakes, world.ends[1].stats().replayed), (6, 60_000));
}

/// Both ends after a restart, and 3000 first messages of one that were recorded before.
fn restarted_beside_recordings() -> (World, Vec<Vec<u8>>) {
    let mut world = World::new();
    world.delay = Duration::from_millis(300);
    let recorded = (1..=3000).map(|wall| world.first(0, wall)).collect();
    world.run(seconds(10));
    world.restart(1);
    world.restart(0);
    world.events = Default::default();
    (world, recorded)
}

/// Many recorded first messages, each of which is new to an end that has restarted: more than it reads. The peer
/// gets through by its cookie.
#[test]
fn whoever_is_at_its_address_comes_before_recordings() {
    let (mut world, recorded) = restarted_beside_recordings();
    let begun = world.now;
    let mut all = recorded.iter();
    while world.events[0].is_empty() || world.events[1].is_empty() {
        all.by_ref().take(1).for_each(|first| world.bring(1, address(1), first));
        world.run(Duration::from_millis(1));
        assert!(world.now < begun + seconds(5));
    }
    assert!(world.ends[1].stats().throttled > 100, "{:?}", world.ends[1].stats());
}

/// The same recordings over and over, 10 000 per second, after both boxes have restarted. Each is read once, so the peer is up as
/// soon as all have arrived.
#[test]
fn recordings_that_come_in_turns_keep_nobody_out() {
    let (mut world, recorded) = restarted_beside_recordings();
    let begun = world.now;
    let mut all = recorded.iter().cycle();
    while world.events[0].is_empty() || world.events[1].is_empty() {
        all.by_ref().take(10).for_each(|first| world.bring(1, address(1), first));
        world.run(Duration::from_millis(1));
        assert!(world.now < begun + seconds(5), "{:?}", world.ends[1].stats());
    }
    let stats = world.ends[1].stats();
    assert!(stats.throttled < 3010 && stats.replayed > 1000, "{stats:?}");
}

/// Recordings in order of time, each of which is new to a restarted end, from an address that is not the peer's. The peer does
/// not know the end's address, and the end does not lead.
#[test]
fn recordings_do_not_end_a_handshake_of_ones_own() {
    let mut world = World::new();
    world.delay = Duration::from_millis(300);
    let recorded: Vec<_> = (1..=60).map(|wall| world.first(1, wall)).collect();
    world.run(seconds(10));
    world.at[0] = address(9);
    world.restart(0);
    world.events = Default::default();
    let begun = world.now;
    for first in &recorded {
        world.bring(0, address(66), first);
        world.run(Duration::from_millis(500));
    }
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!(world.ends[0].stats().handshakes, 1);
    assert!(world.ends[0].heard_at() > begun && world.now == begun + seconds(30));
}

/// First messages and cookies are rate-limited. A cookie works only from its address, and a copy of the message that has it is
/// useless.
#[test]
fn a_flood_of_first_messages_is_bounded() {
    let mut world = World::naming([None, None]);
    for wall in 1..=1000 {
        let datagram = world.first(0, wall);
        world.bring(1, address(1), &datagram);
    }
    let stats = world.ends[1].stats();
    assert_eq!((stats.throttled, stats.cookies), (980, 100));
    assert!(world.answers(1).iter().all(|answer| answer.len() < INIT));
    // The peer, with the cookie that it gets.
    let name = Some(world.at[1]);
    world.ends[0] = Tunnel::new(TunnelConfig { endpoint: name, ..world.config(0) }, world.now);
    world.now += Duration::from_millis(50);
    let init = world.answers(0).remove(0);
    world.bring(1, address(1), &init);
    let cookie = world.answers(1).remove(0);
    world.bring(0, address(2), &cookie);
    world.now += Duration::from_millis(1);
    let init = world.answers(0).remove(0);
    world.bring(1, address(9), &init);
    assert_eq!(world.ends[1].stats().throttled, 982, "from another address it is no proof");
    world.bring(1, address(1), &init);
    let answer = world.answers(1).remove(1);
    assert_eq!(answer[0], 2);
    world.bring(1, address(1), &init);
    assert_eq!(world.ends[1].stats().replayed, 1);
    world.bring(0, address(2), &answer);
    world.settle();
    assert_eq!(world.events, [[UP], [UP]]);
}

#[test]
fn an_old_version_is_named() {
    use blake2::digest::consts::U16;
    use blake2::digest::{FixedOutput, KeyInit, Update};
    use blake2::{Blake2s256, Blake2sMac, Digest};
    let mut world = World::new();
    let mut hash = Blake2s256::new();
    Digest::update(&mut hash, b"bentpipe tunnel mac");
    Digest::update(&mut hash, world.keys[1].public().0);
    let mut mac = Blake2sMac::<U16>::new_from_slice(&hash.finalize()).expect("a key");
    let mut init = vec![7; INIT_3];
    init[0] = 1;
    mac.update(&init[..INIT_3 - 16]);
    // Whoever does not know this end's key cannot make it log.
    world.bring(1, address(3), &init);
    world.run(seconds(1));
    assert!(world.notes[1].is_empty() && world.ends[1].stats().garbage == 1);
    init[INIT_3 - 16..].copy_from_slice(&mac.finalize_fixed());
    for _ in 0..100 {
        world.bring(1, address(3), &init);
    }
    world.run(seconds(1));
    assert_eq!(world.notes[1], [Note::OldVersion { from: address(3) }], "once");
}

/// A peer with a wrong key for this end does not answer, and cannot say why. The operator is told once.
#[test]
fn a_wrong_key_is_suspected_once() {
    let mut world = World::new();
    let other = PrivateKey::generate();
    world.ends[1] = Tunnel::new(TunnelConfig { peer: other.public(), ..world.config(1) }, world.now);
    while world.notes[0].is_empty() {
        world.run(Duration::from_millis(100));
        assert!(world.begun(0) <= 15);
    }
    assert_eq!(world.begun(0), 15, "in half a minute");
    world.run(seconds(600));
    assert_eq!(world.notes, [vec![Note::NoAnswer { to: address(2) }], vec![]]);
    assert!(world.events.iter().all(Vec::is_empty));
}

#[test]
fn preshared_keys_have_to_be_the_same() {
    let text = |key: &PrivateKey| key.reveal().parse().expect("32 bytes are a preshared key");
    let [one, other] = [PrivateKey::generate(), PrivateKey::generate()].map(|key| text(&key));
    for (keys, is_up) in [
        ([Some(&one), Some(&one)], true),
        ([Some(&one), Some(&other)], false),
        ([Some(&one), None], false),
        ([None, Some(&one)], false),
    ] {
        let mut world = World::new();
        for end in [0, 1] {
            let config = TunnelConfig { preshared: keys[end].cloned(), ..world.config(end) };
            world.ends[end] = Tunnel::new(config, world.now);
        }
        // Longer than it takes to suspect the address.
        world.run(seconds(50));
        assert_eq!(world.ends[0].is_up() && world.ends[1].is_up(), is_up);
        assert_eq!(world.notes[0], if is_up { vec![] } else { vec![Note::Preshared] });
    }
}

/// Sessions survive a change of the preshared key until they expire. The next handshake needs the new key at both ends.
#[test]
fn a_preshared_key_changes_while_the_tunnel_is_up() {
    let key = || PrivateKey::generate().reveal().parse().expect("32 bytes are a preshared key");
    for (both, is_up) in [(true, true), (false, false)] {
        let mut world = World::new();
        world.run(seconds(115));
        let new: PresharedKey = key();
        world.ends[0].set_preshared(Some(new.clone()));
        // Keys are replaced at an age of 120 s and expire at 240 s: this is how long one end alone may have the new key.
        for _ in 0..12 {
            world.run(seconds(10));
            assert!(world.say(0, b"to") && world.say(1, b"fro"));
        }
        assert_eq!(world.notes[0].first(), Some(&Note::Preshared));
        if both {
            world.ends[1].set_preshared(Some(new));
        }
        let before = world.ends[0].stats().handshakes;
        // A peer is given up after 15 s of silence.
        world.run(seconds(30));
        assert_eq!(world.ends[0].is_up() && world.ends[1].is_up(), is_up);
        assert_eq!(world.ends[0].stats().handshakes > before, is_up);
        assert_eq!(world.events[0], if is_up { vec![UP] } else { vec![UP, Event::Down] });
        assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (12, 12));
    }
}
