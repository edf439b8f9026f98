//! Segments that leave the host together: how long each of them waits for those before it on the way to the bottleneck.
//!
//! A capture at the sender sees segments before they reach the host's own line. When an acknowledgement repairs a gap,
//! a sender whose send buffer or whose receiver's window was full may send hundreds at once. At 1 Gbit/s, the last of
//! 500 waits 6 ms for the others, and this is not time in the bottleneck's queue. The rate of the line before the
//! bottleneck is derived from the losses: all segments that passed a full queue waited equally long there, so those
//! next to a loss have equal times once the waits before the queue are subtracted.

use super::{Side, View};
use crate::ledger::{Fate, Ledger};

/// Candidate rates for the line before the bottleneck, as multiples of the bottleneck's rate; each is larger than the
/// previous one by the factor `STEP`.
const MIN_FACTOR: f64 = 1.5;
const MAX_FACTOR: f64 = 2000.0;
const STEP: f64 = 1.03;
/// The same where nothing shows it: hosts are seldom on slower lines than this multiple of the bottleneck's.
pub(crate) const ASSUMED_FACTOR: f64 = 5.0;
/// Share by which the agreement must be better than without a line before.
const BETTER: f64 = 1.1;
/// Number of jitters by which equal times may differ.
const JITTERS: f64 = 5.0;

/// A departure from the host: its time in nanoseconds, its bytes plus those missing since the previous departure, and its
/// transmission.
struct Departure {
    at: i64,
    bytes: f64,
    missing: f64,
    of: usize,
}

/// Departures in order. Near the receiver: a host answers an acknowledgement at once, so its data left a fixed time after
/// the echoed acknowledgement passed the capture. Data missing between two segments left the host, too.
fn departures(ledger: &Ledger, side: Side) -> Vec<Departure> {
    let sent = |of: usize| &ledger.transmissions[of];
    match side {
        Side::Sender => {
            let all = ledger.transmissions.iter().enumerate();
            all.map(|(of, sent)| Departure { at: sent.at, bytes: f64::from(sent.wire), missing: 0.0, of }).collect()
        }
        Side::Receiver => {
            let mut last = None;
            let trips = ledger.sender_trips.iter().filter_map(|trip| Some((trip.of? as usize, trip.took)));
            let departure = |(of, took): (usize, i64)| {
                let sent = sent(of);
                let missing = last.map_or(0, |last| sent.start.saturating_sub(last));
                last = last.max(Some(sent.end));
                let bytes = f64::from(sent.wire);
                let missing = missing as f64 / (sent.end - sent.start) as f64 * bytes;
                Departure { at: sent.at - took, bytes, missing, of }
            };
            trips.map(departure).collect()
        }
    }
}

/// Seconds that each departure waits for those listed before it, on a line of `rate` bit/s. Reordered segments may be listed before
/// ones that left earlier.
fn waits(departures: &[Departure], rate: f64) -> impl Iterator<Item = (usize, f64)> {
    let (mut last, mut backlog) = (i64::MIN, 0.0_f64);
    departures.iter().map(move |departure| {
        // As of this departure, also if it is earlier than the last one.
        backlog = (backlog - departure.at.saturating_sub(last) as f64 / 1e9).max(0.0);
        last = departure.at;
        backlog += departure.missing * 8.0 / rate;
        let wait = backlog;
        backlog += departure.bytes * 8.0 / rate;
        (departure.of, wait)
    })
}

/// For each transmission next to a loss, the time in the queue of its own arrival in seconds, and how much of that may
/// be due to the receiver.
fn beside_losses(ledger: &Ledger, view: &View) -> Vec<Option<(f64, f64)>> {
    let lost = |index: usize| ledger.transmissions.get(index).is_some_and(|sent| sent.fate == Fate::Lost);
    let is_beside = |of: usize| lost(of + 1) || of.checked_sub(1).is_some_and(lost);
    let mut result = vec![None; ledger.transmissions.len()];
    for event in view.events.iter().filter(|event| is_beside(event.of as usize)) {
        result[event.of as usize] = event.delay.map(|delay| (delay, event.held));
    }
    result
}

/// How many of these times equal the longest, if `rate` is that of the line before. Of two segments sent together that pass a
/// full queue, the second waits for the first, so times up to a `segment` below the longest are equal. A time that is almost
/// as long counts in part.
fn agreement(departures: &[Departure], beside: &[Option<(f64, f64)>], rate: f64, [segment, width]: [f64; 2]) -> f64 {
    let left = || waits(departures, rate).filter_map(|(of, wait)| beside[of].map(|(delay, held)| (delay - wait, held)));
    let longest = left().map(|(delay, held)| delay - held).fold(0.0, f64::max);
    let short = left().map(|(delay, _)| (longest - segment - delay).max(0.0));
    short.map(|short| (1.0 - short / width).max(0.0)).sum()
}

/// Lowest and highest rate of the line before the bottleneck, bit/s; `None` if no waits are visible there. They differ
/// if few losses show the waits, or if the receiver may have delayed its reports of them. `segment` is the time of a
/// full segment at the bottleneck in seconds, and `rate` the bottleneck's rate.
fn rate_before(ledger: &Ledger, departures: &[Departure], view: &View, rate: f64, segment: f64) -> Option<(f64, f64)> {
    let beside = beside_losses(ledger, view);
    let steps = [segment, 2.0 * segment + JITTERS * view.jitter];
    let without = agreement(departures, &beside, f64::INFINITY, steps);
    let mut best = (without * BETTER + 1.0, None);
    let mut factor = MIN_FACTOR;
    while factor < MAX_FACTOR {
        let found = agreement(departures, &beside, rate * factor, steps);
        let at = rate * factor;
        if found > best.0 {
            best = (found, Some((at, at)));
        } else if let (true, Some((_, highest))) = (found == best.0, &mut best.1) {
            *highest = at;
        }
        factor *= STEP;
    }
    best.1
}

/// Subtracts from the times in the queue what was surely spent on the line before, and records how much more it may be.
pub(super) fn take_waits(ledger: &Ledger, view: &mut View, rate: f64, segment: f64) {
    let departures = departures(ledger, view.side);
    // Near the receiver, times are known only to a tick of the sender's clock. A rate that fits by chance would subtract too
    // much.
    let before = match view.side {
        Side::Sender => rate_before(ledger, &departures, view, rate, segment),
        Side::Receiver => None,
    };
    let (lowest, highest) = before.unwrap_or((rate * ASSUMED_FACTOR, f64::INFINITY));
    let mut own = vec![(0.0, 0.0); ledger.transmissions.len()];
    for ((of, most), (_, least)) in waits(&departures, lowest).zip(waits(&departures, highest)) {
        own[of] = (most, least);
    }
    for event in &mut view.events {
        let (most, least) = own[event.of as usize];
        if let Some(delay) = &mut event.delay {
            *delay = (*delay - least).max(0.0);
        }
        event.ahead = most - least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1000 bit/s, 125 bytes take a second. The line is free at 1, 2, 3 and 4 s, whatever the order in which the four departures
    /// within the first second were listed: a wait is the time until the line is free.
    #[test]
    fn a_departure_that_is_listed_late_waits_for_the_line_only() {
        let waits = |millis: [i64; 5]| -> Vec<f64> {
            let departure = |at: i64| Departure { at: at * 1_000_000, bytes: 125.0, missing: 0.0, of: 0 };
            waits(&millis.map(departure), 1000.0).map(|(_, wait)| wait).collect()
        };
        assert_eq!(waits([0, 250, 500, 750, 6000]), [0.0, 0.75, 1.5, 2.25, 0.0]);
        assert_eq!(waits([0, 500, 250, 750, 6000]), [0.0, 0.5, 1.75, 2.25, 0.0]);
        assert_eq!(waits([0, 500, 250, 750, 3500]), [0.0, 0.5, 1.75, 2.25, 0.5]);
    }
}
