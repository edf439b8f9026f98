//! Two boxes with hosts on this machine. Their tunnel and its time are simulated.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream as Host};

use bentpipe_engine::Step;
use bentpipe_engine::gateway::{CONNECTION, MIN_UNSENT, ROOM};
use bentpipe_engine::mux::Route;
use bentpipe_engine::units::Rate;
use mio::net::TcpStream;
use mio::{Events, Poll};
use socket2::{Domain, Socket, Type};

use super::*;
use crate::carrier::Carried;
use crate::hub::TerminalConfig;
use crate::policy::{Destination, Policy, Prefix};
use crate::tunnel::{PrivateKey, TunnelConfig};
use crate::{Satellite, for_streams};

const PEER: Slot = Slot(0);
const BUDGET: u64 = 64 << 20;

struct End {
    poll: Poll,
    hub: Hub,
    shape: SplitShape,
}

struct World {
    ends: [End; 2],
    now: Time,
    flight: Vec<(usize, Vec<u8>)>,
    /// Datagrams are lost.
    is_cut: bool,
}

fn address(end: usize) -> SocketAddr {
    ([192, 0, 2, end as u8], 4500).into()
}

fn server() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    (listener, at)
}

/// A server whose backlog is full, so that it does not answer.
fn silent() -> (Socket, Vec<Socket>, SocketAddr) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).expect("descriptors");
    let listener = socket();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    listener.listen(0).expect("it is bound");
    let at = listener.local_addr().expect("it is bound");
    let waiting = (0..3).map(|_| socket()).inspect(|socket| drop(socket.connect(&at))).collect();
    (listener, waiting, at.as_socket().expect("of IP"))
}

fn is_reset(host: &mut Host) -> bool {
    matches!(host.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
}

impl End {
    /// Number of connections that events could name.
    fn named(&self) -> usize {
        let tokens = (0..1000).map(|n| Token(crate::run::FIRST_TOKEN + n));
        tokens.filter(|token| self.shape.common.tokens.of(*token).is_some()).count()
    }

    fn waiting(&self) -> u64 {
        self.shape.peers[&PEER].waiting(BUDGET).unsent
    }

    /// Number of descriptors or connections' memory that peers have taken.
    fn in_use(&self) -> [u64; 2] {
        [&self.shape.common.memory, &self.shape.common.descriptors].map(crate::pool::Pool::in_use)
    }
}

impl World {
    /// Two boxes whose link is up.
    fn new() -> World {
        World::with_streams(10_000)
    }

    fn with_streams(max_streams: u32) -> World {
        let now = Time::ZERO + Duration::from_secs(1000);
        let here = Destination { prefix: Some(Prefix::host(IpAddr::from([127, 0, 0, 1]))), ports: 0..=u16::MAX };
        let config = SplitConfig {
            listen: Vec::new(),
            client_address: sockets::ClientAddress::Replace,
            fallback: Fallback::Refuse,
            window: 1 << 20,
            max_streams,
            budget: BUDGET,
            policy: Policy { allow: vec![here], ..Policy::default() },
        };
        let satellite = Satellite {
            rate: Rate::from_bits_per_second(10_000_000).expect("not zero"),
            round_trip: Duration::from_millis(20),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 3,
            shared: false,
        };
        let keys = [PrivateKey::generate(), PrivateKey::generate()];
        let ends = [0, 1].map(|n| {
            let tunnel = TunnelConfig::new(keys[n].clone(), keys[1 - n].public(), Some(address(1 - n)));
            let mut end = End {
                poll: Poll::new().expect("the system has epoll"),
                hub: Hub::new(None),
                shape: SplitShape::new(config.clone()),
            };
            let terminal = TerminalConfig { tunnel, link: for_streams(&satellite), weight: 1 };
            assert_eq!(end.hub.add(now, terminal), Ok(PEER));
            end.shape.start(&mut Turn { now, hub: &mut end.hub, registry: end.poll.registry() }).expect("descriptors");
            end.shape.join(PEER, Reach::default());
            end
        });
        let mut world = World { ends, now, flight: Vec::new(), is_cut: false };
        world.until(|world| world.is_up([true; 2]));
        world
    }

    fn is_up(&self, is_up: [bool; 2]) -> bool {
        [0, 1].map(|n| self.ends[n].hub.is_up(PEER)) == is_up
    }

    /// Lets both boxes work until `check` is true.
    fn until(&mut self, check: impl Fn(&World) -> bool) {
        for _ in 0..10_000 {
            if check(self) {
                return;
            }
            self.step(Duration::from_millis(10));
        }
        panic!("{:?}", self.stats());
    }

    /// Lets both boxes work for this long.
    fn wait(&mut self, seconds: u64) {
        (0..10 * seconds).for_each(|_| self.step(Duration::from_millis(100)));
    }

    fn step(&mut self, time: Duration) {
        self.now += time;
        for (to, mut datagram) in std::mem::take(&mut self.flight) {
            self.ends[to].hub.receive(self.now, address(1 - to), &mut datagram, &mut ());
        }
        for n in [0, 1] {
            self.turn(n).expect("no socket of all connections fails");
        }
    }

    fn turn(&mut self, n: usize) -> io::Result<()> {
        let End { poll, hub, shape } = &mut self.ends[n];
        let mut events = Events::with_capacity(100);
        poll.poll(&mut events, Some(std::time::Duration::from_millis(1)))?;
        let mut turn = Turn { now: self.now, hub, registry: poll.registry() };
        for event in &events {
            shape.ready(&mut turn, event.token(), event)?;
        }
        while let Some((slot, event)) = turn.hub.take_event() {
            shape.on_event(&mut turn, slot, event)?;
        }
        shape.fill(&mut turn, None)?;
        let mut out = vec![0; 1 << 16];
        loop {
            match turn.hub.poll(self.now, 1, &mut out, &mut ()) {
                Step::Do((slot, Carried::Send(sealed))) => {
                    if !self.is_cut {
                        self.flight.push((1 - n, out[..sealed.len].to_vec()));
                    }
                    shape.fill(&mut turn, Some(slot))?;
                }
                Step::Do((slot, Carried::Packet(at))) => shape.on_packet(&mut turn, slot, &out[at])?,
                Step::Do((slot, Carried::Event(event))) => shape.on_event(&mut turn, slot, event)?,
                Step::Do((slot, Carried::PathMtu(_))) => shape.on_path_mtu(&mut turn, slot)?,
                Step::Do((_, Carried::Log(_))) => {}
                Step::Wait(_) => {
                    turn.hub.take_touched();
                    shape.fill(&mut turn, None)?;
                    turn.hub.forget_served();
                    if !turn.hub.take_touched() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// A client of the first box connects to a server.
    fn come(&mut self, destination: SocketAddr) -> Host {
        let (listener, at) = server();
        let host = Host::connect(at).expect("it listens");
        host.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("not zero");
        let (socket, _) = listener.accept().expect("it has connected");
        socket.set_nonblocking(true).expect("a setting");
        let route = Route { source: ([10, 0, 0, 1], 4000).into(), destination };
        let End { poll, shape, .. } = &mut self.ends[0];
        let (streams, mut cx) = shape.of(self.now, poll.registry(), PEER).expect("it has joined");
        streams.take_in(&mut cx, TcpStream::from_std(socket), route);
        host
    }

    fn stats(&self) -> [SplitStats; 2] {
        [0, 1].map(|n| self.ends[n].shape.stats())
    }
}

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
    assert_eq!(world.ends.each_ref().map(End::waiting), [0; 2]);
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
        assert_eq!((end.waiting(), end.shape.peers[&PEER].taken()[0], end.in_use()[1], end.named()), (0, 0, 0, 0));
    }
    assert_eq!(world.stats().map(|stats| stats.mux.closed), [1; 2]);
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
