//! What a sender may take of a line that others use too: congestion control for whoever is not told its rate.
//!
//! BBR (Cardwell et al. 2016; draft-ietf-ccwg-bbr): the rate is the greatest at which the peer received of late, more for
//! a round trip now and then to see whether there is more, less until what that has filled is empty again, and never is more
//! on its way than one and a half bandwidth-delay products. Losses say nothing, as is right on a satellite link.
//!
//! Departures, each for a link of which something is known: the round trip is known beforehand, so it need not be found by
//! falling silent (`ProbeRTT` costs a twelfth of a GEO link); rates are means over a round trip, since reports come in
//! clumps; the rate that the sender was told is the most that it tries; and with half a product less on its way than BBR has,
//! two such senders leave no queue to overflow and share the line within a minute (`share::tests`, `two_share`).

use std::collections::VecDeque;

use super::keeping::Told;
use super::rate::LEAST_PART;
use super::shortest::Shortest;
use crate::stream::TimeNoise;
use crate::units::{Duration, Rate, Time};

/// Rates that are remembered, one per round trip.
const ROUNDS: usize = 6;
/// Gains have this denominator.
const UNIT: u64 = 4;
/// Doubling each round trip, as slow start does, and emptying what the last doubling has filled.
const STARTUP: u64 = 2 * UNIT;
const DRAIN: u64 = UNIT / 2;
const MORE: u64 = UNIT + 1;
const LESS: u64 = UNIT - 1;
/// Round trips from one trial to the next, these included: senders whose trials fall together learn nothing of each other.
const CALM: std::ops::RangeInclusive<u32> = 2..=5;
/// A pipe that has not given a quarter more for so many round trips is full.
const FULL_AFTER: u32 = 3;
/// What is begun with (RFC 6928), in bytes per round trip.
const INITIAL_WINDOW: u64 = 10 * 1500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup {
        /// The best rate when it last grew by a quarter, and round trips since.
        best: u64,
        rounds: u32,
    },
    /// Until what stands in the queue is gone.
    Drain,
    /// More is tried, for a round trip.
    More,
    /// Until what that has filled is gone.
    Less,
    /// So many round trips more at what is known.
    Calm(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Share {
    told: Rate,
    now: Rate,
    phase: Phase,
    /// The round trip that was said, and the one that was seen.
    said: Duration,
    shortest: Shortest,
    /// A round trip ends when this transmission is reported.
    round_end: u64,
    round_since: Option<Time>,
    arrived: u64,
    /// Up to this transmission there was less to send than the rate allowed.
    limited_until: u64,
    /// Bits per second of the last rounds that the line, and not the sender, limited.
    rates: VecDeque<u64>,
    noise: TimeNoise,
}

impl Share {
    pub(super) fn new(told: Rate, said: Duration) -> Self {
        let mut share = Share {
            told,
            now: told,
            phase: Phase::Startup { best: 0, rounds: 0 },
            said: said.max(Duration::from_millis(1)),
            shortest: Shortest::new(),
            round_end: 0,
            round_since: None,
            arrived: 0,
            limited_until: 0,
            rates: VecDeque::with_capacity(ROUNDS + 1),
            noise: TimeNoise::named(0, "share"),
        };
        share.pace();
        share
    }

    pub(super) fn rate(&self) -> Rate {
        self.now
    }

    /// Bits per second: the best of the last rounds.
    fn bandwidth(&self) -> u64 {
        let initial = (INITIAL_WINDOW as f64 * 8.0 / self.said.as_secs_f64()) as u64;
        self.rates.iter().copied().max().unwrap_or(initial)
    }

    fn base(&self) -> Duration {
        self.shortest.get().map_or(self.said, |least| least.min(self.said))
    }

    fn product(&self) -> u64 {
        (self.bandwidth() as f64 / 8.0 * self.base().as_secs_f64()) as u64
    }

    /// Most bytes without a verdict, and the initial window for what reports are behind. At first more: others' queues make
    /// the round trip longer than the one that the product is of.
    pub(super) fn room(&self) -> u64 {
        let halves = if matches!(self.phase, Phase::Startup { .. }) { 7 } else { 3 };
        halves * self.product() / 2 + INITIAL_WINDOW
    }

    /// There is less to send than may be; `next` is the next transmission.
    pub(super) fn on_idle(&mut self, next: u64) {
        self.limited_until = next.max(1);
    }

    /// A report came. Answers a new rate.
    pub(super) fn on_report(&mut self, now: Time, report: Told) -> Option<Rate> {
        let before = self.now;
        if let Some(rtt) = report.rtt {
            self.shortest.note(now, rtt);
        }
        self.arrived += report.arrived;
        if report.newest >= self.round_end {
            if let Some(since) = self.round_since.filter(|since| *since < now) {
                self.on_round(now, now.saturating_since(since));
            }
            (self.round_since, self.round_end, self.arrived) = (Some(now), report.next, 0);
        }
        // Reports are a little behind.
        if matches!(self.phase, Phase::Drain | Phase::Less) && report.in_flight <= self.product() / 8 * 9 {
            self.phase = self.calm(now);
        }
        self.pace();
        (self.now != before).then_some(self.now)
    }

    /// How long, nobody knows beforehand; the same time gives the same.
    fn calm(&self, now: Time) -> Phase {
        let (least, most) = (*CALM.start(), *CALM.end());
        let draw = self.noise.at(now.as_nanos(), 0);
        Phase::Calm(least + (draw * f64::from(most - least + 1)) as u32)
    }

    fn on_round(&mut self, now: Time, span: Duration) {
        let rate = (self.arrived as f64 * 8.0 / span.as_secs_f64()) as u64;
        // Of a round in which the sender had too little, a rate that is higher than any is worth knowing all the same.
        let is_limited = self.round_end <= self.limited_until;
        if !is_limited || rate > self.bandwidth() {
            self.rates.push_back(rate);
            if self.rates.len() > ROUNDS {
                self.rates.pop_front();
            }
        }
        let bandwidth = self.bandwidth();
        self.phase = match self.phase {
            Phase::Startup { best, .. } if bandwidth >= best / 4 * 5 => Phase::Startup { best: bandwidth, rounds: 0 },
            startup @ Phase::Startup { .. } if is_limited => startup,
            Phase::Startup { rounds, .. } if rounds + 1 >= FULL_AFTER => Phase::Drain,
            Phase::Startup { best, rounds } => Phase::Startup { best, rounds: rounds + 1 },
            Phase::Drain => Phase::Drain,
            Phase::More => Phase::Less,
            Phase::Less => self.calm(now),
            Phase::Calm(0) => Phase::More,
            Phase::Calm(rounds) => Phase::Calm(rounds - 1),
        };
    }

    fn pace(&mut self) {
        let gain = match self.phase {
            Phase::Startup { .. } => STARTUP,
            Phase::Drain => DRAIN,
            Phase::More => MORE,
            Phase::Less => LESS,
            Phase::Calm(_) => UNIT,
        };
        let told = self.told.bits_per_second();
        let bits = (self.bandwidth() / UNIT * gain).clamp((told / LEAST_PART).max(1), told);
        self.now = Rate::from_bits_per_second(bits).unwrap_or(self.told);
    }
}

#[cfg(test)]
#[path = "share/tests.rs"]
mod tests;
