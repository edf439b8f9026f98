//! How much more than the rate says is acknowledged at once: links and receivers bunch ACKs, and a window of two products is too
//! small then. Linux has it since 5.1.

use crate::tcp::congestion::Delivered;
use crate::units::Time;

/// Round trips of each of the two spans that the maximum covers.
const SPAN: u32 = 5;

/// The estimate. Bytes.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp::congestion) struct Aggregation {
    /// Since when ACKs have been ahead of the rate, and by what was acknowledged since.
    since: Time,
    acked: f64,
    /// The largest excess of this span and of the one before, and the round trips of this one.
    extra: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Takes an ACK. `rate` is in bytes per second, `window` in bytes. `new_round`: it begins a round trip.
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

    /// Begins anew: nothing was to be acknowledged for a while.
    pub(in crate::tcp::congestion) fn restart(&mut self, now: Time) {
        (self.acked, self.since) = (0.0, now);
    }

    /// The largest excess of one to two spans.
    pub(in crate::tcp::congestion) fn extra(&self) -> f64 {
        self.extra[0].max(self.extra[1])
    }
}
