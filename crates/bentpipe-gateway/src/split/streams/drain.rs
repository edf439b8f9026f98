//! The end of a gateway that completes what has begun.

use bentpipe_engine::mux::Input;
use bentpipe_engine::units::{Duration, Time};

use super::Streams;
use crate::carrier::Carrier;

/// How long a gateway that drains waits, besides some round trips, for the acknowledgement of its last bytes.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Streams {
    /// Takes no more connections.
    pub(in crate::split) fn begin_drain(&mut self, now: Time) {
        self.give(now, Input::Drain);
    }

    /// Whether all is done, as far as can be known.
    pub(in crate::split) fn is_drained(&mut self, now: Time, carrier: &Carrier) -> bool {
        if !self.conns.is_empty() {
            self.done_at = None;
            return false;
        }
        // The last bytes may be lost on their way, and only this box can repeat them. A peer that ends as well may no
        // longer acknowledge them.
        let done_at = *self.done_at.get_or_insert(now);
        let round_trip = carrier.stats().srtt.unwrap_or_default();
        let patience = LAST_WORDS + round_trip.saturating_mul(4);
        carrier.unconfirmed() == 0 || now.saturating_since(done_at) > patience
    }
}
