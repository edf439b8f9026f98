//! The numbers received so far: a window that slides with the highest one (like RFC 6479, whose words are cleared
//! ahead).

/// How late a number may be: more than networks reorder, plus a burst of GSO.
const SPAN: u64 = 2048;

/// The record of one session.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    bits: [u64; (SPAN / 64) as usize],
    /// All recorded numbers are below this.
    end: u64,
}

impl Replay {
    pub(super) fn new() -> Self {
        Replay { bits: [0; (SPAN / 64) as usize], end: 0 }
    }

    /// One past the highest recorded number.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    fn place(number: u64) -> (usize, u64) {
        ((number % SPAN / 64) as usize, 1 << (number % 64))
    }

    /// Returns false if a number was already received or is too old to tell. Call this before the costly decryption,
    /// and [`Self::note`] only after it.
    pub(super) fn may_be_new(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number >= self.end || self.end - number <= SPAN && self.bits[word] & bit == 0
    }

    /// Records an authentic number. Returns true if it is the highest so far.
    pub(super) fn note(&mut self, number: u64) -> bool {
        let highest = number >= self.end;
        if highest {
            for skipped in self.end.max((number + 1).saturating_sub(SPAN))..number {
                let (word, bit) = Self::place(skipped);
                self.bits[word] &= !bit;
            }
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
        highest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The peer chooses the numbers.
    #[test]
    fn a_jump_costs_no_more_than_a_window() {
        let mut replay = Replay::new();
        assert!(replay.note(3) && replay.note(1 << 59));
        assert!(!replay.may_be_new(3) && replay.may_be_new((1 << 59) - SPAN + 1) && !replay.may_be_new(1 << 59));
    }

    proptest! {
        /// Compares with a set of all received numbers.
        #[test]
        fn each_number_once(steps in prop::collection::vec((0u64..5000, any::<bool>()), 1..300)) {
            let (mut replay, mut been, mut end) = (Replay::new(), BTreeSet::new(), 0u64);
            for (step, back) in steps {
                let number = if back { end.saturating_sub(step) } else { end + step % 200 };
                let new = !been.contains(&number) && number + SPAN >= end;
                prop_assert_eq!(replay.may_be_new(number), new, "{} of {}", number, end);
                if new {
                    prop_assert_eq!(replay.note(number), number >= end);
                    been.insert(number);
                    end = end.max(number + 1);
                }
            }
        }
    }
}
