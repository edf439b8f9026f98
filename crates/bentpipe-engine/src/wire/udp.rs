//! UDP datagrams (RFC 768), with the checksum rules of IPv6 (RFC 8200 §8.1).

use core::ops::Range;

use super::ip::{Addresses, Ports, UDP};
use super::{EmitError, WireError, append, bytes, u16_at};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Parses a datagram: its ports, and the position of its payload in `datagram`.
///
/// # Errors
/// Fails on truncation, a length below 8, or a wrong checksum. In IPv4 the checksum may
/// be absent, in IPv6 it may not.
pub fn parse(addresses: &Addresses, datagram: &[u8]) -> Result<(Ports, Range<usize>), WireError> {
    let fixed: [u8; HEADER] = bytes(datagram, 0)?;
    let length = usize::from(u16_at(&fixed, 4)?);
    if length < HEADER {
        return Err(WireError::HeaderLength(length));
    }
    let whole = datagram.get(..length).ok_or(WireError::Truncated { needed: length, have: datagram.len() })?;
    let absent = u16_at(&fixed, 6)? == 0;
    let may_be_absent = matches!(addresses, Addresses::V4 { .. });
    if absent && !may_be_absent || !absent && addresses.pseudo_header(UDP, length).bytes(whole).finish() != 0 {
        return Err(WireError::Checksum);
    }
    Ok((Ports { source: u16_at(&fixed, 0)?, destination: u16_at(&fixed, 2)? }, HEADER..length))
}

/// Writes a datagram, its payload in pieces; returns its length.
///
/// # Errors
/// Returns [`EmitError::NoRoom`], or [`EmitError::TooLong`] above 65535 bytes in total.
pub fn emit(addresses: &Addresses, ports: Ports, payload: &[&[u8]], out: &mut [u8]) -> Result<usize, EmitError> {
    let total = HEADER + payload.iter().map(|piece| piece.len()).sum::<usize>();
    let length = u16::try_from(total).map_err(|_| EmitError::TooLong(total))?;
    let have = out.len();
    let out = out.get_mut(..total).ok_or(EmitError::NoRoom { needed: total, have })?;
    out[0..2].copy_from_slice(&ports.source.to_be_bytes());
    out[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    out[4..6].copy_from_slice(&length.to_be_bytes());
    out[6..8].fill(0);
    append(payload, HEADER, out)?;
    let sum = addresses.pseudo_header(UDP, total).bytes(out);
    // RFC 768: a computed zero is sent as all ones, because zero means no checksum.
    let sum = if sum.finish() == 0 { 0xffff } else { sum.finish() };
    out[6..8].copy_from_slice(&sum.to_be_bytes());
    Ok(total)
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const V4: Addresses =
        Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 1), destination: Ipv4Addr::new(192, 0, 2, 2) };
    const V6: Addresses = Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::LOCALHOST };

    #[test]
    fn a_missing_checksum_passes_in_version_4_alone() {
        let datagram = [0, 1, 0, 2, 0, 9, 0, 0, b'x'];
        assert_eq!(parse(&V4, &datagram), Ok((Ports { source: 1, destination: 2 }, 8..9)));
        assert_eq!(parse(&V6, &datagram), Err(WireError::Checksum));
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(parse(&V4, &[0; 7]), Err(WireError::Truncated { needed: 8, have: 7 }));
        assert_eq!(parse(&V4, &[0, 1, 0, 2, 0, 7, 0, 0]), Err(WireError::HeaderLength(7)));
        assert_eq!(parse(&V4, &[0, 1, 0, 2, 0, 9, 0, 0]), Err(WireError::Truncated { needed: 9, have: 8 }));
        assert_eq!(
            emit(&V4, Ports { source: 1, destination: 2 }, &[&[0; 70_000]], &mut []),
            Err(EmitError::TooLong(70_008))
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(v6: bool, source: u16, destination: u16, a: Vec<u8>, b: Vec<u8>, flip: usize) {
            let addresses = if v6 { V6 } else { V4 };
            let ports = Ports { source, destination };
            let mut out = [0; 1500];
            let length = emit(&addresses, ports, &[&a, &b], &mut out).expect("short enough");
            prop_assert_eq!(parse(&addresses, &out[..length]), Ok((ports, HEADER..length)));
            prop_assert_eq!(&out[HEADER..length], [a, b].concat());
            // One wrong bit in ports or payload is always found.
            let at = flip % (length - 4);
            out[if at < 4 { at } else { at + 4 }] ^= 1 << (flip % 8);
            prop_assert!(parse(&addresses, &out[..length]).is_err());
        }

        #[test]
        fn parsing_is_total(datagram: Vec<u8>) {
            let _ = parse(&V4, &datagram);
        }
    }
}
