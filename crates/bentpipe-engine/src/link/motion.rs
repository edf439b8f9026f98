//! What a link does to packets besides losing them on its channel: a changing delay and loss, jitter, and packets that
//! arrive late, twice, or with a flipped bit.
//!
//! Packets stay in order unless a setting says otherwise: one that would overtake another arrives together with it.
//! Draws are indexed by the time at which a packet would arrive in order.

use alloc::boxed::Box;

use super::config::LinkConfig;
use super::course::Course;
use super::jitter::JitterProcess;
use super::track::Track;
use crate::stream::TimeNoise;
use crate::units::{Duration, Probability, Time};

/// What happened to a delivered packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Altered {
    /// A bit was flipped.
    pub corrupt: bool,
    /// It arrives twice.
    pub twice: bool,
    /// Its ECN field says that it has met congestion.
    pub marked: bool,
}

impl Altered {
    /// Unaltered.
    pub const NOT: Altered = Altered { corrupt: false, twice: false, marked: false };
}

/// The changing part of a link.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    /// The propagation delay, if it changes.
    delay: Option<Course>,
    /// The loss while the channel is good, if it changes.
    loss: Option<Course>,
    jitter: Option<JitterProcess>,
    overtakes: bool,
    late: Option<(f64, Duration, TimeNoise)>,
    corrupt: (f64, TimeNoise),
    twice: (f64, TimeNoise),
}

impl Motion {
    /// Creates it from a link's settings, if anything changes.
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str) -> Option<Box<Motion>> {
        let moves = config.moves.as_deref();
        let track = |track: Option<&alloc::sync::Arc<Track>>| track.map(|track| Course::of_track(track.clone()));
        let phases = config.phases.as_ref();
        let delay = track(moves.and_then(|moves| moves.delay.as_ref()))
            .or_else(|| phases.and_then(|phases| Course::of_delays(phases, seed, name)));
        let loss = track(moves.and_then(|moves| moves.loss.as_ref()))
            .or_else(|| phases.and_then(|phases| Course::of_losses(phases, config.good.packet, seed, name)));
        let alters = config.duplicate != Probability::ZERO || config.corrupt != Probability::ZERO;
        let moves = delay.is_some() || loss.is_some() || config.jitter.is_some() || config.reorder.is_some();
        let noise = |what: &str| TimeNoise::named(seed, format_args!("{name}/{what}"));
        (moves || alters).then(|| {
            Box::new(Motion {
                delay,
                loss,
                jitter: config.jitter.map(|jitter| JitterProcess::new(jitter, seed, name)),
                overtakes: config.jitter.is_some_and(|jitter| jitter.reorder),
                late: config.reorder.map(|late| (late.probability.get(), late.delay, noise("reorder"))),
                corrupt: (config.corrupt.get(), noise("corrupt")),
                twice: (config.duplicate.get(), noise("duplicate")),
            })
        })
    }

    /// True if the delay may differ from the link's.
    pub(super) fn moves_the_delay(&self) -> bool {
        self.delay.is_some()
    }

    /// True if any packet may overtake another, not only those that are late.
    pub(super) fn overtakes(&self) -> bool {
        self.overtakes
    }

    /// True if packets leave in the order of arrival.
    fn keeps_order(&self) -> bool {
        !self.overtakes && self.late.is_none()
    }

    /// True if every packet leaves unchanged and in the order of arrival.
    pub(super) fn keeps_packets(&self) -> bool {
        self.keeps_order() && self.corrupt.0 == 0.0 && self.twice.0 == 0.0
    }

    /// The arrival of a packet whose transmission ends at `end` and that would arrive at `arrives` with the link's own
    /// delay.
    pub(super) fn arrives(&mut self, end: Time, arrives: Time) -> Time {
        let arrives = match &mut self.delay {
            Some(delay) => end + Duration::from_ticks(delay.at(end)),
            None => arrives,
        };
        match &mut self.jitter {
            Some(jitter) => arrives + jitter.at(end),
            None => arrives,
        }
    }

    /// The probability of loss at an instant, if it changes.
    pub(super) fn loss(&mut self, at: Time) -> Option<Probability> {
        self.loss.as_mut().map(|loss| Track::probability(loss.at(at)))
    }

    /// The final arrival of a packet, and what happens to it. It would arrive at `own` by itself and at `kept` in
    /// order, as the `nth` packet at that instant.
    pub(super) fn alter(&self, own: Time, kept: Time, nth: u32) -> (Time, Altered) {
        let hits = |probability: f64, noise: &TimeNoise| probability > 0.0 && noise.at(kept.index(), nth) < probability;
        let arrives = if self.overtakes { own } else { kept };
        let arrives = match &self.late {
            Some((probability, delay, noise)) if hits(*probability, noise) => arrives + *delay,
            _ => arrives,
        };
        let (corrupt, twice) = (hits(self.corrupt.0, &self.corrupt.1), hits(self.twice.0, &self.twice.1));
        (arrives, Altered { corrupt, twice, marked: false })
    }
}

#[cfg(test)]
#[path = "motion_tests.rs"]
mod tests;
