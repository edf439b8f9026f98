//! Draining: completes open connections before the gateway ends.

use bentpipe_engine::mux::Input;
use bentpipe_engine::units::{Duration, Time};

use super::Streams;
use crate::carrier::Carrier;

/// How long a draining gateway waits for the acknowledgement of its last bytes, in addition to a few round trips.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Streams {
    /// Accepts no more connections.
    pub(in crate::split) fn begin_drain(&mut self, now: Time) {
        self.give(now, Input::Drain);
    }

    /// True if all connections are done, as far as this box can know.
    pub(in crate::split) fn is_drained(&mut self, now: Time, carrier: &Carrier) -> bool {
        if !self.conns.is_empty() {
            self.done_at = None;
            return false;
        }
        // The last bytes may be lost, and only this box can retransmit them. A peer that is also ending may no longer
        // acknowledge them.
        let done_at = *self.done_at.get_or_insert(now);
        let round_trip = carrier.stats().srtt.unwrap_or_default();
        let patience = LAST_WORDS + round_trip.saturating_mul(4);
        carrier.unconfirmed() == 0 || now.saturating_since(done_at) > patience
    }
}
