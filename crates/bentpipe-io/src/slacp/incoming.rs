//! The bytes that an end receives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Held, cost, erasure};

/// A receiving channel's packets, and the repair symbols of its unfinished blocks.
#[derive(Debug)]
pub(super) struct Incoming {
    has_fec: bool,
    /// Accepted by the machine, and not delivered yet.
    arrived: BTreeMap<u64, Held>,
    /// Delivered, but possibly needed for a block.
    kept: BTreeMap<u64, Held>,
    /// Blocks that begin below this may lack packets, which had to go.
    spared: u64,
    /// `kept` is searched when it reaches this length, for what is not needed behind something that is.
    sweep_at: usize,
    blocks: BTreeMap<u64, Symbols>,
    /// Recovered, and not requested yet.
    computed: BTreeMap<u64, Held>,
    /// What packets that arrived or are kept cost, and symbols.
    bytes: u64,
    /// What those that are kept cost.
    kept_bytes: u64,
}

/// The repair symbols of a block.
#[derive(Debug)]
struct Symbols {
    /// Packets of the block.
    count: u8,
    len: u32,
    by_index: BTreeMap<u8, Vec<u8>>,
}

const MIN_SWEEP: usize = 256;

/// Frees `excess` bytes of what channels keep for repair frames only, or all of that.
pub(super) fn spare(channels: &mut [Incoming], mut excess: u64) {
    for channel in channels {
        if excess > 0 {
            excess = excess.saturating_sub(channel.spare(excess));
        }
    }
}

impl Incoming {
    pub(super) fn new(has_fec: bool) -> Self {
        Incoming {
            has_fec,
            arrived: BTreeMap::new(),
            kept: BTreeMap::new(),
            spared: 0,
            sweep_at: MIN_SWEEP,
            blocks: BTreeMap::new(),
            computed: BTreeMap::new(),
            bytes: 0,
            kept_bytes: 0,
        }
    }

    /// Stores a packet that the machine has accepted.
    pub(super) fn keep(&mut self, seq: u64, packet: Held) {
        self.bytes += cost(packet.bytes.len());
        let before = self.arrived.insert(seq, packet);
        debug_assert!(before.is_none(), "the machine accepts a packet once");
    }

    /// Takes a packet for delivery.
    pub(super) fn take(&mut self, seq: u64) -> Held {
        let packet = self.arrived.remove(&seq).expect("a delivered packet was stored");
        if self.has_fec {
            self.kept_bytes += cost(packet.bytes.len());
            self.kept.insert(seq, packet.clone());
        } else {
            self.bytes -= cost(packet.bytes.len());
        }
        packet
    }

    /// True if a symbol of `len` bytes matches the others of its block.
    pub(super) fn fits(&self, first: u64, len: u32) -> bool {
        len.is_multiple_of(2) && len > 0 && self.blocks.get(&first).is_none_or(|block| block.len == len)
    }

    /// True if the packets of the block that begins there are kept as long as the machine needs them.
    pub(super) fn protects(&self, first: u64) -> bool {
        first >= self.spared || self.blocks.contains_key(&first)
    }

    /// Drops delivered packets, the oldest first, until `wanted` bytes of memory are free; but for those of blocks that have repair
    /// symbols. Blocks before them get no more symbols. Returns what is free now.
    fn spare(&mut self, wanted: u64) -> u64 {
        // Some more, so that not each packet that arrives looks for another one that goes.
        let wanted = wanted.max(self.kept_bytes / 16);
        let is_needed = |seq: u64| {
            let block = self.blocks.range(..=seq).next_back();
            block.is_some_and(|(first, block)| seq - first < u64::from(block.count))
        };
        let (mut freed, mut gone) = (0, Vec::new());
        for (&seq, packet) in self.kept.iter().filter(|(seq, _)| !is_needed(**seq)) {
            if freed >= wanted {
                break;
            }
            freed += cost(packet.bytes.len());
            gone.push(seq);
        }
        for seq in gone {
            self.kept.remove(&seq);
            self.spared = self.spared.max(seq + 1);
        }
        (self.bytes, self.kept_bytes) = (self.bytes - freed, self.kept_bytes - freed);
        freed
    }

    /// Stores a repair symbol.
    pub(super) fn keep_symbol(&mut self, first: u64, count: u8, index: u8, symbol: &[u8]) {
        let len = symbol.len() as u32;
        let block = self.blocks.entry(first).or_insert_with(|| Symbols { count, len, by_index: BTreeMap::new() });
        // More symbols than packets are never needed.
        if block.by_index.len() < usize::from(count)
            && let Entry::Vacant(place) = block.by_index.entry(index)
        {
            place.insert(symbol.to_vec());
            self.bytes += cost(symbol.len());
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
        let (bytes, kept_bytes) = (&mut self.bytes, &mut self.kept_bytes);
        self.blocks.retain(|&first, block| {
            let stays = awaits(first);
            *bytes -= if stays { 0 } else { block.by_index.len() as u64 * cost(block.len as usize) };
            stays
        });
        while let Some(first) = self.kept.first_entry().filter(|first| !needs(*first.key())) {
            let freed = cost(first.remove().bytes.len());
            (*bytes, *kept_bytes) = (*bytes - freed, *kept_bytes - freed);
        }
        if self.kept.len() >= self.sweep_at {
            self.kept.retain(|&seq, packet| {
                let stays = needs(seq);
                let freed = if stays { 0 } else { cost(packet.bytes.len()) };
                (*bytes, *kept_bytes) = (*bytes - freed, *kept_bytes - freed);
                stays
            });
            self.sweep_at = (2 * self.kept.len()).max(MIN_SWEEP);
        }
    }

    /// Number of stored packets and symbols.
    pub(super) fn len(&self) -> usize {
        let symbols: usize = self.blocks.values().map(|block| block.by_index.len()).sum();
        self.arrived.len() + self.kept.len() + symbols + self.computed.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those of them that packets take which were delivered: they are kept for repair frames.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }
}
