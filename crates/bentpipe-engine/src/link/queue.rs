//! RED: Random Early Detection (Floyd and Jacobson 1993), with the gentle extension.

use super::config::RedConfig;
use crate::stream::Stream;
use crate::units::{Rate, Time};

/// The state of a RED queue: the average, and the number of packets since the last drop.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    /// Packets of mean length that the line carries per second.
    packets_per_second: f64,
    average: f64,
    /// Packets since the last drop.
    count: u64,
    /// True if the average was already above the minimum threshold.
    above: bool,
    stream: Stream,
}

impl Red {
    /// An empty queue in front of a line of `rate`.
    pub fn new(config: RedConfig, rate: Option<Rate>, stream: Stream) -> Self {
        let bits = 8.0 * config.mean_packet.get() as f64;
        let packets_per_second = rate.map_or(f64::INFINITY, |r| r.bits_per_second() as f64 / bits);
        Red { config, packets_per_second, average: 0.0, count: 0, above: false, stream }
    }

    /// Goes on with the average and the draws of the queue `before` a change of settings.
    pub(super) fn go_on(&mut self, before: &Red) {
        (self.average, self.count, self.above) = (before.average, before.count, before.above);
        self.stream = before.stream.clone();
    }

    /// The average queue in packets.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Decides on an arriving packet with `waiting` packets ahead of it. `idle_since` is set if the line has been idle.
    /// Returns true if RED admits the packet.
    pub fn admits(&mut self, now: Time, waiting: u32, idle_since: Option<Time>) -> bool {
        // For an idle period, RED pretends that m packets of mean length found the queue empty (section 4 of the
        // paper).
        if let Some(since) = idle_since {
            let m = (self.packets_per_second * (now - since).as_secs_f64()).min(1e9) as i32;
            self.average *= libm::pow(1.0 - self.config.weight, m as f64);
        }
        self.average += self.config.weight * (waiting as f64 - self.average);
        self.count += 1;
        if self.average < self.config.min_threshold || waiting <= 1 {
            self.above = false;
            return true;
        }
        if !self.above {
            self.above = true;
            self.count = 1;
            return true;
        }
        let probability = self.spread(self.base_probability());
        if self.stream.uniform() <= probability {
            self.count = 0;
            return false;
        }
        true
    }

    /// Handles a packet lost because the queue was full.
    pub(super) fn forced_drop(&mut self) {
        self.count = 0;
    }

    //= RFC 3168 §7: a packet that could be marked is dropped when the average is above the upper threshold
    /// True if every packet must be dropped, so that marking is not enough.
    pub(super) fn is_saturated(&self) -> bool {
        self.base_probability() >= 1.0
    }

    /// p_b: depends only on the average.
    fn base_probability(&self) -> f64 {
        let RedConfig { min_threshold, max_threshold, max_probability, gentle, .. } = self.config;
        let max_p = max_probability.get();
        if self.average < max_threshold {
            max_p * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else if gentle {
            ((1.0 - max_p) / max_threshold * self.average + 2.0 * max_p - 1.0).min(1.0)
        } else {
            1.0
        }
    }

    /// p_a: spreads drops evenly, using the number of packets since the last one.
    fn spread(&self, p: f64) -> f64 {
        let expected = self.count as f64 * p;
        if self.config.wait {
            if expected < 1.0 {
                0.0
            } else if expected < 2.0 {
                p / (2.0 - expected)
            } else {
                1.0
            }
        } else if expected < 1.0 {
            p / (1.0 - expected)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Duration, Probability};

    fn red(gentle: bool, wait: bool) -> Red {
        let config = RedConfig {
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: Probability::new(0.1).expect("in range"),
            weight: 0.5,
            gentle,
            wait,
            mean_packet: Bytes::new(500),
        };
        Red::new(config, Rate::from_bits_per_second(2_000_000), Stream::named(1, "red"))
    }

    #[test]
    fn the_average_follows_the_queue() {
        let mut red = red(true, true);
        assert!(red.admits(Time::ZERO, 8, None));
        assert_eq!(red.average(), 4.0);
        assert!(red.admits(Time::ZERO, 8, None), "the first packet above the threshold passes");
        assert_eq!(red.average(), 6.0);
        // Idle for 4 ms at 500 packets/s: m = 2, so 6 * 0.5^2, then one sample of an empty queue.
        red.admits(Time::ZERO + Duration::from_millis(4), 0, Some(Time::ZERO));
        assert_eq!(red.average(), 0.75);
    }

    #[test]
    fn probabilities_as_published() {
        let mut red = red(true, false);
        for (average, p) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0)] {
            red.average = average;
            assert!((red.base_probability() - p).abs() < 1e-12, "{average}");
        }
        red.config.gentle = false;
        assert_eq!(red.base_probability(), 1.0);
        red.count = 10;
        assert!((red.spread(0.05) - 0.1).abs() < 1e-12);
        red.config.wait = true;
        assert_eq!(red.spread(0.05), 0.0);
        red.count = 30;
        assert!((red.spread(0.05) - 0.1).abs() < 1e-12);
    }

    /// A packet that finds at most one other passes, and the next one above the threshold is the first again (ns-2). The count of packets
    /// begins with that one, whatever passed before.
    #[test]
    fn a_short_queue_begins_anew() {
        let mut red = red(false, true);
        (0..10).for_each(|_| assert!(red.admits(Time::ZERO, 3, None)));
        assert!(red.admits(Time::ZERO, 27, None), "the first above the threshold, with an average of 15");
        assert_eq!(red.count, 1);
        assert!(!red.admits(Time::ZERO, 27, None), "the average is 21");
        assert!(red.admits(Time::ZERO, 1, None), "the average is 11, but hardly any packet waits");
        assert!(red.admits(Time::ZERO, 40, None), "the first again, with an average of 25.5");
        assert!(!red.admits(Time::ZERO, 40, None));
    }
}
