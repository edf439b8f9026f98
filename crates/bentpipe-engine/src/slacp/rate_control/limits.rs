//! The bounds of every controlled rate.

use crate::units::Rate;

/// The minimum rate is the maximum rate divided by this: a sender that sends nothing learns nothing.
const MIN_FRACTION: u64 = 100;

/// `bits` per second, but at most `max_rate` and at least a hundredth of it.
pub(super) fn bounded(bits: u64, max_rate: Rate) -> Rate {
    let max = max_rate.bits_per_second();
    Rate::from_bits_per_second(bits.clamp((max / MIN_FRACTION).max(1), max)).unwrap_or(max_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_hundredth_at_least() {
        let rate = |bits: u64, max| bounded(bits, Rate::from_bits_per_second(max).expect("not zero")).bits_per_second();
        assert_eq!(
            [0, 999, 1001, 100_000, 100_001].map(|bits| rate(bits, 100_000)),
            [1000, 1000, 1001, 100_000, 100_000]
        );
        assert_eq!(rate(0, 99), 1);
    }
}
