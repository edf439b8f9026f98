//! IPv6 headers (RFC 8200). Extension headers are not skipped: they appear as the protocol of the payload.

use core::net::Ipv6Addr;
use core::ops::Range;

use super::{EmitError, WireError, bytes, u16_at, u32_at};

/// Bytes of the fixed header.
pub const HEADER: usize = 40;

/// The fields of the fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// The next header: a protocol, or an extension header.
    pub next_header: u8,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Hops left.
    pub hop_limit: u8,
}

impl Header {
    /// A header with hop limit 64, traffic class and flow label 0.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8) -> Self {
        Header { source, destination, next_header, traffic_class: 0, flow_label: 0, hop_limit: 64 }
    }
}

/// Parses a packet: the header, and the position of its payload.
///
/// # Errors
/// Fails on truncation or another version.
pub fn parse(packet: &[u8]) -> Result<(Header, Range<usize>), WireError> {
    let fixed: [u8; HEADER] = bytes(packet, 0)?;
    let first = u32_at(&fixed, 0)?;
    if first >> 28 != 6 {
        return Err(WireError::Version((first >> 28) as u8));
    }
    let end = HEADER + usize::from(u16_at(&fixed, 4)?);
    if packet.len() < end {
        return Err(WireError::Truncated { needed: end, have: packet.len() });
    }
    let header = Header {
        source: Ipv6Addr::from(bytes::<16>(&fixed, 8)?),
        destination: Ipv6Addr::from(bytes::<16>(&fixed, 24)?),
        next_header: fixed[6],
        traffic_class: (first >> 20) as u8,
        flow_label: first & 0x000f_ffff,
        hop_limit: fixed[7],
    };
    Ok((header, HEADER..end))
}

/// Writes the header before `payload_len` bytes of payload; returns its length. Only 20 bits of the flow label are
/// used.
///
/// # Errors
/// Returns [`EmitError::NoRoom`] if the header does not fit, [`EmitError::TooLong`] above 65535 bytes of payload.
pub fn emit(header: &Header, payload_len: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let have = out.len();
    let out = out.first_chunk_mut::<HEADER>().ok_or(EmitError::NoRoom { needed: HEADER, have })?;
    let length = u16::try_from(payload_len).map_err(|_| EmitError::TooLong(payload_len))?;
    let first = 6 << 28 | u32::from(header.traffic_class) << 20 | header.flow_label & 0x000f_ffff;
    out[0..4].copy_from_slice(&first.to_be_bytes());
    out[4..6].copy_from_slice(&length.to_be_bytes());
    out[6] = header.next_header;
    out[7] = header.hop_limit;
    out[8..24].copy_from_slice(&header.source.octets());
    out[24..40].copy_from_slice(&header.destination.octets());
    Ok(HEADER)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            source: [u8; 16], destination: [u8; 16], next_header: u8, traffic_class: u8, flow_label in 0u32..1 << 20,
            hop_limit: u8, payload in 0usize..2000,
        ) {
            let (source, destination) = (source.into(), destination.into());
            let header = Header { source, destination, next_header, traffic_class, flow_label, hop_limit };
            let mut packet = vec![0xaa; HEADER + payload + 3];
            prop_assert_eq!(emit(&header, payload, &mut packet), Ok(HEADER));
            prop_assert_eq!(parse(&packet), Ok((header, HEADER..HEADER + payload)));
            let short = HEADER + payload - 1;
            prop_assert!(parse(&packet[..short]).is_err());
        }

        #[test]
        fn parsing_is_total(packet: Vec<u8>) {
            let _ = parse(&packet);
        }
    }
}
