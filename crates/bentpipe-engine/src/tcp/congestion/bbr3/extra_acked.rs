//! How far ACKs run ahead of the rate (draft-ietf-ccwg-bbr-06 §5.5.9): links and receivers bunch them, and a window of
//! two bandwidth-delay products is then too small.

use crate::tcp::congestion::Delivered;
use crate::tcp::windowed::MaxFilter;
use crate::units::Time;

/// Number of round trips that the maximum covers, once the path is full and before (§2.12, §5.5.9).
const ROUNDS: u64 = 10;
const STARTUP_ROUNDS: u64 = 1;

/// The estimate, in bytes.
#[derive(Clone, Debug)]
pub(super) struct ExtraAcked {
    /// The time from which ACKs have been ahead of the rate, and the bytes acknowledged since.
    since: Time,
    acked: f64,
    max: MaxFilter,
}

impl ExtraAcked {
    pub(super) fn new() -> Self {
        ExtraAcked { since: Time::ZERO, acked: 0.0, max: MaxFilter::new(STARTUP_ROUNDS - 1) }
    }

    /// UpdateACKAggregation, in the round trip `round`. `bw` is in bytes per second, `window` in bytes.
    pub(super) fn update(&mut self, seen: &Delivered, bw: f64, window: f64, round: u64, is_full: bool) {
        let mut expected = bw * seen.now.saturating_since(self.since).as_secs_f64();
        if self.acked <= expected {
            (self.acked, self.since, expected) = (0.0, seen.now, 0.0);
        }
        self.acked += seen.newly as f64;
        self.max.set_span(if is_full { ROUNDS } else { STARTUP_ROUNDS } - 1);
        self.max.update(round, (self.acked - expected).min(window));
    }

    /// HandleRestartFromIdle. Bytes acknowledged before the pause do not count as ahead after it. The draft only sets
    /// the time.
    pub(super) fn restart(&mut self, now: Time) {
        (self.acked, self.since) = (0.0, now);
    }

    /// BBR.extra_acked.
    pub(super) fn extra(&self) -> f64 {
        self.max.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::recovery::Phase;

    /// An ACK of `newly` bytes at `millis` milliseconds.
    fn ack(millis: u64, newly: u64) -> Delivered {
        let now = Time::from_nanos(millis * 1_000_000);
        let (sample, too_high, phase) = (None, None, Phase::Open);
        Delivered {
            now,
            rtt: None,
            srtt: None,
            sample,
            too_high,
            newly,
            delivered: 0,
            lost: 0,
            pipe: 0,
            pipe_before: 0,
            departure: Time::ZERO,
            phase,
        }
    }

    /// At 100 bytes per millisecond: 5000 bytes at 100 ms. 5000 more at 120 ms are 10 000 - 2000 ahead, and 3000 more
    /// at 190 ms are 13 000 - 9000 ahead. At 240 ms, 13 000 is less than 14 000, so the count starts afresh with 1000.
    /// The 8000 of round trip 1 count until the end of round trip 10; in startup, only in round trip 1.
    #[test]
    fn what_runs_ahead_is_remembered_for_ten_round_trips_in_startup_for_one() {
        for (is_full, last) in [(true, 10), (false, 1)] {
            let mut extra = ExtraAcked::new();
            let mut at = |millis, newly, round| {
                extra.update(&ack(millis, newly), 1e5, 1e6, round, is_full);
                extra.extra()
            };
            let first = [at(100, 5000, 1), at(120, 5000, 1), at(190, 3000, 1), at(240, 1000, 1)];
            assert_eq!(first, [5000.0, 8000.0, 8000.0, 8000.0]);
            let until = (2..20).take_while(|&round| at(240 + 100 * round, 1000, round) == 8000.0).last().unwrap_or(1);
            assert_eq!(until, last, "full: {is_full}");
        }
    }

    /// The window limits the excess, and a pause discards what came before it: 9000 ahead, and 1000 ahead 300 ms later.
    #[test]
    fn a_pause_begins_anew() {
        let mut extra = ExtraAcked::new();
        extra.update(&ack(100, 9000), 1e5, 4000.0, 1, true);
        assert_eq!(extra.extra(), 4000.0);
        extra.restart(Time::from_nanos(300_000_000));
        extra.update(&ack(310, 1000), 1e5, 1e6, 12, true);
        assert_eq!(extra.extra(), 1000.0);
    }
}
