//! Whether the path is full: the rate of delivery no longer grows (draft-ietf-ccwg-bbr-06 §5.3.1.2).

use crate::tcp::delivery::RateSample;

/// Round trips with less growth than the factor.
const ROUNDS: u32 = 3;
const GROWTH: f64 = 1.25;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filled {
    /// The rate that the next one must exceed.
    rate: f64,
    rounds: u32,
    /// This probe has filled the path.
    pub(super) now: bool,
    /// Some probe has.
    pub(super) ever: bool,
}

impl Filled {
    /// ResetFullBW, with a baseline.
    pub(super) fn restart(&mut self, rate: f64) {
        (self.rate, self.rounds, self.now) = (rate, 0, false);
    }

    /// CheckFullBWReached: the first ACK of a round trip.
    pub(super) fn on_round(&mut self, sample: &RateSample) {
        if self.now || sample.is_app_limited {
            return;
        }
        let rate = sample.rate();
        if rate >= self.rate * GROWTH {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.ever |= self.now;
    }
}
