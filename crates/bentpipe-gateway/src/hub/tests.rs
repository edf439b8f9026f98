//! A hub and its terminals, in virtual time.

use std::collections::BTreeMap;

use bentpipe_engine::units::Duration;

use super::*;
use crate::tunnel::{Event, PrivateKey, Todo, Tunnel};
use crate::{Satellite, for_streams};

mod arrivals;

const DELAY: Duration = Duration::from_millis(300);
const HUB: ([u8; 4], u16) = ([192, 0, 2, 1], 4500);

fn address(terminal: usize) -> SocketAddr {
    ([10, 0, (terminal >> 8) as u8, terminal as u8], 4500).into()
}

fn satellite(rate: u64) -> Satellite {
    Satellite {
        rate: Rate::from_bits_per_second(rate).expect("not zero"),
        round_trip: DELAY.saturating_mul(2),
        path_mtu: 1500,
        over_ipv6: false,
        reordering: 3,
        shared: false,
    }
}

/// Destination, source and content.
type Flying = (Option<usize>, usize, Vec<u8>);

struct World {
    key: PrivateKey,
    keys: Vec<PrivateKey>,
    hub: Hub,
    terminals: Vec<Carrier>,
    now: Time,
    /// To a terminal, or to the hub from one.
    flight: BTreeMap<(Time, u64), Flying>,
    count: u64,
    /// When the terminals are to be polled.
    wake: Vec<Option<Time>>,
    ups: Vec<usize>,
    downs: Vec<usize>,
    /// Bytes of packets that each terminal received.
    arrived: Vec<u64>,
    /// What is for this terminal goes to the test instead.
    tapped: Option<usize>,
    tap: Vec<Vec<u8>>,
    /// When packets of terminals were delivered at the hub.
    handed: Vec<(Slot, Time)>,
}

impl World {
    fn new(count: usize, rate: u64, each: u64) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let key = PrivateKey::generate();
        let keys: Vec<_> = (0..count).map(|_| PrivateKey::generate()).collect();
        let terminals = keys.iter().map(|own| {
            let tunnel = TunnelConfig::new(own.clone(), key.public(), Some(HUB.into()));
            Carrier::new(tunnel, for_streams(&satellite(each)), now)
        });
        let mut world = World {
            terminals: terminals.collect(),
            hub: Hub::new(Rate::from_bits_per_second(rate)),
            key,
            keys,
            now,
            flight: BTreeMap::new(),
            count: 0,
            wake: vec![Some(now); count],
            ups: vec![0; count],
            downs: vec![0; count],
            arrived: vec![0; count],
            tapped: None,
            tap: Vec::new(),
            handed: Vec::new(),
        };
        world.fill(rate, each, |_| 1);
        world
    }

    /// A hub that knows all terminals and remembers nothing.
    fn fill(&mut self, rate: u64, each: u64, weight: impl Fn(usize) -> u32) {
        self.hub = Hub::new(Rate::from_bits_per_second(rate));
        for n in 0..self.keys.len() {
            let config = self.config(n, each, weight(n));
            assert_eq!(self.hub.add(self.now, config), Ok(Slot(n as u16)));
        }
    }

    fn config(&self, n: usize, each: u64, weight: u32) -> TerminalConfig {
        let tunnel = TunnelConfig::new(self.key.clone(), self.keys[n].public(), None);
        TerminalConfig { tunnel, link: for_streams(&satellite(each)), weight }
    }

    fn send(&mut self, to: Option<usize>, from: usize, datagram: &[u8]) {
        self.count += 1;
        self.flight.insert((self.now + DELAY, self.count), (to, from, datagram.to_vec()));
    }

    /// Runs for a time; `feed` gives the hub packets for terminals.
    fn run(&mut self, span: Duration, mut feed: impl FnMut(&mut Hub, Time)) {
        let end = self.now + span;
        let mut out = vec![0; 1 << 16];
        while self.now < end {
            while let Some(entry) = self.flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, from, mut datagram) = entry.remove();
                match to {
                    Some(terminal) => {
                        self.terminals[terminal].receive(self.now, HUB.into(), &mut datagram);
                        self.wake[terminal] = Some(self.now);
                    }
                    None => self.hub.receive(self.now, address(from), &mut datagram, &mut ()),
                }
            }
            feed(&mut self.hub, self.now);
            let hub_at = loop {
                match self.hub.poll(self.now, 1, &mut out, &mut ()) {
                    Step::Wait(until) => break until,
                    Step::Do((_, Carried::Send(sealed))) => {
                        let to = self.terminals.iter().enumerate().position(|(n, _)| address(n) == sealed.to);
                        let datagram = out[..sealed.len].to_vec();
                        match to {
                            Some(_) if to == self.tapped => self.tap.push(datagram),
                            _ => self.send(to, 0, &datagram),
                        }
                    }
                    Step::Do((slot, Carried::Event(event))) => match event {
                        Event::Up => self.ups[usize::from(slot.0)] += 1,
                        Event::Down => self.downs[usize::from(slot.0)] += 1,
                    },
                    Step::Do((slot, Carried::Packet(_))) => self.handed.push((slot, self.now)),
                    Step::Do(_) => {}
                }
            };
            for n in 0..self.terminals.len() {
                while self.wake[n].is_some_and(|at| at <= self.now) {
                    match self.terminals[n].poll(self.now, 1, &mut out) {
                        Step::Wait(until) => self.wake[n] = until,
                        Step::Do(Carried::Send(sealed)) => {
                            let datagram = out[..sealed.len].to_vec();
                            self.send(None, n, &datagram);
                        }
                        Step::Do(Carried::Packet(at)) => self.arrived[n] += at.len() as u64,
                        Step::Do(_) => {}
                    }
                }
            }
            let next = self.flight.keys().next().map(|key| key.0);
            let wake = self.wake.iter().flatten().min().copied();
            let next = [hub_at, next, wake].into_iter().fold(None, Time::earliest);
            self.now = next.unwrap_or(end).max(self.now).min(end);
        }
    }

    fn quiet(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds), |_, _| {});
    }
}

/// Keeps terminals supplied with full packets.
fn greedy(hub: &mut Hub, now: Time, slots: impl Iterator<Item = usize>) {
    for n in slots {
        let slot = Slot(n as u16);
        let wants =
            hub.carriers().find(|(other, _)| *other == slot).is_some_and(|(_, c)| c.is_up() && c.waiting(0) < 4);
        if let Some(carrier) = hub.carrier_mut(slot).filter(|_| wants) {
            let len = usize::from(carrier.max_packet());
            (0..8).for_each(|_| carrier.send_on(now, 0, 1, &vec![7; len]).expect("it fits"));
        }
    }
}

/// The kernel refuses to send to port 0. By the source of quinn-udp, segmentation is then given up for all peers.
#[test]
fn a_datagram_from_port_0_is_dropped() {
    let mut world = World::new(1, 1_000_000, 1_000_000);
    let mut out = vec![0; 1 << 16];
    for (port, answers) in [(0, 0), (4500, 1)] {
        // A new process each time, since a repeated first message is ignored.
        let tunnel = TunnelConfig::new(world.keys[0].clone(), world.key.public(), Some(HUB.into()));
        let mut terminal = Carrier::new(tunnel, for_streams(&satellite(1_000_000)), world.now);
        let Step::Do(Carried::Send(sealed)) = terminal.poll(world.now, 1, &mut out) else { panic!("it begins") };
        world.hub.receive(world.now, ([10, 0, 0, 0], port).into(), &mut out[..sealed.len].to_vec(), &mut ());
        let mut sent = 0;
        while let Step::Do((_, carried)) = world.hub.poll(world.now, 1, &mut out, &mut ()) {
            sent += usize::from(matches!(carried, Carried::Send(_)));
        }
        assert_eq!(sent, answers, "port {port}");
    }
    assert_eq!(world.hub.garbage(), 1);
}

/// Two hundred terminals come up, live through new keys, and come back within 20 s after the hub was restarted.
#[test]
fn two_hundred_terminals() {
    let mut world = World::new(200, 50_000_000, 1_000_000);
    world.quiet(3);
    assert_eq!(world.ups, vec![1; 200]);
    world.quiet(150);
    assert_eq!((&world.ups, &world.downs), (&vec![1; 200], &vec![0; 200]));
    world.fill(50_000_000, 1_000_000, |_| 1);
    world.ups = vec![0; 200];
    let mut waited = 0;
    while world.ups.contains(&0) {
        world.quiet(1);
        waited += 1;
        assert!(waited <= 20, "{} are up", world.ups.iter().filter(|&&ups| ups > 0).count());
    }
    assert_eq!(world.ups, vec![1; 200]);
    assert_eq!(world.downs, vec![0; 200]);
}

/// Terminals that together want more than the line has share it by their weights; an idle one costs the others nothing, and gets
/// its share at once when it resumes.
#[test]
fn the_line_is_shared_by_weights() {
    let mut world = World::new(4, 4_000_000, 4_000_000);
    world.fill(4_000_000, 4_000_000, |n| [1, 2, 4, 1][n]);
    world.quiet(3);
    world.run(Duration::from_secs(10), |hub, now| greedy(hub, now, 0..3));
    world.arrived = vec![0; 4];
    world.run(Duration::from_secs(20), |hub, now| greedy(hub, now, 0..3));
    let sum: u64 = world.arrived.iter().sum();
    // Of 10 MB on the line 93 % are packets, the rest headers; losses there are none.
    assert!(sum > 8_500_000, "{:?}", world.arrived);
    for (n, share) in [1.0, 2.0, 4.0].into_iter().enumerate() {
        let got = world.arrived[n] as f64 / sum as f64 * 7.0;
        // A turn is one or two packets of some thousand; rates were found during the first seconds.
        assert!((got / share - 1.0).abs() < 0.1, "{n}: {got} of {share}, {:?}", world.arrived);
    }
}

/// A terminal is added and removed while others receive: they are not affected, and its datagrams are dropped.
#[test]
fn terminals_come_and_go() {
    let mut world = World::new(3, 4_000_000, 2_000_000);
    world.quiet(3);
    let removed = world.hub.remove(Slot(1)).expect("it is there");
    assert!(removed.is_up());
    drop(removed);
    assert_eq!(world.hub.slot_of(&world.keys[1].public()), None);
    assert_eq!(world.hub.add(world.now, world.config(0, 1_000_000, 1)), Err(AddError::SameKey));
    world.arrived = vec![0; 3];
    world.run(Duration::from_secs(30), |hub, now| greedy(hub, now, [0, 2].into_iter()));
    assert!(world.arrived[0].min(world.arrived[2]) > 5_000_000 && world.arrived[1] == 0, "{:?}", world.arrived);
    assert!(world.hub.garbage() > 0 && !world.terminals[1].is_up());
    let config = world.config(1, 2_000_000, 1);
    assert_eq!(world.hub.add(world.now, config), Ok(Slot(1)));
    world.quiet(4);
    assert!(world.terminals[1].is_up());
    assert_eq!((&world.ups[..], &world.downs[..]), (&[1, 2, 1][..], &[0, 0, 0][..]));
    assert_eq!(world.hub.slot_of(&world.keys[1].public()), Some(Slot(1)));
}

/// On a full line of 64 kbit/s a packet takes 187 ms; packets from a terminal do not wait for it.
#[test]
fn a_full_line_delays_nothing_that_comes() {
    let mut world = World::new(2, 64_000, 64_000);
    world.quiet(3);
    world.run(Duration::from_millis(10_050), |hub, now| greedy(hub, now, 0..1));
    let sent_at = world.now;
    world.handed.clear();
    world.terminals[1].send_on(sent_at, 0, 1, &[7; 100]).expect("it fits");
    world.wake[1] = Some(sent_at);
    world.run(Duration::from_secs(2), |hub, now| greedy(hub, now, 0..1));
    assert_eq!(world.handed, [(Slot(1), sent_at + DELAY)]);
}

/// A terminal that has its cookie sends a thousand first messages per second, all new and all with the cookie. The hub reads as many of
/// them as of any peer's; another terminal that restarts is up as soon as ever, and a third notices nothing.
#[test]
fn a_terminal_that_floods_with_cookies_keeps_nobody_out() {
    const SECONDS: u64 = 10;
    let mut world = World::new(3, 4_000_000, 4_000_000);
    world.quiet(3);
    world.tapped = Some(0);
    let tunnel = TunnelConfig::new(world.keys[0].clone(), world.key.public(), Some(HUB.into()));
    let mut thrower = Tunnel::new(tunnel, world.now);
    let (mut clock, mut wall, mut out, mut with_cookie) = (world.now, 1000, vec![0; 1 << 16], 0);
    let stats = |world: &World| world.hub.carrier(Slot(0)).expect("it is there").tunnel().stats();
    let before = stats(&world);
    let begun = world.now;
    for millisecond in 0..1000 * SECONDS {
        // Its own clock runs as it needs: a new first message for each call.
        clock += Duration::from_millis(2300);
        wall += 1;
        while let Step::Do(todo) = thrower.poll(clock, wall, &mut out) {
            if let Todo::Send(sealed) = todo {
                with_cookie += u64::from(out[sealed.len - 16..sealed.len] != [0; 16]);
                world.hub.receive(world.now, address(0), &mut out[..sealed.len].to_vec(), &mut ());
            }
        }
        if millisecond == 2000 {
            world.terminals[1] = {
                let tunnel = TunnelConfig::new(world.keys[1].clone(), world.key.public(), Some(HUB.into()));
                Carrier::new(tunnel, for_streams(&satellite(4_000_000)), world.now)
            };
            world.wake[1] = Some(world.now);
        }
        world.run(Duration::from_millis(1), |hub, now| greedy(hub, now, 2..3));
        // It heeds cookies only: with a response it would be up, and begin no more.
        for mut datagram in std::mem::take(&mut world.tap) {
            if matches!(classify(&datagram), Some(Kind::Cookie { .. })) {
                thrower.receive(clock, HUB.into(), &mut datagram);
            }
        }
        if world.ups[1] == 1 && millisecond > 2000 {
            // The clock of this world stands still, so it has to prove itself: two round trips and a half.
            assert!(millisecond < 2000 + 1600, "after {millisecond} ms");
        }
    }
    let after = stats(&world);
    let thrown = world.now.saturating_since(begun).as_millis_f64() as u64;
    assert!(with_cookie > thrown * 9 / 10, "{with_cookie} of {thrown}");
    // 20 at once and 10 per second of each kind are read.
    assert!(after.throttled - before.throttled > thrown - 2 * (20 + 10 * SECONDS) - 2, "{after:?}");
    assert_eq!(world.ups[1..], [2, 1]);
    assert_eq!(world.downs[1..], [0, 0]);
    // The third terminal has the same share of the line as beside idle terminals.
    assert!(world.arrived[2] > 4_000_000 / 8 * (SECONDS - 2) * 9 / 10, "{:?}", world.arrived);
}
