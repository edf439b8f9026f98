//! Forward error correction by the application: the positions of a code's symbols in a stream, and which symbols have
//! arrived.
//!
//! The data is divided into blocks, and each block into symbols. The repair symbols of a block follow its data. The
//! code is assumed to be a Reed–Solomon code: any set of a block's symbols as large as its number of data symbols
//! restores the block. Nothing is computed, since data has no content here. The application reads the stream in any
//! order, and tells the sender to stop once it has everything.

/// Length of a symbol in bytes. A packet of 1400 B overlaps 3.7 of them on average, so losing it costs 1.35 times as
/// much as its data.
const SYMBOL: u64 = 512;
/// Number of data symbols in a block. Together with as many repair symbols this is 2^16, the maximum of codes over 16
/// bits.
const BLOCK_SYMBOLS: u64 = 1 << 15;

/// A block of the stream.
#[derive(Debug)]
struct Block {
    /// Its position in the stream, and its length there without repair symbols.
    start: u64,
    data: u64,
    /// Number of bytes of each symbol that have arrived, data symbols first, then repair symbols.
    arrived: Vec<u16>,
    /// Number of symbols that have arrived completely.
    whole: u64,
}

impl Block {
    fn needed(&self) -> u64 {
        self.data.div_ceil(SYMBOL)
    }

    /// One past its last byte, including repair symbols.
    fn end(&self) -> u64 {
        self.start + self.data + (self.arrived.len() as u64 - self.needed()) * SYMBOL
    }

    /// Number of data bytes that can be computed from what has arrived: all, or those in complete symbols.
    fn known(&self) -> u64 {
        (self.whole * SYMBOL).min(self.data)
    }

    /// The position of a symbol.
    fn symbol(&self, n: u64) -> (u64, u64) {
        match n.checked_sub(self.needed()) {
            None => (self.start + n * SYMBOL, self.start + ((n + 1) * SYMBOL).min(self.data)),
            Some(n) => (self.start + self.data + n * SYMBOL, self.start + self.data + (n + 1) * SYMBOL),
        }
    }

    /// The number of the symbol that contains this byte.
    fn number(&self, offset: u64) -> u64 {
        match (offset - self.start).checked_sub(self.data) {
            None => (offset - self.start) / SYMBOL,
            Some(behind) => self.needed() + behind / SYMBOL,
        }
    }
}

/// A coded stream.
#[derive(Debug)]
pub(super) struct Coded {
    blocks: Vec<Block>,
    /// Number of data bytes that the receiver has.
    pub(super) known: u64,
}

impl Coded {
    /// The coding of `data` bytes with this share of repair symbols, at least one per block.
    pub(super) fn new(data: u64, repair: f64) -> Coded {
        let (mut blocks, mut start, mut left) = (Vec::new(), 0, data);
        while left > 0 {
            let part = left.min(BLOCK_SYMBOLS * SYMBOL);
            let needed = part.div_ceil(SYMBOL);
            let symbols = needed + (needed as f64 * repair).ceil() as u64;
            let block = Block { start, data: part, arrived: vec![0; symbols as usize], whole: 0 };
            (start, left) = (block.end(), left - part);
            blocks.push(block);
        }
        Coded { blocks, known: 0 }
    }

    /// Length of the stream in bytes.
    pub(super) fn len(&self) -> u64 {
        self.blocks.last().map_or(0, Block::end)
    }

    /// Takes a part of the stream that has arrived. No byte may arrive twice.
    pub(super) fn take(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let first = self.blocks.partition_point(|block| block.end() <= offset);
        for block in self.blocks[first..].iter_mut().take_while(|block| block.start < end) {
            let known = block.known();
            let (mut at, until) = (offset.max(block.start), end.min(block.end()));
            while at < until {
                let n = block.number(at);
                let (start, stop) = block.symbol(n);
                let arrived = &mut block.arrived[n as usize];
                *arrived += (stop.min(until) - at) as u16;
                block.whole += u64::from(u64::from(*arrived) == stop - start);
                at = stop;
            }
            self.known += block.known() - known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_by_hand() {
        // 1000 B are two symbols, the second of 488 B; half of that number is one repair symbol.
        let small = Coded::new(1000, 0.5);
        assert_eq!(
            (small.len(), small.blocks[0].symbol(1), small.blocks[0].symbol(2)),
            (1512, (512, 1000), (1000, 1512))
        );
        // A full block, and one byte in a separate block with a repair symbol.
        let block = BLOCK_SYMBOLS * SYMBOL;
        let large = Coded::new(block + 1, 0.25);
        assert_eq!(large.len(), block + block / 4 + 1 + SYMBOL);
        assert_eq!(large.blocks[1].start, block + block / 4);
    }

    #[test]
    fn as_many_symbols_as_data_are_enough() {
        let mut coded = Coded::new(10 * SYMBOL, 0.3);
        // Half of the second symbol and the whole fifth symbol are missing.
        coded.take(0, SYMBOL + 200);
        coded.take(2 * SYMBOL, 2 * SYMBOL);
        coded.take(5 * SYMBOL, 5 * SYMBOL);
        assert_eq!(coded.known, 8 * SYMBOL);
        // A repair symbol and a half, then the other half.
        coded.take(10 * SYMBOL, SYMBOL + 100);
        assert_eq!(coded.known, 9 * SYMBOL);
        coded.take(11 * SYMBOL + 100, SYMBOL - 100);
        assert_eq!(coded.known, 10 * SYMBOL);
        // Later symbols are of no further use.
        coded.take(12 * SYMBOL, SYMBOL);
        assert_eq!(coded.known, 10 * SYMBOL);
    }

    #[test]
    fn a_piece_may_span_blocks() {
        let block = BLOCK_SYMBOLS * SYMBOL;
        let mut coded = Coded::new(2 * block, 0.01);
        coded.take(0, coded.len());
        assert_eq!(coded.known, 2 * block);
    }

    proptest::proptest! {
        /// Whatever the pieces and their order, all data is known once everything has arrived, and never more than all.
        #[test]
        fn pieces_in_any_order(data in 1_u64..40_000, repair in 0.0_f64..1.0, mut cuts in proptest::collection::vec(0_u64..60_000, 0..40), shift in 0_usize..40) {
            let mut coded = Coded::new(data, repair);
            let len = coded.len();
            cuts.retain(|cut| *cut < len);
            cuts.extend([0, len]);
            cuts.sort_unstable();
            let mut pieces: Vec<_> = cuts.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect();
            let turns = shift % pieces.len();
            pieces.rotate_left(turns);
            for (offset, len) in pieces {
                coded.take(offset, len);
                proptest::prop_assert!(coded.known <= data);
            }
            proptest::prop_assert_eq!(coded.known, data);
        }
    }
}
