//! The bounds of every controlled rate.

use crate::units::Rate;

/// The minimum rate is the maximum rate divided by this: a sender that sends nothing learns nothing.
const MIN_FRACTION: u64 = 100;

/// `bits` per second, but at most `max_rate` and at least a hundredth of it.
pub(super) fn bounded(bits: u64, max_rate: Rate) -> Rate {
    let max = max_rate.bits_per_second();
    Rate::from_bits_per_second(bits.clamp((max / MIN_FRACTION).max(1), max)).unwrap_or(max_rate)
}
