//! Two ends over a path whose MTU changes, in virtual time. The second may move.

mod losses;
mod roaming;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Rate, Time};

use super::{Carried, Carrier, PathChange};
use crate::tunnel::{DATA_HEADER, Event, PrivateKey, TunnelConfig, What};
use crate::{Satellite, for_streams};

const DELAY: Duration = Duration::from_millis(300);

fn address(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 4500).into()
}

struct World {
    ends: [Carrier; 2],
    now: Time,
    /// The path's MTU; longer packets are lost silently.
    mtu: usize,
    flight: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Bytes and last arrival of packets at the second end, and the longest time without any.
    arrived: u64,
    arrived_at: Time,
    longest: Duration,
    changes: Vec<PathChange>,
    events: [Vec<Event>; 2],
    /// Bytes on the line, headers of IP and UDP included, and how many datagrams.
    sent: u64,
    datagrams: u64,
    /// Datagrams of the first end that are longer than any with data.
    probes: u64,
    /// Where the second end is, and the source of its datagrams.
    at: SocketAddr,
    says: SocketAddr,
    /// Datagrams of these lengths do not reach the second end.
    stopped: &'static [usize],
    /// How many of a hundred datagrams are lost, in either direction, and the state of the generator that picks them.
    loss: u64,
    random: u64,
    /// Where packets arrive; the other end sends them.
    sink: usize,
    /// Bytes of UDP payload to and from each address of the second end.
    bytes_to: BTreeMap<SocketAddr, u64>,
    bytes_from: BTreeMap<SocketAddr, u64>,
}

impl World {
    fn new() -> Self {
        let now = Time::ZERO + Duration::from_secs(1000);
        // Which of them is the greater decides whose handshake counts.
        let mut keys = [PrivateKey::generate(), PrivateKey::generate()];
        keys.sort_by_key(PrivateKey::public);
        let satellite = Satellite {
            rate: Rate::from_bits_per_second(10_000_000).expect("not zero"),
            round_trip: DELAY.saturating_mul(2),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 3,
            shared: false,
        };
        let ends = [0, 1].map(|n| {
            let endpoint = (n == 0).then(|| address(2));
            let tunnel = TunnelConfig::new(keys[n].clone(), keys[1 - n].public(), endpoint);
            Carrier::new(tunnel, for_streams(&satellite), now)
        });
        World {
            ends,
            now,
            mtu: 1500,
            flight: BTreeMap::new(),
            count: 0,
            arrived: 0,
            arrived_at: now,
            longest: Duration::ZERO,
            changes: Vec::new(),
            events: Default::default(),
            sent: 0,
            datagrams: 0,
            probes: 0,
            at: address(2),
            says: address(2),
            stopped: &[],
            loss: 0,
            random: 1,
            sink: 1,
            bytes_to: BTreeMap::new(),
            bytes_from: BTreeMap::new(),
        }
    }

    /// xorshift64 (Marsaglia 2003).
    fn is_lost(&mut self) -> bool {
        if self.loss == 0 {
            return false;
        }
        for (left, shift) in [(true, 13), (false, 7), (true, 17)] {
            self.random ^= if left { self.random << shift } else { self.random >> shift };
        }
        self.random % 100 < self.loss
    }

    fn poll(&mut self, end: usize, out: &mut [u8]) -> Option<Time> {
        loop {
            match self.ends[end].poll(self.now, 1, out) {
                Step::Wait(until) => return until,
                Step::Do(Carried::Send(sealed)) => {
                    self.sent += sealed.len as u64 + 28;
                    self.datagrams += 1;
                    self.probes += u64::from(end == 0 && sealed.len + 28 > 1495);
                    let there = match end {
                        0 => {
                            *self.bytes_to.entry(sealed.to).or_default() += sealed.len as u64;
                            sealed.to == self.at && !self.stopped.contains(&sealed.len)
                        }
                        _ => true,
                    };
                    if there && sealed.len + 28 <= self.mtu && !self.is_lost() {
                        self.count += 1;
                        self.flight.insert((self.now + DELAY, self.count), (1 - end, out[..sealed.len].to_vec()));
                    }
                }
                Step::Do(Carried::Packet(at)) => {
                    assert_eq!(end, self.sink);
                    self.arrived += at.len() as u64;
                    self.longest = self.longest.max(self.now.saturating_since(self.arrived_at));
                    self.arrived_at = self.now;
                }
                Step::Do(Carried::Event(event)) => self.events[end].push(event),
                Step::Do(Carried::PathMtu(change)) if end == 0 => self.changes.push(change),
                Step::Do(Carried::PathMtu(_) | Carried::Log(_)) => {}
            }
        }
    }

    /// Runs until `end`, or until `bytes` have arrived. `len` is the length of the packets, some of which always wait to be sent.
    fn run(&mut self, end: Time, bytes: u64, len: impl Fn(&Carrier) -> Option<usize>) {
        let mut out = vec![0; 1 << 16];
        while self.now < end && self.arrived < bytes {
            while let Some(entry) = self.flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, mut datagram) = entry.remove();
                let from = if to == 0 { self.says } else { address(1) };
                if to == 0 {
                    *self.bytes_from.entry(from).or_default() += datagram.len() as u64;
                }
                self.ends[to].receive(self.now, from, &mut datagram);
            }
            let source = 1 - self.sink;
            let mut wake = self.poll(source, &mut out);
            while let Some(len) =
                len(&self.ends[source]).filter(|_| self.ends[source].is_up() && self.ends[source].waiting(0) < 8)
            {
                self.ends[source].send_on(self.now, 0, 1, &vec![7; len]).expect("it fits");
                wake = self.poll(source, &mut out);
            }
            wake = Time::earliest(wake, self.poll(self.sink, &mut out));
            wake = Time::earliest(wake, self.flight.keys().next().map(|key| key.0));
            self.now = wake.unwrap_or(end).max(self.now).min(end);
        }
    }

    fn after(&self, seconds: u64) -> Time {
        self.now + Duration::from_secs(seconds)
    }
}

fn greedy(carrier: &Carrier) -> Option<usize> {
    Some(carrier.max_packet().into())
}

/// A path of any MTU from 1280 on, from the start: 1 MB arrives, and packets are as long as the path takes.
#[test]
fn short_paths_carry_a_megabyte() {
    for mtu in [1280, 1281, 1300, 1350, 1400, 1420, 1492, 1499, 1500] {
        let mut world = World::new();
        world.mtu = mtu;
        world.run(world.after(60), 1_000_000, greedy);
        assert!(world.arrived >= 1_000_000, "{mtu}: {}", world.arrived);
        // Handshake and probes: four round trips; the rate passes 1.2 MB/s.
        let took = world.now.saturating_since(Time::ZERO + Duration::from_secs(1000));
        assert!(took < Duration::from_secs(5), "{mtu}: {took:?}");
        world.run(world.after(20), u64::MAX, greedy);
        let known = usize::from(world.ends[0].path_mtu());
        assert!(known <= mtu && known + 8 >= mtu, "{mtu}: {known}");
        let before = world.ends[0].stats().cut;
        world.run(world.after(5), u64::MAX, greedy);
        assert_eq!(world.ends[0].stats().cut, before, "{mtu}: nothing is cut any more");
        assert_eq!(world.ends[0].stats().black_holes, 0);
    }
}

/// The path changes in mid-transfer: no stall of 10 s, and soon after the sender is back at the configured rate.
#[test]
fn a_dip_in_mid_transfer() {
    // The longest packets that are sent take 1495 bytes.
    for mtu in [1280, 1365, 1400, 1494] {
        let mut world = World::new();
        world.run(world.after(10), u64::MAX, greedy);
        let full = world.arrived;
        world.run(world.after(10), u64::MAX, greedy);
        let full = world.arrived - full;
        world.mtu = mtu;
        world.longest = Duration::ZERO;
        world.run(world.after(12), u64::MAX, greedy);
        // Up to 3.1 s until it is noticed, a round trip of the last frame, and one of the retransmissions.
        assert!(world.longest < Duration::from_secs(6), "{mtu}: {:?}", world.longest);
        assert_eq!(world.ends[0].stats().black_holes, 1, "{mtu}");
        let before = world.arrived;
        world.run(world.after(10), u64::MAX, greedy);
        // Headers take a greater share: of 1280 bytes 7.6 % instead of 6.5 %, and parts of old frames some more.
        assert!(world.arrived - before > full / 20 * 18, "{mtu}: {} of {full}", world.arrived - before);
        world.mtu = 1500;
        world.longest = Duration::ZERO;
        world.run(world.after(90), u64::MAX, greedy);
        assert!(world.longest < Duration::from_secs(1), "{mtu}: {:?}", world.longest);
        assert_eq!(world.ends[0].path_mtu(), 1500);
        assert!(world.changes[0].black_hole && world.changes.last().is_some_and(|last| last.mtu == 1500));
        assert_eq!(world.events, [[Event::Up], [Event::Up]]);
    }
}

/// The link's acknowledgements confirm the size of the datagrams that carry data, so there are no probes besides.
#[test]
fn data_that_arrives_confirms_the_path() {
    let mut world = World::new();
    world.run(world.after(10), u64::MAX, greedy);
    let longest = usize::from(world.ends[0].max_packet());
    let before = world.probes;
    world.run(world.after(60), u64::MAX, |_| Some(longest));
    assert_eq!(world.probes, before);
    // Only a probe can tell that longer packets pass again.
    world.mtu = 1400;
    world.run(world.after(20), u64::MAX, greedy);
    assert!(world.ends[0].path_mtu() <= 1400);
    world.mtu = 1500;
    world.run(world.after(70), u64::MAX, greedy);
    assert_eq!(world.ends[0].path_mtu(), 1500);
}

/// Packets that must not be shortened are sent in parts: those of IPv6 hosts, of 1280 bytes, over a path of 1280 bytes, and over
/// a shorter one than IPv6 guarantees.
#[test]
fn packets_of_ipv6_pass_short_paths() {
    for mtu in [700, 1280] {
        let mut world = World::new();
        world.mtu = mtu;
        world.run(world.after(30), u64::MAX, |_| None);
        world.arrived_at = world.now;
        world.run(world.after(20), 1_000_000, |_| Some(1280));
        assert!(world.arrived >= 1_000_000, "{mtu}: {}", world.arrived);
        assert!(world.ends[0].stats().cut > 700, "{mtu}");
    }
}

/// A round of probes that comes at once is acknowledged probe by probe.
#[test]
fn a_round_of_probes_is_acknowledged() {
    let mut world = World::new();
    world.run(world.after(5), u64::MAX, |_| None);
    let (now, mut out) = (world.now, vec![0; 1 << 16]);
    let [sender, receiver] = &mut world.ends;
    let acknowledged = receiver.tunnel.stats().sent;
    for id in 1000_u32..1009 {
        out[DATA_HEADER..DATA_HEADER + 4].copy_from_slice(&id.to_le_bytes());
        let sealed = sender.tunnel.seal(now, What::Probe, 4, &mut out).expect("it is up");
        receiver.receive(now, address(1), &mut out[..sealed.len]);
    }
    while let Step::Do(_) = receiver.poll(now, 1, &mut out) {}
    assert_eq!(receiver.tunnel.stats().sent - acknowledged, 9);
}

/// The parts of a frame of the old link are neither sent nor joined on the new one.
#[test]
fn parts_end_with_their_link() {
    let [mut sender, mut receiver] = World::new().ends;
    let next = |sender: &mut Carrier| {
        let mut out = [0; 1500];
        sender.cutter.write(&mut out).map(|length| out[..length].to_vec())
    };
    let frame = [7; 1000];
    assert!(sender.cutter.take(&frame, 504));
    let [first, second] = [0, 1].map(|_| next(&mut sender).expect("two parts"));
    assert_eq!(receiver.joiner.take(&first), None);
    receiver.on_event(Event::Up);
    assert_eq!(receiver.joiner.take(&second), None, "its first part came on the old link");
    assert_eq!(receiver.joiner.take(&first).as_deref(), Some(&frame[..]));

    assert!(sender.cutter.take(&frame, 504) && next(&mut sender).is_some());
    sender.on_event(Event::Up);
    assert_eq!(next(&mut sender), None);
}

/// The clock of a box is set, so it makes new keys. What it has to send waits for them, a round trip: nothing is lost and sent
/// again, whichever end it is.
#[test]
fn frames_wait_for_new_keys() {
    for (end, sink) in [(0, 1), (1, 1), (1, 0), (0, 0)] {
        let mut world = World::new();
        world.sink = sink;
        world.run(world.after(10), u64::MAX, greedy);
        world.longest = Duration::ZERO;
        let now = world.now;
        world.ends[end].renew(now);
        world.run(world.after(5), u64::MAX, greedy);
        // A round trip for the keys; while they are made, what was sent before arrives for half a round trip.
        assert!(
            world.longest < DELAY.saturating_mul(2) + Duration::from_millis(50),
            "{end} {sink}: {:?}",
            world.longest
        );
        let stats = world.ends[1 - sink].stats();
        assert_eq!((stats.channels[0].lost, stats.channels[0].resent), (0, 0), "{end} {sink}");
        assert_eq!(world.events.each_ref().map(Vec::len), [1, 1]);
    }
}

/// The kernel reports that datagrams are too long: the next ones are shorter, without a stall of a second.
#[test]
fn what_the_kernel_refuses_is_heeded() {
    let mut world = World::new();
    world.run(world.after(10), u64::MAX, greedy);
    world.mtu = 1400;
    world.longest = Duration::ZERO;
    world.run(world.now + Duration::from_millis(10), u64::MAX, greedy);
    let now = world.now;
    world.ends[0].on_too_long(now, 1472);
    world.run(world.after(10), u64::MAX, greedy);
    assert!(world.longest < Duration::from_secs(1), "{:?}", world.longest);
}

/// The peer believes that a missing packet was delivered, and will not send it again: only a new link helps.
#[test]
fn a_link_that_cannot_go_on_is_made_anew() {
    use bentpipe_engine::slacp::Frame;
    use bentpipe_engine::wire::slacp::{self, Integrity};

    let mut world = World::new();
    world.run(world.after(5), u64::MAX, |_| None);
    let mut frame = [0; 100];
    let mut say = |world: &mut World, count: u64| {
        let next = world.ends[1].endpoint.as_ref().map_or(0, |endpoint| endpoint.end().near().received + 1);
        for number in next..next + count {
            let sync = Frame::Sync { channel: 0, number, floor: 1000 };
            let length = slacp::emit(&sync, 0, &[], Integrity::Below, &mut frame).expect("it fits");
            let now = world.now;
            world.ends[1].on_frame(now, &frame[..length]);
        }
    };
    say(&mut world, 999);
    world.run(world.after(5), u64::MAX, |_| None);
    assert_eq!(world.events.each_ref().map(Vec::len), [1, 1]);
    say(&mut world, 1);
    world.run(world.after(5), u64::MAX, |_| None);
    assert_eq!(world.events.each_ref().map(Vec::len), [2, 2]);
    world.run(world.after(30), 1_000_000, greedy);
    assert!(world.arrived >= 1_000_000);
}
