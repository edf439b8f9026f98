//! Whether the line carries what it was said to carry, and what to do if not.
//!
//! The rate that a sender is told may be wrong, or right on another day. Its receiver's reports say what arrives, what is
//! lost, and how much longer than the shortest round trip it takes. Losses alone prove nothing on a satellite link; a
//! queue that stands does, and so do losses that fall as the rate does. The sender then comes down to what arrives, a
//! little below until the queue is gone, and tries now and then whether there is more, up to what it was told.
//!
//! It judges once per round trip, as BBR does (Cardwell et al. 2016), whose two quantities these are: the rate of
//! delivery, and the shortest round trip of the last half minute.

use super::shortest::Shortest;
use crate::units::{Duration, Rate, Time};

/// A queue of less than this, or of an eighth of the round trip, is none: other frames and late polls look the same.
const LEAST_QUEUE: Duration = Duration::from_millis(50);
/// Losses below this are the link's own.
const MUCH_LOSS: f64 = 0.1;
/// Judgements in a row, each of a round trip: a queue is believed after two, losses after four, since an outage fills
/// one or two.
const QUEUES: u32 = 2;
const LOSSES: u32 = 4;
/// Without a queue for so many judgements, a little more is tried.
const CALM: u32 = 8;
/// A trial that showed the losses to be the link's own is not repeated for so many judgements.
const PAUSE: u32 = 50;
/// A sender of less than this part of what it was told is not why there is a queue.
const LEAST_WEIGHT: u64 = 8;
/// Never below this part of what was told: something must go through, or nothing is learnt.
pub(super) const LEAST_PART: u64 = 100;

/// What is tried to learn where losses come from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// The share that was lost before, and judgements until the losses of the lower rate are known.
    before: f64,
    wait: u32,
}

/// What the reports said since the last judgement.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    arrived: u64,
    lost: u64,
    shortest: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) struct Control {
    told: Rate,
    now: Rate,
    since: Option<Time>,
    sum: Sum,
    shortest: Shortest,
    queues: u32,
    losses: u32,
    calm: u32,
    pause: u32,
    /// Judgements that still see what was sent before the last change.
    stale: u32,
    /// What arrived per second while a queue stood: what the line carries.
    carried: Option<u64>,
    trial: Option<Trial>,
}

impl Control {
    pub(super) fn new(told: Rate) -> Self {
        Control {
            told,
            now: told,
            since: None,
            sum: Sum::default(),
            shortest: Shortest::new(),
            queues: 0,
            losses: 0,
            calm: 0,
            pause: 0,
            stale: 0,
            carried: None,
            trial: None,
        }
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Rate {
        self.now
    }

    /// Whether the line has not been found to carry less than was told.
    pub(super) fn is_as_told(&self) -> bool {
        self.now == self.told
    }

    /// A report came: what it judged, in bytes on the line, and the round trip that it showed. Answers a new rate.
    pub(super) fn on_report(&mut self, now: Time, arrived: u64, lost: u64, rtt: Option<Duration>) -> Option<Rate> {
        self.sum.arrived += arrived;
        self.sum.lost += lost;
        if let Some(rtt) = rtt {
            self.shortest.note(now, rtt);
            self.sum.shortest = Some(self.sum.shortest.map_or(rtt, |known| known.min(rtt)));
        }
        let base = self.shortest.get()?;
        let since = *self.since.get_or_insert(now);
        let span = now.saturating_since(since);
        if span < base.max(LEAST_QUEUE.saturating_mul(2)) {
            return None;
        }
        let sum = core::mem::take(&mut self.sum);
        self.since = Some(now);
        let before = self.now;
        self.judge(sum, span, base);
        (self.now != before).then_some(self.now)
    }

    fn judge(&mut self, sum: Sum, span: Duration, base: Duration) {
        self.pause = self.pause.saturating_sub(1);
        if self.stale > 0 {
            self.stale -= 1;
            return;
        }
        let delivered = (sum.arrived as f64 * 8.0 / span.as_secs_f64()) as u64;
        let all = sum.arrived + sum.lost;
        // A sender that has little to send learns nothing of what the line carries.
        let is_busy = all as f64 * 8.0 >= 0.7 * self.now.bits_per_second() as f64 * span.as_secs_f64();
        let share = if all == 0 { 0.0 } else { sum.lost as f64 / all as f64 };
        if self.trial.is_some() {
            self.finish_trial(share, is_busy);
            return;
        }
        // A round trip has two ways: who sends little has not filled the queue, which may be the other way's.
        let weighs = all as f64 * 8.0 * LEAST_WEIGHT as f64 >= self.told.bits_per_second() as f64 * span.as_secs_f64();
        let threshold = LEAST_QUEUE.max(base.div_floor(8));
        let queue = sum.shortest.map_or(Duration::ZERO, |shortest| shortest - base);
        self.queues = if weighs && queue > threshold { self.queues + 1 } else { 0 };
        self.losses = if is_busy && share > MUCH_LOSS { self.losses + 1 } else { 0 };
        if self.queues >= QUEUES {
            self.calm = 0;
            if is_busy {
                self.carried = Some(delivered);
            }
            // Below what the line carries, by as much as empties the queue in a few round trips.
            let part = if queue > threshold.saturating_mul(2) { 75 } else { 95 };
            self.come_down(self.carried.unwrap_or(delivered) / 100 * part);
        } else if self.losses >= LOSSES && self.pause == 0 {
            self.trial = Some(Trial { before: share, wait: 1 });
            self.come_down(delivered);
        } else if self.queues == 0 {
            self.look_for_more();
        }
    }

    /// The queue is gone, or never was.
    fn look_for_more(&mut self) {
        if let Some(carried) = self.carried.take() {
            self.set(carried / 100 * 95);
            self.stale = 1;
            return;
        }
        self.calm += 1;
        if self.calm >= CALM && self.now < self.told {
            self.calm = 0;
            self.set(self.now.bits_per_second() / 20 * 21);
        }
    }

    fn finish_trial(&mut self, share: f64, is_busy: bool) {
        let Some(Trial { before, wait }) = self.trial else { return };
        if wait > 0 {
            self.trial = Some(Trial { before, wait: wait - 1 });
            return;
        }
        self.trial = None;
        self.losses = 0;
        self.pause = PAUSE;
        // As much is lost of less: the link loses by itself.
        if !is_busy || share > before / 2.0 {
            self.now = self.told;
        }
        self.calm = 0;
    }

    fn come_down(&mut self, bits: u64) {
        if bits < self.now.bits_per_second() {
            self.set(bits);
            // What is reported of in the next round trip was sent before.
            self.stale = 1;
        }
    }

    fn set(&mut self, bits: u64) {
        let told = self.told.bits_per_second();
        let least = (told / LEAST_PART).max(1);
        self.now = Rate::from_bits_per_second(bits.clamp(least, told)).unwrap_or(self.told);
    }
}

#[cfg(test)]
pub(super) mod tests;
