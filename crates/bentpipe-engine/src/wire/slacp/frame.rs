//! A frame as a value.

use super::report::Report;

/// Maximum packets of a block: seven bits of a repair frame's header count them.
pub(crate) const MAX_BLOCK: u8 = 128;
/// Maximum repair frames of a block, for the same reason.
pub(crate) const MAX_REPAIRS: u8 = 128;
/// Bytes that a data frame has besides its packet: 20 of header and 4 of CRC.
pub const DATA_HEADER: u32 = 24;
/// Bytes that a repair frame has besides its symbol.
pub(crate) const REPAIR_HEADER: u32 = 24;
/// Bytes that a symbol protects besides the packet: its length and its distance from its predecessor.
pub const PROTECTED_HEADER: u32 = 4;
/// Bytes of a sync frame.
pub(crate) const SYNC_LEN: u32 = 18;
/// Bytes of a report besides its bitmap.
const REPORT_HEADER: u32 = 20;

/// A frame; the bytes of its packet or symbol are the driver's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A packet.
    Data {
        /// Its channel.
        channel: u8,
        /// Number of the transmission, on the link.
        number: u64,
        /// Number of the packet, in its channel.
        seq: u64,
        /// Distance back to the flow's previous packet; 0: none.
        behind: u32,
        /// Packets with numbers below this are no longer sent.
        floor: u64,
        /// Bytes of the packet.
        len: u32,
    },
    /// A symbol of an erasure code over some packets of a channel.
    Repair {
        /// The channel.
        channel: u8,
        /// Number of the transmission.
        number: u64,
        /// First packet of the block.
        first: u64,
        /// Packets of the block.
        count: u8,
        /// Index of the symbol, from 0.
        index: u8,
        /// Packets with numbers below this are no longer sent.
        floor: u64,
        /// Bytes of the symbol.
        len: u32,
    },
    /// Announces the floor when no packet follows that would carry it.
    Sync {
        /// The channel.
        channel: u8,
        /// Number of the transmission.
        number: u64,
        /// Packets with numbers below this are no longer sent.
        floor: u64,
    },
    /// Which transmissions arrived.
    Report(Report),
}

impl Frame {
    /// Bytes on the line.
    pub fn wire_len(&self) -> u32 {
        match self {
            Frame::Data { len, .. } => DATA_HEADER + len,
            Frame::Repair { len, .. } => REPAIR_HEADER + len,
            Frame::Sync { .. } => SYNC_LEN,
            Frame::Report(report) => REPORT_HEADER + 8 * report.bits.len() as u32,
        }
    }

    /// Number of the transmission; reports have none.
    pub fn number(&self) -> Option<u64> {
        match *self {
            Frame::Data { number, .. } | Frame::Repair { number, .. } | Frame::Sync { number, .. } => Some(number),
            Frame::Report(_) => None,
        }
    }
}
