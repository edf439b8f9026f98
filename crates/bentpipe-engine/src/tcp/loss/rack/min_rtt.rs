//! The minimum round trip, over the whole connection or over the last minutes.

use alloc::boxed::Box;
use core::cmp::Reverse;

use crate::tcp::windowed::MaxFilter;
use crate::units::{Duration, Time};

/// A window is divided into this many parts. The minimum covers these and the current part.
const PARTS: u64 = 30;

/// The minimum round trip.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    min: Option<Duration>,
    /// The minimum of the current part of the window, and when the part ends; [`Time::NEVER`] without a window.
    here: Duration,
    ends: Time,
    /// Length of a part.
    part: Duration,
    /// The minima of earlier parts.
    earlier: Option<Box<MaxFilter<Reverse<Duration>>>>,
}

impl Default for MinRtt {
    /// A minimum over the whole connection.
    fn default() -> Self {
        MinRtt { min: None, here: Duration::MAX, ends: Time::NEVER, part: Duration::ZERO, earlier: None }
    }
}

impl MinRtt {
    /// A minimum over the last `window`, and up to a thirtieth more.
    pub(super) fn of_last(window: Duration) -> Self {
        let part = window.div_floor(PARTS).max(Duration::from_nanos(1));
        MinRtt { ends: Time::ZERO, part, ..MinRtt::default() }
    }

    /// The minimum; `None` before the first round trip.
    #[inline(always)]
    pub(super) fn get(&self) -> Option<Duration> {
        self.min
    }

    /// Takes a round trip that ends now.
    #[inline(always)]
    pub(super) fn take(&mut self, rtt: Duration, now: Time) {
        if self.ends <= now {
            self.begin_part(now);
        }
        self.here = self.here.min(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    #[cold]
    fn begin_part(&mut self, now: Time) {
        let length = self.part.as_ticks();
        let (before, number) = ((self.ends.as_ticks() / length).saturating_sub(1), now.as_ticks() / length);
        let here = core::mem::replace(&mut self.here, Duration::MAX);
        if here < Duration::MAX {
            let earlier = self.earlier.get_or_insert_with(|| Box::new(MaxFilter::new(PARTS)));
            earlier.update(before, Reverse(here));
            earlier.begin(number);
            self.min = earlier.greatest().map(|Reverse(min)| min);
        }
        self.ends = Time::ZERO + Duration::from_ticks((number + 1).saturating_mul(length));
    }

    /// Bytes of heap memory.
    pub(super) fn memory(&self) -> usize {
        self.earlier.as_ref().map_or(0, |earlier| size_of_val(&**earlier) + earlier.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// A round trip of 20 ms until 99 s, then 50 ms, and once 40 ms at 350 s. The 20 ms count until 300 s after their
    /// last sample, and up to 10 s more; then the 40 ms do.
    #[test]
    fn an_old_round_trip_is_forgotten() {
        let rtt = |second| {
            ms(if second < 100 {
                20
            } else if second == 350 {
                40
            } else {
                50
            })
        };
        let (mut last, mut ever) = (MinRtt::of_last(Duration::from_secs(300)), MinRtt::default());
        let mut seen = Vec::new();
        for second in 0..1000 {
            last.take(rtt(second), at(second));
            ever.take(rtt(second), at(second));
            assert_eq!(ever.get(), Some(ms(20)));
            if seen.last().is_none_or(|&(_, min)| Some(min) != last.get()) {
                seen.extend(last.get().map(|min| (second, min)));
            }
        }
        assert_eq!(seen, [(0, ms(20)), (400, ms(40)), (660, ms(50))]);
        assert!(last.memory() < 1000 && ever.memory() == 0, "{}", last.memory());
    }

    /// A pause longer than the window discards everything before it.
    #[test]
    fn a_pause_leaves_nothing() {
        let mut last = MinRtt::of_last(Duration::from_secs(300));
        last.take(ms(20), at(1));
        last.take(ms(50), at(320));
        assert_eq!(last.get(), Some(ms(50)));
    }
}
