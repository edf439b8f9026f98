//! The value of a link's setting while the link runs: a track, or a value drawn for each phase.
//!
//! **Phases.** Some networks reassign their terminals at fixed instants: Starlink does so every 15 s, at seconds 12,
//! 27, 42 and 57 of each minute (Tanveer et al. 2023, "Making Sense of Constellations", CoNEXT companion). Each phase
//! has its own rate and delay, and begins with an outage. Its values are drawn by its number, so they do not depend on
//! the traffic.

use alloc::sync::Arc;

use super::track::{Piece, Track};
use crate::stream::TimeNoise;
use crate::units::{Duration, Probability, Rate, Time};

/// Phases of equal length, with values drawn for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Length of a phase.
    pub length: Duration,
    /// When the first phase after the start of the run begins; must be less than `length`.
    pub first: Duration,
    /// How long the line stands still at the start of a phase; must be less than `length`.
    pub outage: Duration,
    /// Probability, as a value of a [`Track`], that a packet is lost if its way ends during the outage.
    pub loss: u64,
    /// The rate, uniform between these values; `None`: the link's rate.
    pub rate: Option<(Rate, Rate)>,
    /// The delay, uniform between these values; `None`: the link's delay.
    pub delay: Option<(Duration, Duration)>,
}

impl Phases {
    /// True if the rate changes.
    pub(super) fn moves_the_line(&self) -> bool {
        self.rate.is_some() || self.outage > Duration::ZERO
    }
}

/// The value of one setting in each phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    phases: Phases,
    noise: TimeNoise,
    min: u64,
    max: u64,
    /// The value during an outage, if it differs.
    in_outage: Option<u64>,
}

impl Drawn {
    fn piece(&self, time: Time) -> Piece {
        let length = self.phases.length.as_ticks();
        // Phase 0 is the part before the first change.
        let first = self.phases.first.as_ticks();
        let number = match time.as_ticks().checked_sub(first) {
            Some(since) => since / length + 1,
            None => 0,
        };
        let start =
            Time::from_ticks(if number == 0 { 0 } else { first.saturating_add((number - 1).saturating_mul(length)) });
        let end = Time::from_ticks(first.saturating_add(number.saturating_mul(length)));
        let value = self.min + ((self.max - self.min) as f64 * self.noise.at(number, 0)) as u64;
        let constant = |start, end, value| Piece { start, end, from: value, to: value };
        match self.in_outage {
            Some(value_out) if number > 0 => {
                let over = start + self.phases.outage;
                if time < over { constant(start, over, value_out) } else { constant(over, end, value) }
            }
            _ => constant(start, end, value),
        }
    }
}

/// Where the values come from.
#[derive(Clone, Debug)]
enum Source {
    Track(Arc<Track>),
    Drawn(Drawn),
}

/// A setting over time. Queries in order of time are fast.
#[derive(Clone, Debug)]
pub(super) struct Course {
    source: Source,
    piece: Piece,
}

impl Course {
    pub(super) fn of_track(track: Arc<Track>) -> Self {
        let piece = track.piece(Time::ZERO);
        Course { source: Source::Track(track), piece }
    }

    fn drawn(drawn: Drawn) -> Self {
        Course { piece: drawn.piece(Time::ZERO), source: Source::Drawn(drawn) }
    }

    /// The rates of the phases, in bits per second; zero during an outage.
    pub(super) fn of_rates(phases: &Phases, rate: Rate, seed: u64, name: &str) -> Self {
        let (min, max) = phases.rate.unwrap_or((rate, rate));
        let noise = TimeNoise::named(seed, format_args!("{name}/phases/rate"));
        let in_outage = (phases.outage > Duration::ZERO).then_some(0);
        let (min, max) = (min.bits_per_second(), max.bits_per_second());
        Course::drawn(Drawn { phases: *phases, noise, min, max, in_outage })
    }

    /// The delays of the phases, in ticks, if they have any.
    pub(super) fn of_delays(phases: &Phases, seed: u64, name: &str) -> Option<Self> {
        let (min, max) = phases.delay?;
        let noise = TimeNoise::named(seed, format_args!("{name}/phases/delay"));
        let (min, max) = (min.as_ticks(), max.as_ticks());
        Some(Course::drawn(Drawn { phases: *phases, noise, min, max, in_outage: None }))
    }

    /// The loss of the phases in addition to the link's, if they have any.
    pub(super) fn of_losses(phases: &Phases, loss: Probability, seed: u64, name: &str) -> Option<Self> {
        let noise = TimeNoise::named(seed, name);
        let value = Track::of_probability(loss);
        let loses = phases.loss > 0 && phases.outage > Duration::ZERO;
        let drawn = Drawn { phases: *phases, noise, min: value, max: value, in_outage: Some(phases.loss) };
        loses.then(|| Course::drawn(drawn))
    }

    /// The piece at an instant.
    pub(super) fn piece(&mut self, time: Time) -> Piece {
        if time < self.piece.start || time >= self.piece.end {
            self.piece = match &self.source {
                Source::Track(track) => track.piece(time),
                Source::Drawn(drawn) => drawn.piece(time),
            };
        }
        self.piece
    }

    /// The value at an instant.
    pub(super) fn at(&mut self, time: Time) -> u64 {
        self.piece(time).at(time)
    }

    /// The period and twice the integral over it, if it repeats.
    pub(super) fn period(&self) -> Option<(Duration, u128)> {
        let Source::Track(track) = &self.source else { return None };
        let period = track.period()?;
        Some((period, track.twice_the_sum(period)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn phases_begin_with_an_outage_and_keep_their_value() {
        let rate = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000).expect("a rate");
        let phases = Phases {
            length: secs(15),
            first: secs(12),
            outage: secs(1),
            loss: Track::ONE,
            rate: Some((rate(20), rate(60))),
            delay: Some((secs(1), secs(2))),
        };
        let mut rates = Course::of_rates(&phases, rate(1), 3, "sat");
        let values =
            |course: &mut Course| [0, 11, 12, 13, 26, 27, 28, 41, 42].map(|at| course.at(Time::ZERO + secs(at)));
        let [a, a2, out, b, b2, out2, c, c2, out3] = values(&mut rates);
        assert_eq!((a, b, c, out, out2, out3), (a2, b2, c2, 0, 0, 0), "the first phase has no outage");
        assert!(a != b && b != c && [a, b, c].iter().all(|rate| (20_000_000..=60_000_000).contains(rate)));
        let mut losses = Course::of_losses(&phases, Probability::ZERO, 3, "sat").expect("it loses");
        assert_eq!(values(&mut losses), [0, 0, Track::ONE, 0, 0, Track::ONE, 0, 0, Track::ONE]);
        let mut delays = Course::of_delays(&phases, 3, "sat").expect("they have delays");
        let [a, a2, b, b2, ..] = values(&mut delays);
        assert!(a == a2 && b == b2 && a != b, "a delay changes with the phase, whatever the outage");
        // Going back in time gives the same values, so the order of queries does not matter.
        assert_eq!(delays.at(Time::ZERO), a);
        let mut others = Course::of_rates(&phases, rate(1), 4, "sat");
        assert_ne!(others.at(Time::ZERO), rates.at(Time::ZERO), "another seed");
    }
}
