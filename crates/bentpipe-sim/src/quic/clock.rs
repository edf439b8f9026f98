//! Virtual time for quinn, which uses [`Instant`]s.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bentpipe_engine::units::Time;

/// The instant that stands for time 0. Any instant will do, since quinn only computes differences.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// The instant of a time in whole nanoseconds, rounded down: a timer of quinn expires when it is due, not before.
pub(super) fn instant(time: Time) -> Instant {
    origin() + Duration::from_nanos(time.as_nanos())
}

/// The time of an instant.
pub(super) fn time(instant: Instant) -> Time {
    span(instant.saturating_duration_since(origin())).map_or(Time::NEVER, |span| Time::ZERO + span)
}

/// A duration from quinn; `None` if it is longer than any run.
fn span(duration: Duration) -> Option<bentpipe_engine::units::Duration> {
    /// A run lasts at most nine years (2^64 ticks of 1/64 ns).
    const LONGEST: u128 = (u64::MAX / 64) as u128;
    let nanos = duration.as_nanos();
    (nanos < LONGEST).then(|| bentpipe_engine::units::Duration::from_nanos(nanos as u64))
}

/// A duration from quinn, limited to the longest run.
pub(super) fn duration(duration: Duration) -> bentpipe_engine::units::Duration {
    span(duration).unwrap_or(bentpipe_engine::units::Duration::from_nanos(u64::MAX / 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_nanoseconds_are_kept() {
        let at = Time::from_nanos(123_456_789_012);
        assert_eq!(time(instant(at)), at);
        let within = Time::from_ticks(at.as_ticks() + 63);
        assert_eq!(time(instant(within)), at, "rounded down");
    }
}
