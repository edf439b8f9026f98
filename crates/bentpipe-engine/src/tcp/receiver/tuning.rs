//! Dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", Los Alamos Computer Science Institute Symposium 2001): the receive
//! window grows with what the sender can use.
//!
//! What the user reads in a round trip is what the sender's window was. It may double in the next round trip, so the window offered is
//! twice that, and more where it has grown since the last round, so that it is ahead of slow start.
//!
//! The round trip is that of the handshake; Linux also measures it during the transfer.

use crate::units::{Duration, Time};

/// Segments that the window has more than twice what was read.
const SLACK: u64 = 16;

/// The state of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    max: u64,
    rtt: Option<Duration>,
    /// When the round began, and what was read since.
    begun: Time,
    read: u64,
    /// What was read in the greatest round so far.
    greatest: u64,
}

impl Tuning {
    /// The window never exceeds `max` bytes.
    pub(super) fn new(max: u32) -> Self {
        Tuning { max: max.into(), rtt: None, begun: Time::ZERO, read: 0, greatest: 0 }
    }

    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// The user reads `bytes`; the buffer has `buffer` bytes. Returns its new size, if it grows.
    pub(super) fn on_read(&mut self, now: Time, bytes: u64, mss: u16, buffer: u64) -> Option<u64> {
        self.read += bytes;
        let rtt = self.rtt?;
        if now < self.begun + rtt {
            return None;
        }
        let (read, before) = (std::mem::take(&mut self.read), self.greatest.max(u64::from(mss)));
        self.begun = now;
        if read <= self.greatest {
            return None;
        }
        self.greatest = read;
        let twice = 2 * read + SLACK * u64::from(mss);
        // As much again as it has grown, twice.
        let ahead = (u128::from(twice) * u128::from(read.saturating_sub(before)) / u128::from(before)) as u64;
        let wanted = twice.saturating_add(ahead.saturating_mul(2)).min(self.max);
        (wanted > buffer).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Rounds of 100 ms. 10 kB, then 20: 2 * 10 + 16 = 36 kB and, since it grew from a segment, 9 times that twice more; then
    /// 2 * 20 + 16 = 56 kB and as much again twice for the doubling. A round of no more than the greatest changes nothing.
    #[test]
    fn the_window_is_ahead_of_slow_start() {
        let mut tuning = Tuning::new(1 << 30);
        assert_eq!(tuning.on_read(at(100), 10_000, MSS, 65_535), None, "no round trip is known");
        tuning.on_round_trip(Duration::from_millis(100));
        assert_eq!(tuning.on_read(at(150), 0, MSS, 65_535), Some(36_000 + 2 * 9 * 36_000));
        assert_eq!(tuning.on_read(at(200), 12_000, MSS, 100_000), None, "the round is not over");
        assert_eq!(tuning.on_read(at(250), 8_000, MSS, 100_000), Some(3 * 56_000));
        assert_eq!(tuning.on_read(at(350), 20_000, MSS, 100_000), None);
        assert_eq!(tuning.on_read(at(450), 1 << 30, MSS, 100_000), Some(1 << 30), "the maximum");
    }
}
