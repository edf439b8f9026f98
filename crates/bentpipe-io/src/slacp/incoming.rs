//! The bytes that an end receives.

use std::collections::BTreeMap;

use super::{Held, erasure};

/// A receiving channel's packets, and the repair symbols of its unfinished blocks.
#[derive(Debug)]
pub(super) struct Incoming {
    has_fec: bool,
    /// Accepted by the machine, and not delivered yet.
    arrived: BTreeMap<u64, Held>,
    /// Delivered, but possibly needed for a block.
    kept: BTreeMap<u64, Held>,
    /// `kept` is pruned when it reaches this length.
    sweep_at: usize,
    blocks: BTreeMap<u64, Symbols>,
    /// Recovered, and not requested yet.
    computed: BTreeMap<u64, Held>,
}

/// The repair symbols of a block.
#[derive(Debug)]
struct Symbols {
    len: u32,
    by_index: BTreeMap<u8, Vec<u8>>,
}

const MIN_SWEEP: usize = 256;

impl Incoming {
    pub(super) fn new(has_fec: bool) -> Self {
        Incoming {
            has_fec,
            arrived: BTreeMap::new(),
            kept: BTreeMap::new(),
            sweep_at: MIN_SWEEP,
            blocks: BTreeMap::new(),
            computed: BTreeMap::new(),
        }
    }

    /// Stores a packet that the machine has accepted.
    pub(super) fn keep(&mut self, seq: u64, packet: Held) {
        self.arrived.insert(seq, packet);
    }

    /// Takes a packet for delivery.
    pub(super) fn take(&mut self, seq: u64) -> Held {
        let packet = self.arrived.remove(&seq).expect("a delivered packet was stored");
        if self.has_fec {
            self.kept.insert(seq, packet.clone());
        }
        packet
    }

    /// True if a symbol of `len` bytes matches the others of its block.
    pub(super) fn fits(&self, first: u64, len: u32) -> bool {
        len.is_multiple_of(2) && len > 0 && self.blocks.get(&first).is_none_or(|block| block.len == len)
    }

    /// Stores a repair symbol.
    pub(super) fn keep_symbol(&mut self, first: u64, count: u8, index: u8, symbol: &[u8]) {
        let len = symbol.len() as u32;
        let block = self.blocks.entry(first).or_insert_with(|| Symbols { len, by_index: BTreeMap::new() });
        // More symbols than packets are never needed.
        if block.by_index.len() < usize::from(count) {
            block.by_index.entry(index).or_insert_with(|| symbol.to_vec());
        }
    }

    /// Recovers a packet of a block.
    pub(super) fn recover(&mut self, seq: u64, first: u64, count: u8) -> Option<Held> {
        if !self.computed.contains_key(&seq) {
            let symbols = self.blocks.get(&first)?;
            let block = first..first + u64::from(count);
            let there = self.arrived.range(block.clone()).chain(self.kept.range(block));
            let there = there.map(|(seq, packet)| ((seq - first) as usize, packet));
            let repairs = symbols.by_index.iter().map(|(&index, symbol)| (usize::from(index), symbol));
            let restored = erasure::decode(usize::from(count), symbols.len as usize, there, repairs)?;
            self.computed.extend(restored.into_iter().map(|(at, packet)| (first + at as u64, packet)));
        }
        let packet = self.computed.remove(&seq)?;
        (u64::from(packet.behind) <= seq).then_some(packet)
    }

    /// Drops what is no longer needed: delivered packets that the machine does not `need`, symbols of blocks that it
    /// does not `await`.
    pub(super) fn tidy(&mut self, needs: impl Fn(u64) -> bool, awaits: impl Fn(u64) -> bool) {
        self.computed.clear();
        self.blocks.retain(|&first, _| awaits(first));
        if self.kept.len() >= self.sweep_at {
            self.kept.retain(|&seq, _| needs(seq));
            self.sweep_at = (2 * self.kept.len()).max(MIN_SWEEP);
        }
    }

    /// Number of stored packets and symbols.
    pub(super) fn len(&self) -> usize {
        let symbols: usize = self.blocks.values().map(|block| block.by_index.len()).sum();
        self.arrived.len() + self.kept.len() + symbols + self.computed.len()
    }
}
