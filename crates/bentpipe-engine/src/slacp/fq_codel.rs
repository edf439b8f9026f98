//! FQ-CoDel (RFC 8290) on two levels: hosts take turns, and so do the flows of a host. Each flow has its own CoDel.
//!
//! Departures: a flow is identified by a 64-bit hash instead of one of 1024 queues. When the buffer is full, the host
//! that occupies most of it loses the newest packet of its longest flow, not half of the oldest ones; a long packet may
//! need the room of several. A single flow is thus queued as in a FIFO.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::codel::Control;
use super::config::Codel;
use super::waiting::{Pushed, Waiting};
use crate::turns::{Turn, Turns};
use crate::units::Time;

//= RFC 8290 §5.2.4: the quantum is the size of a packet of Ethernet
const QUANTUM: i64 = 1514;

#[derive(Clone, Debug)]
struct Flow {
    host: u64,
    packets: VecDeque<Waiting>,
    bytes: u64,
    codel: Option<Control>,
    /// Number of packets taken out so far, and the position of the newest acknowledgement, if they are filtered. If it was
    /// evicted, the position is empty or belongs to another packet, which no acknowledgement replaces.
    taken: u64,
    ack: Option<u64>,
    turn: Turn,
}

#[derive(Clone, Debug, Default)]
struct Host {
    flows: usize,
    bytes: u64,
    by_size: BTreeSet<(u64, u64)>,
    turns: Turns<u64, QUANTUM>,
    turn: Turn,
}

/// The queues of a channel.
#[derive(Clone, Debug)]
pub(super) struct FqCodel {
    codel: Option<Codel>,
    filters_acks: bool,
    flows: BTreeMap<u64, Flow>,
    hosts: BTreeMap<u64, Host>,
    by_size: BTreeSet<(u64, u64)>,
    turns: Turns<u64, QUANTUM>,
    len: usize,
    bytes: u64,
}

impl FqCodel {
    pub(super) fn new(codel: Option<Codel>, filters_acks: bool) -> Self {
        FqCodel {
            codel,
            filters_acks,
            flows: BTreeMap::new(),
            hosts: BTreeMap::new(),
            by_size: BTreeSet::new(),
            turns: Turns::default(),
            len: 0,
            bytes: 0,
        }
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The packet whose turn it is. CoDel may still drop it and send another.
    pub(super) fn front(&self) -> Option<&Waiting> {
        let host = self.hosts.get(&self.turns.head()?)?;
        self.flows.get(&host.turns.head()?)?.packets.front()
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Queues a packet. `has_room` tells whether there is room beside a number of packets, once so many bytes are freed. As long as there
    /// is none, others are evicted, but not more bytes than the packet has: what waits may already exceed a limit, and stays.
    pub(super) fn push(
        &mut self,
        packet: Waiting,
        has_room: impl Fn(usize, u64) -> bool,
        evicted: &mut Vec<u32>,
    ) -> Pushed {
        if let Some(handle) = self.replace(packet) {
            return Pushed::Replaces(handle);
        }
        let mut freed = 0;
        while !has_room(self.len, freed) && (freed == 0 || freed < u64::from(packet.len)) {
            let Some(other) = self.evict(packet) else { return Pushed::Refused };
            freed += u64::from(other.len);
            evicted.push(other.handle);
        }
        let filters = self.filters_acks && packet.acknowledges.is_some();
        let codel = self.codel;
        let hosts = &mut self.hosts;
        let flow = self.flows.entry(packet.flow).or_insert_with(|| {
            hosts.entry(packet.host).or_default().flows += 1;
            Flow {
                host: packet.host,
                packets: VecDeque::new(),
                bytes: 0,
                codel: codel.map(Control::new),
                taken: 0,
                ack: None,
                turn: Turn::default(),
            }
        });
        if filters {
            flow.ack = Some(flow.taken + flow.packets.len() as u64);
        }
        flow.packets.push_back(packet);
        let host = self.hosts.get_mut(&flow.host).expect("flows have hosts");
        host.turns.wake(packet.flow, &mut flow.turn);
        self.turns.wake(flow.host, &mut host.turn);
        self.resize(packet.flow, i64::from(packet.len));
        self.len += 1;
        self.settle();
        if freed == 0 { Pushed::Waits } else { evicted.pop().map_or(Pushed::Waits, Pushed::Evicts) }
    }

    /// Changes the number of a flow's waiting bytes.
    fn resize(&mut self, id: u64, bytes: i64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let Some(host) = self.hosts.get_mut(&flow.host) else { return };
        let change = |sizes: &mut BTreeSet<(u64, u64)>, id, size: &mut u64| {
            sizes.remove(&(*size, id));
            *size = size.saturating_add_signed(bytes);
            if *size > 0 {
                sizes.insert((*size, id));
            }
        };
        change(&mut host.by_size, id, &mut flow.bytes);
        change(&mut self.by_size, flow.host, &mut host.bytes);
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }

    /// Replaces an older acknowledgement of the same flow. Returns the handle of the replaced one.
    fn replace(&mut self, packet: Waiting) -> Option<u32> {
        let flow = self.flows.get_mut(&packet.flow)?;
        let waiting = flow.packets.get_mut((flow.ack? - flow.taken) as usize)?;
        if !packet.acknowledges_more(waiting) {
            return None;
        }
        let old = core::mem::replace(waiting, packet);
        self.resize(packet.flow, i64::from(packet.len) - i64::from(old.len));
        Some(old.handle)
    }

    /// Removes the newest packet of the longest flow of the host that occupies the most, unless that is the flow of
    /// `packet`.
    fn evict(&mut self, packet: Waiting) -> Option<Waiting> {
        let &(most, host) = self.by_size.last()?;
        // A host or flow that already occupies as much evicts nothing.
        let own = self.hosts.get(&packet.host).map_or(0, |host| host.bytes);
        let host = if own >= most { packet.host } else { host };
        let &(most, id) = self.hosts.get(&host)?.by_size.last()?;
        let own = self.flows.get(&packet.flow).map_or(0, |flow| flow.bytes);
        if host == packet.host && own >= most {
            return None;
        }
        let flow = self.flows.get_mut(&id)?;
        let evicted = flow.packets.pop_back()?;
        self.len -= 1;
        self.resize(id, -i64::from(evicted.len));
        self.settle();
        Some(evicted)
    }

    /// Takes the next packet. Calls `judge` with each packet that CoDel would drop before it. If `judge` returns true,
    /// the packet was marked and is sent instead.
    pub(super) fn pop(&mut self, now: Time, mut judge: impl FnMut(u32) -> bool) -> Option<Waiting> {
        loop {
            let host = self.turns.head()?;
            let id = self.hosts.get(&host)?.turns.head()?;
            let flow = self.flows.get_mut(&id)?;
            let Flow { packets, bytes, codel, taken, ack, .. } = flow;
            let (mut left, mut gone) = (*bytes, 0);
            let mut take = || {
                let packet = packets.pop_front()?;
                if *ack == Some(*taken) {
                    *ack = None;
                }
                *taken += 1;
                gone += 1;
                left -= u64::from(packet.len);
                Some((packet, left))
            };
            let packet = match codel {
                Some(codel) => codel.pop(now, &mut take, &mut judge),
                None => take().map(|(packet, _)| packet),
            };
            let change = left as i64 - *bytes as i64;
            self.len -= gone;
            self.resize(id, change);
            if let Some(packet) = packet {
                let len = i64::from(packet.len);
                if let (Some(flow), Some(host)) = (self.flows.get_mut(&id), self.hosts.get_mut(&host)) {
                    flow.turn.deficit -= len;
                    host.turn.deficit -= len;
                }
            }
            self.settle();
            if packet.is_some() {
                return packet;
            }
        }
    }

    /// Advances to a flow that may send its first packet, and forgets hosts and flows that have nothing to send.
    fn settle(&mut self) {
        while let Some(id) = self.turns.head() {
            let Some(host) = self.hosts.get_mut(&id) else { return };
            let Some(first) = host.turns.head() else {
                self.turns.rest(&mut host.turn);
                if host.flows == 0 && host.turn.place == crate::turns::Place::Idle {
                    self.hosts.remove(&id);
                }
                continue;
            };
            if host.turn.deficit <= 0 {
                self.turns.rotate(&mut host.turn);
                continue;
            }
            let Some(flow) = self.flows.get_mut(&first) else { return };
            if flow.packets.is_empty() {
                host.turns.rest(&mut flow.turn);
                if flow.turn.place == crate::turns::Place::Idle {
                    self.flows.remove(&first);
                    host.flows -= 1;
                }
            } else if flow.turn.deficit <= 0 {
                host.turns.rotate(&mut flow.turn);
            } else {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Duration;

    fn packet(handle: u32, host: u64, flow: u64, len: u32) -> Waiting {
        Waiting { handle, len, flow, host, since: Time::ZERO, acknowledges: None }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn push(queue: &mut FqCodel, packet: Waiting) -> Pushed {
        let bytes = queue.bytes() + u64::from(packet.len);
        queue.push(packet, |_, freed| bytes - freed <= 100_000, &mut Vec::new())
    }

    /// Queues a packet in a full queue, where one packet of any length makes room.
    fn push_into_full(queue: &mut FqCodel, packet: Waiting) -> Pushed {
        queue.push(packet, |_, freed| freed > 0, &mut Vec::new())
    }

    fn jain(sent: &BTreeMap<u64, u64>, count: f64) -> f64 {
        let (sum, squares) = sent
            .values()
            .fold((0.0, 0.0), |(sum, squares), &bytes| (sum + bytes as f64, squares + (bytes as f64).powi(2)));
        sum * sum / (count * squares)
    }

    /// Twenty hosts; the n-th has n flows and n times as much to send. All send the same amount while all are
    /// backlogged.
    #[test]
    fn unequal_hosts_have_equal_shares() {
        let mut queue = FqCodel::new(None, false);
        let mut sent = BTreeMap::<u64, u64>::new();
        let mut handle = 0;
        for round in 0..4000u64 {
            for host in 1..=20u64 {
                for n in 0..host {
                    handle += 1;
                    let len = if host % 2 == 0 { 1400 } else { 300 };
                    push(&mut queue, packet(handle, host, host << 8 | n, len));
                }
            }
            for _ in 0..20 {
                let packet = queue.pop(at(round), |_| panic!("no CoDel")).expect("there is a backlog");
                *sent.entry(packet.host).or_default() += u64::from(packet.len);
            }
        }
        let jain = jain(&sent, 20.0);
        // Small and large packets are served alike; the requirement is 0.95.
        assert!(jain > 0.99, "{jain} {sent:?}");
        assert!(queue.bytes <= 100_000);
    }

    /// A host's flood of small flows does not push out another host's only flow.
    #[test]
    fn the_host_that_takes_most_gives_way() {
        let mut queue = FqCodel::new(None, false);
        for n in 0..30 {
            assert_eq!(push(&mut queue, packet(n, 1, 1, 1000)), Pushed::Waits);
        }
        for n in 0..1750 {
            assert_eq!(push(&mut queue, packet(1000 + n, 2, u64::from(n) + 10, 40)), Pushed::Waits);
        }
        // 100 kB: the flooder's own flows give way to it and to the other host.
        assert_eq!(push(&mut queue, packet(0, 2, 9, 40)), Pushed::Evicts(2749), "the longest, of equals the last");
        assert!(matches!(push(&mut queue, packet(31, 1, 1, 40)), Pushed::Evicts(handle) if handle >= 1000));
        let own = (0..3000).filter_map(|_| queue.pop(at(1), |_| panic!("no CoDel"))).filter(|packet| packet.host == 1);
        assert_eq!(own.count(), 31);
        assert_eq!((queue.bytes, queue.len, queue.flows.len(), queue.hosts.len()), (0, 0, 0, 0));
        assert!(queue.by_size.is_empty());
    }

    /// Of two hosts with as much, neither takes the other's place.
    #[test]
    fn equal_hosts_leave_each_other_alone() {
        for host in [1, 2] {
            let mut queue = FqCodel::new(None, false);
            (1..=2).for_each(|n| assert_eq!(push(&mut queue, packet(0, n, n, 1000)), Pushed::Waits));
            assert_eq!(push_into_full(&mut queue, packet(1, host, host, 1000)), Pushed::Refused, "{host}");
        }
    }

    /// A new flow goes ahead of backlogged ones, and CoDel drops only from the flow with the standing queue.
    #[test]
    fn codel_judges_each_flow() {
        let codel = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        let mut queue = FqCodel::new(Some(codel), false);
        (0..66).for_each(|n| assert_eq!(push(&mut queue, packet(n, 1, 1, 1500)), Pushed::Waits));
        let (mut dropped, mut quiet) = (Vec::new(), 0);
        for ms in (10..300).step_by(5) {
            if ms % 10 == 0 {
                push(&mut queue, Waiting { since: at(ms), ..packet(1000, 2, 2, 100) });
            }
            let packet = queue
                .pop(at(ms), |handle| {
                    dropped.push(handle);
                    false
                })
                .expect("there is a backlog");
            if packet.handle == 1000 {
                // At once, or behind one turn of the other flow: 1514 bytes, in which two packets of 1500 begin.
                assert!(at(ms).saturating_since(packet.since) <= Duration::from_millis(10));
                quiet += 1;
            }
        }
        assert_eq!(quiet, 29, "each of its packets");
        assert!(!dropped.is_empty() && dropped.iter().all(|&handle| handle < 66), "{dropped:?}");
    }

    #[test]
    fn acknowledgements_take_the_place_of_those_of_their_flow() {
        let mut queue = FqCodel::new(None, true);
        let ack = |handle, flow, number| Waiting { acknowledges: Some(number), ..packet(handle, 1, flow, 40) };
        assert_eq!(push(&mut queue, ack(0, 1, 10)), Pushed::Waits);
        assert_eq!(push(&mut queue, ack(1, 2, 20)), Pushed::Waits);
        assert_eq!(push(&mut queue, ack(2, 1, 30)), Pushed::Replaces(0));
        assert_eq!(push(&mut queue, ack(3, 1, 30)), Pushed::Waits, "a duplicate counts by itself");
        let handles: Vec<_> = core::iter::from_fn(|| queue.pop(at(1), |_| false)).map(|packet| packet.handle).collect();
        assert_eq!(handles, [2, 3, 1], "flows in turns of 1514 bytes");
        assert_eq!((queue.bytes, queue.len), (0, 0));
        assert_eq!(push(&mut queue, ack(4, 1, 40)), Pushed::Waits, "what is gone has no place");
    }

    /// An acknowledgement that has left the queue, or was evicted, is not replaced.
    #[test]
    fn an_acknowledgement_that_is_gone_is_not_replaced() {
        let ack = |handle, number| Waiting { acknowledges: Some(number), ..packet(handle, 1, 1, 40) };
        let mut queue = FqCodel::new(None, true);
        assert_eq!([push(&mut queue, ack(0, 1)), push(&mut queue, packet(1, 1, 1, 40))], [Pushed::Waits; 2]);
        let pop = |queue: &mut FqCodel| queue.pop(at(0), |_| panic!("no CoDel")).map(|packet| packet.handle);
        assert_eq!(pop(&mut queue), Some(0));
        assert_eq!(push(&mut queue, ack(2, 2)), Pushed::Waits, "the first has left");
        assert_eq!(push_into_full(&mut queue, packet(3, 2, 2, 40)), Pushed::Evicts(2));
        assert_eq!(push(&mut queue, ack(4, 3)), Pushed::Waits, "the second was evicted");
        assert_eq!(push(&mut queue, ack(5, 4)), Pushed::Replaces(4));
    }

    /// An acknowledgement is found after others have left before it, and those that are no acknowledgements neither
    /// replace one nor take its place. Its bytes are those of the new one. Where acknowledgements are not filtered,
    /// each waits.
    #[test]
    fn an_acknowledgement_keeps_its_place() {
        let ack = |handle, number, len| Waiting { acknowledges: Some(number), ..packet(handle, 1, 1, len) };
        for (filters, second, bytes) in [(true, Pushed::Replaces(1), 100), (false, Pushed::Waits, 140)] {
            let mut queue = FqCodel::new(None, filters);
            push(&mut queue, packet(0, 1, 1, 1000));
            push(&mut queue, ack(1, 1, 40));
            assert_eq!(queue.pop(at(0), |_| panic!("no CoDel")).map(|packet| packet.handle), Some(0));
            assert_eq!(push(&mut queue, packet(2, 1, 1, 40)), Pushed::Waits);
            assert_eq!((push(&mut queue, ack(3, 2, 60)), queue.bytes()), (second, bytes));
        }
    }
}
