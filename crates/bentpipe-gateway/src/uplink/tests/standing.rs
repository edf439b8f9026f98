//! Downloads over a link with an unlimited buffer: when a standing queue is noticed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::uplink::standing::{Said, Standing};

const SECOND: Duration = Duration::from_secs(1);

fn bits(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate).expect("not zero")
}

/// A packet on its way: its arrival, its number, the client to which it goes or `None` for the gateway, its bytes.
type OnItsWay = (Time, u64, Option<usize>, Vec<u8>);

/// The link to the clients, and its rate and one-way delay at each instant.
struct Line<R, D> {
    rate: R,
    delay: D,
    free: Time,
    /// The last arrival: packets stay in order.
    last: Time,
}

impl<R: Fn(Time) -> u64, D: Fn(Time) -> u64> Line<R, D> {
    fn arrival(&mut self, now: Time, length: usize) -> Time {
        let begun = self.free.max(now);
        self.free = begun + bits((self.rate)(now)).time_for_ceil(length as u64);
        self.last = self.last.max(self.free + Duration::from_millis((self.delay)(begun)));
        self.last
    }
}

/// What is said in the first `seconds`, and when. `count` clients download without end. The gateway is told 400 kbit/s and
/// 600 ms. `rate` and `delay` are those of the link in bit/s and ms, one way, at each instant.
fn said(seconds: u64, count: u16, rate: impl Fn(Time) -> u64, delay: impl Fn(Time) -> u64 + Copy) -> Vec<(u64, Said)> {
    let mut config = config();
    config.sender.tcp.variant = Variant::named("constant-rack").expect("a row");
    config.sender.rate = bits(400_000);
    config.sender.round_trip = Duration::from_millis(600);
    config.sender.window = Some(30_000);
    let mut world = World::new(config);
    let mut line = Line { rate, delay, free: Time::ZERO, last: Time::ZERO };
    let mut back = Line { rate: |_| 10_000_000, delay, free: Time::ZERO, last: Time::ZERO };
    let mut clients: Vec<_> = (0..count)
        .map(|number| {
            let mut cx = Context { now: Time::ZERO, who: Who(1), probe: &mut NoProbe };
            let config = TcpConfig { timestamps: true, ..TcpConfig::default() };
            let own = SocketAddr::from((CLIENT.0, CLIENT.1 + number));
            Endpoint::open(&mut cx, config, own, Peer::Connect(SERVER.into()), 300_000)
        })
        .collect();
    let mut way: BinaryHeap<Reverse<OnItsWay>> = BinaryHeap::new();
    let (mut number, mut news) = (0, Vec::new());
    let mut dirty = vec![true; clients.len()];
    let mut timers = vec![None; clients.len()];
    while world.now < Time::ZERO + SECOND.saturating_mul(seconds) {
        let now = world.now;
        for (client, endpoint) in clients.iter_mut().enumerate() {
            if !std::mem::take(&mut dirty[client]) && timers[client].is_none_or(|at| at > now) {
                continue;
            }
            let mut cx = Context { now, who: Who(1), probe: &mut NoProbe };
            while endpoint.read(&mut cx, &mut [0; 4096]) > 0 {}
            let mut out = [0; 2000];
            loop {
                match endpoint.poll(&mut cx, &mut out).expect("there is room") {
                    Step::Do(length) => {
                        number += 1;
                        way.push(Reverse((back.arrival(now, length), number, None, out[..length].to_vec())));
                    }
                    Step::Wait(until) => break timers[client] = until,
                }
            }
        }
        let next = world.poll();
        for said in std::mem::take(&mut world.said) {
            match said {
                Uplinked::Connect(id, _) => world.machine.connected(now, id),
                Uplinked::Ready(id) => {
                    let room = world.machine.room(id);
                    world.machine.write(now, id, &vec![0; room]);
                }
                other => panic!("{other:?}"),
            }
            dirty[0] = true;
        }
        for (_, packet) in world.sent.drain(..) {
            number += 1;
            let client = u16::from_be_bytes([packet[22], packet[23]]) - CLIENT.1;
            way.push(Reverse((line.arrival(now, packet.len()), number, Some(client.into()), packet)));
        }
        news.extend(world.machine.queue_news(now).map(|said| (now.as_nanos() / 1_000_000_000, said)));
        if dirty.contains(&true) {
            continue;
        }
        let arrival = way.peek().map(|Reverse((at, ..))| *at);
        let timers = timers.iter().flatten().copied();
        world.now = timers.chain(next).chain(arrival).min().expect("downloads have no end").max(now);
        while let Some(Reverse((at, ..))) = way.peek()
            && *at <= world.now
        {
            let Some(Reverse((at, _, client, packet))) = way.pop() else { break };
            match client {
                Some(client) => {
                    let mut cx = Context { now: at, who: Who(1), probe: &mut NoProbe };
                    clients[client].receive(&mut cx, &packet).expect("it is whole");
                    dirty[client] = true;
                }
                None => assert_eq!(world.machine.receive(at, &packet), Heard::Taken),
            }
        }
    }
    news
}

/// A link that carries half of `rate`, for the first four minutes. Two windows of 30 kB take 2.4 s at 200 kbit/s.
#[test]
fn a_queue_is_said_when_it_comes_and_when_it_has_gone() {
    let rate = |now: Time| if now < Time::ZERO + SECOND.saturating_mul(240) { 200_000 } else { 500_000 };
    let said = said(560, 2, rate, |_| 300);
    let [(begun, Said::Stands { shortest, told }), (gone, Said::Gone)] = said[..] else { panic!("{said:?}") };
    assert_eq!((shortest.as_nanos() / 100_000_000, told), (24, Duration::from_millis(600)));
    // The second minute is the first whose round trips are all long.
    assert!((120..130).contains(&begun), "{begun}");
    // Between the last pause with effect, at most a minute and two round trips before the end, and the fifth minute after it.
    assert!((470..=545).contains(&gone), "{gone}");
}

#[test]
fn long_round_trips_without_a_queue_are_silent() {
    // A healthy link; one with jitter; one whose route becomes four times as long after two minutes, for one and for two
    // connections.
    let jitter = |now: Time| 300 + now.as_nanos() / 1_000_000 % 397 * 7 % 500;
    let longer = |now: Time| if now < Time::ZERO + SECOND.saturating_mul(120) { 300 } else { 1200 };
    assert_eq!(said(200, 2, |_| 410_000, |_| 300), []);
    assert_eq!(said(200, 2, |_| 410_000, jitter), []);
    for count in [1, 2] {
        assert_eq!(said(330, count, |_| 410_000, longer), [], "{count}");
    }
}

/// The round trips of a minute were long, and the clients are idle after the pause. What the next ones are like, hours later, says nothing
/// of it.
#[test]
fn a_round_trip_long_after_the_pause_proves_nothing() {
    let mut standing = Standing::new(Duration::from_millis(600));
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let long = Duration::from_millis(2000);
    let until = (0..=60).find_map(|second| standing.measured(at(1000 * second), long)).expect("a pause");
    assert_eq!(until, at(60_500));
    standing.measured(at(7_200_000), Duration::from_millis(600));
    assert_eq!((standing.queue(), standing.news(at(7_200_000))), (Duration::ZERO, None));
    // Within two round trips of the pause, it does.
    let until = (0..=61).find_map(|second| standing.measured(at(8_000_000 + 1000 * second), long)).expect("another");
    standing.measured(until + long, Duration::from_millis(1500));
    let said = Said::Stands { shortest: long, told: Duration::from_millis(600) };
    assert_eq!(standing.news(until + long), Some(said));
}
