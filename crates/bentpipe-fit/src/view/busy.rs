//! How long the line of the bottleneck has been busy, seen near the receiver.
//!
//! There, a time in the queue is the time from an acknowledgement to data that echoes it. A sender that had nothing to
//! send answers late. But packets leave a queue while the line is busy: if nothing arrived for some time, the next
//! arrival has not waited, and later ones have waited at most since then.

use super::Event;
use crate::ledger::Ledger;

/// A gap between arrivals of at least this many segment times on the line is a pause.
const SEGMENTS: f64 = 1.5;

/// Limits times in the queue by how long the line has been busy at `rate` bit/s. `settled` are the events without their lateness at this
/// rate: a receiver that stalled sees what the line passed meanwhile at once. A pause is longer than the usual lateness of `late`
/// nanoseconds.
pub(super) fn bound(ledger: &Ledger, events: &mut [Event], settled: &[Event], (rate, late): (f64, f64)) {
    let mut busy_since: Option<i64> = None;
    let mut last: Option<(i64, u64)> = None;
    for (event, settled) in events.iter_mut().zip(settled) {
        let sent = &ledger.transmissions[event.of as usize];
        let gap = last.map(|(at, end)| {
            // Data missing between them has been on the line, if the link lost it.
            let bytes = sent.start.saturating_sub(end) + u64::from(sent.wire);
            (settled.at - at) as f64 - SEGMENTS * bytes as f64 * 8e9 / rate - late
        });
        if gap.is_none_or(|gap| gap > 0.0) {
            busy_since = Some(settled.at);
        }
        last = Some((settled.at, sent.end.max(last.map_or(0, |(_, end)| end))));
        if let (Some(delay), Some(since)) = (&mut event.delay, busy_since) {
            *delay = delay.min((event.at - since) as f64 / 1e9);
        }
    }
}
