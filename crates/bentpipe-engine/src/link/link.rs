//! A link: queue → serializer → propagation → channel.
//!
//! The queue is FIFO, so a packet's departure is computed when it arrives, and a hop costs one event. Packets in flight
//! are in a ring in order of delivery; only the first one's time is visible.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::admission::Admission;
use super::config::LinkConfig;
pub use super::counters::LinkCounters;
use super::line::Line;
pub use super::motion::Altered;
pub use super::outcome::Outcome;
use super::ring::Ring;
use super::sky::{Meeting, Sky};
use crate::machine::{Context, Machine, Step};
use crate::probe::{DropReason, Event, Probe};
use crate::units::{Duration, Time};
use crate::wire::ecn::Ecn;

/// Anything that has a length on the line.
pub trait Wire {
    /// Bytes on the line, including headers.
    fn wire_len(&self) -> u32;

    /// The flow of the packet, for queues in which flows take turns.
    fn flow(&self) -> u64 {
        0
    }

    /// Its ECN field (RFC 3168 §5).
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// True if the packet's transport understands marks.
    fn is_ect(&self) -> bool {
        self.ecn().is_capable()
    }
}

/// A packet at the far end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The packet.
    pub packet: P,
    /// Its fate.
    pub outcome: Outcome,
}

/// The passage of an admitted packet. It is known at once, because the queue is FIFO and the channel is a process in
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transit {
    /// When it reaches the far end.
    pub arrives: Time,
    /// Start of its transmission.
    pub begun: Time,
    /// True if the channel loses it.
    pub lost: bool,
    /// What else happens to it.
    pub altered: Altered,
    /// Number of waiting packets including this one; 0 if it does not wait, or if the queue never refuses packets.
    pub waiting: u32,
}

impl Transit {
    /// The passage of a packet that is not altered and does not wait for room.
    #[inline(always)]
    pub(crate) fn plain(begun: Time, arrives: Time) -> Self {
        Transit { arrives, begun, lost: false, altered: Altered::NOT, waiting: 0 }
    }
}

/// The link's drop list.
#[derive(Clone, Debug)]
pub(super) struct DropList {
    numbers: Vec<u64>,
    next: usize,
    /// Number of counted packets so far.
    count: u64,
}

impl DropList {
    fn lists_next(&mut self) -> bool {
        let listed = self.numbers.get(self.next) == Some(&self.count);
        self.count += 1;
        self.next += usize::from(listed);
        listed
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight<P> {
    pub(super) arrives: Time,
    /// Start of its transmission.
    pub(super) begun: Time,
    pub(super) outcome: Outcome,
    pub(super) packet: P,
}

/// A unidirectional link.
#[derive(Clone, Debug)]
pub struct Link<P> {
    pub(super) header: u32,
    pub(super) mtu: u32,
    pub(super) line: Line,
    pub(super) delay: Duration,
    /// When the line has sent all admitted packets.
    pub(super) busy_until: Time,
    pub(super) sky: Option<Box<Sky>>,
    pub(super) drop_list: Option<Box<DropList>>,
    pub(super) admission: Admission,
    pub(super) in_flight: Ring<InFlight<P>>,
    pub(super) counters: LinkCounters,
}

impl<P: Wire> Link<P> {
    /// The link of the component `name` under `seed`.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let drop_list = (!config.drop_list.is_empty())
            .then(|| Box::new(DropList { numbers: config.drop_list.clone(), next: 0, count: 0 }));
        let (sky, admission) = (Sky::of(config, seed, name), Admission::of(config, seed, name));
        let is_plain = drop_list.is_none() && sky.is_none() && config.mtu.is_none() && admission.is_drop_tail();
        Link {
            header: config.header,
            mtu: config.mtu.unwrap_or(u32::MAX),
            line: Line::of(config, seed, name, is_plain),
            delay: config.delay,
            busy_until: Time::ZERO,
            sky,
            drop_list,
            admission,
            in_flight: Ring::new(),
            counters: LinkCounters::default(),
        }
    }

    /// The counters.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// How long the line is busy with admitted packets, from `now` on.
    pub fn backlog(&self, now: Time) -> Duration {
        self.busy_until.saturating_since(now)
    }

    /// True if a transmission may take no time.
    pub(crate) fn may_send_at_once(&self) -> bool {
        !matches!(self.line, Line::Clock(_) | Line::Plain(_) | Line::Queued(_))
    }

    /// True if a packet may reach the far end at the instant it was offered.
    pub(crate) fn may_take_no_time(&self) -> bool {
        let moves = self.sky.as_ref().is_some_and(|sky| sky.moves_the_delay());
        (moves || self.delay == Duration::ZERO) && self.may_send_at_once()
    }

    /// True if every packet leaves unchanged and in the order of arrival.
    pub(crate) fn keeps_packets(&self) -> bool {
        self.sky.as_ref().is_none_or(|sky| sky.keeps_packets())
    }

    /// True if its queue may mark packets.
    pub(crate) fn marks(&self) -> bool {
        self.admission.marks()
    }

    /// Number of packets admitted that are neither delivered nor lost yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// When the first packet of the ring arrives.
    #[inline(always)]
    pub fn next_arrival(&self) -> Option<Time> {
        self.in_flight.front().map(|head| head.arrives)
    }

    /// When the first packet of the ring arrives, and when its transmission started.
    #[inline(always)]
    pub fn head(&self) -> Option<(Time, Time)> {
        self.in_flight.front().map(|head| (head.arrives, head.begun))
    }

    /// Offers a packet to the link. A departure at the same instant comes first.
    ///
    /// # Errors
    /// Returns the drop reason if the link does not admit the packet.
    #[inline]
    pub fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P) -> Result<(), DropReason> {
        self.offer_begun(cx, packet, || Time::NEVER)
    }

    /// Like [`Link::offer`], but returns a packet that is not admitted. `marked`: the queue in front of the link has
    /// marked it.
    ///
    /// # Errors
    /// Returns the packet and the drop reason if the link does not admit it.
    pub(crate) fn offer_or_return<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        packet: P,
        marked: bool,
    ) -> Result<(), (P, DropReason)> {
        let transit = self.transit(cx, &packet, || Time::NEVER);
        self.counters.note_offered(transit.map(|transit| transit.waiting));
        match transit {
            Ok(mut transit) => {
                transit.altered.marked |= marked;
                self.carry(transit, packet);
                Ok(())
            }
            Err(reason) => Err((packet, reason)),
        }
    }

    /// Like [`Link::offer`], for a packet whose event was scheduled at `begun`. Under
    /// [`Ties::Begun`](super::Ties::Begun), it precedes a departure at the same instant if its event was scheduled
    /// earlier. `begun` is called only for such a tie.
    ///
    /// # Errors
    /// Returns the drop reason if the link does not admit the packet.
    #[inline]
    pub(crate) fn offer_begun<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        packet: P,
        begun: impl Fn() -> Time + Copy,
    ) -> Result<(), DropReason> {
        let transit = self.transit(cx, &packet, begun);
        self.counters.note_offered(transit.map(|transit| transit.waiting));
        self.carry(transit?, packet);
        Ok(())
    }

    /// The passage of a packet. This is the first half of [`Link::offer_begun`]; it counts nothing and does not store
    /// the packet.
    #[inline(always)]
    pub(crate) fn transit<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        packet: &P,
        begun: impl Fn() -> Time + Copy,
    ) -> Result<Transit, DropReason> {
        if let Some((begun, arrives)) = self.pass_plainly::<Pr>(cx.now, packet.wire_len()) {
            return Ok(Transit::plain(begun, arrives));
        }
        if let Some((begun, arrives, waiting)) = self.pass_queue::<Pr>(cx.now, packet.wire_len(), begun) {
            return Ok(Transit { waiting, ..Transit::plain(begun, arrives) });
        }
        self.full_transit(cx, packet, begun)
    }

    /// Takes a packet of `length` bytes that arrives at `now`, if the link has only a rate and a delay and there is no
    /// observer. Returns when its transmission starts and when it arrives.
    #[inline(always)]
    pub(crate) fn pass_plainly<Pr: Probe>(&mut self, now: Time, length: u32) -> Option<(Time, Time)> {
        if Pr::WATCHES {
            return None;
        }
        let Line::Plain(clock) = &mut self.line else { return None };
        let begun = self.busy_until.max(now);
        self.busy_until = begun + clock.transmit(length + self.header);
        Some((begun, self.busy_until + self.delay))
    }

    /// The same, if the link also has a queue with a limit and the queue admits the packet. Also returns the number of
    /// waiting packets. In all other cases, returns `None` and has no effect.
    #[inline(always)]
    pub(crate) fn pass_queue<Pr: Probe>(
        &mut self,
        now: Time,
        length: u32,
        begun: impl Fn() -> Time + Copy,
    ) -> Option<(Time, Time, u32)> {
        if Pr::WATCHES {
            return None;
        }
        let Line::Queued(clock) = &mut self.line else { return None };
        if !self.admission.admits_by_limit(now, length, self.busy_until, begun) {
            return None;
        }
        let begun = self.busy_until.max(now);
        self.busy_until = begun + clock.transmit(length + self.header);
        let waiting = self.admission.queue(now, begun, length);
        Some((begun, self.busy_until + self.delay, waiting))
    }

    /// Like [`Link::transit`], for any link.
    #[inline(never)]
    fn full_transit<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        packet: &P,
        begun: impl Fn() -> Time + Copy,
    ) -> Result<Transit, DropReason> {
        let length = packet.wire_len();
        let is_listed = self.drop_list.as_mut().is_some_and(|list| list.lists_next());
        let admitted = if is_listed {
            Err(DropReason::Listed)
        } else if length > self.mtu {
            Err(DropReason::TooLong)
        } else {
            let is_ect = self.admission.marks() && packet.is_ect();
            self.admission.admit(cx, (length, is_ect), self.busy_until, begun)
        };
        let marked = match admitted {
            Ok(marked) => marked,
            Err(reason) => {
                cx.emit(|| Event::Dropped { reason });
                return Err(reason);
            }
        };
        self.counters.marked += u64::from(marked);
        let free = self.busy_until.max(cx.now);
        let (start, transmission) = self.line.transmit(cx.now, free, length + self.header);
        self.busy_until = start + transmission;
        let mut meeting = Meeting { arrives: self.busy_until + self.delay, lost: false, altered: Altered::NOT };
        if let Some(sky) = &mut self.sky {
            meeting = sky.meet(start, transmission, meeting.arrives, length + self.header);
        }
        let Meeting { arrives, lost, mut altered } = meeting;
        altered.marked = marked;
        let waiting = self.admission.enter::<Pr>(cx.now, start, length);
        Ok(Transit { arrives, begun: start, lost, altered, waiting })
    }

    /// Stores a packet until it arrives. This is the second half of [`Link::offer_begun`]. Returns true if it arrives
    /// next.
    #[inline(always)]
    pub(crate) fn carry(&mut self, transit: Transit, packet: P) -> bool {
        let Transit { arrives, begun, lost, altered, .. } = transit;
        let is_only = self.in_flight.len() == 0;
        let outcome = Outcome::of(lost, altered);
        self.in_flight.push_back(InFlight { arrives, begun, outcome, packet });
        is_only || self.sky.is_some() && self.in_flight.settle(|before, last| before.arrives > last.arrives)
    }

    /// Counts an offered packet. Returns true at a new maximum of waiting packets.
    #[inline(always)]
    pub(crate) fn note_offered(&mut self, admitted: Result<u32, DropReason>) -> bool {
        self.counters.note_offered(admitted)
    }

    /// Counts a packet admitted by a plain link.
    #[inline(always)]
    pub(crate) fn note_admitted(&mut self) {
        self.counters.offered += 1;
    }

    /// Counts a packet of `length` bytes at the far end. Returns its length with the link's own header.
    #[inline(always)]
    pub(crate) fn note_arrival(&mut self, length: u32, lost: bool) -> u32 {
        let on_line = length + self.header;
        if lost {
            self.counters.dropped_channel += 1;
        } else {
            self.counters.delivered += 1;
            self.counters.delivered_bytes += u64::from(on_line);
        }
        on_line
    }

    /// The next packet that has arrived by `now` if it is unaltered; [`Link::take`] takes all others.
    #[inline(always)]
    pub(crate) fn take_intact(&mut self, now: Time) -> Option<P> {
        let is_intact = |at: &InFlight<P>| at.arrives <= now && at.outcome == Outcome::Delivered;
        let InFlight { packet, .. } = self.in_flight.pop_front_if(is_intact)?;
        self.note_arrival(packet.wire_len(), false);
        Some(packet)
    }

    /// The next packet that has arrived by `cx.now`.
    #[inline]
    pub fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<Arrival<P>> {
        if self.in_flight.front()?.arrives > cx.now {
            return None;
        }
        let InFlight { outcome, packet, .. } = self.in_flight.pop_front()?;
        self.note_arrival(packet.wire_len(), outcome == Outcome::Lost);
        match outcome {
            Outcome::Delivered => {}
            Outcome::Lost => cx.emit(|| Event::Dropped { reason: DropReason::Channel }),
            Outcome::Altered(altered) => {
                self.counters.corrupted += u64::from(altered.corrupt);
                self.counters.duplicated += u64::from(altered.twice);
            }
        }
        Some(Arrival { packet, outcome })
    }
}

impl<P: Wire> Machine for Link<P> {
    type Input = P;
    type Output = Arrival<P>;
    type Verdict = Result<(), DropReason>;

    fn handle<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P) -> Result<(), DropReason> {
        self.offer(cx, packet)
    }

    fn poll<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Step<Arrival<P>> {
        match self.take(cx) {
            Some(arrival) => Step::Do(arrival),
            None => Step::Wait(self.next_arrival()),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
