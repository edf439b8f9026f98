//! Two ports over a line that loses, in virtual time, with real bytes.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_engine::slacp::{Arq, ChannelConfig, Fec, Repairs};
use bentpipe_engine::stream::TimeNoise;
use bentpipe_engine::units::Rate;
use bentpipe_engine::wire::ipv4;
use sha2::{Digest, Sha256};

use super::*;

mod room;

/// Behind the cipher: symbols that were made from no packet, for the same block again and again.
#[test]
fn a_block_that_cannot_be_decoded_gets_no_more_symbols() {
    for count in [1u8, 3] {
        let mut port = LinkEndpoint::new(&config(ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL }));
        let (mut cx, mut out) = (Context::silent(Time::ZERO), [0; 2000]);
        for n in 0..300 {
            let index = (n % 100) as u8;
            let frame = Frame::Repair { channel: 0, number: n, first: 5, count, index, floor: 0, len: 8 };
            let length = slacp::emit(&frame, 0, &[&[0xff; 8]], Integrity::Crc, &mut out).expect("it fits");
            port.receive(&mut cx, &out[..length]).expect("a frame");
            while let Ok(Step::Do(_)) = port.poll(&mut cx, &mut out) {}
        }
        // All packets of the block are asked for, once.
        assert_eq!((port.stats().undecodable, port.held_bytes()), (count.into(), 0));
        assert_eq!(port.end().near().received, u64::from(count) - 1, "what is of no use is not reported");
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;

const CHANNEL: ChannelConfig = ChannelConfig { arq: None, ..ChannelConfig::reliable() };
const ARQ: Option<Arq> = Some(Arq { transmissions: None });
const FEC: Option<Fec> = Some(Fec {
    block: 10,
    first_block: None,
    interval: Duration::from_millis(40),
    max_overhead: 1.0,
    repairs: Repairs::Spare,
    worth: Fec::WORTH,
});

fn config(channel: ChannelConfig) -> LinkEndpointConfig {
    let rate = Rate::from_bits_per_second(8_000_000);
    let layer = SlacpConfig { window: 10_000, ..SlacpConfig::new(rate, MS(500), vec![channel]) };
    let rules = Vec::new();
    let max_packet = 1500;
    LinkEndpointConfig {
        layer,
        rules,
        default_channel: 0,
        flows: None,
        max_packet,
        compresses: false,
        integrity: Integrity::Crc,
    }
}

/// A UDP packet of a flow: its number, then bytes that follow from it.
fn packet(flow: u16, number: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len.max(32)];
    let header = ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 17);
    let payload = packet.len() - ipv4::HEADER;
    ipv4::emit(&header, payload, &mut packet).expect("it fits");
    packet[20..22].copy_from_slice(&flow.to_be_bytes());
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    for (at, byte) in packet.iter_mut().enumerate().skip(32) {
        *byte = (number.wrapping_mul(0x9e37_79b9) >> (at % 24)) as u8 ^ at as u8;
    }
    packet
}

fn number_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes(*packet[28..].first_chunk().expect("four bytes"))
}

/// Two ports, 250 ms apart; frames of the first are lost by chance.
struct Pair {
    ports: [LinkEndpoint; 2],
    now: Time,
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    ticket: u64,
    loss: f64,
    noise: TimeNoise,
    delivered: Vec<(Time, Vec<u8>)>,
    max_held: usize,
    /// Bytes of memory, at the receiver.
    max_bytes: u64,
}

impl Pair {
    fn new(config: &LinkEndpointConfig, loss: f64) -> Self {
        Pair {
            ports: [LinkEndpoint::new(config), LinkEndpoint::new(config)],
            now: Time::ZERO,
            flying: BTreeMap::new(),
            ticket: 0,
            loss,
            noise: TimeNoise::named(1, "line"),
            delivered: Vec::new(),
            max_held: 0,
            max_bytes: 0,
        }
    }

    fn drain(&mut self, side: usize) -> Option<Time> {
        let mut out = [0; 2000];
        loop {
            let mut cx = Context::silent(self.now);
            let step = self.ports[side].poll(&mut cx, &mut out).expect("room for any frame");
            match step {
                Step::Wait(until) => {
                    self.max_bytes = self.max_bytes.max(self.ports[1].held_bytes());
                    self.max_held = self.max_held.max(self.ports[side].held());
                    return until;
                }
                Step::Do(Emitted::Packet(length)) => {
                    assert_eq!(side, 1);
                    self.delivered.push((self.now, out[..length].to_vec()));
                }
                Step::Do(Emitted::Frame(length)) => {
                    self.ticket += 1;
                    if side == 1 || self.noise.at(self.ticket, 0) >= self.loss {
                        self.flying.insert((self.now + MS(250), self.ticket), (1 - side, out[..length].to_vec()));
                    }
                }
            }
        }
    }

    fn run(mut self, packets: &[(Time, Vec<u8>)], until: Time) -> Self {
        let mut packets: VecDeque<_> = packets.iter().collect();
        loop {
            let waits = [self.drain(0), self.drain(1)];
            let arrival = self.flying.keys().next().map(|(time, _)| *time);
            let next = [waits[0], waits[1], arrival, packets.front().map(|(time, _)| *time)];
            let Some(next) = next.into_iter().flatten().min().filter(|&next| next <= until) else { return self };
            assert!(next >= self.now, "an instant that is past would never end");
            self.now = next;
            let mut cx = Context::silent(self.now);
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= next
            {
                let (side, frame) = entry.remove();
                self.ports[side].receive(&mut cx, &frame).expect("a frame of ours");
            }
            while let Some((time, packet)) = packets.front()
                && *time <= next
            {
                packets.pop_front();
                self.ports[0].send(&mut cx, packet).expect("short enough");
            }
        }
    }

    /// Numbers in the order of delivery; each packet is compared byte by byte with what was given.
    fn whole(&self, packets: &[(Time, Vec<u8>)]) -> Vec<u32> {
        let check = |(_, packet): &(Time, Vec<u8>)| {
            let number = number_of(packet);
            assert_eq!(*packet, packets[number as usize].1, "byte by byte");
            number
        };
        self.delivered.iter().map(check).collect()
    }
}

/// Lengths that differ, odd ones among them; three flows.
fn traffic(count: u32) -> Vec<(Time, Vec<u8>)> {
    let one = |n: u32| (Time::ZERO + MS(2 * u64::from(n)), packet((n % 3) as u16, n, 40 + (n as usize * 37) % 1400));
    (0..count).map(one).collect()
}

fn in_order(numbers: &[u32]) -> bool {
    (0..3).all(|flow| numbers.iter().filter(|&&n| n % 3 == flow).is_sorted())
}

#[test]
fn retransmission_makes_it_whole() {
    let packets = traffic(3000);
    let pair = Pair::new(&config(ChannelConfig { arq: ARQ, ..CHANNEL }), 0.1).run(&packets, Time::ZERO + MS(60_000));
    let numbers = pair.whole(&packets);
    assert!(in_order(&numbers));
    // All of them, so the bytes of all, sorted, are the bytes that were given.
    let digest = |packets: &mut dyn Iterator<Item = &Vec<u8>>| {
        packets.fold(Sha256::new(), |sum, packet| sum.chain_update(packet)).finalize()
    };
    let mut sorted: Vec<_> = pair.delivered.iter().map(|(_, packet)| packet).collect();
    sorted.sort_by_key(|packet| number_of(packet));
    assert_eq!(digest(&mut sorted.into_iter()), digest(&mut packets.iter().map(|(_, packet)| packet)));
    assert!(pair.ports[0].layer_stats().channels[0].resent >= 250);
    assert_eq!((pair.ports[0].held(), pair.ports[1].held()), (0, 0), "nothing stays behind");
}

#[test]
fn repair_frames_spare_the_round_trip() {
    let packets = traffic(3000);
    let channel = ChannelConfig { fec: FEC, ..CHANNEL };
    let pair = Pair::new(&config(channel), 0.1).run(&packets, Time::ZERO + MS(60_000));
    let numbers = pair.whole(&packets);
    assert!(in_order(&numbers));
    let stats = pair.ports[1].layer_stats().channels[0];
    // A tenth of the data frames is lost; what is recovered was computed from symbols, and came out byte by byte.
    assert!(stats.recovered > 240, "{stats:?}");
    assert_eq!(numbers.len() as u64 + stats.skipped, 3000);
    assert_eq!(pair.ports[1].stats(), LinkEndpointStats::default());
    let late = |(time, packet): &(Time, Vec<u8>)| *time - packets[number_of(packet) as usize].0 > MS(750);
    assert!(!pair.delivered.iter().any(late), "no round trip");
    // Two sweeps' worth of what lies behind, and the blocks that wait.
    assert!(pair.max_held < 2 * (1024 + 64 * 10), "{}", pair.max_held);
}

#[test]
fn both_together() {
    let packets = traffic(3000);
    let channel = ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL };
    let pair = Pair::new(&config(channel), 0.2).run(&packets, Time::ZERO + MS(60_000));
    let numbers = pair.whole(&packets);
    assert!(in_order(&numbers) && numbers.len() == 3000);
    let stats = [0, 1].map(|side| pair.ports[side].layer_stats().channels[0]);
    assert!(stats[1].recovered > 500 && stats[0].resent > 0, "{stats:?}");
}

#[test]
fn without_treatment_nothing_is_made_good() {
    let packets = traffic(3000);
    let pair = Pair::new(&config(CHANNEL), 0.1).run(&packets, Time::ZERO + MS(60_000));
    let numbers = pair.whole(&packets);
    assert!(in_order(&numbers));
    // Binomial of 3000 and a tenth: 300 lost, four standard deviations are 66.
    assert!((2634..=2766).contains(&numbers.len()), "{}", numbers.len());
    assert!(pair.ports[0].held() == 0 && pair.max_held < 20, "{}", pair.max_held);
}

#[test]
fn rules_choose_the_channel() {
    let urgent = ChannelConfig { priority: 0, ..CHANNEL };
    let mut two = config(ChannelConfig { priority: 1, ..CHANNEL });
    two.layer.channels.push(urgent);
    two.rules = vec![(Rule { port: Some(2), ..Rule::default() }, 1)];
    // All at once: those of flow 2 go first.
    let packets: Vec<_> = traffic(30).into_iter().map(|(_, packet)| (Time::ZERO, packet)).collect();
    let numbers = Pair::new(&two, 0.0).run(&packets, Time::ZERO + MS(5000)).whole(&packets);
    assert!(numbers[..10].iter().all(|n| n % 3 == 2), "{numbers:?}");
    assert_eq!(numbers.len(), 30);
}

/// A segment of a bulk transfer: its number, then bytes that follow from it.
fn segment(flow: u16, number: u32, len: usize) -> Vec<u8> {
    let mut packet = packet(flow, number, len);
    let header = ipv4::Header {
        identification: number as u16,
        ..ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 6)
    };
    let payload = packet.len() - ipv4::HEADER;
    ipv4::emit(&header, payload, &mut packet).expect("it fits");
    packet[24..28].copy_from_slice(&(number * 1000).to_be_bytes());
    // Where the number of a datagram stands is an acknowledgement here.
    packet[32..40].copy_from_slice(&[5 << 4, 0x10, 1, 0, number as u8, 7, 0, 0]);
    packet
}

#[test]
fn headers_are_compressed_and_come_out_whole() {
    let repair = ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL };
    // A channel that loses what is lost, beside the one that headers are made known by.
    let mut two = LinkEndpointConfig { compresses: true, integrity: Integrity::Below, ..config(repair) };
    two.layer.channels.push(CHANNEL);
    two.rules = vec![(Rule { port: Some(2), ..Rule::default() }, 1)];
    let packets: Vec<_> = (0..3000u32)
        .map(|n| (Time::ZERO + Duration::from_micros(2000 * u64::from(n)), segment(n as u16 % 3, n, 1000)))
        .collect();
    for (loss, max) in [(0.0, 1.0), (0.2, 0.9)] {
        let pair = Pair::new(&two, loss).run(&packets, Time::ZERO + MS(60_000));
        let numbers = pair.whole(&packets);
        let there = |flow| numbers.iter().filter(|n| *n % 3 == flow).count();
        assert_eq!((there(0), there(1)), (1000, 1000));
        assert!((there(2) as f64) <= 1000.0 * max && there(2) > 700, "{}", there(2));
        let [sent, heard] = [0, 1].map(|side| pair.ports[side].stats());
        assert_eq!(heard.unexpanded, 0);
        // Of 40 bytes 15 stay, but before the first base of a flow is known: half a second of three, or a repetition more.
        assert!(sent.headers_saved > 3000 * 25 * 2 / 3, "{}", sent.headers_saved);
        // A thousandth of all frames are announcements.
        let packets = pair.ports[0].layer_stats().channels[0].packets;
        assert!(packets > 2000 && packets < 2020, "{packets}");
    }
}

#[test]
fn what_is_no_ip_packet_is_refused_where_headers_are_compressed() {
    let channel = ChannelConfig { arq: ARQ, ..CHANNEL };
    let mut port = LinkEndpoint::new(&LinkEndpointConfig { compresses: true, ..config(channel) });
    let mut cx = Context::silent(Time::ZERO);
    for bytes in [&[][..], &[0x10, 0, 0], &[0x20; 30]] {
        assert!(matches!(port.send(&mut cx, bytes), Err(EmitError::NotInProtocol(_))));
    }
    // A form of a base that was never sent.
    let mut bytes = [0; 100];
    let form = [0x20, 0, 0, 0, 1, 2];
    let frame = Frame::Data { channel: 0, number: 0, seq: 0, behind: 0, floor: 0, len: form.len() as u32 };
    let length = slacp::emit(&frame, 0, &[&form], Integrity::Crc, &mut bytes).expect("it fits");
    assert_eq!(port.receive(&mut cx, &bytes[..length]), Ok(()));
    while let Ok(Step::Do(emitted)) = port.poll(&mut cx, &mut [0; 2000]) {
        assert!(matches!(emitted, Emitted::Frame(_)), "{emitted:?}");
    }
    assert_eq!(port.stats().unexpanded, 1);
}

/// A repair frame that the machine refuses leaves nothing behind: its symbol would take the place of the genuine one.
#[test]
fn symbols_of_refused_frames_are_not_kept() {
    let config = config(ChannelConfig { fec: FEC, ..CHANNEL });
    let packets: Vec<_> = traffic(10).into_iter().map(|(_, packet)| packet).collect();
    let mut sender = LinkEndpoint::new(&config);
    let (mut out, mut frames) = ([0; 2000], Vec::new());
    let mut now = Time::ZERO;
    packets.iter().for_each(|packet| {
        let mut cx = Context::silent(now);
        sender.send(&mut cx, packet).expect("short enough");
    });
    while now < Time::ZERO + MS(200) {
        let mut cx = Context::silent(now);
        match sender.poll(&mut cx, &mut out).expect("room for any frame") {
            Step::Wait(until) => now = until.unwrap_or(Time::ZERO + MS(200)),
            Step::Do(Emitted::Frame(length)) => frames.push(out[..length].to_vec()),
            Step::Do(Emitted::Packet(_)) => unreachable!("nobody sends"),
        }
    }
    let fresh = LinkEndpoint::new(&config);
    let read =
        |frame: &Vec<u8>| slacp::parse(frame, &fresh.end().near(), Integrity::Crc).expect("a frame of ours").frame;
    let is_repair = |wanted: u8| move |frame: &Frame| matches!(frame, Frame::Repair { index, .. } if *index == wanted);
    let of = |index: u8| frames.iter().find(|frame| is_repair(index)(&read(frame))).expect("two repairs").clone();
    let (first_repair, second_repair) = (of(0), of(1));
    let Frame::Repair { channel, number, first, count, floor, len, .. } = read(&first_repair) else { unreachable!() };
    let Some(heard) = read(&second_repair).number() else { unreachable!() };
    for (lie, number, count) in [("another count", number + 100, count - 1), ("a number that was heard", heard, count)]
    {
        let mut receiver = LinkEndpoint::new(&config);
        let mut cx = Context::silent(now);
        // Nor the word that nothing more comes, which is sent behind the repairs.
        let comes = |frame: &Frame| matches!(frame, Frame::Data { seq, .. } if ![3, 7].contains(seq));
        for frame in frames.iter().filter(|frame| comes(&read(frame))).chain([&second_repair]) {
            receiver.receive(&mut cx, frame).expect("a frame of ours");
        }
        let forged = Frame::Repair { channel, number, first, count, index: 0, floor, len };
        let length = slacp::emit(&forged, 0, &[&vec![0x5a; len as usize]], Integrity::Crc, &mut out).expect("it fits");
        receiver.receive(&mut cx, &out[..length]).expect("it has the form of a frame");
        receiver.receive(&mut cx, &first_repair).expect("a frame of ours");
        let mut delivered = Vec::new();
        while let Step::Do(emitted) = receiver.poll(&mut cx, &mut out).expect("room for any frame") {
            if let Emitted::Packet(length) = emitted {
                delivered.push(out[..length].to_vec());
            }
        }
        delivered.sort_by_key(|packet| number_of(packet));
        assert!(
            delivered == packets,
            "{lie}: {:?}",
            delivered.iter().map(|packet| number_of(packet)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn what_is_refused_is_counted() {
    let mut port = LinkEndpoint::new(&config(ChannelConfig { fec: FEC, ..CHANNEL }));
    let mut cx = Context::silent(Time::ZERO);
    assert_eq!(port.send(&mut cx, &[0; 1501]), Err(EmitError::TooLong(1501)));
    assert_eq!(port.poll(&mut cx, &mut [0; 100]), Err(EmitError::NoRoom { needed: 1529, have: 100 }));
    let mut written = |frame: &Frame, body: &[u8]| {
        let mut bytes = vec![0; 3000];
        let length = slacp::emit(frame, 0, &[body], Integrity::Crc, &mut bytes).expect("it fits");
        port.receive(&mut cx, &bytes[..length])
    };
    let data = |len| Frame::Data { channel: 0, number: 0, seq: 0, behind: 0, floor: 0, len };
    let repair = |number, len| Frame::Repair { channel: 0, number, first: 0, count: 2, index: 0, floor: 0, len };
    assert_eq!(written(&data(1501), &[0; 1501]), Err(WireError::PayloadLength(1501).into()));
    assert_eq!(written(&repair(1, 7), &[0; 7]), Err(WireError::PayloadLength(7).into()), "odd");
    assert_eq!(written(&repair(2, 8), &[0; 8]), Ok(()));
    assert_eq!(written(&repair(3, 10), &[0; 10]), Err(WireError::PayloadLength(10).into()), "of another length");
    assert_eq!(port.receive(&mut cx, b"nonsense"), Err(SlacpError::Version(6)));
    assert_eq!(port.stats().refused, 4);
}

#[test]
fn delay_variation_is_that_of_rfc_3550() {
    let mut variation = Variation::default();
    let at = |micros: u64| Time::ZERO + Duration::from_micros(micros);
    // Transit times 100, 260, 260: J goes 0, 10, 10 - 10/16. The clocks need not agree, and wrap.
    variation.note(at(100), 0);
    variation.note(at(1260), 1000);
    assert_eq!(variation.scaled, 160);
    variation.note(at(2260), 2000);
    assert_eq!(variation.scaled, 150);
    variation.note(at((1 << 32) + 1), u32::MAX - 258);
    assert_eq!(variation.scaled, 150 - 9);
}

/// A transmission that is heard again, later, says nothing about the path; nor does one that is far ahead of the window.
#[test]
fn refused_frames_do_not_count_for_the_delay_variation() {
    let mut port = LinkEndpoint::new(&config(CHANNEL));
    let mut bring = |number, seq, millis| {
        let mut out = [0; 100];
        let frame = Frame::Data { channel: 0, number, seq, behind: 0, floor: 0, len: 4 };
        let length = slacp::emit(&frame, 0, &[b"data"], Integrity::Crc, &mut out).expect("there is room");
        let mut cx = Context::silent(Time::ZERO + MS(millis));
        port.receive(&mut cx, &out[..length]).expect("a frame");
        port.delay_variation()
    };
    assert_eq!(bring(0, 0, 10), Duration::ZERO);
    assert_eq!(bring(0, 0, 90), Duration::ZERO, "heard before");
    assert_eq!(bring(1, 20_000, 90), Duration::ZERO, "too early");
    assert_eq!(bring(2, 1, 26), MS(1), "a sixteenth of 16 ms");
}
