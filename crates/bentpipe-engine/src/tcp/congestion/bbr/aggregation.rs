//! How far acknowledgements run ahead of the rate: links and receivers bunch ACKs, and a window of two bandwidth-delay
//! products is then too small. In Linux since 5.1.

use crate::tcp::congestion::Delivered;
use crate::units::Time;

/// Length in round trips of each of the two spans that the maximum covers.
const SPAN: u32 = 5;

/// The estimate, in bytes.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp::congestion) struct Aggregation {
    /// Since when ACKs have been ahead of the rate, and the bytes acknowledged since then.
    since: Time,
    acked: f64,
    /// The largest excess of the current and the previous span, and the number of round trips in the current one.
    extra: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Takes an ACK. `rate` is in bytes per second, `window` in bytes. `new_round`: the ACK begins a round trip.
    pub(in crate::tcp::congestion) fn update(&mut self, seen: &Delivered, rate: f64, window: f64, new_round: bool) {
        if seen.newly == 0 || seen.sample.is_none() {
            return;
        }
        self.rounds += u32::from(new_round);
        if self.rounds >= SPAN {
            (self.extra, self.rounds) = ([0.0, self.extra[0]], 0);
        }
        let mut expected = rate * seen.now.saturating_since(self.since).as_secs_f64();
        if self.acked <= expected {
            (self.acked, self.since, expected) = (0.0, seen.now, 0.0);
        }
        self.acked += seen.newly as f64;
        self.extra[0] = self.extra[0].max((self.acked - expected).min(window));
    }

    /// Starts afresh after a pause in which no ACKs were expected.
    pub(in crate::tcp::congestion) fn restart(&mut self, now: Time) {
        (self.acked, self.since) = (0.0, now);
    }

    /// The largest excess of one to two spans.
    pub(in crate::tcp::congestion) fn extra(&self) -> f64 {
        self.extra[0].max(self.extra[1])
    }
}
