//! HyStart (Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011) as in Linux: slow
//! start ends after half a round trip of closely spaced ACKs, or when the round trip grows.
//!
//! A train of ACKs that lasts half a round trip means that the window is about as large as the path holds: in slow
//! start, the data of a window leaves in half a round trip at the rate of the bottleneck. If the sender is paced, the
//! ACKs of every window take most of a round trip, so only a whole round trip of them counts, as in Linux.

use crate::tcp::congestion::{AckSample, Window};
use crate::units::{Duration, Time};

/// Maximum interval between the ACKs of a train.
const SPACING: Duration = Duration::from_millis(2);
/// How much longer than a round trip, or half of one, a train must be: links and hosts bunch ACKs (`hystart_ack_delay`,
/// below 2 Gbit/s).
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Bounds of the round-trip growth that ends slow start; in between, an eighth of the minimum round trip.
const MIN_GROWTH: Duration = Duration::from_millis(4);
const MAX_GROWTH: Duration = Duration::from_millis(16);
/// Number of samples in a round before their minimum counts.
const SAMPLES: u32 = 8;
/// Smaller windows are left alone; in segments.
const LOW_WINDOW: u32 = 16;

/// The state of a search.
#[derive(Clone, Debug, Default)]
pub(super) struct Hybrid {
    found: bool,
    paced: bool,
    /// The minimum round trip so far.
    delay_min: Option<Duration>,
    /// The current round: when it began, the sequence number whose ACK ends it, its minimum round trip, and the number
    /// of its samples.
    began: Time,
    end: u64,
    min_rtt: Option<Duration>,
    samples: u32,
    /// The last ACK of the train.
    last: Time,
}

impl Hybrid {
    /// Takes an ACK of new data in slow start. Returns true if slow start is over.
    pub(super) fn on_ack(&mut self, ack: &AckSample, window: &Window) -> bool {
        let Some(rtt) = ack.latest_rtt else { return false };
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        if self.found {
            return false;
        }
        if ack.snd_una > self.end {
            (self.began, self.last, self.end) = (ack.now, ack.now, ack.snd_max);
            (self.min_rtt, self.samples) = (None, 0);
        }
        if window.segments() < LOW_WINDOW {
            return false;
        }
        if ack.now.saturating_since(self.last) <= SPACING {
            self.last = ack.now;
            let whole = delay_min + ACK_DELAY;
            let long = if self.paced { whole } else { whole.div_floor(2) };
            self.found |= ack.now.saturating_since(self.began) > long;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            self.found |= min_rtt > delay_min + delay_min.div_floor(8).clamp(MIN_GROWTH, MAX_GROWTH);
        }
        self.found
    }

    /// Tells the search that the sender is paced.
    pub(super) fn allow_for_pacing(&mut self) {
        self.paced = true;
    }

    /// Restarts the search after a timeout, because the path may have changed.
    pub(super) fn restart(&mut self) {
        *self = Hybrid { paced: self.paced, ..Hybrid::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    const MSS: u64 = 1000;

    /// Generates a round of `count` ACKs of one segment each, spaced `apart` microseconds, with a round trip in
    /// milliseconds. Returns the number of the ACK that ended slow start.
    fn round(hybrid: &mut Hybrid, at: &mut u64, una: &mut u64, count: u64, apart: u64, rtt: u64) -> Option<u64> {
        let window = Window::new(&TcpConfig { mss: MSS as u16, ..TcpConfig::default() }, 100);
        let end = *una + count * MSS;
        (1..=count).find(|_| {
            *at += apart;
            *una += MSS;
            let latest_rtt = Some(Duration::from_millis(rtt));
            let now = Time::from_nanos(*at * 1000);
            hybrid.on_ack(&AckSample { now, latest_rtt, snd_una: *una, snd_max: end, ..AckSample::default() }, &window)
        })
    }

    /// A round trip of 100 ms. ACKs 1 ms apart are a train: the 51st ACK after the first of the round comes more than
    /// half a round trip and 0.5 ms after it. At 1.01 ms apart, the 50th comes 50.5 ms after it, which is not more.
    /// ACKs 3 ms apart are no train.
    #[test]
    fn half_a_round_trip_of_acks_is_enough() {
        for (apart, found) in [(1000, Some(52)), (1010, Some(52)), (1011, Some(51)), (3000, None)] {
            let (mut hybrid, mut at, mut una) = (Hybrid::default(), 0, 0);
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 20, apart, 100), None);
            at += 50_000;
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 100, apart, 100), found, "{apart} us");
        }
    }

    /// A round trip of 100 ms: the threshold is 12.5 ms, and the ninth sample of a round decides.
    #[test]
    fn a_growing_round_trip_ends_slow_start() {
        for (rtt, found) in [(112, None), (113, Some(9))] {
            let (mut hybrid, mut at, mut una) = (Hybrid::default(), 0, 0);
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 20, 3000, 100), None);
            // The first ACK beyond the end of a round begins the next.
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 20, 3000, rtt), found, "{rtt} ms");
        }
    }

    /// The round trip may grow by an eighth, but by at least 4 ms and at most 16.
    #[test]
    fn the_growth_that_counts_is_bounded() {
        for (rtt, later, found) in [(16, 20, None), (16, 21, Some(9)), (600, 616, None), (600, 617, Some(9))] {
            let (mut hybrid, mut at, mut una) = (Hybrid::default(), 0, 0);
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 20, 3000, rtt), None);
            assert_eq!(round(&mut hybrid, &mut at, &mut una, 20, 3000, later), found, "{rtt} {later}");
        }
    }

    /// Windows of less than 16 segments are left alone.
    #[test]
    fn a_small_window_is_left_alone() {
        for (segments, found) in [(15, false), (16, true)] {
            let window = Window::new(&TcpConfig { mss: MSS as u16, ..TcpConfig::default() }, segments);
            let mut hybrid = Hybrid::default();
            let ends = (1..60u64).any(|n| {
                let latest_rtt = Some(Duration::from_millis(if n <= 20 { 100 } else { 150 }));
                let (now, snd_una) = (Time::from_nanos(n * 3_000_000), n * MSS);
                let snd_max = (n / 20 + 1) * 20 * MSS;
                hybrid.on_ack(&AckSample { now, latest_rtt, snd_una, snd_max, ..AckSample::default() }, &window)
            });
            assert_eq!(ends, found, "{segments}");
        }
    }
}
