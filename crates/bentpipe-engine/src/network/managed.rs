//! A link whose queue decides when a packet leaves it: CoDel (RFC 8289), FQ-CoDel (RFC 8290) or DualPI2 (RFC 9332).
//!
//! A plain link computes a packet's passage when it is offered. Here the queue holds the packets, and the link behind
//! it, which has no queue, gets the next one when its line is free. The queue is the same as for S-LACP's channels.
//! With FQ-CoDel, each flow has its own queue. Flows are identified by a 64-bit hash. If there is no room, the flow
//! that occupies the most loses its newest packets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::dual::DualQueue;
use crate::link::{Altered, Discipline, Link, LinkConfig, LinkCounters, Outcome, QueueConfig, QueueLimit, Wire};
use crate::machine::Context;
use crate::probe::{DropReason, Event, NoProbe, Probe};
use crate::slacp::{Backlog, ChannelConfig, Pushed, Queueing, Waiting};
use crate::slots::Slots;
use crate::units::{Duration, Time};
use crate::wire::ecn::Ecn;

/// The queue.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per managed link; not so large without the feature `ns2`")]
enum Queue {
    /// A queue with CoDel: one for all flows, or one per flow.
    Codel(Backlog),
    Dual(DualQueue),
}

impl Queue {
    fn len(&self) -> usize {
        match self {
            Queue::Codel(backlog) => backlog.len(),
            Queue::Dual(dual) => dual.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long the first packet has waited.
    fn wait(&self, now: Time) -> Duration {
        match self {
            Queue::Codel(backlog) => backlog.wait(now),
            Queue::Dual(dual) => dual.wait(now),
        }
    }

    /// Queues a packet with this ECN field.
    fn push(&mut self, packet: Waiting, ecn: Ecn) -> Pushed {
        match self {
            Queue::Codel(backlog) => backlog.push(packet, (0, 0)),
            Queue::Dual(dual) => {
                if dual.push(packet, ecn) {
                    Pushed::Waits
                } else {
                    Pushed::Refused
                }
            }
        }
    }

    /// Takes another packet that was evicted for the last one.
    fn evicted(&mut self) -> Option<u32> {
        match self {
            Queue::Codel(backlog) => backlog.evicted(),
            Queue::Dual(_) => None,
        }
    }

    /// Takes the next packet, and whether it is marked. `may_mark` tells whether CoDel may mark a packet. Packets
    /// dropped before it are added to `dropped`.
    fn pop(&mut self, at: Time, may_mark: impl Fn(u32) -> bool, dropped: &mut Vec<u32>) -> Option<(Waiting, bool)> {
        match self {
            Queue::Dual(dual) => dual.pop(at, |handle| dropped.push(handle)),
            Queue::Codel(backlog) => {
                let mut marked = None;
                let next = backlog.pop(at, |handle| {
                    let marks = may_mark(handle);
                    if marks {
                        marked = Some(handle);
                    } else {
                        dropped.push(handle);
                    }
                    marks
                })?;
                Some((next, marked == Some(next.handle)))
            }
        }
    }
}

/// A packet that was dropped.
#[derive(Debug)]
struct Refused<P> {
    at: Time,
    /// The handle that it had.
    handle: u32,
    packet: P,
    reason: DropReason,
}

/// The settings of the link behind the queue.
fn without_queue(config: &LinkConfig) -> LinkConfig {
    let queue = QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail, marking: false };
    LinkConfig { queue, ..config.clone() }
}

/// A link with its queue.
#[derive(Debug)]
pub struct ManagedLink<P> {
    link: Link<P>,
    queue: Queue,
    /// Waiting packets by handle.
    held: Slots<P>,
    bytes: u64,
    /// True if CoDel marks packets that understand ECN instead of dropping them.
    marking: bool,
    /// Packets that were dropped.
    refused: VecDeque<Refused<P>>,
    /// When the line will have sent everything given to it, and when it was given the last packet.
    line_free: Time,
    begun: Time,
    /// The queue's counters; the link counts the rest.
    counters: LinkCounters,
}

impl<P: Wire> ManagedLink<P> {
    /// The link of the component `name` under `seed`; `None` if its queue is of another kind.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Option<Self> {
        let limit = config.queue.limit;
        let with_codel = |codel, queueing| {
            Queue::Codel(Backlog::new(&ChannelConfig {
                limit,
                codel: Some(codel),
                queueing,
                ..ChannelConfig::unreliable()
            }))
        };
        let queue = match config.queue.discipline {
            Discipline::Codel(codel) => with_codel(codel, Queueing::Fifo),
            Discipline::FqCodel(codel) => with_codel(codel, Queueing::Hosts),
            Discipline::DualPi2(dual) => Queue::Dual(DualQueue::new(dual, limit)),
            Discipline::DropTail | Discipline::Red(_) => return None,
        };
        Some(ManagedLink {
            link: Link::new(&without_queue(config), seed, name),
            queue,
            held: Slots::default(),
            bytes: 0,
            marking: config.queue.marking,
            refused: VecDeque::new(),
            line_free: Time::ZERO,
            begun: Time::ZERO,
            counters: LinkCounters::default(),
        })
    }

    /// Queues a packet. If others are dropped for it, [`ManagedLink::take`] returns them.
    ///
    /// # Errors
    /// Returns the reason if this packet is dropped at once. [`ManagedLink::take`] returns it, too.
    pub fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P) -> Result<(), DropReason> {
        let now = cx.now;
        self.run(now);
        let before = self.refused.len();
        self.counters.offered += 1;
        let (packets, bytes) = (self.queue.len() as u32, self.bytes);
        cx.emit(|| Event::Queue { packets, bytes, average: None });
        let (len, flow, ecn) = (packet.wire_len(), packet.flow(), packet.ecn());
        let handle = self.hold(packet);
        // The limit does not count the packet in transmission, so an idle line takes any.
        let is_idle = self.queue.is_empty() && self.line_free <= now;
        let waiting = Waiting { handle, len, flow, host: 0, since: now, acknowledges: None };
        match self.queue.push(waiting, ecn) {
            Pushed::Waits => {}
            Pushed::Refused | Pushed::Evicts(_) | Pushed::Replaces(_) if is_idle => self.transmit(now, handle, false),
            Pushed::Refused => self.refuse(now, handle, DropReason::QueueFull),
            Pushed::Evicts(other) | Pushed::Replaces(other) => self.refuse(now, other, DropReason::QueueFull),
        }
        while let Some(other) = self.queue.evicted() {
            self.refuse(now, other, DropReason::QueueFull);
        }
        self.run(now);
        self.counters.max_waiting = self.counters.max_waiting.max(self.queue.len() as u32);
        let dropped = self.refused.range(before..).find(|refused| refused.handle == handle);
        dropped.map_or(Ok(()), |refused| Err(refused.reason))
    }

    fn hold(&mut self, packet: P) -> u32 {
        self.bytes += u64::from(packet.wire_len());
        self.held.keep(packet)
    }

    fn let_go(&mut self, handle: u32) -> Option<P> {
        let packet = self.held.take(handle)?;
        self.bytes -= u64::from(packet.wire_len());
        Some(packet)
    }

    fn refuse(&mut self, now: Time, handle: u32, reason: DropReason) {
        if let Some(packet) = self.let_go(handle) {
            *self.counters.dropped_for(reason) += 1;
            self.refused.push_back(Refused { at: now, handle, packet, reason });
        }
    }

    /// Gives the line all packets whose turn comes by `now`.
    fn run(&mut self, now: Time) {
        while self.line_free <= now && !self.queue.is_empty() {
            // A packet that arrived while the line was idle goes at once; one that waited goes when the line becomes
            // free.
            let at = self.line_free.max(now.saturating_sub(self.queue.wait(now)));
            let mut dropped = Vec::new();
            let (marking, held) = (self.marking, &self.held);
            let may_mark = |handle: u32| marking && held.get(handle).is_some_and(Wire::is_ect);
            let next = self.queue.pop(at, may_mark, &mut dropped);
            dropped.into_iter().for_each(|handle| self.refuse(at, handle, DropReason::Early));
            let Some((next, marked)) = next else { continue };
            self.transmit(at, next.handle, marked);
        }
    }

    /// Gives a packet to the line, which is free at `at`.
    fn transmit(&mut self, at: Time, handle: u32, marked: bool) {
        let Some(packet) = self.let_go(handle) else { return };
        self.counters.marked += u64::from(marked);
        let mut probe = NoProbe;
        let mut cx = Context { now: at, who: crate::probe::Who(0), probe: &mut probe };
        // The link handles the MTU and the drop list.
        if let Err((packet, reason)) = self.link.offer_or_return(&mut cx, packet, marked) {
            self.refused.push_back(Refused { at, handle, packet, reason });
        }
        self.begun = at;
        self.line_free = at + self.link.backlog(at);
    }

    /// Changes all settings but the queue's at `now`, which must not be before the last packet was offered. `seed` and
    /// `name` are those of [`ManagedLink::new`].
    pub fn retune(&mut self, now: Time, config: &LinkConfig, seed: u64, name: &str) {
        self.run(now);
        self.link.retune(now, &without_queue(config), seed, name);
        self.line_free = now + self.link.backlog(now);
    }

    /// When to call [`ManagedLink::take`], and when that was decided.
    pub fn head(&self) -> Option<(Time, Time)> {
        let refused = self.refused.front().map(|refused| (refused.at, refused.at));
        let next = (!self.queue.is_empty()).then_some((self.line_free, self.begun));
        [refused, next, self.link.head()].into_iter().flatten().min()
    }

    /// The next packet that has passed or was dropped by `cx.now`.
    pub fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<(P, Result<Altered, DropReason>)> {
        self.run(cx.now);
        if let Some(Refused { packet, reason, .. }) = self.refused.pop_front() {
            cx.emit(|| Event::Dropped { reason });
            return Some((packet, Err(reason)));
        }
        let arrival = self.link.take(cx)?;
        let fate = match arrival.outcome {
            Outcome::Delivered => Ok(Altered::NOT),
            Outcome::Altered(altered) => {
                if altered.marked {
                    cx.emit(|| Event::Marked);
                }
                Ok(altered)
            }
            Outcome::Lost => Err(DropReason::Channel),
        };
        Some((arrival.packet, fate))
    }

    /// Number of packets inside.
    pub fn in_flight(&self) -> usize {
        self.queue.len() + self.refused.len() + self.link.in_flight()
    }

    /// The counters. A dropped packet counts at once.
    pub fn counters(&self) -> LinkCounters {
        let LinkCounters { offered, dropped_full, dropped_early, marked, max_waiting, .. } = self.counters;
        LinkCounters { offered, dropped_full, dropped_early, marked, max_waiting, ..self.link.counters() }
    }

    /// How long the line is busy with the packets given to it, without the queue.
    pub fn busy(&self, now: Time) -> Duration {
        self.link.backlog(now)
    }
}

#[cfg(test)]
#[path = "managed_tests.rs"]
mod tests;
