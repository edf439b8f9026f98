//! Two STP connections and an adversary between them, who follows the bytes of the input: real bytes, stored and compared.
//!
//! He loses, delays, repeats, cuts short and damages. A damaged byte is found by the checksums, a packet that was cut by
//! IP's length (STP's header has none of its own, and 16 bits of a sum miss one cut in 65536), so what arrives is whole, in
//! order and once, or an end says why not.

#[path = "../../crates/bentpipe-engine/tests/it/pair/mod.rs"]
mod pair;

use bentpipe_engine::stp::{Arming, Connection, Segment, StpConfig};
use bentpipe_engine::tcp::{Abort, Flags, Role};
use bentpipe_engine::units::{Bytes, Duration, Rate, Time};
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::ipv4::HEADER as IP_HEADER;
use bentpipe_engine::wire::stp::{MAX_HEADER, PROTOCOL, Translation};
use bentpipe_engine::wire::tcp::Near;
use pair::{Action, Channel, Pair, Reading};

/// The input, byte by byte; zeros when it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.next(), self.next()])
    }
}

/// The byte of an end's stream at a sequence number: none is like its neighbours.
fn byte_of(from: usize, seq: u64) -> u8 {
    let x = (seq ^ (from as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8
}

/// What each packet meets: a byte of the input says what happens to it.
struct Adversary<'a> {
    fates: Input<'a>,
    delay: Duration,
    wire: [Translation; 2],
}

/// A storm is over after this many packets even if the input is not.
const STORM: usize = 4000;

impl Channel for Adversary<'_> {
    fn pass(&mut self, _: Time, from: usize, segment: &Segment) -> Vec<(Duration, Segment)> {
        let calm = self.fates.0.is_empty();
        let fate = self.fates.next();
        let payload: Vec<_> = (0..u64::from(segment.len)).map(|n| byte_of(from, segment.seq + n)).collect();
        let mut bytes = vec![0; IP_HEADER + MAX_HEADER + payload.len()];
        let (a, b) = payload.split_at(payload.len() / 2);
        let wire = &self.wire[from];
        let (ip_header, rest) = bytes.split_at_mut(IP_HEADER);
        let length = wire.emit(segment, &[a, b], rest).expect("a segment of ours can be written");
        ip::emit(&wire.addresses, PROTOCOL, length, ip_header).expect("its packet, too");
        let length = IP_HEADER + length;
        bytes.truncate(length);
        let spoilt = match fate & 0x0f {
            // One byte: whatever it becomes, the sum of the words changes, that of IP's header or that of the segment.
            1 => {
                let at = usize::from(self.fates.word()) % bytes.len();
                bytes[at] ^= self.fates.next().max(1);
                true
            }
            2 => {
                bytes.truncate(usize::from(self.fates.word()) % length);
                true
            }
            _ => false,
        };
        // Both ends are where this segment says, give or take what is under way.
        let near = Near { rcv_nxt: segment.seq, snd_una: segment.ack };
        let to = &mut self.wire[1 - from];
        let packet = ip::parse(&bytes).map_err(|error| error.to_string());
        let parsed = packet.and_then(|packet| {
            // A damaged version may leave a packet of IPv6, which has no checksum, but other addresses.
            if packet.protocol != PROTOCOL || packet.addresses != to.addresses.reversed() {
                return Err(format!("for somebody else: {packet:?}"));
            }
            let segment = &bytes[packet.payload.clone()];
            let (read, payload) = to.parse(segment, near).map_err(|error| error.to_string())?;
            if read.flags.has(Flags::SYN) && to.irs.is_none() && (!read.flags.has(Flags::ACK) || read.ack == 1) {
                to.synchronize(segment).expect("it was read");
            }
            Ok((read, &bytes[packet.payload][payload]))
        });
        let arrived = match parsed {
            Err(error) => {
                assert!(spoilt, "{error} in {segment:?}");
                return Vec::new();
            }
            Ok((read, arrived)) => {
                assert!(!spoilt, "damage went through the checksums: {segment:?} became {read:?}");
                let knows = to.irs.is_some();
                assert!(!knows || read == *segment, "{segment:?} became {read:?}");
                assert_eq!(arrived, &payload[..], "payload");
                read
            }
        };
        let late = |steps: u8| self.delay + Duration::from_millis(u64::from(steps) * 7);
        match fate & 0x0f {
            _ if calm => vec![(self.delay, arrived)],
            3 | 4 => Vec::new(),
            5 | 6 => vec![(late(fate >> 4), arrived)],
            7 => vec![(late(0), arrived), (late(fate >> 4), arrived)],
            8 => vec![(late(16 * (fate >> 4)), arrived)],
            _ => vec![(self.delay, arrived)],
        }
    }
}

fn config(input: &mut Input, delay: Duration) -> StpConfig {
    let switches = input.next();
    let on = |bit: u8| switches & (1 << bit) != 0;
    let rate = Rate::from_bits_per_second(10_000 + u64::from(input.word()) * 1000).expect("not zero");
    let mss = 28 + input.word() % 1500;
    StpConfig {
        polls: None,
        mss,
        arming: if on(0) { Arming::HandOver } else { Arming::Departure },
        window: on(1).then(|| Bytes::new(1 + u64::from(input.word()) * 2)),
        // At, above or below the round trip: a timer that is too short costs copies, and in the end the connection.
        rto: Duration::from_millis(1 + u64::from(input.next()) * 8),
        max_retransmissions: if on(2) { 6 } else { input.next() },
        receive_buffer: if on(3) { StpConfig::MAX_BUFFER } else { u32::from(mss) + u32::from(input.word()) },
        // Longer than any storm: a FIN that comes again finds somebody.
        time_wait: Duration::from_secs(100_000),
        ..StpConfig::for_path(rate, delay.saturating_mul(2))
    }
}

fn translations() -> [Translation; 2] {
    let parse = |text: &str| text.parse().expect("an address");
    let there = Addresses::new(parse("192.0.2.1"), parse("192.0.2.2")).expect("of one version");
    let ports = Ports { source: 1, destination: 2 };
    // Initial numbers near the end of the circle, so that it is crossed.
    let ours = Translation::new(there, ports, 0xffff_ff00);
    [ours, Translation::new(there.reversed(), ports.reversed(), 0xffff_8000)]
}

/// Settings, a plan, then a fate per packet.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let delay = Duration::from_millis(1 + u64::from(input.next()) * 2);
    let configs = [0, 1].map(|_| config(&mut input, delay));
    let reading = [0, 1].map(|_| match input.next() {
        0..0x80 => Reading::Greedy,
        n => Reading::Slow { bytes: 200 + u64::from(n & 0x3f) * 40, every: Duration::from_millis(50 + u64::from(n)) },
    });
    let at = |step: u16| Time::ZERO + Duration::from_millis(u64::from(step % 8192));
    let mut plan = Vec::new();
    for _ in 0..input.next() % 8 {
        let (time, length) = (input.word(), input.word());
        plan.push((at(time), usize::from(time >> 15), Action::Write(1 + u64::from(length % 20_000))));
    }
    for n in 0..2 {
        plan.push((at(input.word()), n, Action::Close));
    }
    let fates = Input(&input.0[..input.0.len().min(STORM)]);
    let [active, passive] = configs;
    let connections = [Connection::new(active, Role::Active), Connection::new(passive, Role::Passive)];
    let mut pair = Pair::new(connections, reading, plan, Adversary { fates, delay, wire: translations() });
    // Steps, not time: each is a packet or a timer, and there are few of them in an hour of waiting. But timers of a
    // millisecond under segments of 28 bytes can use all of them up within seconds that prove nothing.
    let mut steps = 0;
    while steps < 200_000 && pair.step() {
        steps += 1;
    }
    if steps == 200_000 && pair.now < Time::ZERO + Duration::from_secs(600) {
        return;
    }
    // Who has given up has said why; who has not has everything.
    let why = |abort| matches!(abort, Abort::RetriesExhausted | Abort::Reset | Abort::Refused);
    let mut gave_up = pair.ends.iter().filter_map(|end| end.ended.and_then(Result::err)).peekable();
    if gave_up.peek().is_some() {
        assert!(gave_up.all(why), "{}", pair.describe());
        return;
    }
    assert!(pair.has_ended(), "does not end: {}", pair.describe());
    for n in 0..2 {
        let (end, peer) = (&pair.ends[n], &pair.ends[1 - n]);
        assert_eq!(end.connection.received(), peer.written, "{}", pair.describe());
        assert_eq!(end.connection.acknowledged(), end.written, "{}", pair.describe());
    }
}
