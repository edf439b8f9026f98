//! Segments that left together. When a window opens by several segments, they leave at one instant, consecutive and of
//! the same length. Usually nothing happens to them until they are acknowledged, so they are kept as one entry until
//! something else does.

use alloc::collections::VecDeque;

use super::{Sent, State};
use crate::units::Time;

/// Consecutive segments of `step` bytes that were sent at one instant and have been in flight since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    start: u64,
    end: u64,
    step: u64,
    at: Time,
}

impl Run {
    /// No segments. It begins after all numbers and all times, so what asks whether something comes before a run need not ask whether there
    /// is one.
    const NONE: Run = Run { start: u64::MAX, end: u64::MAX, step: 0, at: Time::NEVER };

    /// Where it starts.
    #[inline(always)]
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// When it was sent, and where its first segment ends.
    #[inline(always)]
    pub(super) fn sent(&self) -> (Time, u64) {
        (self.at, self.start + self.step)
    }

    /// The segment that starts at `start`.
    #[inline(always)]
    fn segment(&self, start: u64) -> Sent {
        Sent { start, end: start + self.step, at: self.at, retransmitted: false, state: State::InFlight }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the segments that end at or before `una`.
    #[inline(always)]
    fn take(&mut self, una: u64) {
        if self.end <= una {
            self.start = self.end;
        } else {
            while self.start + self.step <= una {
                self.start += self.step;
            }
        }
    }
}

/// The last outstanding segments, in order of number and of time.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// The first run if there are several; otherwise empty.
    first: Run,
    /// The runs between the first and the last one.
    between: VecDeque<Run>,
    /// The last run, unless it is also the first one.
    last: Run,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { first: Run::NONE, between: VecDeque::new(), last: Run::NONE }
    }
}

impl Runs {
    /// Records the first transmission of a segment. Returns true if it left together with the last one and continues
    /// it.
    #[inline(always)]
    pub(super) fn extend(&mut self, start: u64, end: u64, now: Time) -> bool {
        let run = &mut self.last;
        let is_next = run.end == start && run.at == now && run.step == end - start;
        if is_next {
            run.end = end;
        }
        is_next
    }

    /// Begins a run with the first transmission of a segment after all others.
    // Not inlined: the sender calls it from several places.
    #[inline(never)]
    pub(super) fn begin(&mut self, start: u64, end: u64, now: Time) {
        let before = core::mem::replace(&mut self.last, Run { start, end, step: end - start, at: now });
        if self.first.is_empty() {
            self.first = before;
        } else if !before.is_empty() {
            self.between.push_back(before);
        }
    }

    /// The first run; [`Run::NONE`] if there is none.
    #[inline(always)]
    pub(super) fn head(&self) -> &Run {
        if self.first.is_empty() { &self.last } else { &self.first }
    }

    /// The first segment.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<Sent> {
        let run = self.head();
        (!run.is_empty()).then(|| run.segment(run.start))
    }

    /// True if there is one segment.
    pub(super) fn is_one(&self) -> bool {
        match (self.first(), self.last()) {
            (Some(first), Some(last)) => first.start == last.start,
            _ => false,
        }
    }

    /// The last segment.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Sent> {
        let run = if self.last.is_empty() { &self.first } else { &self.last };
        (!run.is_empty()).then(|| run.segment(run.end - run.step))
    }

    /// Removes the segments that end at or before `una`. Returns when the first one was sent and its end, and the same of
    /// the last one.
    #[inline(always)]
    pub(super) fn take(&mut self, una: u64) -> Option<[(Time, u64); 2]> {
        let first = self.head().sent();
        if first.1 > una {
            return None;
        }
        if self.first.is_empty() {
            self.advance();
        }
        self.first.take(una);
        let mut last = (self.first.at, self.first.start);
        while self.first.is_empty() && self.advance() && self.first.sent().1 <= una {
            self.first.take(una);
            last = (self.first.at, self.first.start);
        }
        Some([first, last])
    }

    /// Makes the next run the first one. Returns false if there is none.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        self.first = match self.between.pop_front() {
            Some(next) => next,
            None => core::mem::replace(&mut self.last, Run::NONE),
        };
        !self.first.is_empty()
    }

    /// Removes all segments, one by one.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Sent> {
        let [first, last] = [&mut self.first, &mut self.last].map(|run| core::mem::replace(run, Run::NONE));
        let each =
            |run: Run| (run.start..run.end).step_by(run.step.max(1) as usize).map(move |start| run.segment(start));
        [first].into_iter().chain(self.between.drain(..)).chain([last]).flat_map(each)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.between.capacity() * size_of::<Run>()
    }
}
