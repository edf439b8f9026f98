//! Whether the queue was empty at some time of the capture.
//!
//! Times in the queue are measured from the shortest trip. A capture that begins in the middle of a connection may have none through an
//! empty queue: the shortest trip is then longer than the path, and all times in the queue are too short.

use crate::estimate::Estimate;
use crate::ledger::Ledger;
use crate::rate::slowest;
use crate::view::View;

/// If less than this share of what the line carries arrives within a round trip, the line was idle.
const IDLE: f64 = 0.9;
/// Minimum seconds in which an idle line shows: hosts are late by a millisecond or two.
const MIN_SPAN: f64 = 0.02;

/// True if the handshake was captured, if the line was not busy for long, or if it was idle for a part of a round trip.
pub(crate) fn was_empty(ledger: &Ledger, view: &View, rate: &Estimate, is_shared: bool) -> bool {
    if ledger.whole_handshake {
        return true;
    }
    // Others may have kept the line busy while this connection did not.
    let Estimate::Measured { low, .. } = *rate else { return !is_shared };
    let trip = (view.to_receiver.unwrap_or(0) + view.to_sender.unwrap_or(0)) as f64 / 1e9;
    slowest(ledger, view, trip.max(MIN_SPAN)).is_some_and(|slowest| slowest < IDLE * low)
}
