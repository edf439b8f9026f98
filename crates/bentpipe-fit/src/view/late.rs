//! Arrivals that were late: a host, an emulator or a link on the way back stalled and then passed several on at once.
//!
//! The line of the bottleneck passes bytes at its rate. If arrivals follow one another faster than their bytes can have
//! left the line, earlier ones were late, and this shows when they left the line at the latest. Lateness is not time in
//! the queue.

use std::collections::VecDeque;

use super::{Event, Side};
use crate::ledger::{Fate, Ledger};

/// Nanoseconds within which an arrival bounds earlier ones: with a rate that is 1 % too low, the bound is 1 ms too
/// early.
const REACH: i64 = 100_000_000;

/// Removes lateness from arrivals and from times in the queue. `rate` is the line's in bit/s.
pub(super) fn settle(ledger: &Ledger, side: Side, events: &mut [Event], rate: f64) {
    let Some(start) = events.first().map(|event| event.at) else { return };
    let mut busy = 0.0;
    // Nanoseconds for which the line was busy with what arrived, up to each transmission.
    let passed = ledger.transmissions.iter().map(|sent| {
        // Near the receiver, everything seen has passed.
        if sent.fate == Fate::Delivered || side == Side::Receiver {
            busy += f64::from(sent.wire) * 8e9 / rate;
        }
        busy
    });
    let passed: Vec<f64> = passed.collect();
    // The later arrivals within reach: their time, and their time minus the line's busy time. The further an arrival,
    // the smaller the latter.
    let mut later: VecDeque<(i64, f64)> = VecDeque::new();
    let mut next = u32::MAX;
    for event in events.iter_mut().rev() {
        let rest = (event.at - start) as f64 - passed[event.of as usize];
        // Out of order, so this is not one stretch of the line's work.
        if event.of >= next {
            later.clear();
        }
        next = event.of;
        while later.back().is_some_and(|&(_, other)| other >= rest) {
            later.pop_back();
        }
        later.push_back((event.at, rest));
        while later.front().is_some_and(|&(at, _)| at - event.at > REACH) {
            later.pop_front();
        }
        let least = later.front().map_or(rest, |&(_, least)| least);
        event.at -= (rest - least) as i64;
        if let Some(delay) = &mut event.delay {
            *delay = (*delay - (rest - least) / 1e9).max(0.0);
        }
    }
}
