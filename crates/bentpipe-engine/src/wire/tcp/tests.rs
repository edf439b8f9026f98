//! Packets of a real stack, properties, and the wrap of the 32-bit numbers.

use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::wire::ip;

/// Linux 6.18 to Linux 6.18 over a veth pair without offloads, `tcpdump -xx`, link-layer headers cut off.
mod linux {
    // 192.0.2.1.53580 > 192.0.2.2.7000: Flags [S], seq 2800444574, win 64240,
    //   options [mss 1460,sackOK,TS val 3698256929 ecr 0,nop,wscale 10], length 0
    pub(super) const SYN: &str = "\
        4500003c26ec400040068fccc0000201c0000202d14c1b58a6eb649e00000000a002faf008490000020405b40402080adc6eec21\
        000000000103030a";
    // [S.], seq 3888071050, ack 2800444575, win 65160, options [mss 1460,sackOK,TS ..,nop,wscale 10]
    pub(super) const SYN_ACK: &str = "\
        4500003c000040004006b6b8c0000202c00002011b58d14ce7bf418aa6eb649fa012fe887cf10000020405b40402080ac725973e\
        dc6eec210103030a";
    // [.], ack 1, win 63, options [nop,nop,TS ..]
    pub(super) const ACK: &str = "\
        4500003426ed400040068fd3c0000201c0000202d14c1b58a6eb649fe7bf418b8010003faa0a00000101080adc6eec21c725973e";
    // [P.], seq 1:5, ack 1, "ping"
    pub(super) const PING: &str = "\
        4500003826ee400040068fcec0000201c0000202d14c1b58a6eb649fe7bf418b8018003fcb2d00000101080adc6eec21c725973e\
        70696e67";
    // [P.], seq 1:6, ack 5, "pong!"
    pub(super) const PONG: &str = "\
        45000039091b40004006ada0c0000202c00002011b58d14ce7bf418ba6eb64a380180040aa2100000101080ac725973edc6eec21\
        706f6e6721";
    // [.], ack 2901, win 75, options [nop,nop,TS ..,nop,nop,sack 3 {17381:20005}{8693:15933}{4349:7245}]
    pub(super) const SACK_3: &str = "\
        45000050092240004006ad82c0000202c00002011b58d14ce7bf4190a6eb6ff3f010004bc3aa00000101080ac725973edc6eec21\
        0101051aa6eba883a6ebb2c3a6eb8693a6eba2dba6eb759ba6eb80eb";
    // [F.], seq 20005, ack 6, win 63
    pub(super) const FIN: &str = "\
        450000342702400040068fbec0000201c0000202d14c1b58a6ebb2c3e7bf41908011003f5be000000101080adc6eec21c725973e";
    // Without timestamps: [S], seq 162507497, options [mss 1460,nop,nop,sackOK,nop,wscale 10]
    pub(super) const PLAIN_SYN: &str = "\
        450000347709400040063fb7c0000201c0000202d14e1b5809afaae9000000008002faf04eda0000020405b4010104020103030a";
    // [S.], seq 770135911, ack 162507498
    pub(super) const PLAIN_SYN_ACK: &str = "\
        45000034000040004006b6c0c0000202c00002011b58d14e2de7576709afaaea8012faf0c97a0000020405b4010104020103030a";
    // [.], seq 6, ack 2925, win 72, options [nop,nop,sack 1 {4385:5845}]
    pub(super) const PLAIN_SACK: &str = "\
        4500003432de4000400683e2c0000202c00002011b58d14e2de7576d09afb65680100048324900000101050a09afbc0a09afc1be";
    // 2001:db8::1.59326 > 2001:db8::2.7000: [S], seq 427957441, options [mss 1440,nop,nop,sackOK,nop,wscale 10]
    pub(super) const V6_SYN: &str = "\
        600b0f290020064020010db800000000000000000000000120010db8000000000000000000000002e7be1b5819821cc100000000\
        8002fd20dd320000020405a0010104020103030a";
    // [S.], seq 2237021791, ack 427957442
    pub(super) const V6_SYN_ACK: &str = "\
        60005e530020064020010db800000000000000000000000220010db80000000000000000000000011b58e7be85563e5f19821cc2\
        8012fd20196c0000020405a0010104020103030a";
    // [P.], seq 1:5, ack 1, win 64, "ping"
    pub(super) const V6_PING: &str = "\
        600b0f290018064020010db800000000000000000000000120010db8000000000000000000000002e7be1b5819821cc285563e60\
        501800407831000070696e67";
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

/// Both ends of a captured connection, which starts with the SYN.
struct Ends {
    client: Translation,
    server: Translation,
}

impl Ends {
    fn of(syn: &str, iss: u32, irs: u32) -> Self {
        let packet = unhex(syn);
        let ip = ip::parse(&packet).expect("an IP packet");
        let ports = Ports::peek(&packet[ip.payload]).expect("ports");
        Ends {
            client: Translation::new(ip.addresses, ports, iss),
            server: Translation::new(ip.addresses.reversed(), ports.reversed(), irs),
        }
    }

    /// Reads a captured packet as its receiver, writes it again as its sender, and compares the bytes.
    fn pass(&mut self, hex: &str, near: Near) -> (Segment, Vec<u8>) {
        let packet = unhex(hex);
        let ip = ip::parse(&packet).expect("an IP packet");
        let bytes = &packet[ip.payload];
        let ports = Ports::peek(bytes).expect("ports");
        let up = self.server.is_for_us(&ip.addresses, ports);
        assert!(up || self.client.is_for_us(&ip.addresses, ports));
        let (sender, receiver) =
            if up { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
        let (segment, payload) = receiver.parse(bytes, near).expect("a segment");
        if segment.flags.has(Flags::SYN) {
            receiver.synchronize(bytes, &segment).expect("a segment");
        }
        let payload = &bytes[payload];
        assert_eq!(HEADER + segment.options_len() as usize + payload.len(), bytes.len());
        let mut out = [0; 100];
        let (a, b) = payload.split_at(payload.len() / 2);
        let length = sender.emit(&segment, &[a, b], &mut out).expect("it fits");
        assert_eq!(out[..length], *bytes);
        (segment, payload.to_vec())
    }
}

const START: Near = Near { rcv_nxt: 1, snd_una: 1 };

#[test]
fn linux_handshake_with_timestamps() {
    let mut ends = Ends::of(linux::SYN, 2_800_444_574, 3_888_071_050);
    let options = SynOptions { mss: Some(1460), window_scale: Some(10), sack_permitted: true };
    let stamps = |value, echo| Some(Timestamps { value, echo });

    let (syn, _) = ends.pass(linux::SYN, Near::default());
    let expected =
        Segment { window: 64_240, syn: options, timestamps: stamps(3_698_256_929, 0), ..Segment::new(Flags::SYN) };
    assert_eq!(syn, expected);

    let (syn_ack, _) = ends.pass(linux::SYN_ACK, Near::default());
    let timestamps = stamps(3_341_129_534, 3_698_256_929);
    let flags = Flags::SYN | Flags::ACK;
    assert_eq!(syn_ack, Segment { ack: 1, window: 65_160, syn: options, timestamps, ..Segment::new(flags) });

    let (ack, _) = ends.pass(linux::ACK, START);
    let timestamps = stamps(3_698_256_929, 3_341_129_534);
    assert_eq!(ack, Segment { seq: 1, ack: 1, window: 63 << 10, timestamps, ..Segment::new(Flags::ACK) });

    let (ping, bytes) = ends.pass(linux::PING, START);
    assert_eq!((ping.seq, ping.len, ping.flags, &bytes[..]), (1, 4, Flags::PSH | Flags::ACK, &b"ping"[..]));
    let (pong, bytes) = ends.pass(linux::PONG, START);
    assert_eq!((pong.seq, pong.ack, pong.window, &bytes[..]), (1, 5, 64 << 10, &b"pong!"[..]));

    let (sack, _) = ends.pass(linux::SACK_3, START);
    assert_eq!(sack.ack, 2901);
    let blocks: Vec<_> = sack.sack.iter(sack.ack).collect();
    assert_eq!(blocks, [(17_381, 20_005), (8_693, 15_933), (4_349, 7_245)]);

    let (fin, _) = ends.pass(linux::FIN, START);
    assert_eq!((fin.seq, fin.ack, fin.flags), (20_005, 6, Flags::FIN | Flags::ACK));
}

#[test]
fn linux_handshake_without_timestamps() {
    let mut ends = Ends::of(linux::PLAIN_SYN, 162_507_497, 770_135_911);
    let (syn, _) = ends.pass(linux::PLAIN_SYN, Near::default());
    assert_eq!((syn.syn.sack_permitted, syn.timestamps, syn.options_len()), (true, None, 12));
    ends.pass(linux::PLAIN_SYN_ACK, Near::default());
    let (sack, _) = ends.pass(linux::PLAIN_SACK, START);
    assert_eq!((sack.seq, sack.ack, sack.window), (6, 2925, 72 << 10));
    assert_eq!(sack.sack.iter(sack.ack).collect::<Vec<_>>(), [(4385, 5845)]);
}

#[test]
fn linux_handshake_over_ipv6() {
    let mut ends = Ends::of(linux::V6_SYN, 427_957_441, 2_237_021_791);
    ends.pass(linux::V6_SYN, Near::default());
    ends.pass(linux::V6_SYN_ACK, Near::default());
    let (ping, bytes) = ends.pass(linux::V6_PING, START);
    assert_eq!((ping.seq, ping.ack, ping.window, &bytes[..]), (1, 1, 64 << 10, &b"ping"[..]));
}

const ADDRESSES: Addresses =
    Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 1), destination: Ipv4Addr::new(192, 0, 2, 2) };
const PORTS: Ports = Ports { source: 5000, destination: 80 };

/// Two ends whose SYNs have been seen.
fn pair(iss: u32, irs: u32, our_scale: Option<u8>, peer_scale: Option<u8>) -> (Translation, Translation) {
    let us = Translation {
        irs: Some(Numbering::from_isn(irs)),
        our_scale,
        peer_scale,
        ..Translation::new(ADDRESSES, PORTS, iss)
    };
    let peer = Translation {
        irs: Some(us.iss),
        our_scale: peer_scale,
        peer_scale: our_scale,
        ..Translation::new(ADDRESSES.reversed(), PORTS.reversed(), irs)
    };
    (us, peer)
}

fn sealed(us: &Translation, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[16..18].fill(0);
    let sum = us.addresses.pseudo_header(TCP, bytes.len()).bytes(&bytes).finish();
    bytes[16..18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn numbers_wrap_in_the_middle_of_a_transfer() {
    let (mut us, peer) = pair(u32::MAX - 1000, u32::MAX - 10, None, None);
    let segment = Segment { seq: 1002, ack: 12, len: 4, window: 1000, ..Segment::new(Flags::ACK) };
    let mut out = [0; 24];
    us.emit(&segment, &[b"data"], &mut out).expect("it fits");
    assert_eq!((&out[4..8], &out[8..12]), (&[0, 0, 0, 1][..], &[0, 0, 0, 1][..]));
    // Before and after the wrap the peer's reference may lie on either side.
    for (rcv_nxt, snd_una) in [(1002, 12), (1, 1), (70_000, 5)] {
        assert_eq!(peer.parse(&out, Near { rcv_nxt, snd_una }).map(|(s, _)| s), Ok(segment));
    }
    // Beyond 4 GiB the numbers have been used before.
    let late = Segment { seq: (7 << 32) + 1002, ack: (3 << 32) + 12, ..segment };
    us.emit(&late, &[b"data"], &mut out).expect("it fits");
    let near = Near { rcv_nxt: 7 << 32, snd_una: 3 << 32 };
    assert_eq!(peer.parse(&out, near).map(|(s, _)| s), Ok(late));
}

#[test]
fn window_scale_needs_both_syns_and_spares_them() {
    let window = |ours, theirs, flags, window| {
        let (mut us, peer) = pair(1, 2, ours, theirs);
        let syn = SynOptions { window_scale: if flags == Flags::SYN { ours } else { None }, ..SynOptions::default() };
        let mut out = [0; 24];
        let length = us.emit(&Segment { window, syn, ..Segment::new(flags) }, &[], &mut out).expect("it fits");
        let (segment, _) = peer.parse(&out[..length], Near::default()).expect("a segment");
        (u16::from_be_bytes([out[14], out[15]]), segment.window)
    };
    assert_eq!(window(Some(7), Some(0), Flags::ACK, 1_000_000), (7812, 999_936));
    assert_eq!(window(Some(7), None, Flags::ACK, 1_000_000), (65_535, 65_535));
    assert_eq!(window(Some(7), Some(0), Flags::SYN, 1_000_000), (65_535, 65_535));
    assert_eq!(window(Some(14), Some(0), Flags::ACK, u32::MAX), (65_535, 65_535 << 14));
}

/// RFC 9293 §3.10.7.3: a SYN counts once the connection has accepted it. Reading teaches nothing.
#[test]
fn a_syn_teaches_when_it_is_accepted() {
    let (mut stranger, _) = pair(9000, 0, None, None);
    let mut fresh = Translation::new(ADDRESSES.reversed(), PORTS.reversed(), 500);
    let mut out = [0; 20];
    let mut syn_ack = |from: &mut Translation, ack: u64| {
        from.irs = Some(Numbering::from_isn(500));
        from.emit(&Segment { ack, ..Segment::new(Flags::SYN | Flags::ACK) }, &[], &mut out).expect("it fits");
        out
    };
    for ack in [77, 1] {
        let bytes = syn_ack(&mut stranger, ack);
        let (read, _) = fresh.parse(&bytes, Near::default()).expect("a segment");
        assert_eq!((read.ack, read.seq, fresh.irs), (ack, 0, None));
    }
    let bytes = syn_ack(&mut stranger, 1);
    let (read, _) = fresh.parse(&bytes, Near::default()).expect("a segment");
    fresh.synchronize(&bytes, &read).expect("a segment");
    assert_eq!(fresh.irs, Some(Numbering::from_isn(9000)));
}

#[test]
fn duplicates_below_the_ack_are_reported_across_the_wrap() {
    // RFC 2883 §4: the first block may lie below the acknowledgement number.
    let (mut us, peer) = pair(3, u32::MAX - 2000, None, None);
    let ack = 2500;
    let mut sack = SackBlocks::NONE;
    sack.push(ack, 1000, 2460);
    sack.push(ack, 3960, 5420);
    let segment = Segment { seq: 1, ack, sack, ..Segment::new(Flags::ACK) };
    let mut out = [0; 60];
    let length = us.emit(&segment, &[], &mut out).expect("it fits");
    assert_eq!(peer.parse(&out[..length], Near { rcv_nxt: 1, snd_una: 2000 }).map(|(s, _)| s), Ok(segment));
}

#[test]
fn each_field_that_lies_is_named() {
    let (mut us, peer) = pair(1, 2, None, None);
    let mut out = [0; 60];
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let length = us.emit(&Segment { timestamps, ..Segment::new(Flags::ACK) }, &[], &mut out).expect("it fits");
    let good = out[..length].to_vec();
    let read = |bytes: &[u8]| peer.parse(bytes, START).map(|_| ());
    assert_eq!(read(&good), Ok(()));
    assert_eq!(read(&good[..19]), Err(WireError::Truncated { needed: 20, have: 19 }));
    assert_eq!(read(&good[..28]), Err(WireError::Truncated { needed: 32, have: 28 }));
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        read(&sealed(&us, bad))
    };
    assert_eq!(with(12, 0x40), Err(WireError::HeaderLength(16)));
    // NOP NOP 8 10: the timestamps' kind is byte 22, their length byte 23.
    assert_eq!(with(23, 0), Err(WireError::OptionLength { kind: 8, length: 0 }));
    assert_eq!(with(23, 1), Err(WireError::OptionLength { kind: 8, length: 1 }));
    assert_eq!(with(23, 9), Err(WireError::OptionLength { kind: 8, length: 9 }));
    assert_eq!(with(23, 11), Err(WireError::OptionLength { kind: 8, length: 11 }));
    assert_eq!(with(22, 5), Ok(()), "one SACK block is as long as the timestamps");
    assert_eq!(with(22, 2), Err(WireError::OptionLength { kind: 2, length: 10 }));
    assert_eq!(with(22, 3), Err(WireError::OptionLength { kind: 3, length: 10 }));
    assert_eq!(with(22, 4), Err(WireError::OptionLength { kind: 4, length: 10 }));
    assert_eq!(with(22, 254), Ok(()), "unknown options are stepped over");
    assert_eq!(with(22, 0), Ok(()), "nothing counts after the end of the list");
    // A kind in the very last byte has no length.
    assert_eq!(with(23, 9).and(with(31, 0)), Err(WireError::OptionLength { kind: 8, length: 9 }));
    let mut last = good.clone();
    last[20..32].fill(kind::NOP);
    last[31] = kind::MSS;
    assert_eq!(read(&sealed(&us, last)), Err(WireError::OptionLength { kind: 2, length: 0 }));
    let mut bad = good.clone();
    bad[4] ^= 1;
    assert_eq!(read(&bad), Err(WireError::Checksum));
}

#[test]
fn what_cannot_be_said_is_refused() {
    let (mut us, _) = pair(1, 2, None, None);
    let mut sack = SackBlocks::NONE;
    while sack.push(0, 1, 2) {}
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let full = Segment { sack, timestamps, ..Segment::new(Flags::ACK) };
    let mut out = [0; 100];
    assert_eq!(us.emit(&full, &[], &mut out), Err(EmitError::OptionsTooLong(48)));
    let data = Segment { len: 3, ..Segment::new(Flags::ACK) };
    assert_eq!(us.emit(&data, &[b"ab"], &mut out), Err(EmitError::PayloadLength { expected: 3, have: 2 }));
    assert_eq!(us.emit(&data, &[b"ab", b"c"], &mut out[..22]), Err(EmitError::NoRoom { needed: 23, have: 22 }));
    assert_eq!(us.emit(&data, &[b"ab", b"c"], &mut out[..19]), Err(EmitError::NoRoom { needed: 20, have: 19 }));
}

/// A header with these options, as the peer reads it.
fn with_options(flags: Flags, options: &[u8]) -> Result<Segment, WireError> {
    let (us, peer) = pair(1, 2, None, None);
    let mut bytes = vec![0; HEADER];
    bytes.extend(options);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    (bytes[12], bytes[13]) = ((bytes.len() as u8 / 4) << 4, flags.bits());
    bytes[..4].copy_from_slice(&[0x13, 0x88, 0, 80]);
    bytes[8..12].copy_from_slice(&2u32.to_be_bytes());
    peer.parse(&sealed(&us, bytes), Near::default()).map(|(segment, _)| segment)
}

/// RFC 7323 §2.3: a shift of more than 14 counts as 14. RFC 9293 §3.2: only a SYN carries the segment size. It and the other
/// options of a SYN count for nothing elsewhere.
#[test]
fn options_of_a_syn_by_hand() {
    let options = [2, 4, 5, 180, 1, 3, 3, 15, 4, 2];
    let syn = SynOptions { mss: Some(1460), window_scale: Some(14), sack_permitted: true };
    for (flags, expected) in [(Flags::SYN, syn), (Flags::SYN | Flags::ACK, syn), (Flags::ACK, SynOptions::default())] {
        assert_eq!(with_options(flags, &options).map(|segment| segment.syn), Ok(expected));
    }
    let shift = with_options(Flags::SYN, &[3, 3, 14]).map(|segment| segment.syn.window_scale);
    assert_eq!(shift, Ok(Some(14)));
}

/// RFC 2018 §3: blocks of two numbers each. One that ends where it begins, or before, is none. The acknowledgement
/// number is 1 past its start.
#[test]
fn sack_blocks_by_hand() {
    let block = |start: u8, end: u8| [0, 0, 0, start, 0, 0, 0, end];
    let blocks = [&[5, 26][..], &block(12, 22), &block(40, 40), &block(60, 50)].concat();
    let read = with_options(Flags::ACK, &blocks).expect("three blocks");
    assert_eq!((read.ack, read.sack.iter(2).collect::<Vec<_>>()), (0, vec![(12, 22)]));
    for option in [&[5, 2][..], &[5, 13, 0, 0, 0, 12, 0, 0, 0, 22, 0, 0, 0]] {
        let wrong = WireError::OptionLength { kind: 5, length: option[1] };
        assert_eq!(with_options(Flags::ACK, option), Err(wrong));
    }
}

/// RFC 9768 §3.2.3: kind 172 begins with the bytes marked ECT(0), kind 174 with those marked ECT(1); CE is between
/// them. On a SYN it is ignored.
#[test]
fn marked_bytes_by_hand() {
    for (kind, ect0, ect1) in [(172, 1, 0x03_04_05), (174, 0x03_04_05, 1)] {
        let option = [kind, 11, 0, 0, 1, 0, 1, 2, 3, 4, 5];
        let read = with_options(Flags::ACK, &option).expect("an option").marked_bytes().expect("counters");
        assert_eq!((read.ect0, read.ce, read.ect1), (Some(ect0), Some(0x01_02), Some(ect1)));
        assert_eq!(with_options(Flags::SYN, &option).expect("an option").marked_bytes(), None);
    }
}

#[test]
fn a_segment_is_for_its_connection() {
    let (us, _) = pair(1, 2, None, None);
    let other = Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 3), destination: Ipv4Addr::new(192, 0, 2, 1) };
    let ports = PORTS.reversed();
    assert!(us.is_for_us(&ADDRESSES.reversed(), ports));
    assert!(
        !us.is_for_us(&other, ports) && !us.is_for_us(&ADDRESSES.reversed(), PORTS) && !us.is_for_us(&ADDRESSES, ports)
    );
}

prop_compose! {
    fn segments()(
        syn: bool, flags in 0u8..0x20, seq in 0u64..1 << 40, ack in 0u64..1 << 40, window: u16, len in 0u16..1461,
        mss: Option<u16>, window_scale in proptest::option::of(0u8..15), sack_permitted: bool,
        stamps: Option<(u32, u32)>, blocks in proptest::collection::vec((-1_000_000i64..1 << 29, 1u64..1 << 20), 0..4),
    ) -> Segment {
        let flags = Flags::from_bits_truncate(flags & !Flags::SYN.bits() | if syn { Flags::SYN.bits() } else { 0 });
        let mut segment = Segment { seq, window: u32::from(window), len, ..Segment::new(flags) };
        segment.timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
        segment.ack = if flags.has(Flags::ACK) { ack } else { 0 };
        if syn {
            segment.syn = SynOptions { mss, window_scale, sack_permitted };
        } else {
            for (start, len) in blocks {
                let start = segment.ack.wrapping_add_signed(start);
                segment.sack.push(segment.ack, start, start.wrapping_add(len));
            }
        }
        segment
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        segment in segments(), v6: bool, iss: u32, irs: u32, shift in 0u8..15, byte: u8,
        seq_off in -(1i64 << 30)..1 << 30,
    ) {
        let (mut us, mut peer) = pair(iss, irs, Some(shift), Some(3));
        if v6 {
            let addresses = Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::UNSPECIFIED };
            (us.addresses, peer.addresses) = (addresses, addresses.reversed());
        }
        let mut segment = segment;
        if !segment.flags.has(Flags::SYN) {
            segment.window <<= shift;
        }
        let payload = vec![byte; usize::from(segment.len)];
        let mut out = [0; 1600];
        let length = us.emit(&segment, &[&payload], &mut out).expect("it fits");
        prop_assert_eq!(length, HEADER + segment.options_len() as usize + payload.len());
        let near = Near { rcv_nxt: segment.seq.saturating_add_signed(seq_off), snd_una: segment.ack };
        let (read, range) = peer.parse(&out[..length], near).expect("what we wrote");
        prop_assert_eq!(read, segment);
        prop_assert_eq!(&out[range], &payload[..]);
    }

    #[test]
    fn parsing_is_total(bytes: Vec<u8>, offset in 5u8..16, rcv_nxt: u64, snd_una: u64, known: bool) {
        let (us, mut peer) = pair(1, 2, Some(7), Some(7));
        if !known {
            peer.irs = None;
        }
        let near = Near { rcv_nxt, snd_una };
        let _ = peer.parse(&bytes, near);
        // With a right checksum and data offset the options are reached.
        if bytes.len() >= 60 {
            let mut bytes = bytes;
            bytes[12] = offset << 4;
            let bytes = sealed(&us, bytes);
            if let Ok((segment, payload)) = peer.parse(&bytes, near) {
                prop_assert_eq!(payload.len(), usize::from(segment.len));
                prop_assert!(bytes.get(payload).is_some());
            }
        }
    }
}
