//! LLC/SNAP encapsulation of packets on a virtual channel (RFC 2684 §5.1, formerly RFC 1483 §4).

use super::{EmitError, WireError, bytes};

/// Bytes of the header: LLC 3, OUI 3, EtherType 2.
pub const HEADER: usize = 8;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6 (RFC 2492 §3.1).
pub const IPV6: u16 = 0x86dd;

// RFC 2684 §5.1: the LLC header AA-AA-03 says that a SNAP header follows.
const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];

// RFC 2684 §5.1: the OUI 00-00-00 says that its PID is an EtherType.
const OUI: [u8; 3] = [0, 0, 0];

/// The header in front of a packet of this EtherType.
pub const fn header(ether_type: u16) -> [u8; HEADER] {
    let [high, low] = ether_type.to_be_bytes();
    [LLC[0], LLC[1], LLC[2], OUI[0], OUI[1], OUI[2], high, low]
}

/// Parses a routed packet: its EtherType, and the bytes after the header.
///
/// # Errors
/// Fails on truncation; returns [`WireError::Encapsulation`] for another LLC (routed ISO protocols) or another OUI
/// (bridged protocols).
pub fn parse(sdu: &[u8]) -> Result<(u16, &[u8]), WireError> {
    let [a, b, c, d, e, f, high, low]: [u8; HEADER] = bytes(sdu, 0)?;
    if [a, b, c] != LLC || [d, e, f] != OUI {
        return Err(WireError::Encapsulation([a, b, c, d, e, f]));
    }
    Ok((u16::from_be_bytes([high, low]), &sdu[HEADER..]))
}

/// Writes header and packet; returns their length.
///
/// # Errors
/// Returns [`EmitError::NoRoom`] if the buffer is too small.
pub fn emit(ether_type: u16, packet: &[u8], out: &mut [u8]) -> Result<usize, EmitError> {
    let (needed, have) = (HEADER + packet.len(), out.len());
    let out = out.get_mut(..needed).ok_or(EmitError::NoRoom { needed, have })?;
    out[..HEADER].copy_from_slice(&header(ether_type));
    out[HEADER..].copy_from_slice(packet);
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_rfc_2684() {
        // RFC 2684 §5.1, routed IPv4: LLC 0xAA-AA-03, OUI 0x00-00-00, EtherType 0x08-00.
        let mut out = [0; 11];
        assert_eq!(emit(IPV4, b"abc", &mut out), Ok(11));
        assert_eq!(out, *b"\xaa\xaa\x03\0\0\0\x08\0abc");
        assert_eq!(parse(&out), Ok((IPV4, &b"abc"[..])));
        assert_eq!(emit(IPV4, b"abc", &mut out[..10]), Err(EmitError::NoRoom { needed: 11, have: 10 }));
    }

    #[test]
    fn other_encapsulations_are_refused_by_name() {
        // RFC 2684 §5.2: bridged Ethernet has OUI 00-80-C2.
        let bridged = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x07];
        assert_eq!(parse(&bridged), Err(WireError::Encapsulation([0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2])));
        assert_eq!(parse(&bridged[..7]), Err(WireError::Truncated { needed: 8, have: 7 }));
    }
}
