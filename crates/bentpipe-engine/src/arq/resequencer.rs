//! Order at the receiver: each frame waits for its flow's previous frame, and for no other.
//!
//! A frame names its predecessor: the previous frame of the same flow, or of the channel if it keeps one order. So the
//! receiver needs no table of flows. A frame whose predecessor is done passes; any other is linked to its predecessor
//! and follows it. Every step takes constant time, and a promise that frames will not arrive as much as frames are stored.

use std::collections::VecDeque;
use std::ops::Range;

use crate::units::Time;

/// What happened to a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It may pass at once.
    Passes,
    /// It waits for its predecessor.
    Waits,
    /// It is a duplicate, was skipped, or lies beyond the window.
    Refused,
}

/// An effect of abandoned frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// These frames are skipped: they will not arrive.
    Skipped(Range<u64>),
    /// This frame waited for it, and may pass now.
    Freed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    /// Here, and waiting for its predecessor.
    Waiting,
    /// It may pass; the driver has not passed it on yet.
    Ready,
    /// It will not arrive, and frames before it are not done: its predecessor is unknown.
    Gone,
    /// Passed on or skipped.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: State,
    /// Distance to the frame that waits for this one; 0: none.
    successor: u32,
    len: u32,
    arrived: Time,
}

const EMPTY: Slot = Slot { state: State::Missing, successor: 0, len: 0, arrived: Time::ZERO };

/// Max frames skipped per call: a sender without retransmission may be far ahead after an outage, and a hostile one may
/// name any number. So the numbers do not come to their end.
const MAX_SKIPPED: u64 = 1 << 16;

/// The frames of one channel between arrival and release.
#[derive(Clone, Debug)]
pub(crate) struct Resequencer {
    /// All below are done.
    next: u64,
    /// The frames from `next` on. Those behind its end and below the floor are gone, too.
    ring: VecDeque<Slot>,
    /// No frame below will arrive any more.
    floor: u64,
    /// Frames beyond `next` that it accepts.
    window: u32,
    waiting: u32,
    /// True if frames that may pass do not always pass at once.
    paced: bool,
    /// Frames that were freed along with another one.
    freed: Vec<u64>,
}

impl Resequencer {
    /// One that starts at frame 0 and reaches `window` frames ahead.
    pub(crate) fn new(window: u32) -> Self {
        Resequencer { next: 0, ring: VecDeque::new(), floor: 0, window, waiting: 0, paced: false, freed: Vec::new() }
    }

    /// As before, for a driver that delays frames that may pass. A frame behind a skipped one then waits for all frames
    /// before it, since its own flow may be among them.
    pub(crate) fn paced(window: u32) -> Self {
        Resequencer { paced: true, ..Resequencer::new(window) }
    }

    /// All frames below are done.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Frames that wait for another one.
    #[cfg(test)]
    fn waiting(&self) -> u32 {
        self.waiting
    }

    /// True if the frame was passed on or skipped, or is here.
    pub(crate) fn has(&self, seq: u64) -> bool {
        seq < self.next.max(self.floor)
            || self.ring.get((seq - self.next) as usize).is_some_and(|slot| slot.state != State::Missing)
    }

    /// True if the frame lies below the end of the window.
    pub(crate) fn reaches(&self, seq: u64) -> bool {
        seq < self.next + self.window as u64
    }

    /// The slot of a frame, if it is not done with and lies within the window.
    fn reach(&mut self, seq: u64) -> Option<usize> {
        if seq < self.next.max(self.floor) || !self.reaches(seq) {
            return None;
        }
        let (at, gone) = ((seq - self.next) as usize, self.floor.saturating_sub(self.next) as usize);
        if self.ring.len() < gone {
            let state = if self.paced { State::Gone } else { State::Done };
            self.ring.resize(gone, Slot { state, ..EMPTY });
        }
        if self.ring.len() <= at {
            self.ring.resize(at + 1, EMPTY);
        }
        Some(at)
    }

    /// Frame `seq` of `len` bytes has arrived; `behind` is the distance back to its predecessor, 0 if it has none.
    pub(crate) fn on_frame(&mut self, now: Time, seq: u64, behind: u32, len: u32) -> Taken {
        let Some(at) = self.reach(seq) else { return Taken::Refused };
        if self.ring[at].state != State::Missing {
            return Taken::Refused;
        }
        (self.ring[at].len, self.ring[at].arrived) = (len, now);
        let predecessor = (behind > 0).then(|| at.checked_sub(behind as usize)).flatten();
        if let Some(before) = predecessor
            && self.ring[before].state != State::Done
            && self.ring[before].successor == 0
        {
            self.ring[before].successor = behind;
            self.ring[at].state = State::Waiting;
            self.waiting += 1;
            return Taken::Waits;
        }
        self.ring[at].state = State::Ready;
        Taken::Passes
    }

    /// Length of a frame whose turn has come, and when it arrived.
    pub(crate) fn frame(&self, seq: u64) -> (u32, Time) {
        let slot = &self.ring[(seq - self.next) as usize];
        (slot.len, slot.arrived)
    }

    /// A frame was passed on. Returns the one that waited for it.
    pub(crate) fn passed(&mut self, seq: u64) -> Option<u64> {
        let at = seq.checked_sub(self.next)? as usize;
        debug_assert_eq!(self.ring[at].state, State::Ready, "only what may pass is passed");
        let freed = self.finish(at);
        self.advance();
        freed
    }

    /// Handles the promise that no frame below `floor` will arrive any more. Calls `heard` with the skipped frames, in as few
    /// ranges as there are gaps, and then with those that may pass now.
    ///
    /// Returns whether it reached `floor`: the frames that one call skips are limited, and it goes beyond the window
    /// only as far as that can move.
    pub(crate) fn skip_to(&mut self, floor: u64, mut heard: impl FnMut(Skip)) -> bool {
        let from = self.floor.max(self.next);
        let mut end = floor.min(self.next + MAX_SKIPPED).max(from);
        let stored = self.next + self.ring.len() as u64;
        // The first frame that is here and not done: the window does not move beyond it.
        let mut holds = (from > self.next).then_some(self.next);
        let mut gap = from..from;
        let at = |seq: u64| ((seq - self.next) as usize).min(self.ring.len());
        let span = at(from)..at(end);
        for (seq, slot) in (from..).zip(self.ring.range_mut(span)) {
            match slot.state {
                State::Missing => {
                    if gap.end < seq {
                        note(&gap, &mut heard);
                        gap.start = seq;
                    }
                    gap.end = seq + 1;
                    slot.state = if self.paced { State::Gone } else { State::Done };
                    if !self.paced && slot.successor > 0 {
                        self.freed.push(seq + u64::from(core::mem::take(&mut slot.successor)));
                    }
                }
                State::Waiting | State::Ready => holds = holds.or(Some(seq)),
                State::Gone | State::Done => {}
            }
        }
        for &follower in &self.freed {
            self.ring[(follower - self.next) as usize].state = State::Ready;
            self.waiting -= 1;
        }
        // Of those behind the last one that is stored, none is here.
        end = holds.map_or(end, |first| end.min(first + u64::from(self.window)).max(from));
        let rest = stored.max(from);
        if rest < end {
            if gap.end < rest {
                note(&gap, &mut heard);
                gap.start = rest;
            }
            gap.end = end;
        }
        note(&gap, &mut heard);
        self.floor = end;
        self.advance();
        self.freed.drain(..).for_each(|seq| heard(Skip::Freed(seq)));
        floor <= self.floor
    }

    /// As [`Resequencer::skip_to`] where no frame is given up: a floor above a missing frame is wrong, and is not reached.
    pub(crate) fn rise_to(&mut self, floor: u64) -> bool {
        self.floor = self.floor.max(self.next);
        while self.floor < floor && self.has(self.floor) {
            self.floor += 1;
        }
        floor <= self.floor
    }

    /// Frees what bursts have left behind.
    pub(crate) fn trim(&mut self) {
        super::trim(&mut self.ring);
    }

    /// Takes a frame that [`Resequencer::passed`] freed besides the one that it returned.
    pub(crate) fn freed(&mut self) -> Option<u64> {
        self.freed.pop()
    }

    fn finish(&mut self, at: usize) -> Option<u64> {
        self.ring[at].state = State::Done;
        let successor = core::mem::take(&mut self.ring[at].successor);
        (successor > 0).then(|| {
            let follower = at + successor as usize;
            debug_assert_eq!(self.ring[follower].state, State::Waiting);
            self.ring[follower].state = State::Ready;
            self.waiting -= 1;
            self.next + follower as u64
        })
    }

    fn advance(&mut self) {
        let mut done = 0;
        while let Some(slot) = self.ring.get(done) {
            match slot.state {
                State::Done => {}
                State::Gone => {
                    let follower = self.finish(done);
                    self.freed.extend(follower);
                }
                State::Missing | State::Waiting | State::Ready => break,
            }
            done += 1;
        }
        if done == 1 {
            self.ring.pop_front();
        } else {
            self.ring.drain(..done);
        }
        self.next += done as u64;
        if self.ring.is_empty() {
            self.next = self.next.max(self.floor);
        }
    }
}

fn note(gap: &Range<u64>, heard: &mut impl FnMut(Skip)) {
    if !gap.is_empty() {
        heard(Skip::Skipped(gap.clone()));
    }
}

#[cfg(test)]
mod tests;
