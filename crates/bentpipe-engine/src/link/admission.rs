//! Admission to the queue of a link: its limit, RED, and the waiting packets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::config::{Discipline, LinkConfig, QueueLimit, Ties};
use super::course::Course;
use super::queue::Red;
use crate::machine::Context;
use crate::probe::{DropReason, Event, Probe};
use crate::stream::Stream;
use crate::units::Time;

/// The queue in front of the line. Packets leave it in order of arrival, so only the start time and length of each
/// waiting packet are stored.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    limit: QueueLimit,
    /// The limit over time as an index, and the limits.
    limits: Option<Box<(Course, Vec<QueueLimit>)>>,
    red: Option<Box<Red>>,
    /// True if RED marks packets that understand it instead of dropping them.
    marking: bool,
    ties: Ties,
    /// Stored only if needed: if the queue can refuse packets, or if there is an observer.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    /// Start of the current or last transmission.
    on_line: Time,
}

impl Admission {
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let red = match config.queue.discipline {
            Discipline::DropTail | Discipline::Codel(_) | Discipline::FqCodel(_) | Discipline::DualPi2(_) => None,
            Discipline::Red(red) => {
                Some(Box::new(Red::new(red, config.rate, Stream::named(seed, format_args!("{name}/red")))))
            }
        };
        let limits = config.moves.as_ref().and_then(|moves| {
            let course = Course::of_track(moves.queue.clone()?);
            Some(Box::new((course, moves.limits.clone())))
        });
        Admission {
            limit: config.queue.limit,
            limits,
            marking: config.queue.marking && red.is_some(),
            red,
            ties: config.ties,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            on_line: Time::ZERO,
        }
    }

    /// Goes on where the admission `before` a change of settings has averaged its queue.
    pub(super) fn follow(&mut self, before: &Admission) {
        if let (Some(red), Some(before)) = (&mut self.red, &before.red) {
            red.go_on(before);
        }
    }

    #[inline(always)]
    pub(super) fn has_bounds(&self) -> bool {
        self.red.is_some() || self.limits.is_some() || self.limit != QueueLimit::Unlimited
    }

    /// True if the queue may mark packets.
    pub(super) fn marks(&self) -> bool {
        self.marking
    }

    /// Decides on a packet of `length` bytes that arrives at `cx.now`, while the line is busy until `busy_until`.
    /// `is_ect`: it may be marked instead of dropped. `begun` returns when the packet's event was scheduled, and is
    /// called only if a departure has the same time. Returns whether the packet is marked.
    #[inline]
    pub(super) fn admit<Pr: Probe>(
        &mut self,
        cx: &mut Context<'_, Pr>,
        (length, is_ect): (u32, bool),
        busy_until: Time,
        begun: impl Fn() -> Time + Copy,
    ) -> Result<bool, DropReason> {
        if !Pr::WATCHES && !self.has_bounds() {
            return Ok(false);
        }
        if let Some(limits) = &mut self.limits {
            let (course, limits) = limits.as_mut();
            self.limit = limits.get(course.at(cx.now) as usize).copied().unwrap_or(self.limit);
        }
        let (packets, bytes) = self.depart(cx.now, begun);
        let has_room = self.has_room(length);
        if self.red.is_none() {
            cx.emit(|| Event::Queue { packets, bytes, average: None });
            return if has_room || self.is_idle(cx.now, busy_until, begun) {
                Ok(false)
            } else {
                Err(DropReason::QueueFull)
            };
        }
        let idle = self.is_idle(cx.now, busy_until, begun);
        let Some(red) = &mut self.red else { return Ok(false) };
        let red_admits = red.admits(cx.now, packets, idle.then_some(busy_until));
        let average = Some(red.average());
        cx.emit(|| Event::Queue { packets, bytes, average });
        if !has_room && !idle {
            red.forced_drop();
            return Err(DropReason::QueueFull);
        }
        if red_admits {
            Ok(false)
        } else if is_ect && !red.is_saturated() {
            cx.emit(|| Event::Marked);
            Ok(true)
        } else {
            Err(DropReason::Early)
        }
    }

    /// Like [`Admission::admit`], for a drop-tail queue without an observer. Returns true if the packet is admitted.
    #[inline(always)]
    pub(super) fn admits_by_limit(
        &mut self,
        now: Time,
        length: u32,
        busy_until: Time,
        begun: impl Fn() -> Time + Copy,
    ) -> bool {
        self.depart(now, begun);
        self.has_room(length) || self.is_idle(now, busy_until, begun)
    }

    /// Removes the packets that have departed by `now`. Returns the number of waiting packets, and their bytes.
    // `begun` is copied, not borrowed: what is borrowed is written to memory for each packet, though only ties read it.
    #[inline(always)]
    fn depart(&mut self, now: Time, begun: impl Fn() -> Time + Copy) -> (u32, u64) {
        while let Some(&(next, bytes)) = self.waiting.front()
            && next <= now
            && (next < now || self.departs_before(begun))
        {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
            self.on_line = next;
        }
        (self.waiting.len() as u32, self.waiting_bytes)
    }

    #[inline(always)]
    fn has_room(&self, length: u32) -> bool {
        self.limit.has_room(|| self.waiting.len(), self.waiting_bytes + u64::from(length))
    }

    /// True if packets are refused only because of the limit, and the limit is constant.
    pub(super) fn is_drop_tail(&self) -> bool {
        self.red.is_none() && self.limits.is_none()
    }

    /// True if a packet that arrives now finds the line idle.
    fn is_idle(&self, now: Time, busy_until: Time, begun: impl Fn() -> Time) -> bool {
        busy_until < now || busy_until == now && self.departs_before(begun)
    }

    /// Adds a packet that arrived at `now` and starts at `start`. Returns the number of waiting packets including this
    /// one, if it waits and the queue can refuse packets; otherwise 0.
    #[inline]
    pub(super) fn enter<Pr: Probe>(&mut self, now: Time, start: Time, length: u32) -> u32 {
        if !Pr::WATCHES && !self.has_bounds() {
            return 0;
        }
        let waiting = self.queue(now, start, length);
        // The result must not depend on an observer.
        if self.has_bounds() { waiting } else { 0 }
    }

    /// The same for a queue that can refuse packets.
    #[inline(always)]
    pub(super) fn queue(&mut self, now: Time, start: Time, length: u32) -> u32 {
        if start <= now {
            self.on_line = start;
            return 0;
        }
        self.waiting.push_back((start, length));
        self.waiting_bytes += u64::from(length);
        self.waiting.len() as u32
    }

    /// True if the departure at this instant precedes the arrival of a packet by an event scheduled at `begun`.
    #[cold]
    #[inline(never)]
    fn departs_before(&self, begun: impl Fn() -> Time) -> bool {
        self.ties == Ties::Departure || self.on_line <= begun()
    }
}
