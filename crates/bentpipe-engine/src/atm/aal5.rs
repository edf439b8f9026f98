//! AAL5: packets into cells and back (ITU-T I.363.5).
//!
//! A packet is the payload of a CPCS-PDU, which adds padding and a trailer of 8 bytes and is cut into cells of 48.
//! The last cell is marked in its header. A CRC-32 and a length cover the packet, so it arrives whole or not at all.
//!
//! Not implemented: the service-specific sublayer (null for IP, RFC 2684 §4), and corrupted data delivery.

use alloc::vec::Vec;
use core::fmt;

use crc::{CRC_32_BZIP2, Crc, Digest, Table};

use super::cell::{Cell, HEADER, Header, PAYLOAD, PayloadType};

/// Bytes of the trailer: CPCS-UU 1, CPI 1, length 2, CRC 4 (RFC 2684 §4).
const TRAILER: usize = 8;

/// Maximum bytes of a packet: the length field has 16 bits.
const MAX_SDU: usize = 65_535;

// I.363.5: generator of degree 32, register preset to ones, remainder complemented, over payload, padding
// and the first four octets of the trailer. The catalogue files it under bzip2, with "CRC-32/AAL5" as an alias.
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_BZIP2);

/// Number of cells of a packet of `sdu` bytes: payload and trailer, padded to whole cells.
pub const fn cells(sdu: usize) -> usize {
    (sdu + TRAILER).div_ceil(PAYLOAD)
}

/// Bytes of padding after a packet of `sdu` bytes: 0 to 47.
pub const fn padding(sdu: usize) -> usize {
    cells(sdu) * PAYLOAD - TRAILER - sdu
}

/// Bytes on the line for an IP datagram of `datagram` bytes, with AAL5, LLC/SNAP and cell headers (RFC 2684 §5.1).
pub const fn line_bytes(datagram: usize) -> usize {
    cells(datagram + crate::wire::llc_snap::HEADER) * super::cell::CELL
}

/// Why a packet cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aal5Error {
    /// Too many bytes for the length field, or none: length 0 means abort.
    Length(usize),
    /// The CRC is wrong: bits were damaged, or cells lost.
    Crc,
    /// The length does not match the number of cells.
    Mismatch {
        /// The length in the trailer.
        length: usize,
        /// Received cells.
        cells: usize,
    },
    /// The sender aborted the packet (length 0).
    Aborted,
    /// More cells than the longest packet has, without a last cell.
    Endless,
}

impl fmt::Display for Aal5Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Aal5Error::Length(length) => write!(f, "{length} bytes do not fit a CPCS-PDU: 1 to {MAX_SDU} do"),
            Aal5Error::Crc => f.write_str("wrong CRC-32"),
            Aal5Error::Mismatch { length, cells } => write!(f, "length {length} in a PDU of {cells} cells"),
            Aal5Error::Aborted => f.write_str("aborted by the sender"),
            Aal5Error::Endless => f.write_str("no last cell within the longest PDU"),
        }
    }
}

impl core::error::Error for Aal5Error {}

/// Cuts one packet into cells.
#[derive(Clone)]
pub struct Segmenter<'a> {
    header: Header,
    pieces: &'a [&'a [u8]],
    /// Bytes of the first piece already used.
    taken: usize,
    length: usize,
    sent: usize,
    count: usize,
    crc: Digest<'static, u32, Table<16>>,
}

/// The cells of a packet on the channel of `header`. The packet's bytes come in pieces, such as an LLC/SNAP header
/// and a datagram.
///
/// # Errors
/// Returns [`Aal5Error::Length`] if the packet is empty or too long.
pub fn segment<'a>(header: Header, pieces: &'a [&'a [u8]]) -> Result<Segmenter<'a>, Aal5Error> {
    let length = pieces.iter().map(|piece| piece.len()).sum();
    if !(1..=MAX_SDU).contains(&length) {
        return Err(Aal5Error::Length(length));
    }
    Ok(Segmenter { header, pieces, taken: 0, length, sent: 0, count: cells(length), crc: CRC.digest() })
}

impl Segmenter<'_> {
    /// Fills in the packet's remaining bytes.
    fn fill(&mut self, mut out: &mut [u8]) {
        while let Some((piece, rest)) = self.pieces.split_first() {
            let left = &piece[self.taken..];
            let step = left.len().min(out.len());
            let (now, later) = out.split_at_mut(step);
            now.copy_from_slice(&left[..step]);
            self.taken += step;
            if self.taken < piece.len() {
                return;
            }
            (self.pieces, self.taken, out) = (rest, 0, later);
        }
    }
}

impl Iterator for Segmenter<'_> {
    type Item = Cell;

    fn next(&mut self) -> Option<Cell> {
        if self.sent == self.count {
            return None;
        }
        self.sent += 1;
        let last = self.sent == self.count;
        let mut cell = [0; super::cell::CELL];
        let congestion = matches!(self.header.payload, PayloadType::User { congestion: true, .. });
        let header = Header { payload: PayloadType::User { congestion, last }, ..self.header };
        cell[..HEADER].copy_from_slice(&header.to_bytes());
        let payload = &mut cell[HEADER..];
        self.fill(payload);
        if last {
            // CPCS-UU and CPI stay zero (RFC 2684 §4).
            payload[42..44].copy_from_slice(&(self.length as u16).to_be_bytes());
            self.crc.update(&payload[..44]);
            payload[44..].copy_from_slice(&self.crc.clone().finalize().to_be_bytes());
        } else {
            self.crc.update(payload);
        }
        Some(cell)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count - self.sent, Some(self.count - self.sent))
    }
}

impl ExactSizeIterator for Segmenter<'_> {}

/// Reassembles the packets of one virtual channel.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    buffer: Vec<u8>,
    /// The buffer holds a packet that was returned.
    done: bool,
    /// After more cells than a packet can have: all cells up to the next last cell are dropped.
    endless: bool,
}

impl Reassembler {
    /// Creates an empty one.
    pub const fn new() -> Self {
        Reassembler { buffer: Vec::new(), done: false, endless: false }
    }

    /// Takes the payload of the next user cell; returns the packet after its last cell.
    ///
    /// Returns, at the last cell, why the packet is not whole; no part of it is delivered. [`Aal5Error::Endless`]
    /// is returned as soon as it is certain.
    pub fn push(&mut self, payload: &[u8; PAYLOAD], last: bool) -> Result<Option<&[u8]>, Aal5Error> {
        if self.done {
            self.buffer.clear();
            self.done = false;
        }
        if self.endless {
            self.endless = !last;
            return Ok(None);
        }
        self.buffer.extend_from_slice(payload);
        if !last {
            if self.buffer.len() / PAYLOAD < cells(MAX_SDU) {
                return Ok(None);
            }
            self.buffer.clear();
            self.endless = true;
            return Err(Aal5Error::Endless);
        }
        self.done = true;
        let end = self.buffer.len() - 4;
        let (covered, crc) = self.buffer.split_at(end);
        if CRC.checksum(covered).to_be_bytes() != crc {
            return Err(Aal5Error::Crc);
        }
        let length = u16::from_be_bytes([covered[end - 2], covered[end - 1]]) as usize;
        let count = self.buffer.len() / PAYLOAD;
        match length {
            0 => Err(Aal5Error::Aborted),
            _ if cells(length) != count => Err(Aal5Error::Mismatch { length, cells: count }),
            _ => Ok(Some(&self.buffer[..length])),
        }
    }
}

#[cfg(test)]
#[path = "aal5_tests.rs"]
mod tests;
