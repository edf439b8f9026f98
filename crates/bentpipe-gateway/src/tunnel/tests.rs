//! Two ends that connect, stay connected, and lose each other.

mod attacks;
mod clocks;
mod handshakes;
mod keys;
mod losing;
mod roaming;
mod secrets;
mod shapes;
mod strangers;
mod timing;
mod world;

use super::cipher::machine_has_aes;
use super::*;
use world::{UP, World, address, seconds};

#[test]
fn both_ends_are_up_after_a_round_trip() {
    let mut world = World::new();
    assert!(!world.say(0, b"too early"));
    world.settle();
    assert_eq!(world.events, [[UP], [UP]]);
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
    assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
    assert_eq!(world.ends[1].endpoint(), Some(address(1)));
    // init, response, and the datagram that confirms.
    let lengths: Vec<_> = world.sent.iter().map(|(_, datagram)| datagram.len()).collect();
    assert_eq!(lengths[..3], [182, 83, DATA_OVERHEAD]);
    assert!(!world.sent.iter().any(|(_, d)| d.windows(4).any(|w| w == b"ping" || w == b"pong")));
}

/// The clock of a process starts at zero: even then the datagram that confirms a handshake is sent at once.
#[test]
fn both_ends_are_up_at_the_beginning_of_time() {
    let mut world = World::new();
    world.now = bentpipe_engine::units::Time::ZERO;
    [0, 1].into_iter().for_each(|end| world.restart(end));
    world.settle();
    assert_eq!(world.events, [[UP], [UP]]);
}

/// The ends understand each other, whichever of them lacks AES instructions.
#[test]
fn the_cipher_is_one_that_both_are_quick_at() {
    let best = if machine_has_aes() { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
    for (without, expected) in [
        (&[][..], best),
        (&[0], Cipher::ChaCha20Poly1305),
        (&[1], Cipher::ChaCha20Poly1305),
        (&[0, 1], Cipher::ChaCha20Poly1305),
    ] {
        let mut world = World::new();
        world.ends = [0, 1].map(|n| {
            let end = Tunnel::new(world.config(n), world.now);
            if without.contains(&n) { end.without_aes() } else { end }
        });
        world.settle();
        assert!(world.say(0, b"ping") && world.say(1, b"pong"));
        assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
        assert_eq!([0, 1].map(|n| world.ends[n].cipher()), [Some(expected); 2]);
    }
}

#[test]
fn each_datagram_counts_once() {
    let mut world = World::new();
    world.settle();
    world.say(0, b"once");
    for (from, datagram) in world.sent.clone() {
        world.bring(1 - from, world.at[from], &datagram);
    }
    assert_eq!(world.payloads[1], [b"once".to_vec()]);
    assert_eq!(world.events, [[UP], [UP]]);
    let stats = world.ends[1].stats();
    assert_eq!((stats.replayed, stats.refused), (1, 2), "init; confirmation and data");
}

#[test]
fn a_changed_bit_is_noticed() {
    let mut world = World::new();
    world.settle();
    // Had it arrived, its copies would be refused as replays, whatever their bits.
    let datagram = world.keep_back(0, b"text");
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        world.bring(1, address(9), &changed);
        assert_eq!(world.payloads[1], [b""; 0], "bit {bit}");
    }
    assert_eq!(world.ends[1].endpoint(), Some(address(1)));
    world.bring(1, address(1), &datagram);
    assert_eq!(world.payloads[1], [b"text"]);
}

#[test]
fn keys_are_renewed_and_the_link_goes_on() {
    let mut world = World::new();
    for second in 0..600 {
        world.run(seconds(1));
        assert!(world.say(0, &[second as u8]) && world.say(1, &[second as u8]));
    }
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (600, 600));
    assert_eq!(world.ends[0].stats().handshakes, 6, "one per two minutes");
    assert!(world.sent.iter().all(|(_, datagram)| datagram[0] != 6), "each handshake proves the addresses: no probes");
}

#[test]
fn an_idle_peer_lives_and_a_silent_one_is_given_up() {
    let mut world = World::new();
    world.run(seconds(100));
    assert_eq!(world.events, [[UP], [UP]]);
    world.cut = [true; 2];
    world.run(seconds(21));
    assert_eq!(world.events, [[UP, Event::Down], [UP, Event::Down]]);
    assert!(!world.say(0, b"nobody hears"));
    world.cut = [false; 2];
    world.run(seconds(3));
    assert_eq!(world.events, [[UP, Event::Down, UP], [UP, Event::Down, UP]]);
}

/// One end gives up the other, which still hears it: the link restarts at both.
#[test]
fn an_end_that_was_given_up_learns_of_it() {
    let mut world = World::new();
    world.settle();
    let now = world.now;
    world.ends[0].give_up_for_test(now);
    world.run(seconds(3));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
    let now = world.now;
    world.ends[1].give_up_for_test(now);
    world.say(0, b"unknown there");
    world.run(seconds(3));
    assert_eq!(world.events, [[UP, UP, UP], [UP, UP, UP]]);
}

#[test]
fn either_end_may_start_the_link_over() {
    for end in [0, 1] {
        let mut world = World::new();
        world.settle();
        for _ in 0..3 {
            let now = world.now;
            world.ends[end].start_over(now);
        }
        world.run(seconds(3));
        assert_eq!(world.events, [[UP, UP], [UP, UP]]);
        assert!(world.say(0, b"ping") && world.say(1, b"pong"));
        assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
        world.run(seconds(60));
        assert_eq!(world.events.each_ref().map(Vec::len), [2, 2]);
    }
}

#[test]
fn the_peer_may_move() {
    let mut world = World::new();
    world.settle();
    world.at[0] = address(7);
    world.say(1, b"to where it was");
    assert_eq!(world.payloads[0], [b""; 0]);
    world.say(0, b"here");
    world.say(1, b"there");
    assert_eq!(world.payloads[0], [b"there".to_vec()]);
}

#[test]
fn no_bytes_do_harm() {
    let mut world = World::new();
    world.settle();
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    for n in 0..20_000 {
        let datagram: Vec<u8> = (0..n % 200)
            .map(|at| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                if at == 0 { (x % 5) as u8 } else { (x >> 32) as u8 }
            })
            .collect();
        world.bring((n % 2) as usize, address(3), &datagram);
    }
    assert!(world.say(0, b"still") && world.say(1, b"here"));
    assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (1, 1));
}

/// A box starts and finds the other one's first message waiting. It answers, and begins a handshake of its own in the same turn. Only one
/// link comes up, since a second would end the connections of the first.
#[test]
fn ends_that_start_together_make_one_link() {
    let mut world = World::naming([Some(address(2)), Some(address(1))]);
    for (from, to, count) in [(0, 1, 1), (1, 0, 2), (0, 1, 2), (1, 0, 0)] {
        let datagrams = world.answers(from);
        assert!(datagrams.len() >= count, "{from}: {}", datagrams.len());
        // All have come before the other one has its turn.
        datagrams.iter().for_each(|datagram| world.bring(to, address(1 + from as u8), datagram));
    }
    world.run(seconds(5));
    assert_eq!(world.events, [[UP], [UP]]);
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
    assert_eq!(world.payloads, [[b"pong".to_vec()], [b"ping".to_vec()]]);
}
