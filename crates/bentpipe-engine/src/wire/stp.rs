//! Segments of ESA's Satellite Transport Protocol on the wire.
//!
//! The papers give the length of STP's header, 20 bytes, and its content: sequence numbers, cumulative and selective
//! acknowledgements and an advertised window. They give no layout; this one is ours, described in `docs/specs/stp.md`:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                     acknowledgement number                    |
//! +---------------------------------------------------------------+
//! |                        window in bytes                        |
//! +-------+-------+-----+-+-+-+-+-+-------------------------------+
//! | vers 1| words |0 0 0|A|P|R|S|F|           checksum            |
//! +-------+-------+-----+-+-+-+-+-+-------------------------------+
//! ```
//!
//! At most one option follows: the segment size in a SYN, or SACK blocks. Every accepted segment has exactly one
//! encoding: [`Translation::emit`] writes it again bit by bit. Everything else is refused with a specific error.

use core::fmt;
use core::ops::Range;

use super::ip::{Addresses, Ports};
use super::seq::{Numbering, SeqNumber};
use super::tcp::{Flags, MAX_SACK_BLOCKS, Near, SackBlocks, Segment, SynOptions};
use super::{EmitError, WireError, append, bytes, u32_at};

/// IP protocol number of STP here: one of the two for experiments (RFC 3692 §2.1), because IANA has assigned none.
pub const PROTOCOL: u8 = 253;
/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Max header length: with four SACK blocks.
pub const MAX_HEADER: usize = HEADER + OPTION_HEADER + BLOCK * MAX_SACK_BLOCKS;

/// The version that this file reads and writes.
const VERSION: u8 = 1;
/// Kind and length of an option, and two bytes of its own.
const OPTION_HEADER: usize = 4;
const BLOCK: usize = 8;

/// Kinds of options, numbered as TCP's.
mod kind {
    pub(super) const SEGMENT_SIZE: u8 = 2;
    pub(super) const SACK: u8 = 5;
}

/// Why bytes are not an STP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StpError {
    /// Inconsistent lengths, or a wrong checksum.
    Wire(WireError),
    /// Another version of the protocol.
    Version(u8),
    /// Invalid flags, or an invalid combination.
    Flags(u8),
    /// The payload does not match the flags: data in a SYN or a reset, or PSH without data.
    Payload(usize),
    /// An acknowledgement number without [`Flags::ACK`].
    Acknowledgement(u32),
    /// An option where none is allowed, a missing one, or non-zero bytes that must be zero.
    Option {
        /// Its kind; 0 for one that is missing.
        kind: u8,
    },
    /// A SACK block that ends before it begins.
    Block {
        /// Its first number.
        start: u32,
        /// The number after its last one.
        end: u32,
    },
}

impl From<WireError> for StpError {
    fn from(error: WireError) -> Self {
        StpError::Wire(error)
    }
}

impl fmt::Display for StpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StpError::Wire(error) => error.fmt(f),
            StpError::Version(version) => write!(f, "STP version {version} instead of {VERSION}"),
            StpError::Flags(bits) => write!(f, "impossible flags {bits:#04x}"),
            StpError::Payload(length) => write!(f, "payload of {length} bytes does not go with the flags"),
            StpError::Acknowledgement(ack) => write!(f, "acknowledgement number {ack} without its flag"),
            StpError::Option { kind } => write!(f, "STP option {kind} out of place or malformed"),
            StpError::Block { start, end } => write!(f, "SACK block {start}..{end} is empty"),
        }
    }
}

impl core::error::Error for StpError {}

/// One end's state for translating its connection to and from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// From us to the peer.
    pub addresses: Addresses,
    /// Our port as the source, the peer's as the destination.
    pub ports: Ports,
    /// Our initial sequence number.
    pub iss: Numbering,
    /// The peer's, once its SYN has arrived.
    pub irs: Option<Numbering>,
}

impl Translation {
    /// A connection that has not sent anything, with our initial sequence number.
    pub const fn new(addresses: Addresses, ports: Ports, iss: u32) -> Self {
        Translation { addresses, ports, iss: Numbering::from_isn(iss), irs: None }
    }

    /// True if a segment between these two is from the peer to us.
    pub fn is_for_us(&self, addresses: &Addresses, ports: Ports) -> bool {
        *addresses == self.addresses.reversed() && ports == self.ports.reversed()
    }

    /// Writes the segment with its payload, given in pieces; returns the length.
    ///
    /// # Errors
    /// Returns [`EmitError::NoRoom`], [`EmitError::PayloadLength`] if the pieces do not add up to `segment.len`, or
    /// [`EmitError::NotInProtocol`] for timestamps and window scaling, which STP does not have.
    pub fn emit(&self, segment: &Segment, payload: &[&[u8]], out: &mut [u8]) -> Result<usize, EmitError> {
        let (expected, have) = (usize::from(segment.len), payload.iter().map(|piece| piece.len()).sum());
        if expected != have {
            return Err(EmitError::PayloadLength { expected, have });
        }
        let header = self.header(segment, out)?;
        let total = append(payload, header, out)?;
        let sum = self.addresses.pseudo_header(PROTOCOL, total).bytes(&out[..total]).finish();
        out[18..20].copy_from_slice(&sum.to_be_bytes());
        Ok(total)
    }

    /// The header, its checksum still zero.
    fn header(&self, segment: &Segment, out: &mut [u8]) -> Result<usize, EmitError> {
        let Segment { seq, ack, window, flags, syn, timestamps, sack, .. } = *segment;
        if timestamps.is_some() || syn.window_scale.is_some() || syn.sack_permitted {
            return Err(EmitError::NotInProtocol("timestamps, window scale or SACK-permitted"));
        }
        if syn.mss.is_some() != flags.has(Flags::SYN) {
            return Err(EmitError::NotInProtocol("a SYN without segment size, or a segment size without SYN"));
        }
        if !sack.is_empty() && (flags.has(Flags::SYN) || !flags.has(Flags::ACK)) {
            return Err(EmitError::NotInProtocol("SACK blocks in a SYN or without an acknowledgement"));
        }
        let length = HEADER + segment.options_len() as usize;
        let have = out.len();
        let out = out.get_mut(..length).ok_or(EmitError::NoRoom { needed: length, have })?;
        let ack = match self.irs {
            Some(irs) if flags.has(Flags::ACK) => irs.wrap(ack),
            _ => SeqNumber(0),
        };
        out[0..2].copy_from_slice(&self.ports.source.to_be_bytes());
        out[2..4].copy_from_slice(&self.ports.destination.to_be_bytes());
        out[4..8].copy_from_slice(&self.iss.wrap(seq).0.to_be_bytes());
        out[8..12].copy_from_slice(&ack.0.to_be_bytes());
        out[12..16].copy_from_slice(&window.to_be_bytes());
        out[16] = VERSION << 4 | (length / 4) as u8;
        out[17] = flags.bits();
        out[18..20].fill(0);
        let option = &mut out[HEADER..];
        if let Some(mss) = syn.mss {
            option[..2].copy_from_slice(&[kind::SEGMENT_SIZE, OPTION_HEADER as u8]);
            option[2..].copy_from_slice(&mss.to_be_bytes());
        } else if !sack.is_empty() {
            option[..OPTION_HEADER].copy_from_slice(&[kind::SACK, option_len(sack.len()) as u8, 0, 0]);
            // The blocks refer to the same direction as the acknowledgement number, so they share its numbering.
            for (at, (start, end)) in option[OPTION_HEADER..].chunks_exact_mut(BLOCK).zip(sack.iter(0)) {
                at[..4].copy_from_slice(&Numbering(ack).wrap(start).0.to_be_bytes());
                at[4..].copy_from_slice(&Numbering(ack).wrap(end).0.to_be_bytes());
            }
        }
        Ok(length)
    }

    /// Reads a segment from the peer; the range is the position of its payload in `bytes`.
    ///
    /// Does not change the state: see [`synchronize`](Self::synchronize). Before the peer's initial sequence number is
    /// known, a segment's sequence number is read as 0.
    ///
    /// # Errors
    /// Fails on everything that [`Translation::emit`] could not have written: see [`StpError`].
    pub fn parse(&self, bytes: &[u8], near: Near) -> Result<(Segment, Range<usize>), StpError> {
        let fixed: [u8; HEADER] = super::bytes(bytes, 0)?;
        if fixed[16] >> 4 != VERSION {
            return Err(StpError::Version(fixed[16] >> 4));
        }
        let header = usize::from(fixed[16] & 0x0f) * 4;
        if !(HEADER..=MAX_HEADER).contains(&header) {
            return Err(WireError::HeaderLength(header).into());
        }
        if bytes.len() < header {
            return Err(WireError::Truncated { needed: header, have: bytes.len() }.into());
        }
        let payload = bytes.len() - header;
        let len = u16::try_from(payload).map_err(|_| WireError::PayloadLength(payload))?;
        if self.addresses.reversed().pseudo_header(PROTOCOL, bytes.len()).bytes(bytes).finish() != 0 {
            return Err(WireError::Checksum.into());
        }
        let flags = legal_flags(fixed[17], payload)?;
        let seq = SeqNumber(u32_at(&fixed, 4)?);
        let ack = SeqNumber(u32_at(&fixed, 8)?);
        let mut segment = Segment { len, window: u32_at(&fixed, 12)?, ..Segment::new(flags) };
        if flags.has(Flags::ACK) {
            segment.ack = self.iss.unwrap(ack, near.snd_una);
        } else if ack.0 != 0 {
            return Err(StpError::Acknowledgement(ack.0));
        }
        read_option(&bytes[HEADER..header], ack, &mut segment)?;
        segment.seq = self.irs.map_or(0, |irs| irs.unwrap(seq, near.rcv_nxt));
        Ok((segment, header..bytes.len()))
    }

    /// Stores the peer's initial sequence number from its SYN, which [`parse`](Self::parse) has read from `bytes` and
    /// the connection has accepted.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] if `bytes` is not a segment.
    pub fn synchronize(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.irs = Some(Numbering(SeqNumber(u32_at(bytes, 4)?)));
        Ok(())
    }
}

/// Bytes of a SACK option with this many blocks.
const fn option_len(blocks: usize) -> usize {
    OPTION_HEADER + BLOCK * blocks
}

/// The flags, if their combination is valid with a payload of this length.
fn legal_flags(bits: u8, payload: usize) -> Result<Flags, StpError> {
    let flags = Flags::from_bits_truncate(bits).without_ecn();
    let without_ack = bits & !Flags::ACK.bits();
    if flags.bits() != bits {
        return Err(StpError::Flags(bits));
    }
    if without_ack == Flags::SYN.bits() || without_ack == Flags::RST.bits() {
        return if payload == 0 { Ok(flags) } else { Err(StpError::Payload(payload)) };
    }
    if !flags.has(Flags::ACK) || flags.has(Flags::SYN) || flags.has(Flags::RST) {
        return Err(StpError::Flags(bits));
    }
    if flags.has(Flags::PSH) && payload == 0 {
        return Err(StpError::Payload(payload));
    }
    Ok(flags)
}

/// Parses the option after the fixed header, if the flags require one.
fn read_option(option: &[u8], ack: SeqNumber, segment: &mut Segment) -> Result<(), StpError> {
    let is_syn = segment.flags.has(Flags::SYN);
    if option.is_empty() {
        return if is_syn { Err(StpError::Option { kind: 0 }) } else { Ok(()) };
    }
    let [kind, length, own @ ..]: [u8; OPTION_HEADER] = bytes(option, 0)?;
    if usize::from(length) != option.len() {
        return Err(WireError::OptionLength { kind, length }.into());
    }
    let (blocks, rest) = option[OPTION_HEADER..].as_chunks::<BLOCK>();
    match kind {
        kind::SEGMENT_SIZE if is_syn && option.len() == OPTION_HEADER => {
            segment.syn = SynOptions { mss: Some(u16::from_be_bytes(own)), ..SynOptions::default() };
            Ok(())
        }
        kind::SACK if !is_syn && segment.flags.has(Flags::ACK) && own == [0, 0] => {
            if blocks.is_empty() || !rest.is_empty() {
                return Err(WireError::OptionLength { kind, length }.into());
            }
            segment.sack = read_blocks(blocks, ack)?;
            Ok(())
        }
        _ => Err(StpError::Option { kind }),
    }
}

fn read_blocks(blocks: &[[u8; BLOCK]], ack: SeqNumber) -> Result<SackBlocks, StpError> {
    let mut sack = SackBlocks::NONE;
    for block in blocks {
        let (start, end) = (u32_at(block, 0)?, u32_at(block, 4)?);
        if SeqNumber(end).distance_from(SeqNumber(start)) <= 0 {
            return Err(StpError::Block { start, end });
        }
        // Relative to 0, a block's edges are their distances from the acknowledgement number.
        let offset = |edge: u32| SeqNumber(edge).distance_from(ack) as i64 as u64;
        sack.push(0, offset(start), offset(end));
    }
    Ok(sack)
}

#[cfg(test)]
mod tests;
