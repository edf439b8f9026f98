//! Bytes to values and back: headers on the wire.
//!
//! Reading order: [`seq`] has 32-bit numbers and 64-bit offsets, [`checksum`] RFC 1071, [`ecn`] marks; then [`ip`]
//! and under it [`ipv4`] and [`ipv6`], [`udp`], [`tcp`], [`stp`] and [`slacp`]; [`mux`] is spoken between gateways,
//! with the numbers of `varint`; [`scone`] precedes QUIC; [`llc_snap`] is for packets in ATM cells.
//!
//! Only the bitmap of an S-LACP report allocates. Parsing is total: each byte string gives a value or an error. A
//! codec does not know any state machine: the caller passes the reference numbers from which 32-bit numbers are
//! extended.
//!
//! Not implemented: IP fragments and IPv6 extension headers (both are refused with an error of their own), the
//! urgent pointer.
//!
//! # Example
//!
//! A UDP datagram in an IPv4 packet, written and read:
//!
//! ```
//! use bentpipe_engine::wire::ip::{self, Addresses, Ports};
//! use bentpipe_engine::wire::udp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let addresses = Addresses::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into()).expect("one IP version");
//! let ports = Ports { source: 4000, destination: 53 };
//! let mut packet = [0; 1500];
//! let header = ip::emit(&addresses, ip::UDP, 8 + 5, &mut packet)?;
//! let length = header + udp::emit(&addresses, ports, &[b"hello"], &mut packet[header..])?;
//!
//! let parsed = ip::parse(&packet[..length])?;
//! assert_eq!((parsed.addresses, parsed.protocol), (addresses, ip::UDP));
//! let datagram = &packet[parsed.payload];
//! let (read, payload) = udp::parse(&addresses, datagram)?;
//! assert_eq!((read, &datagram[payload]), (ports, &b"hello"[..]));
//! # Ok(())
//! # }
//! ```

use core::fmt;

pub mod checksum;
pub mod ecn;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod llc_snap;
pub mod mux;
pub mod scone;
pub mod seq;
pub mod slacp;
pub mod stp;
pub mod tcp;
pub mod udp;
pub(crate) mod varint;

/// Why bytes cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than the header says, or than any header has.
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes present.
        have: usize,
    },
    /// The IP version is neither 4 nor 6, or not the requested one.
    Version(u8),
    /// A header length (IHL, data offset) or a datagram length is smaller than the header, or beyond the packet.
    HeaderLength(usize),
    /// The checksum is wrong, or absent where required.
    Checksum,
    /// A fragment of an IPv4 datagram; there is no reassembly.
    Fragment,
    /// An option has a length that is invalid for its kind, or that leads beyond the header.
    OptionLength {
        /// The option's kind.
        kind: u8,
        /// Its length byte; 0 if that is missing.
        length: u8,
    },
    /// The payload is longer than a [`Segment`](crate::tcp::Segment) or an IP packet can have.
    PayloadLength(usize),
    /// The encapsulation on a virtual channel is not LLC/SNAP with an EtherType.
    Encapsulation([u8; 6]),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WireError::Truncated { needed, have } => write!(f, "truncated: {have} of {needed} bytes"),
            WireError::Version(version) => write!(f, "unexpected IP version {version}"),
            WireError::HeaderLength(length) => write!(f, "impossible header length {length}"),
            WireError::Checksum => f.write_str("wrong checksum"),
            WireError::Fragment => f.write_str("fragment of an IPv4 datagram"),
            WireError::OptionLength { kind, length } => write!(f, "option {kind} with impossible length {length}"),
            WireError::PayloadLength(length) => write!(f, "payload of {length} bytes is too long"),
            WireError::Encapsulation(found) => {
                write!(f, "encapsulation {found:02x?} is not LLC/SNAP with an EtherType")
            }
        }
    }
}

impl core::error::Error for WireError {}

/// Why a value cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitError {
    /// The buffer is too small.
    NoRoom {
        /// Bytes that the packet needs.
        needed: usize,
        /// Bytes that the buffer has.
        have: usize,
    },
    /// The options take more than the 40 bytes that a TCP header has for them.
    OptionsTooLong(u32),
    /// The payload pieces do not add up to the header's length.
    PayloadLength {
        /// The header's length.
        expected: usize,
        /// The pieces' length.
        have: usize,
    },
    /// The packet is too long for the length field of its IP or UDP header.
    TooLong(usize),
    /// The segment has something that its protocol cannot express.
    NotInProtocol(&'static str),
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EmitError::NoRoom { needed, have } => write!(f, "packet of {needed} bytes, buffer of {have}"),
            EmitError::OptionsTooLong(length) => write!(f, "{length} bytes of TCP options, at most 40 fit"),
            EmitError::PayloadLength { expected, have } => write!(f, "payload of {have} bytes instead of {expected}"),
            EmitError::TooLong(length) => write!(f, "{length} bytes are too long for the header's length field"),
            EmitError::NotInProtocol(what) => write!(f, "the protocol cannot express {what}"),
        }
    }
}

impl core::error::Error for EmitError {}

/// The first `N` bytes from `at` on.
fn bytes<const N: usize>(from: &[u8], at: usize) -> Result<[u8; N], WireError> {
    let truncated = WireError::Truncated { needed: at.saturating_add(N), have: from.len() };
    from.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(truncated)
}

fn u16_at(from: &[u8], at: usize) -> Result<u16, WireError> {
    bytes(from, at).map(u16::from_be_bytes)
}

fn u32_at(from: &[u8], at: usize) -> Result<u32, WireError> {
    bytes(from, at).map(u32::from_be_bytes)
}

/// Copies the pieces of a payload after the first `at` bytes; returns their end.
fn append(payload: &[&[u8]], mut at: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let (needed, have) = (at + payload.iter().map(|piece| piece.len()).sum::<usize>(), out.len());
    if have < needed {
        return Err(EmitError::NoRoom { needed, have });
    }
    for piece in payload {
        out[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    Ok(at)
}
