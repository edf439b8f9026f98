//! IPv4 headers (RFC 791). Options are skipped, fragments refused.

use core::net::Ipv4Addr;
use core::ops::Range;

use super::checksum::Checksum;
use super::{EmitError, WireError, bytes, u16_at};

/// Bytes of a header without options.
pub const HEADER: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;

/// The fields of a header that matter to an end point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Type of service: DSCP (RFC 2474) and ECN (RFC 3168).
    pub tos: u8,
    /// Identification; it need not be unique in a datagram that is never fragmented (RFC 6864 §4.1).
    pub identification: u16,
    /// True if routers may not fragment it.
    pub dont_fragment: bool,
    /// Hops left.
    pub ttl: u8,
}

impl Header {
    /// A header with TTL 64, "don't fragment" and identification 0.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Self {
        Header { source, destination, protocol, tos: 0, identification: 0, dont_fragment: true, ttl: 64 }
    }
}

/// Parses a packet: the header, and the position of its payload.
///
/// # Errors
/// Fails on truncation, another version, impossible lengths, a wrong header checksum, or a fragment.
pub fn parse(packet: &[u8]) -> Result<(Header, Range<usize>), WireError> {
    let fixed: [u8; HEADER] = bytes(packet, 0)?;
    if fixed[0] >> 4 != 4 {
        return Err(WireError::Version(fixed[0] >> 4));
    }
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < HEADER {
        return Err(WireError::HeaderLength(header_len));
    }
    let total = usize::from(u16_at(&fixed, 2)?);
    if total < header_len {
        return Err(WireError::HeaderLength(total));
    }
    if packet.len() < total {
        return Err(WireError::Truncated { needed: total, have: packet.len() });
    }
    if Checksum::new().bytes(&packet[..header_len]).finish() != 0 {
        return Err(WireError::Checksum);
    }
    let fragment = u16_at(&fixed, 6)?;
    if fragment & MORE_FRAGMENTS_OR_OFFSET != 0 {
        return Err(WireError::Fragment);
    }
    let header = Header {
        source: Ipv4Addr::from(bytes(&fixed, 12)?),
        destination: Ipv4Addr::from(bytes(&fixed, 16)?),
        protocol: fixed[9],
        tos: fixed[1],
        identification: u16_at(&fixed, 4)?,
        dont_fragment: fragment & DONT_FRAGMENT != 0,
        ttl: fixed[8],
    };
    Ok((header, header_len..total))
}

/// Writes the header before `payload_len` bytes of payload; returns its length.
///
/// # Errors
/// Returns [`EmitError::NoRoom`] if the header does not fit, [`EmitError::TooLong`] above 65535 bytes in total.
pub fn emit(header: &Header, payload_len: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let have = out.len();
    let out = out.first_chunk_mut::<HEADER>().ok_or(EmitError::NoRoom { needed: HEADER, have })?;
    let total = u16::try_from(HEADER + payload_len).map_err(|_| EmitError::TooLong(HEADER + payload_len))?;
    let fragment = if header.dont_fragment { DONT_FRAGMENT } else { 0 };
    out[0] = 0x45;
    out[1] = header.tos;
    out[2..4].copy_from_slice(&total.to_be_bytes());
    out[4..6].copy_from_slice(&header.identification.to_be_bytes());
    out[6..8].copy_from_slice(&fragment.to_be_bytes());
    out[8] = header.ttl;
    out[9] = header.protocol;
    out[10..12].fill(0);
    out[12..16].copy_from_slice(&header.source.octets());
    out[16..20].copy_from_slice(&header.destination.octets());
    let sum = Checksum::new().bytes(out).finish();
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    Ok(HEADER)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A SYN of Linux 6.18; what follows the IP header is blank.
    const LINUX: [u8; 60] = {
        let header = [
            0x45, 0x00, 0x00, 0x3c, 0x26, 0xec, 0x40, 0x00, 0x40, 0x06, 0x8f, 0xcc, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00,
            0x02, 0x02,
        ];
        let mut packet = [0; 60];
        packet.split_at_mut(header.len()).0.copy_from_slice(&header);
        packet
    };

    #[test]
    fn linux_header() {
        let header = Header {
            identification: 0x26ec,
            ..Header::new(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2), 6)
        };
        assert_eq!(parse(&LINUX), Ok((header, 20..60)));
        let mut out = [0; 60];
        assert_eq!(emit(&header, 40, &mut out), Ok(HEADER));
        assert_eq!(out, LINUX);
    }

    #[test]
    fn each_field_that_lies_is_named() {
        assert_eq!(parse(&LINUX[..19]), Err(WireError::Truncated { needed: 20, have: 19 }));
        let with = |at: usize, byte: u8| {
            let mut bad = LINUX;
            bad[at] = byte;
            parse(&bad)
        };
        assert_eq!(with(0, 0x65), Err(WireError::Version(6)));
        assert_eq!(with(0, 0x44), Err(WireError::HeaderLength(16)));
        assert_eq!(with(3, 19), Err(WireError::HeaderLength(19)));
        assert_eq!(with(3, 61), Err(WireError::Truncated { needed: 61, have: 60 }));
        assert_eq!(with(8, 63), Err(WireError::Checksum));
        // "More fragments" instead of "don't fragment", with the checksum that goes with it: 0x2000 less in the sum.
        let mut fragment = LINUX;
        fragment[6] = 0x20;
        fragment[10] += 0x20;
        assert_eq!(parse(&fragment), Err(WireError::Fragment));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            source: [u8; 4], destination: [u8; 4], protocol: u8, tos: u8, identification: u16, dont_fragment: bool,
            ttl: u8, payload in 0usize..2000,
        ) {
            let (source, destination) = (source.into(), destination.into());
            let header = Header { source, destination, protocol, tos, identification, dont_fragment, ttl };
            let mut packet = vec![0xaa; HEADER + payload + 3];
            prop_assert_eq!(emit(&header, payload, &mut packet), Ok(HEADER));
            // Three bytes of link-layer padding are not payload.
            prop_assert_eq!(parse(&packet), Ok((header, HEADER..HEADER + payload)));
        }

        #[test]
        fn parsing_is_total(packet: Vec<u8>) {
            let _ = parse(&packet);
        }
    }
}
