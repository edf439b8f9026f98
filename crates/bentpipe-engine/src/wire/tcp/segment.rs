//! A TCP segment as values (RFC 9293 §3.1).
//!
//! Sequence and acknowledgement numbers are 64-bit and count from the initial sequence number: SYN is 0, the first
//! byte of data is 1. `wire::tcp` wraps them to 32 bits. The payload is a span; the driver's buffers hold the bytes.

use core::fmt;
use core::ops::BitOr;

use super::marked::{MarkedBytes, option_len};
use crate::wire::ecn::Ecn;

/// Sequence number of the first byte of data: the SYN before it occupies 0.
pub const FIRST_BYTE: u64 = 1;

/// Control bits. The ninth, AE, is stored in the bit of URG, which is not implemented.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

/// The bit of URG.
const URG: u8 = 0x20;

impl Flags {
    /// No control bit.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// ECN-Echo: a mark has arrived; in a SYN, ECN is supported (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced: the sender has reacted to ECN-Echo (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);
    /// Accurate ECN: together with CWR and ECE, the field that counts marks (RFC 9768 §3.2.2).
    pub const AE: Flags = Flags(URG);

    /// The lower eight bits as on the wire: all but AE.
    pub const fn bits(self) -> u8 {
        self.0 & !URG
    }

    /// Flags from their lower eight bits on the wire, without the one not implemented (URG).
    pub const fn from_bits_truncate(bits: u8) -> Self {
        Flags(bits & !URG)
    }

    /// The flags without those of ECN.
    #[must_use]
    pub const fn without_ecn(self) -> Self {
        Flags(self.0 & 0x1f)
    }

    /// True if any bit of `other` is set.
    #[inline]
    pub(crate) const fn any_of(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::AE, "A"),
            (Flags::ACK, "."),
        ];
        for (flag, name) in names {
            if self.has(flag) {
                f.write_str(name)?;
            }
        }
        if *self == Flags::NONE { f.write_str("-") } else { Ok(()) }
    }
}

/// Max SACK blocks in the 40 bytes of options (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The SACK blocks of a segment, kept as 32-bit distances from its acknowledgement number.
///
/// Four blocks leave no room for counters of accurate ECN, so the counters of a segment are stored in the place of
/// its fourth block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SackBlocks {
    count: u8,
    /// Which counters there are, plus one; 0: there is no such option.
    marked: u8,
    /// The highest byte of the counters.
    top: u8,
    blocks: [(i32, i32); MAX_SACK_BLOCKS],
}

impl SackBlocks {
    /// No blocks.
    pub const NONE: SackBlocks = SackBlocks { count: 0, marked: 0, top: 0, blocks: [(0, 0); MAX_SACK_BLOCKS] };

    /// Adds the block `start..end`, relative to the acknowledgement number `ack`; false if there is no room.
    pub fn push(&mut self, ack: u64, start: u64, end: u64) -> bool {
        if self.count as usize == MAX_SACK_BLOCKS - usize::from(self.marked > 0) {
            return false;
        }
        // Windows are at most 2^30 bytes (RFC 7323 §2.3), so a block lies within 31 bits of the ACK.
        let distance = |edge: u64| edge.wrapping_sub(ack) as i32;
        self.blocks[self.count as usize] = (distance(start), distance(end));
        self.count += 1;
        true
    }

    /// Number of blocks.
    #[inline]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks as `(start, end)`, end exclusive, relative to `ack`.
    #[inline]
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let edge = move |distance: i32| ack.wrapping_add(distance as i64 as u64);
        self.blocks[..self.count as usize].iter().map(move |&(start, end)| (edge(start), edge(end)))
    }
}

impl SackBlocks {
    /// Forgets the blocks.
    pub(super) fn clear(&mut self) {
        let bytes = self.marked_bytes();
        *self = SackBlocks::NONE;
        if let Some(bytes) = bytes {
            self.set_marked_bytes(&bytes);
        }
    }

    /// True if there are counters of accurate ECN.
    #[inline]
    pub(crate) const fn has_marked_bytes(&self) -> bool {
        self.marked > 0
    }

    fn marked_bytes(&self) -> Option<MarkedBytes> {
        let (low, high) = self.blocks[MAX_SACK_BLOCKS - 1];
        let values = u128::from(self.top) << 64 | u128::from(high as u32) << 32 | u128::from(low as u32);
        self.marked.checked_sub(1).map(|bits| MarkedBytes::unpack(bits, values))
    }

    fn set_marked_bytes(&mut self, bytes: &MarkedBytes) -> bool {
        if self.len() == MAX_SACK_BLOCKS {
            return false;
        }
        let (bits, values) = bytes.pack();
        (self.marked, self.top) = (bits + 1, (values >> 64) as u8);
        self.blocks[MAX_SACK_BLOCKS - 1] = (values as i32, (values >> 32) as i32);
        true
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entries(&self.blocks[..self.count as usize]);
        if let Some(bytes) = self.marked_bytes() {
            list.entry(&bytes);
        }
        list.finish()
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the echo.
    pub echo: u32,
}

/// Options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct SynOptions {
    /// Max segment size that the sender of the option accepts (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Shift of the windows that its sender will send (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// Its sender accepts SACK (RFC 2018 §2).
    pub sack_permitted: bool,
}

/// A parsed, valid segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the SYN, the first byte or the FIN.
    pub seq: u64,
    /// Next sequence number expected from the other side; valid with [`Flags::ACK`].
    pub ack: u64,
    /// The window offered, in bytes, already unscaled.
    pub window: u32,
    /// Bytes of payload.
    pub len: u16,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Options of a SYN; all off on others.
    pub syn: SynOptions,
    /// Timestamps, if negotiated.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl Segment {
    /// A segment with only these flags.
    pub const fn new(flags: Flags) -> Self {
        Segment {
            seq: 0,
            ack: 0,
            window: 0,
            len: 0,
            flags,
            ecn: Ecn::NotEct,
            syn: SynOptions { mss: None, window_scale: None, sack_permitted: false },
            timestamps: None,
            sack: SackBlocks::NONE,
        }
    }

    /// SEG.LEN of RFC 9293: payload bytes, and one each for SYN and FIN.
    #[inline]
    pub const fn sequence_len(&self) -> u64 {
        self.len as u64 + self.flags.has(Flags::SYN) as u64 + self.flags.has(Flags::FIN) as u64
    }

    /// The sequence number after the segment.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.seq + self.sequence_len()
    }

    /// The option of accurate ECN.
    #[inline]
    pub(crate) fn marked_bytes(&self) -> Option<MarkedBytes> {
        self.sack.marked_bytes()
    }

    /// Adds the option of accurate ECN; false if four SACK blocks leave no room for it.
    pub(crate) fn set_marked_bytes(&mut self, bytes: &MarkedBytes) -> bool {
        self.sack.set_marked_bytes(bytes)
    }

    /// True if it may carry options: those of a SYN, timestamps, SACK blocks, or the one of accurate ECN.
    #[inline(always)]
    pub const fn has_options(&self) -> bool {
        self.flags.has(Flags::SYN) || self.timestamps.is_some() || !self.sack.is_empty() || self.sack.has_marked_bytes()
    }

    /// Bytes of TCP options as `wire::tcp` writes them, with padding.
    pub fn options_len(&self) -> u32 {
        let syn = 4 * self.syn.mss.is_some() as u32
            + 4 * self.syn.window_scale.is_some() as u32
            // SACK-permitted is padded by two NOPs unless it shares its word with the timestamps.
            + if self.syn.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() as u32 };
        let marked = self.marked_bytes().map_or(0, |bytes| option_len(bytes.len()));
        syn + timestamps + sack + marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_below_the_ack_survive() {
        // A D-SACK block reports data below the cumulative acknowledgement (RFC 2883 §4).
        let ack = 5_000_000_000;
        let mut blocks = SackBlocks::NONE;
        assert!(blocks.push(ack, ack - 1460, ack));
        assert!(blocks.push(ack, ack + 1460, ack + 2920));
        assert_eq!(blocks.iter(ack).collect::<Vec<_>>(), [(ack - 1460, ack), (ack + 1460, ack + 2920)]);
    }

    /// Blocks and counters share the 40 bytes of options.
    #[test]
    fn three_blocks_leave_room_for_counters() {
        let bytes = MarkedBytes { ect0: Some(0xff_ffff), ce: Some(0xab_cdef), ect1: Some(0x12_3456) };
        let mut segment = Segment::new(Flags::ACK);
        assert_eq!((segment.marked_bytes(), segment.options_len()), (None, 0));
        for n in 0..3 {
            assert!(segment.sack.push(0, 10 * n, 10 * n + 5));
        }
        let mut full = segment;
        assert!(segment.set_marked_bytes(&bytes));
        assert!(!segment.sack.push(0, 90, 95));
        assert_eq!((segment.marked_bytes(), segment.sack.len(), segment.options_len()), (Some(bytes), 3, 40));
        assert!(full.sack.push(0, 90, 95) && !full.set_marked_bytes(&bytes));
        assert_eq!((full.marked_bytes(), full.sack.len()), (None, 4));
    }
}
