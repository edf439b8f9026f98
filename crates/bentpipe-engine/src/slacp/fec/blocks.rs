//! Blocks at the sender: the packets sent, their losses, and when to send repair frames.

use alloc::collections::VecDeque;

use super::losses::Losses;
use crate::slacp::config::Fec;
use crate::units::{Duration, Time};

/// The outcome of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::slacp) enum Fate {
    /// Every packet arrived or can be recovered.
    Whole,
    /// More packets were lost than the repair frames can recover.
    Broken,
}

/// A block at the sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::slacp) struct Block {
    pub(in crate::slacp) first: u64,
    pub(in crate::slacp) count: u8,
    max_count: u8,
    /// Length of its longest packet in bytes.
    pub(in crate::slacp) longest: u32,
    opened: Time,
    /// Number of repair frames still to send, and number already sent.
    to_send: u8,
    pub(in crate::slacp) sent: u8,
    closed: bool,
    /// No more repair frames will be sent.
    sealed: bool,
    unjudged: u32,
    lost: u8,
    repairs_arrived: u8,
}

impl Block {
    fn is_decided(&self) -> bool {
        self.sealed && self.unjudged == 0
    }

    fn fate(&self) -> Fate {
        if self.lost <= self.repairs_arrived { Fate::Whole } else { Fate::Broken }
    }
}

/// A channel's blocks at the sender.
#[derive(Clone, Debug)]
pub(in crate::slacp) struct Blocks {
    config: Fec,
    first: u64,
    ring: VecDeque<Block>,
    /// Blocks that have repair frames to send.
    repairing: VecDeque<u64>,
    losses: Losses,
}

impl Blocks {
    pub(in crate::slacp) fn new(config: Fec) -> Self {
        Blocks {
            config,
            first: 0,
            ring: VecDeque::new(),
            repairing: VecDeque::new(),
            losses: Losses::new(config.block, config.worth),
        }
    }

    fn get(&mut self, id: u64) -> Option<&mut Block> {
        self.ring.get_mut(id.checked_sub(self.first)? as usize)
    }

    fn open(&self) -> Option<(u64, &Block)> {
        let last = self.ring.back().filter(|block| !block.closed)?;
        Some((self.first + self.ring.len() as u64 - 1, last))
    }

    /// Adds a packet that is sent for the first time, after it has waited in the queue. Returns the number of its block, and also the block
    /// if that seals it.
    pub(in crate::slacp) fn add(&mut self, now: Time, seq: u64, len: u32, wait: Duration) -> (u64, Option<Block>) {
        if self.open().is_none() {
            let Fec { block, first_block, interval, .. } = self.config;
            let first_block = first_block.filter(|_| wait < interval.div_floor(4));
            self.ring.push_back(Block {
                first: seq,
                count: 0,
                max_count: first_block.map_or(block, |first| first.clamp(1, block)),
                longest: 0,
                opened: now,
                to_send: 0,
                sent: 0,
                closed: false,
                sealed: false,
                unjudged: 0,
                lost: 0,
                repairs_arrived: 0,
            });
        }
        let id = self.first + self.ring.len() as u64 - 1;
        let block = self.ring.back_mut().expect("just opened");
        block.count += 1;
        block.unjudged += 1;
        block.longest = block.longest.max(len);
        let full = block.count == block.max_count;
        (id, if full { self.close(id) } else { None })
    }

    /// Maximum age of a block. If no packets wait, repairs meant for an idle line need not wait for further packets.
    fn interval(&self, is_idle: bool) -> Duration {
        let hurries = is_idle && self.config.repairs.end_with_a_loss();
        if hurries { self.config.interval.div_floor(8) } else { self.config.interval }
    }

    /// When the open block ends without being full; `is_idle`: no packets wait.
    pub(in crate::slacp) fn deadline(&self, is_idle: bool) -> Option<Time> {
        self.open().map(|(_, block)| block.opened + self.interval(is_idle))
    }

    /// Ends the open block if it is due. Returns it if that seals it.
    pub(in crate::slacp) fn on_time(&mut self, now: Time, is_idle: bool) -> Option<Block> {
        let interval = self.interval(is_idle);
        let (id, _) = self.open().filter(|(_, block)| block.opened + interval <= now)?;
        self.close(id)
    }

    fn close(&mut self, id: u64) -> Option<Block> {
        let (max, hurries) = (self.config.max_overhead, self.config.repairs.end_with_a_loss());
        let Block { count, unjudged, .. } = *self.get(id)?;
        let repairs = match unjudged {
            // All have arrived.
            0 if hurries => 0,
            _ => self.losses.repairs(count, max).min(Fec::MAX_REPAIRS),
        };
        let block = self.get(id)?;
        block.closed = true;
        block.to_send = repairs;
        if repairs == 0 {
            return self.seal(id);
        }
        self.repairing.push_back(id);
        None
    }

    fn seal(&mut self, id: u64) -> Option<Block> {
        let block = self.get(id)?;
        block.to_send = 0;
        block.sealed = true;
        Some(*block)
    }

    /// True if the block's repair frames may still recover a lost packet.
    pub(in crate::slacp) fn may_repair(&mut self, id: u64) -> bool {
        self.get(id).is_some_and(|block| !block.closed || block.to_send > 0 || block.sent > 0)
    }

    /// Seals the next block whose repair frames would come too late.
    pub(in crate::slacp) fn expired(&mut self, now: Time) -> Option<Block> {
        if self.config.repairs.end_with_a_loss() {
            return None;
        }
        let id = *self.repairing.front()?;
        let patience = self.config.interval.saturating_mul(2);
        let block = self.get(id)?;
        if now.saturating_since(block.opened) <= patience {
            return None;
        }
        self.repairing.pop_front();
        self.seal(id)
    }

    /// The first sent packet that a repair frame may still protect.
    pub(in crate::slacp) fn needed_from(&self) -> Option<u64> {
        let repairing = self.repairing.front().and_then(|id| self.ring.get(id.checked_sub(self.first)? as usize));
        repairing.or(self.open().map(|(_, block)| block)).map(|block| block.first)
    }

    /// True if a repair frame is ready to be sent.
    pub(in crate::slacp) fn has_repair(&self) -> bool {
        !self.repairing.is_empty()
    }

    /// The next repair frame: the number of its block, the block, and the block again if that seals it.
    pub(in crate::slacp) fn next_repair(&mut self) -> Option<(u64, Block, Option<Block>)> {
        let id = *self.repairing.front()?;
        let block = self.get(id)?;
        block.to_send -= 1;
        block.sent += 1;
        block.unjudged += 1;
        let (now, last) = (*block, block.to_send == 0);
        if last {
            self.repairing.pop_front();
        }
        Some((id, now, if last { self.seal(id) } else { None }))
    }

    /// Takes the verdict on a packet's first transmission. Returns its block if that seals it. A loss also ends a block that is still open.
    pub(in crate::slacp) fn on_source(&mut self, id: u64, lost: bool) -> Option<Block> {
        let hurries = self.config.repairs.end_with_a_loss();
        let block = self.get(id)?;
        block.unjudged -= 1;
        block.lost += lost as u8;
        let is_of_no_use = if block.closed { block.to_send > 0 && (lost || block.unjudged == 0) } else { lost };
        if !(hurries && is_of_no_use) {
            return None;
        }
        block.closed = true;
        self.repairing.retain(|&other| other != id);
        self.seal(id)
    }

    /// Takes the verdict on a repair frame.
    pub(in crate::slacp) fn on_repair(&mut self, id: u64, lost: bool) {
        if let Some(block) = self.get(id) {
            block.unjudged -= 1;
            block.repairs_arrived += !lost as u8;
        }
    }

    /// The next block whose outcome is known, in order.
    pub(in crate::slacp) fn next_decided(&mut self) -> Option<(Block, Fate)> {
        let block = *self.ring.front()?;
        if !block.is_decided() {
            return None;
        }
        self.ring.pop_front();
        self.first += 1;
        self.losses.on_block(block.lost, block.count, self.config.max_overhead);
        Some((block, block.fate()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slacp::config::Repairs;

    fn at(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// Blocks of twenty, at most 100 ms old. A full one gets four repair frames as long as nothing is known (`losses`).
    fn blocks(repairs: Repairs) -> Blocks {
        let interval = Duration::from_millis(100);
        Blocks::new(Fec { block: 20, first_block: None, interval, max_overhead: 0.5, repairs, worth: Fec::WORTH })
    }

    fn fill(blocks: &mut Blocks, block: u64) {
        (20 * block..20 * block + 20).for_each(|seq| assert_eq!(blocks.add(at(0), seq, 100, Duration::ZERO).0, block));
    }

    /// A quarter of the interval is 25 ms.
    #[test]
    fn a_block_after_a_pause_is_short() {
        let count = |first_block, micros| {
            let mut blocks = blocks(Repairs::Short);
            blocks.config.first_block = first_block;
            let packets = (0..21).map(|seq| match seq {
                0 => blocks.add(at(0), seq, 100, Duration::from_micros(micros)).0,
                _ => blocks.add(at(0), seq, 100, Duration::from_millis(25)).0,
            });
            packets.filter(|&block| block == 0).count()
        };
        assert_eq!([None, Some(5), Some(0), Some(30)].map(|first| count(first, 24_999)), [20, 5, 1, 20]);
        assert_eq!(count(Some(5), 25_000), 20, "it has waited");
    }

    /// Sends all repair frames of the first block that has some: how many there were.
    fn repair(blocks: &mut Blocks) -> u8 {
        (1..).find(|_| blocks.next_repair().expect("it has some").2.is_some()).expect("the last one seals")
    }

    #[test]
    fn a_block_needs_its_packets_until_its_last_repair() {
        let mut blocks = blocks(Repairs::Spare);
        fill(&mut blocks, 0);
        assert!(blocks.add(at(0), 20, 100, Duration::ZERO).1.is_none() && blocks.may_repair(0) && blocks.may_repair(1));
        assert_eq!(blocks.needed_from(), Some(0));
        assert_eq!((repair(&mut blocks), blocks.needed_from()), (4, Some(20)));
        assert!(blocks.may_repair(0), "what was sent may arrive");
    }

    #[test]
    fn blocks_end_by_their_age() {
        for (repairs, idle) in
            [(Repairs::Spare, 100_000), (Repairs::Prompt, 100_000), (Repairs::Idle, 12_500), (Repairs::Short, 12_500)]
        {
            let mut blocks = blocks(repairs);
            (0..19).for_each(|seq| _ = blocks.add(at(0), seq, 100, Duration::ZERO));
            assert_eq!([false, true].map(|is_idle| blocks.deadline(is_idle)), [100_000, idle].map(|at_| Some(at(at_))));
            assert!(blocks.on_time(at(idle - 1), true).is_none() && blocks.deadline(true).is_some());
            assert!(blocks.on_time(at(idle), true).is_none() && blocks.deadline(true).is_none(), "it has repairs");
            // Those that were not sent for as long again are too late, unless only a loss ends them.
            assert!(blocks.expired(at(200_000)).is_none());
            assert_eq!(blocks.expired(at(200_001)).is_some(), idle == 100_000);
            assert_eq!(blocks.has_repair(), idle < 100_000);
        }
    }

    /// Repairs for an idle line are withdrawn when a packet is lost, or when all have arrived.
    #[test]
    fn a_verdict_may_make_repairs_useless() {
        for lost in [false, true] {
            let mut blocks = blocks(Repairs::Idle);
            fill(&mut blocks, 0);
            assert!((0..18).all(|_| blocks.on_source(0, false).is_none()));
            assert_eq!(blocks.on_source(0, lost).is_some(), lost);
            assert_eq!(blocks.on_source(0, false).is_some(), !lost);
            assert!(!blocks.has_repair() && !blocks.may_repair(0));
            assert!(blocks.next_decided().is_some());
        }
    }

    /// As many repairs as losses make a block whole. Its losses count for the next ones: twelve blocks without any leave three repairs.
    #[test]
    fn the_fate_of_blocks() {
        for (lost, arrived, fate) in
            [(0, 0, Fate::Whole), (4, 4, Fate::Whole), (4, 3, Fate::Broken), (1, 0, Fate::Broken)]
        {
            let mut blocks = blocks(Repairs::Spare);
            fill(&mut blocks, 0);
            repair(&mut blocks);
            (0..20).for_each(|n| assert!(blocks.on_source(0, n < lost).is_none() && blocks.next_decided().is_none()));
            for n in 0..4 {
                assert!(blocks.next_decided().is_none());
                blocks.on_repair(0, n >= arrived);
            }
            assert_eq!(blocks.next_decided().map(|(_, fate)| fate), Some(fate), "{lost} {arrived}");
        }
        let mut blocks = blocks(Repairs::Spare);
        let repairs = (0..300).map(|block| {
            fill(&mut blocks, block);
            let repairs = if blocks.has_repair() { repair(&mut blocks) } else { 0 };
            (0..20).for_each(|_| _ = blocks.on_source(block, false));
            (0..repairs).for_each(|_| blocks.on_repair(block, false));
            assert!(blocks.next_decided().is_some());
            repairs
        });
        let repairs: Vec<u8> = repairs.collect();
        assert_eq!((repairs[0], repairs[299]), (4, 0), "{repairs:?}");
    }

    /// A loss that is known while its block is still open ends the block, if the lost packet is sent again instead. Packets after that
    /// begin another one.
    #[test]
    fn a_loss_ends_an_open_block() {
        for repairs in [Repairs::Spare, Repairs::Prompt, Repairs::Idle, Repairs::Short] {
            let ends = repairs.end_with_a_loss();
            let mut blocks = blocks(repairs);
            (0..5).for_each(|seq| _ = blocks.add(at(0), seq, 100, Duration::ZERO));
            assert!(blocks.on_source(0, false).is_none());
            assert_eq!(blocks.on_source(0, true).map(|block| block.count), ends.then_some(5), "{repairs:?}");
            assert_eq!(
                (blocks.may_repair(0), blocks.has_repair(), blocks.needed_from()),
                (!ends, false, (!ends).then_some(0))
            );
            assert_eq!(blocks.add(at(0), 5, 100, Duration::ZERO).0, u64::from(ends), "{repairs:?}");
            (0..3).for_each(|_| assert!(blocks.on_source(0, false).is_none() && blocks.deadline(false).is_some()));
            assert_eq!(
                blocks.next_decided().map(|(block, fate)| (block.count, fate)),
                ends.then_some((5, Fate::Broken))
            );
        }
    }

    /// A slow block may end when all of its packets have arrived: then repair frames for an idle line have nothing left to repair.
    #[test]
    fn a_block_that_has_arrived_needs_no_repairs() {
        for repairs in [Repairs::Spare, Repairs::Prompt, Repairs::Idle, Repairs::Short] {
            let mut blocks = blocks(repairs);
            (0..5).for_each(|seq| _ = blocks.add(at(0), seq, 100, Duration::ZERO));
            (0..5).for_each(|_| assert!(blocks.on_source(0, false).is_none() && blocks.may_repair(0)));
            let ends = repairs.end_with_a_loss();
            assert_eq!(
                (blocks.on_time(at(100_000), false).is_some(), blocks.has_repair()),
                (ends, !ends),
                "{repairs:?}"
            );
        }
    }
}
