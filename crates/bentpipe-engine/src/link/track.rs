//! A setting of a link over time: steps and ramps, optionally repeating.
//!
//! Values are whole numbers: bits per second, ticks of delay, parts of a probability. A track depends only on time, so
//! every transport meets the same path.

use alloc::vec::Vec;

use crate::units::{Duration, Probability, Time};

/// A change of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it begins, counted from the driver's epoch or the start of a period.
    pub at: Duration,
    /// How long the value takes to reach the new one, on a straight line. Zero is a step.
    pub over: Duration,
    /// The new value.
    pub value: u64,
}

/// Why a list of changes is not a valid track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTrack {
    /// The change with this index, from 0, begins before the previous one has ended.
    Overlaps(usize),
    /// The change with this index, from 0, ends after the period.
    AfterPeriod(usize),
    /// The period is shorter than [`Track::MIN_PERIOD`].
    ShortPeriod,
}

impl core::fmt::Display for BadTrack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BadTrack::Overlaps(n) => write!(f, "change {n} begins before the previous one has ended"),
            BadTrack::AfterPeriod(n) => write!(f, "change {n} ends after the period"),
            BadTrack::ShortPeriod => f.write_str("the period is shorter than 1 ms"),
        }
    }
}

impl core::error::Error for BadTrack {}

/// A value over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    initial: u64,
    changes: Vec<Change>,
    period: Option<Duration>,
}

/// A part of a track in which the value is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: Time,
    /// The first instant after it.
    pub(super) end: Time,
    /// The value at the start.
    pub(super) from: u64,
    /// The value at the end.
    pub(super) to: u64,
}

impl Piece {
    /// The value at an instant within the piece, rounded towards `from`.
    pub(super) fn at(&self, time: Time) -> u64 {
        if self.from == self.to {
            return self.from;
        }
        let share = |difference: u64| {
            let (part, whole) = (time.saturating_since(self.start), self.end.saturating_since(self.start));
            (u128::from(difference) * u128::from(part.as_ticks()) / u128::from(whole.as_ticks().max(1))) as u64
        };
        if self.to > self.from {
            self.from + share(self.to - self.from)
        } else {
            self.from - share(self.from - self.to)
        }
    }
}

impl Track {
    /// The minimum period.
    pub const MIN_PERIOD: Duration = Duration::from_millis(1);
    /// The value that stands for the probability 1.
    pub const ONE: u64 = 1_000_000_000_000;

    /// A track that starts with `initial` and, with a `period`, repeats after each period.
    ///
    /// # Errors
    /// Returns [`BadTrack`] if the changes are not in order, overlap, or do not fit the period.
    pub fn new(initial: u64, changes: Vec<Change>, period: Option<Duration>) -> Result<Track, BadTrack> {
        let mut end = Duration::ZERO;
        for (n, change) in changes.iter().enumerate() {
            if change.at < end {
                return Err(BadTrack::Overlaps(n));
            }
            end = change.at + change.over;
        }
        if let Some(period) = period {
            if period < Self::MIN_PERIOD {
                return Err(BadTrack::ShortPeriod);
            }
            if let Some(n) = changes.iter().position(|change| change.at + change.over > period) {
                return Err(BadTrack::AfterPeriod(n));
            }
        }
        Ok(Track { initial, changes, period })
    }

    /// A probability as a value, rounded to 10^-12.
    pub fn of_probability(probability: Probability) -> u64 {
        (probability.get() * Self::ONE as f64 + 0.5) as u64
    }

    /// The probability of a value.
    pub fn probability(value: u64) -> Probability {
        Probability::new(value as f64 / Self::ONE as f64).unwrap_or(Probability::ONE)
    }

    /// The value before the first change.
    pub fn initial(&self) -> u64 {
        self.initial
    }

    /// The changes in order of time.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The time after which it repeats.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// The index of a step at the end of the period to another value than the one with which the period begins: it never holds.
    pub fn never_holds(&self) -> Option<usize> {
        let at_start = self.piece(Time::ZERO).at(Time::ZERO);
        let is_lost = |change: &Change| Some(change.at) == self.period && change.value != at_start;
        self.changes.iter().position(is_lost)
    }

    /// All values that it reaches: the initial value, and the value of each change.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        core::iter::once(self.initial).chain(self.changes.iter().map(|change| change.value))
    }

    /// True unless the value stays zero for ever after some time. For a rate, this means that every packet leaves
    /// eventually.
    pub fn ends_above_zero(&self) -> bool {
        match self.period {
            Some(period) => self.twice_the_sum(period) > 0,
            None => self.values().last() != Some(0),
        }
    }

    /// The mean over the period or, without one, over the time until the last change has ended, but at least over the
    /// first millisecond. Rounded down.
    pub fn mean(&self) -> u64 {
        let end = self.changes.last().map_or(Duration::ZERO, |change| change.at + change.over);
        let span = self.period.unwrap_or(end).max(Self::MIN_PERIOD);
        (self.twice_the_sum(span) / (2 * u128::from(span.as_ticks()))) as u64
    }

    /// Twice the integral over `span` from the epoch on, in value times ticks. `span` is at most the period.
    pub(super) fn twice_the_sum(&self, span: Duration) -> u128 {
        let (mut at, end, mut sum) = (Time::ZERO, Time::ZERO + span, 0);
        while at < end {
            let piece = self.piece(at);
            let to = piece.end.min(end);
            let last = if to == piece.end { piece.to } else { piece.at(to) };
            sum += u128::from(piece.at(at) + last) * u128::from(to.saturating_since(at).as_ticks());
            at = to;
        }
        sum
    }

    /// The piece at an instant.
    pub(super) fn piece(&self, time: Time) -> Piece {
        let ticks = time.as_ticks();
        let base = self.period.map_or(0, |period| ticks - ticks % period.as_ticks());
        let within = Duration::from_ticks(ticks - base);
        let at = |span: Duration| Time::from_ticks(base) + span;
        let next = self.changes.partition_point(|change| change.at <= within);
        let end = match (self.changes.get(next), self.period) {
            (Some(change), _) => at(change.at),
            (None, Some(period)) => at(period),
            (None, None) => Time::NEVER,
        };
        let Some(change) = next.checked_sub(1).map(|n| self.changes[n]) else {
            return Piece { start: at(Duration::ZERO), end, from: self.initial, to: self.initial };
        };
        let before = next.checked_sub(2).map_or(self.initial, |n| self.changes[n].value);
        let settled = change.at + change.over;
        if within < settled {
            Piece { start: at(change.at), end: at(settled), from: before, to: change.value }
        } else {
            Piece { start: at(settled), end, from: change.value, to: change.value }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at: u64, over: u64, value: u64) -> Change {
        Change { at: Duration::from_millis(at), over: Duration::from_millis(over), value }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn steps_ramps_and_periods() {
        let changes = vec![change(10, 0, 50), change(20, 10, 100), change(40, 0, 0)];
        let once = Track::new(7, changes.clone(), None).expect("in order");
        let again = Track::new(7, changes, Some(Duration::from_millis(50))).expect("in order");
        let values = |track: &Track, from: u64| {
            [0, 9, 10, 19, 20, 25, 29, 30, 39, 40, 49].map(|ms| track.piece(at(from + ms)).at(at(from + ms)))
        };
        let expected = [7, 7, 50, 50, 50, 75, 95, 100, 100, 0, 0];
        assert_eq!(values(&once, 0), expected);
        assert_eq!(values(&again, 0), expected);
        assert_eq!(values(&again, 5000), expected);
        assert_eq!(once.piece(at(5000)), Piece { start: at(40), end: Time::NEVER, from: 0, to: 0 });
        assert_eq!((once.ends_above_zero(), again.ends_above_zero()), (false, true));
        // 7 for 10 ms, 50 for 10, 75 on average for 10, 100 for 10, 0 for 10: 2320 / 50.
        assert_eq!(again.mean(), 46);
    }

    /// A value that never changes, or only at the beginning, is its own mean: it counts for the first millisecond.
    #[test]
    fn a_constant_is_its_own_mean() {
        let of = |changes| Track::new(7, changes, None).expect("in order").mean();
        assert_eq!([of(vec![]), of(vec![change(0, 0, 9)])], [7, 9]);
    }

    #[test]
    fn a_step_at_the_end_of_a_ramp_or_at_zero() {
        let track = Track::new(1, vec![change(0, 0, 2), change(10, 10, 4), change(20, 0, 9)], None).expect("in order");
        assert_eq!([0, 10, 15, 20].map(|ms| track.piece(at(ms)).at(at(ms))), [2, 2, 3, 9]);
    }

    #[test]
    fn a_step_at_the_period_never_holds() {
        let of = |changes, period: Option<u64>| {
            Track::new(1, changes, period.map(Duration::from_millis)).expect("in order").never_holds()
        };
        assert_eq!(of(vec![change(5, 0, 2), change(15, 0, 3)], Some(15)), Some(1));
        assert_eq!(of(vec![change(5, 0, 2), change(15, 0, 1)], Some(15)), None, "it begins with 1 anyway");
        assert_eq!(of(vec![change(0, 0, 2), change(15, 0, 2)], Some(15)), None, "it begins with 2 anyway");
        assert_eq!(of(vec![change(5, 10, 2)], Some(15)), None, "a ramp has held until then");
        assert_eq!(of(vec![change(15, 0, 3)], Some(16)), None);
        assert_eq!(of(vec![change(15, 0, 3)], None), None);
    }

    #[test]
    fn what_is_no_track_is_refused() {
        let of = |changes, period: Option<u64>| Track::new(1, changes, period.map(Duration::from_millis)).map(|_| ());
        assert_eq!(of(vec![change(5, 0, 1), change(4, 0, 2)], None), Err(BadTrack::Overlaps(1)));
        assert_eq!(of(vec![change(5, 10, 1), change(14, 0, 2)], None), Err(BadTrack::Overlaps(1)));
        assert_eq!(of(vec![change(5, 10, 1)], Some(14)), Err(BadTrack::AfterPeriod(0)));
        assert_eq!(of(vec![], Some(0)), Err(BadTrack::ShortPeriod));
        assert_eq!(of(vec![change(5, 10, 1)], Some(15)), Ok(()));
    }
}
