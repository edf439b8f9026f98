//! A channel at the sender: its queue, its packets in flight, and its retransmissions.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};

use super::backlog::Backlog;
use super::config::{ChannelConfig, Order, Queueing};
use super::exchange::{Output, Released};
use super::fec::{Block, Blocks, Fate};
use super::predecessors::Predecessors;
use super::resends::Resends;
use super::stats::ChannelStats;
use super::transmission::{NextPacket, Sent};
use super::waiting::{Pushed, Waiting};
use crate::arq::{Verdict, trim};
use crate::units::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Sent; no verdict yet.
    Flying,
    /// Lost, but its block may restore it.
    Lost,
    /// Lost, and queued for retransmission.
    Resend,
    /// Acknowledged or abandoned.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    handle: u32,
    len: u32,
    behind: u32,
    state: State,
    /// Transmissions that count towards the channel's maximum, which are all but copies.
    transmissions: u32,
    /// Transmissions without a verdict.
    flying: u32,
    copies: u8,
}

/// A packet of several frames, or one whose bytes count towards its flow.
#[derive(Clone, Copy, Debug)]
struct Part {
    flow: u64,
    /// Number of frames that are not done.
    left: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) config: ChannelConfig,
    pub(super) backlog: Backlog,
    /// The floor: all packets below it are done.
    first: u64,
    /// By how many packets the floor in frames lags behind it: by those that others may overtake, if none waits for them.
    lag: u64,
    slots: VecDeque<Slot>,
    /// Number of packets in `slots` that are not done, and the bytes of their unfinished frames.
    held: (usize, u64),
    /// These packets by handle, if a packet may have several frames.
    parts: Option<BTreeMap<u32, Part>>,
    resend: Resends,
    /// Packets that may be copied, and when, in order of time.
    copies: VecDeque<(Time, u64)>,
    predecessors: Predecessors,
    blocks: Option<Blocks>,
    /// The floor that the peer has acknowledged.
    acked_floor: u64,
    /// The floor that the peer must learn, by a sync if no other frame is sent.
    due_floor: u64,
    sync_is_out: bool,
    pub(super) deficit: u32,
    pub(super) stats: ChannelStats,
}

impl Outgoing {
    pub(super) fn new(config: ChannelConfig, reordering: u64) -> Self {
        Outgoing {
            backlog: Backlog::new(&config),
            config,
            first: 0,
            lag: if config.arq.is_none() && config.order == Order::None { reordering } else { 0 },
            slots: VecDeque::new(),
            held: (0, 0),
            parts: (config.segments > 1 || config.queueing == Queueing::Fair).then(BTreeMap::new),
            resend: Resends::new(config.resends_oldest_first),
            copies: VecDeque::new(),
            predecessors: Predecessors::new(config.order),
            blocks: config.fec.map(Blocks::new),
            acked_floor: 0,
            due_floor: 0,
            sync_is_out: false,
            deficit: 0,
            stats: ChannelStats::default(),
        }
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Takes a packet from above.
    pub(super) fn push(&mut self, packet: Waiting, outputs: &mut VecDeque<Output>) {
        self.stats.packets += 1;
        let held = if self.config.limit_counts_copies { self.held } else { (0, 0) };
        let gone = match self.backlog.push_alone(packet, held) {
            Pushed::Waits => None,
            Pushed::Replaces(handle) => {
                self.stats.superseded += 1;
                outputs.push_back(Output::Release { handle, how: Released::Superseded });
                None
            }
            Pushed::Evicts(handle) => Some(handle),
            Pushed::Refused => Some(packet.handle),
        };
        for handle in gone.into_iter().chain(core::iter::from_fn(|| self.backlog.evicted())) {
            self.stats.dropped_full += 1;
            outputs.push_back(Output::Release { handle, how: Released::DroppedFull });
        }
        self.stats.max_waiting = self.stats.max_waiting.max(self.backlog.len() as u32);
    }

    /// True if a packet waits for retransmission.
    pub(super) fn has_resend(&self) -> bool {
        !self.resend.is_empty()
    }

    /// True if a new packet may be sent within this window.
    pub(super) fn has_new(&self, window: u32) -> bool {
        !self.backlog.is_empty() && self.slots.len() < window as usize
    }

    /// The first packet that a repair frame may still protect.
    pub(super) fn protects_from(&self) -> u64 {
        self.blocks.as_ref().and_then(Blocks::needed_from).unwrap_or_else(|| self.next_seq())
    }

    pub(super) fn has_repair(&self) -> bool {
        self.blocks.as_ref().is_some_and(Blocks::has_repair)
    }

    /// True if the peer must learn the floor and there is no packet to carry it.
    pub(super) fn needs_sync(&self) -> bool {
        self.acked_floor < self.due_floor && !self.sync_is_out && self.backlog.is_empty() && self.resend.is_empty()
    }

    pub(super) fn sync(&mut self) -> u64 {
        self.sync_is_out = true;
        self.stats.syncs += 1;
        self.first
    }

    /// Frees memory left behind by bursts. Returns true if the next call may free more.
    pub(super) fn trim(&mut self, forgets: bool) -> bool {
        trim(&mut self.slots);
        trim(&mut self.copies);
        let next = self.next_seq();
        forgets && self.predecessors.forget(self.first, next)
    }

    /// The next packet to retransmit. `counts`: this counts towards the channel's maximum of transmissions.
    pub(super) fn next_resend(&mut self, now: Time, counts: bool) -> Option<NextPacket> {
        while let Some(seq) = self.resend.pop() {
            let at = seq.checked_sub(self.first);
            let Some(slot) = at.and_then(|at| self.slots.get_mut(at as usize)) else { continue };
            if slot.state != State::Resend {
                continue;
            }
            slot.state = State::Flying;
            slot.transmissions += u32::from(counts);
            slot.flying += 1;
            self.stats.resent += 1;
            let &mut Slot { handle, len, behind, .. } = slot;
            let floor = self.first;
            let sent = Sent::Data { seq, block: None, floor };
            if self.config.copies.is_some_and(|copies| copies.only_resent) {
                self.may_copy(now, seq);
            }
            return Some(NextPacket { seq, behind, len, handle, floor, sent });
        }
        None
    }

    /// When the next copy may be sent, if the line is idle then.
    pub(super) fn copy_at(&self) -> Option<Time> {
        self.copies.front().map(|&(at, _)| at)
    }

    /// The next copy that may be sent now. A packet that was retransmitted twice waits for it twice.
    pub(super) fn next_copy(&mut self, now: Time) -> Option<NextPacket> {
        let copies = self.config.copies?;
        while let Some(&(_, seq)) = self.copies.front().filter(|(at, _)| *at <= now) {
            self.copies.pop_front();
            let at = seq.checked_sub(self.first);
            let Some(slot) = at.and_then(|at| self.slots.get_mut(at as usize)) else { continue };
            if slot.state != State::Flying || slot.copies >= copies.max {
                continue;
            }
            slot.copies += 1;
            slot.flying += 1;
            if slot.copies < copies.max {
                self.copies.push_back((now + copies.interval, seq));
            }
            self.stats.copies += 1;
            let &mut Slot { handle, len, behind, .. } = slot;
            let floor = self.first;
            let sent = Sent::Data { seq, block: None, floor };
            return Some(NextPacket { seq, behind, len, handle, floor, sent });
        }
        None
    }

    /// Records that a new packet was sent and may be copied from now on. Also removes packets that are done, so that a
    /// line that is never idle keeps no more than its window.
    fn may_copy(&mut self, now: Time, seq: u64) {
        let Some(copies) = self.config.copies.filter(|copies| copies.max > 0) else { return };
        while let Some(&(_, oldest)) = self.copies.front() {
            let at = oldest.checked_sub(self.first);
            if at.and_then(|at| self.slots.get(at as usize)).is_some_and(|slot| slot.state == State::Flying) {
                break;
            }
            self.copies.pop_front();
        }
        self.copies.push_back((now + copies.interval, seq));
    }

    /// The next new packet to send.
    pub(super) fn next_new(&mut self, now: Time, outputs: &mut VecDeque<Output>) -> Option<NextPacket> {
        let dropped = &mut self.stats.dropped_early;
        let Waiting { handle, len, flow, since, .. } = self.backlog.pop(now, |handle| {
            *dropped += 1;
            outputs.push_back(Output::Release { handle, how: Released::DroppedEarly });
            false
        })?;
        let wait = now.saturating_since(since);
        self.stats.waited += wait;
        self.stats.longest_wait = self.stats.longest_wait.max(wait);
        self.stats.sent += 1;
        self.stats.sent_bytes += len as u64;
        let seq = self.next_seq();
        let behind = self.predecessors.of(seq, flow);
        let floor = self.first.saturating_sub(self.lag);
        if self.config.arq.is_none() && self.blocks.is_none() {
            // Nothing more will be done for it, so it is forgotten once sent.
            self.first += 1;
            outputs.push_back(Output::Release { handle, how: Released::Sent });
            let sent = Sent::Data { seq, block: None, floor };
            return Some(NextPacket { seq, behind, len, handle, floor, sent });
        }
        self.slots.push_back(Slot {
            handle,
            len,
            behind,
            state: State::Flying,
            transmissions: 1,
            flying: 1,
            copies: 0,
        });
        if self.config.arq.is_some() && self.config.copies.is_some_and(|copies| !copies.only_resent) {
            self.may_copy(now, seq);
        }
        self.hold(handle, flow, len);
        let mut sealed = None;
        let block = self.blocks.as_mut().map(|blocks| {
            let (id, block) = blocks.add(now, seq, len, wait);
            sealed = block;
            id
        });
        self.on_sealed(sealed, outputs);
        Some(NextPacket { seq, behind, len, handle, floor, sent: Sent::Data { seq, block, floor } })
    }

    /// Counts a frame as occupying the buffer until it is done.
    fn hold(&mut self, handle: u32, flow: u64, len: u32) {
        self.held.1 += u64::from(len);
        let Some(parts) = &mut self.parts else {
            self.held.0 += 1;
            return;
        };
        if let Entry::Vacant(entry) = parts.entry(handle) {
            entry.insert(Part { flow, left: u32::from(self.config.segments) });
            self.held.0 += 1;
        }
        if self.config.limit_counts_copies {
            self.backlog.hold(flow, i64::from(len));
        }
    }

    /// Records that a frame is done. Returns true if its whole packet is done.
    fn let_go(&mut self, handle: u32, len: u32) -> bool {
        self.held.1 -= u64::from(len);
        if let Some(parts) = &mut self.parts
            && let Entry::Occupied(mut entry) = parts.entry(handle)
        {
            let part = entry.get_mut();
            part.left -= 1;
            let (flow, left) = (part.flow, part.left);
            if left == 0 {
                entry.remove();
            }
            if self.config.limit_counts_copies {
                self.backlog.hold(flow, -i64::from(len));
            }
            if left > 0 {
                return false;
            }
        }
        self.held.0 -= 1;
        true
    }

    /// The next repair frame: the first packet of its block, count, index, and length of the longest packet.
    pub(super) fn next_repair(&mut self, outputs: &mut VecDeque<Output>) -> Option<(Block, u64, Sent)> {
        let (block, now, sealed) = self.blocks.as_mut()?.next_repair()?;
        self.stats.repairs += 1;
        let floor = self.first.saturating_sub(self.lag);
        self.on_sealed(sealed, outputs);
        Some((now, floor, Sent::Repair { block, floor }))
    }

    /// Called when a block gets no more repair frames: without retransmission, nothing more can be done for its
    /// packets.
    fn on_sealed(&mut self, block: Option<Block>, outputs: &mut VecDeque<Output>) {
        let Some(block) = block else { return };
        if self.config.arq.is_some() {
            return;
        }
        let end = block.first + block.count as u64;
        for seq in block.first..end {
            self.finish(seq, Released::Sent, outputs);
        }
        self.due_floor = self.due_floor.max(end);
    }

    /// Runs the timers that are due by `now`.
    pub(super) fn on_time(&mut self, now: Time, outputs: &mut VecDeque<Output>) {
        while let Some(blocks) = &mut self.blocks {
            let Some(sealed) = blocks.on_time(now, self.backlog.is_empty()).or_else(|| blocks.expired(now)) else {
                break;
            };
            self.on_sealed(Some(sealed), outputs);
        }
        self.decide_blocks(outputs);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.blocks.as_ref().and_then(|blocks| blocks.deadline(self.backlog.is_empty()))
    }

    /// Handles the verdict on a transmission.
    pub(super) fn judge(&mut self, sent: Sent, verdict: Verdict, outputs: &mut VecDeque<Output>) {
        let lost = verdict == Verdict::Lost;
        let (Sent::Data { floor, .. } | Sent::Repair { floor, .. } | Sent::Sync { floor }) = sent;
        if !lost {
            self.acked_floor = self.acked_floor.max(floor);
        }
        match sent {
            Sent::Data { seq, block, .. } => {
                self.stats.lost += lost as u64;
                let slot = seq.checked_sub(self.first).and_then(|at| self.slots.get_mut(at as usize));
                if let Some(slot) = slot {
                    slot.flying -= 1;
                }
                let sealed = block.and_then(|id| self.blocks.as_mut()?.on_source(id, lost));
                self.on_sealed(sealed, outputs);
                if lost {
                    let waits =
                        block.is_some_and(|id| self.blocks.as_mut().is_some_and(|blocks| blocks.may_repair(id)));
                    self.on_lost(seq, waits, outputs);
                } else {
                    self.finish(seq, Released::Acknowledged, outputs);
                }
            }
            Sent::Repair { block, .. } => {
                if let Some(blocks) = &mut self.blocks {
                    blocks.on_repair(block, lost);
                }
            }
            Sent::Sync { .. } => self.sync_is_out = false,
        }
        self.decide_blocks(outputs);
    }

    /// Handles a transmission that was judged lost but has arrived.
    pub(super) fn on_late(&mut self, sent: Sent, outputs: &mut VecDeque<Output>) {
        let (Sent::Data { floor, .. } | Sent::Repair { floor, .. } | Sent::Sync { floor }) = sent;
        self.acked_floor = self.acked_floor.max(floor);
        if let Sent::Data { seq, .. } = sent {
            self.finish(seq, Released::Acknowledged, outputs);
        }
    }

    fn on_lost(&mut self, seq: u64, waits: bool, outputs: &mut VecDeque<Output>) {
        let Some(arq) = self.config.arq else { return };
        let Some(slot) = seq.checked_sub(self.first).and_then(|at| self.slots.get_mut(at as usize)) else { return };
        if slot.state == State::Done || slot.flying > 0 {
            // A copy is still in flight; its verdict decides.
            return;
        }
        if waits {
            slot.state = State::Lost;
        } else if arq.transmissions.is_some_and(|max| slot.transmissions >= max) {
            self.stats.abandoned += 1;
            self.finish(seq, Released::Abandoned, outputs);
            self.due_floor = self.due_floor.max(seq + 1);
        } else {
            slot.state = State::Resend;
            self.resend.push(seq);
        }
    }

    fn decide_blocks(&mut self, outputs: &mut VecDeque<Output>) {
        while let Some((block, fate)) = self.blocks.as_mut().and_then(Blocks::next_decided) {
            for seq in block.first..block.first + block.count as u64 {
                let at = seq.checked_sub(self.first);
                let state = at.and_then(|at| self.slots.get(at as usize)).map(|slot| slot.state);
                match (state, fate) {
                    (Some(State::Lost), Fate::Whole) => {
                        self.stats.repaired += 1;
                        self.finish(seq, Released::Acknowledged, outputs);
                    }
                    (Some(State::Lost), Fate::Broken) => self.on_lost(seq, false, outputs),
                    _ => {}
                }
            }
        }
    }

    fn finish(&mut self, seq: u64, how: Released, outputs: &mut VecDeque<Output>) {
        let Some(slot) = seq.checked_sub(self.first).and_then(|at| self.slots.get_mut(at as usize)) else { return };
        if slot.state == State::Done {
            return;
        }
        slot.state = State::Done;
        let (handle, len) = (slot.handle, slot.len);
        if self.let_go(handle, len) {
            outputs.push_back(Output::Release { handle, how });
        }
        while self.slots.front().is_some_and(|slot| slot.state == State::Done) {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
