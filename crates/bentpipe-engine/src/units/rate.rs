//! Data rates, and the time that data takes at a rate.

use super::Duration;

/// A data rate in whole bits per second, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate, or `None` for zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Rate(bits)) }
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take, rounded up to a nanosecond.
    pub const fn time_for_ceil(self, bytes: u64) -> Duration {
        Duration::from_nanos((bytes * 8 * 1_000_000_000).div_ceil(self.0))
    }

    /// Bytes that pass in `span`, rounded down.
    pub fn bytes_in_floor(self, span: Duration) -> u64 {
        (self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64
    }
}

/// Turns packet lengths into transmission times at a rate without losing the fractions of a nanosecond: what one
/// packet's time is rounded by is carried to the next, so that n packets take n packet times however long the run.
#[derive(Clone, Debug)]
pub struct TransmitClock {
    rate: Rate,
    /// Numerator of the carried fraction, in units of 1 / (bits per second) nanoseconds.
    carry: u64,
    /// The last length and its quotient and remainder: packets of a flow have few sizes and division is slow.
    last: (u32, u64, u64),
}

impl TransmitClock {
    /// A clock for one serializer.
    pub const fn new(rate: Rate) -> Self {
        TransmitClock { rate, carry: 0, last: (0, 0, 0) }
    }

    /// The rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The time that the next packet of `bytes` occupies the line.
    pub fn transmit(&mut self, bytes: u32) -> Duration {
        if self.last.0 != bytes {
            let bits_nanos = bytes as u64 * 8 * 1_000_000_000;
            self.last = (bytes, bits_nanos / self.rate.0, bits_nanos % self.rate.0);
        }
        let (_, mut nanos, remainder) = self.last;
        self.carry += remainder;
        if self.carry >= self.rate.0 {
            self.carry -= self.rate.0;
            nanos += 1;
        }
        Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_nanosecond_are_carried() {
        // 1500 B at 155 Mbit/s are 77419.354... ns: 155 packets last exactly 12 ms.
        let mut clock = TransmitClock::new(Rate::from_bits_per_second(155_000_000).expect("not zero"));
        let total: u64 = (0..155).map(|_| clock.transmit(1500).as_nanos()).sum();
        assert_eq!(total, 12_000_000);
    }
}
