//! S-LACP frames on the wire; `docs/specs/slacp.md` has every byte.
//!
//! ```text
//! data     version|type  channel  length(2)  number(4)  time(4)  packet(4)  behind(2)  floor(2)         bytes  CRC(4)
//! repair   version|type  channel  length(2)  number(4)  time(4)  first(4)   count 7, index 7, floor 18  bytes  CRC(4)
//! sync     version|type  channel             number(4)  time(4)  floor(4)                                      CRC(4)
//! report   version|type  0        length(2)  newest(4)  time(4)  delay(4)                               bitmap CRC(4)
//! ```
//!
//! Numbers have 32 bits and are extended to those near the numbers that the reader expects ([`Near`]); a floor is
//! written as a distance. Each frame has exactly one encoding: what [`parse`] accepts, [`emit`] writes again bit by
//! bit. The CRC-32 detects every error of up to three bits and every burst of up to 32 bits in a frame; it does not
//! protect against forgery.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::seq::{Numbering, SeqNumber};
use super::{EmitError, WireError, append, bytes, u16_at, u32_at};
use crate::units::Duration;

mod frame;
mod report;

pub use frame::{DATA_HEADER, Frame, PROTECTED_HEADER};
pub(crate) use frame::{MAX_BLOCK, MAX_REPAIRS, REPAIR_HEADER, SYNC_LEN};
pub use report::Report;

/// The version that this file reads and writes.
const VERSION: u8 = 1;
/// Bytes before a packet, a symbol or a bitmap, and those of the CRC after it.
const HEADER: usize = 20;
const REPORT: usize = 16;
const CRC_LEN: usize = Integrity::Crc.trailer();
/// Bytes of a sync frame.
const SYNC: usize = SYNC_LEN as usize;
/// Bytes of a word of a bitmap, and the maximum number of words: as far as a receiver's record goes back.
const WORD: usize = 8;
const MAX_WORDS: usize = Report::MAX_WORDS;
/// Bits of a repair frame's distance from its first packet to the floor, which may lie on either side.
const FLOOR_BITS: u32 = 18;

/// There is no handshake: both ends count from 0.
const COUNT: Numbering = Numbering::from_isn(0);

mod kind {
    pub(super) const DATA: u8 = 0;
    pub(super) const REPAIR: u8 = 1;
    pub(super) const SYNC: u8 = 2;
    pub(super) const REPORT: u8 = 3;
}

/// Why bytes are not an S-LACP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlacpError {
    /// Fewer bytes than any frame has, or a wrong CRC.
    Wire(WireError),
    /// Another version of the protocol.
    Version(u8),
    /// A type that this version does not have.
    Type(u8),
    /// The length field does not match the length of the frame.
    Length {
        /// Bytes of packet, symbol or bitmap that the header announces.
        said: usize,
        /// Bytes that are present.
        have: usize,
    },
    /// A channel that this end does not have, or a channel in a frame without one.
    Channel(u8),
    /// A number or distance that leads below the first number.
    BelowFirst,
}

impl From<WireError> for SlacpError {
    fn from(error: WireError) -> Self {
        SlacpError::Wire(error)
    }
}

impl fmt::Display for SlacpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SlacpError::Wire(error) => error.fmt(f),
            SlacpError::Version(version) => write!(f, "S-LACP version {version} instead of {VERSION}"),
            SlacpError::Type(kind) => write!(f, "unknown type {kind} of S-LACP frame"),
            SlacpError::Length { said, have } => write!(f, "{have} bytes where the header announces {said}"),
            SlacpError::Channel(channel) => write!(f, "no channel {channel} here"),
            SlacpError::BelowFirst => f.write_str("a number before the first"),
        }
    }
}

impl core::error::Error for SlacpError {}

/// How a damaged frame is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The CRC that each frame ends with.
    Crc,
    /// By the layer that carries the frames: they end without a CRC.
    Below,
}

impl Integrity {
    /// Bytes of the trailer.
    pub const fn trailer(self) -> usize {
        match self {
            Integrity::Crc => 4,
            Integrity::Below => 0,
        }
    }
}

/// The numbers near which the 32-bit numbers of a frame are extended.
#[derive(Clone, Copy, Debug)]
pub struct Near<F> {
    /// The newest transmission received from the peer.
    pub received: u64,
    /// Our next transmission.
    pub next: u64,
    /// The next packet expected in a channel; `None` if there is no such channel.
    pub packet: F,
}

/// A frame that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The frame.
    pub frame: Frame,
    /// The sender's clock when it began to send, in microseconds modulo 2^32.
    pub time: u32,
    /// Position of the bytes of the packet or symbol.
    pub body: Range<usize>,
}

/// Writes a frame with the bytes of its packet or symbol, in pieces; returns its length: [`Frame::wire_len`] minus
/// what [`Integrity`] saves. A report's delay is written in microseconds, at most 2^32 - 1.
///
/// # Errors
/// Returns [`EmitError::NoRoom`] if `out` is too small, [`EmitError::PayloadLength`] if the pieces are not as long as the frame says,
/// [`EmitError::TooLong`] above 65535 bytes, and [`EmitError::NotInProtocol`] for a distance that does not fit its field. A driver may
/// treat such a frame as lost on the line.
pub fn emit(
    frame: &Frame,
    time: u32,
    body: &[&[u8]],
    integrity: Integrity,
    out: &mut [u8],
) -> Result<usize, EmitError> {
    let (needed, have) = (frame.wire_len() as usize - CRC_LEN + integrity.trailer(), out.len());
    let out = out.get_mut(..needed).ok_or(EmitError::NoRoom { needed, have })?;
    let end = match frame {
        Frame::Data { channel, number, seq, behind, floor, len } => {
            let behind = distance(u64::from(*behind))?;
            let floor = distance(seq.checked_sub(*floor).ok_or(EmitError::NotInProtocol("a floor above its packet"))?)?;
            start(out, kind::DATA, *channel, length(*len, body)?);
            put(out, 4, &COUNT.wrap(*number).0.to_be_bytes());
            put(out, 8, &time.to_be_bytes());
            put(out, 12, &COUNT.wrap(*seq).0.to_be_bytes());
            put(out, 16, &behind.to_be_bytes());
            put(out, 18, &floor.to_be_bytes());
            append(body, HEADER, out)?
        }
        Frame::Repair { channel, number, first, count, index, floor, len } => {
            let beyond = EmitError::NotInProtocol("a block of that shape, or so far from the floor");
            let floor = floor.wrapping_sub(*first) as i64;
            if !(1..=MAX_BLOCK).contains(count) || *index >= MAX_REPAIRS || !fits(floor) {
                return Err(beyond);
            }
            start(out, kind::REPAIR, *channel, length(*len, body)?);
            put(out, 4, &COUNT.wrap(*number).0.to_be_bytes());
            put(out, 8, &time.to_be_bytes());
            put(out, 12, &COUNT.wrap(*first).0.to_be_bytes());
            let floor = floor as u32 & ((1 << FLOOR_BITS) - 1);
            let word = u32::from(count - 1) << (FLOOR_BITS + 7) | u32::from(*index) << FLOOR_BITS | floor;
            put(out, 16, &word.to_be_bytes());
            append(body, HEADER, out)?
        }
        Frame::Sync { channel, number, floor } => {
            length(0, body)?;
            (out[0], out[1]) = (VERSION << 4 | kind::SYNC, *channel);
            put(out, 2, &COUNT.wrap(*number).0.to_be_bytes());
            put(out, 6, &time.to_be_bytes());
            put(out, 10, &COUNT.wrap(*floor).0.to_be_bytes());
            SYNC - CRC_LEN
        }
        Frame::Report(report) => {
            length(0, body)?;
            if !(1..=MAX_WORDS).contains(&report.bits.len()) {
                return Err(EmitError::NotInProtocol("a bitmap of that length"));
            }
            start(out, kind::REPORT, 0, (report.bits.len() * WORD) as u16);
            put(out, 4, &COUNT.wrap(report.newest).0.to_be_bytes());
            put(out, 8, &time.to_be_bytes());
            let delay = u32::try_from(report.delay.as_nanos() / 1000).unwrap_or(u32::MAX);
            put(out, 12, &delay.to_be_bytes());
            for (at, word) in (REPORT..).step_by(WORD).zip(&report.bits) {
                put(out, at, &word.to_be_bytes());
            }
            REPORT + report.bits.len() * WORD
        }
    };
    if integrity == Integrity::Crc {
        let sum = crc32fast::hash(&out[..end]);
        put(out, end, &sum.to_be_bytes());
    }
    Ok(end + integrity.trailer())
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

fn start(out: &mut [u8], kind: u8, channel: u8, length: u16) {
    (out[0], out[1]) = (VERSION << 4 | kind, channel);
    put(out, 2, &length.to_be_bytes());
}

fn length(said: u32, body: &[&[u8]]) -> Result<u16, EmitError> {
    let (expected, have) = (said as usize, body.iter().map(|piece| piece.len()).sum());
    if expected != have {
        return Err(EmitError::PayloadLength { expected, have });
    }
    u16::try_from(said).map_err(|_| EmitError::TooLong(expected))
}

fn distance(distance: u64) -> Result<u16, EmitError> {
    u16::try_from(distance).map_err(|_| EmitError::NotInProtocol("a distance above 65535"))
}

fn fits(floor: i64) -> bool {
    let half = 1 << (FLOOR_BITS - 1);
    (-half..half).contains(&floor)
}

/// Reads a frame.
///
/// # Errors
/// Returns [`SlacpError`]. Another version, truncation and a wrong CRC only show that the frame is damaged or not S-LACP; other errors
/// are mistakes of the peer.
pub fn parse(
    frame: &[u8],
    near: &Near<impl Fn(u8) -> Option<u64>>,
    integrity: Integrity,
) -> Result<Parsed, SlacpError> {
    let [kind, channel]: [u8; 2] = bytes(frame, 0)?;
    if kind >> 4 != VERSION {
        return Err(SlacpError::Version(kind >> 4));
    }
    let needed = SYNC - CRC_LEN + integrity.trailer();
    if frame.len() < needed {
        return Err(WireError::Truncated { needed, have: frame.len() }.into());
    }
    let (text, sum) = frame.split_at(frame.len() - integrity.trailer());
    if integrity == Integrity::Crc && crc32fast::hash(text).to_be_bytes() != sum {
        return Err(WireError::Checksum.into());
    }
    match kind & 0x0f {
        kind::DATA => data(text, channel, near),
        kind::REPAIR => repair(text, channel, near),
        kind::SYNC => sync(text, channel, near),
        kind::REPORT if channel == 0 => report(text, near),
        kind::REPORT => Err(SlacpError::Channel(channel)),
        other => Err(SlacpError::Type(other)),
    }
}

/// The position of the bytes after a header, if there are as many as the header says.
fn body(text: &[u8], header: usize) -> Result<Range<usize>, SlacpError> {
    let said = usize::from(u16_at(text, 2)?);
    let have = text.len().checked_sub(header).ok_or(WireError::Truncated { needed: header, have: text.len() })?;
    if said == have { Ok(header..text.len()) } else { Err(SlacpError::Length { said, have }) }
}

/// The number near another one; fails for numbers below 0.
fn number(wire: u32, near: u64) -> Result<u64, SlacpError> {
    let number = COUNT.unwrap(SeqNumber(wire), near);
    // A valid number is at most 2^31 away. One below 0 has wrapped and is far above.
    if number > near.saturating_add(1 << 31) { Err(SlacpError::BelowFirst) } else { Ok(number) }
}

fn packet(wire: u32, channel: u8, near: &Near<impl Fn(u8) -> Option<u64>>) -> Result<u64, SlacpError> {
    number(wire, (near.packet)(channel).ok_or(SlacpError::Channel(channel))?)
}

fn data(text: &[u8], channel: u8, near: &Near<impl Fn(u8) -> Option<u64>>) -> Result<Parsed, SlacpError> {
    let body = body(text, HEADER)?;
    let seq = packet(u32_at(text, 12)?, channel, near)?;
    let behind = u32::from(u16_at(text, 16)?);
    let floor = seq.checked_sub(u64::from(u16_at(text, 18)?)).ok_or(SlacpError::BelowFirst)?;
    if u64::from(behind) > seq {
        return Err(SlacpError::BelowFirst);
    }
    let number = number(u32_at(text, 4)?, near.received)?;
    let frame = Frame::Data { channel, number, seq, behind, floor, len: body.len() as u32 };
    Ok(Parsed { frame, time: u32_at(text, 8)?, body })
}

fn repair(text: &[u8], channel: u8, near: &Near<impl Fn(u8) -> Option<u64>>) -> Result<Parsed, SlacpError> {
    let body = body(text, HEADER)?;
    let first = packet(u32_at(text, 12)?, channel, near)?;
    let word = u32_at(text, 16)?;
    // Shifted up and down again, the sign fills what is above it.
    let floor = i64::from((word << (32 - FLOOR_BITS)) as i32 >> (32 - FLOOR_BITS));
    let floor = first.checked_add_signed(floor).ok_or(SlacpError::BelowFirst)?;
    let (count, index) = ((word >> (FLOOR_BITS + 7)) as u8 + 1, (word >> FLOOR_BITS) as u8 & 0x7f);
    let number = number(u32_at(text, 4)?, near.received)?;
    let frame = Frame::Repair { channel, number, first, count, index, floor, len: body.len() as u32 };
    Ok(Parsed { frame, time: u32_at(text, 8)?, body })
}

fn sync(text: &[u8], channel: u8, near: &Near<impl Fn(u8) -> Option<u64>>) -> Result<Parsed, SlacpError> {
    let end = SYNC - CRC_LEN;
    if text.len() != end {
        return Err(SlacpError::Length { said: 0, have: text.len() - end });
    }
    let floor = packet(u32_at(text, 10)?, channel, near)?;
    let number = number(u32_at(text, 2)?, near.received)?;
    Ok(Parsed { frame: Frame::Sync { channel, number, floor }, time: u32_at(text, 6)?, body: end..end })
}

fn report(text: &[u8], near: &Near<impl Fn(u8) -> Option<u64>>) -> Result<Parsed, SlacpError> {
    let bitmap = body(text, REPORT)?;
    let (words, rest) = text[bitmap.clone()].as_chunks::<WORD>();
    if !rest.is_empty() || !(1..=MAX_WORDS).contains(&words.len()) {
        return Err(SlacpError::Length { said: words.len() * WORD, have: bitmap.len() });
    }
    let newest = number(u32_at(text, 4)?, near.next)?;
    let bits: Vec<u64> = words.iter().map(|&word| u64::from_be_bytes(word)).collect();
    let last = bits.len() as u64 - 1;
    // Bit i of the last word is number `newest - 64 last - i`.
    let room = newest.checked_sub(64 * last).ok_or(SlacpError::BelowFirst)?;
    if room < 63 && bits[last as usize] >> (room + 1) != 0 {
        return Err(SlacpError::BelowFirst);
    }
    let delay = Duration::from_micros(u64::from(u32_at(text, 12)?));
    let end = bitmap.end;
    Ok(Parsed { frame: Frame::Report(Report { newest, delay, bits }), time: u32_at(text, 8)?, body: end..end })
}

#[cfg(test)]
mod tests;
