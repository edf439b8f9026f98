//! Two endpoints back to back in virtual time, as IP packets with real bytes.

mod blind;
mod buffers;
mod hostile;
mod scene;

use std::collections::VecDeque;

use bentpipe_engine::NoProbe;
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::{EcnUse, Flags, State};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ecn::Ecn;

use super::*;

const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 4000);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 80);
const DELAY: Duration = Duration::from_millis(5);

/// An end, and the packets on their way to it.
struct End {
    endpoint: Endpoint,
    arriving: VecDeque<(Time, Vec<u8>)>,
    timer: Option<Time>,
}

struct World {
    now: Time,
    ends: [End; 2],
    sent: u64,
    lose: fn(u64) -> bool,
    /// A longer packet is dropped, as by a path with DF set.
    mtu: usize,
}

impl World {
    fn new(config: TcpConfig, lose: fn(u64) -> bool) -> Self {
        let mut probe = NoProbe;
        let mut cx = Context { now: Time::ZERO, who: Who(0), probe: &mut probe };
        let (client, server) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
        let ends = [
            Endpoint::open(&mut cx, config, client, Peer::Connect(server), 30_000),
            Endpoint::open(&mut cx, config, server, Peer::Accept, 30_000),
        ];
        let ends = ends.map(|endpoint| End { endpoint, arriving: VecDeque::new(), timer: None });
        World { now: Time::ZERO, ends, sent: 0, lose, mtu: usize::from(config.mss) + 40 }
    }

    fn user<R>(&mut self, end: usize, act: impl FnOnce(&mut Endpoint, &mut Context<'_, NoProbe>) -> R) -> R {
        let mut cx = Context::silent(self.now);
        act(&mut self.ends[end].endpoint, &mut cx)
    }

    fn flush(&mut self) {
        let mut out = [0; 10_000];
        for from in 0..2 {
            loop {
                match self.user(from, |e, cx| e.poll(cx, &mut out)).expect("there is room") {
                    Step::Wait(timer) => {
                        self.ends[from].timer = timer;
                        break;
                    }
                    Step::Do(length) => {
                        self.sent += 1;
                        if !(self.lose)(self.sent) && length <= self.mtu {
                            let arrives = self.now + DELAY;
                            self.ends[1 - from].arriving.push_back((arrives, out[..length].to_vec()));
                        }
                    }
                }
            }
        }
    }

    /// The next instant at which something happens; false if nothing ever does.
    fn step(&mut self) -> bool {
        self.flush();
        let next = |end: &End| Time::earliest(end.timer, end.arriving.front().map(|(at, _)| *at));
        let Some(now) = Time::earliest(next(&self.ends[0]), next(&self.ends[1])) else { return false };
        self.now = now;
        for to in 0..2 {
            while self.ends[to].arriving.front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = self.ends[to].arriving.pop_front().expect("it is there");
                assert!(matches!(self.user(to, |e, cx| e.receive(cx, &packet)), Ok(Receipt::Taken(_))));
            }
        }
        self.flush();
        true
    }
}

/// Byte `i` of a stream: no period that a ring could hide.
fn byte(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Both ends send `total` bytes at once and check every one they get; then they close.
fn exchange(config: TcpConfig, total: u64, lose: fn(u64) -> bool) -> World {
    let mut world = World::new(config, lose);
    let (mut written, mut read) = ([0; 2], [0; 2]);
    while world.step() {
        assert!(world.now < Time::ZERO + Duration::from_secs(600), "no end: {read:?} of {total}");
        for end in 0..2 {
            if world.ends[end].endpoint.is_connected() && written[end] < total {
                let data: Vec<u8> = (written[end]..total.min(written[end] + 5000)).map(byte).collect();
                written[end] += world.user(end, |e, cx| e.write(cx, &data)).expect("it is open") as u64;
                if written[end] == total {
                    world.user(end, |e, cx| e.close(cx));
                }
            }
            let mut data = [0; 3000];
            while let got @ 1.. = world.user(end, |e, cx| e.read(cx, &mut data)) {
                for &value in &data[..got] {
                    assert_eq!(value, byte(read[end]), "byte {}", read[end]);
                    read[end] += 1;
                }
            }
        }
    }
    assert_eq!(read, [total; 2]);
    assert!(world.ends.iter().all(|end| end.endpoint.outcome() == Some(Ok(()))));
    assert!(world.ends.iter().all(|end| end.endpoint.connection().state() == State::Closed));
    world
}

#[test]
fn every_byte_arrives_through_small_rings() {
    // Buffers that no segment length divides, many laps.
    exchange(TcpConfig { receive_buffer: 20_011, ..TcpConfig::default() }, 1_000_000, |_| false);
}

#[test]
fn every_byte_arrives_through_loss() {
    for timestamps in [false, true] {
        let config = TcpConfig { receive_buffer: 50_021, timestamps, ..TcpConfig::default() };
        let world = exchange(config, 300_000, |n| n % 17 == 5);
        assert!(world.ends.iter().all(|end| end.endpoint.connection().stats().retransmits > 0));
    }
}

/// RFC 6691 §2: options shorten the payload. With SACK blocks on data both ways, packets once were longer than the MTU, and two
/// such endpoints stood still until both gave up.
#[test]
fn every_packet_fits_the_mtu() {
    for mtu in [576, 1280, 1500, 9000] {
        for timestamps in [false, true] {
            let config = TcpConfig { mss: mtu - 40, receive_buffer: 100_003, timestamps, ..TcpConfig::default() };
            let config = TcpConfig { time_wait: Duration::from_secs(10), ..config };
            // A hash of the count: no rhythm of data and ACKs that losses could keep to.
            let world = exchange(config, 300 * u64::from(config.mss), |n| byte(n) < 8);
            assert!(world.now < Time::ZERO + Duration::from_secs(30), "{mtu}: {:?}", world.now);
            let repaired = world.ends.each_ref().map(|end| end.endpoint.connection().stats().retransmits);
            assert!(repaired.iter().all(|repaired| *repaired > 0), "MTU {mtu}: {repaired:?} repairs");
        }
    }
}

#[test]
fn what_is_not_for_us_is_left_alone() {
    let mut world = World::new(TcpConfig::default(), |_| false);
    world.flush();
    let (_, syn) = world.ends[1].arriving.pop_front().expect("a SYN");
    // To the client itself: another address.
    assert_eq!(world.user(0, |e, cx| e.receive(cx, &syn)), Ok(Receipt::Foreign));
    assert_eq!(world.user(1, |e, cx| e.receive(cx, &syn[..30])), Err(WireError::Truncated { needed: 52, have: 30 }));
    let mut damaged = syn.clone();
    damaged[40] ^= 1;
    assert_eq!(world.user(1, |e, cx| e.receive(cx, &damaged)), Err(WireError::Checksum));
    // A listener does not answer what begins no connection.
    let mut scene = scene::Scene::listening(scene::plain());
    let bare = scene.packet(scene::at(1), b"");
    assert_eq!(scene.user(|e, cx| e.receive(cx, &bare)), Ok(Receipt::Foreign));
    // Nor what is for another address or port of its machine.
    for other in [([192, 0, 2, 9], 80), ([192, 0, 2, 2], 81)] {
        scene.wire = scene::peer_wire(CLIENT.into(), other.into());
        let syn = scene.packet(Segment { window: 1000, ..Segment::new(Flags::SYN) }, b"");
        assert_eq!(scene.user(|e, cx| e.receive(cx, &syn)), Ok(Receipt::Foreign), "{other:?}");
    }
    assert_eq!(scene.answers(), []);
    assert_eq!(world.user(1, |e, cx| e.receive(cx, &syn)), Ok(Receipt::Taken(0)));
    assert_eq!(world.ends[1].endpoint.connection().state(), State::SynReceived);
    // Another protocol between the same hosts, and other ports.
    let mut udp = syn.clone();
    udp[9] = 17;
    rechecksum(&mut udp);
    assert_eq!(world.user(1, |e, cx| e.receive(cx, &udp)), Ok(Receipt::Foreign));
    for at in [20, 22] {
        let mut other = syn.clone();
        other[at + 1] ^= 1;
        assert_eq!(world.user(1, |e, cx| e.receive(cx, &other)), Ok(Receipt::Foreign), "byte {at}");
    }
    assert_eq!(world.ends[1].endpoint.connection().state(), State::SynReceived);
}

/// The checksum of an IPv4 header.
fn rechecksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = packet[..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 3168 §6.1: data says that its sender understands marks. The checksum of the IP header includes the field.
#[test]
fn data_is_capable_of_ecn_if_both_ends_are() {
    for (ecn, expected) in [(EcnUse::On, Ecn::Ect0), (EcnUse::Off, Ecn::NotEct)] {
        let mut world = World::new(TcpConfig { ecn, ..TcpConfig::default() }, |_| false);
        while !world.ends[0].endpoint.is_connected() {
            assert!(world.step());
        }
        world.user(0, |e, cx| e.write(cx, b"data")).expect("it is open");
        world.flush();
        let (_, packet) = world.ends[1].arriving.back().expect("just sent");
        assert_eq!(ip::parse(packet).map(|ip| ip.ecn), Ok(expected));
    }
}

/// A connection that has only been opened takes little memory, whatever its window: a box opens thousands.
#[test]
fn an_endpoint_may_begin_small() {
    let config = TcpConfig { receive_buffer: 10_000_000, ..TcpConfig::default() };
    let mut context = Context::silent(Time::ZERO);
    let local = SocketAddr::from(([192, 0, 2, 1], 80));
    let [small, whole] = [[1000, 2000], [1000, 20_000_000]]
        .map(|room| Endpoint::open_small(&mut context, config, local, Peer::Accept, room).memory());
    assert_eq!(whole - small, 10_000_000 - 2000);
    assert_eq!(Endpoint::open(&mut context, config, local, Peer::Accept, 1000).memory(), whole);
}
