//! Rates of each layer over a SONET line: line, payload, ATM, IP, application.
//!
//! Every rate is derived: from the columns of the frame (ANSI T1.105, ITU-T G.707), the 5 bytes of 53 that are a cell's
//! header, AAL5's trailer and padding, and the headers of IP and its transport.

use core::fmt;

use super::{aal5, cell};
use crate::units::Rate;
use crate::wire::llc_snap;

/// Bits per second of STS-1: 90 columns of 9 rows of bytes, 8000 times per second.
const STS_1: u64 = 90 * 9 * 8 * 8000;

/// An optical carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpticalCarrier {
    n: u16,
}

impl OpticalCarrier {
    /// OC-n, concatenated for n > 1. `None` if no such carrier transports cells: n must be 1, or three times a power of
    /// four, at most 768.
    pub fn new(n: u16) -> Option<Self> {
        matches!(n, 1 | 3 | 12 | 48 | 192 | 768).then_some(OpticalCarrier { n })
    }

    /// The carrier of this name: "OC-3c" or "OC-3", or "STS-3c" and "STS-3", which are electrically the same.
    pub fn named(name: &str) -> Option<Self> {
        let upper = name.trim().to_ascii_uppercase();
        let number = upper.strip_prefix("OC-").or_else(|| upper.strip_prefix("STS-"))?;
        let number = number.strip_suffix('C').unwrap_or(number);
        // Only digits are accepted: `parse` would also accept a plus sign.
        OpticalCarrier::new(number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))?)
    }

    /// Rate of the line: n times 51.84 Mbit/s.
    pub fn line(self) -> Rate {
        Rate::from_bits_per_second(self.n as u64 * STS_1).expect("n is not zero")
    }

    /// Columns that carry cells, out of 90 n: all but 3 n of transport overhead, one of path overhead, and the
    /// fixed stuff, which is N/3 - 1 columns in STS-Nc and the columns 30 and 59 in STS-1.
    fn payload_columns(self) -> u64 {
        let n = self.n as u64;
        match n {
            1 => 87 - 1 - 2,
            _ => 87 * n - 1 - (n / 3 - 1),
        }
    }

    /// Rate of cells with headers: 260/270 of the line from OC-3c on.
    pub fn payload(self) -> Rate {
        // Whole: a column is 576 kbit/s.
        Rate::from_bits_per_second(self.payload_columns() * 9 * 8 * 8000).expect("some columns are left")
    }

    /// The rate of each layer, for IP datagrams of `mtu` bytes with `headers` bytes of IP and transport headers.
    pub fn ladder(self, mtu: u32, headers: u32) -> RateLadder {
        let [line, payload] = [self.line(), self.payload()].map(|rate| rate.bits_per_second() as f64);
        let aal5 = payload * cell::PAYLOAD as f64 / cell::CELL as f64;
        let cells = aal5::cells(mtu as usize + llc_snap::HEADER);
        let ip = aal5 * mtu as f64 / (cells * cell::PAYLOAD) as f64;
        let application = ip * mtu.saturating_sub(headers) as f64 / mtu as f64;
        RateLadder { line, payload, aal5, ip, application, cells: cells as u32 }
    }
}

impl fmt::Display for OpticalCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OC-{}{}", self.n, if self.n > 1 { "c" } else { "" })
    }
}

/// Max rate of each layer, bit/s, over a line full of datagrams of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLadder {
    /// The line.
    pub line: f64,
    /// SONET's payload: cells with their headers.
    pub payload: f64,
    /// Payload of cells: AAL5 PDUs with padding and trailer.
    pub aal5: f64,
    /// IP datagrams.
    pub ip: f64,
    /// Payload of the datagrams.
    pub application: f64,
    /// Cells per datagram.
    pub cells: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_by_hand() {
        assert_eq!(STS_1, 51_840_000);
        let rates = |name| {
            let carrier = OpticalCarrier::named(name).expect(name);
            (carrier.line().bits_per_second(), carrier.payload().bits_per_second())
        };
        // 260/270 of 155.52 and 622.08 Mbit/s; STS-1 carries 84 of 90 columns.
        assert_eq!(rates("OC-3c"), (155_520_000, 149_760_000));
        assert_eq!(rates("sts-12"), (622_080_000, 599_040_000));
        assert_eq!(rates("OC-1"), (51_840_000, 48_384_000));
        assert_eq!(rates("OC-48c").1 * 27, rates("OC-48c").0 * 26);
        for bad in ["OC-4", "OC-", "OC-3x", "3", "OC-0", "OC-+3"] {
            assert_eq!(OpticalCarrier::named(bad), None, "{bad}");
        }
        assert_eq!(OpticalCarrier::named(" oc-12 ").expect("OC-12").to_string(), "OC-12c");
    }

    #[test]
    fn the_ladder_by_hand() {
        let ladder = OpticalCarrier::new(3).expect("OC-3").ladder(9180, 40);
        // 149.76 * 48/53; 192 cells of 48 bytes carry 9180, and those 9140.
        assert_eq!(ladder.cells, 192);
        assert!((ladder.aal5 - 149.76e6 * 48.0 / 53.0).abs() < 1e-3);
        assert!((ladder.ip - ladder.aal5 * 9180.0 / 9216.0).abs() < 1e-3);
        assert!((ladder.application - ladder.aal5 * 9140.0 / 9216.0).abs() < 1e-3);
        // An Ethernet's packets: 1500 + 16 bytes take 32 cells.
        assert_eq!(OpticalCarrier::new(12).expect("OC-12").ladder(1500, 40).cells, 32);
    }
}
