//! Instants and spans of time, in ticks of 1/64 ns.
//!
//! Ticks are fine enough that the time of a packet on the line can be a constant: rounded up to a tick, it is accurate
//! to one part in a million from 16 µs on, and no rounding error is carried from packet to packet. Sums of such
//! constants are then equal whenever they are equal in real numbers (see ARCHITECTURE.md, "Decisions"). 2^64 ticks are
//! nine years.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Ticks in a nanosecond.
const TICKS: u64 = 64;

/// An instant: ticks since the driver's epoch. The engine has no clock; the driver passes the time in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in ticks. Values that do not fit become [`Duration::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Time = Time(0);
    /// Later than every reachable instant: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos.saturating_mul(TICKS))
    }

    /// Nanoseconds since the epoch, rounded down.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0 / TICKS
    }

    /// Nanoseconds since the epoch, rounded up: for a driver that must not wake before the instant.
    #[inline]
    pub const fn as_nanos_ceil(self) -> u64 {
        self.0.div_ceil(TICKS)
    }

    /// The instant `ticks` ticks after the epoch.
    #[inline]
    pub const fn from_ticks(ticks: u64) -> Self {
        Time(ticks)
    }

    /// Ticks since the epoch.
    #[inline]
    pub const fn as_ticks(self) -> u64 {
        self.0
    }

    /// A number for each instant, used as index of noise: [`Time::as_nanos`] for whole nanoseconds.
    #[inline]
    pub const fn index(self) -> u64 {
        self.0.rotate_right(TICKS.ilog2())
    }

    /// Seconds since the epoch, for display and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / (1e9 * TICKS as f64)
    }

    /// The instant `span` earlier, or the epoch if that is later.
    #[inline]
    pub const fn saturating_sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The earlier of two optional instants; `None` is never.
    #[inline]
    pub fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
        // Branch-free, because each poll of a connection calls it.
        let earlier = a.unwrap_or(Time::NEVER).min(b.unwrap_or(Time::NEVER));
        (a.is_some() | b.is_some()).then_some(earlier)
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos.saturating_mul(TICKS))
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros.saturating_mul(1_000 * TICKS))
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis.saturating_mul(1_000_000 * TICKS))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs.saturating_mul(1_000_000_000 * TICKS))
    }

    /// A span of `secs` seconds, rounded to the nearest tick; negative and NaN become zero.
    pub fn from_secs_f64_rounded(secs: f64) -> Self {
        Duration((secs * (1e9 * TICKS as f64) + 0.5) as u64)
    }

    /// The span in nanoseconds, rounded down.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0 / TICKS
    }

    /// The span in nanoseconds, rounded up: for a driver that must not wake too early.
    #[inline]
    pub const fn as_nanos_ceil(self) -> u64 {
        self.0.div_ceil(TICKS)
    }

    /// A span of `ticks` ticks.
    #[inline]
    pub const fn from_ticks(ticks: u64) -> Self {
        Duration(ticks)
    }

    /// The span in ticks.
    #[inline]
    pub const fn as_ticks(self) -> u64 {
        self.0
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / (1e9 * TICKS as f64)
    }

    /// The span in milliseconds, for display.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / (1e6 * TICKS as f64)
    }

    /// The span times `factor`, at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Duration(self.0.saturating_mul(factor))
    }

    /// The span divided by `divisor`, rounded down.
    pub const fn div_floor(self, divisor: u64) -> Self {
        Duration(self.0 / divisor)
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        debug_assert!(self >= earlier, "a span of time cannot be negative");
        Duration(self.0.wrapping_sub(earlier.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.as_nanos() / 1_000_000_000, self.as_nanos() % 1_000_000_000)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.as_nanos() / 1_000_000_000, self.as_nanos() % 1_000_000_000)
    }
}
