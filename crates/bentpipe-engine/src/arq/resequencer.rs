//! Order at the receiver: each frame waits for its flow's previous frame, and for no other.
//!
//! A frame names its predecessor: the previous frame of the same flow, or of the channel if it keeps one order. So the
//! receiver needs no table of flows. A frame whose predecessor is done passes; any other is linked to its predecessor
//! and follows it. Every step takes constant time.

use std::collections::VecDeque;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// This frame is skipped: it will not arrive.
    Skipped(u64),
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
/// name any number.
const MAX_SKIPPED: u64 = 1 << 16;

/// The frames of one channel between arrival and release.
#[derive(Clone, Debug)]
pub(crate) struct Resequencer {
    /// All below are done.
    next: u64,
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
        seq < self.next || self.ring.get((seq - self.next) as usize).is_some_and(|slot| slot.state != State::Missing)
    }

    /// True if the frame lies below the end of the window.
    pub(crate) fn reaches(&self, seq: u64) -> bool {
        seq < self.next + self.window as u64
    }

    fn reach(&mut self, seq: u64) -> Option<usize> {
        let at = seq.checked_sub(self.next)?;
        if at >= self.window as u64 {
            return None;
        }
        let at = at as usize;
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

    /// Handles the promise that no frame below `floor` will arrive any more. Calls `heard` with the skipped frames and
    /// those that may pass now.
    ///
    /// Returns whether it reached `floor`: the frames that one call skips are limited, and it goes beyond the window
    /// only as far as that can move.
    pub(crate) fn skip_to(&mut self, floor: u64, mut heard: impl FnMut(Skip)) -> bool {
        let end = floor.min(self.next + MAX_SKIPPED);
        let mut seq = self.floor.max(self.next);
        while seq < end {
            if !self.reaches(seq) {
                self.advance();
                if !self.reaches(seq) {
                    break;
                }
            }
            let at = self.reach(seq).expect("within the window");
            if self.ring[at].state == State::Missing {
                heard(Skip::Skipped(seq));
                if self.paced {
                    self.ring[at].state = State::Gone;
                } else if let Some(follower) = self.finish(at) {
                    heard(Skip::Freed(follower));
                }
            }
            seq += 1;
        }
        self.floor = seq;
        self.advance();
        self.freed.drain(..).for_each(|seq| heard(Skip::Freed(seq)));
        floor <= self.floor
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
        while let Some(slot) = self.ring.front() {
            match slot.state {
                State::Done => {}
                State::Gone => {
                    let follower = self.finish(0);
                    self.freed.extend(follower);
                }
                State::Missing | State::Waiting | State::Ready => break,
            }
            self.ring.pop_front();
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gap_holds_up_its_own_flow_only() {
        let mut order = Resequencer::new(100);
        // Flow A: 0, 2, 4. Flow B: 1, 3. Frame 2 is lost at first.
        assert_eq!(order.on_frame(Time::ZERO, 0, 0, 100), Taken::Passes);
        assert_eq!(order.passed(0), None);
        assert_eq!(order.on_frame(Time::ZERO, 1, 0, 100), Taken::Passes);
        assert_eq!(order.passed(1), None);
        assert_eq!(order.on_frame(Time::ZERO, 3, 2, 100), Taken::Passes);
        assert_eq!(order.on_frame(Time::ZERO, 4, 2, 100), Taken::Waits);
        assert_eq!(order.passed(3), None);
        assert_eq!(order.on_frame(Time::ZERO, 3, 2, 100), Taken::Refused, "a duplicate");
        assert_eq!(order.on_frame(Time::ZERO, 2, 2, 100), Taken::Passes);
        assert_eq!(order.passed(2), Some(4));
        assert_eq!(order.passed(4), None);
        assert_eq!((order.next(), order.waiting()), (5, 0));
    }

    #[test]
    fn what_never_comes_is_skipped() {
        let mut order = Resequencer::new(100);
        assert_eq!(order.on_frame(Time::ZERO, 2, 1, 100), Taken::Waits);
        let mut heard = Vec::new();
        order.skip_to(2, |skip| heard.push(skip));
        assert_eq!(heard, [Skip::Skipped(0), Skip::Skipped(1), Skip::Freed(2)]);
        assert_eq!(order.on_frame(Time::ZERO, 1, 1, 100), Taken::Refused, "too late");
        assert_eq!(order.passed(2), None);
        assert_eq!(order.next(), 3);
        assert_eq!(order.on_frame(Time::ZERO, 103, 0, 100), Taken::Refused, "beyond the window");
    }

    #[test]
    fn what_is_skipped_among_paced_frames_keeps_their_order() {
        let mut order = Resequencer::paced(100);
        // One flow: 0, 1, 2, 3. Frame 0 waits for its release, 2 is lost.
        assert_eq!(order.on_frame(Time::ZERO, 0, 0, 100), Taken::Passes);
        assert_eq!(order.on_frame(Time::ZERO, 1, 1, 100), Taken::Waits);
        let mut heard = Vec::new();
        assert!(order.skip_to(3, |skip| heard.push(skip)));
        assert_eq!(heard, [Skip::Skipped(2)]);
        assert_eq!(order.on_frame(Time::ZERO, 3, 1, 100), Taken::Waits, "0 and 1 go first");
        assert_eq!((order.passed(0), order.freed()), (Some(1), None));
        assert_eq!((order.passed(1), order.freed()), (None, Some(3)));
        assert_eq!((order.passed(3), order.next()), (None, 4));
    }

    proptest! {
        /// Whatever arrives in whatever order, each flow comes out in its order, each frame once, and all that
        /// arrived comes out.
        #[test]
        fn flows_keep_their_order(flows in prop::collection::vec(0u8..4, 1..200), keys in prop::collection::vec(any::<u16>(), 200), lost in prop::collection::vec(prop::bool::weighted(0.1), 200)) {
            let mut last = [None; 4];
            let frames: Vec<(u64, u8, u32)> = flows.iter().enumerate().map(|(seq, &flow)| {
                let behind = last[flow as usize].replace(seq as u64).map_or(0, |before: u64| (seq as u64 - before) as u32);
                (seq as u64, flow, behind)
            }).collect();
            let mut arrivals: Vec<_> = frames.iter().filter(|(seq, ..)| !lost[*seq as usize]).collect();
            arrivals.sort_by_key(|(seq, ..)| keys[*seq as usize]);
            let mut order = Resequencer::new(1000);
            let mut out = Vec::new();
            let drain = |order: &mut Resequencer, first: u64, out: &mut Vec<u64>| {
                let mut at = Some(first);
                while let Some(seq) = at {
                    out.push(seq);
                    at = order.passed(seq);
                }
            };
            for &&(seq, _, behind) in &arrivals {
                if order.on_frame(Time::ZERO, seq, behind, 100) == Taken::Passes {
                    drain(&mut order, seq, &mut out);
                }
            }
            let mut freed = Vec::new();
            order.skip_to(frames.len() as u64, |skip| if let Skip::Freed(seq) = skip { freed.push(seq) });
            for seq in freed {
                drain(&mut order, seq, &mut out);
            }
            prop_assert_eq!(out.len(), arrivals.len());
            for flow in 0..4 {
                let of_flow: Vec<_> = out.iter().filter(|&&seq| flows[seq as usize] == flow).collect();
                prop_assert!(of_flow.is_sorted());
            }
            prop_assert_eq!((order.next(), order.waiting()), (frames.len() as u64, 0));
        }
    }
}
