//! Blocks of an erasure code: what is sent, what was lost of it, and how many repair frames the next ones get.
//!
//! The code is systematic and maximum distance separable: any `count` of a block's frames give the whole block. So
//! counting is enough here; the driver does the arithmetic.

use std::collections::{BTreeMap, VecDeque};

use super::config::Fec;
use crate::units::{Duration, Time};

/// What a block at the sender asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its losses are made good, or there were none.
    Whole,
    /// More was lost than the repair frames make good.
    Broken,
}

/// A block at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first: u64,
    pub(super) count: u8,
    /// Bytes of its longest packet.
    pub(super) longest: u32,
    opened: Time,
    /// Repair frames that are still to go out, and those that have.
    to_send: u8,
    pub(super) sent: u8,
    closed: bool,
    /// No more repair frames will go out.
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

/// The sender's blocks of a channel.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    config: Fec,
    first: u64,
    ring: VecDeque<Block>,
    /// Blocks with repair frames to send.
    repairing: VecDeque<u64>,
    losses: Losses,
}

impl Blocks {
    pub(super) fn new(config: Fec) -> Self {
        Blocks {
            config,
            first: 0,
            ring: VecDeque::new(),
            repairing: VecDeque::new(),
            losses: Losses::new(config.block),
        }
    }

    fn get(&mut self, id: u64) -> Option<&mut Block> {
        self.ring.get_mut(id.checked_sub(self.first)? as usize)
    }

    fn open(&self) -> Option<(u64, &Block)> {
        let last = self.ring.back().filter(|block| !block.closed)?;
        Some((self.first + self.ring.len() as u64 - 1, last))
    }

    /// A packet goes out for the first time: answers its block, and the block that is sealed by that, if any.
    pub(super) fn add(&mut self, now: Time, seq: u64, len: u32) -> (u64, Option<Block>) {
        if self.open().is_none() {
            self.ring.push_back(Block {
                first: seq,
                count: 0,
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
        let full = block.count == self.config.block;
        (id, if full { self.close(id) } else { None })
    }

    /// How long a block may wait for more packets. If none are there, repairs that go into an idle line need not wait.
    fn interval(&self, is_idle: bool) -> Duration {
        let hurries = is_idle && self.config.repairs.end_with_a_loss();
        if hurries { self.config.interval.div_floor(8) } else { self.config.interval }
    }

    /// When the open block ends for want of packets; `is_idle`: none are waiting.
    pub(super) fn deadline(&self, is_idle: bool) -> Option<Time> {
        self.open().map(|(_, block)| block.opened + self.interval(is_idle))
    }

    /// Ends the open block if its time is over; answers it if it is sealed by that.
    pub(super) fn on_time(&mut self, now: Time, is_idle: bool) -> Option<Block> {
        let interval = self.interval(is_idle);
        let (id, _) = self.open().filter(|(_, block)| block.opened + interval <= now)?;
        self.close(id)
    }

    fn close(&mut self, id: u64) -> Option<Block> {
        let max = self.config.max_overhead;
        let count = self.get(id)?.count;
        let repairs = self.losses.repairs(count, max).min(Fec::MAX_REPAIRS);
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

    /// Whether a lost packet of this block may yet be made good by its repair frames.
    pub(super) fn may_repair(&mut self, id: u64) -> bool {
        self.get(id).is_some_and(|block| !block.closed || block.to_send > 0 || block.sent > 0)
    }

    /// The blocks whose repair frames come too late to be of use, one at a time.
    pub(super) fn expired(&mut self, now: Time) -> Option<Block> {
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

    /// The first packet that a repair frame may yet protect; `None`: none of those that have been sent.
    pub(super) fn needed_from(&self) -> Option<u64> {
        let repairing = self.repairing.front().and_then(|id| self.ring.get(id.checked_sub(self.first)? as usize));
        repairing.or(self.open().map(|(_, block)| block)).map(|block| block.first)
    }

    /// Whether a repair frame is ready to go out.
    pub(super) fn has_repair(&self) -> bool {
        !self.repairing.is_empty()
    }

    /// The next repair frame: its block's number, the block as it stands now, and the block if it is sealed by that.
    pub(super) fn next_repair(&mut self) -> Option<(u64, Block, Option<Block>)> {
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

    /// A packet's first transmission is judged; answers its block if that seals it.
    pub(super) fn on_source(&mut self, id: u64, lost: bool) -> Option<Block> {
        let hurries = self.config.repairs.end_with_a_loss();
        let block = self.get(id)?;
        block.unjudged -= 1;
        block.lost += lost as u8;
        let is_of_no_use = lost || block.unjudged == 0;
        if !(hurries && block.closed && block.to_send > 0 && is_of_no_use) {
            return None;
        }
        self.repairing.retain(|&other| other != id);
        self.seal(id)
    }

    /// A repair frame is judged.
    pub(super) fn on_repair(&mut self, id: u64, lost: bool) {
        if let Some(block) = self.get(id) {
            block.unjudged -= 1;
            block.repairs_arrived += !lost as u8;
        }
    }

    /// The next block of which everything is known, in order.
    pub(super) fn next_decided(&mut self) -> Option<(Block, Fate)> {
        let block = *self.ring.front()?;
        if !block.is_decided() {
            return None;
        }
        self.ring.pop_front();
        self.first += 1;
        self.losses.note(block.lost, block.count, self.config.max_overhead);
        Some((block, block.fate()))
    }
}

/// Memory of how many frames of blocks are lost: sums over blocks that fade with each frame.
#[derive(Clone, Debug)]
struct Losses {
    /// Frames, and those that were lost.
    frames: f64,
    lost: f64,
    /// Squares of both per block, and the product.
    frames_squared: f64,
    lost_squared: f64,
    product: f64,
    full: f64,
}

/// What a full block adds to the memory fades to 1/e in so many further ones.
const MEMORY: f64 = 128.0;
/// A repair frame is worth its room if in so many of all blocks it is the one that makes them whole: it saves a flow a
/// round trip, in which a full line sends some hundreds of frames. Less, and fades draw more repairs than they are worth.
const WORTH: f64 = 0.005;
/// Terms of a distribution: more losses than a block with its repair frames has are none.
const TERMS: usize = 2 * Fec::MAX_FRAMES as usize;

impl Losses {
    /// Until something is known, one loss in a block is assumed: a flow's first losses hurt most, since they end its
    /// slow start, and the line is not full yet. Some 250 clean blocks refute it.
    fn new(block: u8) -> Self {
        let full = f64::from(block);
        let blocks = 2.0;
        Losses {
            frames: blocks * full,
            lost: blocks,
            frames_squared: blocks * full * full,
            lost_squared: blocks,
            product: blocks * full,
            full,
        }
    }

    /// A block of `count` is known. One that lost more than `max_overhead` makes good (an outage) says nothing about how
    /// many repair frames there should be.
    fn note(&mut self, lost: u8, count: u8, max_overhead: f64) {
        let (lost, count) = (f64::from(lost), f64::from(count));
        if lost > max_overhead * (count - lost) {
            return;
        }
        let fade = 1.0 - count / (MEMORY * self.full);
        for (sum, more) in [
            (&mut self.frames, count),
            (&mut self.lost, lost),
            (&mut self.frames_squared, count * count),
            (&mut self.lost_squared, lost * lost),
            (&mut self.product, count * lost),
        ] {
            *sum = *sum * fade + more;
        }
    }

    /// Repair frames for a block of `count`.
    ///
    /// What a block loses is taken for negative binomial, with the mean and the variance of the blocks that were seen, but
    /// not less variance than losses have that know nothing of each other; the repair frames meet the same losses.
    /// Single losses are thereby nearly all made good, and of bursts as much as is worth it.
    fn repairs(&self, count: u8, max_overhead: f64) -> u8 {
        let share = self.lost / self.frames;
        if share <= 0.0 {
            return 0;
        }
        let deviation = self.lost_squared - 2.0 * share * self.product + share * share * self.frames_squared;
        let dispersion = (deviation / self.lost).max(1.0);
        let mean = f64::from(count) * share / (1.0 - share);
        // Terms up to a common factor, which their sum tells: nothing but the four operations, the same on all machines.
        let mut terms = [0.0; TERMS];
        let (mut term, mut sum) = (1.0, 0.0);
        for (k, place) in terms.iter_mut().enumerate() {
            *place = term;
            sum += term;
            // Of the distribution with that mean and dispersion (variance over mean); for 1 it is Poisson's.
            term *= (mean + k as f64 * (dispersion - 1.0)) / (dispersion * (k + 1) as f64);
        }
        let max = ((max_overhead * f64::from(count)) as usize).min(TERMS - 1);
        terms[1..=max].iter().rposition(|&term| term >= WORTH * sum).map_or(0, |before| before as u8 + 1)
    }
}

/// A block at the receiver of which repair frames have come.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    count: u8,
    /// Bit per index.
    repairs: u128,
}

/// The receiver's blocks of a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoder {
    blocks: BTreeMap<u64, Pending>,
    /// All packets that are here lie below.
    end: u64,
}

/// Blocks that wait for more frames, at most: the sender seals a block long before so many follow.
const MAX_PENDING: usize = 64;
/// The driver keeps so many of the latest packets of a channel; a repair frame for older ones comes too late. Eight
/// full blocks: frames that fill the line for as long as their sender waits with repairs seldom are more.
const KEPT: u64 = 8 * Fec::MAX_FRAMES as u64;

impl Decoder {
    /// A packet is here.
    pub(super) fn on_data(&mut self, seq: u64) {
        self.end = self.end.max(seq + 1);
    }

    /// Whether a repair frame can be of use. One that cannot must count as lost at its sender, who concludes from
    /// those that arrived what has been made good. All packets below `next` are done.
    pub(super) fn takes(&mut self, first: u64, count: u8, next: u64) -> bool {
        if let Some(pending) = self.blocks.get(&first) {
            return pending.count == count;
        }
        if self.blocks.len() >= MAX_PENDING {
            self.blocks.retain(|&first, block| first + block.count as u64 > next);
        }
        first + KEPT >= self.end && self.blocks.len() < MAX_PENDING
    }

    /// A repair frame has come that is of use.
    pub(super) fn on_repair(&mut self, first: u64, count: u8, index: u8) {
        let pending = self.blocks.entry(first).or_default();
        pending.count = count;
        pending.repairs |= 1u128.checked_shl(index as u32).unwrap_or(0);
    }

    /// Whether the block that begins there waits for more frames.
    pub(super) fn waits_for(&self, first: u64) -> bool {
        self.blocks.contains_key(&first)
    }

    /// Whether a packet may have to serve in computing others.
    pub(super) fn needs(&self, seq: u64) -> bool {
        let block = self.blocks.range(..=seq).next_back();
        seq + KEPT >= self.end || block.is_some_and(|(first, block)| seq - first < block.count as u64)
    }

    /// The block around `seq`, if what is there of it is enough now: its first packet, how many it has, and which of
    /// them are missing.
    pub(super) fn complete(&mut self, seq: u64, has: impl Fn(u64) -> bool) -> Option<(u64, u8, Vec<u64>)> {
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

    /// What blocks of twenty lost, and how many of them.
    fn losses(seen: &[(u8, u32)]) -> Losses {
        let mut losses = Losses::new(20);
        for &(lost, times) in seen {
            (0..times).for_each(|_| losses.note(lost, 20, 0.5));
        }
        losses
    }

    #[test]
    fn overhead_follows_what_was_lost() {
        assert_eq!(losses(&[]).repairs(20, 0.5), 4, "nothing is known: one loss is assumed, by chance none or four");
        assert_eq!(losses(&[(0, 60)]).repairs(20, 0.5), 1);
        assert_eq!(losses(&[(0, 250)]).repairs(20, 0.5), 0);
        assert_eq!(losses(&[(0, 500)]).repairs(20, 0.5), 0, "nothing is lost");
        // An outage takes whole blocks: no repair helps, and none is sent for it.
        assert_eq!(losses(&[(0, 300), (20, 50)]).repairs(20, 0.5), 0);
        // The cap.
        assert_eq!(losses(&[(2, 200)]).repairs(20, 0.1), 2);
        // What is long past is forgotten.
        assert_eq!(losses(&[(4, 100), (0, 900)]).repairs(20, 0.5), 0);
    }

    /// Blocks of any size, half of them short, that lose each frame with the same chance: the share of those that come
    /// through is what [`WORTH`] says, and no more is sent than that takes.
    #[test]
    fn single_losses_are_made_good() {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) as f64 / (1u64 << 53) as f64
        };
        // By Poisson's distribution: of 100 frames at 1 and 5 % and their repairs, 4 and 11 losses are the most that are not
        // rarer than five in a thousand blocks.
        for (chance, expected) in [(0.01, 4), (0.05, 11)] {
            let mut losses = Losses::new(100);
            for n in 0..2000 {
                let count = if n % 2 == 0 { 100 } else { 12 };
                let lost = (0..count).filter(|_| next() < chance).count();
                losses.note(lost as u8, count, 0.5);
            }
            let repairs = losses.repairs(100, 0.5);
            assert!((expected - 1..=expected + 1).contains(&repairs), "{chance}: {repairs}");
        }
        // Losses that come in clumps of ten: more than the four that Poisson's distribution has for their mean, one.
        let mut clumps = Losses::new(100);
        (0..2000).for_each(|n| clumps.note(if n % 10 == 0 { 10 } else { 0 }, 100, 0.5));
        assert!((7..=20).contains(&clumps.repairs(100, 0.5)), "{}", clumps.repairs(100, 0.5));
        // One block in fifty loses thirty frames of a hundred: to make that good costs more than it is worth.
        let mut bursts = Losses::new(100);
        (0..2000).for_each(|n| bursts.note(if n % 50 == 0 { 30 } else { 0 }, 100, 0.5));
        assert!(bursts.repairs(100, 0.5) < 5, "{}", bursts.repairs(100, 0.5));
    }

    #[test]
    fn any_frames_of_a_block_are_enough() {
        let mut decoder = Decoder::default();
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
