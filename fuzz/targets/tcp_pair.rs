//! Two connections and an adversary between them, who follows the bytes of the input.
//!
//! Everything passes the wire format. The adversary loses, delays, repeats and damages; damage is found by the
//! checksum, so bytes must arrive whole all the same. In the other mode he mends the checksum: then he may end the
//! connection or spoil it, but no machine may panic, stand still, or wait for the past.

#[path = "bytes.rs"]
mod bytes;
#[path = "../../crates/bentpipe-engine/tests/it/pair/mod.rs"]
mod pair;

use bentpipe_engine::tcp::variant::{CongestionControl, Growth, VARIANTS};
use bentpipe_engine::tcp::{AckPolicy, Connection, Daass, EcnUse, Flags, Role, Segment, TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ecn::Ecn;
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp::{Near, Translation};
use bytes::Bytes;
use pair::{Action, Channel, Pair, Reading};

/// What each packet meets: a byte of the input says what happens to it.
struct Adversary<'a> {
    fates: Bytes<'a>,
    delay: Duration,
    /// Whether he mends the checksum of what he has damaged.
    forges: bool,
    wire: [Translation; 2],
}

/// A storm is over after this many packets even if the input is not.
const STORM: usize = 4000;

impl Adversary<'_> {
    fn damage(&mut self, from: usize, bytes: &mut [u8]) {
        let at = usize::from(self.fates.next()) % bytes.len();
        bytes[at] ^= self.fates.next().max(1);
        if self.forges {
            bytes[16..18].fill(0);
            let sum = self.wire[from].addresses.pseudo_header(ip::TCP, bytes.len()).bytes(bytes).finish();
            bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

impl Channel for Adversary<'_> {
    fn pass(&mut self, _: Time, from: usize, segment: &Segment) -> Vec<(Duration, Segment)> {
        let calm = self.fates.is_empty();
        let fate = self.fates.next();
        let mut out = vec![0; 60 + usize::from(segment.len)];
        let payload = vec![0; usize::from(segment.len)];
        let length = self.wire[from].emit(segment, &[&payload], &mut out).expect("a segment of ours can be written");
        out.truncate(length);
        let damaged = fate & 0x0f == 1;
        if damaged {
            self.damage(from, &mut out);
        }
        // Both ends are where this segment says, give or take what is under way.
        let near = Near { rcv_nxt: segment.seq, snd_una: segment.ack };
        let to = &mut self.wire[1 - from];
        // The ECN field is in the IP header. A queue marks it, and some paths clear it.
        let field = match fate & 0x0f {
            9 if segment.ecn.is_capable() => Ecn::Ce,
            10 => Ecn::NotEct,
            _ => segment.ecn,
        };
        let parsed = to.parse(&out, near).map(|(read, payload)| (Segment { ecn: field, ..read }, payload));
        if let Ok((read, _)) = &parsed
            && read.flags.has(Flags::SYN)
            && to.irs.is_none()
            && (!read.flags.has(Flags::ACK) || read.ack == 1)
        {
            to.synchronize(&out, read).expect("it was read");
        }
        let arrived = match parsed {
            Ok((read, _)) if damaged => {
                assert!(self.forges, "damage went through the checksum");
                read
            }
            Ok((read, _)) => {
                // A forged SYN may have taught an end wrong numbers, and before a SYN it knows none; else the wire
                // changes nothing.
                let knows = self.wire[1 - from].irs.is_some();
                let whole = Segment { ecn: segment.ecn, ..read } == *segment;
                assert!(self.forges || !knows || whole, "{segment:?} became {read:?}");
                read
            }
            Err(error) => {
                assert!(damaged || self.forges, "{error} in {segment:?}");
                return Vec::new();
            }
        };
        let late = |steps: u8| self.delay + Duration::from_millis(u64::from(steps) * 7);
        match fate & 0x0f {
            _ if calm => vec![(self.delay, arrived)],
            2..=4 => Vec::new(),
            5 | 6 => vec![(late(fate >> 4), arrived)],
            7 => vec![(late(0), arrived), (late(fate >> 4), arrived)],
            8 => vec![(late(16 * (fate >> 4)), arrived)],
            _ => vec![(self.delay, arrived)],
        }
    }
}

fn config(bytes: &mut Bytes, variant: Variant) -> TcpConfig {
    let (switches, more) = (bytes.next(), bytes.next());
    let on = |bit: u8| switches & (1 << bit) != 0;
    let growth = if on(0) { Growth::PerAck } else { variant.growth };
    let max_burst = on(1).then(|| 1 + u32::from(more & 3));
    TcpConfig {
        variant: Variant { growth, max_burst, ..variant },
        mss: 30 + bytes.word() % 2000,
        receive_buffer: 1 + u32::from(bytes.word()) * if on(2) { 16 } else { 1 },
        ack: AckPolicy {
            daass: if on(3) { Daass::SlowStart } else { Daass::Off },
            ..if on(4) { AckPolicy::DELAYED } else { AckPolicy::IMMEDIATE }
        },
        timestamps: on(5),
        window_scaling: on(6),
        nagle: on(7),
        sack_blocks: 1 + (more >> 2) % 4,
        window_clamp: (more & 0x40 != 0).then(|| 1 + u32::from(more & 0x0f)),
        dsack: more & 0x80 == 0,
        // Without it, Prague is Reno.
        ecn: if variant.congestion == CongestionControl::Prague { EcnUse::Accurate } else { EcnUse::Off },
        // Longer than any storm: a FIN that comes again finds somebody.
        time_wait: Duration::from_secs(100_000),
        ..TcpConfig::default()
    }
}

fn translations() -> [Translation; 2] {
    let parse = |text: &str| text.parse().expect("an address");
    let there = Addresses::new(parse("192.0.2.1"), parse("192.0.2.2")).expect("of one version");
    let ports = Ports { source: 1, destination: 2 };
    // Initial numbers near the end of the circle, so that it is crossed.
    let wire = |addresses, ports, iss| Translation::new(addresses, ports, iss);
    [wire(there, ports, 0xffff_ff00), wire(there.reversed(), ports.reversed(), 0xffff_8000)]
}

/// The row of the table that the first byte of an input chooses, by all bits but the two for the adversary.
pub(crate) fn row(head: u8) -> usize {
    const { assert!(VARIANTS.len() <= 1 << 6, "each row has a byte") };
    usize::from(head & 0x3f) % VARIANTS.len()
}

/// Settings, a plan, then a fate per packet.
pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let head = bytes.next();
    let variant = VARIANTS[row(head)].2;
    let forges = head & 0x40 != 0;
    let aborts = head & 0x80 != 0;
    let mut configs = [0, 1].map(|_| config(&mut bytes, variant));
    for config in &mut configs {
        // Smaller than a segment is a buffer that nobody sells.
        config.receive_buffer = config.receive_buffer.max(u32::from(config.mss));
    }
    let reading = [0, 1].map(|_| match bytes.next() {
        0..0x80 => Reading::Greedy,
        n => Reading::Slow { bytes: 200 + u64::from(n & 0x3f) * 40, every: Duration::from_millis(50 + u64::from(n)) },
    });
    let at = |step: u16| Time::ZERO + Duration::from_millis(u64::from(step % 8192));
    let mut plan = Vec::new();
    for _ in 0..bytes.next() % 8 {
        let (time, length) = (bytes.word(), bytes.word());
        plan.push((at(time), usize::from(time >> 15), Action::Write(1 + u64::from(length % 20_000))));
    }
    for n in 0..2 {
        plan.push((at(bytes.word()), n, Action::Close));
    }
    if aborts {
        let time = bytes.word();
        plan.push((at(time), usize::from(time >> 15), Action::Abort));
    }
    let delay = Duration::from_millis(1 + u64::from(bytes.next()) * 2);
    let fates = Bytes(&bytes.0[..bytes.0.len().min(STORM)]);
    let channel = Adversary { fates, delay, forges, wire: translations() };
    let [active, passive] = configs;
    let connections = [Connection::new(active, Role::Active), Connection::new(passive, Role::Passive)];
    let mut pair = Pair::new(connections, reading, plan, channel);
    pair.forged = forges;
    // Steps, not time: each is a packet or a timer, and there are few of them in an hour of waiting.
    for _ in 0..200_000 {
        if !pair.step() {
            break;
        }
    }
    if forges || aborts {
        return;
    }
    // Who has given up has said why; who has not has everything.
    let gave_up = pair.ends.iter().any(|end| matches!(end.ended, Some(Err(_))));
    if gave_up {
        return;
    }
    assert!(pair.has_ended(), "does not end: {}", pair.describe());
    for n in 0..2 {
        let (end, peer) = (&pair.ends[n], &pair.ends[1 - n]);
        assert_eq!(end.connection.received(), peer.written, "{}", pair.describe());
    }
}
