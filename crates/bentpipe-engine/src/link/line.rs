//! The line of a link: when a packet is begun, and how long it takes.

use super::config::{LinkConfig, QueueLimit};
use super::opportunities::Opportunities;
use super::slots::BurstLine;
use crate::units::{Duration, Time, TransmitClock};

/// How long packets take. A trace lies behind a pointer: the others are what all packets of most runs pass.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Instant,
    /// A link that has a rate and a delay, and nothing else.
    Plain(TransmitClock),
    /// A link that has a rate, a delay and a queue with a limit, and nothing else.
    Queued(TransmitClock),
    Clock(TransmitClock),
    Scheduled(Box<Scheduled>),
}

/// A line that is not always there.
#[derive(Clone, Debug)]
pub(super) enum Scheduled {
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
    /// When a packet that comes now and has the line from `free` on is begun, and how long it takes from then on.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, free: Time, bytes: u32) -> (Time, Duration) {
        match self {
            Line::Clock(clock) | Line::Plain(clock) | Line::Queued(clock) => (free, clock.transmit(bytes)),
            Line::Instant => (free, Duration::ZERO),
            Line::Scheduled(line) => line.transmit(now, free, bytes),
        }
    }

    /// The line of a link; `is_plain`: it has no losses and no MTU, and its queue no other discipline than drop-tail.
    pub(super) fn of(config: &LinkConfig, is_plain: bool) -> Line {
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
