//! The literal twin of a resequencer: a slot for each number, and one number after the other.

use alloc::collections::VecDeque;

use super::*;

pub(super) struct Literal {
    pub(super) next: u64,
    ring: VecDeque<Slot>,
    pub(super) floor: u64,
    window: u32,
    paced: bool,
    freed: Vec<u64>,
}

impl Literal {
    pub(super) fn new(window: u32, paced: bool) -> Self {
        Literal { next: 0, ring: VecDeque::new(), floor: 0, window, paced, freed: Vec::new() }
    }

    pub(super) fn waiting(&self) -> u32 {
        self.ring.iter().filter(|slot| slot.state == State::Waiting).count() as u32
    }

    pub(super) fn has(&self, seq: u64) -> bool {
        seq < self.next.max(self.floor)
            || self.ring.get((seq - self.next) as usize).is_some_and(|slot| slot.state != State::Missing)
    }

    pub(super) fn reaches(&self, seq: u64) -> bool {
        seq < self.next + u64::from(self.window)
    }

    pub(super) fn on_frame(&mut self, now: Time, seq: u64, behind: u32, len: u32) -> Taken {
        if self.has(seq) || !self.reaches(seq) {
            return Taken::Refused;
        }
        let (at, gone) = ((seq - self.next) as usize, self.floor.saturating_sub(self.next) as usize);
        let state = if self.paced { State::Gone } else { State::Done };
        self.ring.resize(self.ring.len().max(gone), Slot { state, ..EMPTY });
        self.ring.resize(self.ring.len().max(at + 1), EMPTY);
        (self.ring[at].len, self.ring[at].arrived) = (len, now);
        if let Some(before) = (behind > 0).then(|| at.checked_sub(behind as usize)).flatten()
            && self.ring[before].state != State::Done
            && self.ring[before].successor == 0
        {
            self.ring[before].successor = behind;
            self.ring[at].state = State::Waiting;
            return Taken::Waits;
        }
        self.ring[at].state = State::Ready;
        Taken::Passes
    }

    pub(super) fn frame(&self, seq: u64) -> (u32, Time) {
        let slot = &self.ring[(seq - self.next) as usize];
        (slot.len, slot.arrived)
    }

    pub(super) fn passed(&mut self, seq: u64) -> Option<u64> {
        let freed = self.finish(seq.checked_sub(self.next)? as usize);
        self.advance();
        freed
    }

    pub(super) fn freed(&mut self) -> Option<u64> {
        self.freed.pop()
    }

    pub(super) fn rise_to(&mut self, floor: u64) -> bool {
        self.floor = self.floor.max(self.next);
        while self.floor < floor && self.has(self.floor) {
            self.floor += 1;
        }
        floor <= self.floor
    }

    pub(super) fn skip_to(&mut self, floor: u64, heard: &mut Vec<Skip>) -> bool {
        let end = floor.min(self.next + MAX_SKIPPED);
        let mut seq = self.floor.max(self.next);
        while seq < end {
            if !self.reaches(seq) {
                self.advance();
                if !self.reaches(seq) {
                    break;
                }
            }
            let at = (seq - self.next) as usize;
            self.ring.resize(self.ring.len().max(at + 1), EMPTY);
            if self.ring[at].state == State::Missing {
                heard.push(Skip::Skipped(seq..seq + 1));
                if self.paced {
                    self.ring[at].state = State::Gone;
                } else {
                    let follower = self.finish(at);
                    self.freed.extend(follower);
                }
            }
            seq += 1;
        }
        self.floor = seq;
        self.advance();
        heard.extend(self.freed.drain(..).map(Skip::Freed));
        floor <= self.floor
    }

    fn finish(&mut self, at: usize) -> Option<u64> {
        self.ring[at].state = State::Done;
        let successor = core::mem::take(&mut self.ring[at].successor);
        (successor > 0).then(|| {
            let follower = at + successor as usize;
            self.ring[follower].state = State::Ready;
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
        if self.ring.is_empty() {
            self.next = self.next.max(self.floor);
        }
    }
}
