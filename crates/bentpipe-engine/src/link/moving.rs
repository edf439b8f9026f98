//! A line whose rate changes with time. The rate is integrated, so a packet may be sent at several rates.
//!
//! A packet ends at the first tick by which the line could have sent all its bits since the packet began. With a
//! constant rate, this is the time that [`TransmitClock`](crate::units::TransmitClock) computes.

use super::course::Course;
use super::track::Piece;
use crate::units::{Duration, Time};

/// A line that follows a course of rates, in bits per second.
#[derive(Clone, Debug)]
pub(super) struct MovingLine {
    rates: Course,
    period: Option<(Duration, u128)>,
}

/// Twice the amount sent in a piece between its instants `from` and `to`, in bits per second times ticks.
fn twice_sent(piece: &Piece, from: Time, to: Time) -> u128 {
    let ticks = |time: Time| u128::from(time.saturating_since(piece.start).as_ticks());
    let (x0, x1) = (ticks(from), ticks(to));
    let level = 2 * u128::from(piece.from) * (x1 - x0);
    if piece.from == piece.to {
        return level;
    }
    // The rest is a triangle, slope times (x1² - x0²), in fractions of 1/65536 tick, because it is divided by the
    // length. In a ramp of more than twelve days the squares leave room for fewer bits of a fraction.
    let squares = (x1 - x0) * (x1 + x0);
    let bits = squares.leading_zeros().min(16);
    let grown = (squares << bits) / ticks(piece.end);
    let difference = u128::from(piece.to.abs_diff(piece.from));
    let rest = (difference * grown) >> bits;
    if piece.to > piece.from { level + rest } else { level.saturating_sub(rest) }
}

/// The first instant after `from` by which a piece has sent this amount; at most the end of the piece.
fn reached(piece: &Piece, from: Time, twice: u128) -> Time {
    if piece.from == piece.to {
        let ticks = twice.div_ceil(2 * u128::from(piece.from));
        return from + Duration::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX));
    }
    let (mut low, mut high) = (from.as_ticks(), piece.end.as_ticks());
    while low < high {
        let middle = low + (high - low) / 2;
        if twice_sent(piece, from, Time::from_ticks(middle)) >= twice { high = middle } else { low = middle + 1 }
    }
    Time::from_ticks(high)
}

impl MovingLine {
    pub(super) fn new(rates: Course) -> Self {
        MovingLine { period: rates.period(), rates }
    }

    /// Bytes that the line can send from the start of the run to `end`.
    pub(super) fn capacity(&mut self, end: Time) -> f64 {
        let (mut at, mut twice) = (Time::ZERO, 0);
        if let Some((period, of_period)) = self.period {
            let periods = end.as_ticks() / period.as_ticks();
            twice = of_period * u128::from(periods);
            at += period.saturating_mul(periods);
        }
        while at < end {
            let piece = self.rates.piece(at);
            let to = piece.end.min(end);
            twice += twice_sent(&piece, at, to);
            at = to;
        }
        twice as f64 / 16.0 / Duration::from_secs(1).as_ticks() as f64
    }

    /// The start and duration of a packet's transmission, if the line is free from `free` on. It begins when the rate
    /// is above zero.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit(&mut self, free: Time, bytes: u64) -> (Time, Duration) {
        let mut piece = self.rates.piece(free);
        let mut begun = free;
        while piece.from == 0 && piece.to == 0 && piece.end < Time::NEVER {
            begun = piece.end;
            piece = self.rates.piece(begun);
        }
        let mut twice = 2 * 8 * u128::from(bytes) * u128::from(Duration::from_secs(1).as_ticks());
        if twice == 0 {
            return (begun, Duration::ZERO);
        }
        let mut at = begun;
        if let Some((period, of_period)) = self.period {
            // Whole periods send the same amount wherever they begin. One tick less, so that the end does not fall into
            // a later standstill.
            let periods = (twice - 1) / of_period.max(1);
            twice -= periods * of_period;
            at += period.saturating_mul(u64::try_from(periods).unwrap_or(u64::MAX));
        }
        loop {
            if at == Time::NEVER {
                return (begun, Duration::MAX);
            }
            let piece = self.rates.piece(at);
            let all = if piece.end == Time::NEVER { u128::MAX } else { twice_sent(&piece, at, piece.end) };
            if all >= twice && piece.from.max(piece.to) > 0 {
                return (begun, reached(&piece, at, twice).saturating_since(begun));
            }
            twice -= all.min(twice);
            at = piece.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::super::track::{Change, Track};
    use super::*;
    use crate::units::{Rate, TransmitClock};
    use proptest::prelude::*;

    fn line(initial: u64, changes: &[(u64, u64, u64)], period: Option<u64>) -> MovingLine {
        let change = |&(at, over, value): &(u64, u64, u64)| Change {
            at: Duration::from_millis(at),
            over: Duration::from_millis(over),
            value,
        };
        let changes = changes.iter().map(change).collect();
        let track = Track::new(initial, changes, period.map(Duration::from_millis)).expect("in order");
        MovingLine::new(Course::of_track(Arc::new(track)))
    }

    #[test]
    fn capacity_is_the_integral_of_the_rate() {
        // 8 kbit/s for 1 s, none for 1 s, then a ramp from 0 to 16 kbit/s in 2 s, again after 4 s.
        let mut line = line(8_000, &[(1000, 0, 0), (2000, 2000, 16_000)], Some(4000));
        let at = |secs: f64| Time::ZERO + Duration::from_secs_f64_rounded(secs);
        let bytes = [0.5, 1.5, 3.0, 4.0, 4.5, 400_000.0].map(|secs| line.capacity(at(secs)).round());
        assert_eq!(bytes, [500.0, 1000.0, 1500.0, 3000.0, 3500.0, 3000.0 * 100_000.0]);
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    const MBIT: u64 = 1_000_000;

    #[test]
    fn a_rate_steps_in_the_middle_of_a_packet() {
        // 1000 B are 8000 bits: in 4 ms at 1 Mbit/s, 4000 are sent; the rest takes 2 ms at 2 Mbit/s.
        let mut line = line(MBIT, &[(4, 0, 2 * MBIT)], None);
        assert_eq!(line.transmit(at(0), 1000), (at(0), ms(6)));
        assert_eq!(line.transmit(at(6), 1000), (at(6), ms(4)));
    }

    #[test]
    fn a_packet_waits_while_the_line_stands_still() {
        // Nothing is sent from 4 ms to 14 ms. A packet that begins before that sends 4000 bits, waits, and sends the
        // rest.
        let mut line = line(MBIT, &[(4, 0, 0), (14, 0, MBIT)], None);
        assert_eq!(line.transmit(at(0), 1000), (at(0), ms(18)));
        assert_eq!(line.transmit(at(5), 1000), (at(14), ms(8)), "it begins when the line moves again");
        assert_eq!(line.transmit(at(0), 500), (at(0), ms(4)), "and ends before the standstill if it can");
    }

    #[test]
    fn a_ramp_sends_the_area_below_it() {
        // From 0 to 2 Mbit/s in 8 ms: 8000 bits. Half of them after 8 / sqrt(2) ms = 5.656854 ms.
        let mut line = line(0, &[(0, 8, 2 * MBIT)], None);
        assert_eq!(line.transmit(at(0), 1000), (at(0), ms(8)));
        let half = line.transmit(at(0), 500).1.as_nanos();
        assert!(half.abs_diff(5_656_854) <= 1, "{half}");
        // Downwards from 2 to 0 Mbit/s, the first half is sent after 8 - 5.656854 ms.
        let mut falling = self::line(2 * MBIT, &[(0, 8, 0), (9, 0, MBIT)], None);
        let half = falling.transmit(at(0), 500).1.as_nanos();
        assert!(half.abs_diff(2_343_146) <= 1, "{half}");
    }

    /// A ramp of 1000 hours from 0 to 10 Mbit/s has sent a quarter of the area after half of the time. A packet of 1000
    /// bytes takes 1.6 ms there, at 5 Mbit/s. Ticks squared have more than 112 bits by then.
    #[test]
    fn a_ramp_may_take_weeks() {
        let hour = 3_600_000;
        let mut line = line(0, &[(0, 1000 * hour, 10 * MBIT)], None);
        let whole = 1000.0 * 3600.0 * 5e6 / 8.0;
        let sent = [500, 1000].map(|hours| line.capacity(at(hours * hour)) / whole);
        assert!((sent[0] - 0.25).abs() < 1e-6 && (sent[1] - 1.0).abs() < 1e-6, "{sent:?}");
        let taken = line.transmit(at(500 * hour), 1000).1.as_nanos();
        assert!(taken.abs_diff(1_600_000) <= 1, "{taken}");
    }

    #[test]
    fn periods_are_skipped_and_not_walked() {
        // 1 Mbit/s for 1 ms in every 10: 1000 bits per period. 8000 bits end with the eighth millisecond of sending.
        let mut line = line(MBIT, &[(1, 0, 0)], Some(10));
        assert_eq!(line.transmit(at(0), 1000), (at(0), ms(71)));
        assert_eq!(line.transmit(at(3), 125), (at(10), ms(1)));
        // 2 GB at 100 bit/s on average: 1.7e8 s, in 1.7e10 periods.
        let mut slow = self::line(1000, &[(1, 0, 0)], Some(10));
        assert_eq!(slow.transmit(at(0), 2_000_000_000).1.as_secs_f64().round(), 160_000_000.0);
    }

    proptest! {
        /// A constant rate sends like a clock, even if it is written as many steps.
        #[test]
        fn a_constant_rate_is_a_clock(rate in 1000u64..2_000_000_000, bytes in 1u32..10_000, from in 0u64..100, over in 0u64..2) {
            let steps = [(3, over, rate), (17, 0, rate), (18, 2, rate)];
            let mut clock = TransmitClock::new(Rate::from_bits_per_second(rate).expect("not zero"));
            for period in [None, Some(20), Some(41)] {
                let (begun, taken) = line(rate, &steps, period).transmit(at(from), bytes.into());
                prop_assert_eq!((begun, taken), (at(from), clock.transmit(bytes)));
            }
        }

        /// Packet by packet or in one piece, the line sends the same amount, except for the tick by which each end is
        /// rounded up.
        #[test]
        fn the_rate_is_integrated(steps in prop::collection::vec((1u64..40, 0u64..20, 0u64..50_000_000), 1..8), sizes in prop::collection::vec(1u32..3000, 1..30)) {
            let (mut now, mut changes) = (0, Vec::new());
            for (gap, over, value) in steps {
                changes.push((now + gap, over, value));
                now += gap + over;
            }
            let mut line = line(10 * MBIT, &changes, Some(now + 5));
            let mut free = Time::ZERO;
            for &size in &sizes {
                let (begun, taken) = line.transmit(free, size.into());
                prop_assert!(begun >= free);
                free = begun + taken;
            }
            let total: u32 = sizes.iter().sum();
            let (begun, taken) = line.transmit(Time::ZERO, total.into());
            let whole = begun + taken;
            prop_assert!(free >= whole);
            // A tick lost before a slow part costs at most its share at the fastest rate, so the amounts sent are
            // compared instead.
            let (_, rest) = line.transmit(whole, sizes.len() as u64);
            prop_assert!(free <= whole + rest + Duration::from_ticks(sizes.len() as u64), "{free:?} {whole:?} {rest:?}");
        }
    }
}
