//! Data rates, and the time that data takes at a rate.

use core::num::NonZeroU64;

use super::Duration;

/// A data rate in whole bits per second, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// A rate, or `None` for zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Rate(bits)),
            None => None,
        }
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// The transmission time of `bytes`, rounded up to a nanosecond. Saturates.
    pub const fn time_for_ceil(self, bytes: u64) -> Duration {
        const NANOS_PER_BYTE: u64 = 8_000_000_000;
        let rate = self.bits_per_second();
        // 128-bit division is slow, and only amounts above 2.3 GB need it.
        Duration::from_nanos(match bytes.checked_mul(NANOS_PER_BYTE) {
            Some(product) => product.div_ceil(rate),
            None => {
                let nanos = (bytes as u128 * NANOS_PER_BYTE as u128).div_ceil(rate as u128);
                if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
            }
        })
    }

    /// The transmission time of `bytes`, rounded up to a tick.
    #[cold]
    #[inline(never)]
    fn time_for(self, bytes: u32) -> Duration {
        const TICKS_PER_BYTE: u64 = 8 * Duration::from_secs(1).as_ticks();
        let rate = self.bits_per_second();
        // 128-bit division is slow, and only packets above 36 MB need it.
        Duration::from_ticks(match u64::from(bytes).checked_mul(TICKS_PER_BYTE) {
            Some(ticks) => ticks.div_ceil(rate),
            None => {
                let ticks = (u128::from(bytes) * u128::from(TICKS_PER_BYTE)).div_ceil(u128::from(rate));
                u64::try_from(ticks).unwrap_or(u64::MAX)
            }
        })
    }

    /// Bytes that pass within `span`, rounded down. Saturates.
    pub fn bytes_in_floor(self, span: Duration) -> u64 {
        // 128-bit division is slow, and few products need it.
        let rate = self.bits_per_second();
        match rate.checked_mul(span.as_nanos()) {
            Some(bits) => bits / 8_000_000_000,
            None => {
                let bytes = u128::from(rate) * u128::from(span.as_nanos()) / 8_000_000_000;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Converts packet lengths into transmission times at a rate: the exact time, rounded up to a tick of 1/64 ns. A length
/// always takes the same time, so ties in real numbers are ties here, and a line is never faster than its rate.
#[derive(Clone, Debug)]
pub struct TransmitClock {
    rate: Rate,
    /// The last length and its time, kept because packets of a flow have few sizes and division is slow.
    last: (u32, Duration),
}

impl TransmitClock {
    /// A clock for one serializer.
    pub const fn new(rate: Rate) -> Self {
        TransmitClock { rate, last: (0, Duration::ZERO) }
    }

    /// The rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The time that a packet of `bytes` occupies the line.
    #[inline]
    pub fn transmit(&mut self, bytes: u32) -> Duration {
        if self.last.0 != bytes {
            self.last = (bytes, self.rate.time_for(bytes));
        }
        self.last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_always_takes_the_same_time_and_never_less_than_the_exact_one() {
        // 1500 B at 155 Mbit/s take 77419.354... ns: 155 packets take exactly 12 ms, here at most 155 ticks more.
        let mut clock = TransmitClock::new(Rate::from_bits_per_second(155_000_000).expect("not zero"));
        let times: Vec<_> = (0..155).map(|_| clock.transmit(1500)).collect();
        assert!(times.iter().all(|time| *time == times[0]));
        let total = times[0].saturating_mul(155);
        assert!(total >= Duration::from_millis(12) && total.as_ticks() <= Duration::from_millis(12).as_ticks() + 155);
    }

    /// 4 GB take 4 s at 8 Gbit/s and 32 000 s at 1 Mbit/s, though their bits times nanoseconds exceed 64 bits. What exceeds the range of
    /// times and of bytes is the largest of them.
    #[test]
    fn large_amounts_do_not_overflow() {
        let rate = |bits| Rate::from_bits_per_second(bits).expect("not zero");
        for (bits, seconds) in [(8_000_000_000, 4), (1_000_000, 32_000)] {
            assert_eq!(rate(bits).time_for_ceil(4_000_000_000), Duration::from_secs(seconds));
            assert_eq!(rate(bits).bytes_in_floor(Duration::from_secs(seconds)), 4_000_000_000);
        }
        assert_eq!(rate(1).time_for_ceil(u64::MAX), Duration::MAX);
        assert_eq!(rate(u64::MAX).time_for_ceil(u64::MAX), Duration::from_secs(8));
        assert_eq!(rate(u64::MAX).bytes_in_floor(Duration::MAX), u64::MAX);
    }

    #[test]
    fn the_longest_packet_at_the_lowest_rate_saturates() {
        let mut clock = TransmitClock::new(Rate::from_bits_per_second(1).expect("not zero"));
        assert_eq!(clock.transmit(1).as_nanos(), 8_000_000_000);
        assert_eq!(clock.transmit(u32::MAX), Duration::MAX);
    }

    /// The shortest length whose product exceeds 64 bits, the one before it, and the 128-bit results for both.
    #[test]
    fn long_packets_take_as_long_as_exact_division_says() {
        let rate = Rate::from_bits_per_second(999_999_937).expect("not zero");
        let per_byte = 8 * u128::from(Duration::from_secs(1).as_ticks());
        let last = (u128::from(u64::MAX) / per_byte) as u32;
        for bytes in [1, 1500, last, last + 1, u32::MAX] {
            let exact = (u128::from(bytes) * per_byte).div_ceil(999_999_937);
            assert_eq!(u128::from(rate.time_for(bytes).as_ticks()), exact, "{bytes}");
        }
    }
}
