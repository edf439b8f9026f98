//! Wrong addresses: copies, recordings, floods, and a peer that moves all the time.

use super::world::{UP, World, address, ms, seconds};
use crate::tunnel::machine::MAX_REPLIES;
use crate::tunnel::packet::INIT;
use crate::tunnel::{DATA_OVERHEAD, Tunnel, TunnelConfig};

fn is_there(world: &World, n: u8) -> bool {
    world.ends[1].endpoint() == Some(address(n)) && world.ends[1].is_proven()
}

/// An end at a distance of 300 ms, whose peer has been up for a while.
fn distant() -> World {
    let mut world = World::new();
    world.delay = ms(300);
    world.run(seconds(2));
    world
}

/// RFC 9000 §9.3.3: an attacker sends a copy from an address of its own before the datagram arrives. The peer is idle, but
/// it is asked whether it is still where it was.
#[test]
fn a_copied_datagram_costs_a_round_trip() {
    let mut world = distant();
    world.cut[0] = true;
    world.say(0, &[1; 100]);
    world.cut[0] = false;
    let (_, copy) = world.sent.last().expect("just sent").clone();
    world.bring(1, address(9), &copy);
    assert_eq!(world.ends[1].endpoint(), Some(address(9)));
    world.run(ms(599));
    assert!(!is_there(&world, 1));
    world.run(ms(1));
    assert!(is_there(&world, 1));
}

/// The last datagram under old keys, kept back until new ones are in use, has the highest number of its session.
#[test]
fn what_was_kept_back_moves_nobody() {
    let mut world = World::new();
    world.run(seconds(119));
    world.cut[0] = true;
    world.say(0, b"kept");
    world.cut[0] = false;
    let (_, kept) = world.sent.last().expect("just sent").clone();
    world.run(seconds(2));
    assert_eq!(world.ends[1].stats().handshakes, 2);
    world.say(0, b"new");
    world.bring(1, address(9), &kept);
    assert_eq!(world.payloads[1].last(), Some(&b"kept".to_vec()), "datagrams overtake each other");
    assert!(is_there(&world, 1));
}

/// An end may wait long for its turn on the line.
#[test]
fn replies_that_wait_are_bounded() {
    let mut world = World::naming([None, None]);
    let mut numbers = Vec::new();
    for wall in 1..=2000 {
        let datagram = world.first(0, wall);
        numbers.push(datagram[1..5].to_vec());
        world.bring(1, address(1), &datagram);
        world.now += ms(10);
    }
    let answers = world.answers(1);
    assert_eq!(answers.len(), MAX_REPLIES);
    // The oldest were dropped. Each is a response or a cookie, with the receiver's number behind the sender's or first.
    let receiver = |answer: &[u8]| answer[if answer[0] == 2 { 5 } else { 1 }..][..4].to_vec();
    let asked_last = &numbers[numbers.len() - 2 * MAX_REPLIES..];
    assert!(answers.iter().all(|answer| asked_last.contains(&receiver(answer))));
    assert_eq!(numbers.last(), answers.last().map(|answer| receiver(answer)).as_ref());
}

/// An earlier process, or the tunnel before a reload, knows where the peer was. This does not prove that it is still there.
#[test]
fn what_is_remembered_is_no_proof() {
    let mut world = World::new();
    let config = TunnelConfig { last_endpoint: Some(address(9)), ..world.config(1) };
    world.ends[1] = Tunnel::new(config, world.now);
    assert_eq!(world.ends[1].proven_endpoint(), Some(address(9)), "it stays in the file");
    world.delay = ms(300);
    world.run(seconds(3));
    assert!(is_there(&world, 1));
    world.cut[0] = true;
    world.say(0, &[1; 100]);
    let (_, datagram) = world.sent.last().expect("just sent").clone();
    world.bring(1, address(9), &datagram);
    assert_eq!((world.ends[1].endpoint(), world.ends[1].is_proven()), (Some(address(9)), false));
}

/// Ten seconds long each datagram comes from another address, and this end sends whatever it may. Of each byte three are given, and a
/// probe per second besides; the link stays up, and as soon as the peer rests it is found.
#[test]
fn a_peer_that_moves_a_thousand_times_per_second() {
    let mut world = distant();
    let last = 10_000;
    let at = |n: u16| std::net::SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 4500));
    for n in 1..=last {
        world.at[0] = at(n);
        world.say(0, b"here");
        world.run(ms(1));
        if let Some(payload) = world.ends[1].allowance().checked_sub(DATA_OVERHEAD as u64) {
            world.say(1, &vec![1; payload.min(1400) as usize]);
        }
    }
    let of_those =
        |bytes: &std::collections::BTreeMap<_, u64>| (1..last).filter_map(|n| bytes.get(&at(n))).sum::<u64>();
    let (to, from) = (of_those(&world.bytes_to), of_those(&world.bytes_from));
    assert!(to <= 3 * from + 11 * 29, "{to} bytes for {from}");
    assert!(to > 2 * from, "it sent what it might");
    world.say(0, b"here");
    world.run(ms(900));
    assert!(world.ends[1].endpoint() == Some(at(last)) && world.ends[1].is_proven());
    assert_eq!(world.events, [[UP], [UP]]);
}

/// This machine's clock jumps, so all keys are replaced, just after the peer has moved and sent little.
#[test]
fn a_clock_that_jumps_during_a_move_is_no_outage() {
    let mut world = distant();
    world.at[0] = address(7);
    world.say(0, b"");
    world.run(ms(300));
    assert_eq!(world.ends[1].endpoint(), Some(address(7)));
    let now = world.now;
    world.ends[1].renew(now);
    world.run(seconds(14));
    assert!(is_there(&world, 7));
    assert_eq!(world.events, [[UP], [UP]]);
    assert!(world.say(0, b"ping") && world.say(1, b"pong"));
}

/// This end has dropped its keys and calls the peer at an address that is not proven. These calls count like other datagrams.
#[test]
fn calls_to_a_forged_address_count() {
    let mut world = World::new();
    world.settle();
    let copied = world.keep_back(0, &[7; 100]);
    world.cut = [true; 2];
    let now = world.now;
    world.ends[1].renew(now);
    world.bring(1, address(9), &copied);
    let before = world.begun(1);
    world.run(seconds(14));
    assert_eq!(world.begun(1) - before, 3 * copied.len() / INIT);
    assert_eq!(world.bytes_to[&address(9)], (3 * copied.len() / INIT * INIT) as u64);
}
