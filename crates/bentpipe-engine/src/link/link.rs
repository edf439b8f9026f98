//! A link: queue → serializer → propagation → channel.
//!
//! The queue is FIFO, so a packet's departure is known when it arrives: it is computed then, and a hop costs one
//! event. The packets in flight stand in a ring in order of delivery; only the head's instant is visible.

use std::collections::VecDeque;

use super::channel::{Channel, ChannelState};
use super::config::{Discipline, LinkConfig, LossConfig, QueueLimit, Ties};
use super::opportunities::Opportunities;
use super::queue::Red;
use super::sequence::PacketSequence;
use super::slots::BurstLine;
use crate::machine::{Context, Machine, Step};
use crate::probe::{DropReason, Event, Probe};
use crate::stream::{Stream, TimeNoise};
use crate::units::{Duration, Probability, Time, TransmitClock};

/// Anything that has a length on the line.
pub trait Wire {
    /// Bytes on the line, headers included.
    fn wire_len(&self) -> u32;

    /// Whether the packet counts for the drop list.
    fn is_listable(&self) -> bool {
        true
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It reaches the other end.
    Delivered,
    /// The channel lost it; the other end sees nothing.
    Lost,
}

/// A packet at the far end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The packet.
    pub packet: P,
    /// Whether it is whole.
    pub outcome: Outcome,
}

/// Every packet that was ever offered is in one of these, or in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Delivered.
    pub delivered: u64,
    /// Bytes delivered, the link's own headers included.
    pub delivered_bytes: u64,
    /// Lost because the queue was full.
    pub dropped_full: u64,
    /// Lost by RED's choice.
    pub dropped_early: u64,
    /// Lost on the channel.
    pub dropped_channel: u64,
    /// Lost by the drop list.
    pub dropped_listed: u64,
    /// Lost because they were longer than the link's MTU.
    pub dropped_too_long: u64,
    /// Most packets that waited at once; counted where the queue can refuse any, else 0.
    pub max_waiting: u32,
}

impl LinkCounters {
    /// All losses.
    pub const fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_early + self.dropped_channel + self.dropped_listed + self.dropped_too_long
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight<P> {
    arrives: Time,
    /// Start of its transmission.
    begun: Time,
    lost: bool,
    packet: P,
}

/// How long packets take. A trace lies behind a pointer: the others are what all packets of most runs pass.
#[derive(Clone, Debug)]
enum Line {
    Instant,
    Clock(TransmitClock),
    Scheduled(Box<Scheduled>),
}

/// A line that is not always there.
#[derive(Clone, Debug)]
enum Scheduled {
    Trace(Opportunities),
    Bursts(BurstLine),
}

impl Scheduled {
    /// When a packet that comes now and has the line from `free` on is begun, and how long it takes from then on.
    #[cold]
    #[inline(never)]
    fn transmit(&mut self, now: Time, free: Time, bytes: u32) -> (Time, Duration) {
        match self {
            Scheduled::Trace(trace) => trace.transmit(now, bytes),
            Scheduled::Bursts(bursts) => bursts.transmit(free, bytes),
        }
    }
}

impl Line {
    fn of(config: &LinkConfig) -> Line {
        if let Some(schedule) = &config.tdma {
            return Line::Scheduled(Box::new(Scheduled::Bursts(BurstLine::new(schedule.clone()))));
        }
        match (&config.rate_trace, config.rate) {
            (Some(trace), _) => Line::Scheduled(Box::new(Scheduled::Trace(Opportunities::new(trace.clone())))),
            (None, Some(rate)) => Line::Clock(TransmitClock::new(rate)),
            (None, None) => Line::Instant,
        }
    }
}

/// What the sky does to packets, where it does anything.
#[derive(Clone, Debug)]
pub(super) struct Sky {
    good: LossConfig,
    bad: LossConfig,
    extra_delay: Duration,
    /// The channel as packets start transmission, and as they leave the link: two walks over one process.
    at_start: Channel,
    at_exit: Channel,
    noise: TimeNoise,
    sequence: Option<PacketSequence>,
    last_exit: Time,
    /// Packets that left at `last_exit` before this one.
    same_exit: u32,
    /// Packet length and state of the last bit error probability, and the probability.
    bit_cache: Option<(u32, ChannelState, Probability)>,
}

/// A unidirectional link.
#[derive(Clone, Debug)]
pub struct Link<P> {
    line: Line,
    delay: Duration,
    header: u32,
    mtu: u32,
    limit: QueueLimit,
    red: Option<Red>,
    sky: Option<Box<Sky>>,
    ties: Ties,
    drop_list: Vec<u64>,
    next_listed: usize,
    listable: u64,

    /// When the line has sent all that was admitted.
    busy_until: Time,
    last_arrival: Time,
    /// How many at the front of `in_flight` have begun their transmission, as far as is known; the others wait. Kept,
    /// with their bytes, only where somebody asks.
    begun: usize,
    waiting_bytes: u64,
    in_flight: VecDeque<InFlight<P>>,
    counters: LinkCounters,
}

impl<P: Wire> Link<P> {
    /// The link of the component `name` under `seed`.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let sky = Sky::of(config, seed, name);
        let red = match config.queue.discipline {
            Discipline::DropTail => None,
            Discipline::Red(red) => Some(Red::new(red, config.rate, Stream::named(seed, &format!("{name}/red")))),
        };
        Link {
            line: Line::of(config),
            delay: config.delay,
            header: config.header,
            mtu: config.mtu.unwrap_or(u32::MAX),
            limit: config.queue.limit,
            red,
            sky,
            ties: config.ties,
            drop_list: config.drop_list.clone(),
            next_listed: 0,
            listable: 0,
            busy_until: Time::ZERO,
            last_arrival: Time::ZERO,
            begun: 0,
            waiting_bytes: 0,
            in_flight: VecDeque::new(),
            counters: LinkCounters::default(),
        }
    }

    /// What has become of the packets so far.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// How long the line is busy with what it has admitted, from `now` on.
    pub fn backlog(&self, now: Time) -> Duration {
        self.busy_until.saturating_since(now)
    }

    /// Packets admitted and neither delivered nor lost yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// When the head of the ring arrives.
    #[inline(always)]
    pub fn next_arrival(&self) -> Option<Time> {
        self.in_flight.front().map(|head| head.arrives)
    }

    /// When the head of the ring arrives, and when its transmission began.
    #[inline(always)]
    pub fn head(&self) -> Option<(Time, Time)> {
        self.in_flight.front().map(|head| (head.arrives, head.begun))
    }

    /// Offers a packet to the link; true if it was admitted. A departure of this instant comes first.
    #[inline]
    pub fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P) -> bool {
        self.offer_begun(cx, packet, || Time::NEVER)
    }

    /// As [`Link::offer`], for a packet that comes by an event begun at `begun`: under [`Ties::Begun`] it comes before a
    /// departure of this instant if its event was begun earlier. `begun` is asked only where there is such a tie.
    #[inline]
    pub fn offer_begun<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P, begun: impl Fn() -> Time) -> bool {
        self.counters.offered += 1;
        let length = packet.wire_len();
        if !self.drop_list.is_empty() && packet.is_listable() && self.is_listed() {
            self.counters.dropped_listed += 1;
            cx.emit(|| Event::Dropped { reason: DropReason::Listed });
            return false;
        }
        let admitted = if length > self.mtu { Err(DropReason::TooLong) } else { self.admit(cx, length, begun) };
        if let Err(reason) = admitted {
            match reason {
                DropReason::Early => self.counters.dropped_early += 1,
                DropReason::TooLong => self.counters.dropped_too_long += 1,
                _ => self.counters.dropped_full += 1,
            }
            cx.emit(|| Event::Dropped { reason });
            return false;
        }
        let free = self.busy_until.max(cx.now);
        let (start, transmission) = match &mut self.line {
            Line::Clock(clock) => (free, clock.transmit(length + self.header)),
            Line::Instant => (free, Duration::ZERO),
            Line::Scheduled(line) => line.transmit(cx.now, free, length + self.header),
        };
        self.busy_until = start + transmission;
        let mut arrives = self.busy_until + self.delay;
        let mut lost = false;
        if let Some(sky) = &mut self.sky {
            if sky.extra_delay > Duration::ZERO && sky.at_start.at(start) == ChannelState::Bad {
                arrives += sky.extra_delay;
            }
            // Order is kept, and no packet comes faster behind a delayed one than the line could have sent it.
            if arrives < self.last_arrival {
                arrives = self.last_arrival + transmission;
            }
            lost = sky.loses(arrives, length + self.header);
        }
        self.last_arrival = arrives;
        self.in_flight.push_back(InFlight { arrives, begun: start, lost, packet });
        if self.keeps_waiting::<Pr>() {
            if start > cx.now {
                self.waiting_bytes += length as u64;
                let waiting = (self.in_flight.len() - self.begun) as u32;
                // Whether somebody watches must not show.
                if self.has_bounds() {
                    self.counters.max_waiting = self.counters.max_waiting.max(waiting);
                }
            } else {
                self.begun += 1;
            }
        }
        true
    }

    /// The next packet that has arrived by `cx.now`.
    #[inline]
    pub fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<Arrival<P>> {
        if self.in_flight.front()?.arrives > cx.now {
            return None;
        }
        let InFlight { lost, packet, .. } = self.in_flight.pop_front()?;
        if self.begun > 0 {
            self.begun -= 1;
        } else if self.keeps_waiting::<Pr>() {
            self.waiting_bytes -= packet.wire_len() as u64;
        }
        if lost {
            self.counters.dropped_channel += 1;
            cx.emit(|| Event::Dropped { reason: DropReason::Channel });
            return Some(Arrival { packet, outcome: Outcome::Lost });
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += (packet.wire_len() + self.header) as u64;
        Some(Arrival { packet, outcome: Outcome::Delivered })
    }

    fn is_listed(&mut self) -> bool {
        let index = self.listable;
        self.listable += 1;
        let listed = self.drop_list.get(self.next_listed) == Some(&index);
        self.next_listed += listed as usize;
        listed
    }

    /// Whether anybody wants to know how much waits.
    fn keeps_waiting<Pr: Probe>(&self) -> bool {
        Pr::WATCHES || self.has_bounds()
    }

    fn has_bounds(&self) -> bool {
        self.red.is_some() || self.limit != QueueLimit::Unlimited
    }

    #[inline]
    fn admit<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        length: u32,
        begun: impl Fn() -> Time,
    ) -> Result<(), DropReason> {
        if !self.keeps_waiting::<Pr>() {
            return Ok(());
        }
        while let Some(next) = self.in_flight.get(self.begun)
            && next.begun <= cx.now
            && (next.begun < cx.now || self.departs_before(&begun))
        {
            self.waiting_bytes -= next.packet.wire_len() as u64;
            self.begun += 1;
        }
        let (packets, bytes) = ((self.in_flight.len() - self.begun) as u32, self.waiting_bytes);
        let red_admits = self.red.is_none() || {
            let idle = self.is_idle(cx.now, &begun).then_some(self.busy_until);
            self.red.as_mut().is_some_and(|red| red.admits(cx.now, packets, idle))
        };
        let average = self.red.as_ref().map(Red::average);
        cx.emit(|| Event::Queue { packets, bytes, average });
        let has_room = match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(limit) => packets < limit,
            QueueLimit::Bytes(limit) => bytes + length as u64 <= limit.get(),
        };
        if !has_room && !self.is_idle(cx.now, &begun) {
            if let Some(red) = &mut self.red {
                red.forced_drop();
            }
            return Err(DropReason::QueueFull);
        }
        if red_admits { Ok(()) } else { Err(DropReason::Early) }
    }

    /// Whether a packet that comes now finds nothing in transmission.
    fn is_idle(&self, now: Time, begun: impl Fn() -> Time) -> bool {
        self.busy_until < now || self.busy_until == now && self.departs_before(begun)
    }

    /// Whether the departure of this instant comes before the arrival of a packet by an event begun at `begun`.
    #[cold]
    fn departs_before(&self, begun: impl Fn() -> Time) -> bool {
        if self.ties == Ties::Departure {
            return true;
        }
        // What has arrived at the far end is no longer in the ring: it was begun long ago.
        let on_line = self.begun.checked_sub(1).and_then(|last| self.in_flight.get(last));
        on_line.is_none_or(|on_line| on_line.begun <= begun())
    }
}

/// What is lost of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) lost: bool,
    /// A wrong bit lies in the last piece of the packet, and the pieces before it have come.
    pub(super) in_last_piece: bool,
}

impl Sky {
    /// What a link's settings say of it, if anything.
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str) -> Option<Box<Sky>> {
        let channel = Channel::new(&config.channel, seed, &format!("{name}/channel"));
        let loses = config.good != LossConfig::NONE || config.packet_bursts.is_some();
        (loses || !channel.is_clear()).then(|| {
            Box::new(Sky {
                good: config.good,
                bad: config.bad,
                extra_delay: config.extra_delay.0,
                at_start: channel.clone(),
                at_exit: channel,
                noise: TimeNoise::named(seed, &format!("{name}/loss")),
                sequence: config
                    .packet_bursts
                    .map(|bursts| PacketSequence::named(bursts, seed, &format!("{name}/packet-bursts"))),
                last_exit: Time::ZERO,
                same_exit: 0,
                bit_cache: None,
            })
        })
    }

    /// The fate of a packet that travels in pieces of `piece` bytes, one draw for all of it.
    pub(super) fn draw(&mut self, exit: Time, length: u32, piece: u32) -> Loss {
        let lost = self.loses(exit, length);
        let loss = if self.at_exit.at(exit) == ChannelState::Bad { self.bad } else { self.good };
        // The draws below the probability that the last piece is hit are those for which it is.
        let in_last_piece =
            lost && self.noise.at(exit.index(), self.same_exit) < loss.bit.any_of_bits(piece as u64 * 8).get();
        Loss { lost, in_last_piece }
    }

    fn loses(&mut self, exit: Time, length: u32) -> bool {
        self.same_exit = if exit == self.last_exit { self.same_exit + 1 } else { 0 };
        self.last_exit = exit;
        let state = self.at_exit.at(exit);
        // Each packet counts, also where it is lost anyhow.
        if let Some(sequence) = &mut self.sequence
            && sequence.loses_next()
        {
            return true;
        }
        let loss = if state == ChannelState::Bad { self.bad } else { self.good };
        if loss == LossConfig::NONE {
            return false;
        }
        let by_bits = match self.bit_cache {
            Some((cached, at, p)) if cached == length && at == state => p,
            _ => {
                let p = loss.bit.any_of_bits(length as u64 * 8);
                self.bit_cache = Some((length, state, p));
                p
            }
        };
        let probability = loss.packet.get() + (1.0 - loss.packet.get()) * by_bits.get();
        self.noise.at(exit.index(), self.same_exit) < probability
    }
}

impl<P: Wire> Machine for Link<P> {
    type Input = P;
    type Output = Arrival<P>;
    type Verdict = ();

    fn handle<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, packet: P) {
        self.offer(cx, packet);
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
