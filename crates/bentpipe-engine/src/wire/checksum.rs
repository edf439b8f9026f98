//! The Internet checksum (RFC 1071), and the pseudo headers of RFC 9293 §3.1 and RFC 8200 §8.1.

/// A running one's complement sum. Pieces may have any length: an odd one leaves half a word open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u64,
    odd: bool,
}

impl Checksum {
    /// An empty sum.
    pub const fn new() -> Self {
        Checksum { sum: 0, odd: false }
    }

    /// Adds one word.
    #[must_use]
    pub const fn word(mut self, word: u16) -> Self {
        // RFC 1071 §2(B): in the sum of words whose bytes are all swapped, the bytes are swapped.
        self.sum += if self.odd { word.swap_bytes() } else { word } as u64;
        self
    }

    /// Adds bytes that follow the previous ones.
    #[must_use]
    pub fn bytes(mut self, mut bytes: &[u8]) -> Self {
        if self.odd
            && let Some((&first, rest)) = bytes.split_first()
        {
            self.sum += u64::from(first);
            self.odd = false;
            bytes = rest;
        }
        // Four bytes at once: RFC 1071 §2(C). 2^32 of them cannot overflow 64 bits.
        let mut words = bytes.chunks_exact(4);
        self.sum += words.by_ref().map(|w| u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]))).sum::<u64>();
        for pair in words.remainder().chunks(2) {
            self.sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
        self.odd ^= bytes.len() % 2 == 1;
        self
    }

    /// The checksum: the complement of the sum. Over data that includes a right checksum it is 0.
    #[must_use]
    pub const fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // RFC 1071 §3: 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(!Checksum::new().bytes(&data).finish(), 0xddf2);
    }

    proptest! {
        #[test]
        fn pieces_sum_as_the_whole(data: Vec<u8>, cuts in proptest::collection::vec(0usize..64, 0..6)) {
            // The literal twin: one word at a time, an odd end padded with zero.
            let mut literal = 0u32;
            for pair in data.chunks(2) {
                literal += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                literal = (literal & 0xffff) + (literal >> 16);
            }
            let mut sum = Checksum::new();
            let mut rest = &data[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                sum = sum.bytes(piece);
                rest = after;
            }
            prop_assert_eq!(sum.bytes(rest).finish(), !(literal as u16));
        }

        #[test]
        fn data_with_its_checksum_sums_to_zero(mut data in proptest::collection::vec(any::<u8>(), 2..200)) {
            data[0] = 0;
            data[1] = 0;
            let sum = Checksum::new().bytes(&data).finish();
            prop_assert_eq!(Checksum::new().word(sum).bytes(&data).finish(), 0);
        }
    }
}
