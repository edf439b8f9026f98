//! The bookkeeping of pairs, with servers on this machine.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream as Host};

use bentpipe_engine::units::{Duration, Rate};
use mio::{Events, Poll};

use super::*;
use crate::policy::{Destination, Prefix};
use crate::test_hosts::{is_reset, server, silent};

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

struct World {
    poll: Poll,
    work: Relaying,
}

impl World {
    fn new(max_pairs: usize, memory: u64, policy: Policy) -> World {
        let config = RelayConfig {
            listen: Vec::new(),
            congestion: "cubic".to_owned(),
            rate: Rate::from_bits_per_second(1_000_000).expect("not zero"),
            round_trip: Duration::from_millis(600),
            mark: 0,
            client_address: ClientAddress::Replace,
            max_streams: max_pairs as u32,
            memory,
            policy: policy.clone(),
        };
        let work = Relaying {
            config,
            access: Access::new(policy),
            dialer: Dialer::default(),
            listeners: Listeners::new(Vec::new()),
            pairs: BTreeMap::new(),
            shares: Shares::default(),
            next: 0,
            half_open: HalfOpen::new(max_pairs / 2),
            again: BTreeSet::new(),
            look: Time::ZERO,
            patience: Duration::from_millis(300),
            pipe: Pipe::new().expect("descriptors"),
            max_pairs,
            stats: RelayStats::default(),
        };
        World { poll: Poll::new().expect("the system has epoll"), work }
    }

    /// A policy that allows servers on this machine.
    fn local(max_pairs: usize, memory: u64) -> World {
        let here = Destination { prefix: Some(Prefix::host(LOOPBACK)), ports: 0..=u16::MAX };
        World::new(max_pairs, memory, Policy { allow: vec![here], ..Policy::default() })
    }

    /// A client of this number connects to `server`, and has sent this.
    fn come(&mut self, now: Time, client: u8, server: SocketAddr, sent: &[u8]) -> Host {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut host = Host::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        host.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("not zero");
        host.write_all(sent).expect("there is room");
        let (socket, _) = listener.accept().expect("it has connected");
        socket.set_nonblocking(true).expect("a setting");
        let route = Route { source: ([10, 0, 0, client], 4000).into(), destination: server };
        self.work.take_in(now, self.poll.registry(), TcpStream::from_std(socket), Some(route));
        host
    }

    /// Handles events until `check` accepts the work.
    fn until(&mut self, now: Time, check: impl Fn(&Relaying) -> bool) {
        let mut events = Events::with_capacity(100);
        for _ in 0..3000 {
            if check(&self.work) {
                return;
            }
            self.poll.poll(&mut events, Some(std::time::Duration::from_millis(10))).expect("it polls");
            for event in &events {
                self.work.ready(now, self.poll.registry(), event.token(), event).expect("no listener fails");
            }
            let (more, _) = self.turn(now);
            assert!(more || self.work.again.is_empty(), "the loop would wait for an event");
        }
        panic!("{:?}", self.work.counted());
    }

    fn turn(&mut self, now: Time) -> (bool, Option<Time>) {
        self.work.turn(now, self.poll.registry()).expect("no listener fails")
    }
}

/// A client may have seven times as many pairs as are free, and a pair that has ended is free again.
#[test]
fn places_are_shared_and_given_back() {
    let mut world = World::local(8, 1 << 20);
    let (listener, to) = server();
    for round in 1..=3 {
        let mut hosts = Vec::new();
        for _ in 0..7 {
            hosts.push(world.come(at(0), 1, to, b""));
            world.until(at(0), |work| work.pairs.values().all(|(_, pair)| !pair.is_connecting()));
        }
        assert!(is_reset(world.come(at(0), 1, to, b"")));
        hosts.push(world.come(at(0), 2, to, b""));
        assert_eq!((world.work.pairs.len(), world.work.stats.refused), (8, round));
        let servers: Vec<_> = (0..8).map(|_| listener.accept().expect("it was connected")).collect();
        drop((hosts, servers));
        world.until(at(0), |work| work.pairs.is_empty());
    }
}

/// Data that waits for a client that has gone does not count any more.
#[test]
fn held_data_goes_with_its_pair() {
    let mut world = World::local(8, 1 << 20);
    let (listener, to) = server();
    let client = world.come(at(0), 1, to, b"");
    world.until(at(0), |work| work.stats.connected == 1);
    let (mut server, _) = listener.accept().expect("it was connected");
    server.set_nonblocking(true).expect("a setting");
    world.until(at(0), |work| {
        while (&mut &server).write(&[7; 1 << 16]).is_ok() {}
        work.stats.held > 0
    });
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(client);
    world.until(at(0), |work| work.pairs.is_empty());
    let stats = world.work.counted();
    assert_eq!((stats.held, stats.reset, stats.failed), (0, 1, 0));
    server.set_nonblocking(false).expect("a setting");
    assert!(server.read(&mut [0]).is_err(), "it is told");
}

/// The policy decides before a server is contacted.
#[test]
fn a_forbidden_server_is_not_contacted() {
    let mut world = World::new(8, 1 << 20, Policy::default());
    let (listener, to) = server();
    listener.set_nonblocking(true).expect("a setting");
    assert!(is_reset(world.come(at(0), 1, to, b"")));
    assert_eq!((world.work.pairs.len(), world.work.access.refused()), (0, 1));
    assert!(listener.accept().is_err());
}

/// Only a server that has not answered for 30 s is given up.
#[test]
fn servers_that_do_not_answer_are_given_up() {
    let mut world = World::local(100, 1 << 20);
    let (_listener, _waiting, nowhere) = silent();
    let (_server, to) = server();
    let lost = world.come(at(5), 1, nowhere, b"");
    let open = world.come(at(0), 1, to, b"");
    world.until(at(0), |work| work.stats.connected == 1);
    assert_eq!(world.turn(at(34)).1, Some(at(35)));
    assert_eq!(world.work.pairs.len(), 2);
    assert_eq!(world.turn(at(35)).1, Some(at(60)), "silent clients are looked for every minute");
    let stats = world.work.counted();
    assert_eq!((stats.open, stats.failed, stats.reset), (1, 1, 0));
    assert!(is_reset(lost));
    drop(open);
    // One that refuses leaves no timer.
    let (closed, refuses) = server();
    drop(closed);
    let refused = world.come(at(40), 1, refuses, b"");
    world.until(at(40), |work| work.stats.failed == 2);
    assert_eq!(world.turn(at(40)).1, Some(at(60)), "for the one that is open");
    assert!(is_reset(refused));
}

/// A client that acknowledges nothing is reset at the next look, and its server learns it. One that owes nothing stays,
/// and so does one that does not read but answers.
#[test]
fn silent_clients_are_given_up() {
    let mut world = World::local(8, 1 << 20);
    let (listener, to) = server();
    let hosts: Vec<_> = (0..3).map(|_| world.come(at(0), 1, to, b"")).collect();
    world.until(at(0), |work| work.stats.connected == 3);
    let mut servers: Vec<_> = (0..3).map(|_| listener.accept().expect("it was connected").0).collect();
    // From now on, everything that arrives at the first host is discarded: its kernel runs a program that only returns 0.
    let nothing = socket2::SockFilter::new((nix::libc::BPF_RET | nix::libc::BPF_K) as u16, 0, 0, 0);
    socket2::SockRef::from(&hosts[0]).attach_filter(&[nothing]).expect("a setting");
    for server in &servers[..2] {
        server.set_nonblocking(true).expect("a setting");
    }
    world.until(at(1), |work| {
        servers[..2].iter().for_each(|mut server| while server.write(&[7; 1 << 16]).is_ok() {});
        work.pairs.values().filter(|(_, pair)| pair.held() > 0).count() == 2
    });
    // The second host answers each probe at once, so it owes nothing.
    let owes = |work: &Relaying| work.pairs.values().filter(|(_, pair)| pair.is_client_silent(work.patience)).count();
    world.until(at(59), |work| owes(work) == 1);
    assert_eq!(world.work.pairs.len(), 3);
    assert_eq!(world.turn(at(60)).1, Some(at(120)));
    assert_eq!((world.work.pairs.len(), world.work.stats.reset), (2, 1));
    servers[0].set_nonblocking(false).expect("a setting");
    assert!(is_reset(&servers.remove(0)), "it is told");
}

/// A client with too many attempts loses its oldest.
#[test]
fn attempts_are_limited() {
    let mut world = World::local(1000, 1 << 20);
    let (_listener, _waiting, nowhere) = silent();
    // An eighth of half of the places.
    let max = 1000 / 2 / 8;
    let hosts: Vec<_> = (0..=max).map(|n| world.come(at(n), 1, nowhere, b"")).collect();
    let stats = world.work.counted();
    assert_eq!((stats.open, stats.failed), (max, 1));
    assert!(is_reset(hosts.into_iter().next().expect("the oldest")));
}

/// If much waits for receivers, each connection is served in small steps. All that was there before its first event is moved.
#[test]
fn small_steps_go_on() {
    let mut world = World::local(8, 100);
    let (listener, to) = server();
    world.work.stats.held = 51;
    let sent = vec![7; 300_000];
    let host = world.come(at(0), 1, to, &sent);
    drop(host);
    let id = *world.work.pairs.keys().next().expect("it was taken");
    world.until(at(0), |work| work.stats.connected == 1);
    // Events of both ends, and two turns.
    assert!(world.work.stats.to_servers <= 4 * 16 * MIN_UNSENT as u64, "{:?}", world.work.stats);
    let (mut server, _) = listener.accept().expect("it was connected");
    let got = std::thread::spawn(move || {
        let mut got = Vec::new();
        server.read_to_end(&mut got).map(|_| got.len())
    });
    world.until(at(0), |work| !work.pairs.contains_key(&id));
    assert_eq!(got.join().expect("it reads").expect("no reset"), sent.len());
    assert_eq!((world.work.stats.held, world.work.stats.reset), (51, 0));
}

/// A pair with much to move, whose ends have event after event, still has one turn among the others.
#[test]
fn a_busy_pair_has_one_turn() {
    let mut world = World::local(8, 100);
    let (listener, to) = server();
    world.work.stats.held = 51;
    let host = world.come(at(0), 1, to, &[7; 1_000_000]);
    world.until(at(0), |work| work.stats.connected == 1);
    let (mut server, _) = listener.accept().expect("it was connected");
    let reader = std::thread::spawn(move || while server.read(&mut [0; 1 << 16]).is_ok_and(|count| count > 0) {});
    for _ in 0..3 {
        // Events of both ends, and a turn.
        let before = world.work.stats.to_servers;
        world.work.serve(0);
        world.work.serve(0);
        world.turn(at(0));
        let moved = world.work.stats.to_servers - before;
        // Sixteen steps each, and what may have been left of the last one.
        assert!(moved <= 3 * 17 * MIN_UNSENT as u64, "{moved}");
    }
    drop((host, world));
    reader.join().expect("no panic");
}

/// A client that has gone before its server answers has reset its connection: the server did not fail.
#[test]
fn a_client_that_goes_early_is_no_failure() {
    let mut world = World::local(8, 1 << 20);
    let (_listener, to) = server();
    let client = world.come(at(0), 1, to, b"");
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(client);
    let [client, server] = world.work.tokens(0);
    let mut seen = BTreeMap::new();
    let mut events = Events::with_capacity(100);
    while !(seen.contains_key(&server) && seen.get(&client).is_some_and(Ready::is_error)) {
        world.poll.poll(&mut events, None).expect("it polls");
        seen.extend(events.iter().map(|event| (event.token(), event.clone())));
    }
    // Had the client's event come first, the attempt would have failed.
    world.work.ready(at(0), world.poll.registry(), server, &seen[&server]).expect("no listener fails");
    let stats = world.work.counted();
    assert_eq!((stats.open, stats.connected, stats.reset, stats.failed), (0, 1, 1, 0));
}

/// Connections that the kernel has accepted before the relay drains are not lost, however many they are.
#[test]
fn a_relay_that_drains_takes_what_has_come() {
    // Their destination is this machine, which the policy forbids.
    let mut world = World::new(1000, 1 << 20, Policy::default());
    let mut listeners = Listeners::new(vec![SocketAddr::new(LOOPBACK, 0)]);
    let mut to = None;
    let bind = |at| TcpListener::bind(at).inspect(|listener| to = listener.local_addr().ok());
    listeners.reserve(bind).expect("a free port");
    listeners.open(world.poll.registry()).expect("it is bound");
    world.work.listeners = listeners;
    let to = to.expect("it is bound");
    let hosts: Vec<_> = (0..200).map(|_| Host::connect(to).expect("it listens")).collect();
    assert!(world.work.drain(at(0), world.poll.registry()).expect("the listeners close"));
    assert_eq!((world.work.counted().total, world.work.access.refused()), (200, 200));
    assert!(hosts.into_iter().all(is_reset));
    assert!(Host::connect(to).is_err());
}
