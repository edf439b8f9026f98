//! The machine by hand in virtual time: packets of a client in, requests out.

use std::net::SocketAddr;

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::mux::{Reason, Route};
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::{Abort, Flags, TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::{ip, tcp};
use bentpipe_engine::{Context, NoProbe, Step};
use bentpipe_io::{Endpoint, Peer};
use proptest::prelude::*;

use super::config::MIN_BUFFER;
use super::*;

mod half_closed;
mod memory;
mod raw;
mod reopening;
mod scans;
mod standing;

use raw::Raw;

const CLIENT: ([u8; 4], u16) = ([10, 1, 0, 2], 40_000);
const SERVER: ([u8; 4], u16) = ([10, 2, 0, 2], 80);

fn config() -> UplinkConfig {
    UplinkConfig {
        sender: UplinkSender {
            tcp: TcpConfig {
                timestamps: true,
                variant: Variant::named("burst").expect("a row"),
                ..TcpConfig::default()
            },
            window: Some(75_000),
            rate: Rate::from_bits_per_second(10_000_000).expect("not zero"),
            round_trip: Duration::from_millis(60),
            mtu: 1500,
        },
        early_accept: false,
        max_streams: 100,
        memory: 8 << 20,
    }
}

/// A machine, its requests, and a clock.
struct World {
    now: Time,
    machine: Uplink,
    /// Packets to clients, with the instants at which they went out.
    sent: Vec<(Time, Vec<u8>)>,
    said: Vec<Uplinked>,
}

impl World {
    fn new(config: UplinkConfig) -> World {
        World { now: Time::ZERO, machine: Uplink::new(config), sent: Vec::new(), said: Vec::new() }
    }

    /// Performs the machine's requests at this instant. Returns until when it then waits.
    fn poll(&mut self) -> Option<Time> {
        let mut out = vec![0; 1 << 16];
        loop {
            match self.machine.poll(self.now, &mut out) {
                Step::Do(Uplinked::Send(length)) => self.sent.push((self.now, out[..length].to_vec())),
                Step::Do(closed @ Uplinked::Closed(id)) => {
                    self.said.push(closed);
                    self.machine.flushed(id);
                }
                Step::Do(said) => self.said.push(said),
                Step::Wait(until) => return until,
            }
        }
    }

    /// Runs the machine until `until`.
    fn run(&mut self, until: Time) {
        while let Some(next) = self.poll().filter(|next| *next <= until) {
            self.now = self.now.max(next);
        }
        self.now = self.now.max(until);
        self.poll();
    }

    fn hear(&mut self, packet: &[u8]) -> Heard {
        let heard = self.machine.receive(self.now, packet);
        self.poll();
        heard
    }

    fn wish(&mut self) -> ConnectionId {
        self.poll();
        let wishes: Vec<_> = self.said.iter().filter(|said| matches!(said, Uplinked::Connect(..))).collect();
        let [Uplinked::Connect(id, route)] = wishes[..] else { panic!("{:?}", self.said) };
        assert_eq!(*route, Route { source: CLIENT.into(), destination: SERVER.into() });
        *id
    }
}

/// A client: the engine's own, without loss.
struct Client(Endpoint);

impl Client {
    fn new() -> Client {
        let mut cx = Context { now: Time::ZERO, who: Who(1), probe: &mut NoProbe };
        let config = TcpConfig { timestamps: true, ..TcpConfig::default() };
        Client(Endpoint::open(&mut cx, config, CLIENT.into(), Peer::Connect(SERVER.into()), 100_000))
    }

    fn user<R>(&mut self, now: Time, act: impl FnOnce(&mut Endpoint, &mut Context<'_, NoProbe>) -> R) -> R {
        act(&mut self.0, &mut Context { now, who: Who(1), probe: &mut NoProbe })
    }

    fn packet(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut out = [0; 2000];
        match self.user(now, |end, cx| end.poll(cx, &mut out)).expect("there is room") {
            Step::Do(length) => Some(out[..length].to_vec()),
            Step::Wait(_) => None,
        }
    }
}

/// Exchanges packets without delay until neither end has more at this instant.
fn exchange(world: &mut World, client: &mut Client) {
    let mut from = world.sent.len();
    loop {
        world.poll();
        let mut more = world.sent.len() > from;
        for (_, packet) in &world.sent[from..] {
            client.user(world.now, |end, cx| end.receive(cx, packet)).expect("it is whole");
        }
        from = world.sent.len();
        while let Some(packet) = client.packet(world.now) {
            assert_eq!(world.machine.receive(world.now, &packet), Heard::Taken);
            more = true;
        }
        if !more {
            return;
        }
    }
}

/// A connection that is open, and its client.
fn open(config: UplinkConfig) -> (World, Client, ConnectionId) {
    let (mut world, mut client) = (World::new(config), Client::new());
    exchange(&mut world, &mut client);
    assert_eq!(world.sent, [], "nobody answers before the server does");
    let id = world.wish();
    world.machine.connected(world.now, id);
    exchange(&mut world, &mut client);
    assert!(client.0.is_connected());
    world.said.clear();
    // The line is free again.
    world.now += Duration::from_secs(1);
    (world, client, id)
}

fn flags(packet: &[u8]) -> Flags {
    Flags::from_bits_truncate(packet[33])
}

#[test]
fn a_syn_is_answered_when_the_server_has_accepted() {
    let (mut world, mut client) = (World::new(config()), Client::new());
    let syn = client.packet(Time::ZERO).expect("a SYN");
    assert_eq!(world.hear(&syn), Heard::Taken);
    let id = world.wish();
    // Once is enough.
    assert_eq!(world.hear(&syn), Heard::Taken);
    assert_eq!((world.wish(), world.sent.len()), (id, 0));
    world.machine.connected(world.now, id);
    world.poll();
    assert_eq!(world.sent.len(), 1);
    let answer = &world.sent[0].1;
    assert_eq!(flags(answer), Flags::SYN | Flags::ACK);
    let parsed = ip::parse(answer).expect("it is whole");
    assert_eq!(parsed.addresses.source(), SocketAddr::from(SERVER).ip());
    let (segment, _) = {
        let ports = ip::Ports { source: CLIENT.1, destination: SERVER.1 };
        let translation = tcp::Translation::new(parsed.addresses.reversed(), ports, 0);
        translation.parse(&answer[parsed.payload], tcp::Near::default()).expect("it is whole")
    };
    assert!(segment.syn.mss == Some(1460) && segment.syn.window_scale.is_some() && segment.timestamps.is_some());
    let stats = world.machine.stats();
    assert_eq!((stats.open, stats.total, stats.connected), (1, 1, 1));
}

#[test]
fn early_accept_answers_at_once() {
    let (mut world, mut client) = (World::new(UplinkConfig { early_accept: true, ..config() }), Client::new());
    exchange(&mut world, &mut client);
    assert!(client.0.is_connected());
    let id = world.wish();
    world.machine.failed(world.now, id, Reason::Refused);
    exchange(&mut world, &mut client);
    assert_eq!(client.0.outcome(), Some(Err(Abort::Reset)));
}

#[test]
fn what_the_server_says_the_client_hears() {
    for (reason, is_reset) in [(Reason::Refused, true), (Reason::Unreachable, true), (Reason::TimedOut, false)] {
        let (mut world, mut client) = (World::new(config()), Client::new());
        exchange(&mut world, &mut client);
        let id = world.wish();
        world.machine.failed(world.now, id, reason);
        exchange(&mut world, &mut client);
        assert_eq!(client.0.outcome(), is_reset.then_some(Err(Abort::Refused)), "{reason:?}");
        let stats = world.machine.stats();
        assert_eq!((stats.open, stats.failed, stats.memory), (0, 1, 0));
    }
}

#[test]
fn too_many_are_refused_and_the_old_ones_live() {
    let (mut world, mut client, id) = open(UplinkConfig { max_streams: 1, ..config() });
    let mut other = Client::new();
    let mut syn = other.packet(Time::ZERO).expect("a SYN");
    // From the port below, with the checksum adjusted.
    syn[21] -= 1;
    let (sum, carries) = u16::from_be_bytes([syn[36], syn[37]]).overflowing_add(1);
    syn[36..38].copy_from_slice(&(sum + u16::from(carries)).to_be_bytes());
    assert_eq!(world.hear(&syn), Heard::Taken);
    assert_eq!(flags(&world.sent.last().expect("an answer").1), Flags::RST | Flags::ACK);
    assert_eq!(world.machine.stats().refused, 1);
    assert_eq!(world.machine.write(world.now, id, b"still there"), 11);
    exchange(&mut world, &mut client);
    assert_eq!(client.0.readable(), 11);
}

#[test]
fn bytes_go_both_ways_and_each_way_ends_by_itself() {
    let (mut world, mut client, id) = open(config());
    client.user(world.now, |end, cx| (end.write(cx, b"GET /").expect("it is open"), end.close(cx)));
    exchange(&mut world, &mut client);
    assert!(world.said.contains(&Uplinked::Ready(id)), "{:?}", world.said);
    assert!(!world.machine.has_ended(id), "there is something to be read first");
    let mut got = [0; 10];
    assert_eq!(world.machine.read(world.now, id, &mut got), 5);
    assert_eq!(&got[..5], b"GET /");
    assert!(world.machine.has_ended(id));
    assert_eq!(world.machine.write(world.now, id, b"200 OK"), 6);
    world.machine.close(world.now, id);
    exchange(&mut world, &mut client);
    assert_eq!(client.0.readable(), 6);
    assert!(client.0.peer_has_closed());
    assert_eq!(world.said.last(), Some(&Uplinked::Closed(id)));
    assert_eq!(world.machine.stats().open, 0);
}

/// The end that closes first waits for stray segments, without buffers; a new connection with the same addresses and ports does not wait.
#[test]
fn time_wait_costs_little_and_gives_way() {
    let (mut world, mut client, id) = open(config());
    world.machine.close(world.now, id);
    exchange(&mut world, &mut client);
    client.user(world.now, |end, cx| end.close(cx));
    exchange(&mut world, &mut client);
    assert_eq!(world.said.last(), Some(&Uplinked::Closed(id)));
    let stats = world.machine.stats();
    assert_eq!((stats.open, stats.memory), (0, 2));
    world.said.clear();
    world.now += Duration::from_secs(1);
    let syn = Client::new().packet(world.now).expect("a SYN");
    assert_eq!(world.hear(&syn), Heard::Taken);
    assert_ne!(world.wish(), id);
    let again = world.wish();
    world.machine.failed(world.now, again, Reason::TimedOut);
    world.now += Duration::from_secs(100);
    world.poll();
    assert_eq!(world.machine.stats().memory, 0);
}

#[test]
fn aborts_are_carried_across() {
    let (mut world, mut client, id) = open(config());
    client.user(world.now, |end, cx| end.abort(cx));
    exchange(&mut world, &mut client);
    assert_eq!(world.said, [Uplinked::Reset(id)]);
    assert_eq!((world.machine.stats().reset, world.machine.stats().memory), (1, 0));

    let (mut world, mut client, id) = open(config());
    world.machine.abort(world.now, id);
    exchange(&mut world, &mut client);
    assert_eq!(client.0.outcome(), Some(Err(Abort::Reset)));
    assert_eq!(world.machine.stats().memory, 0);

    // The server's data may come between the client's reset and its report: nothing is read for which there is no room.
    let (mut world, mut client, id) = open(config());
    assert!(world.machine.room(id) > 0);
    client.user(world.now, |end, cx| end.abort(cx));
    let reset = client.packet(world.now).expect("a reset");
    assert_eq!(world.machine.receive(world.now, &reset), Heard::Taken);
    assert_eq!((world.machine.room(id), world.machine.write(world.now, id, b"data")), (0, 0));

    // While the server is still being contacted.
    let (mut world, mut client) = (World::new(config()), Client::new());
    let syn = client.packet(Time::ZERO).expect("a SYN");
    world.hear(&syn);
    let id = world.wish();
    let next = u32::from_be_bytes([syn[24], syn[25], syn[26], syn[27]]).wrapping_add(1);
    assert_eq!(world.hear(&Raw::new(CLIENT.1, next, None).packet(Flags::RST, b"")), Heard::Taken);
    assert_eq!(world.said.last(), Some(&Uplinked::Reset(id)));
    assert_eq!(world.machine.stats().open, 0);
}

#[test]
fn what_is_not_ours_passes() {
    let mut world = World::new(config());
    let mut syn = Client::new().packet(Time::ZERO).expect("a SYN");
    // A segment of a connection that began before: an ACK.
    let mut ack = syn.clone();
    ack[33] = Flags::ACK.bits();
    assert_eq!(world.hear(&ack), Heard::Pass);
    // A datagram.
    let addresses = ip::Addresses::new([10, 1, 0, 2].into(), [10, 2, 0, 2].into()).expect("one version");
    let mut udp = [0; 28];
    ip::emit(&addresses, ip::UDP, 8, &mut udp).expect("it fits");
    assert_eq!(world.hear(&udp), Heard::Foreign);
    assert_eq!(world.machine.stats().passed, 1);
    // A damaged packet is not passed on.
    syn[25] ^= 1;
    assert_eq!(world.hear(&syn), Heard::Malformed);
    syn[25] ^= 1;
    world.machine.drain();
    assert_eq!(world.hear(&syn), Heard::Pass, "new ones pass directly while the gateway drains");
    assert_eq!((world.sent.len(), world.said.len()), (0, 0));
}

/// Packets of two connections take turns, each after the transmission time of the one before.
#[test]
fn packets_keep_to_the_rate_in_turns() {
    let (mut world, mut first, one) = open(config());
    let mut second = Client::new();
    let port = |packet: &mut [u8], at: usize, by: i8| {
        packet[at] = packet[at].wrapping_add_signed(by);
        let sum = u16::from_be_bytes([packet[36], packet[37]]);
        let sum = if by > 0 { sum.checked_sub(1).unwrap_or(0xfffe) } else { sum.checked_add(1).unwrap_or(1) };
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
    };
    // The second client is the first one's twin, with the next port.
    while let Some(mut packet) = second.packet(world.now) {
        port(&mut packet, 21, 1);
        assert_eq!(world.hear(&packet), Heard::Taken);
    }
    let Some(&Uplinked::Connect(two, _)) = world.said.last() else { panic!("{:?}", world.said) };
    world.machine.connected(world.now, two);
    world.poll();
    let mut answer = world.sent.last().expect("a SYN's answer").1.clone();
    port(&mut answer, 23, -1);
    second.user(world.now, |end, cx| end.receive(cx, &answer)).expect("it is whole");
    while let Some(mut packet) = second.packet(world.now) {
        port(&mut packet, 21, 1);
        assert_eq!(world.hear(&packet), Heard::Taken);
    }
    assert!(second.0.is_connected());
    let _ = &mut first;

    world.now += Duration::from_secs(1);
    world.sent.clear();
    for id in [one, two] {
        assert!(world.machine.room(id) >= MIN_BUFFER);
        assert_eq!(world.machine.write(world.now, id, &[7; MIN_BUFFER]), MIN_BUFFER);
    }
    let from = world.now;
    while world.sent.len() < 20 {
        let until = world.poll().expect("there is more");
        world.now = world.now.max(until);
    }
    let spent = |packets: usize| world.sent[packets - 1].0.saturating_since(from).as_nanos();
    // 1500 B at 10 Mbit/s are 1.2 ms. Five are sent at once, since 5 ms of unused time are made up for.
    assert_eq!((spent(5), spent(6), spent(20)), (0, 1_000_000, 1_000_000 + 14 * 1_200_000));
    let ports: Vec<u8> = world.sent.iter().map(|(_, packet)| packet[23]).collect();
    assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "they take turns: {ports:?}");
}

/// Hosts take turns, however many connections each has.
#[test]
fn nine_connections_of_one_host_leave_half_of_the_line() {
    let mut world = World::new(config());
    let hosts = [CLIENT.0, [10, 1, 0, 3]];
    let mut ids = Vec::new();
    for port in 0..10 {
        let host = hosts[usize::from(port > 0)];
        ids.push(Raw { host, ..Raw::new(40_000 + port, u32::from(port) * 977, None) }.open(&mut world));
    }
    world.now += Duration::from_secs(1);
    world.sent.clear();
    // The single connection is the last to have data.
    for &id in ids.iter().rev() {
        assert!(world.machine.room(id) >= MIN_BUFFER);
        assert_eq!(world.machine.write(world.now, id, &[7; MIN_BUFFER]), MIN_BUFFER);
    }
    while world.sent.len() < 20 {
        let until = world.poll().expect("there is more");
        world.now = world.now.max(until);
    }
    let to: Vec<_> = world.sent[..20].iter().map(|(_, packet)| packet[19]).collect();
    assert!(to.windows(2).all(|pair| pair[0] != pair[1]), "they take turns: {to:?}");
    let ports: std::collections::BTreeSet<_> = world.sent.iter().map(|(_, packet)| packet[23]).collect();
    assert_eq!(ports.len(), 10, "and so do the connections of one");
}

#[test]
fn a_client_that_is_gone_is_given_up() {
    let (mut world, _, id) = open(config());
    world.now += Duration::from_secs(2 * 3600 + 5 * 60);
    world.poll();
    assert!(world.said.contains(&Uplinked::Reset(id)), "{:?}", world.said);
    assert_eq!((world.machine.stats().silent, world.machine.stats().open, world.machine.stats().memory), (1, 0, 0));
}

proptest! {
    /// Random bytes, some with the start of a packet, do not crash the machine.
    #[test]
    fn garbage_is_survived(packets in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 1..30)) {
        let mut world = World::new(UplinkConfig { early_accept: true, ..config() });
        let syn = Client::new().packet(Time::ZERO).expect("a SYN");
        for (like_a_syn, bytes) in packets {
            let mut packet = bytes;
            if like_a_syn {
                for (at, &byte) in syn.iter().enumerate().take(packet.len()) {
                    if packet[at] % 4 != 0 {
                        packet[at] = byte;
                    }
                }
            }
            world.hear(&packet);
            world.now += Duration::from_millis(50);
        }
    }
}
