//! TCP segments (RFC 9293 §3.1) with the options of RFC 2018, RFC 2883, RFC 7323 and RFC 9768.
//!
//! A [`Segment`] has 64-bit offsets, windows in bytes and SACK blocks in the same numbering; on the wire there are
//! 32-bit numbers from two initial sequence numbers, and windows shifted by the negotiated scale. [`Translation`] is
//! one end's state for converting between the two.
//!
//! Options are laid out as Linux and the BSDs do, each on a 4-byte boundary with NOPs before it, and take the bytes
//! that [`Segment::options_len`] counts. Not implemented: urgent data, all other options (skipped when read). The
//! ECN field is the IP header's ([`Ecn`](super::ecn::Ecn)); the caller writes and reads it.

use core::ops::Range;

use super::ip::{Addresses, Ports, TCP};
use super::seq::{Numbering, SeqNumber};
use super::{EmitError, WireError, append, bytes, u16_at, u32_at};

mod marked;
pub(crate) mod segment;

pub(crate) use marked::option_len as marked_option_len;
pub use marked::{CYCLE as MARKED_CYCLE, MarkedBytes, Order as MarkedOrder};
pub use segment::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, SackBlocks, Segment, SynOptions, Timestamps};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Max bytes of options: the data offset has four bits.
pub const MAX_OPTIONS: usize = 40;
/// Largest shift of a window (RFC 7323 §2.3).
const MAX_WINDOW_SHIFT: u8 = 14;

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// The connection's position, to select among offsets with the same 32-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Near {
    /// Next sequence number expected from the peer.
    pub rcv_nxt: u64,
    /// First sequence number that the peer has not acknowledged.
    pub snd_una: u64,
}

/// One end's state for translating its connection to and from the wire.
///
/// [`emit`](Self::emit) stores the window scale of our SYN. Only [`synchronize`](Self::synchronize) stores the peer's
/// initial sequence number and scale, once the connection has accepted its SYN. For a connection whose handshake was
/// not observed, set the fields.
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
    /// Rcv.Wind.Shift: the window scale that our SYN offered, at most 14 (RFC 7323 §2.3).
    pub our_scale: Option<u8>,
    /// Snd.Wind.Shift: the window scale that the peer's SYN offered, at most 14.
    pub peer_scale: Option<u8>,
}

impl Translation {
    /// A connection that has not sent anything, with our initial sequence number.
    pub const fn new(addresses: Addresses, ports: Ports, iss: u32) -> Self {
        let iss = Numbering::from_isn(iss);
        Translation { addresses, ports, iss, irs: None, our_scale: None, peer_scale: None }
    }

    /// True if a segment between these two is from the peer to us.
    pub fn is_for_us(&self, addresses: &Addresses, ports: Ports) -> bool {
        *addresses == self.addresses.reversed() && ports == self.ports.reversed()
    }

    /// Shift of the windows that we send: none unless both SYNs had the option (RFC 7323 §2.2).
    pub fn send_shift(&self) -> u8 {
        self.peer_scale.and(self.our_scale).unwrap_or(0)
    }

    /// Shift of the windows that the peer sends.
    fn receive_shift(&self) -> u8 {
        self.our_scale.and(self.peer_scale).unwrap_or(0)
    }

    /// Writes the segment with its payload, given in pieces; returns the length.
    ///
    /// The window is rounded down to the scale's unit. A SYN's window scale is stored.
    ///
    /// # Errors
    /// Returns [`EmitError::OptionsTooLong`], [`EmitError::NoRoom`], or [`EmitError::PayloadLength`] if the pieces do
    /// not add up to `segment.len`.
    pub fn emit(&mut self, segment: &Segment, payload: &[&[u8]], out: &mut [u8]) -> Result<usize, EmitError> {
        let (expected, have) = (usize::from(segment.len), payload.iter().map(|piece| piece.len()).sum());
        if expected != have {
            return Err(EmitError::PayloadLength { expected, have });
        }
        let header = self.header(segment, out)?;
        let total = append(payload, header, out)?;
        let out = &mut out[..total];
        let sum = self.addresses.pseudo_header(TCP, total).bytes(out).finish();
        out[16..18].copy_from_slice(&sum.to_be_bytes());
        Ok(total)
    }

    /// The header, its checksum still zero.
    fn header(&mut self, segment: &Segment, out: &mut [u8]) -> Result<usize, EmitError> {
        let options = segment.options_len();
        if options as usize > MAX_OPTIONS {
            return Err(EmitError::OptionsTooLong(options));
        }
        let length = HEADER + options as usize;
        let have = out.len();
        let out = out.get_mut(..length).ok_or(EmitError::NoRoom { needed: length, have })?;
        let is_syn = segment.flags.has(Flags::SYN);
        if is_syn {
            self.our_scale = segment.syn.window_scale;
        }
        let ack = match self.irs {
            Some(irs) if segment.flags.has(Flags::ACK) => irs.wrap(segment.ack).0,
            _ => 0,
        };
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let shift = if is_syn { 0 } else { self.send_shift() };
        let window = u16::try_from(segment.window >> shift).unwrap_or(u16::MAX);
        out[0..2].copy_from_slice(&self.ports.source.to_be_bytes());
        out[2..4].copy_from_slice(&self.ports.destination.to_be_bytes());
        out[4..8].copy_from_slice(&self.iss.wrap(segment.seq).0.to_be_bytes());
        out[8..12].copy_from_slice(&ack.to_be_bytes());
        out[12] = (length as u8 / 4) << 4 | u8::from(segment.flags.has(Flags::AE));
        out[13] = segment.flags.bits();
        out[14..16].copy_from_slice(&window.to_be_bytes());
        // Checksum to come, urgent pointer unused.
        out[16..20].fill(0);
        let written = self.write_options(segment, ack, &mut out[HEADER..]);
        debug_assert_eq!(written, options as usize, "options_len() is what is written");
        Ok(length)
    }

    /// Options in the order of Linux; `out` has room for all. Returns their length.
    fn write_options(&self, segment: &Segment, ack: u32, out: &mut [u8]) -> usize {
        use kind::{MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};
        let mut at = 0;
        let mut put = |piece: &[u8]| {
            out[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        };
        if let Some(mss) = segment.syn.mss {
            put(&[MSS, 4]);
            put(&mss.to_be_bytes());
        }
        match (segment.timestamps, segment.syn.sack_permitted) {
            (Some(_), true) => put(&[SACK_PERMITTED, 2]),
            (Some(_), false) => put(&[NOP, NOP]),
            (None, true) => put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (None, false) => {}
        }
        if let Some(Timestamps { value, echo }) = segment.timestamps {
            put(&[TIMESTAMPS, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(shift) = segment.syn.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if !segment.sack.is_empty() {
            put(&[NOP, NOP, SACK, 2 + 8 * segment.sack.len() as u8]);
            // The blocks refer to the same direction as the acknowledgement number, so they share its numbering.
            let numbering = Numbering(SeqNumber(ack));
            for (start, end) in segment.sack.iter(0) {
                put(&numbering.wrap(start).0.to_be_bytes());
                put(&numbering.wrap(end).0.to_be_bytes());
            }
        }
        if let Some(bytes) = segment.marked_bytes() {
            let len = 2 + 3 * bytes.len();
            (len..len.next_multiple_of(4)).for_each(|_| put(&[NOP]));
            put(&[bytes.order().kind(), len as u8]);
            bytes.counters().for_each(|counter| put(&counter.to_be_bytes()[1..]));
        }
        at
    }

    /// Reads a segment from the peer; the range is the position of its payload in `bytes`. Does not change the state.
    ///
    /// Before the peer's initial sequence number is known, a segment's sequence number is read as 0. SYN options on
    /// other segments and empty SACK blocks are ignored.
    ///
    /// # Errors
    /// Fails on truncation, an impossible data offset or option length, or a wrong checksum.
    pub fn parse(&self, bytes: &[u8], near: Near) -> Result<(Segment, Range<usize>), WireError> {
        let fixed: [u8; HEADER] = super::bytes(bytes, 0)?;
        let header = usize::from(fixed[12] >> 4) * 4;
        if header < HEADER {
            return Err(WireError::HeaderLength(header));
        }
        if bytes.len() < header {
            return Err(WireError::Truncated { needed: header, have: bytes.len() });
        }
        let len = u16::try_from(bytes.len() - header).map_err(|_| WireError::PayloadLength(bytes.len() - header))?;
        if self.addresses.reversed().pseudo_header(TCP, bytes.len()).bytes(bytes).finish() != 0 {
            return Err(WireError::Checksum);
        }
        let accurate = if fixed[12] & 1 != 0 { Flags::AE } else { Flags::NONE };
        let flags = Flags::from_bits_truncate(fixed[13]) | accurate;
        let (is_syn, is_ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
        let seq = SeqNumber(u32_at(&fixed, 4)?);
        let ack = SeqNumber(u32_at(&fixed, 8)?);
        let mut segment = Segment { len, ..Segment::new(flags) };
        if is_ack {
            segment.ack = self.iss.unwrap(ack, near.snd_una);
        }
        read_options(&bytes[HEADER..header], ack, &mut segment)?;
        if !is_syn {
            segment.syn = SynOptions::default();
        }
        segment.seq = self.irs.map_or(0, |irs| irs.unwrap(seq, near.rcv_nxt));
        segment.window = u32::from(u16_at(&fixed, 14)?) << if is_syn { 0 } else { self.receive_shift() };
        Ok((segment, header..bytes.len()))
    }

    /// Stores the peer's initial sequence number and window scale from its SYN, which [`parse`](Self::parse) has read
    /// from `bytes` as `syn` and the connection has accepted.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] if `bytes` is not that segment.
    pub fn synchronize(&mut self, bytes: &[u8], syn: &Segment) -> Result<(), WireError> {
        self.irs = Some(Numbering(SeqNumber(u32_at(bytes, 4)?)));
        self.peer_scale = syn.syn.window_scale;
        Ok(())
    }
}

/// Reads the options into the segment; `ack` is its acknowledgement number on the wire.
fn read_options(mut options: &[u8], ack: SeqNumber, segment: &mut Segment) -> Result<(), WireError> {
    loop {
        let (kind, rest) = match options {
            [] | [kind::END, ..] => return Ok(()),
            [kind::NOP, rest @ ..] => {
                options = rest;
                continue;
            }
            [kind, rest @ ..] => (*kind, rest),
        };
        let length = rest.first().copied().unwrap_or(0);
        let wrong = WireError::OptionLength { kind, length };
        // The length includes kind and length; 0 and 1 would never advance.
        if length < 2 {
            return Err(wrong);
        }
        let (option, after) = options.split_at_checked(usize::from(length)).ok_or(wrong)?;
        let body = &option[2..];
        match kind {
            kind::MSS => segment.syn.mss = Some(exact(body, wrong).map(u16::from_be_bytes)?),
            kind::WINDOW_SCALE => {
                // RFC 7323 §2.3: a larger shift counts as 14.
                segment.syn.window_scale = Some(exact(body, wrong).map(|[shift]: [u8; 1]| shift.min(MAX_WINDOW_SHIFT))?)
            }
            kind::SACK_PERMITTED => {
                exact::<0>(body, wrong)?;
                segment.syn.sack_permitted = true;
            }
            kind::TIMESTAMPS => {
                exact::<8>(body, wrong)?;
                segment.timestamps = Some(Timestamps { value: u32_at(body, 0)?, echo: u32_at(body, 4)? });
            }
            kind::SACK => read_sack(body, wrong, ack, &mut segment.sack)?,
            //= RFC 9768 §3.2.3.2.1: on a SYN it is ignored
            kind if segment.flags.has(Flags::ACK) => {
                if let Some(order) = MarkedOrder::of(kind) {
                    segment.set_marked_bytes(&MarkedBytes::read(order, body));
                }
            }
            _ => {}
        }
        options = after;
    }
}

fn read_sack(body: &[u8], wrong: WireError, ack: SeqNumber, sack: &mut SackBlocks) -> Result<(), WireError> {
    let (blocks, rest) = body.as_chunks::<8>();
    if blocks.is_empty() || !rest.is_empty() {
        return Err(wrong);
    }
    sack.clear();
    for block in blocks {
        let edge = |at| bytes(block, at).map(|edge| SeqNumber(u32::from_be_bytes(edge)));
        let (start, end) = (edge(0)?, edge(4)?);
        if end.distance_from(start) > 0 {
            // Relative to 0, a block's edges are their distances from the acknowledgement number.
            let offset = |edge: SeqNumber| edge.distance_from(ack) as i64 as u64;
            sack.push(0, offset(start), offset(end));
        }
    }
    Ok(())
}

/// An option's body of exactly `N` bytes.
fn exact<const N: usize>(body: &[u8], wrong: WireError) -> Result<[u8; N], WireError> {
    body.try_into().map_err(|_| wrong)
}

#[cfg(test)]
mod tests;
