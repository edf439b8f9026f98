//! What becomes of connections between two boxes.

mod world;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream as Host};

use bentpipe_engine::gateway::{CONNECTION, MIN_UNSENT, ROOM};
use mio::net::TcpListener;

use super::*;
use crate::policy::Prefix;
use crate::test_hosts::{is_reset, server, silent};
use world::{End, PEER, World};

/// A connection of the first box, and its end at the server.
fn connected(world: &mut World) -> (Host, Host) {
    let (listener, at) = server();
    let before = world.stats()[1].connected;
    let client = world.come(at);
    world.until(|world| world.stats()[1].connected == before + 1);
    (client, listener.accept().expect("it was connected").0)
}

fn send(world: &mut World, (client, server): &mut (Host, Host), bytes: usize) {
    client.write_all(&vec![7; bytes]).expect("there is room");
    let before = world.stats()[1].mux.bytes_received;
    world.until(|world| world.stats()[1].mux.bytes_received == before + bytes as u64);
    server.read_exact(&mut vec![0; bytes]).expect("it has arrived");
}

/// Nothing that belonged to a lost link counts as taken. The counters of its multiplexer go on.
#[test]
fn a_lost_link_takes_nothing_with_it() {
    let mut world = World::new();
    let (_listener, _waiting, nowhere) = silent();
    let mut pair = connected(&mut world);
    send(&mut world, &mut pair, 1000);
    let mut trying = world.come(nowhere);
    world.until(|world| world.ends[1].in_use()[1] == 2);
    world.is_cut = true;
    pair.0.set_nonblocking(true).expect("a setting");
    let long = vec![7; 1 << 22];
    let mut sent = 0;
    for _ in 0..20 {
        sent += pair.0.write(&long).unwrap_or(0);
        world.step(Duration::from_millis(10));
    }
    let end = &world.ends[0];
    let carrier = end.hub.carrier(PEER).expect("it was added");
    let held = carrier.held_bytes();
    assert!(carrier.waiting(0) <= ROOM, "so that a quiet stream need not wait long");
    let [of_hosts, link] = end.shape.peers[&PEER].taken();
    assert!(end.waiting() > MIN_UNSENT as u64 && held > 0 && sent > 0);
    // Both connections, the bytes of one, and the link.
    assert!(of_hosts >= 2 * CONNECTION as u64 + MIN_UNSENT as u64 + end.waiting());
    let [memory, connections] = end.in_use();
    assert_eq!((link, memory), (held, of_hosts + link));
    assert_eq!(connections, 2);
    world.until(|world| world.is_up([false; 2]));
    assert_eq!(world.ends.each_ref().map(End::in_use), [[0; 2]; 2]);
    assert!(world.ends.iter().all(|end| end.shape.peers[&PEER].is_idle()));
    assert_eq!(world.ends.each_ref().map(End::named), [0; 2]);
    assert_eq!(world.stats().map(|stats| (stats.lost_with_link, stats.open)), [(2, 0); 2]);
    pair.0.set_nonblocking(false).expect("a setting");
    assert!(is_reset(&mut pair.0) && is_reset(&mut trying));
    world.is_cut = false;
    world.until(|world| world.is_up([true; 2]));
    let before = world.stats()[0].mux.bytes_sent;
    assert!(before > 1000);
    let mut next = connected(&mut world);
    send(&mut world, &mut next, 500);
    assert_eq!(world.stats()[0].mux.bytes_sent, before + 500);
    // The attempt ended with its link, and not once more after 30 s.
    world.wait(40);
    assert_eq!(world.stats()[1].failed, 0);
}

/// Only a server that does not answer for 30 s is given up.
#[test]
fn servers_that_do_not_answer_are_given_up() {
    let mut world = World::new();
    let (_listener, _waiting, nowhere) = silent();
    let (closed, refuses) = server();
    drop(closed);
    let (mut trying, mut refused) = (world.come(nowhere), world.come(refuses));
    let mut pair = connected(&mut world);
    world.until(|world| world.stats()[1].failed == 1);
    world.wait(20);
    assert_eq!(world.stats().map(|stats| stats.open), [2; 2]);
    world.wait(15);
    assert_eq!(world.stats().map(|stats| stats.open), [1; 2]);
    assert_eq!(world.stats()[1].failed, 2);
    assert!(is_reset(&mut trying) && is_reset(&mut refused));
    send(&mut world, &mut pair, 1000);
}

/// A peer that leaves loses its connections, and the others have its part.
#[test]
fn a_peer_leaves_its_part_to_others() {
    let mut world = World::new();
    let (mut client, mut server) = connected(&mut world);
    let end = &mut world.ends[0];
    let limits = |end: &End| [&end.shape.common.memory, &end.shape.common.descriptors].map(|pool| pool.limit(PEER));
    let all = limits(end);
    end.shape.join(Slot(1), Reach::of(Vec::new(), Default::default()));
    assert!(limits(end).iter().zip(all).all(|(now, all)| *now == all - all / 4), "{:?} of {all:?}", limits(end));
    end.shape.leave(Slot(1));
    assert_eq!(limits(end), all);
    end.shape.leave(PEER);
    assert_eq!((end.in_use(), end.named()), ([0; 2], 0));
    assert!(is_reset(&mut client));
    // The other box still has its connection until it loses the link.
    server.write_all(&[7]).expect("it is open");
}

/// Each box has limits of its own. A client whose connection would exceed them is reset.
#[test]
fn limits_of_either_box_hold() {
    let mut world = World::new();
    let mut pair = connected(&mut world);
    let (_listener, at) = server();
    for (far, memory) in [(false, false), (true, false), (false, true), (true, true)] {
        let common = &mut world.ends[usize::from(far)].shape.common;
        let pool = if memory { &mut common.memory } else { &mut common.descriptors };
        let all = pool.limit(PEER);
        // One connection is there, and the budget's fourteen sixteenths are for all connections.
        pool.set_total(if memory { 8 * (CONNECTION + MIN_UNSENT) as u64 / 7 } else { 1 });
        let before = world.stats().map(|stats| (stats.refused, stats.failed));
        let mut client = world.come(at);
        assert_eq!(world.stats()[0].open, if far { 2 } else { 1 });
        world.until(|world| world.stats()[0].open == 1);
        assert!(is_reset(&mut client));
        let after = world.stats().map(|stats| (stats.refused, stats.failed));
        let more = [0, 1].map(|n| (after[n].0 - before[n].0, after[n].1 - before[n].1));
        assert_eq!(more, if far { [(0, 0), (0, 1)] } else { [(1, 0), (0, 0)] });
        let common = &mut world.ends[usize::from(far)].shape.common;
        (if memory { &mut common.memory } else { &mut common.descriptors }).set_total(all);
        assert_eq!(world.ends.each_ref().map(End::named), [1; 2]);
    }
    send(&mut world, &mut pair, 1000);
}

/// Each direction ends by itself, and none by a reset. What ended connections took is free again.
#[test]
fn ends_of_streams_are_passed_on() {
    let mut world = World::new();
    let (mut client, mut server) = connected(&mut world);
    client.write_all(&[7; 100]).expect("there is room");
    client.shutdown(std::net::Shutdown::Write).expect("it is open");
    world.wait(1);
    let mut got = Vec::new();
    server.read_to_end(&mut got).expect("no reset");
    // More than the client's kernel takes at once, so that the box's kernel still has some when the box is done.
    let rest = std::thread::spawn(move || server.write_all(&[8; 300_000]).expect("it is open"));
    world.until(|world| world.stats().iter().all(|stats| stats.open == 0));
    rest.join().expect("all is written");
    client.read_to_end(&mut got).expect("no reset");
    assert_eq!(got, [[7; 100].to_vec(), vec![8; 300_000]].concat());
    world.wait(2);
    for end in &world.ends {
        assert!(end.shape.peers[&PEER].is_idle());
        assert_eq!((end.in_use()[1], end.named()), (0, 0));
    }
    assert_eq!(world.stats().map(|stats| stats.mux.closed), [1; 2]);
}

/// The data of a client that resets its connection waits for nobody.
#[test]
fn a_client_that_resets_takes_its_data_along() {
    let mut world = World::new();
    let (mut client, _server) = connected(&mut world);
    client.write_all(&[7; 100_000]).expect("there is room");
    world.until(|world| world.ends[0].waiting() > 0);
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(client);
    world.until(|world| world.stats()[0].open == 0);
    assert!(world.ends[0].shape.peers[&PEER].is_idle());
}

/// The last bytes of a box that drains may be lost, so it waits for their acknowledgement, but not for ever.
#[test]
fn a_drained_box_waits_for_its_last_bytes() {
    let mut world = World::new();
    let drain = |world: &mut World| {
        let End { poll, hub, shape } = &mut world.ends[0];
        shape.drain(&mut Turn { now: world.now, hub, registry: poll.registry() }).expect("no listeners")
    };
    let (client, _server) = connected(&mut world);
    world.is_cut = true;
    assert!(!drain(&mut world));
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(client);
    world.until(|world| world.stats()[0].open == 0);
    world.wait(1);
    assert!(!drain(&mut world));
    world.wait(1);
    assert!(!drain(&mut world));
    world.wait(4);
    assert!(world.ends[0].hub.carrier(PEER).is_some_and(|carrier| carrier.unconfirmed() > 0));
    assert!(drain(&mut world));
}

/// A box connects neither to what lies behind its peers nor for clients that are not behind the peer.
#[test]
fn a_peer_reaches_only_what_it_may() {
    let mut world = World::new();
    let (listener, at) = server();
    listener.set_nonblocking(true).expect("a setting");
    let here = vec![Prefix::host(at.ip())];
    for (count, (of_other, address)) in
        (1..).zip([(here, sockets::ClientAddress::Replace), (Vec::new(), sockets::ClientAddress::Keep)])
    {
        let far = &mut world.ends[1].shape;
        far.join(Slot(1), Reach::of(of_other, Default::default()));
        far.join(PEER, Reach::of(vec![Prefix::host(IpAddr::from([10, 0, 0, 2]))], Default::default()));
        far.common.config.client_address = address;
        let mut client = world.come(at);
        world.until(|world| world.stats()[0].mux.reset_by_peer == count);
        assert!(is_reset(&mut client) && listener.accept().is_err());
        assert_eq!(world.ends[1].shape.peers[&PEER].forbidden(), count);
    }
}

/// A client with too many attempts loses its oldest.
#[test]
fn attempts_are_limited() {
    let mut world = World::with_streams(64);
    let (_listener, _waiting, nowhere) = silent();
    let mut hosts: Vec<_> = (0..17).map(|_| world.come(nowhere)).collect();
    world.until(|world| world.stats()[1].failed == 1 && world.stats()[0].open == 16);
    assert_eq!(world.stats()[1].open, 16);
    assert_eq!(hosts.iter_mut().position(is_reset), Some(0));
}

/// A box that drains finishes open connections and opens no others, on the next link either.
#[test]
fn a_drained_box_opens_nothing() {
    let mut world = World::new();
    let drain = |world: &mut World| {
        let End { poll, hub, shape } = &mut world.ends[1];
        shape.drain(&mut Turn { now: world.now, hub, registry: poll.registry() }).expect("no listeners")
    };
    let mut pair = connected(&mut world);
    assert!(!drain(&mut world));
    let (_listener, at) = server();
    for count in 1..=2 {
        let mut client = world.come(at);
        world.until(|world| world.stats()[0].mux.reset_by_peer == count);
        assert!(is_reset(&mut client));
        assert_eq!((world.stats()[1].connected, world.stats()[1].failed), (1, 0));
        if world.stats()[0].open > 0 {
            send(&mut world, &mut pair, 1000);
        }
        world.is_cut = true;
        world.until(|world| world.is_up([false; 2]));
        world.is_cut = false;
        world.until(|world| world.is_up([true; 2]));
    }
    world.until(|world| world.ends[1].hub.carrier(PEER).is_some_and(|carrier| carrier.unconfirmed() == 0));
    assert!(drain(&mut world));
}

/// Connections that the kernel has accepted before a box drains are carried, however many they are.
#[test]
fn a_box_that_drains_takes_what_has_come() {
    let mut world = World::new();
    let End { poll, hub, shape } = &mut world.ends[0];
    let mut listeners = Listeners::new(vec![([127, 0, 0, 1], 0).into()]);
    let mut to = None;
    let bind = |at| TcpListener::bind(at).inspect(|listener| to = listener.local_addr().ok());
    listeners.reserve(bind).expect("a free port");
    listeners.open(poll.registry()).expect("it is bound");
    shape.listeners = listeners;
    let to = to.expect("it is bound");
    let hosts: Vec<_> = (0..200).map(|_| Host::connect(to).expect("it listens")).collect();
    shape.drain(&mut Turn { now: world.now, hub, registry: poll.registry() }).expect("the listeners close");
    assert_eq!((shape.stats().accepted, shape.stats().open), (hosts.len() as u64, 200));
    assert!(Host::connect(to).is_err());
}
