//! SEARCH (draft-chung-ccwg-search, version 3): slow start ends when the amount delivered no longer doubles per round
//! trip.
//!
//! Deliveries are summed in bins of 0.35 of the first round trip. The last ten bins are compared with the ten bins one
//! round trip earlier: in slow start the sum doubles. If 35 % of the expected amount is missing, the path is full and
//! has been so for about two round trips. The window then returns what it has grown by since. Deliveries are counted by
//! cumulative acknowledgements.

use crate::tcp::congestion::AckSample;
use crate::units::{Duration, Time};

/// Number of bins in a window, and number of earlier bins kept.
const WINDOW: u64 = 10;
const EXTRA: u64 = 15;
const BINS: usize = (WINDOW + EXTRA) as usize;
/// The width of a bin, in hundredths of the first round trip: ten bins cover 3.5 round trips.
const WIDTH: u64 = 35;
/// The share of the expected deliveries that is missing when the path is full.
const THRESH: f64 = 0.35;

/// The state, from the first round trip on.
#[derive(Clone, Debug)]
struct Bins {
    bytes: [u64; BINS],
    width: Duration,
    /// The first round trip.
    rtt: Duration,
    /// When the current bin ends, the number of complete bins, and the bytes acknowledged by then.
    end: Time,
    full: u64,
    acked: u64,
}

/// The search for the end of slow start by deliveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    bins: Option<Bins>,
}

impl Deliveries {
    /// Takes an ACK of new data in slow start. If the path is full, returns the number of bytes by which the window is
    /// too large.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> Option<u64> {
        let rtt = ack.rtt?;
        let bins = self.bins.get_or_insert_with(|| Bins::new(rtt, ack));
        if ack.now <= bins.end {
            return None;
        }
        bins.update(ack);
        bins.is_full(rtt).then(|| bins.overshoot())
    }
}

impl Bins {
    fn new(rtt: Duration, ack: &AckSample) -> Self {
        let width = Duration::from_ticks((rtt.as_ticks() * WIDTH / 100).max(1));
        Bins { bytes: [0; BINS], width, rtt, end: ack.now + width, full: 0, acked: ack.snd_una }
    }

    /// Completes the bins that have ended.
    fn update(&mut self, ack: &AckSample) {
        let late = ack.now.saturating_since(self.end).as_ticks();
        let passed = late / self.width.as_ticks() + 1;
        self.end += self.width.saturating_mul(passed);
        for n in self.full..self.full + passed.min(BINS as u64) {
            self.bytes[n as usize % BINS] = 0;
        }
        self.full += passed;
        self.bytes[(self.full - 1) as usize % BINS] = ack.snd_una - self.acked;
        self.acked = ack.snd_una;
    }

    fn bin(&self, n: u64) -> f64 {
        self.bytes[n as usize % BINS] as f64
    }

    /// The sum of the bins after `from` up to `to`, moved back by a fraction of a bin.
    fn sum(&self, from: u64, to: u64, fraction: f64) -> f64 {
        let whole: f64 = (from + 1..to).map(|n| self.bin(n)).sum();
        whole + self.bin(from) * fraction + self.bin(to) * (1.0 - fraction)
    }

    /// True if deliveries have not doubled within `rtt`.
    fn is_full(&self, rtt: Duration) -> bool {
        let (ticks, width) = (rtt.as_ticks(), self.width.as_ticks());
        let last = self.full - 1;
        let back = ticks / width;
        let Some(before) = last.checked_sub(back).filter(|before| *before >= WINDOW && back < EXTRA) else {
            return false;
        };
        let current = self.sum(last - WINDOW, last, 0.0);
        let expected = 2.0 * self.sum(before - WINDOW, before, (ticks % width) as f64 / width as f64);
        expected > 0.0 && (expected - current) / expected >= THRESH
    }

    /// The amount delivered within the last two round trips.
    fn overshoot(&self) -> u64 {
        let last = self.full - 1;
        let back = 2 * self.rtt.as_ticks() / self.width.as_ticks();
        self.sum(last.saturating_sub(back), last, 0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Generates ACKs over a path of 100 ms that delivers `rate(t)` segments per millisecond, with `t` in ms since the
    /// start. Returns the millisecond at which slow start ended, and the overshoot in segments.
    fn search(rate: impl Fn(u64) -> f64, limit: u64) -> Option<(u64, u64)> {
        let (mut deliveries, mut delivered, mut una) = (Deliveries::default(), 0.0, 0);
        (0..limit).find_map(|ms| {
            delivered += rate(ms);
            let now = Time::from_nanos((100 + ms) * 1_000_000);
            let segments = delivered as u64 - una / MSS;
            una += segments * MSS;
            let rtt = Some(Duration::from_millis(100));
            let ack = AckSample { now, acked: segments * MSS, snd_una: una, rtt, ..AckSample::default() };
            (segments > 0).then(|| deliveries.on_ack(&ack)).flatten().map(|overshoot| (ms, overshoot / MSS))
        })
    }

    /// A rate that doubles every 100 ms: the amount delivered in half a round trip fits 2^(t/100).
    fn doubling(ms: u64) -> f64 {
        libm::exp2(ms as f64 / 100.0) / 10.0
    }

    /// While deliveries double, nothing is missing.
    #[test]
    fn growth_goes_on_while_deliveries_double() {
        assert_eq!(search(doubling, 1500), None);
    }

    /// From 600 ms on, the path delivers 6.4 segments per millisecond. The missing share t ms later is 1 - (A + 6.4 t)
    /// / (2 B): with windows of 350 ms it exceeds 35 % after about two round trips (draft §3). The amount delivered
    /// within two round trips is then 200 ms of 6.4 segments: 1280, less what the bins of 35 ms cut off, because 2 *
    /// 100 / 35 is 5 whole bins.
    #[test]
    fn a_path_that_is_full_is_seen_after_two_round_trips() {
        let (ms, overshoot) = search(|ms| doubling(ms.min(600)), 2000).expect("it is seen");
        assert!((700..=900).contains(&ms), "{ms} ms");
        assert!((1000..=1280).contains(&overshoot), "{overshoot}");
    }

    /// The bins go back 14 bins beyond the ten compared. The first round trip is 100 ms, a bin 35 ms: a later one of 510 ms is 14 bins, and
    /// a constant rate is found; one of 540 ms is 15, and the bins of then have been used again.
    #[test]
    fn a_round_trip_longer_than_the_record_says_nothing() {
        for (later, found) in [(510, true), (540, false)] {
            let mut deliveries = Deliveries::default();
            let full = (0..3000).any(|ms| {
                let rtt = Some(Duration::from_millis(if ms == 0 { 100 } else { later }));
                let now = Time::from_nanos((100 + ms) * 1_000_000);
                deliveries.on_ack(&AckSample { now, snd_una: ms * MSS, rtt, ..AckSample::default() }).is_some()
            });
            assert_eq!(full, found, "{later} ms");
        }
    }

    /// A bin lasts until after its end: the ACK at its end still belongs to it.
    #[test]
    fn a_bin_includes_its_end() {
        let ack = |ms: u64, una: u64| AckSample {
            now: Time::from_nanos(ms * 1_000_000),
            snd_una: una,
            rtt: Some(Duration::from_millis(100)),
            ..AckSample::default()
        };
        let mut deliveries = Deliveries::default();
        for (ms, una, full) in [(100, 0, 0), (135, 1000, 0), (136, 2000, 1)] {
            deliveries.on_ack(&ack(ms, una));
            assert_eq!(deliveries.bins.as_ref().map(|bins| bins.full), Some(full), "{ms} ms");
        }
        assert_eq!(deliveries.bins.map(|bins| bins.bytes[0]), Some(2000));
    }

    /// A silence completes several bins of 35 ms at once; what has arrived counts in the last of them.
    #[test]
    fn a_silence_completes_several_bins() {
        let mut deliveries = Deliveries::default();
        for (ms, una) in [(100, 0), (136, 1000), (240, 5000)] {
            let (now, rtt) = (Time::from_nanos(ms * 1_000_000), Some(Duration::from_millis(100)));
            deliveries.on_ack(&AckSample { now, snd_una: una, rtt, ..AckSample::default() });
        }
        // They end at 135, 170, 205, 240 and 275 ms.
        let bins = deliveries.bins.expect("they have begun");
        assert_eq!(
            (bins.full, bins.end, &bins.bytes[..5]),
            (4, Time::from_nanos(275_000_000), &[1000, 0, 0, 4000, 0][..])
        );
    }

    /// Without round-trip samples, slow start continues.
    #[test]
    fn without_round_trips_slow_start_goes_on() {
        let mut deliveries = Deliveries::default();
        for n in 1..2000 {
            let now = Time::from_nanos(n * 1_000_000);
            assert_eq!(deliveries.on_ack(&AckSample { now, snd_una: n * MSS, ..AckSample::default() }), None);
        }
    }
}
