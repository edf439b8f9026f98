//! Sequence numbers (RFC 9293 §3.4): 32 bits on the wire, 64-bit offsets from the initial sequence number inside.
//!
//! Offsets are ordered and do not wrap; numbers on the wire wrap, so [`SeqNumber`] has no `Ord`.

/// A sequence number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The distance of `self` after `other`, negative if before, modulo 2^32 (the comparison of RFC 9293 §3.4).
    pub const fn distance_from(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

/// The numbering of one direction: its initial sequence number, which has the offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numbering(pub SeqNumber);

impl Numbering {
    /// The numbering that starts at `isn`.
    pub const fn from_isn(isn: u32) -> Self {
        Numbering(SeqNumber(isn))
    }

    /// The offset as a 32-bit number.
    pub const fn wrap(self, offset: u64) -> SeqNumber {
        // Addition modulo 2^32 needs only the lower half of the offset.
        SeqNumber(self.0.0.wrapping_add(offset as u32))
    }

    /// The offset with this 32-bit number that is nearest to `near` (at most 2^31 away).
    ///
    /// Offsets before the initial sequence number do not exist: such a number gives one just below 2^32 instead, which
    /// is outside every window and therefore refused.
    pub const fn unwrap(self, number: SeqNumber, near: u64) -> u64 {
        let distance = number.distance_from(self.wrap(near)) as i64;
        match near.checked_add_signed(distance) {
            Some(offset) => offset,
            None => near.wrapping_add_signed(distance.wrapping_add(1 << 32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_number_wraps_and_the_offset_does_not() {
        let numbering = Numbering::from_isn(0xffff_fffe);
        let wrapped: Vec<u32> = (0..4).map(|offset| numbering.wrap(offset).0).collect();
        assert_eq!(wrapped, [0xffff_fffe, 0xffff_ffff, 0, 1]);
        assert_eq!(numbering.unwrap(SeqNumber(1), 0), 3);
        assert_eq!(numbering.unwrap(SeqNumber(0xffff_fffe), 3), 0);
        // Five rounds later the same number is another byte.
        assert_eq!(numbering.unwrap(SeqNumber(1), 5 << 32), (5 << 32) + 3);
        assert_eq!(numbering.unwrap(SeqNumber(0xffff_ffff), 5 << 32), (5 << 32) + 1);
        assert_eq!(numbering.unwrap(SeqNumber(0xffff_fffd), 5 << 32), (5 << 32) - 1);
    }

    #[test]
    fn before_the_beginning_is_outside_every_window() {
        let numbering = Numbering::from_isn(1000);
        assert_eq!(numbering.unwrap(SeqNumber(999), 1), u64::from(u32::MAX));
    }

    proptest! {
        #[test]
        fn unwrap_undoes_wrap_near_the_reference(isn: u32, near in 0u64..1 << 40, away in -(1i64 << 30)..1 << 30) {
            let numbering = Numbering::from_isn(isn);
            let offset = near.saturating_add_signed(away);
            prop_assert_eq!(numbering.unwrap(numbering.wrap(offset), near), offset);
        }
    }
}
