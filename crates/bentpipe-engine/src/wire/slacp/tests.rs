//! Bytes worked out by hand, refused frames, and round trips.

use proptest::prelude::*;

use super::*;

/// An end that expects these numbers, with eight channels.
#[derive(Clone, Copy, Debug)]
struct Expects {
    heard: u64,
    sent: u64,
    packet: u64,
}

impl Expects {
    fn near(self) -> Near<impl Fn(u8) -> Option<u64>> {
        Near { received: self.heard, next: self.sent, packet: move |channel| (channel < 8).then_some(self.packet) }
    }
}

const START: Expects = Expects { heard: 0, sent: 0, packet: 0 };
/// Beyond the first circle of 32-bit numbers.
const LATER: Expects = Expects { heard: 0x5_0000_0010, sent: 0x6_0000_0000, packet: 0x7_0000_0004 };

fn written(frame: &Frame, time: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xaa; frame.wire_len() as usize + 3];
    let length = emit(frame, time, &[body], Integrity::Crc, &mut out).expect("it fits");
    assert_eq!(length, frame.wire_len() as usize);
    assert_eq!(out.split_off(length), [0xaa; 3], "no byte more");
    out
}

fn sealed(mut text: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&text);
    text.extend(sum.to_be_bytes());
    text
}

#[test]
fn the_crc_is_that_of_ethernet() {
    // The check value of CRC-32/ISO-HDLC.
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
}

#[test]
fn frames_byte_by_byte() {
    let data =
        Frame::Data { channel: 2, number: 0x5_0000_0011, seq: 0x7_0000_0004, behind: 3, floor: 0x6_ffff_fffe, len: 3 };
    let expected = [
        0x10, 2, 0, 3, // version 1, data; channel; bytes of the packet
        0, 0, 0, 0x11, // transmission
        1, 2, 3, 4, // clock
        0, 0, 0, 4, // packet
        0, 3, 0, 6, // predecessor, floor
        b'a', b'b', b'c',
    ];
    assert_eq!(written(&data, 0x0102_0304, b"abc"), sealed(expected.to_vec()));
    let floor = 0x6_ffff_ffff;
    let repair =
        Frame::Repair { channel: 2, number: 0x5_0000_0011, first: 0x7_0000_0004, count: 128, index: 5, floor, len: 2 };
    let expected = [
        0x11,
        2,
        0,
        2, // repair
        0,
        0,
        0,
        0x11,
        1,
        2,
        3,
        4,
        0,
        0,
        0,
        4, // transmission, clock, first packet
        0b1111_1110,
        0b0001_0111,
        0xff,
        0xfb, // 127 = count - 1, 5, -5 in 18 bits
        b'a',
        b'b',
    ];
    assert_eq!(written(&repair, 0x0102_0304, b"ab"), sealed(expected.to_vec()));
    let sync = Frame::Sync { channel: 2, number: 0x5_0000_0011, floor: 0x7_0000_0004 };
    let expected = [0x12, 2, 0, 0, 0, 0x11, 1, 2, 3, 4, 0, 0, 0, 4];
    assert_eq!(written(&sync, 0x0102_0304, b""), sealed(expected.to_vec()));
    let report =
        Frame::Report(Report { newest: 0x5_ffff_fffe, delay: Duration::from_micros(5), bits: vec![3, 1 << 63] });
    let mut expected = vec![0x13, 0, 0, 16, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 0, 0, 0, 5];
    expected.extend([0, 0, 0, 0, 0, 0, 0, 3, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(written(&report, 0x0102_0304, b""), sealed(expected));
    for (frame, body) in [(data, &b"abc"[..]), (repair, b"ab"), (sync, b""), (report, b"")] {
        let bytes = written(&frame, 77, body);
        let parsed = parse(&bytes, &LATER.near(), Integrity::Crc).expect("it was written");
        assert_eq!((&parsed.frame, parsed.time, &bytes[parsed.body]), (&frame, 77, body));
    }
}

#[test]
fn each_lie_is_named() {
    let data = sealed(vec![0x10, 2, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 3, 0, 4, b'a']);
    assert!(parse(&data, &START.near(), Integrity::Crc).is_ok());
    let with = |at: usize, byte: u8| {
        let mut text = data[..data.len() - CRC_LEN].to_vec();
        text[at] = byte;
        parse(&sealed(text), &START.near(), Integrity::Crc).map(|parsed| parsed.frame)
    };
    assert_eq!(with(0, 0x20), Err(SlacpError::Version(2)));
    assert_eq!(with(0, 0x14), Err(SlacpError::Type(4)));
    assert_eq!(with(0, 0x13), Err(SlacpError::Channel(2)), "a report has none");
    assert_eq!(with(0, 0x12), Err(SlacpError::Length { said: 0, have: 7 }), "a sync has no body");
    assert_eq!(with(1, 8), Err(SlacpError::Channel(8)));
    assert_eq!(with(3, 0), Err(SlacpError::Length { said: 0, have: 1 }));
    assert_eq!(with(3, 2), Err(SlacpError::Length { said: 2, have: 1 }));
    assert_eq!(with(4, 0xff), Err(SlacpError::BelowFirst), "the transmission");
    assert_eq!(with(12, 0xff), Err(SlacpError::BelowFirst), "the packet");
    assert_eq!(with(17, 5), Err(SlacpError::BelowFirst), "the predecessor");
    assert_eq!(with(19, 5), Err(SlacpError::BelowFirst), "the floor");
    let mut damaged = data.clone();
    damaged[20] = b'b';
    assert_eq!(parse(&damaged, &START.near(), Integrity::Crc), Err(WireError::Checksum.into()));
    assert_eq!(
        parse(&data[..17], &START.near(), Integrity::Crc),
        Err(WireError::Truncated { needed: 18, have: 17 }.into())
    );
    assert_eq!(
        parse(&data[..1], &START.near(), Integrity::Crc),
        Err(WireError::Truncated { needed: 2, have: 1 }.into())
    );
}

#[test]
fn reports_reach_no_further_than_the_first_transmission() {
    let report = |newest: u8, words: &[u64]| {
        let mut text = vec![0x13, 0, 0, words.len() as u8 * 8, 0, 0, 0, newest, 0, 0, 0, 0, 0, 0, 0, 0];
        words.iter().for_each(|word| text.extend(word.to_be_bytes()));
        parse(&sealed(text), &START.near(), Integrity::Crc).map(|parsed| parsed.frame)
    };
    assert!(report(5, &[0b11_1111]).is_ok());
    assert_eq!(report(5, &[0b100_0000]), Err(SlacpError::BelowFirst));
    assert!(report(64, &[0, 1]).is_ok() && report(127, &[0, 1 << 63]).is_ok());
    assert_eq!(report(64, &[0, 2]), Err(SlacpError::BelowFirst));
    assert_eq!(report(63, &[0, 0]), Err(SlacpError::BelowFirst));
    assert_eq!(report(63, &[]), Err(SlacpError::Length { said: 0, have: 0 }));
    let none = Frame::Report(Report { newest: 5, delay: Duration::ZERO, bits: Vec::new() });
    assert!(matches!(emit(&none, 0, &[], Integrity::Crc, &mut [0; 64]), Err(EmitError::NotInProtocol(_))));
}

#[test]
fn what_has_no_place_is_not_written() {
    let data = |seq, behind, floor| Frame::Data { channel: 0, number: 0, seq, behind, floor, len: 1 };
    let repair =
        |first, floor, count, index| Frame::Repair { channel: 0, number: 0, first, count, index, floor, len: 1 };
    let mut out = [0; 64];
    let mut emit = |frame: &Frame, body: &[u8]| emit(frame, 0, &[body], Integrity::Crc, &mut out);
    assert!(emit(&data(70_000, 65_535, 70_000 - 65_535), b"a").is_ok());
    for frame in [data(70_000, 65_536, 70_000), data(70_000, 0, 70_000 - 65_536), data(5, 0, 6)] {
        assert!(matches!(emit(&frame, b"a"), Err(EmitError::NotInProtocol(_))), "{frame:?}");
    }
    assert!(emit(&repair(200_000, 200_000 + 131_071, 1, 127), b"a").is_ok());
    assert!(emit(&repair(200_000, 200_000 - 131_072, 128, 0), b"a").is_ok());
    let far = [repair(200_000, 200_000 + 131_072, 1, 0), repair(200_000, 200_000 - 131_073, 1, 0)];
    for frame in far.iter().chain(&[repair(0, 0, 0, 0), repair(0, 0, 129, 0), repair(0, 0, 1, 128)]) {
        assert!(matches!(emit(frame, b"a"), Err(EmitError::NotInProtocol(_))), "{frame:?}");
    }
    assert_eq!(emit(&data(0, 0, 0), b"ab"), Err(EmitError::PayloadLength { expected: 1, have: 2 }));
    assert_eq!(
        super::emit(&data(0, 0, 0), 0, &[b"a"], Integrity::Crc, &mut [0; 24]),
        Err(EmitError::NoRoom { needed: 25, have: 24 })
    );
    let long = Frame::Data { channel: 0, number: 0, seq: 0, behind: 0, floor: 0, len: 65_536 };
    assert_eq!(
        super::emit(&long, 0, &[&[0; 65_536]], Integrity::Crc, &mut [0; 66_000]),
        Err(EmitError::TooLong(65_536))
    );
}

prop_compose! {
    fn numbers()(
        channel in 0u8..8, number in 0u64..1 << 40, seq in 1u64 << 18..1 << 40, below in 0u64..65_536,
        above in 0u64..131_072, behind in 0u32..65_536, len in 0u32..200,
    ) -> (u8, u64, u64, u64, u64, u32, u32) {
        (channel, number, seq, below, above, behind, len)
    }
}

prop_compose! {
    /// A frame and an end that expects about its numbers.
    fn frames()(
        kind in 0..4, (channel, number, seq, below, above, behind, len) in numbers(), count in 1u8..=128, index in 0u8..128,
        bits in prop::collection::vec(any::<u64>(), 1..=MAX_WORDS), delay: u32, near in -(1i64 << 30)..1 << 30,
    ) -> (Frame, Expects) {
        let frame = match kind {
            0 => Frame::Data { channel, number, seq, behind, floor: seq - below, len },
            1 if behind % 2 == 0 => Frame::Repair { channel, number, first: seq, count, index, floor: seq - below, len },
            1 => Frame::Repair { channel, number, first: seq, count, index, floor: seq + above, len },
            2 => Frame::Sync { channel, number, floor: seq },
            _ => Frame::Report(Report { newest: seq, delay: Duration::from_micros(delay.into()), bits }),
        };
        let near = |number: u64| number.saturating_add_signed(near);
        (frame, Expects { heard: near(number), sent: near(seq), packet: near(seq) })
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read((frame, near) in frames(), time: u32, fill: u8) {
        let body = match frame {
            Frame::Data { len, .. } | Frame::Repair { len, .. } => vec![fill; len as usize],
            _ => Vec::new(),
        };
        let bytes = written(&frame, time, &body);
        let parsed = parse(&bytes, &near.near(), Integrity::Crc).expect("it was written");
        prop_assert_eq!(&parsed.frame, &frame);
        prop_assert_eq!(parsed.time, time);
        prop_assert_eq!(&bytes[parsed.body], &body[..]);
    }

    #[test]
    fn a_flipped_bit_is_found((frame, near) in frames(), at: prop::sample::Index, bit in 0..8) {
        let body = match frame {
            Frame::Data { len, .. } | Frame::Repair { len, .. } => vec![0x5a; len as usize],
            _ => Vec::new(),
        };
        let mut bytes = written(&frame, 1, &body);
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        let error = parse(&bytes, &near.near(), Integrity::Crc).expect_err("it is damaged");
        prop_assert!(matches!(error, SlacpError::Version(_) | SlacpError::Wire(WireError::Checksum)), "{}", error);
        bytes[at] ^= 1u8 << bit;
        bytes.truncate(at);
        prop_assert!(parse(&bytes, &near.near(), Integrity::Crc).is_err(), "it is cut short");
    }

    /// Each string is a frame, which is written again to the bit, or an error; with the CRC made right too.
    #[test]
    fn there_is_one_form(mut text in prop::collection::vec(any::<u8>(), 0..400), kind in 0u8..5, fits: bool, heard: u32) {
        let near = Expects { heard: heard.into(), sent: heard.into(), packet: heard.into() };
        let _ = parse(&text, &near.near(), Integrity::Crc);
        if text.len() > REPORT {
            text[0] = 0x10 | kind;
            if fits {
                text[1] &= 7;
                let header = if kind == kind::REPORT { REPORT } else { HEADER };
                let length = (text.len().saturating_sub(header) as u16).to_be_bytes();
                text[2..4].copy_from_slice(&length);
            }
            if kind == kind::REPORT {
                text[1] = 0;
            }
        }
        let bytes = sealed(text);
        if let Ok(parsed) = parse(&bytes, &near.near(), Integrity::Crc) {
            prop_assert_eq!(written(&parsed.frame, parsed.time, &bytes[parsed.body.clone()]), bytes);
        }
    }
}
