//! SCONE: a network's advice on throughput, in a packet at the head of a QUIC datagram (draft-ietf-scone-protocol).
//!
//! The sender of a datagram writes a packet without advice before its own ([`emit`]). A network element on the path
//! lowers the signal in place ([`advise`], [`advise_packet`]); the datagram keeps its length. The receiver removes the
//! packet ([`parse`]).

use core::ops::{Range, RangeInclusive};

use super::checksum::Checksum;
use super::ip::{self, UDP};
use super::{u16_at, udp};
use crate::units::Rate;

/// The version field of a SCONE packet without its highest bit, which belongs to the signal.
const VERSION: u32 = 0x6f7d_c0fd;
/// Flags of the first byte: a long header, and the bit that QUIC version 1 sets.
const LONG_HEADER: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
/// Bytes before the connection ID: the first byte, the version, the length of the destination connection ID.
const BEFORE_ID: usize = 6;
/// Positions of the length and of the checksum in UDP's header (RFC 768).
const LENGTH: usize = 4;
const CHECKSUM: usize = 6;

/// A rate on the protocol's scale: 100 kbit/s times 10^(n/20), n from 0 to 126; or 127, unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(u8);

impl Signal {
    /// No advice: what a sender writes. It is above every signal with a rate.
    pub const UNKNOWN: Signal = Signal(127);
    /// The numbers that stand for a rate.
    const RATES: RangeInclusive<u8> = 0..=126;

    /// The greatest signal that stands for at most `rate`; that of 100 kbit/s if `rate` is less.
    pub fn at_most(rate: Rate) -> Signal {
        let fits = |signal: &Signal| signal.rate().is_some_and(|stands_for| stands_for <= rate);
        Signal::RATES.rev().map(Signal).find(fits).unwrap_or(Signal(0))
    }

    /// The rate, rounded down to a bit per second; `None` if unknown.
    pub fn rate(self) -> Option<Rate> {
        let bits = 100_000.0 * libm::pow(10.0, f64::from(self.0) / 20.0);
        // pow may be short of a whole power of ten by less than this.
        let bits = libm::floor(bits * (1.0 + 1e-12)) as u64;
        Rate::from_bits_per_second(bits).filter(|_| self != Signal::UNKNOWN)
    }
}

/// Bytes of a packet for a destination connection ID of `id` bytes, without a source connection ID.
pub const fn length(id: usize) -> usize {
    BEFORE_ID + id + 1
}

/// Appends a packet without advice. `destination` is the connection ID of the packet with a short header that follows it.
///
/// # Panics
/// Panics if the ID is longer than 255 bytes, the most that its length field can express.
pub fn emit(destination: &[u8], out: &mut impl Extend<u8>) {
    let length = u8::try_from(destination.len()).expect("connection IDs have at most 255 bytes");
    let Signal(unknown) = Signal::UNKNOWN;
    let version = VERSION | u32::from(unknown & 1) << 31;
    out.extend([LONG_HEADER | FIXED_BIT | unknown >> 1]);
    out.extend(version.to_be_bytes());
    out.extend([length]);
    out.extend(destination.iter().copied());
    out.extend([0]);
}

/// The signal at the head of a UDP payload, and the bytes of its packet; `None` if no whole SCONE packet is there.
pub fn parse(payload: &[u8]) -> Option<(Signal, usize)> {
    let signal = signal(payload)?;
    let destination = usize::from(*payload.get(BEFORE_ID - 1)?);
    let source = usize::from(*payload.get(BEFORE_ID + destination)?);
    let length = length(destination) + source;
    (payload.len() >= length).then_some((signal, length))
}

/// What a network element does with a UDP payload: lowers the signal to `advice`. Returns whether it changed anything; the UDP checksum
/// then has to be computed anew.
pub fn advise(payload: &mut [u8], advice: Signal) -> bool {
    if signal(payload).is_none_or(|present| present <= advice) {
        return false;
    }
    payload[0] = payload[0] & !0x3f | advice.0 >> 1;
    payload[1] = payload[1] & 0x7f | advice.0 << 7;
    true
}

/// What a network element does with an IP packet of either version: lowers the signal of a whole UDP datagram as
/// [`advise`] does, and updates the checksum. Returns whether it changed anything.
///
/// The datagram is checked first: a SCONE packet must stand at its head, and another packet must follow it.
/// Fragments, UDP after an extension header, and everything else are left as they are.
pub fn advise_packet(packet: &mut [u8], advice: Signal) -> bool {
    let Some(payload) = scone_datagram(packet) else { return false };
    let checksum = payload.start - udp::HEADER + CHECKSUM;
    let word = |packet: &[u8], at| u16_at(packet, at).unwrap_or(0);
    let (sum, old) = (word(packet, checksum), word(packet, payload.start));
    if !advise(&mut packet[payload.clone()], advice) {
        return false;
    }
    // RFC 768: zero means that there is none.
    if sum != 0 {
        // RFC 1624: the old word out, the new one in. Both bytes of the signal are in the first word, at an even place.
        let new = Checksum::new().word(!sum).word(!old).word(word(packet, payload.start)).finish();
        let new = if new == 0 { u16::MAX } else { new };
        packet[checksum..checksum + 2].copy_from_slice(&new.to_be_bytes());
    }
    true
}

/// The position of a UDP payload that begins with a SCONE packet and continues after it.
fn scone_datagram(packet: &[u8]) -> Option<Range<usize>> {
    let seen = ip::peek(packet)?;
    // Fragments have no ports there.
    if seen.protocol != UDP || seen.ports.is_none() {
        return None;
    }
    let length = usize::from(u16_at(packet, seen.header + LENGTH).ok()?);
    let payload = seen.header + udp::HEADER..seen.header + length;
    let (_, scone) = parse(packet.get(payload.clone())?)?;
    (scone < payload.len()).then_some(payload)
}

fn signal(payload: &[u8]) -> Option<Signal> {
    let &[first, a, b, c, d, ..] = payload else { return None };
    let version = u32::from_be_bytes([a, b, c, d]);
    let is_scone = first & LONG_HEADER != 0 && version & !(1 << 31) == VERSION;
    is_scone.then_some(Signal((first & 0x3f) << 1 | a >> 7))
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::ip::{Addresses, Ports};
    use super::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).expect("above zero")
    }

    fn packet(id: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        emit(id, &mut bytes);
        bytes
    }

    /// The draft's table "Examples of SCONE signals and corresponding rates": to the three digits that it prints.
    #[test]
    fn signals_stand_for_the_drafts_rates() {
        let printed = [
            (0, 100_000, 0),
            (1, 112_000, 500),
            (2, 126_000, 500),
            (3, 141_000, 500),
            (20, 1_000_000, 0),
            (21, 1_120_000, 5_000),
            (40, 10_000_000, 0),
            (60, 100_000_000, 0),
            (80, 1_000_000_000, 0),
            (120, 100_000_000_000, 0),
            (126, 199_500_000_000, 50_000_000),
        ];
        for (number, bits, half_a_digit) in printed {
            let ours = Signal(number).rate().expect("a rate").bits_per_second();
            assert!(ours.abs_diff(bits) <= half_a_digit, "{number}: {ours}");
        }
        assert_eq!(Signal::UNKNOWN.rate(), None);
    }

    #[test]
    fn a_rate_is_rounded_down() {
        assert_eq!(Signal::at_most(rate(20_000_000)), Signal(46), "10^2.3 is 199.5, 10^2.35 is 223.9");
        assert_eq!(Signal::at_most(rate(10_000_000)), Signal(40));
        assert_eq!(Signal::at_most(rate(9_999_999)), Signal(39));
        assert_eq!(Signal::at_most(rate(1)), Signal(0));
        assert_eq!(Signal::at_most(rate(u64::MAX)), Signal(126));
    }

    /// The bytes by the draft's figure: version 0xef7dc0fd has the lowest bit of 127.
    #[test]
    fn a_packet_by_hand() {
        let mut bytes = packet(&[1, 2, 3]);
        assert_eq!(bytes, [0xff, 0xef, 0x7d, 0xc0, 0xfd, 3, 1, 2, 3, 0]);
        assert_eq!(bytes.len(), length(3));
        assert_eq!(parse(&bytes), Some((Signal::UNKNOWN, 10)));
        assert!(advise(&mut bytes, Signal(40)));
        assert_eq!(bytes, [0xd4, 0x6f, 0x7d, 0xc0, 0xfd, 3, 1, 2, 3, 0]);
        assert!(!advise(&mut bytes, Signal(41)), "advice is never raised");
        assert!(!advise(&mut bytes, Signal(40)));
        assert!(advise(&mut bytes, Signal(39)));
        assert_eq!(parse(&bytes), Some((Signal(39), 10)));
    }

    #[test]
    fn other_packets_are_left_alone() {
        let mut initial = vec![0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        let mut short = packet(&[1, 2, 3]);
        short[0] &= 0x7f;
        for bytes in [&mut initial, &mut short] {
            let before = bytes.clone();
            assert!(!advise(bytes, Signal(0)));
            assert_eq!((&*bytes, parse(bytes)), (&before, None));
        }
    }

    const V4: Addresses =
        Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 1), destination: Ipv4Addr::new(192, 0, 2, 2) };
    const V6: Addresses = Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::LOCALHOST };
    const PORTS: Ports = Ports { source: 50_000, destination: 443 };

    /// A datagram of UDP in an IP packet.
    fn in_ip(addresses: &Addresses, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 1500];
        let header = ip::emit(addresses, UDP, udp::HEADER + payload.len(), &mut out).expect("short enough");
        let length = udp::emit(addresses, PORTS, &[payload], &mut out[header..]).expect("short enough");
        out.truncate(header + length);
        out
    }

    /// The payload of such a packet, if its checksum is right or missing.
    fn payload(addresses: &Addresses, packet: &[u8]) -> Option<Vec<u8>> {
        let datagram = &packet[addresses.header_len()..];
        udp::parse(addresses, datagram).ok().map(|(_, at)| datagram[at].to_vec())
    }

    fn scone_and(rest: &[u8]) -> Vec<u8> {
        let mut bytes = packet(&[1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn the_signal_is_lowered_inside_ip() {
        for addresses in [V4, V6] {
            let mut bytes = in_ip(&addresses, &scone_and(&[0x40; 100]));
            let length = bytes.len();
            assert!(advise_packet(&mut bytes, Signal(40)));
            assert!(!advise_packet(&mut bytes, Signal(40)) && !advise_packet(&mut bytes, Signal(50)));
            let got = payload(&addresses, &bytes).expect("a right checksum");
            assert_eq!(parse(&got), Some((Signal(40), 15)));
            assert_eq!((&got[2..], bytes.len()), (&scone_and(&[0x40; 100])[2..], length), "all else is as it was");
        }
    }

    /// RFC 768: no checksum stays none.
    #[test]
    fn a_missing_checksum_stays_missing() {
        let mut bytes = in_ip(&V4, &scone_and(&[0x40; 100]));
        bytes[26..28].fill(0);
        assert!(advise_packet(&mut bytes, Signal(40)));
        assert_eq!(bytes[26..28], [0, 0]);
        assert!(payload(&V4, &bytes).is_some());
    }

    /// What only looks like such a packet is not written to.
    #[test]
    fn only_whole_scone_datagrams_are_written_to() {
        let right = in_ip(&V4, &scone_and(&[0x40; 100]));
        let changed = |at: usize, value: u8| {
            let mut bytes = right.clone();
            bytes[at] = value;
            bytes
        };
        let mut initial = scone_and(&[0x40; 100]);
        initial[1..5].copy_from_slice(&[0, 0, 0, 1]);
        let others = [
            ("TCP", changed(9, 6)),
            ("a fragment", changed(7, 1)),
            ("a first fragment", changed(6, 0x20)),
            ("an extension header", {
                let mut bytes = in_ip(&V6, &scone_and(&[0x40; 100]));
                bytes[6] = 60;
                bytes
            }),
            ("a length beyond the packet", changed(24, 8)),
            ("a length below the header", {
                let mut bytes = right.clone();
                bytes[24..26].copy_from_slice(&[0, 7]);
                bytes
            }),
            ("cut off", right[..40].to_vec()),
            ("another version of QUIC", in_ip(&V4, &initial)),
            ("a short header", in_ip(&V4, &[0x40; 100])),
            ("nothing behind it", in_ip(&V4, &scone_and(&[]))),
            ("no IP", vec![0xff; 100]),
            ("nothing", Vec::new()),
        ];
        for (what, bytes) in others {
            let mut after = bytes.clone();
            assert!(!advise_packet(&mut after, Signal(0)), "{what}");
            assert_eq!(after, bytes, "{what}");
        }
        assert!(advise_packet(&mut right.clone(), Signal(0)));
    }

    proptest! {
        #[test]
        fn a_checksum_stays_right_or_wrong(v6: bool, rest in proptest::collection::vec(any::<u8>(), 1..60), advice in 0_u8..127, flip: Option<u8>) {
            let addresses = if v6 { V6 } else { V4 };
            let mut bytes = in_ip(&addresses, &scone_and(&rest));
            if let Some(flip) = flip {
                *bytes.last_mut().expect("not empty") ^= 1 << (flip % 8);
            }
            prop_assert!(advise_packet(&mut bytes, Signal(advice)));
            let got = payload(&addresses, &bytes);
            prop_assert_eq!(got.is_some(), flip.is_none());
            if let Some(got) = got {
                prop_assert_eq!(parse(&got).map(|(signal, _)| signal), Some(Signal(advice)));
            }
        }

        #[test]
        fn any_packet_is_judged(mut bytes: Vec<u8>, first in 0x40_u8..0x70) {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            let before = bytes.clone();
            // By chance there is no version of SCONE in it.
            prop_assert!(!advise_packet(&mut bytes, Signal(0)));
            prop_assert_eq!(bytes, before);
        }

        #[test]
        fn any_bytes_are_judged(mut bytes in proptest::collection::vec(any::<u8>(), 0..40), is_scone in any::<bool>(), advice in 0_u8..=127) {
            if is_scone && bytes.len() >= 5 {
                bytes[0] |= LONG_HEADER;
                let version = VERSION | u32::from(bytes[1]) << 31;
                bytes[1..5].copy_from_slice(&version.to_be_bytes());
            }
            let before = (parse(&bytes), bytes.len());
            if let Some((_, length)) = before.0 {
                prop_assert!(length <= bytes.len());
            }
            let changed = advise(&mut bytes, Signal(advice));
            prop_assert_eq!(parse(&bytes).map(|(_, length)| length), before.0.map(|(_, length)| length));
            if let (Some((signal, _)), Some((then, _))) = (parse(&bytes), before.0) {
                prop_assert_eq!(signal, then.min(Signal(advice)));
                prop_assert_eq!(changed, signal != then);
            }
        }
    }
}
