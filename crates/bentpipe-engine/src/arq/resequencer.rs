//! Order at the receiver: each frame waits for the previous frame of its flow, and for no other.
//!
//! A frame names its predecessor: the previous frame of the same flow, or of the channel if the channel keeps one
//! order. So the receiver needs no table of flows. A frame whose predecessor is done passes; any other frame is linked
//! to its predecessor and follows it. Every step takes constant time, and a promise that frames will not arrive takes
//! time in proportion to the stored frames.

mod ring;

use alloc::vec::Vec;
use core::ops::Range;

use crate::units::Time;
use ring::{CHUNK, Piece, Ring};

/// What happened to a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It may pass at once.
    Passes,
    /// It waits for its predecessor.
    Waits,
    /// It is a duplicate, has been skipped, or lies beyond the window.
    Refused,
}

/// An effect of frames that were abandoned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// These frames are skipped: they will not arrive.
    Skipped(Range<u64>),
    /// This frame waited for a skipped one and may now pass.
    Freed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    /// It has arrived and waits for its predecessor.
    Waiting,
    /// It may pass; the driver has not passed it on yet.
    Ready,
    /// It will not arrive, but frames before it are not done, and its predecessor is unknown.
    Gone,
    /// Passed on or skipped.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: State,
    /// Distance to the frame that waits for this one; 0 if none does.
    successor: u32,
    len: u32,
    arrived: Time,
}

const EMPTY: Slot = Slot { state: State::Missing, successor: 0, len: 0, arrived: Time::ZERO };

/// Maximum number of frames skipped per call. A sender without retransmission may be far ahead after an outage, and a
/// hostile one may name any number. The limit keeps it from using up the numbers.
const MAX_SKIPPED: u64 = 1 << 16;

/// The frames of one channel between arrival and release.
#[derive(Clone, Debug)]
pub(crate) struct Resequencer {
    /// All frames below are done.
    next: u64,
    /// The frames from `next` on. Frames beyond its end and below the floor are gone, too.
    ring: Ring,
    /// No frame below this number will arrive any more.
    floor: u64,
    /// Number of frames beyond `next` that are accepted.
    window: u32,
    waiting: u32,
    /// True if frames that may pass do not always pass at once.
    paced: bool,
    /// Frames that were freed along with another one.
    freed: Vec<u64>,
}

impl Resequencer {
    /// A resequencer that starts at frame 0 and accepts frames up to `window` ahead.
    pub(crate) fn new(window: u32) -> Self {
        let ring = Ring::new(State::Done);
        Resequencer { next: 0, ring, floor: 0, window, waiting: 0, paced: false, freed: Vec::new() }
    }

    /// The same, for a driver that delays frames that may pass. A frame behind a skipped one then waits for all frames
    /// before it, since some may belong to its own flow.
    pub(crate) fn paced(window: u32) -> Self {
        Resequencer { paced: true, ring: Ring::new(State::Gone), ..Resequencer::new(window) }
    }

    /// All frames below are done.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Number of frames that wait for another one.
    #[cfg(test)]
    fn waiting(&self) -> u32 {
        self.waiting
    }

    /// True if the frame has arrived, was passed on or was skipped.
    pub(crate) fn has(&self, seq: u64) -> bool {
        seq < self.next.max(self.floor) || self.ring.get(seq).state != State::Missing
    }

    /// True if the frame lies below the end of the window.
    pub(crate) fn reaches(&self, seq: u64) -> bool {
        seq < self.next + self.window as u64
    }

    /// Takes frame `seq` of `len` bytes; `behind` is the distance back to its predecessor, 0 if it has none.
    pub(crate) fn on_frame(&mut self, now: Time, seq: u64, behind: u32, len: u32) -> Taken {
        if self.has(seq) || !self.reaches(seq) {
            return Taken::Refused;
        }
        self.ring.reach(self.next, self.floor, seq);
        let before = seq.checked_sub(behind.into()).filter(|before| (self.next..seq).contains(before));
        let slot = before.map(|before| self.ring.get(before));
        let waits = slot.is_some_and(|slot| slot.state != State::Done && slot.successor == 0);
        if let Some(before) = before.filter(|_| waits) {
            self.ring.get_mut(before).successor = behind;
            self.waiting += 1;
        }
        let state = if waits { State::Waiting } else { State::Ready };
        let slot = self.ring.get_mut(seq);
        *slot = Slot { state, len, arrived: now, ..*slot };
        if waits { Taken::Waits } else { Taken::Passes }
    }

    /// The length of a frame whose turn has come, and when it arrived.
    pub(crate) fn frame(&self, seq: u64) -> (u32, Time) {
        let slot = self.ring.get(seq);
        (slot.len, slot.arrived)
    }

    /// Records that a frame was passed on. Returns the frame that waited for it.
    pub(crate) fn passed(&mut self, seq: u64) -> Option<u64> {
        if seq < self.next {
            return None;
        }
        debug_assert_eq!(self.ring.get(seq).state, State::Ready, "only what may pass is passed");
        let freed = self.finish(seq);
        self.advance();
        freed
    }

    /// Handles the promise that no frame below `floor` will arrive any more. Calls `heard` with the skipped frames, in
    /// as few ranges as there are gaps, and then with those that may pass now.
    ///
    /// Returns true if it reached `floor`. The number of frames that one call skips is limited, and it goes beyond the
    /// window only as far as the window can move.
    pub(crate) fn skip_to(&mut self, floor: u64, mut heard: impl FnMut(Skip)) -> bool {
        let from = self.floor.max(self.next);
        let mut end = floor.min(self.next + MAX_SKIPPED).max(from);
        let stored = self.ring.end().max(from);
        let mut gap = from..from;
        // The first frame that has arrived and is not done: the window does not move beyond it.
        let held = (from > self.next).then_some(self.next);
        let window = u64::from(self.window);
        let holds = held.or(self.give_up(from, end.min(stored).min(self.next + window), &mut gap, &mut heard));
        let given_up = end.min(stored).min(self.next + window).max(from);
        // No frame beyond the window has arrived.
        end = holds.map_or(end, |first| end.min(first + window).max(from));
        self.give_up(given_up, end.min(stored), &mut gap, &mut heard);
        for &follower in &self.freed {
            self.ring.get_mut(follower).state = State::Ready;
            self.waiting -= 1;
        }
        if stored < end {
            extend(&mut gap, stored, end, &mut heard);
        }
        note(&gap, &mut heard);
        self.floor = end;
        self.advance();
        self.freed.drain(..).for_each(|seq| heard(Skip::Freed(seq)));
        floor <= self.floor
    }

    /// Gives up the missing frames of a range. Returns the first frame there that is not done.
    fn give_up(&mut self, from: u64, end: u64, gap: &mut Range<u64>, heard: &mut impl FnMut(Skip)) -> Option<u64> {
        let (paced, freed) = (self.paced, &mut self.freed);
        let mut holds = None;
        self.ring.give_up(from, end, |seq, until, piece| match piece {
            Piece::Gone => {}
            Piece::Missing => extend(gap, seq, until, heard),
            Piece::Slot(slot) => match slot.state {
                State::Missing => {
                    extend(gap, seq, until, heard);
                    slot.state = if paced { State::Gone } else { State::Done };
                    if !paced && slot.successor > 0 {
                        freed.push(seq + u64::from(core::mem::take(&mut slot.successor)));
                    }
                }
                State::Waiting | State::Ready => holds = holds.or(Some(seq)),
                State::Gone | State::Done => {}
            },
        });
        holds
    }

    /// Like [`Resequencer::skip_to`], for a channel that never gives up a frame: a floor above a missing frame is
    /// wrong, and is not reached.
    pub(crate) fn rise_to(&mut self, floor: u64) -> bool {
        self.floor = self.floor.max(self.next);
        while self.floor < floor && self.has(self.floor) {
            self.floor += 1;
        }
        floor <= self.floor
    }

    /// Takes a frame that [`Resequencer::passed`] freed in addition to the one that it returned.
    pub(crate) fn freed(&mut self) -> Option<u64> {
        self.freed.pop()
    }

    fn finish(&mut self, seq: u64) -> Option<u64> {
        let slot = self.ring.get_mut(seq);
        slot.state = State::Done;
        let successor = core::mem::take(&mut slot.successor);
        (successor > 0).then(|| {
            let follower = seq + u64::from(successor);
            let slot = self.ring.get_mut(follower);
            debug_assert_eq!(slot.state, State::Waiting);
            slot.state = State::Ready;
            self.waiting -= 1;
            follower
        })
    }

    fn advance(&mut self) {
        loop {
            let done = self.ring.done_from(self.next);
            self.next += done;
            if done > 0 && self.next.is_multiple_of(CHUNK) {
                self.ring.pass_first();
            } else if self.ring.pass_gone() {
                self.next = (self.next / CHUNK + 1) * CHUNK;
            } else if self.paced && self.ring.get(self.next).state == State::Gone {
                let follower = self.finish(self.next);
                self.freed.extend(follower);
            } else {
                break;
            }
        }
        if self.ring.is_empty() {
            self.next = self.next.max(self.floor);
        }
    }
}

/// Extends `gap` by the frames from `from` to `end`, which are missing too.
fn extend(gap: &mut Range<u64>, from: u64, end: u64, heard: &mut impl FnMut(Skip)) {
    if gap.end < from {
        note(gap, heard);
        gap.start = from;
    }
    gap.end = end;
}

fn note(gap: &Range<u64>, heard: &mut impl FnMut(Skip)) {
    if !gap.is_empty() {
        heard(Skip::Skipped(gap.clone()));
    }
}

#[cfg(test)]
mod tests;
