//! Two ends of an S-LACP link with their bytes, and an adversary between them, who follows the bytes of the input.
//!
//! He loses, delays, repeats, damages and cuts frames short; when the input is used up the line is clean. Packets must
//! come out whole, each at most once, in order within their flow and channel, and all of them where nothing bounds the
//! retransmission. In the other mode he writes frames of his own with a right CRC: then he may spoil the link, but
//! no end may panic, grow without bound, stand still, or wait for the past.

#[path = "bytes.rs"]
mod bytes;

use std::collections::BTreeMap;

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{
    Arq, ChannelConfig, Codel, Copies, Fec, Frame, Order, Probing, Queueing, RateControl, Release, Repairs, Report,
    Shortcuts, SlacpConfig,
};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::slacp::{self, Integrity};
use bentpipe_engine::wire::{ipv4, ipv6};
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Emitted, LinkEndpoint, LinkEndpointConfig};

use bytes::Bytes;

const CHANNELS: u8 = 3;
const MAX_PACKET: u16 = 300;
const PACKETS: u16 = 400;
/// A storm is over after this many bytes even if the input is not.
const STORM: usize = 4000;
/// Steps: each is an instant with something to do. A link that was spoilt need not come to rest.
const STEPS: usize = 100_000;
const HOSTILE_STEPS: usize = 5000;

fn channel(bytes: &mut Bytes) -> ChannelConfig {
    let (switches, more, block) = (bytes.next(), bytes.next(), bytes.next());
    let on = |bit: u8| switches & (1 << bit) != 0;
    let fec = Fec {
        block: 1 + block % Fec::MAX_FRAMES,
        first_block: on(6).then_some(block / 16),
        interval: Duration::from_millis(1 + u64::from(more & 0x3f)),
        max_overhead: if on(7) { 2.0 } else { 0.5 },
        repairs: if on(7) { Repairs::Prompt } else { Repairs::Spare },
        worth: if on(4) { Fec::WORTH } else { 1e-5 },
    };
    ChannelConfig {
        arq: on(0).then(|| Arq { transmissions: on(1).then(|| 1 + u32::from(more >> 6)) }),
        copies: on(0)
            .then_some(Copies {
                interval: Duration::from_millis(1 + u64::from(block >> 2)),
                max: block & 3,
                only_resent: more & 8 != 0,
            })
            .filter(|copies| copies.max > 0),
        resends_oldest_first: block & 0x20 != 0,
        fec: on(2).then_some(fec),
        order: [Order::Flow, Order::Channel, Order::Flow, Order::None][usize::from(switches >> 3 & 3)],
        priority: u8::from(on(5)),
        weight: 1 + u32::from(more & 3),
        limit: if on(6) { QueueLimit::Packets(20 + u32::from(more)) } else { QueueLimit::Unlimited },
        limit_counts_copies: block & 0x80 != 0,
        codel: (more & 0x30 == 0x30)
            .then_some(Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) }),
        // With retransmission each packet is looked for at the far end.
        filters_acks: !on(0) && block & 0x40 != 0,
        // Flows that take turns overtake each other, which the check of the order below does not know.
        queueing: Queueing::Fifo,
        // Bytes travel in whole packets.
        segments: 1,
    }
}

fn config(bytes: &mut Bytes, integrity: Integrity) -> LinkEndpointConfig {
    let (switches, tolerance) = (bytes.next(), bytes.next());
    let rate = |n: u8| Rate::from_bits_per_second(100_000 << (n & 7));
    let release = |n: u8| rate(n).filter(|_| n < 0x80).map_or(Release::Grouped, Release::Paced);
    let window = if switches & 1 == 0 { 2 + u32::from(bytes.next()) } else { SlacpConfig::MAX_WINDOW };
    let line = if switches & 2 == 0 { rate(switches >> 5) } else { None };
    let initial_rtt = Duration::from_millis(1 + u64::from(bytes.next()) * 4);
    let channels = (0..CHANNELS).map(|_| channel(bytes)).collect();
    // As between gateways.
    let is_steady = tolerance & 4 != 0;
    let pause = Duration::from_millis(u64::from(tolerance >> 4) * 100);
    let layer = SlacpConfig {
        rate_control: [RateControl::Provisioned, RateControl::Fixed, RateControl::Shared, RateControl::Fixed]
            [usize::from(tolerance & 1 | switches >> 3 & 2)],
        report_interval: Duration::from_millis(u64::from(tolerance >> 4) * 2),
        reordering: u64::from(tolerance & 0x0f),
        release: if switches & 4 == 0 { Release::AtOnce } else { release(bytes.next()) },
        window,
        patience: if is_steady { Duration::from_millis(500) } else { Duration::ZERO },
        probing: if is_steady { Probing::Steady(pause) } else { Probing::Doubling },
        urgent_share: (tolerance & 8 != 0).then_some(50),
        shortcuts: Shortcuts { hears_damage: switches & 8 != 0, ..Shortcuts::NONE },
        ..SlacpConfig::new(line, initial_rtt, channels)
    };
    let rules = (0..CHANNELS).map(|n| (Rule { dscp: Some(n), ..Rule::default() }, n)).collect();
    let compresses = tolerance & 2 != 0 && layer.channels[0].arq.is_some();
    LinkEndpointConfig { layer, rules, default_channel: 0, flows: None, max_packet: MAX_PACKET, compresses, integrity }
}

/// A packet that says its direction, channel, flow and number, and whose other bytes follow from these.
fn packet(side: usize, channel: u8, flow: u8, number: u16, len: u16) -> Vec<u8> {
    let (class, len) = (channel << 2, usize::from(len));
    let is_v6 = flow & 1 == 1;
    let header = if is_v6 { ipv6::HEADER } else { ipv4::HEADER };
    let mut packet = vec![0; len.max(header + 12)];
    let payload = packet.len() - header;
    let written = if is_v6 {
        let header = ipv6::Header::new([1; 16].into(), [2; 16].into(), 17);
        ipv6::emit(&ipv6::Header { traffic_class: class, ..header }, payload, &mut packet)
    } else {
        let header = ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 6);
        ipv4::emit(&ipv4::Header { tos: class, ..header }, payload, &mut packet)
    };
    assert_eq!(written, Ok(header));
    packet[header..header + 4].copy_from_slice(&[1, flow, side as u8, channel]);
    for (at, byte) in packet.iter_mut().enumerate().skip(header + 4) {
        *byte = (number as u8).wrapping_mul(7) ^ (at as u8).wrapping_mul(13);
    }
    packet[header + 8..header + 10].copy_from_slice(&number.to_be_bytes());
    // Headers that can be compressed, more often than not.
    if is_v6 {
        packet[header + 4..header + 6].copy_from_slice(&(payload as u16).to_be_bytes());
    } else if payload >= 20 {
        packet[header + 12..header + 14].copy_from_slice(&[5 << 4, 0x10]);
        packet[header + 18..header + 20].fill(number as u8 / 200);
    }
    packet
}

/// The packet, its channel and flow, and whether it has come out.
type Given = (Vec<u8>, u8, u8, bool);

struct World<'a> {
    ports: [LinkEndpoint; 2],
    now: Time,
    fates: Bytes<'a>,
    hostile: bool,
    integrity: Integrity,
    delay: Duration,
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    ticket: u64,
    /// By direction and number.
    given: [Vec<Given>; 2],
    /// The last number that came out, by direction, channel and flow.
    last: BTreeMap<(usize, u8, u8), u16>,
    orders: Vec<Order>,
    max_held: usize,
}

impl World<'_> {
    /// Polls a side until it waits.
    fn drain(&mut self, side: usize) -> Option<Time> {
        let mut out = [0; 512];
        // An end that never waits would never end here.
        for _ in 0..200_000 {
            let mut cx = Context::silent(self.now);
            match self.ports[side].poll(&mut cx, &mut out).expect("room for any frame") {
                Step::Wait(until) => {
                    self.max_held = self.max_held.max(self.ports[side].held());
                    return until;
                }
                Step::Do(Emitted::Packet(length)) => self.deliver(1 - side, &out[..length]),
                Step::Do(Emitted::Frame(length)) => self.pass(side, &out[..length]),
            }
        }
        panic!("an end does not come to rest");
    }

    fn deliver(&mut self, from: usize, packet: &[u8]) {
        if self.hostile {
            return;
        }
        let header = if packet[0] >> 4 == 6 { ipv6::HEADER } else { ipv4::HEADER };
        let number = u16::from_be_bytes([packet[header + 8], packet[header + 9]]);
        let (bytes, channel, flow, came) = &mut self.given[from][usize::from(number)];
        assert_eq!(packet, bytes, "whole");
        assert!(!*came, "once");
        *came = true;
        let line = match self.orders[usize::from(*channel)] {
            Order::None => return,
            Order::Flow => *flow,
            Order::Channel => 0,
        };
        let before = self.last.insert((from, *channel, line), number);
        assert!(before.is_none_or(|before| before < number), "{number} after {before:?}");
    }

    fn fly(&mut self, to: usize, late: Duration, frame: Vec<u8>) {
        self.ticket += 1;
        self.flying.insert((self.now + self.delay + late, self.ticket), (to, frame));
    }

    /// What a frame meets: a byte of the input says it.
    fn pass(&mut self, from: usize, frame: &[u8]) {
        let mut frame = frame.to_vec();
        let calm = self.fates.is_empty();
        let fate = self.fates.next();
        let step = Duration::from_millis(1 + u64::from(fate >> 4) * 3);
        let now = Duration::ZERO;
        match fate & 0x0f {
            _ if calm => self.fly(1 - from, now, frame),
            0..=3 => {}
            4 | 5 => self.fly(1 - from, step, frame),
            6 => {
                self.fly(1 - from, now, frame.clone());
                self.fly(1 - from, step.saturating_mul(20), frame);
            }
            7 => self.fly(1 - from, step.saturating_mul(40), frame),
            8 => {
                let at = usize::from(self.fates.next()) % frame.len();
                frame[at] ^= self.fates.next().max(1);
                self.fly(1 - from, now, frame);
            }
            9 => {
                frame.truncate(usize::from(self.fates.word()) % frame.len());
                self.fly(1 - from, now, frame);
            }
            10 if self.hostile => {
                let forged = self.forge();
                self.fly(1 - from, now, forged);
            }
            _ => self.fly(1 - from, now, frame),
        }
    }

    fn forge(&mut self) -> Vec<u8> {
        let bytes = &mut self.fates;
        let (kind, channel, len) = (bytes.next(), bytes.next() % (CHANNELS + 1), u32::from(bytes.next()));
        let (number, seq) = (bytes.number(), bytes.number());
        let back = |seq: u64, by: u64| seq - by.min(seq).min(65_535);
        let (frame, len) = match kind % 4 {
            0 => {
                let (behind, floor) = ((bytes.number() & 0xffff).min(seq) as u32, back(seq, bytes.number()));
                (Frame::Data { channel, number, seq, behind, floor, len }, len)
            }
            1 => {
                let (shape, floor) = (bytes.next(), bytes.number() & 0x1_ffff);
                let (count, index) = (1 + (shape & 0x7f), shape.wrapping_mul(31) & 0x7f);
                let floor = if kind & 0x80 != 0 { seq.saturating_sub(floor) } else { seq + floor };
                (Frame::Repair { channel, number, first: seq, count, index, floor, len }, len)
            }
            2 => (Frame::Sync { channel, number, floor: seq }, 0),
            _ => {
                let words = 1 + usize::from(channel % 3).min((number / 64) as usize);
                let mut bits: Vec<u64> =
                    (0..words).map(|_| bytes.number().wrapping_mul(0x0101_0101_0101_0101)).collect();
                if number < 64 * words as u64 {
                    let last = words - 1;
                    bits[last] &= u64::MAX >> (63 - (number - 64 * last as u64));
                }
                let delay = Duration::from_micros(bytes.number());
                (Frame::Report(Report { newest: number, delay, bits }), 0)
            }
        };
        let body: Vec<u8> = (0..len).map(|at| if kind & 0x40 != 0 { at as u8 } else { 0 }).collect();
        let mut out = vec![0; 600];
        let length =
            slacp::emit(&frame, u32::from(len as u8) << 24, &[&body], self.integrity, &mut out).expect("it has a form");
        out.truncate(length);
        out
    }

    /// Until nothing is left to do; answers whether that came.
    fn run(&mut self, mut plan: impl Iterator<Item = (Time, usize, Vec<u8>)>) -> bool {
        let mut next_packet = plan.next();
        for _ in 0..if self.hostile { HOSTILE_STEPS } else { STEPS } {
            let waits = [self.drain(0), self.drain(1)];
            let arrival = self.flying.keys().next().map(|(time, _)| *time);
            let entry = next_packet.as_ref().map(|(time, ..)| *time);
            let next = [waits[0], waits[1], arrival, entry].into_iter().flatten().min();
            let Some(next) = next else { return true };
            assert!(waits.into_iter().flatten().all(|wait| wait > self.now), "an instant that is past");
            self.now = next.max(self.now);
            let mut cx = Context::silent(self.now);
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= self.now
            {
                let (side, frame) = entry.remove();
                let _ = self.ports[side].receive(&mut cx, &frame);
            }
            while let Some((_, side, packet)) = next_packet.take_if(|(time, ..)| *time <= self.now) {
                self.ports[side].send(&mut cx, &packet).expect("short enough");
                next_packet = plan.next();
            }
        }
        false
    }
}

/// Settings, traffic, then a fate per frame.
pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let head = bytes.next();
    let hostile = head & 1 != 0;
    // Without a CRC a frame that is damaged on the way is the peer's word.
    let integrity = if head & 2 != 0 && hostile { Integrity::Below } else { Integrity::Crc };
    let config = config(&mut bytes, integrity);
    let count = 1 + bytes.word() % PACKETS;
    let (gap, mix, lengths) = (u64::from(bytes.next() & 0x1f), bytes.next(), bytes.word());
    let delay = Duration::from_millis(1 + u64::from(bytes.next()));
    let channels = &config.layer.channels;
    let one = |n: u16| {
        let draw = n.wrapping_mul(40_503).rotate_left(5) ^ u16::from(mix).wrapping_mul(257);
        // Most of it goes one way, so that reports come without data too.
        let side = usize::from(draw % 8 == 7);
        let (channel, flow) = ((draw >> 3) as u8 % CHANNELS, (draw >> 6) as u8 & mix & 3);
        let len = 52 + draw.wrapping_mul(lengths) % (MAX_PACKET - 51);
        (Time::ZERO + Duration::from_millis(gap * u64::from(n)), side, channel, flow, len)
    };
    let (mut given, mut plan) = ([Vec::new(), Vec::new()], Vec::new());
    for n in 0..count {
        let (time, side, channel, flow, len) = one(n);
        let packet = packet(side, channel, flow, given[side].len() as u16, len);
        given[side].push((packet.clone(), channel, flow, false));
        plan.push((time, side, packet));
    }
    let mut world = World {
        ports: [LinkEndpoint::new(&config), LinkEndpoint::new(&config)],
        now: Time::ZERO,
        fates: Bytes(&bytes.0[..bytes.0.len().min(STORM)]),
        hostile,
        integrity,
        delay,
        flying: BTreeMap::new(),
        ticket: 0,
        given,
        last: BTreeMap::new(),
        orders: channels.iter().map(|channel| channel.order).collect(),
        max_held: 0,
    };
    let ended = world.run(plan.into_iter());
    // Packets that wait or are out, twice over for an erasure code; behind them, per channel, what lies a sweep back,
    // and 64 blocks with at most a symbol per packet, which hostile frames can fill up.
    let blocks = 2 * 64 * usize::from(Fec::MAX_FRAMES);
    let bound = usize::from(CHANNELS) * (2 * (1024 + blocks) + 256) + 4 * usize::from(PACKETS);
    assert!(world.max_held <= bound, "{} held", world.max_held);
    if hostile {
        return;
    }
    let stats = || [0, 1].map(|side: usize| world.ports[side].layer_stats());
    assert!(ended, "does not come to rest at {:?}: {:?}", world.now, stats());
    for (side, given) in world.given.iter().enumerate() {
        let stats = world.ports[side].layer_stats();
        for (n, channel) in channels.iter().enumerate() {
            let of_channel = || given.iter().filter(|packet| usize::from(packet.1) == n);
            let came = of_channel().filter(|packet| packet.3).count() as u64;
            let sent = &stats.channels[n];
            let count = of_channel().count() as u64;
            // What headers are relative to goes by the default channel too.
            assert!(sent.packets == count || n == 0 && config.compresses && sent.packets > count);
            assert!(came <= sent.sent);
            if channel.arq.is_some_and(|arq| arq.transmissions.is_none()) {
                // Headers may be relative to what is forgotten by the time that the last repetition arrives.
                let missing = sent.dropped_full + sent.dropped_early + world.ports[1 - side].stats().unexpanded;
                let all = came + missing == count || config.compresses && came + missing > count;
                assert!(all, "channel {n} of side {side}: {channel:?} {sent:?}");
            }
        }
        assert_eq!(world.ports[side].stats().undecodable, 0);
        assert_eq!(world.ports[side].stats().unsaid, 0);
    }
}
