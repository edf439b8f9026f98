//! Bytes worked out by hand, refused segments, and round trips.

use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

const V4: Addresses = Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 1), destination: Ipv4Addr::new(192, 0, 2, 2) };
const V6: Addresses = Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::UNSPECIFIED };
const PORTS: Ports = Ports { source: 0x1234, destination: 0x5678 };
const NEAR: Near = Near { rcv_nxt: 1, snd_una: 1 };

/// Both ends of a connection whose SYNs have passed.
fn ends(addresses: Addresses, iss: u32, irs: u32) -> (Translation, Translation) {
    let ours = Translation { irs: Some(Numbering::from_isn(irs)), ..Translation::new(addresses, PORTS, iss) };
    let peers = Translation::new(addresses.reversed(), PORTS.reversed(), irs);
    (ours, Translation { irs: Some(Numbering::from_isn(iss)), ..peers })
}

fn sacked(blocks: &[(u64, u64)], ack: u64) -> Segment {
    let mut segment = Segment { ack, window: 0x0102_0304, ..Segment::new(Flags::ACK) };
    for &(start, end) in blocks {
        assert!(segment.sack.push(ack, start, end));
    }
    segment
}

#[test]
fn a_segment_byte_by_byte() {
    let (ours, peer) = ends(V4, 0xffff_fff0, 100);
    let segment = Segment { seq: 0x20, len: 3, ..sacked(&[(1001, 2001)], 1) };
    let mut out = [0xaa; 64];
    let length = ours.emit(&segment, &[b"ab", b"c"], &mut out).expect("it fits");
    let expected = [
        0x12, 0x34, 0x56, 0x78, // ports
        0x00, 0x00, 0x00, 0x10, // 0xfffffff0 + 0x20
        0x00, 0x00, 0x00, 0x65, // 100 + 1
        0x01, 0x02, 0x03, 0x04, // window
        0x18, 0x10, // version 1, 8 words; ACK
    ];
    assert_eq!(out[..18], expected);
    let option = [0x05, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x04, 0x4d, 0x00, 0x00, 0x08, 0x35];
    assert_eq!(out[20..length], [&option[..], b"abc"].concat());
    // By hand: the pseudo header (192.0.2.1, 192.0.2.2, 253, 35) c000+0201+c000+0202+00fd+0023 = 18523, the header
    // 1234+5678+0010+0065+0102+0304+1810 = 8537, the option 050c+044d+0835 = 118e, the data 6162+6300 = c462; in all
    // 2e04a, folded e04c.
    let sum = u16::from_be_bytes([out[18], out[19]]);
    assert_eq!(sum, !0xe04c_u16);
    assert_eq!(peer.parse(&out[..length], Near { rcv_nxt: 0x20, snd_una: 1 }), Ok((segment, 32..35)));
}

#[test]
fn a_syn_teaches_the_numbering() {
    let mut syn = Segment { window: 1 << 30, ..Segment::new(Flags::SYN) };
    syn.syn.mss = Some(1000);
    let client = Translation::new(V4, PORTS, 77);
    let mut server = Translation::new(V4.reversed(), PORTS.reversed(), 1);
    let mut out = [0; MAX_HEADER];
    let length = client.emit(&syn, &[], &mut out).expect("it fits");
    assert_eq!((length, out[16], out[17]), (24, 0x16, 0x02));
    assert_eq!(out[20..24], [2, 4, 3, 0xe8]);
    assert_eq!((server.parse(&out[..length], Near::default()), server.irs), (Ok((syn, 24..24)), None));
    server.synchronize(&out[..length]).expect("a segment");
    assert_eq!(server.irs, Some(Numbering::from_isn(77)));
}

/// A segment with one byte changed and the checksum made right again.
fn with(at: usize, byte: u8, of: &Segment, payload: &[u8]) -> Result<(Segment, Range<usize>), StpError> {
    let (ours, peer) = ends(V4, 0, 0);
    let mut out = [0; 100];
    let length = ours.emit(of, &[payload], &mut out).expect("it fits");
    out[at] = byte;
    out[18..20].fill(0);
    let sum = V4.pseudo_header(PROTOCOL, length).bytes(&out[..length]).finish();
    out[18..20].copy_from_slice(&sum.to_be_bytes());
    peer.parse(&out[..length], NEAR)
}

#[test]
fn each_field_that_lies_is_named() {
    let data = Segment { seq: 1, ack: 1, len: 2, ..Segment::new(Flags::ACK | Flags::PSH) };
    assert!(with(12, 0, &data, b"ab").is_ok());
    assert_eq!(with(16, 0x25, &data, b"ab"), Err(StpError::Version(2)));
    assert_eq!(with(16, 0x14, &data, b"ab"), Err(WireError::HeaderLength(16).into()));
    assert_eq!(with(16, 0x1f, &data, b"ab"), Err(WireError::HeaderLength(60).into()));
    assert_eq!(with(16, 0x16, &data, b"ab"), Err(WireError::Truncated { needed: 24, have: 22 }.into()));
    assert_eq!(with(17, 0x38, &data, b"ab"), Err(StpError::Flags(0x38)));
    assert_eq!(with(17, 0x00, &data, b"ab"), Err(StpError::Flags(0)));
    assert_eq!(with(17, 0x13, &data, b"ab"), Err(StpError::Flags(0x13)));
    assert_eq!(with(17, 0x04, &data, b"ab"), Err(StpError::Payload(2)));
    let bare = Segment { len: 0, flags: Flags::ACK, ..data };
    assert_eq!(with(17, 0x18, &bare, b""), Err(StpError::Payload(0)));
    assert_eq!(with(17, 0x04, &bare, b""), Err(StpError::Acknowledgement(1)));
    // A SYN needs its option, and no other segment may have it.
    assert_eq!(with(17, 0x12, &bare, b""), Err(StpError::Option { kind: 0 }));
    let blocks = sacked(&[(11, 21)], 1);
    assert!(with(12, 0, &blocks, b"").is_ok());
    assert_eq!(with(20, 2, &blocks, b""), Err(StpError::Option { kind: 2 }));
    assert_eq!(with(20, 9, &blocks, b""), Err(StpError::Option { kind: 9 }));
    assert_eq!(with(21, 4, &blocks, b""), Err(WireError::OptionLength { kind: 5, length: 4 }.into()));
    assert_eq!(with(23, 1, &blocks, b""), Err(StpError::Option { kind: 5 }));
    assert_eq!(with(31, 11, &blocks, b""), Err(StpError::Block { start: 11, end: 11 }));
    let (ours, peer) = ends(V4, 0, 0);
    let mut out = [0; 100];
    let length = ours.emit(&blocks, &[], &mut out).expect("it fits");
    out[13] ^= 1;
    assert_eq!(peer.parse(&out[..length], NEAR), Err(WireError::Checksum.into()));
    assert_eq!(peer.parse(&out[..19], NEAR), Err(WireError::Truncated { needed: 20, have: 19 }.into()));
}

#[test]
fn what_stp_cannot_say_is_not_written() {
    let (ours, _) = ends(V4, 0, 0);
    let refuses = |segment: Segment| matches!(ours.emit(&segment, &[], &mut [0; 64]), Err(EmitError::NotInProtocol(_)));
    let scaled = SynOptions { mss: Some(1000), window_scale: Some(7), sack_permitted: false };
    assert!(refuses(Segment { syn: scaled, ..Segment::new(Flags::SYN) }));
    assert!(refuses(Segment::new(Flags::SYN)));
    assert!(refuses(Segment { flags: Flags::RST, ..sacked(&[(11, 21)], 1) }));
    assert_eq!(ours.emit(&sacked(&[(11, 21)], 1), &[], &mut [0; 31]), Err(EmitError::NoRoom { needed: 32, have: 31 }));
    assert_eq!(
        ours.emit(&sacked(&[], 1), &[b"x"], &mut [0; 64]),
        Err(EmitError::PayloadLength { expected: 0, have: 1 })
    );
}

/// A segment that STP can say, with its payload.
fn segment() -> impl Strategy<Value = (Segment, Vec<u8>)> {
    let numbers = (1u64 << 32..1 << 34, 1u64 << 32..1 << 34, any::<u32>());
    let blocks = prop::collection::vec((-100_000i64..1 << 30, 1u64..100_000), 0..=4);
    (numbers, blocks, 0..6u8, any::<[bool; 2]>(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(
        |((seq, ack, window), blocks, what, [fin, push], payload)| {
            let mut segment = Segment { seq, window, ..Segment::new(Flags::NONE) };
            segment.flags = match what {
                0 => Flags::SYN,
                1 => Flags::SYN | Flags::ACK,
                2 => Flags::RST,
                3 => Flags::RST | Flags::ACK,
                _ => Flags::ACK,
            };
            if segment.flags.has(Flags::SYN) {
                segment.syn.mss = Some(window as u16);
            }
            if segment.flags.has(Flags::ACK) {
                segment.ack = ack;
            }
            if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN) {
                for (start, length) in blocks {
                    let start = ack.wrapping_add_signed(start);
                    segment.sack.push(ack, start, start + length);
                }
            }
            let payload = if what < 4 { Vec::new() } else { payload };
            if what >= 4 {
                segment.len = payload.len() as u16;
                segment.flags = segment.flags | if fin { Flags::FIN } else { Flags::NONE };
                segment.flags = segment.flags | if push && segment.len > 0 { Flags::PSH } else { Flags::NONE };
            }
            (segment, payload)
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read((segment, payload) in segment(), v6: bool, iss: u32, irs: u32, cut in 0usize..300, flip: usize) {
        let (ours, peer) = ends(if v6 { V6 } else { V4 }, iss, irs);
        let (a, b) = payload.split_at(cut.min(payload.len()));
        let mut out = [0; 400];
        let length = ours.emit(&segment, &[a, b], &mut out).expect("it fits");
        prop_assert_eq!(length, HEADER + segment.options_len() as usize + payload.len());
        let near = Near { rcv_nxt: segment.seq, snd_una: segment.ack };
        let header = length - payload.len();
        prop_assert_eq!(peer.parse(&out[..length], near), Ok((segment, header..length)));
        prop_assert_eq!(&out[header..length], &payload[..]);
        // One wrong bit is always found: by the checksum if by nothing else.
        let bit = flip % (8 * length);
        out[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(peer.parse(&out[..length], near).is_err());
    }

    /// Any bytes give a segment that is written again to the bit, or an error.
    #[test]
    fn there_is_one_form(mut bytes in prop::collection::vec(any::<u8>(), 0..80), flags in 0..32u8, kind in 0..6u8, words in 5..15u8) {
        let (ours, peer) = ends(V4, 7, 9);
        // Random bytes hardly ever get past the first checks: help them.
        if bytes.len() >= HEADER {
            (bytes[16], bytes[17]) = (1 << 4 | words, flags);
            if let [option, length, ..] = &mut bytes[HEADER..] {
                (*option, *length) = (kind, (words - 5) * 4);
            }
            bytes[..4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
            bytes[18..20].fill(0);
            let sum = V4.pseudo_header(PROTOCOL, bytes.len()).bytes(&bytes).finish();
            bytes[18..20].copy_from_slice(&sum.to_be_bytes());
        }
        if let Ok((segment, payload)) = peer.parse(&bytes, NEAR) {
            let mut out = [0; 100];
            let length = ours.emit(&segment, &[&bytes[payload]], &mut out).expect("what was read can be written");
            prop_assert_eq!(&out[..length], &bytes[..]);
        }
    }
}
