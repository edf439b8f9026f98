//! Real time: the monotonic clock as the engine's [`Time`].

use bentpipe_engine::units::Time;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The monotonic clock, counted from the creation of this value.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The system's clock at the creation, in nanoseconds.
    epoch: u64,
}

impl Clock {
    /// A clock that starts at [`Time::ZERO`] now.
    pub fn start() -> Self {
        Clock { epoch: monotonic() }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.epoch)
    }

    /// Converts a time to the system's monotonic clock, for the system's timers.
    pub(crate) fn to_system(self, at: Time) -> TimeSpec {
        let nanos = self.epoch.saturating_add(at.as_nanos_ceil());
        TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
    }
}

/// Nanoseconds of the system's monotonic clock.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has a monotonic clock");
    // Counted from boot: 2^64 nanoseconds are 584 years.
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
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
}
