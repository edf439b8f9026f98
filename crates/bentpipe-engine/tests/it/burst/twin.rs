//! The burst-loss sender in numbers of packets, word for word after the reading in `docs/specs/minei.md`, and a receiver
//! with delayed ACKs (RFC 5681 §4.2): the oracle. Sets and lists wherever the engine keeps a cursor.

use std::collections::BTreeSet;

use bentpipe_engine::tcp::variant::{BurstEstimate, ReentryGuard};

use super::path::End;

/// The constant timeout.
pub(crate) const RTO: u64 = 3_000_000_000;
/// The delay of an ACK.
const DELAY: u64 = 200_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) window: u64,
    pub(crate) total: u64,
    pub(crate) dup_thresh: u64,
    pub(crate) cells: BurstEstimate,
    pub(crate) oldest: bool,
    /// The receiver acknowledges every second packet while it misses none.
    pub(crate) delayed: bool,
}

#[derive(Debug)]
pub(crate) struct TwinSender {
    settings: Settings,
    una: u64,
    nxt: u64,
    /// Highest number sent.
    highest: u64,
    dup: u64,
    phase: bool,
    after_timeout: bool,
    recover: u64,
    outstanding: u64,
    arrived: u64,
    length: Option<u64>,
    base: u64,
    repeats: u32,
    done: BTreeSet<u64>,
    last: (u64, u64),
    unanswered: i64,
    credit: i64,
    timer: Option<u64>,
    out: Vec<u64>,
}

impl TwinSender {
    pub(crate) fn new(settings: Settings) -> Self {
        TwinSender {
            settings,
            una: 1,
            nxt: 1,
            highest: 0,
            dup: 0,
            phase: false,
            after_timeout: false,
            recover: 0,
            outstanding: 0,
            arrived: 0,
            length: None,
            base: 0,
            repeats: 0,
            done: BTreeSet::new(),
            last: (0, 0),
            unanswered: 0,
            credit: 0,
            timer: None,
            out: Vec::new(),
        }
    }

    fn send(&mut self, now: u64, packet: u64) {
        self.unanswered += (packet <= self.highest) as i64;
        if self.timer.is_none() {
            self.timer = Some(now + RTO);
        }
        self.highest = self.highest.max(packet);
        self.out.push(packet);
    }

    fn send_new(&mut self, now: u64) {
        while self.nxt <= self.settings.total && self.nxt < self.una + self.settings.window {
            self.send(now, self.nxt);
            self.nxt += 1;
        }
    }

    fn burst(&mut self, now: u64, from: u64) {
        let to = (from + self.length.expect("estimated") - 1).min(self.recover);
        (from..=to).for_each(|packet| self.send(now, packet));
        self.last = (from, to);
        self.timer = Some(now + RTO);
    }

    fn advance(&mut self, now: u64, ack: u64) {
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.dup = 0;
        self.timer = (self.una <= self.highest).then_some(now + RTO);
    }

    fn keep_credit(&mut self) {
        self.credit = if self.settings.cells.guard == ReentryGuard::Credit { self.unanswered.max(0) } else { 0 };
    }

    fn on_ack(&mut self, now: u64, ack: u64) {
        if ack < self.una {
            return;
        }
        if self.phase {
            self.on_ack_in_phase(now, ack);
        } else if self.after_timeout {
            if ack > self.una {
                self.unanswered -= 1;
                if ack > self.recover {
                    self.after_timeout = false;
                    self.keep_credit();
                }
                self.advance(now, ack);
                self.send_new(now);
            } else {
                self.unanswered -= 1;
            }
        } else if ack > self.una {
            self.advance(now, ack);
            self.send_new(now);
        } else if self.una <= self.highest {
            if self.credit > 0 && self.una == self.recover + 1 {
                self.credit -= 1;
                return;
            }
            if self.settings.cells.guard == ReentryGuard::Recover && self.recover > 0 && self.una == self.recover + 1 {
                return;
            }
            self.dup += 1;
            if self.dup == self.settings.dup_thresh {
                self.phase = true;
                self.recover = self.highest;
                self.outstanding = self.highest + 1 - self.una;
                self.arrived = self.dup;
                self.length = None;
                self.credit = 0;
                self.unanswered = 0;
                self.send(now, self.una);
                self.timer = Some(now + RTO);
            }
        }
    }

    fn on_ack_in_phase(&mut self, now: u64, ack: u64) {
        if ack > self.una || self.length.is_some() {
            self.unanswered -= 1;
        }
        if ack > self.recover {
            self.phase = false;
            self.keep_credit();
            self.advance(now, ack);
            self.send_new(now);
        } else if self.length.is_none() && ack == self.una {
            self.arrived += 1;
        } else if self.length.is_none() {
            self.advance(now, ack);
            let dropped = self.outstanding as i64 - self.arrived as i64;
            self.length = Some((dropped - 1).max(1) as u64);
            (self.base, self.repeats, self.done) = (ack, 0, BTreeSet::new());
            self.burst(now, ack);
        } else if ack > self.una {
            self.advance(now, ack);
        } else {
            if self.done.contains(&ack) {
                return;
            }
            if ack == self.base {
                self.repeats += 1;
                if self.repeats < self.settings.cells.first_repeats {
                    return;
                }
            }
            if self.settings.cells.in_burst_skip && self.last.0 < ack && ack <= self.last.1 {
                return;
            }
            self.done.insert(ack);
            self.burst(now, ack);
        }
    }

    fn on_timeout(&mut self, now: u64) {
        (self.phase, self.after_timeout) = (false, true);
        (self.dup, self.unanswered, self.credit) = (0, 0, 0);
        self.timer = Some(now + RTO);
        if self.settings.oldest {
            self.recover = self.una - 1;
            self.send(now, self.una);
        } else {
            self.recover = self.highest;
            self.nxt = self.una;
        }
        // The phase is over, so the window slides by the amount held back.
        self.send_new(now);
    }
}

impl End for TwinSender {
    fn take(&mut self, now: u64, ack: u64) {
        self.on_ack(now, ack);
    }

    fn give(&mut self, now: u64) -> Vec<u64> {
        if self.timer.is_some_and(|at| at <= now) {
            self.on_timeout(now);
        }
        if self.highest == 0 {
            self.send_new(now);
        }
        core::mem::take(&mut self.out)
    }

    fn timer(&self) -> Option<u64> {
        self.timer
    }
}

/// Acknowledges every second packet or after a while; at once whatever comes beyond a gap, twice, or into a gap.
#[derive(Debug, Default)]
pub(crate) struct TwinReceiver {
    expected: u64,
    beyond: BTreeSet<u64>,
    delayed: bool,
    pending: u32,
    timer: Option<u64>,
    now: bool,
}

impl TwinReceiver {
    pub(crate) fn new(delayed: bool) -> Self {
        TwinReceiver { expected: 1, delayed, ..TwinReceiver::default() }
    }
}

impl End for TwinReceiver {
    fn take(&mut self, now: u64, packet: u64) {
        if packet != self.expected {
            self.now = true;
            if packet > self.expected {
                self.beyond.insert(packet);
            }
            return;
        }
        let had_gap = !self.beyond.is_empty();
        self.expected += 1;
        while self.beyond.remove(&self.expected) {
            self.expected += 1;
        }
        self.pending += 1;
        if had_gap || !self.delayed || self.pending == 2 {
            self.now = true;
        } else {
            self.timer = Some(now + DELAY);
        }
    }

    fn give(&mut self, now: u64) -> Vec<u64> {
        if !self.now && self.timer.is_none_or(|at| at > now) {
            return Vec::new();
        }
        (self.now, self.pending, self.timer) = (false, 0, None);
        vec![self.expected]
    }

    fn timer(&self) -> Option<u64> {
        self.timer
    }
}
