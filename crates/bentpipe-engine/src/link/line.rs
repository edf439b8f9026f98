//! The line of a link: the start and duration of transmissions.

use alloc::boxed::Box;

use super::config::{LinkConfig, QueueLimit};
use super::course::Course;
use super::moving::MovingLine;
use super::opportunities::Opportunities;
use super::slots::BurstLine;
use crate::units::{Duration, Rate, Time, TransmitClock};

/// Transmission times. A trace is behind a pointer, because most runs use only the other kinds.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Instant,
    /// A link with a rate and a delay, and nothing else.
    Plain(TransmitClock),
    /// A link with a rate, a delay and a queue with a limit, and nothing else.
    Queued(TransmitClock),
    Clock(TransmitClock),
    Scheduled(Box<Scheduled>),
}

/// A line that is not always available.
#[derive(Clone, Debug)]
pub(super) enum Scheduled {
    Trace(Opportunities),
    Bursts(BurstLine),
    Moving(MovingLine),
}

impl Scheduled {
    /// The start and duration of the transmission of a packet that arrives now, if the line is free from `free` on.
    #[cold]
    #[inline(never)]
    fn transmit(&mut self, now: Time, free: Time, bytes: u32) -> (Time, Duration) {
        match self {
            Scheduled::Trace(trace) => trace.transmit(now, bytes),
            Scheduled::Bursts(bursts) => bursts.transmit(free, bytes),
            Scheduled::Moving(line) => line.transmit(free, bytes.into()),
        }
    }

    fn sent_by(&self, begun: Time, bytes: u32) -> Option<Time> {
        let (start, transmission) = match self.clone() {
            Scheduled::Trace(_) => return None,
            Scheduled::Bursts(mut bursts) => bursts.transmit(begun, bytes),
            Scheduled::Moving(mut line) => line.transmit(begun, bytes.into()),
        };
        Some(start + transmission)
    }
}

impl Line {
    /// The start and duration of the transmission of a packet that arrives now, if the line is free from `free` on.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, free: Time, bytes: u32) -> (Time, Duration) {
        match self {
            Line::Clock(clock) | Line::Plain(clock) | Line::Queued(clock) => (free, clock.transmit(bytes)),
            Line::Instant => (free, Duration::ZERO),
            Line::Scheduled(line) => line.transmit(now, free, bytes),
        }
    }

    /// When a transmission that began at `begun` ends, if it must be computed: the next one need not begin then. Unknown
    /// for a trace of opportunities, which packets share.
    pub(super) fn sent_by(&self, begun: Time, bytes: u32) -> Option<Time> {
        match self {
            Line::Scheduled(line) => line.sent_by(begun, bytes),
            _ => Some(Time::NEVER),
        }
    }

    /// Takes no short cut from now on: something besides the line and the queue decides about packets.
    pub(super) fn be_watched(&mut self) {
        if let Line::Plain(clock) | Line::Queued(clock) = self {
            *self = Line::Clock(clock.clone());
        }
    }

    /// The rate, if it is constant.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            Line::Plain(clock) | Line::Queued(clock) | Line::Clock(clock) => Some(clock.rate()),
            Line::Instant | Line::Scheduled(_) => None,
        }
    }

    /// The line of a link. `is_plain`: the link has no losses and no MTU, and its queue has no discipline but
    /// drop-tail.
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str, is_plain: bool) -> Line {
        if let Some(line) = moving(config, seed, name) {
            return Line::Scheduled(Box::new(Scheduled::Moving(line)));
        }
        if let Some(schedule) = &config.tdma {
            return Line::Scheduled(Box::new(Scheduled::Bursts(BurstLine::new(schedule.clone()))));
        }
        match (&config.rate_trace, config.rate) {
            (Some(trace), _) => Line::Scheduled(Box::new(Scheduled::Trace(Opportunities::new(trace.clone())))),
            (None, Some(rate)) if is_plain && config.queue.limit == QueueLimit::Unlimited => {
                Line::Plain(TransmitClock::new(rate))
            }
            (None, Some(rate)) if is_plain => Line::Queued(TransmitClock::new(rate)),
            (None, Some(rate)) => Line::Clock(TransmitClock::new(rate)),
            (None, None) => Line::Instant,
        }
    }
}

/// The line of a link whose rate follows a schedule, a trace of rates, or phases.
fn moving(config: &LinkConfig, seed: u64, name: &str) -> Option<MovingLine> {
    if let Some(track) = config.moves.as_ref().and_then(|moves| moves.rate.clone()) {
        return Some(MovingLine::new(Course::of_track(track)));
    }
    match (&config.phases, config.rate, &config.rate_trace) {
        (Some(phases), Some(rate), None) if phases.moves_the_line() => {
            Some(MovingLine::new(Course::of_rates(phases, rate, seed, name)))
        }
        _ => None,
    }
}

impl LinkConfig {
    /// Bytes that the line can send from the start of the run to `end`, with the random draws of a link of this name
    /// and seed. `None` if transmission takes no time.
    pub fn capacity(&self, seed: u64, name: &str, end: Time) -> Option<f64> {
        if let Some(schedule) = &self.tdma {
            return Some(schedule.capacity(end));
        }
        if let Some(mut line) = moving(self, seed, name) {
            return Some(line.capacity(end));
        }
        if let Some(trace) = &self.rate_trace {
            return Some(trace.capacity(end) as f64);
        }
        Some(self.rate?.bits_per_second() as f64 / 8.0 * end.as_secs_f64())
    }
}
