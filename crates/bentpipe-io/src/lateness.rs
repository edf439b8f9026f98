//! How late things were done that had an instant: what a machine that is too slow or too busy does to a link.

use bentpipe_engine::units::{Duration, Time};
use hdrhistogram::Histogram;

/// A median of more than this is not what a timer of an idle machine does: it has no time for us. A timerfd wakes
/// about 50 µs late.
const TOO_LATE: Duration = Duration::from_millis(1);

/// Linux waits for an acknowledgement at least so much longer than the round trip (TCP_RTO_MIN); RFC 6298's timers have a
/// second in all. What is later than that may be a timeout which no link has caused.
const STALL: Duration = Duration::from_millis(200);

/// A histogram of lateness, to two digits, from a microsecond to a minute.
#[derive(Clone, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, 60_000_000, 2).expect("the bounds are in order");
        Lateness { histogram, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Takes note of what was due at `due` and done at `now`; early is not late.
    pub fn record(&mut self, due: Time, now: Time) {
        let late = now.saturating_since(due);
        self.max = self.max.max(late);
        self.histogram.saturating_record((late.as_nanos() / 1000).max(1));
    }

    /// How often.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// What half of them were not later than; rounded up to the histogram's microseconds.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// What 99 of 100 were not later than.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// The worst, to the nanosecond.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Whether the machine could not keep up: half were more than a millisecond late.
    pub fn is_too_great(&self) -> bool {
        self.median() > TOO_LATE
    }

    /// How long the machine stood still, if that was long enough for a sender to time out.
    pub fn stall(&self) -> Option<Duration> {
        Some(self.max).filter(|max| *max >= STALL)
    }

    /// What that part of them was not later than.
    pub fn quantile(&self, part: f64) -> Duration {
        if self.histogram.is_empty() {
            return Duration::ZERO;
        }
        Duration::from_micros(self.histogram.value_at_quantile(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_the_worst() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.median(), lateness.max(), lateness.count()), (Duration::ZERO, Duration::ZERO, 0));
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        for late in 1..=99 {
            lateness.record(at(1000), at(1000 + late));
        }
        lateness.record(at(0), at(70_000_000));
        assert_eq!(lateness.count(), 100);
        assert_eq!((lateness.median(), lateness.p99()), (Duration::from_micros(50), Duration::from_micros(99)));
        // Beyond the histogram's end, yet kept.
        assert_eq!(lateness.max(), Duration::from_secs(70));
        assert!(!lateness.is_too_great());
        assert_eq!(lateness.stall(), Some(Duration::from_secs(70)));
        // Early is not late.
        lateness.record(at(30), at(29));
        assert_eq!(lateness.max(), Duration::from_secs(70));
    }

    #[test]
    fn a_median_above_a_millisecond_is_too_much() {
        let mut lateness = Lateness::default();
        for _ in 0..3 {
            lateness.record(Time::ZERO, Time::from_nanos(1_100_000));
        }
        assert!(lateness.is_too_great());
        assert_eq!(lateness.stall(), None);
    }
}
