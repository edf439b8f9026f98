//! Dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", Los Alamos Computer Science Institute Symposium
//! 2001): the receive window grows with the amount that the sender can use.
//!
//! The bytes that the user reads in a round trip equal the sender's window. That window may double in the next round
//! trip, so the room is twice as large. If the amount has grown since the last round, the room is larger still, to stay
//! ahead of slow start. In Linux the window follows the room by two segments per segment that arrives (`window.rs`).
//! Data held back by a gap is read all at once when the gap is filled; only its first segment belongs to the round that
//! it ends (`tcp_rcv_space_adjust`).
//!
//! The round trip is the one measured by the timestamps of data, as in Linux. A smaller value replaces it at once; a larger one changes it
//! by an eighth of the difference, so a filling queue also increases the room. Without timestamps it is the shortest time in which a whole
//! window has arrived, and the first round lasts until one has (`tcp_rcv_rtt_measure`).

use crate::units::{Duration, Time};
use crate::wire::seq::SeqNumber;

/// Segments that the first round may bring before the window counts as too small: the initial window (RFC 6928).
const FIRST_ROUND: u64 = 10;

/// The state of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    max: u32,
    mss: u32,
    rtt: Option<Duration>,
    /// The last echo that gave a sample. One sample per round trip is enough, and equal echoes belong to the same
    /// segments.
    echo: u32,
    /// Without timestamps: the end of the window that is being measured (the lower half of its number), and since when.
    window_end: SeqNumber,
    measured_since: Option<Time>,
    /// When the round began, and the bytes read since.
    begun: Time,
    read: u64,
    /// Bytes read in the largest round so far.
    max_read: u64,
}

impl Tuning {
    /// The first window offered has `offered` bytes. It grows up to the first room of `first` bytes, but for the segment
    /// that has just arrived. The room never exceeds `max` bytes.
    pub(super) fn new(offered: u64, first: u64, max: u32, mss: u16) -> Self {
        let (small, mss) = (u32::from(mss), u64::from(mss));
        let max_read = offered.min(FIRST_ROUND * mss);
        // A round of as many whole segments as that window holds must count as larger than the first.
        let whole = offered.max(first.saturating_sub(mss)) / mss * mss;
        let max_read = if whole <= max_read { whole.saturating_sub(mss / 2) } else { max_read };
        let max_read = max_read.max(1);
        Tuning {
            max,
            mss: small,
            rtt: None,
            echo: 0,
            window_end: SeqNumber(0),
            measured_since: None,
            begun: Time::ZERO,
            read: 0,
            max_read,
        }
    }

    /// The first round begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.begun = now;
    }

    /// Takes a full-sized segment that echoes a timestamp sent `sample` ago.
    pub(super) fn on_echo(&mut self, echo: u32, sample: Duration) {
        if echo == self.echo {
            return;
        }
        self.echo = echo;
        self.rtt = Some(match self.rtt {
            Some(rtt) if sample > rtt => rtt + (sample - rtt).div_floor(8),
            _ => sample,
        });
    }

    /// Takes data in order up to `end`, which echoes no timestamp. `window` is the window that was offered before.
    pub(super) fn on_data(&mut self, now: Time, end: u64, window: u64) {
        // No window is as long as half of the number space.
        if let Some(since) = self.measured_since {
            if SeqNumber(end as u32).distance_from(self.window_end) < 0 {
                return;
            }
            let sample = now.saturating_since(since);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        (self.window_end, self.measured_since) = (SeqNumber((end + window) as u32), Some(now));
    }

    /// Records that the user reads `bytes` while there is room for `room`. Returns the new room, if it grows.
    pub(super) fn on_read(&mut self, now: Time, bytes: u64, room: u64) -> Option<u64> {
        self.read += bytes;
        let rtt = self.rtt?;
        if now < self.begun + rtt {
            return None;
        }
        // A round ends with the first segment of a reading. The rest was still waiting at that time: it is subtracted
        // from this round and counts for the next.
        let rest = bytes.saturating_sub(u64::from(self.mss));
        let read = (self.read - rest).saturating_sub(rest);
        (self.begun, self.read) = (now, rest);
        let before = self.max_read;
        if read <= before {
            return None;
        }
        self.max_read = read;
        // Twice the growth since the largest round, in proportion.
        let ahead = (u128::from(2 * read) * u128::from(read - before) / u128::from(before)) as u64;
        self.grown(room, (2 * read).saturating_add(ahead.saturating_mul(2)))
    }

    /// Takes data up to `span` bytes beyond a gap; it occupies room until the gap is filled.
    pub(super) fn on_disorder(&self, span: u64, room: u64) -> Option<u64> {
        self.grown(room, 2 * self.max_read + span)
    }

    fn grown(&self, room: u64, wanted: u64) -> Option<u64> {
        let wanted = wanted.min(u64::from(self.max));
        (wanted > room).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Reads `bytes` segment by segment; the last one ends the round at `millis`.
    fn read(tuning: &mut Tuning, millis: u64, bytes: u64, room: u64) -> Option<u64> {
        let (mss, mut grown) = (u64::from(tuning.mss), None);
        for left in (0..bytes / mss).rev() {
            grown = grown.or(tuning.on_read(at(millis - u64::from(left > 0)), mss, room));
        }
        grown
    }

    /// Rounds of 100 ms. 10 kB is the initial window. Then 20 kB, twice as much: 2 * 20 = 40 kB, and as much again
    /// twice. The same amount again changes nothing. 30 kB: 2 * 30, and half of that twice.
    #[test]
    fn the_window_is_ahead_of_slow_start() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, MSS);
        assert_eq!(read(&mut tuning, 100, 10_000, 65_535), None, "no round trip is known");
        tuning.on_echo(1, Duration::from_millis(100));
        assert_eq!(tuning.on_read(at(150), 0, 65_535), None, "the initial window");
        assert_eq!(read(&mut tuning, 200, 12_000, 65_535), None, "the round is not over");
        assert_eq!(read(&mut tuning, 250, 8_000, 65_535), Some(3 * 40_000));
        assert_eq!(read(&mut tuning, 350, 20_000, 120_000), None);
        assert_eq!(read(&mut tuning, 450, 30_000, 0), Some(2 * 60_000));
        assert_eq!(read(&mut tuning, 550, 1 << 30, 120_000), Some(1 << 30), "the maximum");
    }

    /// Ten segments come as the handshake ends. The eleventh comes a round trip later and ends the first round with 11 kB, a tenth more
    /// than the initial window: 2 * 11 kB, and a tenth of that twice.
    #[test]
    fn the_first_round_begins_with_the_handshake() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, MSS);
        tuning.begin(at(1000));
        tuning.on_echo(1, Duration::from_millis(100));
        (0..10).for_each(|_| assert_eq!(tuning.on_read(at(1001), 1000, 20_000), None));
        assert_eq!(tuning.on_read(at(1100), 1000, 20_000), Some(26_400));
    }

    /// A gap is filled, and 40 segments are read at once. The round that they end counts one of them, against 39 that
    /// wait. The next round counts those 39 and reaches four times the initial window: 2 * 40 kB, and three times as
    /// much again twice.
    #[test]
    fn what_a_gap_has_held_counts_for_the_next_round() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, MSS);
        tuning.on_echo(1, Duration::from_millis(100));
        assert_eq!(read(&mut tuning, 100, 10_000, 65_535), None);
        assert_eq!(tuning.on_read(at(300), 40_000, 65_535), None);
        assert_eq!(tuning.on_read(at(400), 1000, 65_535), Some(7 * 80_000));
        // 90 segments, then 11 at once: 91 less the ten that wait. Twice 81 kB, and a share of 41/40 twice.
        (0..90).for_each(|_| assert_eq!(tuning.on_read(at(450), 1000, 560_000), None));
        assert_eq!(tuning.on_read(at(500), 11_000, 0), Some(162_000 + 2 * 166_050));
    }

    /// What waits beyond a gap takes room in addition to twice the largest round.
    #[test]
    fn data_beyond_a_gap_has_its_own_room() {
        let tuning = Tuning::new(65_535, 65_535, 100_000, MSS);
        let room = |span, room| tuning.on_disorder(span, room);
        assert_eq!(
            [room(50_000, 69_999), room(50_000, 70_000), room(90_000, 70_000)],
            [Some(70_000), None, Some(100_000)]
        );
    }

    /// A shorter round trip replaces the estimate at once; a longer one changes it by an eighth: 80 ms, then 80 + 160/8
    /// = 100.
    #[test]
    fn the_round_trip_follows_a_queue_slowly() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, MSS);
        tuning.on_echo(1, Duration::from_millis(100));
        tuning.on_echo(2, Duration::from_millis(80));
        tuning.on_echo(2, Duration::from_millis(1));
        assert_eq!(tuning.rtt, Some(Duration::from_millis(80)), "one sample per echo");
        tuning.on_echo(3, Duration::from_millis(240));
        assert_eq!(tuning.rtt, Some(Duration::from_millis(100)));
    }

    /// Without timestamps a window of 3000 bytes takes 200 ms, the next one 150; one that takes longer changes nothing.
    /// Rounds end only after the first.
    #[test]
    fn without_timestamps_a_window_is_a_round_trip() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, MSS);
        let rtt = [(0, 1), (100, 1001), (200, 4001), (300, 5001), (350, 7001), (900, 10_001)].map(|(millis, end)| {
            tuning.on_data(at(millis), end, 3000);
            tuning.rtt.map(|rtt| rtt.as_nanos() / 1_000_000)
        });
        assert_eq!(rtt, [None, None, Some(200), Some(200), Some(150), Some(150)]);
    }

    /// Linux 6.18 over 20 Mbit/s and 600 ms, from a capture: 20, 40 and 80 segments of 1448 bytes per round trip gave
    /// windows of 338, 678 and 1357 units of 1024 bytes.
    #[test]
    fn the_windows_are_those_of_a_capture() {
        let mut tuning = Tuning::new(65_535, 65_535, 1 << 30, 1448);
        tuning.on_echo(1, Duration::from_millis(600));
        let rounds = [(600, 10), (1200, 20), (1800, 40), (2400, 80), (3000, 160)];
        let rooms = rounds.map(|(now, segments)| read(&mut tuning, now, segments * 1448, 0).map(|room| room / 1024));
        assert_eq!(rooms, [None, Some(169), Some(339), Some(678), Some(1357)]);
    }

    /// With long segments, ten of them are more than the window. A Linux host offers up to 65,536 bytes first and then its whole
    /// room of 81,920 without a segment: eight segments of 8960 bytes, four of 16,000 or two of 30,000. The latter are no more
    /// than 65,535 bytes.
    #[test]
    fn the_window_grows_with_long_segments() {
        for (mss, segments) in [(8960, 8), (16_000, 4), (30_000, 2), (65_495, 1)] {
            let mut tuning = Tuning::new(65_535, 81_920, 1 << 30, mss);
            tuning.on_echo(1, Duration::from_millis(100));
            let bytes = segments * u64::from(mss);
            assert!(read(&mut tuning, 100, bytes, 81_920).is_some_and(|room| room >= 2 * bytes), "{mss}");
        }
    }
}
