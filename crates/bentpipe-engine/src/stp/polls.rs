//! Polls: how a sender without timers learns what has arrived (`stp` paper, section I, after Henderson and Katz).
//!
//! A poll is a segment without data that has PSH; an answer to one tells its number. The path keeps the order, so what went
//! out before a poll and is not in the answer is lost, be it the first transmission or a later one. Number and echo stand where
//! TCP's timestamps do: SSCOP's N(PS).

use std::collections::VecDeque;

use crate::units::{Duration, Time};

/// Polls that may be without an answer: 17 minutes of one each second.
const MAX_OPEN: usize = 1024;

/// The sender's polls.
#[derive(Clone, Debug)]
pub(super) struct Polls {
    interval: Duration,
    /// When the next one is due; `None` while nothing is outstanding.
    at: Option<Time>,
    /// It is to go out now.
    pub(super) due: bool,
    number: u32,
    /// Those without an answer, and how many transmissions went before each.
    open: VecDeque<(u32, u64)>,
    /// What was sent before this transmission, and is not reported, is lost.
    pub(super) lost_before: u64,
    /// When the peer was last heard, or the first unanswered poll went out.
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

    /// Something has gone out that is to be acknowledged, and leaves the line then. Intervals are those of the line: behind a
    /// window that was handed down at once the poll would wait for all of it.
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

    /// Time passes. False where nothing was heard for so long.
    pub(super) fn on_time(&mut self, now: Time, patience: Duration) -> bool {
        if self.at.is_some_and(|at| at <= now) {
            self.due = true;
            self.at = Some(now + self.interval);
        }
        self.at.is_none() || now.saturating_since(self.heard_at) <= patience
    }

    /// The poll goes out behind so many transmissions.
    pub(super) fn send(&mut self, transmissions: u64) {
        self.due = false;
        self.number = self.number.wrapping_add(1);
        if self.open.len() == MAX_OPEN {
            self.open.pop_front();
        }
        self.open.push_back((self.number, transmissions));
    }

    /// An acknowledgement has come, with the number of the last poll that its sender has heard.
    pub(super) fn on_ack(&mut self, now: Time, echo: Option<u32>, is_idle: bool) {
        self.heard_at = now;
        if is_idle {
            (self.at, self.due) = (None, false);
        }
        let Some(at) = self.open.iter().position(|&(number, _)| Some(number) == echo) else { return };
        self.lost_before = self.lost_before.max(self.open[at].1);
        self.open.drain(..=at);
    }
}
