//! The bounds that every controlled rate keeps to.

use crate::units::Rate;

/// A sender never goes below this fraction of its maximum rate: with nothing sent, nothing is learnt.
const MIN_FRACTION: u64 = 100;

/// `bits` per second, but at most `max_rate` and at least a hundredth of it.
pub(super) fn bounded(bits: u64, max_rate: Rate) -> Rate {
    let max = max_rate.bits_per_second();
    Rate::from_bits_per_second(bits.clamp((max / MIN_FRACTION).max(1), max)).unwrap_or(max_rate)
}
