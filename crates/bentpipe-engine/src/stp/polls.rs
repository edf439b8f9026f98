//! Polls, by which a sender without timers learns what has arrived (`stp` paper, section I, after Henderson and Katz).
//!
//! A poll is a segment without data that has PSH; an answer carries its number. The path preserves order, so data sent
//! before a poll and missing in the answer is lost, whether it was a first transmission or a later one. Number and echo
//! use TCP's timestamp fields: SSCOP's N(PS).

use alloc::collections::VecDeque;

use crate::units::{Duration, Time};

/// Maximum number of unanswered polls: 17 minutes' worth at one per second.
const MAX_OPEN: usize = 1024;

/// The sender's polls.
#[derive(Clone, Debug)]
pub(super) struct Polls {
    interval: Duration,
    /// When the next poll is due; `None` while nothing is outstanding.
    at: Option<Time>,
    /// True if a poll must be sent now.
    pub(super) due: bool,
    number: u32,
    /// The unanswered polls, with the number of transmissions before each.
    open: VecDeque<(u32, u64)>,
    /// Data sent before this transmission and not reported is lost.
    pub(super) lost_before: u64,
    /// When the peer was last heard from, or the first unanswered poll was sent.
    heard_at: Time,
}

impl Polls {
    pub(super) fn new(interval: Duration) -> Self {
        Polls { interval, at: None, due: false, number: 0, open: VecDeque::new(), lost_before: 0, heard_at: Time::ZERO }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.at
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Records that data to be acknowledged was sent; it leaves the line at this time. Intervals follow the line,
    /// because a poll sent right after a whole window is handed over would have to wait for all of it.
    pub(super) fn watch(&mut self, departure: Time) {
        match self.at {
            None => {
                self.at = Some(departure + self.interval);
                self.heard_at = departure;
            }
            Some(at) if departure >= at => {
                self.due = true;
                self.at = Some(departure + self.interval);
            }
            Some(_) => {}
        }
    }

    /// Advances the time. Returns false if the peer was silent for too long.
    pub(super) fn on_time(&mut self, now: Time, patience: Duration) -> bool {
        if self.at.is_some_and(|at| at <= now) {
            self.due = true;
            self.at = Some(now + self.interval);
        }
        self.at.is_none() || now.saturating_since(self.heard_at) <= patience
    }

    /// Records that a poll is sent, after this many transmissions.
    pub(super) fn send(&mut self, transmissions: u64) {
        self.number = self.number.wrapping_add(1);
        if self.open.len() == MAX_OPEN {
            self.open.pop_front();
        }
        self.open.push_back((self.number, transmissions));
    }

    /// Takes an acknowledgement, with the number of the last poll that the peer received.
    pub(super) fn on_ack(&mut self, now: Time, echo: Option<u32>, is_idle: bool) {
        self.heard_at = now;
        if is_idle {
            (self.at, self.due) = (None, false);
        }
        let Some(at) = self.open.iter().position(|&(number, _)| Some(number) == echo) else { return };
        self.lost_before = self.open[at].1;
        // An answer to an earlier one that arrives late says nothing new.
        self.open.drain(..=at);
    }
}
