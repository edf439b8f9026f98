//! The rate of a sender on a shared link: BBR's congestion control.
//!
//! BBR (Cardwell et al. 2016; draft-ietf-ccwg-bbr) sends at the highest recent delivery rate. From time to time it
//! sends faster for one round trip to probe for more bandwidth, then slower until the queue is empty again. At most one
//! and a half bandwidth-delay products are in flight. Losses are ignored, which is appropriate on a satellite link.
//!
//! Departures, each of which uses knowledge of the link:
//! - The round trip is configured, so there is no `ProbeRTT` (it would cost a twelfth of a GEO link).
//! - Rates are averages over a round trip, since reports arrive in clumps.
//! - The configured rate is the maximum.
//! - Half a product less is in flight than in BBR. Two such senders thus leave no queue that could overflow, and they
//!   share the line equally within a minute (`bbr::tests`, `two_share`).

use alloc::collections::VecDeque;

use super::limits::bounded;
use super::sample::RateSample;
use crate::stream::TimeNoise;
use crate::units::{Duration, Rate, Time};

/// Number of rounds that the maximum bandwidth covers. A round is a round trip.
const ROUNDS: usize = 6;
/// Gains have this denominator.
const UNIT: u64 = 4;
/// Doubles the rate each round trip, like slow start, and then drains the queue that the last doubling built.
const STARTUP: u64 = 2 * UNIT;
const DRAIN: u64 = UNIT / 2;
const PROBE_UP: u64 = UNIT + 1;
const PROBE_DOWN: u64 = UNIT - 1;
/// Round trips between two probes. The number is random, because senders that probe at the same time learn nothing
/// about each other.
const CRUISE: core::ops::RangeInclusive<u32> = 2..=5;
/// The pipe is full once the bandwidth has grown by less than a quarter in each of this many round trips.
const FULL_AFTER: u32 = 3;
/// The initial window (RFC 6928), in bytes per round trip.
const INITIAL_WINDOW: u64 = 10 * 1500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup {
        /// The bandwidth when it last grew by a quarter.
        best: u64,
        /// Number of round trips since then.
        rounds: u32,
    },
    /// Lasts until the queue is empty.
    Drain,
    /// Lasts one round trip, at a higher rate.
    ProbeUp,
    /// Lasts until the queue that the probe built is empty.
    ProbeDown,
    /// Lasts this many more round trips, at the known bandwidth.
    Cruise(u32),
}

#[derive(Clone, Debug)]
pub(in crate::slacp) struct Bbr {
    max_rate: Rate,
    rate: Rate,
    phase: Phase,
    /// The configured round trip.
    round_trip: Duration,
    /// The round ends when this transmission is reported.
    round_end: u64,
    round_since: Option<Time>,
    arrived: u64,
    /// Until this transmission, the sender had less to send than the rate allowed.
    app_limited_until: u64,
    /// Delivery rates of the last rounds that were limited by the line, not by the sender; bit/s.
    rates: VecDeque<u64>,
    noise: TimeNoise,
}

impl Bbr {
    pub(super) fn max_rate(&self) -> Rate {
        self.max_rate
    }

    pub(super) fn new(max_rate: Rate, round_trip: Duration) -> Self {
        let mut bbr = Bbr {
            max_rate,
            rate: max_rate,
            phase: Phase::Startup { best: 0, rounds: 0 },
            round_trip: round_trip.max(Duration::from_millis(1)),
            round_end: 0,
            round_since: None,
            arrived: 0,
            app_limited_until: 0,
            rates: VecDeque::with_capacity(ROUNDS + 1),
            // The stream keeps its original name: another name would give other random numbers.
            noise: TimeNoise::named(0, "share"),
        };
        bbr.set_rate();
        bbr
    }

    /// The rate to send at.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// The bottleneck bandwidth: the maximum of the last rounds, bit/s.
    fn bandwidth(&self) -> u64 {
        let initial = (INITIAL_WINDOW as f64 * 8.0 / self.round_trip.as_secs_f64()) as u64;
        self.rates.iter().copied().max().unwrap_or(initial)
    }

    /// The bandwidth-delay product, bytes. It is that of the configured round trip, even if a shorter one was seen: where
    /// delays vary, as over satellites in low orbit, the shortest is far below the usual one, and its product would not
    /// fill the line. Each round would then measure a lower bandwidth than the one before.
    fn bdp(&self) -> u64 {
        (self.bandwidth() as f64 / 8.0 * self.round_trip.as_secs_f64()) as u64
    }

    /// Maximum bytes in flight: one and a half bandwidth-delay products, plus the initial window because reports lag
    /// behind. In startup it is three and a half, because the queues of other traffic make the round trip longer than
    /// the minimum.
    pub(super) fn max_in_flight(&self) -> u64 {
        let halves = if matches!(self.phase, Phase::Startup { .. }) { 7 } else { 3 };
        halves * self.bdp() / 2 + INITIAL_WINDOW
    }

    /// Records that the sender has less to send than the rate allows; `next` is the number of the next transmission.
    pub(super) fn on_idle(&mut self, next: u64) {
        self.app_limited_until = next.max(1);
    }

    /// Takes a report's sample. Returns the new rate if it changed.
    pub(super) fn on_report(&mut self, now: Time, sample: RateSample) -> Option<Rate> {
        let before = self.rate;
        self.arrived += sample.arrived;
        if sample.newest >= self.round_end {
            if let Some(since) = self.round_since.filter(|since| *since < now) {
                self.on_round(now, now.saturating_since(since));
            }
            (self.round_since, self.round_end, self.arrived) = (Some(now), sample.next, 0);
        }
        // Reports lag slightly behind.
        if matches!(self.phase, Phase::Drain | Phase::ProbeDown) && sample.in_flight <= self.bdp() / 8 * 9 {
            self.phase = self.cruise(now);
        }
        self.set_rate();
        (self.rate != before).then_some(self.rate)
    }

    /// Cruises for a random number of round trips, drawn from the current time.
    fn cruise(&self, now: Time) -> Phase {
        let (min, max) = (*CRUISE.start(), *CRUISE.end());
        let draw = self.noise.at(now.as_nanos(), 0);
        Phase::Cruise(min + (draw * f64::from(max - min + 1)) as u32)
    }

    fn on_round(&mut self, now: Time, span: Duration) {
        let rate = (self.arrived as f64 * 8.0 / span.as_secs_f64()) as u64;
        // A round in which the sender was the limit counts only if its rate exceeds all earlier ones.
        let is_limited = self.round_end <= self.app_limited_until;
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
            Phase::ProbeUp => Phase::ProbeDown,
            Phase::ProbeDown => self.cruise(now),
            Phase::Cruise(0) => Phase::ProbeUp,
            Phase::Cruise(rounds) => Phase::Cruise(rounds - 1),
        };
    }

    fn set_rate(&mut self) {
        let gain = match self.phase {
            Phase::Startup { .. } => STARTUP,
            Phase::Drain => DRAIN,
            Phase::ProbeUp => PROBE_UP,
            Phase::ProbeDown => PROBE_DOWN,
            Phase::Cruise(_) => UNIT,
        };
        self.rate = bounded(self.bandwidth() / UNIT * gain, self.max_rate);
    }
}

#[cfg(test)]
#[path = "bbr/tests.rs"]
mod tests;
