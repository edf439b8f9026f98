//! What TCP and UDP need of IP, in either version: the addresses and the position of the payload.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use super::checksum::Checksum;
use super::ecn::Ecn;
use super::{EmitError, WireError, ipv4, ipv6, u16_at};

/// Protocol number of TCP (RFC 9293 §3.1).
pub const TCP: u8 = 6;
/// Protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;

/// Source and destination of a packet, of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// The pair, or `None` if the versions differ.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Addresses::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Addresses::V6 { source, destination }),
            _ => None,
        }
    }

    /// The source address.
    pub const fn source(&self) -> IpAddr {
        match *self {
            Addresses::V4 { source, .. } => IpAddr::V4(source),
            Addresses::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// The destination address.
    pub const fn destination(&self) -> IpAddr {
        match *self {
            Addresses::V4 { destination, .. } => IpAddr::V4(destination),
            Addresses::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }

    /// The reverse direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Addresses::V4 { source, destination } => Addresses::V4 { source: destination, destination: source },
            Addresses::V6 { source, destination } => Addresses::V6 { source: destination, destination: source },
        }
    }

    /// Bytes of the IP header that [`emit`] writes.
    pub const fn header_len(&self) -> usize {
        match self {
            Addresses::V4 { .. } => ipv4::HEADER,
            Addresses::V6 { .. } => ipv6::HEADER,
        }
    }

    /// The sum over the pseudo header of `length` bytes of `protocol` (RFC 9293 §3.1; RFC 8200 §8.1).
    pub fn pseudo_header(&self, protocol: u8, length: usize) -> Checksum {
        let sum = match self {
            Addresses::V4 { source, destination } => {
                Checksum::new().bytes(&source.octets()).bytes(&destination.octets())
            }
            Addresses::V6 { source, destination } => {
                Checksum::new().bytes(&source.octets()).bytes(&destination.octets())
            }
        };
        // The length has 16 bits in version 4 and 32 in version 6; for equal lengths the upper bits are 0.
        sum.bytes(&(length as u32).to_be_bytes()).word(u16::from(protocol))
    }
}

/// Source and destination port of TCP and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

impl Ports {
    /// The reverse direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Ports { source: self.destination, destination: self.source }
    }

    /// The ports of a TCP segment or UDP datagram, unchecked: enough to find its destination.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] below four bytes.
    pub fn peek(payload: &[u8]) -> Result<Self, WireError> {
        Ok(Ports { source: u16_at(payload, 0)?, destination: u16_at(payload, 2)? })
    }
}

/// A parsed IP packet of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source and destination.
    pub addresses: Addresses,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// Position of the payload, without trailing bytes of the layer below.
    pub payload: Range<usize>,
}

/// Parses a packet.
///
/// # Errors
/// As [`ipv4::parse`] and [`ipv6::parse`]; [`WireError::Version`] for all other versions.
pub fn parse(packet: &[u8]) -> Result<Packet, WireError> {
    match packet.first().ok_or(WireError::Truncated { needed: 1, have: 0 })? >> 4 {
        4 => ipv4::parse(packet).map(|(header, payload)| Packet {
            addresses: Addresses::V4 { source: header.source, destination: header.destination },
            protocol: header.protocol,
            ecn: Ecn::from_bits(header.tos),
            payload,
        }),
        6 => ipv6::parse(packet).map(|(header, payload)| Packet {
            addresses: Addresses::V6 { source: header.source, destination: header.destination },
            protocol: header.next_header,
            ecn: Ecn::from_bits(header.traffic_class),
            payload,
        }),
        version => Err(WireError::Version(version)),
    }
}

/// The fields that a link layer reads of a packet without checking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// Position of both addresses.
    pub addresses: Range<usize>,
    /// Protocol number of the payload, or of the first extension header.
    pub protocol: u8,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// Bytes before the payload; an extension header of IPv6 counts as payload.
    pub header: usize,
    /// Ports, in whole packets of protocols that have them in these places: TCP, UDP, DCCP (RFC 4340 §5.1), SCTP
    /// (RFC 9260 §3.1), UDP-Lite (RFC 3828 §3.1).
    pub ports: Option<Ports>,
}

/// Reads a packet's headers without checking them; `None` if it is obviously not an IP packet.
pub fn peek(packet: &[u8]) -> Option<Peek> {
    let (addresses, protocol, class, payload, is_fragment) = match packet.first()? >> 4 {
        4 => {
            let header: &[u8; ipv4::HEADER] = packet.first_chunk()?;
            (12..20, header[9], header[1], usize::from(header[0] & 0x0f) * 4, u16_at(header, 6).ok()? & 0x3fff != 0)
        }
        6 => {
            let header: &[u8; ipv6::HEADER] = packet.first_chunk()?;
            (8..40, header[6], header[0] << 4 | header[1] >> 4, ipv6::HEADER, false)
        }
        _ => return None,
    };
    let has_ports = !is_fragment && matches!(protocol, TCP | UDP | 33 | 132 | 136) && payload >= ipv4::HEADER;
    let ports = packet.get(payload..).filter(|_| has_ports).and_then(|payload| Ports::peek(payload).ok());
    Some(Peek { addresses, protocol, dscp: class >> 2, header: payload, ports })
}

/// Writes the header before `payload_len` bytes of `protocol`, with the hop limit 64 (RFC 1700) and, in version 4,
/// "don't fragment"; returns its length.
///
/// # Errors
/// Returns [`EmitError::NoRoom`], or [`EmitError::TooLong`] if the packet does not fit the length field.
pub fn emit(addresses: &Addresses, protocol: u8, payload_len: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    match *addresses {
        Addresses::V4 { source, destination } => {
            ipv4::emit(&ipv4::Header::new(source, destination, protocol), payload_len, out)
        }
        Addresses::V6 { source, destination } => {
            ipv6::emit(&ipv6::Header::new(source, destination, protocol), payload_len, out)
        }
    }
}
