//! The rate of a sender on a line of its own: the configured rate, or less if the line carries less.
//!
//! The configured rate may be wrong. The receiver's reports give the rate of delivery, the losses, and the round trip. Losses
//! alone prove nothing on a satellite link. A standing queue does, and so do losses that fall as the rate falls. The sender
//! then goes down to the rate of delivery, a little below it until the queue is empty, and now and then probes for more, up to
//! the configured rate.
//!
//! It judges once per round trip by BBR's two quantities (Cardwell et al. 2016): the rate of delivery, and the minimum round
//! trip of the last half minute.

use super::limits::bounded;
use super::min_rtt::MinRtt;
use crate::units::{Duration, Rate, Time};

/// A queue shorter than this or than an eighth of the round trip is ignored: other frames and late polls look the same.
const MIN_QUEUE: Duration = Duration::from_millis(50);
/// Losses below this are the link's own.
const MUCH_LOSS: f64 = 0.1;
/// Consecutive judgements, one per round trip, after which a queue or losses are believed. An outage fills one or two.
const QUEUES: u32 = 2;
const LOSSES: u32 = 4;
/// Consecutive judgements without a queue after which the sender probes for more.
const CALM: u32 = 8;
/// Judgements between two trials, if the first showed the losses to be the link's own.
const PAUSE: u32 = 50;
/// A sender of less than this fraction of its configured rate is not the cause of a queue.
const MIN_WEIGHT: u64 = 8;

/// A lower rate that shows whether losses come from congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// The loss ratio before.
    before: f64,
    /// Judgements until the losses of the lower rate are known.
    wait: u32,
}

/// The reports since the last judgement.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    arrived: u64,
    lost: u64,
    min_rtt: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(in crate::slacp) struct Provisioned {
    max_rate: Rate,
    rate: Rate,
    since: Option<Time>,
    sum: Sum,
    min_rtt: MinRtt,
    queues: u32,
    losses: u32,
    calm: u32,
    pause: u32,
    /// Judgements that still cover transmissions from before the last change.
    stale: u32,
    /// The rate of delivery while a queue stood: the capacity of the line, bit/s.
    carried: Option<u64>,
    trial: Option<Trial>,
}

impl Provisioned {
    pub(super) fn new(max_rate: Rate) -> Self {
        Provisioned {
            max_rate,
            rate: max_rate,
            since: None,
            sum: Sum::default(),
            min_rtt: MinRtt::new(),
            queues: 0,
            losses: 0,
            calm: 0,
            pause: 0,
            stale: 0,
            carried: None,
            trial: None,
        }
    }

    /// Forgets what reports have said, but for the round trip. The next two may still be of what went before.
    pub(super) fn restart(&mut self) {
        *self = Provisioned { min_rtt: self.min_rtt, stale: 2, ..Provisioned::new(self.max_rate) };
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// True unless the line was found to carry less than the configured rate.
    pub(super) fn is_at_max_rate(&self) -> bool {
        self.rate == self.max_rate
    }

    /// Takes a report's bytes on the line and its round trip. Returns the new rate if it changed.
    pub(super) fn on_report(&mut self, now: Time, arrived: u64, lost: u64, rtt: Option<Duration>) -> Option<Rate> {
        self.sum.arrived += arrived;
        self.sum.lost += lost;
        if let Some(rtt) = rtt {
            self.min_rtt.on_sample(now, rtt);
            self.sum.min_rtt = Some(self.sum.min_rtt.map_or(rtt, |known| known.min(rtt)));
        }
        let base = self.min_rtt.get()?;
        let since = *self.since.get_or_insert(now);
        let span = now.saturating_since(since);
        if span < base.max(MIN_QUEUE.saturating_mul(2)) {
            return None;
        }
        let sum = core::mem::take(&mut self.sum);
        self.since = Some(now);
        let before = self.rate;
        self.judge(sum, span, base);
        (self.rate != before).then_some(self.rate)
    }

    fn judge(&mut self, sum: Sum, span: Duration, base: Duration) {
        self.pause = self.pause.saturating_sub(1);
        if self.stale > 0 {
            self.stale -= 1;
            return;
        }
        let delivered = (sum.arrived as f64 * 8.0 / span.as_secs_f64()) as u64;
        let all = sum.arrived + sum.lost;
        // A sender with little to send learns nothing about the capacity of the line.
        let is_busy = all as f64 * 8.0 >= 0.7 * self.rate.bits_per_second() as f64 * span.as_secs_f64();
        let share = if all == 0 { 0.0 } else { sum.lost as f64 / all as f64 };
        if self.trial.is_some() {
            self.finish_trial(share, is_busy);
            return;
        }
        // A sender of little has not built the queue, which may be that of the other direction.
        let weighs =
            all as f64 * 8.0 * MIN_WEIGHT as f64 >= self.max_rate.bits_per_second() as f64 * span.as_secs_f64();
        let threshold = MIN_QUEUE.max(base.div_floor(8));
        let queue = sum.min_rtt.map_or(Duration::ZERO, |min| min - base);
        self.queues = if weighs && queue > threshold { self.queues + 1 } else { 0 };
        self.losses = if is_busy && share > MUCH_LOSS { self.losses + 1 } else { 0 };
        if self.queues >= QUEUES {
            self.calm = 0;
            if is_busy {
                self.carried = Some(delivered);
            }
            // Far enough below the capacity to empty the queue in a few round trips.
            let part = if queue > threshold.saturating_mul(2) { 75 } else { 95 };
            self.come_down(self.carried.unwrap_or(delivered) / 100 * part);
        } else if self.losses >= LOSSES && self.pause == 0 {
            self.trial = Some(Trial { before: share, wait: 1 });
            self.come_down(delivered);
        } else if self.queues == 0 {
            self.look_for_more();
        }
    }

    /// There is no queue: goes back to what the line carries, or probes for more.
    fn look_for_more(&mut self) {
        if let Some(carried) = self.carried.take() {
            self.set(carried / 100 * 95);
            self.stale = 1;
            return;
        }
        self.calm += 1;
        if self.calm >= CALM && self.rate < self.max_rate {
            self.calm = 0;
            self.set(self.rate.bits_per_second() / 20 * 21);
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
        // The lower rate lost as much: the losses are the link's own.
        if !is_busy || share > before / 2.0 {
            self.rate = self.max_rate;
        }
        self.calm = 0;
    }

    fn come_down(&mut self, bits: u64) {
        if bits < self.rate.bits_per_second() {
            self.set(bits);
            // The next round trip reports transmissions from before the change.
            self.stale = 1;
        }
    }

    fn set(&mut self, bits: u64) {
        self.rate = bounded(bits, self.max_rate);
    }
}

#[cfg(test)]
pub(super) mod tests;
