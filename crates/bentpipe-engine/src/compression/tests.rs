mod bases;

use proptest::prelude::*;

use super::*;
use crate::wire::checksum::Checksum;
use crate::wire::{ipv4, ipv6};

/// What changes from packet to packet of a connection.
#[derive(Clone, Debug)]
struct Segment {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    times: Option<[u32; 2]>,
    /// Words of 32 bits.
    rest: Vec<u8>,
    tos: u8,
    identification: u16,
    payload: Vec<u8>,
}

fn ip(is_v4: bool, protocol: u8, tos: u8, identification: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40 + payload.len()];
    let at = if is_v4 {
        let header = ipv4::Header {
            tos,
            identification,
            ..ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), protocol)
        };
        ipv4::emit(&header, payload.len(), &mut packet)
    } else {
        let header = ipv6::Header { traffic_class: tos, ..ipv6::Header::new([1; 16].into(), [2; 16].into(), protocol) };
        ipv6::emit(&header, payload.len(), &mut packet)
    };
    let at = at.expect("it fits");
    packet.truncate(at + payload.len());
    packet[at..].copy_from_slice(payload);
    packet
}

fn tcp(is_v4: bool, port: u16, segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&80u16.to_be_bytes());
    bytes.extend_from_slice(&segment.seq.to_be_bytes());
    bytes.extend_from_slice(&segment.ack.to_be_bytes());
    let options = segment.rest.len() + if segment.times.is_some() { 12 } else { 0 };
    bytes.extend_from_slice(&[(20 + options as u8) << 2, segment.flags]);
    bytes.extend_from_slice(&segment.window.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    if let Some(times) = segment.times {
        bytes.extend_from_slice(&[1, 1, 8, 10]);
        times.iter().for_each(|time| bytes.extend_from_slice(&time.to_be_bytes()));
    }
    bytes.extend_from_slice(&segment.rest);
    bytes.extend_from_slice(&segment.payload);
    let sum = Checksum::new().bytes(&bytes).finish();
    bytes[16..18].copy_from_slice(&sum.to_be_bytes());
    ip(is_v4, 6, segment.tos, segment.identification, &bytes)
}

fn udp(is_v4: bool, port: u16, identification: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&53u16.to_be_bytes());
    bytes.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&[0x12, 0x34]);
    bytes.extend_from_slice(payload);
    ip(is_v4, 17, 0, identification, &bytes)
}

fn plain(payload: usize) -> Segment {
    Segment {
        seq: 1000,
        ack: 5000,
        flags: 0x10,
        window: 500,
        times: Some([7, 9]),
        rest: Vec::new(),
        tos: 0,
        identification: 0,
        payload: vec![7; payload],
    }
}

/// Both ends, and what lies between them.
#[derive(Default)]
struct Ends {
    compressor: Compressor,
    decompressor: Decompressor,
    form: Vec<u8>,
}

impl Ends {
    /// Carries a packet, announcements at once; how long its form was.
    fn carry(&mut self, flow: u64, packet: &[u8]) -> usize {
        if let Some(Announcement { base, message }) = self.compressor.compress(flow, packet, &mut self.form) {
            self.decompressor.learn(&message).expect("a base");
            assert_eq!(self.decompressor.expand(&message, &mut [0; 2000]), Ok(None));
            self.compressor.verdict(base, true);
        }
        self.check(packet);
        self.form.len()
    }

    fn check(&self, packet: &[u8]) {
        let mut out = [0; 2000];
        let length = self.decompressor.expand(&self.form, &mut out).expect("it is known").expect("a packet");
        assert_eq!(&out[..length], packet);
    }

    /// Until the flow has a base.
    fn open(&mut self, flow: u64, packet: &[u8]) {
        for _ in 0..=BEFORE_BASE {
            assert_eq!(self.carry(flow, packet), packet.len());
        }
        assert!(self.carry(flow, packet) < packet.len());
    }
}

#[test]
fn what_a_bulk_transfer_saves() {
    for (is_v4, headers) in [(true, 52), (false, 72)] {
        let mut ends = Ends::default();
        ends.open(1, &tcp(is_v4, 4000, &plain(1000)));
        let mut next = Segment { seq: 1_001_000, times: Some([600, 590]), identification: 500, ..plain(1000) };
        let length = ends.carry(1, &tcp(is_v4, 4000, &next));
        // Name, codes, 3 and 2 + 2 bytes of numbers, identification, checksum.
        assert_eq!(length, 1000 + 3 + 1 + 7 + if is_v4 { 2 } else { 0 } + 2, "instead of {headers}");
        next.flags = 0x18;
        assert_eq!(ends.carry(1, &tcp(is_v4, 4000, &next)), length + 1);
    }
    let mut ends = Ends::default();
    ends.open(1, &udp(true, 4000, 0, &[1; 20]));
    // A voice packet of 60 bytes becomes one of 37: name, identification, checksum.
    assert_eq!(ends.carry(1, &udp(true, 4000, 3, &[2; 32])), 32 + 7);
}

#[test]
fn more_flows_than_contexts() {
    let mut ends = Ends::default();
    let packet = |flow: u64, step: u32| {
        let segment = Segment { seq: step * 100, ..plain(100) };
        tcp(true, flow as u16, &segment)
    };
    let flows = CONTEXTS as u64 + 200;
    let busy = packet(flows, 0);
    ends.open(flows, &busy);
    let mut whole = 0;
    for step in 0..2 * BEFORE_BASE {
        for flow in 0..flows {
            ends.carry(flow, &packet(flow, step));
            whole += u32::from(ends.carry(flows, &busy) == busy.len());
        }
    }
    // One that is always in use keeps its context, or loses it once: when all were in use, and the hand began with it.
    assert!(whole <= BEFORE_BASE + 1, "{whole}");
}

#[test]
fn what_is_not_regular_passes_as_it_is() {
    let regular = tcp(true, 4000, &plain(50));
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = regular.clone();
        change(&mut packet);
        packet
    };
    let fix = |packet: &mut Vec<u8>| {
        packet[10..12].fill(0);
        let sum = Checksum::new().bytes(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    };
    let fragment = |field: u16| {
        with(&|packet| {
            packet[6..8].copy_from_slice(&field.to_be_bytes());
            fix(packet);
        })
    };
    let odd = [
        ("a wrong checksum of IP", with(&|packet| packet[10] ^= 1)),
        ("a first fragment", fragment(0x2000)),
        ("a later fragment", fragment(1)),
        ("a fragment in the upper half", fragment(0x1000)),
        (
            // The sum is 0, so the checksum of IP is 0 or all ones, and we write 0.
            "a checksum of IP with all ones",
            with(&|packet| {
                fix(packet);
                packet.copy_within(10..12, 4);
                packet[10..12].fill(0xff);
                assert_eq!(Checksum::new().bytes(&packet[..20]).finish(), 0);
            }),
        ),
        ("bytes behind the packet", with(&|packet| packet.push(0))),
        (
            "another protocol",
            with(&|packet| {
                packet[9] = 1;
                fix(packet);
            }),
        ),
        (
            "a data offset beyond the packet",
            with(&|packet| {
                packet.truncate(45);
                packet[3] = 45;
                packet[32] = 0xf0;
                fix(packet);
            }),
        ),
    ];
    for (what, packet) in odd {
        // Also if the flow has nothing else.
        for opens in [true, false] {
            let mut ends = Ends::default();
            if opens {
                ends.open(1, &regular);
            }
            for _ in 0..2 * BEFORE_BASE {
                assert_eq!(ends.carry(1, &packet), packet.len(), "{what}");
            }
        }
    }
}

#[test]
fn a_changed_constant_is_not_lost() {
    let mut ends = Ends::default();
    ends.open(1, &tcp(true, 4000, &plain(50)));
    // Other ports under the same number of a flow, another time to live, urgent data, no timestamps.
    let mut urgent = tcp(true, 4000, &plain(50));
    urgent[38] = 9;
    let mut far = tcp(true, 4000, &plain(50));
    far[8] -= 1;
    far[10..12].fill(0);
    let sum = Checksum::new().bytes(&far[..20]).finish();
    far[10..12].copy_from_slice(&sum.to_be_bytes());
    for packet in [tcp(true, 4001, &plain(50)), tcp(true, 4000, &Segment { times: None, ..plain(50) }), urgent, far] {
        ends.carry(1, &packet);
    }
}

prop_compose! {
    fn segment()(
        seq in prop_oneof![1000u32..3000, any::<u32>()], ack in prop_oneof![5000u32..90_000, any::<u32>()],
        flags in prop_oneof![Just(0x10u8), any::<u8>()], window in prop_oneof![Just(500u16), any::<u16>()],
        times in prop_oneof![Just(None), any::<[u16; 2]>().prop_map(|times| Some(times.map(u32::from))), any::<Option<[u32; 2]>>()],
        rest in prop_oneof![Just(Vec::new()), (0usize..7).prop_flat_map(|words| prop::collection::vec(any::<u8>(), 4 * words))],
        tos in prop_oneof![Just(0u8), any::<u8>()], identification: u16,
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) -> Segment {
        Segment { seq, ack, flags, window, times, rest, tos, identification, payload }
    }
}

proptest! {
    /// For any packets, and announcements that are lost, late or duplicated: the output equals the input.
    #[test]
    fn what_is_expanded_is_what_was_compressed(
        is_v4: bool,
        steps in prop::collection::vec((0u64..3, segment(), any::<bool>(), 0u8..8), 1..120),
    ) {
        let mut ends = Ends::default();
        let mut under_way: Vec<(Announcement, bool)> = Vec::new();
        for (flow, segment, is_udp, luck) in steps {
            let port = 4000 + flow as u16;
            let packet = if is_udp {
                udp(is_v4, port, segment.identification, &segment.payload)
            } else {
                tcp(is_v4, port, &segment)
            };
            let announced = ends.compressor.compress(flow * 2 + u64::from(is_udp), &packet, &mut ends.form);
            prop_assert!(ends.form.len() <= packet.len());
            ends.check(&packet);
            under_way.extend(announced.map(|announcement| (announcement, luck > 0)));
            // Arrival, then the verdict on it.
            if luck > 2 && let Some((announcement, arrives)) = under_way.pop() {
                if arrives {
                    ends.decompressor.learn(&announcement.message).expect("a base");
                }
                ends.compressor.verdict(announcement.base, arrives);
            }
        }
    }

    #[test]
    fn expanding_is_total(
        bases in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..4),
        slot in 0u16..2, bits in 0u8..16, kind in 1u8..8, mut form in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut ends = Ends::default();
        ends.open(1, &tcp(true, 4000, &plain(0)));
        ends.open(2, &udp(false, 4000, 0, &[]));
        for base in bases {
            let _ = ends.decompressor.learn(&base);
        }
        let _ = ends.decompressor.expand(&form, &mut [0; 60]);
        if form.len() >= NAME {
            form[..NAME].copy_from_slice(&name(kind, bits, slot, 0));
            let mut out = [0; 300];
            if let Ok(Some(length)) = ends.decompressor.expand(&form, &mut out) {
                prop_assert!(length <= 300);
            }
        }
    }
}

/// A peer's forms that no compressor writes: the other protocol's, options that end within a word or beyond 60 bytes.
#[test]
fn forms_that_make_no_packet_are_refused() {
    let mut ends = Ends::default();
    ends.open(1, &tcp(true, 4000, &Segment { times: None, ..plain(0) }));
    ends.open(2, &udp(true, 4000, 0, &[]));
    for (kind, slot) in [(kind::UDP, 0), (kind::TCP, 1)] {
        let form = [&name(kind, 0, slot, 0)[..], &[0; 5]].concat();
        assert_eq!(ends.decompressor.expand(&form, &mut [0; 100]), Err(ExpandError::Malformed));
    }
    // Of UDP with a checksum: flags, a window, and no options, which only TCP has.
    for (bits, fields) in [(4, &[0; 3][..]), (2, &[0; 4]), (1, &[2, 0, 0, 0])] {
        let form = [&name(kind::UDP, bits, 1, 0)[..], fields].concat();
        assert_eq!(ends.decompressor.expand(&form, &mut [0; 100]), Err(ExpandError::Malformed), "{bits}");
    }
    for length in 0..=44 {
        // Codes, more: options, their length, the options, a checksum.
        let form = [&name(kind::TCP, 1, 0, 0)[..], &[0, 2, length], &vec![1; length.into()], &[0; 2]].concat();
        let expected = if length % 4 == 0 && length <= 40 {
            Ok(Some(40 + usize::from(length)))
        } else {
            Err(ExpandError::Malformed)
        };
        assert_eq!(ends.decompressor.expand(&form, &mut [0; 100]), expected, "{length}");
    }
}
