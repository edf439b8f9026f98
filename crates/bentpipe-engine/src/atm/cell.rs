//! Cells: 53 bytes, 5 of them a header at the user-network interface (ITU-T I.361, header error control of I.432.1).

use core::fmt;

use crc::{CRC_8_I_432_1, Crc};

/// Bytes of a cell.
pub const CELL: usize = 53;
/// Bytes of its header.
pub const HEADER: usize = 5;
/// Bytes of its payload.
pub const PAYLOAD: usize = CELL - HEADER;

/// A cell on the line.
pub type Cell = [u8; CELL];

// I.432.1, header error control: the remainder of the first four octets, by x^8 + x^2 + x + 1, plus the pattern
// 01010101 (0x55), so that a header of zeros has a non-zero check.
const HEC: Crc<u8> = Crc::<u8>::new(&CRC_8_I_432_1);

/// The payload type of a cell (I.361).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadType {
    /// User data.
    User {
        /// Congestion on the path (EFCI).
        congestion: bool,
        /// The user's indication; in AAL5 it marks the last cell of a PDU (I.363.5).
        last: bool,
    },
    /// Operation, maintenance and resource management: values 4 to 7.
    Management(u8),
}

/// The header of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Generic flow control, 4 bits.
    pub gfc: u8,
    /// Virtual path.
    pub vpi: u8,
    /// Virtual channel.
    pub vci: u16,
    /// Kind of payload.
    pub payload: PayloadType,
    /// May be dropped before others (cell loss priority).
    pub low_priority: bool,
}

/// The header's check is wrong: the cell is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// The check in the header.
    pub found: u8,
    /// The check computed from the four bytes before it.
    pub computed: u8,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header error control is {:#04x}, the header has {:#04x}", self.found, self.computed)
    }
}

impl core::error::Error for HeaderError {}

impl Header {
    /// User data on a virtual channel.
    pub const fn user(vpi: u8, vci: u16, last: bool) -> Self {
        Header { gfc: 0, vpi, vci, payload: PayloadType::User { congestion: false, last }, low_priority: false }
    }

    /// The five bytes; only the lower four bits of `gfc` are used.
    pub fn to_bytes(self) -> [u8; HEADER] {
        let payload = match self.payload {
            PayloadType::User { congestion, last } => (congestion as u8) << 1 | last as u8,
            PayloadType::Management(kind) => 0b100 | kind & 0b11,
        };
        let [high, low] = self.vci.to_be_bytes();
        let first = [
            self.gfc << 4 | self.vpi >> 4,
            self.vpi << 4 | high >> 4,
            high << 4 | low >> 4,
            low << 4 | payload << 1 | self.low_priority as u8,
        ];
        [first[0], first[1], first[2], first[3], HEC.checksum(&first)]
    }

    /// Reads five bytes.
    ///
    /// # Errors
    /// Fails if the check is wrong.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, HeaderError> {
        let [a, b, c, d, found] = *bytes;
        let computed = HEC.checksum(&[a, b, c, d]);
        if found != computed {
            return Err(HeaderError { found, computed });
        }
        let payload = match d >> 1 & 0b111 {
            kind @ 0b100.. => PayloadType::Management(kind),
            user => PayloadType::User { congestion: user & 2 != 0, last: user & 1 != 0 },
        };
        let vci = ((b & 0xf) as u16) << 12 | (c as u16) << 4 | (d >> 4) as u16;
        Ok(Header { gfc: a >> 4, vpi: a << 4 | b >> 4, vci, payload, low_priority: d & 1 != 0 })
    }

    /// Header and payload of a cell.
    ///
    /// # Errors
    /// Returns an error if the header's check is wrong, as [`parse`](Header::parse) does.
    pub fn of(cell: &Cell) -> Result<(Self, &[u8; PAYLOAD]), HeaderError> {
        let (header, payload) = cell.split_first_chunk::<HEADER>().expect("a cell is longer than its header");
        Ok((Header::parse(header)?, payload.first_chunk().expect("the rest of a cell is its payload")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_of_i_432_1() {
        // I.432.1: idle cell, unassigned cell, physical layer OAM F1 and F3: four bytes and HEC.
        for (last, hec) in [(0x01, 0x52), (0x00, 0x55), (0x03, 0x5c), (0x09, 0x6a)] {
            assert_eq!(HEC.checksum(&[0, 0, 0, last]), hec, "{last:#x}");
        }
        assert_eq!(HEC.checksum(b"123456789"), 0xa1, "the catalogue's check value");
    }

    #[test]
    fn fields_where_i_361_has_them() {
        let header =
            Header { gfc: 0xa, vpi: 0xbc, vci: 0xdef1, payload: PayloadType::Management(5), low_priority: true };
        let bytes = header.to_bytes();
        assert_eq!(bytes[..4], [0xab, 0xcd, 0xef, 0x1b]);
        assert_eq!(Header::parse(&bytes), Ok(header));
        assert_eq!(Header::user(0, 100, true).to_bytes()[..4], [0x00, 0x00, 0x06, 0x42]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: [u8; 4]) {
            let whole = [bytes[0], bytes[1], bytes[2], bytes[3], HEC.checksum(&bytes)];
            let header = Header::parse(&whole).expect("its own check");
            prop_assert_eq!(header.to_bytes(), whole);
        }

        /// The code has distance 4 over 40 bits (I.432.1): no one or two wrong bits pass.
        #[test]
        fn two_wrong_bits_never_pass(bytes: [u8; 4], one in 0usize..40, other in 0usize..40) {
            let mut whole = [bytes[0], bytes[1], bytes[2], bytes[3], HEC.checksum(&bytes)];
            whole[one / 8] ^= 1 << (one % 8);
            if other != one {
                whole[other / 8] ^= 1 << (other % 8);
            }
            prop_assert!(Header::parse(&whole).is_err());
        }
    }
}
