//! Real time: the monotonic clock as the engine's [`Time`].

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::LazyLock;

use bentpipe_engine::units::Time;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The monotonic clock, counted from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What the system's clock showed then, in nanoseconds.
    epoch: u64,
}

impl Clock {
    /// A clock that stands at [`Time::ZERO`] now.
    pub fn start() -> Self {
        Clock { epoch: monotonic() }
    }

    /// The present.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.epoch)
    }

    /// An instant as the system's monotonic clock says it, for its timers.
    pub(crate) fn to_system(self, at: Time) -> TimeSpec {
        let nanos = self.epoch.saturating_add(at.as_nanos());
        TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
    }
}

/// Nanoseconds of the system's monotonic clock.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has a monotonic clock");
    // Counted from the machine's start: 2^64 nanoseconds are 584 years.
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
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
    use bentpipe_engine::units::Duration;

    use super::*;

    #[test]
    fn the_clock_begins_at_zero_and_does_not_go_back() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first < Time::ZERO + Duration::from_secs(1), "{first:?}");
        assert!(clock.now() >= first);
        let (early, late) = (clock.to_system(Time::ZERO), clock.to_system(Time::from_nanos(1_500_000_000)));
        assert_eq!(late - early, TimeSpec::new(1, 500_000_000));
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
