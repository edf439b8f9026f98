//! Detects that the path is full because the delivery rate no longer grows (draft-ietf-ccwg-bbr-06 §5.3.1.2).

use crate::tcp::delivery::RateSample;

/// Number of round trips whose growth stays below the factor.
const ROUNDS: u32 = 3;
const GROWTH: f64 = 1.25;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filled {
    /// The baseline that the next rate must exceed by the factor.
    rate: f64,
    rounds: u32,
    /// The current probe has filled the path.
    pub(super) now: bool,
    /// Some probe has filled the path.
    pub(super) ever: bool,
}

impl Filled {
    /// ResetFullBW, with a baseline rate.
    pub(super) fn restart(&mut self, rate: f64) {
        (self.rate, self.rounds, self.now) = (rate, 0, false);
    }

    /// CheckFullBWReached, called for the first ACK of a round trip.
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
