//! Jitter: a delay that is drawn afresh in every time slot, with correlation between neighbouring slots.
//!
//! The values have the given distribution. A first-order normal process, z(k) = r z(k-1) + sqrt(1-r²) noise, gives the
//! correlation r. Its values are mapped to the distribution by their rank (a Gaussian copula), so the correlation of
//! the delays themselves is r for a normal distribution and somewhat less for a skewed one. Slots are in time, not
//! packets, so every transport meets the same delays.

use super::config::{Distribution, Jitter};
use crate::stream::TimeNoise;
use crate::units::{Duration, Time};

/// The probability that a standard normal value is above `z`.
fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / core::f64::consts::SQRT_2)
}

/// A standard normal value from two uniform values (Box and Muller 1958).
pub(super) fn normal(u: f64, v: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(1.0 - u)) * libm::cos(2.0 * core::f64::consts::PI * v)
}

impl Distribution {
    /// The duration that has the same rank as `z` in the standard normal distribution.
    pub(super) fn of_normal(&self, z: f64) -> Duration {
        let exponential = |mean: &Duration, above: f64| -mean.as_secs_f64() * libm::log(above);
        let secs = match self {
            Distribution::Fixed(span) => return *span,
            Distribution::Uniform(low, high) => {
                low.as_secs_f64() + (high.as_secs_f64() - low.as_secs_f64()) * upper_tail(-z)
            }
            Distribution::Exponential { mean } => exponential(mean, upper_tail(z)),
            Distribution::ExponentialClipped { mean, min, max } => {
                exponential(mean, upper_tail(z)).clamp(min.as_secs_f64(), max.as_secs_f64())
            }
            Distribution::ExponentialTruncated { mean, min, max } => {
                let above = |edge: &Duration| libm::exp(-edge.as_secs_f64() / mean.as_secs_f64());
                exponential(mean, above(max) + (above(min) - above(max)) * upper_tail(z))
            }
            Distribution::Normal { mean, deviation } => mean.as_secs_f64() + deviation.as_secs_f64() * z,
            Distribution::Pareto { min, mean } => {
                let (min, mean) = (min.as_secs_f64(), mean.as_secs_f64());
                min * libm::pow(upper_tail(z), -(mean - min) / mean)
            }
        };
        Duration::from_secs_f64_rounded(secs)
    }
}

/// The process.
#[derive(Clone, Debug)]
pub(super) struct JitterProcess {
    config: Jitter,
    noise: TimeNoise,
    /// Number of slots after which a value is forgotten: by then, its weight is below floating-point precision.
    memory: u64,
    slot: u64,
    z: f64,
    value: Duration,
}

impl JitterProcess {
    pub(super) fn new(config: Jitter, seed: u64, name: &str) -> Self {
        let r = config.correlation.get();
        let memory = if r > 0.0 { libm::ceil(-37.0 / libm::log(r)) as u64 } else { 0 };
        let noise = TimeNoise::named(seed, format_args!("{name}/jitter"));
        let mut process = JitterProcess { config, noise, memory, slot: 0, z: 0.0, value: Duration::ZERO };
        process.z = process.fresh(0);
        process.value = process.config.delay.of_normal(process.z);
        process
    }

    fn fresh(&self, slot: u64) -> f64 {
        normal(self.noise.at(slot, 0), self.noise.at(slot, 1))
    }

    /// The delay in the slot of an instant. Queries must be in order of time.
    pub(super) fn at(&mut self, time: Time) -> Duration {
        let slot = time.as_ticks() / self.config.every.as_ticks().max(1);
        if slot <= self.slot {
            return self.value;
        }
        if slot - self.slot > self.memory {
            self.slot = slot - self.memory;
            self.z = self.fresh(self.slot);
        }
        let r = self.config.correlation.get();
        let rest = libm::sqrt(1.0 - r * r);
        while self.slot < slot {
            self.slot += 1;
            self.z = r * self.z + rest * self.fresh(self.slot);
        }
        self.value = self.config.delay.of_normal(self.z);
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn values(delay: Distribution, correlation: f64, count: u64) -> Vec<f64> {
        let correlation = Probability::new(correlation).expect("in range");
        let mut process = JitterProcess::new(Jitter { delay, correlation, every: ms(1), reorder: false }, 5, "sat");
        (0..count).map(|slot| process.at(Time::ZERO + ms(slot)).as_secs_f64() * 1e3).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn ranks_by_hand() {
        // Half of the values are below 0; a fraction of 0.158655 is above 1.
        let at = |distribution: Distribution, z| distribution.of_normal(z).as_secs_f64() * 1e3;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-4, "{a} {b}");
        near(at(Distribution::Uniform(ms(2), ms(12)), 0.0), 7.0);
        near(at(Distribution::Uniform(ms(2), ms(12)), 1.0), 2.0 + 10.0 * 0.841_345);
        near(at(Distribution::Exponential { mean: ms(10) }, 0.0), 6.931_47);
        near(at(Distribution::Exponential { mean: ms(10) }, 1.0), 18.410_22);
        near(at(Distribution::Normal { mean: ms(10), deviation: ms(2) }, 1.5), 13.0);
        near(at(Distribution::Normal { mean: ms(1), deviation: ms(2) }, -1.0), 0.0);
        // If the mean is twice the minimum, the shape is 2: a quarter of the values is above twice the minimum.
        near(at(Distribution::Pareto { min: ms(3), mean: ms(6) }, 0.0), 3.0 * core::f64::consts::SQRT_2);
        // If it is 4/3 of the minimum, the shape is 4: half of the values are above 2^(1/4) times the minimum.
        near(at(Distribution::Pareto { min: ms(3), mean: ms(4) }, 0.0), 3.567_62);
        // Between 5 and 20 ms lie e^-0.5 to e^-2 of the values; half of these are above -10 ms ln((e^-0.5 + e^-2) / 2).
        let truncated = Distribution::ExponentialTruncated { mean: ms(10), min: ms(5), max: ms(20) };
        near(at(truncated, 0.0), 9.917_34);
        near(at(truncated, 8.0), 20.0);
        near(at(truncated, -8.0), 5.0);
    }

    #[test]
    fn values_have_the_distribution_and_the_correlation() {
        let n = 40_000;
        let normal = values(Distribution::Normal { mean: ms(50), deviation: ms(5) }, 0.8, n);
        // The deviation of the mean of a first-order process is 5 sqrt((1 + r) / (1 - r) / n) = 0.075; the tolerance is
        // four of these.
        assert!((mean(&normal) - 50.0).abs() < 0.3, "{}", mean(&normal));
        let centred: Vec<f64> = normal.iter().map(|value| value - 50.0).collect();
        let square: f64 = centred.iter().map(|value| value * value).sum();
        let next: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
        // Bartlett: the deviation of an estimate at lag 1 is sqrt((1 - r²) / n) = 0.003; the tolerance is four of
        // these.
        assert!((next / square - 0.8).abs() < 0.012, "{}", next / square);
        // The deviation of the variance is 25 sqrt(2 (1 + r²) / (1 - r²) / n) = 0.38; the tolerance is four of these.
        assert!((square / n as f64 - 25.0).abs() < 1.5, "{}", square / n as f64);
        let free = values(Distribution::Exponential { mean: ms(10) }, 0.0, n);
        // The deviation is 10 / sqrt(n) = 0.05; the tolerance is four of these.
        assert!((mean(&free) - 10.0).abs() < 0.2, "{}", mean(&free));
    }

    /// A value does not depend on earlier queries, up to floating-point precision.
    #[test]
    fn a_slot_has_its_value_whoever_asks() {
        let correlation = Probability::new(0.9).expect("in range");
        let config = Jitter { delay: Distribution::Uniform(ms(0), ms(10)), correlation, every: ms(1), reorder: false };
        let (mut all, mut few) = (JitterProcess::new(config, 5, "sat"), JitterProcess::new(config, 5, "sat"));
        for slot in 0..10_000u64 {
            let value = all.at(Time::ZERO + ms(slot));
            if slot % 1777 == 5 {
                assert!(few.at(Time::ZERO + ms(slot)).as_ticks().abs_diff(value.as_ticks()) <= 1);
            }
        }
    }
}
