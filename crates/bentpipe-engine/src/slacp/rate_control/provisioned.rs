//! The rate of a sender on a dedicated line: the configured rate, or less if the line carries less.
//!
//! The configured rate may be wrong, or the line may carry less for a while. The receiver's reports give the delivery
//! rate, the losses and the round trip. On a satellite link, losses alone prove nothing. A standing queue proves
//! congestion, and so do losses that decrease with the rate. In both cases the sender slows down to the delivery rate,
//! and stays below it until the queue is empty.
//!
//! It then probes as BBR does: 25 % faster for one round trip. If that builds no queue and causes no more losses, the
//! rate is tripled, much as in BBR's startup, until it is the configured one or a queue appears.
//!
//! It judges once per round trip by BBR's two quantities (Cardwell et al. 2016): the delivery rate, and the minimum
//! round trip of the last half minute. Frames sent before a change of the rate do not count.

use super::limits::bounded;
use super::min_rtt::MinRtt;
use super::sample::RateSample;
use crate::units::{Duration, Rate, Time};

/// A queue shorter than this, or than an eighth of the round trip, is ignored: other frames and late polls look the
/// same.
const MIN_QUEUE: Duration = Duration::from_millis(50);
/// So is one shorter than the time that a frame of so many bytes takes at the configured rate: round trips of short and
/// long frames differ by it. At 20 kbit/s it is 0.6 s.
const FRAME: u64 = 1500;
/// A loss ratio below this is attributed to the link.
const MUCH_LOSS: f64 = 0.1;
/// Number of consecutive judgements, one per round trip, that must agree on a queue or on losses. An outage spoils one
/// or two.
const QUEUES: u32 = 2;
const LOSSES: u32 = 4;
/// Number of judgements between two trials, if the first showed that the link causes the losses.
const PAUSE: u32 = 50;
/// A sender that uses less than its configured rate divided by this cannot be the cause of a queue.
const MIN_WEIGHT: u64 = 8;

/// A trial with a lower rate, to find out whether losses come from congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// The loss ratio before the trial.
    before: f64,
    /// Number of judgements until the losses at the lower rate are known.
    wait: u32,
}

/// The reports since the last judgement.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    arrived: u64,
    lost: u64,
    min_rtt: Option<Duration>,
    /// The minimum round trip of the last quarter, which shows a growing queue.
    late_rtt: Option<Duration>,
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
    pause: u32,
    /// True if the rate was raised and no queue has been seen since, so it keeps rising.
    climbs: bool,
    /// True if the rate was raised only by a quarter so far.
    is_first_step: bool,
    /// The loss ratio before the rise.
    loss_before: f64,
    /// Transmissions below this number were sent at another rate.
    changed_at: u64,
    /// True if `changed_at` is the next transmission, whose number comes with the next report.
    is_restarted: bool,
    /// Bytes in flight at the last judgement.
    in_flight: u64,
    /// The length of an outage through which the sender keeps sending.
    patience: Duration,
    /// The delivery rate while there was a standing queue, which is the capacity of the line; bit/s.
    carried: Option<u64>,
    trial: Option<Trial>,
}

impl Provisioned {
    pub(super) fn new(max_rate: Rate, patience: Duration) -> Self {
        Provisioned {
            max_rate,
            rate: max_rate,
            since: None,
            sum: Sum::default(),
            min_rtt: MinRtt::new(),
            queues: 0,
            losses: 0,
            pause: 0,
            climbs: false,
            is_first_step: false,
            loss_before: 0.0,
            changed_at: 0,
            is_restarted: false,
            in_flight: 0,
            patience,
            carried: None,
            trial: None,
        }
    }

    /// Forgets everything learned from reports except the round trip. Frames sent before the next report do not count.
    pub(super) fn restart(&mut self) {
        let Provisioned { max_rate, patience, min_rtt, .. } = *self;
        *self = Provisioned { min_rtt, is_restarted: true, ..Provisioned::new(max_rate, patience) };
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// True unless the line was found to carry less than the configured rate.
    pub(super) fn is_at_max_rate(&self) -> bool {
        self.rate == self.max_rate
    }

    /// Maximum bytes in flight: what the configured rate sends in 1.25 round trips, plus an outage that it must endure
    /// (`patience`), plus 0.1 s for late reports, plus a frame. A line that suddenly carries less is thus not flooded.
    pub(super) fn max_in_flight(&self) -> u64 {
        let Some(base) = self.min_rtt.get() else { return u64::MAX };
        let span = base.saturating_mul(5).div_floor(4) + self.patience + MIN_QUEUE.saturating_mul(2);
        self.max_rate.bytes_in_floor(span) + FRAME
    }

    /// Takes a report's sample. Returns the new rate if it changed.
    pub(super) fn on_report(&mut self, now: Time, sample: RateSample) -> Option<Rate> {
        if let Some(rtt) = sample.rtt {
            self.min_rtt.on_sample(now, rtt);
        }
        if core::mem::take(&mut self.is_restarted) {
            self.changed_at = sample.next;
        }
        if sample.newest < self.changed_at {
            self.since = None;
            return None;
        }
        let base = self.min_rtt.get()?;
        let Some(since) = self.since else {
            (self.since, self.sum, self.in_flight) = (Some(now), Sum::default(), sample.in_flight);
            return None;
        };
        self.sum.arrived += sample.arrived;
        self.sum.lost += sample.lost;
        if let Some(rtt) = sample.rtt {
            self.sum.min_rtt = Some(self.sum.min_rtt.map_or(rtt, |known| known.min(rtt)));
        }
        let span = now.saturating_since(since);
        // After the first step, a rate that is too high is much too high, so half a round trip is enough to show it.
        let needed = if self.climbs && !self.is_first_step { base.div_floor(2) } else { base };
        let needed = needed.max(MIN_QUEUE.saturating_mul(2));
        if let Some(rtt) = sample.rtt
            && span >= needed.saturating_mul(3).div_floor(4)
        {
            self.sum.late_rtt = Some(self.sum.late_rtt.map_or(rtt, |known| known.min(rtt)));
        }
        if span < needed {
            return None;
        }
        let sum = core::mem::take(&mut self.sum);
        let before = self.rate;
        let sent = (sum.arrived + sum.lost + sample.in_flight).saturating_sub(self.in_flight);
        (self.since, self.in_flight) = (Some(now), sample.in_flight);
        self.judge(sum, sent, span, base);
        if self.rate == before {
            return None;
        }
        self.changed_at = sample.next;
        Some(self.rate)
    }

    fn judge(&mut self, sum: Sum, sent: u64, span: Duration, base: Duration) {
        self.pause = self.pause.saturating_sub(1);
        let delivered = (sum.arrived as f64 * 8.0 / span.as_secs_f64()) as u64;
        let all = sum.arrived + sum.lost;
        // A sender with little to send learns nothing about the capacity of the line. The bytes sent count too, since a
        // line that carries less also returns fewer reports.
        let is_busy = sent.max(all) as f64 * 8.0 >= 0.7 * self.rate.bits_per_second() as f64 * span.as_secs_f64();
        let share = if all == 0 { 0.0 } else { sum.lost as f64 / all as f64 };
        if self.trial.is_some() {
            self.finish_trial(share, is_busy);
            return;
        }
        // A sender that sends little has not built the queue; it may be in the other direction.
        let weighs = sent.max(all) as f64 * 8.0 * MIN_WEIGHT as f64
            >= self.max_rate.bits_per_second() as f64 * span.as_secs_f64();
        let threshold = MIN_QUEUE.max(base.div_floor(8)).max(self.max_rate.time_for_ceil(FRAME));
        let min_rtt = if self.climbs { sum.late_rtt.or(sum.min_rtt) } else { sum.min_rtt };
        let queue = min_rtt.map_or(Duration::ZERO, |min| min - base);
        // A line without a queue drops the excess.
        let overflows = self.climbs && share > self.loss_before + MUCH_LOSS;
        self.queues = if weighs && queue > threshold { self.queues + 1 } else { 0 };
        self.losses = if is_busy && share > MUCH_LOSS { self.losses + 1 } else { 0 };
        // A line that carries more delivers at least half of what the probe added.
        let expected = 0.9 * self.rate.bits_per_second() as f64 * (1.0 - self.loss_before);
        if overflows {
            self.climbs = false;
            self.come_down(delivered);
        } else if self.queues >= QUEUES || self.climbs && self.queues > 0 {
            self.climbs = false;
            if is_busy {
                self.carried = Some(delivered);
            }
            // Far enough below the capacity to empty the queue within a few round trips.
            let part = if queue > base {
                50
            } else if queue > threshold.saturating_mul(2) {
                75
            } else {
                95
            };
            self.come_down(self.carried.unwrap_or(delivered) / 100 * part);
        } else if self.losses >= LOSSES && self.pause == 0 {
            self.trial = Some(Trial { before: share, wait: 1 });
            self.climbs = false;
            self.come_down(delivered);
        } else if self.climbs && self.is_first_step && (delivered as f64) < expected {
            self.climbs = false;
            self.set(self.rate.bits_per_second() / 5 * 4);
        } else if self.queues == 0 {
            self.look_for_more(is_busy, share);
        }
    }

    /// Called when there is no queue: probes for more than the line carried when there was one.
    fn look_for_more(&mut self, is_busy: bool, loss: f64) {
        let bits = self.rate.bits_per_second();
        match self.carried.take().map(|carried| carried / 100 * 95) {
            Some(carried) if bits < carried => self.probe(carried, is_busy, loss),
            // The queue drained at the current rate. One more judgement is needed, since there is little evidence that
            // it is gone.
            Some(_) => {}
            None if self.rate == self.max_rate => self.climbs = false,
            None if self.climbs && is_busy => {
                self.is_first_step = false;
                self.set(3 * bits);
            }
            None => self.probe(bits, is_busy, loss),
        }
    }

    /// Probes at 1.25 times `bits` per second.
    fn probe(&mut self, bits: u64, is_busy: bool, loss: f64) {
        (self.is_first_step, self.climbs, self.loss_before) = (true, is_busy, loss);
        self.set(bits / 4 * 5);
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
        // The lower rate lost as much, so the losses are the link's own.
        if !is_busy || share > before / 2.0 {
            self.rate = self.max_rate;
        }
    }

    fn come_down(&mut self, bits: u64) {
        if bits < self.rate.bits_per_second() {
            self.set(bits);
        }
    }

    fn set(&mut self, bits: u64) {
        self.rate = bounded(bits, self.max_rate);
    }
}

#[cfg(test)]
pub(super) mod tests;
