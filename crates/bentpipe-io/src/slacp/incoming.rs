//! The bytes that an end receives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bentpipe_engine::slacp::SlacpConfig;

use super::numbered::Numbered;
use super::{Held, cost, erasure};

/// A receiving channel's packets, and the repair symbols of its unfinished blocks.
#[derive(Debug)]
pub(super) struct Incoming {
    packets: Numbered<Packet>,
    /// Packets that were delivered.
    kept: usize,
    /// Blocks that begin below this may lack packets, which had to go, or follow one that could not be decoded.
    spared: u64,
    /// Frames stored, less the packets of decoded blocks, at most those of [`MAX_SPAN`].
    earned: u64,
    /// Number of kept packets at which those that are not needed are searched and dropped.
    sweep_at: usize,
    blocks: BTreeMap<u64, Symbols>,
    /// Recovered, and not requested yet.
    computed: BTreeMap<u64, Held>,
    /// What packets and symbols cost.
    bytes: u64,
    /// What packets that were delivered cost.
    kept_bytes: u64,
}

/// A packet that the machine has accepted.
#[derive(Debug)]
struct Packet {
    held: Held,
    /// Delivered, but possibly needed for a block.
    is_kept: bool,
}

/// The repair symbols of a block.
#[derive(Debug)]
struct Symbols {
    /// Packets of the block.
    count: u8,
    len: u32,
    by_index: BTreeMap<u8, Vec<u8>>,
}

impl Symbols {
    fn cost(&self) -> u64 {
        self.by_index.len() as u64 * cost(self.len as usize)
    }
}

const MIN_SWEEP: usize = 256;

/// Longest range of packet numbers: a window, and what is kept for repair frames. Room for as many gaps goes with it.
const MAX_SPAN: u64 = 2 * SlacpConfig::MAX_WINDOW as u64;

/// Frees `excess` bytes of what channels keep for repair frames only, or all of that.
pub(super) fn spare(channels: &mut [Incoming], mut excess: u64) {
    for channel in channels {
        if excess > 0 {
            excess = excess.saturating_sub(channel.spare(excess));
        }
    }
}

impl Incoming {
    pub(super) fn new() -> Self {
        Incoming {
            packets: Numbered::new(),
            kept: 0,
            spared: 0,
            earned: 0,
            sweep_at: MIN_SWEEP,
            blocks: BTreeMap::new(),
            computed: BTreeMap::new(),
            bytes: 0,
            kept_bytes: 0,
        }
    }

    /// True if there is a place for a packet. Packets that were delivered so long ago make way for it, and their blocks get no more
    /// symbols.
    pub(super) fn reaches(&mut self, seq: u64) -> bool {
        while self.packets.span_to(seq) > MAX_SPAN {
            let Some((oldest, _)) = self.packets.first().filter(|(_, packet)| packet.is_kept) else { return false };
            self.drop_kept(oldest);
            self.spared = self.spared.max(oldest + 1);
        }
        true
    }

    /// Stores a packet that the machine has accepted.
    pub(super) fn keep(&mut self, seq: u64, held: Held) {
        self.bytes += cost(held.bytes.len());
        let before = self.packets.insert(seq, Packet { held, is_kept: false });
        debug_assert!(before.is_none(), "the machine accepts a packet once");
    }

    /// The bytes of a packet that is delivered now. It is kept until the next [`Incoming::tidy`] at least.
    pub(super) fn deliver(&mut self, seq: u64) -> &[u8] {
        let packet = self.packets.get_mut(seq).expect("a delivered packet was stored");
        debug_assert!(!packet.is_kept, "the machine delivers a packet once");
        packet.is_kept = true;
        self.kept += 1;
        self.kept_bytes += cost(packet.held.bytes.len());
        &packet.held.bytes
    }

    fn drop_kept(&mut self, seq: u64) -> u64 {
        let freed = self.packets.remove(seq).map_or(0, |packet| packet.held.bytes.release());
        (self.bytes, self.kept_bytes, self.kept) = (self.bytes - freed, self.kept_bytes - freed, self.kept - 1);
        freed
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
        let (mut expected, mut gone) = (0, Vec::new());
        for (seq, packet) in self.packets.iter().filter(|(seq, packet)| packet.is_kept && !is_needed(*seq)) {
            if expected >= wanted {
                break;
            }
            expected += cost(packet.held.bytes.len());
            gone.push(seq);
        }
        self.spared = self.spared.max(gone.last().map_or(0, |last| last + 1));
        gone.into_iter().map(|seq| self.drop_kept(seq)).sum()
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

    /// A frame was stored, which may be part of a block.
    pub(super) fn earn(&mut self) {
        self.earned = (self.earned + 1).min(MAX_SPAN);
    }

    /// A block could not be decoded. An honest peer's always can be. It gets no more symbols, nor do blocks before it.
    pub(super) fn fail(&mut self, first: u64) {
        self.spared = self.spared.max(first + 1);
        if let Some(block) = self.blocks.remove(&first) {
            self.bytes -= block.cost();
        }
    }

    /// Recovers a packet of a block. Decoding takes as many stored frames as the block has packets: that many have come for each block,
    /// and blocks that share packets would cost more than their frames.
    pub(super) fn recover(&mut self, seq: u64, first: u64, count: u8) -> Option<Held> {
        if !self.computed.contains_key(&seq) {
            let symbols = self.blocks.get(&first)?;
            self.earned = self.earned.checked_sub(u64::from(count))?;
            let block = first..first + u64::from(count);
            let there = self.packets.range(block).map(|(seq, packet)| ((seq - first) as usize, &packet.held));
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
        let bytes = &mut self.bytes;
        self.blocks.retain(|&first, block| {
            let stays = awaits(first);
            *bytes -= if stays { 0 } else { block.cost() };
            stays
        });
        while let Some((seq, _)) = self.packets.first().filter(|(seq, packet)| packet.is_kept && !needs(*seq)) {
            self.drop_kept(seq);
        }
        if self.kept >= self.sweep_at {
            let (bytes, kept_bytes, kept) = (&mut self.bytes, &mut self.kept_bytes, &mut self.kept);
            self.packets.retain(
                |seq, packet| !packet.is_kept || needs(seq),
                |packet| {
                    let freed = packet.held.bytes.release();
                    (*bytes, *kept_bytes, *kept) = (*bytes - freed, *kept_bytes - freed, *kept - 1);
                },
            );
            self.sweep_at = (2 * self.kept).max(MIN_SWEEP);
        }
    }

    /// Number of stored packets and symbols.
    pub(super) fn len(&self) -> usize {
        let symbols: usize = self.blocks.values().map(|block| block.by_index.len()).sum();
        self.packets.len() + symbols + self.computed.len()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each symbol gives one packet more, and would cost a decoding of 128.
    #[test]
    fn blocks_that_overlap_are_not_decoded_for_each_frame() {
        let packets: Vec<_> = (0..200).map(|n| Held { bytes: [n; 8][..].into(), behind: 0 }).collect();
        let mut incoming = Incoming::new();
        for (seq, held) in (0..127).zip(&packets) {
            incoming.keep(seq, held.clone());
            incoming.earn();
        }
        let mut decoded = 0;
        for first in 0..50 {
            let seq = first + 127;
            let symbols = erasure::encode(packets[first as usize..=seq as usize].iter(), 12, 1);
            incoming.keep_symbol(first, 128, 0, &symbols[0]);
            incoming.earn();
            let recovered = incoming.recover(seq, first, 128);
            decoded += u32::from(recovered.is_some());
            assert!(recovered.is_none_or(|held| held == packets[seq as usize]));
            incoming.keep(seq, packets[seq as usize].clone());
        }
        assert_eq!(decoded, 1, "128 frames have come");
    }

    #[test]
    fn only_what_was_delivered_makes_way() {
        let mut incoming = Incoming::new();
        incoming.keep(0, Held { bytes: [7; 100][..].into(), behind: 0 });
        assert!(incoming.reaches(MAX_SPAN - 1));
        assert!(!incoming.reaches(MAX_SPAN), "the first packet still waits");
        assert_eq!(incoming.deliver(0), [7; 100]);
        assert!(incoming.protects(0));
        assert!(incoming.reaches(MAX_SPAN));
        assert_eq!((incoming.len(), incoming.bytes(), incoming.kept_bytes()), (0, 0, 0));
        assert!(!incoming.protects(0), "its block lacks a packet");
    }
}
