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
    /// Number of delivered packets that are kept.
    kept: usize,
    /// Blocks that begin below this may lack packets that had to make way, or precede one that could not be decoded.
    spared: u64,
    /// No packet below this can make way.
    spare_from: u64,
    /// Number of frames stored minus the packets of decoded blocks, at most [`MAX_SPAN`].
    earned: u64,
    /// Number of kept packets at which those no longer needed are searched for and dropped.
    sweep_at: usize,
    blocks: BTreeMap<u64, Symbols>,
    /// The blocks for which something has arrived since the last [`Incoming::tidy`]. Others still wait for more.
    touched: Vec<u64>,
    /// Number of blocks at which all of them are checked.
    look_at: usize,
    /// Packets that were recovered but not yet requested.
    computed: BTreeMap<u64, Held>,
    /// Memory of packets and symbols.
    bytes: u64,
    /// Memory of packets that were delivered.
    kept_bytes: u64,
}

/// A packet that the machine has accepted.
#[derive(Debug)]
struct Packet {
    held: Held,
    /// True if it was delivered, but may still be needed for a block.
    is_kept: bool,
}

/// The repair symbols of a block.
#[derive(Debug)]
struct Symbols {
    /// Number of packets in the block.
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

/// Length of the longest range of packet numbers: a window, plus what is kept for repair frames. As many gaps are
/// allowed.
const MAX_SPAN: u64 = 2 * SlacpConfig::MAX_WINDOW as u64;

/// Maximum number of packets that may be passed over, per frame, in the search for packets that can make way. The next
/// frame continues where the search ended.
const MAX_PASSED_OVER: usize = 1024;

/// Frees `excess` bytes of packets that channels keep only for repair frames, or as much as is found within a limited
/// number of steps.
pub(super) fn spare(channels: &mut [Incoming], mut excess: u64) {
    for channel in channels {
        if excess > 0 {
            excess = excess.saturating_sub(channel.spare(excess, MAX_PASSED_OVER));
        }
    }
}

/// Frees all packets kept only for repair frames.
pub(super) fn spare_all(channels: &mut [Incoming]) {
    for channel in channels {
        channel.spare(u64::MAX, usize::MAX);
    }
}

impl Incoming {
    pub(super) fn new() -> Self {
        Incoming {
            packets: Numbered::new(),
            kept: 0,
            spared: 0,
            spare_from: 0,
            earned: 0,
            sweep_at: MIN_SWEEP,
            blocks: BTreeMap::new(),
            touched: Vec::new(),
            look_at: MIN_SWEEP,
            computed: BTreeMap::new(),
            bytes: 0,
            kept_bytes: 0,
        }
    }

    /// True if there is a place for a packet. Old delivered packets make way for it, and their blocks get no more
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
        if let Some((&first, _)) = self.blocks.range(..=seq).next_back() {
            self.touch(first);
        }
        let before = self.packets.insert(seq, Packet { held, is_kept: false });
        debug_assert!(before.is_none(), "the machine accepts a packet once");
    }

    fn touch(&mut self, first: u64) {
        if self.touched.last() != Some(&first) {
            self.touched.push(first);
        }
    }

    /// The bytes of a packet that is delivered now. It is kept at least until the next [`Incoming::tidy`].
    pub(super) fn deliver(&mut self, seq: u64) -> &[u8] {
        if seq < self.spare_from && !self.is_needed(seq) {
            self.spare_from = seq;
        }
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

    /// True if the packets of the block that begins at `first` are kept as long as the machine needs them.
    pub(super) fn protects(&self, first: u64) -> bool {
        first >= self.spared || self.blocks.contains_key(&first)
    }

    /// True if the packet's block has repair symbols.
    fn is_needed(&self, seq: u64) -> bool {
        let block = self.blocks.range(..=seq).next_back();
        block.is_some_and(|(first, block)| seq - first < u64::from(block.count))
    }

    /// Drops delivered packets, the oldest first, until `wanted` bytes of memory are free, but spares those of blocks
    /// with repair symbols. Blocks before them get no more symbols. Passes over at most `steps` packets. Returns the
    /// number of bytes freed.
    fn spare(&mut self, wanted: u64, mut steps: usize) -> u64 {
        // Frees some more, so that not every arriving packet has to look for another one to drop.
        let wanted = wanted.max(self.kept_bytes / 16);
        let (mut expected, mut gone, mut from) = (0, Vec::new(), self.spare_from);
        for (seq, packet) in self.packets.range(from..u64::MAX) {
            if expected >= wanted || steps == 0 {
                break;
            }
            if packet.is_kept && !self.is_needed(seq) {
                expected += cost(packet.held.bytes.len());
                gone.push(seq);
            } else {
                steps -= 1;
            }
            from = seq + 1;
        }
        self.spare_from = from;
        self.spared = self.spared.max(gone.last().map_or(0, |last| last + 1));
        gone.into_iter().map(|seq| self.drop_kept(seq)).sum()
    }

    /// Stores a repair symbol.
    pub(super) fn keep_symbol(&mut self, first: u64, count: u8, index: u8, symbol: &[u8]) {
        let len = symbol.len() as u32;
        self.touch(first);
        if !self.blocks.contains_key(&first) && self.is_needed(first) {
            // The block before it ends here: a genuine peer's blocks have no packets in common.
            self.spare_from = self.spare_from.min(first);
        }
        let block = self.blocks.entry(first).or_insert_with(|| Symbols { count, len, by_index: BTreeMap::new() });
        // More symbols than packets are never needed.
        if block.by_index.len() < usize::from(count)
            && let Entry::Vacant(place) = block.by_index.entry(index)
        {
            place.insert(symbol.to_vec());
            self.bytes += cost(symbol.len());
        }
    }

    /// Records that a frame was stored, which may be part of a block.
    pub(super) fn earn(&mut self) {
        self.earned = (self.earned + 1).min(MAX_SPAN);
    }

    /// Records that a block could not be decoded, which does not happen with an honest peer. This block and those
    /// before it get no more symbols.
    pub(super) fn fail(&mut self, first: u64) {
        self.spared = self.spared.max(first + 1);
        self.drop_block(first);
    }

    fn drop_block(&mut self, first: u64) {
        if let Some(block) = self.blocks.remove(&first) {
            self.bytes -= block.cost();
            self.spare_from = self.spare_from.min(first);
        }
    }

    /// Recovers a packet of a block. Decoding uses up as many stored frames as the block has packets. For genuine
    /// blocks this many have arrived; blocks that share packets would cost more than their frames.
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
        // The machine also gives up blocks without another frame for them. Usually these are the oldest; others are
        // found once there are many.
        while let Some((&first, _)) = self.blocks.first_key_value().filter(|(first, _)| !awaits(**first)) {
            self.drop_block(first);
        }
        let all = self.blocks.len() >= self.look_at;
        if all {
            self.touched.clear();
            self.touched.extend(self.blocks.keys());
        }
        let mut touched = std::mem::take(&mut self.touched);
        touched.drain(..).filter(|&first| !awaits(first)).for_each(|first| self.drop_block(first));
        self.touched = touched;
        if all {
            self.look_at = (2 * self.blocks.len()).max(MIN_SWEEP);
        }
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

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of these taken by delivered packets that are kept for repair frames.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Packets that can make way are found where the search looks for them, and the oldest goes first.
        #[test]
        fn what_makes_way_is_found(steps in prop::collection::vec((0u8..6, 0u64..60, 1u8..9), 1..200)) {
            let mut incoming = Incoming::new();
            let mut waiting = std::collections::BTreeSet::new();
            for (step, at, count) in steps {
                match step {
                    0 | 1 if incoming.packets.range(at..at + 1).next().is_none() => {
                        incoming.keep(at, Held { bytes: [7; 100][..].into(), behind: 0 });
                        waiting.insert(at);
                    }
                    2 => {
                        let seq = waiting.range(at..).next().copied();
                        if let Some(seq) = seq.filter(|seq| waiting.remove(seq)) {
                            incoming.deliver(seq);
                        }
                    }
                    3 => incoming.keep_symbol(at, count, 0, &[1; 200]),
                    4 if count == 1 => incoming.fail(at),
                    4 => incoming.tidy(|_| true, |first| !first.is_multiple_of(u64::from(count))),
                    5 => {
                        let spareable = |incoming: &Incoming| {
                            let kept = incoming.packets.iter().filter(|(_, packet)| packet.is_kept);
                            kept.map(|(seq, _)| seq).filter(|&seq| !incoming.is_needed(seq)).collect::<Vec<_>>()
                        };
                        let (before, kept_before) = (spareable(&incoming), incoming.kept);
                        let freed = incoming.spare(u64::from(count) * cost(100), usize::MAX);
                        // At least a sixteenth of what is kept, since `spare` frees some more.
                        let gone = before.len().min(kept_before.div_ceil(16).max(usize::from(count)));
                        prop_assert_eq!(freed, gone as u64 * cost(100));
                        prop_assert_eq!(spareable(&incoming), &before[gone..]);
                    }
                    _ => {}
                }
            }
        }
    }

    /// If all packets are needed, a search ends and is not repeated.
    #[test]
    fn where_nothing_makes_way_nothing_is_searched() {
        let mut incoming = Incoming::new();
        for seq in 0..3000 {
            incoming.keep(seq, Held { bytes: [7; 10][..].into(), behind: 0 });
            incoming.deliver(seq);
        }
        (0..30).for_each(|n| incoming.keep_symbol(n * 100, 100, 0, &[1; 20]));
        let searched = |incoming: &mut Incoming| (incoming.spare(1000, MAX_PASSED_OVER), incoming.spare_from);
        let ends = [1024, 2048, 3000, 3000];
        assert_eq!(ends.map(|_| searched(&mut incoming)), ends.map(|end| (0, end)));
        incoming.tidy(|_| true, |first| first != 1500);
        // A sixteenth of 3000.
        assert_eq!(searched(&mut incoming), (100 * cost(10), 2624));
    }

    /// Waiting blocks are not checked again and again, and completed blocks are removed.
    #[test]
    fn only_blocks_with_news_are_looked_at() {
        let mut incoming = Incoming::new();
        let asked = std::cell::Cell::new(0);
        let tidy = |incoming: &mut Incoming, gone: &[u64]| {
            incoming.tidy(
                |_| true,
                |first| {
                    asked.set(asked.get() + 1);
                    !gone.contains(&first)
                },
            );
            (asked.take(), incoming.blocks.len())
        };
        (0..100).for_each(|n| incoming.keep_symbol(n * 100, 100, 0, &[1; 20]));
        // The oldest block is always checked.
        assert_eq!(tidy(&mut incoming, &[500]), (1 + 100, 99));
        assert_eq!(tidy(&mut incoming, &[600]), (1, 99), "none has news");
        incoming.keep(650, Held { bytes: [7; 10][..].into(), behind: 0 });
        incoming.keep_symbol(700, 100, 1, &[1; 20]);
        assert_eq!(tidy(&mut incoming, &[600, 700, 800]), (1 + 2, 97));
        // Once there are many, all blocks are checked.
        (100..300).for_each(|n| incoming.keep_symbol(n * 100, 100, 0, &[1; 20]));
        assert_eq!(tidy(&mut incoming, &[800]), (1 + 297, 296));
        assert_eq!(tidy(&mut incoming, &[900]), (1, 296));
        assert_eq!(incoming.bytes(), 296 * cost(20) + cost(10));
        // The blocks that the machine gives up without a frame for them are the oldest.
        assert_eq!(tidy(&mut incoming, &[0, 100, 200]), (4, 293));
        assert_eq!(incoming.bytes(), 293 * cost(20) + cost(10));
    }

    /// Each symbol yields one more packet, and would cost a decoding of 128.
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
