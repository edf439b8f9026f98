//! Whether the queue was empty at some time of the capture.
//!
//! Times in the queue are measured from the shortest trip. A capture that begins in the middle of a connection may have none through an
//! empty queue: the shortest trip is then longer than the path, and all times in the queue are too short.

use crate::estimate::Estimate;
use crate::ledger::Ledger;
use crate::rate::{slowest, usual};
use crate::view::View;

/// If less than this share of what the line carries arrives within a round trip, the line was idle.
const IDLE: f64 = 0.9;
/// Minimum seconds in which an idle line shows: hosts are late by a millisecond or two.
const MIN_SPAN: f64 = 0.02;

/// True if the handshake was captured, or if the line was idle for a part of a round trip.
pub(crate) fn was_empty(ledger: &Ledger, view: &View, rate: &Estimate, is_shared: bool) -> bool {
    if ledger.whole_handshake {
        return true;
    }
    let busy = match *rate {
        Estimate::Measured { low, .. } => Some(low),
        // Others may have kept the line busy while this connection did not.
        _ if is_shared => None,
        // A queue that is always equally long looks empty, so this does not show that the line was idle.
        _ => usual(ledger, view),
    };
    let trip = (view.to_receiver.unwrap_or(0) + view.to_sender.unwrap_or(0)) as f64 / 1e9;
    let slowest = slowest(ledger, view, trip.max(MIN_SPAN));
    slowest.zip(busy).is_some_and(|(slowest, busy)| slowest < IDLE * busy)
}
