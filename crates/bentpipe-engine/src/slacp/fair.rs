//! A queue per flow, served by deficit round robin (Shreedhar and Varghese 1995). When the buffer is full, the flow
//! that occupies most of it loses a packet (McKenney 1990).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::waiting::{Pushed, Waiting, cut};

/// The quantum of a flow, bytes: an Ethernet frame of maximum length.
const QUANTUM: u32 = 1514;

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: VecDeque<Waiting>,
    /// Bytes of `packets`, and of the flow's packets held elsewhere.
    waiting: u64,
    held: u64,
    deficit: u32,
}

/// The queues of a channel's flows.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    flows: BTreeMap<u64, Flow>,
    /// Flows with waiting packets, in the order of their turns. The first one may send its first frame.
    turns: VecDeque<u64>,
    len: usize,
}

impl Fair {
    /// Frames that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Packets none of whose frames has been sent.
    pub(super) fn whole_packets(&self, segments: u32) -> usize {
        if segments == 1 {
            return self.len;
        }
        self.flows.values().map(|flow| flow.packets.len() / segments as usize).sum()
    }

    /// The frame that is sent next.
    pub(super) fn front(&self) -> Option<&Waiting> {
        self.flows.get(self.turns.front()?)?.packets.front()
    }

    /// Queues a packet as `segments` frames, and evicts others as [`FqCodel::push`](super::fq_codel::FqCodel::push) does. The packet is
    /// refused if no flow occupies more than its own. Also returns the number of bytes that were freed.
    pub(super) fn push(
        &mut self,
        packet: Waiting,
        segments: u32,
        has_room: impl Fn(usize, u64) -> bool,
        evicted: &mut Vec<u32>,
    ) -> (Pushed, u64) {
        let mut freed = 0;
        while !has_room(self.whole_packets(segments), freed) && (freed == 0 || freed < u64::from(packet.len)) {
            let Some(other) = self.evict(packet.flow, segments) else { return (Pushed::Refused, freed) };
            freed += u64::from(other.len);
            evicted.push(other.handle);
        }
        let flow = self.flows.entry(packet.flow).or_default();
        if flow.packets.is_empty() {
            flow.deficit = QUANTUM;
            self.turns.push_back(packet.flow);
        }
        flow.waiting += u64::from(packet.len);
        flow.packets.extend(cut(packet, segments));
        self.len += segments as usize;
        self.settle();
        (if freed == 0 { Pushed::Waits } else { evicted.pop().map_or(Pushed::Waits, Pushed::Evicts) }, freed)
    }

    /// Removes the newest whole packet of the flow that occupies most of the buffer, if that is more than `flow`
    /// occupies. It has its full length.
    fn evict(&mut self, flow: u64, segments: u32) -> Option<Waiting> {
        let used = |flow: &Flow| flow.waiting + flow.held;
        let own = self.flows.get(&flow).map_or(0, used);
        let whole = self.flows.iter().filter(|(_, other)| other.packets.len() >= segments as usize);
        // Among equals the first, whatever the order of arrivals.
        let (&longest, _) = whole.rev().max_by_key(|(_, other)| used(other)).filter(|(_, other)| used(other) > own)?;
        let flow = self.flows.get_mut(&longest)?;
        let mut evicted = flow.packets.pop_back()?;
        for _ in 1..segments {
            evicted.len += flow.packets.pop_back()?.len;
        }
        flow.waiting -= u64::from(evicted.len);
        self.len -= segments as usize;
        if flow.packets.is_empty() {
            self.turns.retain(|&turn| turn != longest);
            self.forget(longest);
            self.settle();
        }
        Some(evicted)
    }

    /// The next frame.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let &turn = self.turns.front()?;
        let flow = self.flows.get_mut(&turn)?;
        let packet = flow.packets.pop_front()?;
        flow.deficit -= packet.len.min(flow.deficit);
        flow.waiting -= u64::from(packet.len);
        self.len -= 1;
        if flow.packets.is_empty() {
            self.turns.pop_front();
            self.forget(turn);
        }
        self.settle();
        Some(packet)
    }

    /// Changes the number of a flow's bytes that are held elsewhere.
    pub(super) fn hold(&mut self, flow: u64, bytes: i64) {
        let entry = self.flows.entry(flow).or_default();
        entry.held = entry.held.saturating_add_signed(bytes);
        self.forget(flow);
    }

    /// Forgets a flow that occupies nothing.
    fn forget(&mut self, flow: u64) {
        if self.flows.get(&flow).is_some_and(|entry| entry.packets.is_empty() && entry.held == 0) {
            self.flows.remove(&flow);
        }
    }

    /// Advances to a flow that may send its first frame. A flow that may not send yet gets a quantum for its next turn.
    fn settle(&mut self) {
        while let Some(&turn) = self.turns.front() {
            let Some(flow) = self.flows.get_mut(&turn) else { return };
            let Some(first) = flow.packets.front() else { return };
            if first.len <= flow.deficit {
                return;
            }
            flow.deficit += QUANTUM;
            self.turns.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn packet(handle: u32, flow: u64, len: u32) -> Waiting {
        Waiting { handle, len, flow, host: 0, since: Time::ZERO, acknowledges: None }
    }

    /// Without `has_room`, one packet makes room.
    fn push(fair: &mut Fair, packet: Waiting, segments: u32, has_room: bool) -> Pushed {
        fair.push(packet, segments, |_, freed| has_room || freed > 0, &mut Vec::new()).0
    }

    fn handles(fair: &mut Fair) -> Vec<u32> {
        core::iter::from_fn(|| fair.pop()).map(|packet| packet.handle).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut fair = Fair::default();
        for n in 0..4 {
            assert_eq!(push(&mut fair, packet(n, 7, 1500), 1, true), Pushed::Waits);
        }
        for n in 10..16 {
            assert_eq!(push(&mut fair, packet(n, 8, 700), 1, true), Pushed::Waits);
        }
        // 1514 bytes per turn: one packet of 1500 or two of 700. The remaining 114 are not enough for a third.
        assert_eq!(handles(&mut fair), [0, 10, 11, 1, 12, 13, 2, 14, 15, 3]);
        assert!(fair.flows.is_empty() && fair.turns.is_empty(), "nothing is kept of flows that are gone");
    }

    #[test]
    fn the_flow_that_takes_most_gives_way_and_nobody_to_itself() {
        let mut fair = Fair::default();
        for n in 0..3 {
            assert_eq!(push(&mut fair, packet(n, 1, 500), 1, true), Pushed::Waits);
        }
        assert_eq!(push(&mut fair, packet(9, 2, 500), 1, false), Pushed::Evicts(2));
        assert_eq!(push(&mut fair, packet(10, 1, 500), 1, false), Pushed::Refused, "its own is the longest");
        // Bytes held elsewhere count: flow 2 now occupies 1500 bytes, flow 1 occupies 1000.
        fair.hold(2, 1000);
        assert_eq!(push(&mut fair, packet(11, 1, 500), 1, false), Pushed::Evicts(9));
        assert_eq!(handles(&mut fair), [0, 1, 11]);
    }

    /// A flow that loses its only packet is forgotten, as one that has sent its last.
    #[test]
    fn nothing_is_kept_of_a_flow_that_has_lost_all() {
        let mut fair = Fair::default();
        assert_eq!(push(&mut fair, packet(0, 1, 1500), 1, true), Pushed::Waits);
        assert_eq!(push(&mut fair, packet(1, 2, 500), 1, false), Pushed::Evicts(0));
        assert_eq!((fair.flows.len(), fair.turns.len()), (1, 1));
        assert_eq!(handles(&mut fair), [1]);
    }

    #[test]
    fn a_packet_in_frames_leaves_whole_and_is_evicted_whole() {
        let mut fair = Fair::default();
        assert_eq!(push(&mut fair, packet(0, 1, 1001), 2, true), Pushed::Waits);
        assert_eq!(push(&mut fair, packet(1, 1, 1001), 2, true), Pushed::Waits);
        assert_eq!(fair.pop().map(|frame| (frame.handle, frame.len)), Some((0, 501)));
        assert_eq!((fair.len(), fair.whole_packets(2)), (3, 1), "half of the first is on its way");
        let pushed = fair.push(packet(2, 2, 1000), 2, |_, freed| freed > 0, &mut Vec::new());
        assert_eq!(pushed, (Pushed::Evicts(1), 1001));
        assert_eq!(handles(&mut fair), [0, 2, 2]);
    }
}
