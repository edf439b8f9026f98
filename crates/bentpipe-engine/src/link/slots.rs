//! A line that sends in bursts of a fixed frame: time division multiple access (TDMA), or one uplink or downlink of
//! satellite-switched TDMA (SS-TDMA).
//!
//! The station sends at the burst rate during its bursts and waits in between. Its terminal handles a stream of bits,
//! like ACTS' digital terminals with SONET frames (`acts` paper, section 2), so a packet may start in one burst and end
//! in a later one. Frames start at the driver's epoch. Guard times, preambles and code bits are not modelled: the burst
//! rate is the user's rate, and the length of a burst is that of the user's bits.
//!
//! Instants are computed in air time, which advances only during bursts.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::units::{Duration, Rate, Time, TransmitClock};

/// Why a list of bursts is not a valid schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSchedule {
    /// There are no bursts.
    Empty,
    /// The burst with this index, from 0, has no length.
    NoLength(usize),
    /// The burst with this index, from 0, starts before the previous one has ended.
    Overlaps(usize),
    /// The last burst ends after the frame.
    TooLong,
}

impl core::fmt::Display for BadSchedule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BadSchedule::Empty => f.write_str("a frame has no bursts"),
            BadSchedule::NoLength(n) => write!(f, "burst {n} has no length"),
            BadSchedule::Overlaps(n) => write!(f, "burst {n} begins before the previous one ends"),
            BadSchedule::TooLong => f.write_str("the last burst ends after the frame"),
        }
    }
}

impl core::error::Error for BadSchedule {}

/// The bursts of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstSchedule {
    frame: Duration,
    bursts: Vec<(Duration, Duration)>,
    rate: Rate,
    /// Air time per frame.
    on_air: u64,
}

impl BurstSchedule {
    /// A schedule with a repeating frame and its bursts in order: start within the frame, and length. `rate` is the
    /// line's rate during a burst.
    ///
    /// # Errors
    /// Returns [`BadSchedule`] if the bursts are not a valid schedule.
    pub fn new(frame: Duration, bursts: Vec<(Duration, Duration)>, rate: Rate) -> Result<BurstSchedule, BadSchedule> {
        let mut end = Duration::ZERO;
        for (n, &(start, length)) in bursts.iter().enumerate() {
            if length == Duration::ZERO {
                return Err(BadSchedule::NoLength(n));
            }
            if start < end {
                return Err(BadSchedule::Overlaps(n));
            }
            end = start + length;
        }
        if bursts.is_empty() {
            return Err(BadSchedule::Empty);
        }
        if end > frame {
            return Err(BadSchedule::TooLong);
        }
        let on_air = bursts.iter().map(|(_, length)| length.as_ticks()).sum();
        Ok(BurstSchedule { frame, bursts, rate, on_air })
    }

    /// Length of the frame.
    pub fn frame(&self) -> Duration {
        self.frame
    }

    /// The bursts: start within the frame, and length.
    pub fn bursts(&self) -> &[(Duration, Duration)] {
        &self.bursts
    }

    /// Rate in a burst.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Mean rate, rounded down to bits per second; at least 1 bit/s.
    pub fn mean(&self) -> Rate {
        let bits =
            u128::from(self.rate.bits_per_second()) * u128::from(self.on_air) / u128::from(self.frame.as_ticks());
        Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX).max(1)).expect("not zero")
    }

    /// True if the bursts of two schedules with the same frame length overlap.
    pub fn collides(&self, other: &BurstSchedule) -> bool {
        self.bursts.iter().any(|&(start, length)| {
            other.bursts.iter().any(|&(begin, span)| start < begin + span && begin < start + length)
        })
    }

    /// Bytes that the line can send in the bursts before `end`.
    pub(super) fn capacity(&self, end: Time) -> f64 {
        let on_air = Duration::from_ticks(self.air_until(end)).as_secs_f64();
        self.rate.bits_per_second() as f64 / 8.0 * on_air
    }

    /// Air time before `at`, in ticks.
    fn air_until(&self, at: Time) -> u64 {
        let frame = self.frame.as_ticks();
        let (frames, within) = (at.as_ticks() / frame, at.as_ticks() % frame);
        let partly =
            self.bursts.iter().map(|(start, length)| within.saturating_sub(start.as_ticks()).min(length.as_ticks()));
        frames.saturating_mul(self.on_air).saturating_add(partly.sum())
    }

    /// The first instant with this much air time before it. If `then` is set, the last one, which is when sending
    /// starts.
    fn instant(&self, air: u64, then: bool) -> Time {
        // A transmission that ends with a burst ends in that burst's frame; one that starts then starts with the next
        // burst.
        let (mut frames, mut rest) = (air / self.on_air, air % self.on_air);
        if rest == 0 && frames > 0 && !then {
            (frames, rest) = (frames - 1, self.on_air);
        }
        for &(start, length) in &self.bursts {
            let length = length.as_ticks();
            if rest < length || rest == length && !then {
                let base = frames.saturating_mul(self.frame.as_ticks());
                return Time::from_ticks(base.saturating_add(start.as_ticks() + rest));
            }
            rest -= length;
        }
        unreachable!("less than a frame's air time is left")
    }
}

/// A line that follows a schedule.
#[derive(Clone, Debug)]
pub(super) struct BurstLine {
    schedule: Arc<BurstSchedule>,
    clock: TransmitClock,
}

impl BurstLine {
    pub(super) fn new(schedule: Arc<BurstSchedule>) -> Self {
        let clock = TransmitClock::new(schedule.rate);
        BurstLine { schedule, clock }
    }

    /// The start and duration of a packet's transmission, if the line is free from `free` on.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit(&mut self, free: Time, bytes: u32) -> (Time, Duration) {
        let air = self.schedule.air_until(free);
        let begun = self.schedule.instant(air, true);
        let taken = self.clock.transmit(bytes).as_ticks();
        if taken == 0 {
            return (begun, Duration::ZERO);
        }
        (begun, self.schedule.instant(air.saturating_add(taken), false).saturating_since(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// A frame of 1 ms with bursts of 100 us at 0 and 200 us at 500; 80 Mbit/s, so that 1000 B take 100 us.
    fn schedule() -> BurstSchedule {
        let rate = Rate::from_bits_per_second(80_000_000).expect("a rate");
        BurstSchedule::new(us(1000), vec![(us(0), us(100)), (us(500), us(200))], rate).expect("a schedule")
    }

    #[test]
    fn packets_wait_for_their_burst_and_may_span_two() {
        let mut line = BurstLine::new(Arc::new(schedule()));
        assert_eq!(line.transmit(at(0), 1000), (at(0), us(100)), "a whole burst, which ends with it");
        assert_eq!(line.transmit(at(100), 500), (at(500), us(50)), "the burst is over: the next one");
        // 2500 B take 250 us: 150 us until 700, then 100 us from 1000 on.
        assert_eq!(line.transmit(at(550), 2500), (at(550), us(550)));
        assert_eq!(line.transmit(at(1150), 100), (at(1500), us(10)), "between bursts nobody sends");
        assert_eq!(line.transmit(at(1510), 0), (at(1510), Duration::ZERO));
    }

    /// Compares with a walk over every microsecond.
    #[test]
    fn instants_are_those_of_a_walk() {
        let schedule = schedule();
        let sends = |micros: u64| matches!(micros % 1000, 0..100 | 500..700);
        for from in 0..2200 {
            let air = (0..from).filter(|&micros| sends(micros)).count() as u64;
            assert_eq!(schedule.air_until(at(from)), us(air).as_ticks(), "{from}");
            let begun = (from..).find(|&micros| sends(micros)).expect("it repeats");
            assert_eq!(schedule.instant(us(air).as_ticks(), true), at(begun), "{from}");
        }
    }

    /// 80 Mbit/s are 10 B/us: half of the first burst, and all of it with half of the second one of a later frame.
    #[test]
    fn capacity_is_that_of_the_bursts() {
        assert_eq!([50, 400, 3600].map(|micros| schedule().capacity(at(micros)).round()), [500.0, 1000.0, 11_000.0]);
    }

    #[test]
    fn the_mean_is_the_share_on_the_air() {
        assert_eq!(schedule().mean().bits_per_second(), 24_000_000);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        let rate = Rate::from_bits_per_second(1_000_000).expect("a rate");
        let of = |bursts| BurstSchedule::new(us(1000), bursts, rate).map(|_| ());
        assert_eq!(of(vec![]), Err(BadSchedule::Empty));
        assert_eq!(of(vec![(us(0), us(0))]), Err(BadSchedule::NoLength(0)));
        assert_eq!(of(vec![(us(0), us(100)), (us(99), us(100))]), Err(BadSchedule::Overlaps(1)));
        assert_eq!(of(vec![(us(950), us(51))]), Err(BadSchedule::TooLong));
        assert_eq!(of(vec![(us(0), us(100)), (us(100), us(900))]), Ok(()));
    }

    #[test]
    fn bursts_at_one_instant_collide() {
        let rate = Rate::from_bits_per_second(1_000_000).expect("a rate");
        let of = |start, length| BurstSchedule::new(us(1000), vec![(us(start), us(length))], rate).expect("a schedule");
        assert!(of(0, 101).collides(&of(100, 10)) && of(100, 10).collides(&of(0, 101)));
        assert!(!of(0, 100).collides(&of(100, 10)));
    }
}
