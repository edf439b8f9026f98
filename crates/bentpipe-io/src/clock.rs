//! Real time: the monotonic clock as the engine's [`Time`], and how late wake-ups are.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Instant;

use bentpipe_engine::units::{Duration, Time};

/// The monotonic clock, counted from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that stands at [`Time::ZERO`] now.
    pub fn start() -> Self {
        Clock { epoch: Instant::now() }
    }

    /// The present.
    pub fn now(&self) -> Time {
        // 2^64 nanoseconds are 584 years.
        Time::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }
}

/// How late the wake-ups were that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Wake-ups by a timer.
    pub wakeups: u64,
    /// The worst of them.
    pub max: Duration,
    total: Duration,
}

impl Lateness {
    /// Takes note of a wake-up at `now` that was due at `due`.
    pub fn record(&mut self, due: Time, now: Time) {
        let late = now.saturating_since(due);
        self.wakeups += 1;
        self.max = self.max.max(late);
        self.total += late;
    }

    /// The mean, zero before the first wake-up; rounded down to a nanosecond.
    pub fn mean_floor(&self) -> Duration {
        self.total.div_floor(self.wakeups.max(1))
    }
}

/// An initial sequence number (RFC 6528 §3): a clock of 4 µs, and a hash of the addresses and ports under a key that is
/// drawn once per process.
pub fn isn(now: Time, local: SocketAddr, remote: SocketAddr) -> u32 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let hash = KEY.hash_one((local, remote));
    ((now.as_nanos() / 4_000) as u32).wrapping_add(hash as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_has_a_mean_and_a_maximum() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.mean_floor(), Duration::ZERO);
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        lateness.record(at(10), at(14));
        lateness.record(at(20), at(20));
        // Early is not late.
        lateness.record(at(30), at(29));
        assert_eq!((lateness.wakeups, lateness.max), (3, Duration::from_micros(4)));
        assert_eq!(lateness.mean_floor(), Duration::from_nanos(1333));
    }

    #[test]
    fn sequence_numbers_follow_the_clock_and_differ_between_peers() {
        let local = SocketAddr::from(([192, 0, 2, 1], 80));
        let peer = |port| SocketAddr::from(([192, 0, 2, 2], port));
        let first = isn(Time::ZERO, local, peer(1000));
        let later = isn(Time::ZERO + Duration::from_secs(1), local, peer(1000));
        assert_eq!(later.wrapping_sub(first), 250_000);
        assert_ne!(first, isn(Time::ZERO, local, peer(1001)));
    }
}
