//! The queue of a channel: packets that wait for their first transmission. CoDel drops packets from it, and a newer
//! acknowledgement replaces an older one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::codel::Control;
use super::config::{ChannelConfig, Queueing};
use super::fair::Fair;
use super::fq_codel::FqCodel;
use super::waiting::{Pushed, Waiting, cut};
use crate::link::QueueLimit;
use crate::units::{Duration, Time};

#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    packets: VecDeque<Waiting>,
    /// Number of packets taken out so far. A packet's position in the queue is relative to it.
    taken: u64,
    bytes: u64,
    limit: QueueLimit,
    /// Maximum bytes that may wait, besides that limit.
    room: u64,
    /// Frames per packet.
    segments: u32,
    /// The packets by flow, if flows take turns; `packets` is then empty.
    fair: Option<Fair>,
    /// The packets by host and flow, if hosts take turns; `packets` is then empty. This queue has its own CoDel and ACK
    /// filter.
    hosts: Option<FqCodel>,
    codel: Option<Control>,
    /// Packets that were evicted for the last one, besides the one that was returned.
    evicted: Vec<u32>,
    /// The position of the newest waiting acknowledgement of each flow, if acknowledgements are filtered.
    acks: Option<BTreeMap<u64, u64>>,
}

impl Backlog {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        let by_host = config.queueing == Queueing::Hosts;
        Backlog {
            packets: VecDeque::new(),
            taken: 0,
            bytes: 0,
            limit: config.limit,
            room: u64::MAX,
            segments: u32::from(config.segments.clamp(1, ChannelConfig::MAX_SEGMENTS)),
            fair: (config.queueing == Queueing::Fair).then(Fair::default),
            hosts: by_host.then(|| FqCodel::new(config.codel, config.filters_acks)),
            codel: config.codel.filter(|_| !by_host).map(Control::new),
            evicted: Vec::new(),
            acks: (config.filters_acks && !by_host).then(BTreeMap::new),
        }
    }

    /// Frames that wait.
    pub(crate) fn len(&self) -> usize {
        if let Some(hosts) = &self.hosts {
            return hosts.len();
        }
        self.fair.as_ref().map_or(self.packets.len(), Fair::len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn front(&self) -> Option<&Waiting> {
        if let Some(hosts) = &self.hosts {
            return hosts.front();
        }
        self.fair.as_ref().map_or(self.packets.front(), Fair::front)
    }

    /// How long the first packet has waited.
    pub(crate) fn wait(&self, now: Time) -> Duration {
        self.front().map_or(Duration::ZERO, |packet| now.saturating_since(packet.since))
    }

    pub(super) fn front_len(&self) -> Option<u32> {
        self.front().map(|packet| packet.len)
    }

    /// Limits the bytes that wait, in addition to the channel's own limit.
    pub(super) fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.hosts.as_ref().map_or(self.bytes, FqCodel::bytes)
    }

    /// Takes the handle of another packet that was evicted for the last one. To be called after each push until it returns `None`.
    pub(crate) fn evicted(&mut self) -> Option<u32> {
        self.evicted.pop()
    }

    /// Queues a packet if there is room in addition to the packets `held` elsewhere.
    pub(crate) fn push(&mut self, packet: Waiting, held: (usize, u64)) -> Pushed {
        self.push_if(packet, held, false)
    }

    /// Like [`Backlog::push`], but a packet that is alone always has room below the channel's limit, as on a link, whose queue does not
    /// count the packet in transmission.
    pub(super) fn push_alone(&mut self, packet: Waiting, held: (usize, u64)) -> Pushed {
        self.push_if(packet, held, self.is_empty() && held.0 == 0)
    }

    /// The channel's limit does not apply to a packet that `is_alone`.
    fn push_if(&mut self, packet: Waiting, held: (usize, u64), is_alone: bool) -> Pushed {
        let (bytes, limit, room) = (self.bytes() + u64::from(packet.len), self.limit, self.room);
        let has_room = |packets: usize, freed: u64| {
            let bytes = bytes - freed;
            (is_alone || limit.has_room(|| packets + held.0, bytes + held.1)) && bytes <= room
        };
        if let Some(hosts) = &mut self.hosts {
            return hosts.push(packet, has_room, &mut self.evicted);
        }
        if let Some(handle) = self.replace(packet) {
            return Pushed::Replaces(handle);
        }
        if let Some(fair) = &mut self.fair {
            let (pushed, freed) = fair.push(packet, self.segments, has_room, &mut self.evicted);
            self.bytes -= freed;
            if pushed != Pushed::Refused {
                self.bytes += u64::from(packet.len);
            }
            return pushed;
        }
        let waiting = if self.segments == 1 { self.packets.len() } else { self.packets.len() / self.segments as usize };
        if !has_room(waiting, 0) {
            return Pushed::Refused;
        }
        if let (Some(acks), Some(_)) = (&mut self.acks, packet.acknowledges) {
            acks.insert(packet.flow, self.taken + self.packets.len() as u64);
        }
        self.bytes += packet.len as u64;
        self.packets.extend(cut(packet, self.segments));
        Pushed::Waits
    }

    /// Changes the number of a flow's bytes that are held elsewhere. With a queue per flow, they count towards the
    /// flow.
    pub(super) fn hold(&mut self, flow: u64, bytes: i64) {
        if let Some(fair) = &mut self.fair {
            fair.hold(flow, bytes);
        }
    }

    /// Replaces an older acknowledgement of the same flow. Returns the handle of the replaced one.
    fn replace(&mut self, packet: Waiting) -> Option<u32> {
        let &place = self.acks.as_ref()?.get(&packet.flow)?;
        let waiting = &mut self.packets[(place - self.taken) as usize];
        if !packet.acknowledges_more(waiting) {
            return None;
        }
        self.bytes = self.bytes - u64::from(waiting.len) + u64::from(packet.len);
        Some(core::mem::replace(waiting, packet).handle)
    }

    fn take(&mut self) -> Option<Waiting> {
        if let Some(fair) = &mut self.fair {
            let packet = fair.pop()?;
            self.bytes -= u64::from(packet.len);
            return Some(packet);
        }
        let packet = self.packets.pop_front()?;
        if let Some(acks) = &mut self.acks
            && acks.get(&packet.flow) == Some(&self.taken)
        {
            acks.remove(&packet.flow);
        }
        self.taken += 1;
        self.bytes -= packet.len as u64;
        Some(packet)
    }

    /// Takes the next packet. Calls `judge` with each packet that CoDel would drop before it. If `judge` returns true,
    /// the packet was marked and is sent instead.
    pub(crate) fn pop(&mut self, now: Time, mut judge: impl FnMut(u32) -> bool) -> Option<Waiting> {
        if let Some(hosts) = &mut self.hosts {
            return hosts.pop(now, judge);
        }
        let Some(mut codel) = self.codel.take() else { return self.take() };
        let packet = codel.pop(now, &mut || self.take().map(|packet| (packet, self.bytes)), &mut judge);
        self.codel = Some(codel);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slacp::config::Codel;
    use crate::units::Bytes;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn backlog(limit: QueueLimit, codel: Option<Codel>) -> Backlog {
        Backlog::new(&ChannelConfig { limit, codel, filters_acks: true, ..ChannelConfig::unreliable() })
    }

    fn packet(handle: u32, since: Time) -> Waiting {
        Waiting { handle, len: 1000, flow: 0, host: 0, since, acknowledges: None }
    }

    #[test]
    fn limits() {
        let mut packets = backlog(QueueLimit::Packets(2), None);
        let pushed = [0, 1, 2].map(|handle| packets.push(packet(handle, at(0)), (0, 0)));
        assert_eq!(pushed, [Pushed::Waits, Pushed::Waits, Pushed::Refused]);
        let mut bytes = backlog(QueueLimit::Bytes(Bytes::new(2000)), None);
        assert_eq!(bytes.push(packet(0, at(0)), (1, 1001)), Pushed::Refused);
        assert_eq!(bytes.push(packet(0, at(0)), (1, 1000)), Pushed::Waits);
        for limit in [QueueLimit::Packets(0), QueueLimit::Bytes(Bytes::new(999))] {
            let mut alone = backlog(limit, None);
            let pushed = [(1, 0), (0, 0), (0, 0)].map(|held| alone.push_alone(packet(0, at(0)), held));
            assert_eq!(pushed, [Pushed::Refused, Pushed::Waits, Pushed::Refused]);
        }
        let mut short = backlog(QueueLimit::Unlimited, None);
        short.set_room(1000);
        let pushed = [0, 1].map(|handle| short.push(packet(handle, at(0)), (0, 0)));
        assert_eq!((pushed, short.bytes()), ([Pushed::Waits, Pushed::Refused], 1000));
        short.set_room(2000);
        assert_eq!(short.push(packet(2, at(0)), (0, 0)), Pushed::Waits);
    }

    /// If there is no room, the flow or host that occupies the most loses a packet.
    #[test]
    fn without_room_the_host_with_most_loses() {
        let mut queue = Backlog::new(&ChannelConfig { queueing: Queueing::Hosts, ..ChannelConfig::unreliable() });
        let of = |host, handle| Waiting { host, flow: host, ..packet(handle, at(0)) };
        (0..3).for_each(|handle| assert_eq!(queue.push(of(1, handle), (0, 0)), Pushed::Waits));
        queue.set_room(3000);
        assert_eq!(queue.push(of(1, 3), (0, 0)), Pushed::Refused);
        assert_eq!(queue.push(of(2, 4), (0, 0)), Pushed::Evicts(2));
        assert_eq!(queue.bytes(), 3000);
    }

    #[test]
    fn an_acknowledgement_takes_the_place_of_one_that_says_less() {
        let mut queue = backlog(QueueLimit::Packets(4), None);
        let ack = |handle, flow, number| Waiting { flow, acknowledges: Some(number), ..packet(handle, at(0)) };
        let mut push = |packet| queue.push(packet, (0, 0));
        assert_eq!(push(ack(0, 1, u32::MAX - 9)), Pushed::Waits);
        assert_eq!(push(ack(1, 2, 7)), Pushed::Waits);
        assert_eq!(push(ack(2, 1, 10)), Pushed::Replaces(0), "twenty further");
        assert_eq!(push(ack(3, 1, 10)), Pushed::Waits, "a duplicate counts by itself");
        assert_eq!(push(ack(4, 1, 5)), Pushed::Waits, "nothing new");
        assert_eq!(push(packet(5, at(0))), Pushed::Refused);
        assert_eq!(push(ack(6, 2, 8)), Pushed::Replaces(1), "it needs no room");
        let mut pop = || queue.pop(at(1), |_| panic!("dropped")).map(|packet| packet.handle);
        assert_eq!([pop(), pop()], [Some(2), Some(6)], "each in its place");
        assert_eq!(queue.push(ack(7, 2, 9), (0, 0)), Pushed::Waits, "what is gone has no place");
        let mut pop = || queue.pop(at(1), |_| panic!("dropped")).map(|packet| packet.handle);
        assert_eq!([pop(), pop(), pop(), pop()], [Some(3), Some(4), Some(7), None]);
        assert_eq!((queue.bytes, queue.acks.as_ref().map(BTreeMap::len)), (0, Some(0)));
    }

    #[test]
    fn what_says_more_than_it_acknowledges_stays() {
        let mut queue = backlog(QueueLimit::Unlimited, None);
        let ack = |handle, acknowledges| Waiting { acknowledges, ..packet(handle, at(0)) };
        for (handle, acknowledges) in [(0, Some(1)), (1, None), (2, Some(2)), (3, None)] {
            let pushed = queue.push(ack(handle, acknowledges), (0, 0));
            assert_eq!(pushed, if handle == 2 { Pushed::Replaces(0) } else { Pushed::Waits });
        }
        let mut without = Backlog { acks: None, ..backlog(QueueLimit::Unlimited, None) };
        assert_eq!([1, 2].map(|n| without.push(ack(n, Some(n)), (0, 0))), [Pushed::Waits; 2]);
    }

    /// The source does not react, so drops follow RFC 8289 §4.2: at interval / sqrt(count).
    #[test]
    fn codel_drops_at_its_law() {
        let codel = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        let mut queue = backlog(QueueLimit::Unlimited, Some(codel));
        for n in 0..2000 {
            queue.push(packet(n, at(0)), (0, 0));
        }
        let mut drops = Vec::new();
        // One packet per millisecond leaves, from 10 ms on.
        for ms in 10..500 {
            queue.pop(at(ms), |_| {
                drops.push(ms);
                false
            });
        }
        // Above the target since 10 ms: the first drop is at 110 ms, the next ones after 100, 100/sqrt 2, 100/sqrt 3
        // ... ms.
        let mut next = 110.0;
        let mut expected = vec![110];
        for count in 1.. {
            next += 100.0 / f64::from(count).sqrt();
            if next > 499.0 {
                break;
            }
            expected.push(next.ceil() as u64);
        }
        assert_eq!(drops, expected);
    }

    #[test]
    fn codel_leaves_a_short_queue_alone() {
        let codel = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        let mut queue = backlog(QueueLimit::Unlimited, Some(codel));
        for ms in 0..1000 {
            queue.push(packet(0, at(ms)), (0, 0));
            assert!(queue.pop(at(ms + 4), |_| panic!("dropped")).is_some());
        }
    }

    /// A limit in bytes holds whatever the lengths of packets: as many short ones give way to a long one as it takes. A lower limit than
    /// what waits already is not exceeded further.
    #[test]
    fn long_packets_do_not_exceed_the_limit_in_place_of_short_ones() {
        for queueing in [Queueing::Hosts, Queueing::Fair] {
            let limit = QueueLimit::Bytes(Bytes::new(10_000));
            let mut queue = Backlog::new(&ChannelConfig { queueing, limit, ..ChannelConfig::unreliable() });
            let of = |flow, handle, len| Waiting { host: flow, flow, len, ..packet(handle, at(0)) };
            (0..250).for_each(|n| assert_eq!(queue.push(of(1, n, 40), (0, 0)), Pushed::Waits));
            // 38 of 40 bytes make room for the first.
            assert_eq!(queue.push(of(2, 1000, 1500), (0, 0)), Pushed::Evicts(212), "{queueing:?}");
            let others: Vec<u32> = core::iter::from_fn(|| queue.evicted()).collect();
            assert_eq!((others.len(), others.iter().min(), queue.bytes()), (37, Some(&213), 250 * 40 - 38 * 40 + 1500));
            (3..12).for_each(|n| _ = queue.push(of(n, n as u32, 1500), (0, 0)));
            core::iter::from_fn(|| queue.evicted()).for_each(drop);
            assert!(queue.bytes() <= 10_000, "{queueing:?}: {}", queue.bytes());
            let before = queue.bytes();
            queue.set_room(1000);
            _ = queue.push(of(20, 20, 1500), (0, 0));
            assert!(queue.bytes() <= before && queue.bytes() + 1500 > before, "{queueing:?}: {}", queue.bytes());
        }
    }
}
