//! The two queues of DualPI2 (RFC 9332) before one line: one for L4S, one for all other packets.
//!
//! Packets that are ECT(1) or marked belong to L4S (RFC 9331 §5.1). They go first, except for a share of the line that
//! waiting classic packets always get: weighted round robin by bytes, the scheduler that RFC 9332 §A.2 recommends.

use alloc::collections::VecDeque;

use crate::link::{Coupled, DualPi2, Judgement, QueueLimit};
use crate::slacp::Waiting;
use crate::units::{Duration, Time};
use crate::wire::ecn::Ecn;

/// The queues.
#[derive(Clone, Debug)]
pub(super) struct DualQueue {
    coupled: Coupled,
    limit: QueueLimit,
    l4s: VecDeque<Waiting>,
    /// Each packet, and whether it may be marked.
    classic: VecDeque<(Waiting, bool)>,
    bytes: u64,
    /// Bytes of classic packets per byte of L4S while both wait.
    weight: f64,
    /// Bytes that the classic queue may send ahead of L4S packets.
    credit: f64,
}

impl DualQueue {
    pub(super) fn new(config: DualPi2, limit: QueueLimit) -> Self {
        let share = config.classic_share.get();
        DualQueue {
            coupled: Coupled::new(config),
            limit,
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            bytes: 0,
            weight: share / (1.0 - share).max(f64::MIN_POSITIVE),
            credit: 0.0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.l4s.len() + self.classic.len()
    }

    /// The arrival time of the packet that has waited longest.
    fn oldest(&self) -> Option<Time> {
        let fronts = [self.l4s.front(), self.classic.front().map(|(packet, _)| packet)];
        fronts.into_iter().flatten().map(|packet| packet.since).min()
    }

    /// How long that packet has waited.
    pub(super) fn wait(&self, now: Time) -> Duration {
        self.oldest().map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// Queues a packet with this ECN field. Returns false if there is no room.
    pub(super) fn push(&mut self, packet: Waiting, ecn: Ecn) -> bool {
        let bytes = self.bytes + u64::from(packet.len);
        if !self.limit.has_room(|| self.len(), bytes) {
            return false;
        }
        self.bytes = bytes;
        match ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push_back(packet),
            Ecn::Ect0 => self.classic.push_back((packet, true)),
            Ecn::NotEct => self.classic.push_back((packet, false)),
        }
        true
    }

    /// The packet that the line takes at `now`, and whether it is marked. `drop` is called with each packet dropped
    /// before it.
    //= RFC 9332 §A.2, figure 7: the dequeue routine
    pub(super) fn pop(&mut self, now: Time, mut drop: impl FnMut(u32)) -> Option<(Waiting, bool)> {
        self.coupled.update_until(now, self.oldest());
        loop {
            let (packet, judgement) = if self.serves_classic() {
                let (packet, is_ect) = self.classic.pop_front()?;
                (packet, self.coupled.judge_classic(is_ect))
            } else {
                let packet = self.l4s.pop_front()?;
                (packet, self.coupled.judge_l4s(now.saturating_since(packet.since), self.l4s.is_empty()))
            };
            self.bytes -= u64::from(packet.len);
            if judgement != Judgement::Drop {
                return Some((packet, judgement == Judgement::Mark));
            }
            drop(packet.handle);
        }
    }

    /// True if a classic packet is next. What its queue sends is subtracted from its credit.
    fn serves_classic(&mut self) -> bool {
        match (self.l4s.front(), self.classic.front()) {
            (Some(l4s), Some((classic, _))) => {
                let serves = self.credit >= f64::from(classic.len);
                self.credit += if serves { -f64::from(classic.len) } else { self.weight * f64::from(l4s.len) };
                serves
            }
            (l4s, _) => {
                self.credit = 0.0;
                l4s.is_none()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Probability};

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn packet(handle: u32, since: Time) -> Waiting {
        Waiting { handle, len: 1000, flow: 0, host: 0, since, acknowledges: None }
    }

    fn queue(limit: QueueLimit) -> DualQueue {
        DualQueue::new(
            DualPi2 { classic_share: Probability::new(0.2).expect("in range"), ..DualPi2::standard() },
            limit,
        )
    }

    fn popped(queue: &mut DualQueue, now: Time) -> Option<u32> {
        queue.pop(now, |_| panic!("nothing is dropped")).map(|(packet, _)| packet.handle)
    }

    /// ECT(1) and CE belong to L4S and go first. With a share of a fifth, every fifth packet is classic, after four L4S
    /// packets that earn it.
    #[test]
    fn l4s_goes_first_but_for_a_share() {
        let mut queue = queue(QueueLimit::Unlimited);
        for handle in 0..4 {
            let ecn = if handle % 2 == 0 { Ecn::NotEct } else { Ecn::Ect0 };
            assert!(queue.push(packet(handle, at(0)), ecn));
        }
        for handle in 10..18 {
            let ecn = if handle % 2 == 0 { Ecn::Ce } else { Ecn::Ect1 };
            assert!(queue.push(packet(handle, at(0)), ecn));
        }
        let order: Vec<_> = core::iter::from_fn(|| popped(&mut queue, at(1))).collect();
        assert_eq!(order, [10, 11, 12, 13, 0, 14, 15, 16, 17, 1, 2, 3]);
        assert_eq!((queue.len(), queue.bytes), (0, 0));
    }

    /// The limit counts both queues.
    #[test]
    fn the_queues_share_their_room() {
        let mut packets = queue(QueueLimit::Packets(2));
        let pushed = [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1].map(|ecn| packets.push(packet(0, at(0)), ecn));
        assert_eq!(pushed, [true, true, false]);
        let mut bytes = queue(QueueLimit::Bytes(Bytes::new(2500)));
        let pushed = [Ecn::Ect1, Ecn::NotEct, Ecn::NotEct].map(|ecn| bytes.push(packet(0, at(0)), ecn));
        assert_eq!(pushed, [true, true, false]);
    }

    /// A classic packet has waited for 60 ms, which leaves p' above 0 and below overload. L4S packets, which have not
    /// waited, are marked with k p', to within the one packet by which the sum of probabilities may fall short.
    #[test]
    fn the_classic_queue_marks_the_other_one() {
        let mut queue = queue(QueueLimit::Unlimited);
        queue.push(packet(0, at(0)), Ecn::NotEct);
        let mut marks = 0.0;
        for handle in 1..=100 {
            queue.push(packet(handle, at(60)), Ecn::Ect1);
            queue.credit = 0.0;
            let (next, marked) = queue.pop(at(60), |_| panic!("no overload")).expect("it waits");
            assert_eq!(next.handle, handle);
            marks += f64::from(u8::from(marked));
        }
        let expected = 100.0 * queue.coupled.coupled_probability();
        assert!(expected > 20.0 && expected < 100.0 && (marks - expected).abs() <= 1.0, "{marks}, not {expected}");
    }

    /// A dropped packet frees its room, and the next one takes its turn. A wait of two seconds is overload, in which p'
    /// is 1.
    #[test]
    fn a_dropped_packet_leaves_its_room() {
        let mut queue = queue(QueueLimit::Unlimited);
        for handle in 0..4 {
            queue.push(packet(handle, at(0)), Ecn::NotEct);
        }
        let mut dropped = Vec::new();
        let next = queue.pop(at(2000), |handle| dropped.push(handle));
        // The probabilities add up to more than 1 at the second packet.
        assert_eq!((next.map(|(packet, _)| packet.handle), &dropped[..], queue.bytes), (Some(0), &[][..], 3000));
        assert!(queue.pop(at(2000), |handle| dropped.push(handle)).is_none());
        assert_eq!((&dropped[..], queue.bytes, queue.len()), (&[1, 2, 3][..], 0, 0));
    }

    /// What classic packets earn beside L4S packets is gone once only one kind waits. Three L4S packets earn 750 bytes, and later three
    /// more as much: not yet a packet.
    #[test]
    fn a_queue_alone_saves_up_nothing() {
        let mut queue = queue(QueueLimit::Unlimited);
        let push = |queue: &mut DualQueue, handle, ecn| assert!(queue.push(packet(handle, at(0)), ecn));
        for round in 0..2 {
            push(&mut queue, 10 * round, Ecn::NotEct);
            (1..4).for_each(|n| push(&mut queue, 10 * round + n, Ecn::Ect1));
            let order: Vec<_> = core::iter::from_fn(|| popped(&mut queue, at(0))).collect();
            assert_eq!(order, [1, 2, 3, 0].map(|n| 10 * round + n));
        }
    }

    /// RFC 9332 §A.2: a packet that waited for 2 ms is marked, but not if it is alone.
    #[test]
    fn a_lone_packet_is_not_marked() {
        for count in 1..3 {
            let mut queue = queue(QueueLimit::Unlimited);
            (0..count).for_each(|handle| assert!(queue.push(packet(handle, at(0)), Ecn::Ect1)));
            // The sum of probabilities must exceed 1.
            (0..2).for_each(|_| _ = queue.coupled.judge_l4s(Duration::from_millis(1), false));
            let (_, marked) = queue.pop(at(2), |_| panic!("no overload")).expect("it waits");
            assert_eq!(marked, count > 1);
        }
    }
}
