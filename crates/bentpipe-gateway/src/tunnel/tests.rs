//! Two ends in virtual time, and somebody between them.

use std::net::SocketAddr;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};

use super::cipher::machine_has_aes;
use super::*;

fn address(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 4500).into()
}

fn config(private: &PrivateKey, peer: &PrivateKey, endpoint: Option<SocketAddr>) -> TunnelConfig {
    TunnelConfig {
        private: private.clone(),
        peer: peer.public(),
        endpoint,
        keepalive: Duration::from_secs(5),
        dead_after: Duration::from_secs(15),
    }
}

/// The initiator is end 0, at address 1; the responder end 1, at address 2.
struct World {
    keys: [PrivateKey; 2],
    ends: [Tunnel; 2],
    at: [SocketAddr; 2],
    now: Time,
    /// Datagrams, with whom they come from.
    sent: Vec<(usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    payloads: [Vec<Vec<u8>>; 2],
    /// Nothing arrives.
    cut: bool,
}

impl World {
    fn new() -> Self {
        let keys = [PrivateKey::generate(), PrivateKey::generate()];
        let now = Time::ZERO + Duration::from_secs(1000);
        let ends = [
            Tunnel::new(config(&keys[0], &keys[1], Some(address(2))), now),
            Tunnel::new(config(&keys[1], &keys[0], None), now),
        ];
        World {
            keys,
            ends,
            at: [address(1), address(2)],
            now,
            sent: Vec::new(),
            events: Default::default(),
            payloads: Default::default(),
            cut: false,
        }
    }

    fn bring(&mut self, to: usize, from: SocketAddr, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        let heard = self.ends[to].receive(self.now, from, &mut datagram);
        self.events[to].extend(heard.event);
        self.payloads[to].extend(heard.payload.map(|at| datagram[at].to_vec()));
    }

    /// Lets both talk until they wait; when the first of them wants to be woken.
    fn settle(&mut self) -> Option<Time> {
        loop {
            let mut busy = false;
            let mut wake = None;
            for end in [0, 1] {
                let mut out = [0; 1500];
                match self.ends[end].poll(self.now, self.now.as_nanos(), &mut out) {
                    Step::Wait(until) => wake = Time::earliest(wake, until),
                    Step::Do(Todo::Tell(event)) => {
                        self.events[end].push(event);
                        busy = true;
                    }
                    Step::Do(Todo::Send(Sealed { to, len })) => {
                        self.sent.push((end, out[..len].to_vec()));
                        if !self.cut && to == self.at[1 - end] {
                            self.bring(1 - end, self.at[end], &out[..len]);
                        }
                        busy = true;
                    }
                }
            }
            if !busy {
                return wake;
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(wake) = self.settle().filter(|&wake| wake <= end) {
            assert!(wake > self.now, "time goes on");
            self.now = wake;
        }
        self.now = end;
    }

    fn say(&mut self, end: usize, text: &[u8]) -> bool {
        let mut out = [0; 1500];
        out[DATA_HEADER..][..text.len()].copy_from_slice(text);
        let Some(Sealed { to, len }) = self.ends[end].seal(self.now, text.len(), &mut out) else { return false };
        self.sent.push((end, out[..len].to_vec()));
        if !self.cut && to == self.at[1 - end] {
            self.bring(1 - end, self.at[end], &out[..len]);
        }
        true
    }
}

const UP: Event = Event::Up { fresh: true };

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
    assert_eq!(lengths[..3], [142, 83, DATA_OVERHEAD]);
    assert!(!world.sent.iter().any(|(_, d)| d.windows(4).any(|w| w == b"ping" || w == b"pong")));
}

/// Whichever end has no instructions for AES, both hear each other.
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
            let to = [Some(address(2)), None][n];
            let end = Tunnel::new(config(&world.keys[n], &world.keys[1 - n], to), world.now);
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
    assert!(world.ends[1].stats().refused >= 3, "init, confirmation, data");
}

#[test]
fn a_changed_bit_is_noticed() {
    let mut world = World::new();
    world.settle();
    world.say(0, b"text");
    let (_, datagram) = world.sent.last().expect("just sent").clone();
    let before = world.payloads[1].len();
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        world.bring(1, address(9), &changed);
    }
    assert_eq!((world.payloads[1].len(), world.ends[1].endpoint()), (before, Some(address(1))));
}

#[test]
fn strangers_are_refused() {
    // Somebody who knows the responder's public key, and is not whom it expects.
    let mut world = World::new();
    let stranger = PrivateKey::generate();
    let mut other = Tunnel::new(config(&stranger, &world.keys[1], Some(address(2))), world.now);
    let mut out = [0; 1500];
    let Step::Do(Todo::Send(sealed)) = other.poll(world.now, 1, &mut out) else { panic!("it begins") };
    world.bring(1, address(3), &out[..sealed.len]);
    assert_eq!(world.ends[1].stats().refused, 1);
    // Somebody who does not know it is refused before anything is computed.
    let mut lost = Tunnel::new(config(&world.keys[0], &stranger, Some(address(2))), world.now);
    let Step::Do(Todo::Send(sealed)) = lost.poll(world.now, 1, &mut out) else { panic!("it begins") };
    world.bring(1, address(3), &out[..sealed.len]);
    assert_eq!(world.ends[1].stats().garbage, 1);
    assert_eq!(world.ends[1].poll(world.now, 1, &mut out), Step::Wait(None), "nobody is answered");
}

#[test]
fn a_flood_of_handshakes_is_answered_so_often() {
    let mut world = World::new();
    for wall in 1..=1000 {
        let mut out = [0; 1500];
        let mut end = Tunnel::new(config(&world.keys[0], &world.keys[1], Some(address(2))), world.now);
        let Step::Do(Todo::Send(sealed)) = end.poll(world.now, wall, &mut out) else { panic!("it begins") };
        world.bring(1, address(3), &out[..sealed.len]);
    }
    assert_eq!(world.ends[1].stats().throttled, 980);
    // An old clock is refused.
    world.now += Duration::from_secs(10);
    let mut out = [0; 1500];
    let mut end = Tunnel::new(config(&world.keys[0], &world.keys[1], Some(address(2))), world.now);
    let Step::Do(Todo::Send(sealed)) = end.poll(world.now, 20, &mut out) else { panic!("it begins") };
    world.bring(1, address(3), &out[..sealed.len]);
    assert_eq!(world.ends[1].stats().refused, 1);
}

/// A peer that begins anew where it was is answered while others flood; what comes in its name is limited, too.
#[test]
fn a_flood_of_strangers_does_not_keep_the_peer_out() {
    let mut world = World::new();
    world.run(Duration::from_secs(1));
    assert_eq!(world.ends[1].endpoint(), Some(address(1)));
    let first = |world: &World, private: &PrivateKey, wall| {
        let mut out = [0; 1500];
        let mut end = Tunnel::new(config(private, &world.keys[1], Some(address(2))), world.now);
        let Step::Do(Todo::Send(sealed)) = end.poll(world.now, wall, &mut out) else { panic!("it begins") };
        out[..sealed.len].to_vec()
    };
    let stranger = PrivateKey::generate();
    for wall in 1..=100 {
        let datagram = first(&world, &stranger, wall);
        world.bring(1, address(3), &datagram);
    }
    assert_eq!(world.ends[1].stats().throttled, 80);
    let datagram = first(&world, &world.keys[0].clone(), u64::MAX);
    world.bring(1, address(1), &datagram);
    let mut out = [0; 1500];
    let answered =
        matches!(world.ends[1].poll(world.now, 1, &mut out), Step::Do(Todo::Send(to)) if to.to == address(1));
    assert!(answered && world.ends[1].stats().throttled == 80);
    for wall in 1..=100 {
        let datagram = first(&world, &stranger, wall);
        world.bring(1, address(1), &datagram);
    }
    assert_eq!(world.ends[1].stats().throttled, 80 + 81);
}

#[test]
fn keys_are_renewed_and_the_link_goes_on() {
    let mut world = World::new();
    for second in 0..600 {
        world.run(Duration::from_secs(1));
        assert!(world.say(0, &[second as u8]) && world.say(1, &[second as u8]));
    }
    assert_eq!(world.events, [[UP], [UP]]);
    assert_eq!((world.payloads[0].len(), world.payloads[1].len()), (600, 600));
    assert_eq!(world.ends[0].stats().handshakes, 6, "one per two minutes");
}

#[test]
fn an_idle_peer_lives_and_a_silent_one_is_given_up() {
    let mut world = World::new();
    world.run(Duration::from_secs(100));
    assert_eq!(world.events, [[UP], [UP]]);
    world.cut = true;
    world.run(Duration::from_secs(21));
    assert_eq!(world.events, [[UP, Event::Down], [UP, Event::Down]]);
    assert!(!world.say(0, b"nobody hears"));
    world.cut = false;
    world.run(Duration::from_secs(3));
    assert_eq!(world.events, [[UP, Event::Down, UP], [UP, Event::Down, UP]]);
}

#[test]
fn whoever_restarts_makes_both_begin_anew() {
    let mut world = World::new();
    world.settle();
    // The responder: it knows nothing of the session, says so, and the initiator begins at once.
    world.now += Duration::from_secs(3);
    world.ends[1] = Tunnel::new(config(&world.keys[1], &world.keys[0], None), world.now);
    world.say(0, b"to the old one");
    world.run(Duration::from_millis(1));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
    assert!(world.say(0, b"new") && world.say(1, b"new"));
    // The initiator.
    world.now += Duration::from_secs(3);
    world.ends[0] = Tunnel::new(config(&world.keys[0], &world.keys[1], Some(address(2))), world.now);
    world.settle();
    assert_eq!(world.events, [[UP, UP, UP], [UP, UP, UP]]);
    assert_eq!(world.payloads[1].last(), Some(&b"new".to_vec()), "nothing of the old link");
}

/// One end gives the other up, which has heard all along: both begin anew.
#[test]
fn who_was_given_up_hears_of_it() {
    let mut world = World::new();
    world.settle();
    world.ends[0].give_up_for_test();
    world.run(Duration::from_secs(3));
    assert_eq!(world.events, [[UP, UP], [UP, UP]]);
    world.ends[1].give_up_for_test();
    world.say(0, b"unknown there");
    world.run(Duration::from_secs(3));
    assert_eq!(world.events, [[UP, UP, UP], [UP, UP, UP]]);
}

#[test]
fn the_peer_may_move() {
    let mut world = World::new();
    world.settle();
    world.at[0] = address(7);
    assert!(!{
        world.say(1, b"to where it was");
        world.payloads[0].contains(&b"to where it was".to_vec())
    });
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
        let datagram: Vec<u8> = (0..n % 160)
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
