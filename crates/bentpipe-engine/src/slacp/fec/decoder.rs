//! Blocks at the receiver: which of them can be restored.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::kept::Kept;
use crate::units::{Duration, Time};

/// A block with repair frames.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    count: u8,
    /// One bit per index of a repair frame that has arrived.
    repairs: u128,
}

/// A channel's blocks at the receiver.
#[derive(Clone, Debug)]
pub(in crate::slacp) struct Decoder {
    /// Number of packets that the driver keeps. A repair frame for older ones is too late.
    kept: Kept,
    blocks: BTreeMap<u64, Pending>,
    /// One past the highest packet received so far.
    end: u64,
}

/// At most one block per this many kept packets may be incomplete: the sender seals a block long before that many
/// packets follow.
const FRAMES_PER_PENDING: u64 = 16;

impl Decoder {
    /// `repairable`: how long after a packet a repair frame for it may arrive.
    pub(in crate::slacp) fn new(repairable: Duration) -> Self {
        Decoder { kept: Kept::new(repairable), blocks: BTreeMap::new(), end: 0 }
    }

    fn max_pending(&self) -> usize {
        (self.kept.count() / FRAMES_PER_PENDING) as usize
    }

    /// Records that a packet has arrived.
    pub(in crate::slacp) fn on_data(&mut self, now: Time, seq: u64) {
        let end = self.end.max(seq + 1);
        self.kept.on_packet(now, self.end, end);
        self.end = end;
    }

    /// True if a repair frame can be useful. A useless one must count as lost at the sender, which infers from the
    /// received repair frames which packets were recovered. All packets below `next` are done.
    pub(in crate::slacp) fn takes(&mut self, first: u64, count: u8, next: u64) -> bool {
        if let Some(pending) = self.blocks.get(&first) {
            return pending.count == count;
        }
        if self.blocks.len() >= self.max_pending() {
            self.blocks.retain(|&first, block| first + block.count as u64 > next);
        }
        first + self.kept.count() >= self.end && self.blocks.len() < self.max_pending()
    }

    /// Takes a useful repair frame.
    pub(in crate::slacp) fn on_repair(&mut self, first: u64, count: u8, index: u8) {
        let pending = self.blocks.entry(first).or_default();
        pending.count = count;
        pending.repairs |= 1u128.checked_shl(index as u32).unwrap_or(0);
    }

    /// True if the block that begins at `first` waits for more frames. All packets below `next` are done.
    pub(in crate::slacp) fn waits_for(&self, first: u64, next: u64) -> bool {
        self.blocks.get(&first).is_some_and(|block| first + block.count as u64 > next)
    }

    /// True if a packet may be needed to recover others.
    pub(in crate::slacp) fn needs(&self, seq: u64) -> bool {
        let block = self.blocks.range(..=seq).next_back();
        seq + self.kept.count() >= self.end || block.is_some_and(|(first, block)| seq - first < block.count as u64)
    }

    /// The block around `seq`, if it can be restored now: its first packet, its number of packets, and the missing ones.
    pub(in crate::slacp) fn complete(&mut self, seq: u64, has: impl Fn(u64) -> bool) -> Option<(u64, u8, Vec<u64>)> {
        let (&first, &pending) = self.blocks.range(..=seq).next_back()?;
        let end = first + pending.count as u64;
        if seq >= end {
            return None;
        }
        let missing: Vec<u64> = (first..end).filter(|&seq| !has(seq)).collect();
        if missing.len() > pending.repairs.count_ones() as usize {
            return None;
        }
        self.blocks.remove(&first);
        (!missing.is_empty()).then_some((first, pending.count, missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slacp::config::SlacpConfig;

    /// A block is repaired only if its first packet is still kept. Beyond those kept there are 1000 packets: block 1000 may be repaired,
    /// and block 999 not.
    #[test]
    fn a_repair_of_packets_that_are_gone_is_useless() {
        let mut decoder = Decoder::new(Duration::ZERO);
        decoder.on_data(Time::ZERO, u64::from(SlacpConfig::MIN_KEPT) + 999);
        assert_eq!([999, 1000].map(|first| decoder.takes(first, 6, 0)), [false, true]);
        assert_eq!([999, 1000].map(|seq| decoder.needs(seq)), [false, true]);
    }

    /// A block has one length. 64 of them may be incomplete; those of which all packets are done make room.
    #[test]
    fn incomplete_blocks_are_bounded() {
        let mut decoder = Decoder::new(Duration::ZERO);
        for block in 0..64 {
            assert!(decoder.takes(10 * block, 10, 0));
            decoder.on_repair(10 * block, 10, 0);
        }
        assert_eq!([10, 9, 11].map(|count| decoder.takes(0, count, 0)), [true, false, false]);
        assert_eq!([0, 9, 10].map(|next| decoder.takes(640, 10, next)), [false, false, true]);
    }

    #[test]
    fn any_frames_of_a_block_are_enough() {
        let mut decoder = Decoder::new(Duration::ZERO);
        let have = [0, 1, 4, 5];
        let has = |seq: u64| have.contains(&seq);
        decoder.on_repair(0, 6, 0);
        assert_eq!(decoder.complete(0, has), None);
        decoder.on_repair(0, 6, 0);
        assert_eq!(decoder.complete(0, has), None, "the same one again");
        decoder.on_repair(0, 6, 3);
        assert_eq!(decoder.complete(2, has), Some((0, 6, vec![2, 3])));
        assert_eq!(decoder.complete(2, has), None, "once");
    }
}
