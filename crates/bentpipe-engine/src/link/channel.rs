//! The state of the channel, as a process in time.
//!
//! It advances by its own random stream, independent of packets, so every transport in a comparison meets the same
//! fades. Gilbert-Elliott is the on/off process with exponential gaps and bursts.

use alloc::vec::Vec;

use super::config::{ChannelConfig, Distribution};
use super::jitter::normal;
use crate::stream::Stream;
use crate::units::{Duration, Time};

/// Good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// Between bursts.
    Good,
    /// In a burst.
    Bad,
}

/// A burst, from `start` to `end`, excluding `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The first bad instant.
    pub start: Time,
    /// The first good instant after it.
    pub end: Time,
}

const NO_BURST: Burst = Burst { start: Time::NEVER, end: Time::NEVER };

#[derive(Clone, Debug)]
enum Source {
    None,
    OnOff { gap: Distribution, burst: Distribution, stream: Stream },
    Schedule { bursts: Vec<(Duration, Duration)>, next: usize },
}

/// A cursor along the process. Queries must not go back in time. Clones advance independently over the same bursts.
#[derive(Clone, Debug)]
pub struct Channel {
    source: Source,
    /// The current or next burst.
    burst: Burst,
}

impl Distribution {
    /// A duration drawn from the stream.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        let secs = match *self {
            Distribution::Fixed(span) => return span,
            Distribution::Uniform(low, high) => stream.uniform_in(low.as_secs_f64(), high.as_secs_f64()),
            Distribution::Exponential { mean } => stream.exponential(mean.as_secs_f64()),
            Distribution::ExponentialClipped { mean, min, max } => {
                stream.exponential(mean.as_secs_f64()).clamp(min.as_secs_f64(), max.as_secs_f64())
            }
            Distribution::ExponentialTruncated { mean, min, max } => loop {
                let draw = stream.exponential(mean.as_secs_f64());
                if (min.as_secs_f64()..=max.as_secs_f64()).contains(&draw) {
                    break draw;
                }
            },
            Distribution::Normal { .. } | Distribution::Pareto { .. } => {
                let (u, v) = (stream.uniform(), stream.uniform());
                return self.of_normal(normal(u, v));
            }
        };
        Duration::from_secs_f64_rounded(secs)
    }
}

impl Channel {
    /// The process of the component `name` under `seed`.
    pub fn new(config: &ChannelConfig, seed: u64, name: &str) -> Self {
        let source = match config {
            ChannelConfig::Clear => Source::None,
            ChannelConfig::OnOff { gap, burst } => {
                Source::OnOff { gap: *gap, burst: *burst, stream: Stream::named(seed, name) }
            }
            ChannelConfig::Schedule(bursts) => Source::Schedule { bursts: bursts.clone(), next: 0 },
        };
        let mut channel = Channel { source, burst: NO_BURST };
        channel.burst = channel.after(Time::ZERO);
        channel
    }

    /// True if the channel never changes.
    pub(super) fn is_clear(&self) -> bool {
        matches!(self.source, Source::None)
    }

    fn after(&mut self, end: Time) -> Burst {
        match &mut self.source {
            Source::None => NO_BURST,
            Source::OnOff { gap, burst, stream } => {
                let start = end + gap.draw(stream);
                // A process of zero-length intervals would never reach the current time.
                Burst { start, end: start + burst.draw(stream).max(Duration::from_nanos(1)) }
            }
            Source::Schedule { bursts, next } => match bursts.get(*next) {
                Some(&(start, length)) => {
                    *next += 1;
                    Burst { start: Time::ZERO + start, end: Time::ZERO + start + length }
                }
                None => NO_BURST,
            },
        }
    }

    /// The state at `time`.
    #[inline]
    pub fn at(&mut self, time: Time) -> ChannelState {
        while time >= self.burst.end && self.burst.start != Time::NEVER {
            self.burst = self.after(self.burst.end);
        }
        if time >= self.burst.start && self.burst.start != Time::NEVER { ChannelState::Bad } else { ChannelState::Good }
    }

    /// Returns the next burst and advances past it, for traces and plots.
    pub fn next_burst(&mut self) -> Option<Burst> {
        let burst = self.burst;
        (burst.start != Time::NEVER).then(|| {
            self.burst = self.after(burst.end);
            burst
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_schedule_is_met_exactly() {
        let config = ChannelConfig::Schedule(vec![(MS(100), MS(50)), (MS(400), MS(10))]);
        let mut channel = Channel::new(&config, 1, "up");
        let states: Vec<_> = [0, 99, 100, 149, 150, 399, 405, 410, 9999]
            .map(|ms| channel.at(Time::ZERO + MS(ms)) == ChannelState::Bad)
            .to_vec();
        assert_eq!(states, [false, false, true, true, false, false, true, false, false]);
    }

    #[test]
    fn bursts_keep_the_distribution_of_transat() {
        let clipped = Distribution::ExponentialClipped { mean: MS(150), min: MS(100), max: MS(500) };
        let config = ChannelConfig::OnOff { gap: Distribution::Uniform(MS(1000), MS(10_000)), burst: clipped };
        let mut channel = Channel::new(&config, 3, "up");
        let (mut end, mut total, n) = (Time::ZERO, 0.0, 20_000);
        for _ in 0..n {
            let burst = channel.next_burst().expect("endless");
            let gap = burst.start - end;
            assert!(gap >= MS(1000) && gap <= MS(10_000), "{gap:?}");
            let length = (burst.end - burst.start).as_secs_f64();
            assert!((0.1..=0.5).contains(&length));
            total += length;
            end = burst.end;
        }
        // E[clip(X, a, b)] = a + m (e^(-a/m) - e^(-b/m)) for exponential X with mean m.
        let (a, b, m): (f64, f64, f64) = (0.1, 0.5, 0.15);
        let mean = a + m * (libm::exp(-a / m) - libm::exp(-b / m));
        // The deviation of one length is below 0.12 s, that of the mean of n below 0.12 / sqrt(n); the tolerance is
        // four of these.
        assert!((total / n as f64 - mean).abs() < 4.0 * 0.12 / (n as f64).sqrt(), "{} {mean}", total / n as f64);
    }
}
