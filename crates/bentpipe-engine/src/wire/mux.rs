//! Messages of the stream multiplexer on the wire; `docs/specs/mux.md` has every byte.
//!
//! ```text
//! hello    0  version  credit  streams
//! open     1  stream  family  source  port(2)  destination  port(2)  credit  bytes
//! data     2  stream  offset  bytes            (3: and the end)
//! credit   4  stream  limit
//! reset    5  stream  reason(1)
//! ```
//!
//! Numbers are varints (RFC 9000 §16) unless their length in bytes is given. One message is one packet of the layer
//! below, which preserves its length. What [`parse`] accepts, [`emit`] writes again bit by bit.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use super::{EmitError, WireError, append, bytes, varint};

mod message;

pub use message::{Message, Reason, Route, StreamId};

/// The version that this file reads and writes.
const VERSION: u64 = 1;

/// Bytes of a data message besides its payload, at most.
pub const MAX_DATA_HEADER: usize = 1 + 8 + 8;

/// Bytes of any message besides its payload, at most: those of an open with two IPv6 addresses.
pub(crate) const MAX_HEADER: usize = 1 + 8 + 1 + 18 + 18 + 8;

mod kind {
    pub(super) const HELLO: u8 = 0;
    pub(super) const OPEN: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const LAST: u8 = 3;
    pub(super) const CREDIT: u8 = 4;
    pub(super) const RESET: u8 = 5;
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuxError {
    /// Fewer bytes than the message has, or a number in too long a form.
    Wire(WireError),
    /// Another version of the protocol.
    Version(u64),
    /// A type that this version does not have.
    Type(u8),
    /// An address family other than 4 and 6.
    Family(u8),
    /// A reason that this version does not have.
    Reason(u8),
    /// Bytes after a message that must have none, or none where there must be some.
    Length(usize),
    /// A stream that would end beyond 2^62 - 1 bytes.
    Offset(u64),
    /// A limit of more than 2^32 - 1 streams.
    Streams(u64),
}

impl From<WireError> for MuxError {
    fn from(error: WireError) -> Self {
        MuxError::Wire(error)
    }
}

impl fmt::Display for MuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MuxError::Wire(error) => error.fmt(f),
            MuxError::Version(version) => write!(f, "multiplexer version {version} instead of {VERSION}"),
            MuxError::Type(kind) => write!(f, "unknown type {kind} of message"),
            MuxError::Family(family) => write!(f, "address family {family} is neither 4 nor 6"),
            MuxError::Reason(reason) => write!(f, "unknown reason {reason} of a reset"),
            MuxError::Length(bytes) => write!(f, "{bytes} bytes cannot stand behind this message"),
            MuxError::Offset(offset) => write!(f, "no stream reaches {offset} bytes"),
            MuxError::Streams(streams) => write!(f, "a limit of {streams} streams is above {}", u32::MAX),
        }
    }
}

impl core::error::Error for MuxError {}

/// Writes a message with its payload, given in pieces; returns its length.
///
/// # Errors
/// Returns [`EmitError::NoRoom`] if `out` is too small, [`EmitError::PayloadLength`] if the pieces are not as long as the message says,
/// and [`EmitError::NotInProtocol`] for addresses of two families or numbers above 2^62 - 1.
pub fn emit(message: &Message, body: &[&[u8]], out: &mut [u8]) -> Result<usize, EmitError> {
    let (expected, have) = (message.payload() as usize, body.iter().map(|piece| piece.len()).sum());
    if expected != have {
        return Err(EmitError::PayloadLength { expected, have });
    }
    let end = match *message {
        Message::Hello { credit, streams } => {
            let at = varint::emit(VERSION, byte(kind::HELLO, 0, out)?, out)?;
            varint::emit(u64::from(streams), varint::emit(credit, at, out)?, out)?
        }
        Message::Open { stream, route, credit, .. } => {
            let at = start(kind::OPEN, stream, out)?;
            let family = match (route.source, route.destination) {
                (SocketAddr::V4(_), SocketAddr::V4(_)) => 4,
                (SocketAddr::V6(_), SocketAddr::V6(_)) => 6,
                _ => return Err(EmitError::NotInProtocol("addresses of two families")),
            };
            let at = byte(family, at, out)?;
            let at = address(route.destination, address(route.source, at, out)?, out)?;
            varint::emit(credit, at, out)?
        }
        Message::Data { stream, offset, last, .. } => {
            varint::emit(offset, start(if last { kind::LAST } else { kind::DATA }, stream, out)?, out)?
        }
        Message::Credit { stream, limit } => varint::emit(limit, start(kind::CREDIT, stream, out)?, out)?,
        Message::Reset { stream, reason } => byte(reason as u8, start(kind::RESET, stream, out)?, out)?,
    };
    append(body, end, out)
}

/// Length in bytes of a message with its payload; `None` where [`emit`] fails.
pub fn len(message: &Message) -> Option<usize> {
    let payload = message.payload() as usize;
    // The header is the same whatever the payload is.
    let bare = match *message {
        Message::Open { stream, route, credit, .. } => Message::Open { stream, route, credit, len: 0 },
        Message::Data { stream, offset, last, .. } => Message::Data { stream, offset, len: 0, last },
        other => other,
    };
    let mut header = [0; MAX_HEADER];
    emit(&bare, &[], &mut header).ok().map(|header| header + payload)
}

fn byte(value: u8, at: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let have = out.len();
    *out.get_mut(at).ok_or(EmitError::NoRoom { needed: at + 1, have })? = value;
    Ok(at + 1)
}

fn start(kind: u8, stream: StreamId, out: &mut [u8]) -> Result<usize, EmitError> {
    varint::emit(stream.0, byte(kind, 0, out)?, out)
}

fn address(address: SocketAddr, at: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let at = match address.ip() {
        IpAddr::V4(ip) => append(&[&ip.octets()], at, out)?,
        IpAddr::V6(ip) => append(&[&ip.octets()], at, out)?,
    };
    append(&[&address.port().to_be_bytes()], at, out)
}

/// Reads a message; returns it and the position of its payload.
///
/// # Errors
/// Returns [`MuxError`] for another version, an unknown kind, a truncated message, or a length or number that the protocol does not allow.
pub fn parse(from: &[u8]) -> Result<(Message, Range<usize>), MuxError> {
    let [kind] = bytes::<1>(from, 0)?;
    let (first, at) = varint::parse(from, 1)?;
    let stream = StreamId(first);
    let (message, end) = match kind {
        kind::HELLO if first != VERSION => return Err(MuxError::Version(first)),
        kind::HELLO => {
            let (credit, at) = varint::parse(from, at)?;
            let (streams, at) = varint::parse(from, at)?;
            let streams = u32::try_from(streams).map_err(|_| MuxError::Streams(streams))?;
            (Message::Hello { credit, streams }, at)
        }
        kind::OPEN => {
            let [family] = bytes::<1>(from, at)?;
            let (source, at) = read_address(family, from, at + 1)?;
            let (destination, at) = read_address(family, from, at)?;
            let (credit, at) = varint::parse(from, at)?;
            let len = (from.len() - at) as u32;
            (Message::Open { stream, route: Route { source, destination }, credit, len }, at)
        }
        kind::DATA | kind::LAST => {
            let (offset, at) = varint::parse(from, at)?;
            let (len, last) = ((from.len() - at) as u32, kind == kind::LAST);
            if len == 0 && !last {
                return Err(MuxError::Length(0));
            }
            if offset + u64::from(len) > varint::MAX {
                return Err(MuxError::Offset(offset + u64::from(len)));
            }
            (Message::Data { stream, offset, len, last }, at)
        }
        kind::CREDIT => {
            let (limit, at) = varint::parse(from, at)?;
            (Message::Credit { stream, limit }, at)
        }
        kind::RESET => {
            let [reason] = bytes::<1>(from, at)?;
            let reason = Reason::from_wire(reason).ok_or(MuxError::Reason(reason))?;
            (Message::Reset { stream, reason }, at + 1)
        }
        other => return Err(MuxError::Type(other)),
    };
    match from.len() - end {
        rest if rest == message.payload() as usize => Ok((message, end..from.len())),
        rest => Err(MuxError::Length(rest)),
    }
}

fn read_address(family: u8, from: &[u8], at: usize) -> Result<(SocketAddr, usize), MuxError> {
    let (ip, at): (IpAddr, usize) = match family {
        4 => (bytes::<4>(from, at)?.into(), at + 4),
        6 => (bytes::<16>(from, at)?.into(), at + 16),
        other => return Err(MuxError::Family(other)),
    };
    Ok((SocketAddr::new(ip, u16::from_be_bytes(bytes(from, at)?)), at + 2))
}

#[cfg(test)]
mod tests;
