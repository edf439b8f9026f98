//! The report of a receiver: which transmissions arrived.

use alloc::vec::Vec;

use crate::units::Duration;

/// Which transmissions have arrived: the newest, and for some numbers below it whether they did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The highest number that was received.
    pub newest: u64,
    /// Time from its arrival to the report.
    pub delay: Duration,
    /// Bit `i` of word `w`: whether number `newest - 64 w - i` arrived. Numbers below the bitmap count as not arrived.
    pub bits: Vec<u64>,
}

impl Report {
    /// Maximum words of a bitmap.
    pub(crate) const MAX_WORDS: usize = 32;

    /// The lowest number that the bitmap covers.
    pub fn first(&self) -> u64 {
        (self.newest + 1).saturating_sub(64 * self.bits.len() as u64)
    }

    /// True if the bitmap says that the transmission arrived.
    #[inline]
    pub fn arrived(&self, number: u64) -> bool {
        let Some(below) = self.newest.checked_sub(number) else { return false };
        self.bits.get((below / 64) as usize).is_some_and(|word| word >> (below % 64) & 1 == 1)
    }
}
