//! The lateness of timed actions, which shows the effect of a slow or busy machine on a link.

use bentpipe_engine::units::{Duration, Time};
use hdrhistogram::Histogram;

/// A median above this means that the machine is busy. On an idle machine a timerfd wakes about 50 µs late.
const TOO_LATE: Duration = Duration::from_millis(1);

/// Linux waits for an acknowledgement at least this much longer than the round trip (TCP_RTO_MIN); RFC 6298's timers
/// have a minimum of one second. A larger lateness may cause a timeout that no link has caused.
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
    /// Records an action that was due at `due` and done at `now`. An early one counts as on time.
    pub fn record(&mut self, due: Time, now: Time) {
        let late = now.saturating_since(due);
        self.max = self.max.max(late);
        self.histogram.saturating_record((late.as_nanos() / 1000).max(1));
    }

    /// Number of actions.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The median, to the microsecond, and to the histogram's two digits.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// The maximum, to the nanosecond.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// True if the machine could not keep up: half of the actions were more than a millisecond late.
    pub fn is_too_great(&self) -> bool {
        self.median() > TOO_LATE
    }

    /// The longest stall, if it was long enough for a sender to time out.
    pub fn stall(&self) -> Option<Duration> {
        Some(self.max).filter(|max| *max >= STALL)
    }

    /// The quantile for the fraction `part`, as precise as the median, and at most the maximum.
    pub fn quantile(&self, part: f64) -> Duration {
        if self.histogram.is_empty() {
            return Duration::ZERO;
        }
        // The histogram gives the upper end of the bucket.
        Duration::from_micros(self.histogram.value_at_quantile(part)).min(self.max)
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
        // Beyond the histogram's end, but still recorded.
        assert_eq!(lateness.max(), Duration::from_secs(70));
        assert!(!lateness.is_too_great());
        assert_eq!(lateness.stall(), Some(Duration::from_secs(70)));
        // Early counts as on time.
        lateness.record(at(30), at(29));
        assert_eq!(lateness.max(), Duration::from_secs(70));
    }

    #[test]
    fn no_quantile_is_above_the_worst() {
        let mut lateness = Lateness::default();
        for late in [2, 838] {
            lateness.record(Time::ZERO, Time::ZERO + Duration::from_micros(late));
        }
        assert_eq!((lateness.p99(), lateness.max()), (Duration::from_micros(838), Duration::from_micros(838)));
    }

    #[test]
    fn a_median_above_a_millisecond_is_too_much() {
        let mut lateness = Lateness::default();
        for _ in 0..3 {
            lateness.record(Time::ZERO, Time::from_nanos(1_100_000));
        }
        assert!(lateness.is_too_great());
        assert_eq!(lateness.stall(), None);
        lateness.record(Time::ZERO, Time::from_nanos(199_999_999));
        assert_eq!(lateness.stall(), None);
        lateness.record(Time::ZERO, Time::ZERO + STALL);
        assert_eq!(lateness.stall(), Some(STALL));
    }
}
