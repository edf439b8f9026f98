//! One-way delays of datagrams.

use bentpipe_engine::units::Duration;
use hdrhistogram::Histogram;

/// One-way delays of a flow's delivered datagrams, to three digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    nanoseconds: Histogram<u64>,
}

impl Default for Delays {
    fn default() -> Self {
        // It grows with the longest delay, so a flow without delays takes only a few hundred bytes.
        Delays { nanoseconds: Histogram::new(3).expect("three digits are supported") }
    }
}

impl Delays {
    pub(crate) fn record(&mut self, delay: Duration) {
        self.nanoseconds.record(delay.as_nanos()).expect("the histogram grows as needed");
    }

    /// Number of datagrams that arrived.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The quantile `q` of the delays (0 is the minimum, 1 the maximum); `None` if none arrived.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.nanoseconds.value_at_quantile(q)))
    }

    /// The mean delay; `None` if none arrived.
    pub fn mean(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.nanoseconds.mean().round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_delays_is_not_longer() {
        let mut delays = Delays::default();
        assert_eq!((delays.quantile(0.5), delays.mean()), (None, None));
        for ms in 1..=100 {
            delays.record(Duration::from_millis(ms));
        }
        // Three digits: a value is off by at most a thousandth.
        let near = |q: f64, ms: f64| {
            let found = delays.quantile(q).expect("there are some").as_secs_f64() * 1e3;
            assert!((found / ms - 1.0).abs() <= 1e-3, "{q}: {found} ms, not {ms}");
        };
        near(0.0, 1.0);
        near(0.5, 50.0);
        near(0.99, 99.0);
        near(1.0, 100.0);
        assert_eq!(delays.count(), 100);
    }
}
