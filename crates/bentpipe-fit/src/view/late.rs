//! Arrivals that came late: a host, an emulator or a link on the way back stood still, and then passed several on at once.
//!
//! The line of the bottleneck passes bytes at its rate. Arrivals that follow one another faster than their bytes can have left the line
//! say that those before were late, and when these left it at the latest. What was late is no time in the queue.

use std::collections::VecDeque;

use super::{Event, Side};
use crate::ledger::{Fate, Ledger};

/// Nanoseconds within which an arrival bounds those before it: of a rate that is 1 % too low, the bound is 1 ms too early.
const REACH: i64 = 100_000_000;

/// Takes from arrivals and times in the queue what came after it. `rate` is the line's, bit/s.
pub(super) fn settle(ledger: &Ledger, side: Side, events: &mut [Event], rate: f64) {
    let Some(start) = events.first().map(|event| event.at) else { return };
    let mut busy = 0.0;
    // Nanoseconds that the line was busy with what arrived, up to each transmission.
    let passed = ledger.transmissions.iter().map(|sent| {
        // At the receiver everything that is seen has passed.
        if sent.fate == Fate::Delivered || side == Side::Receiver {
            busy += f64::from(sent.wire) * 8e9 / rate;
        }
        busy
    });
    let passed: Vec<f64> = passed.collect();
    // The later arrivals within reach: time, and time without what the line was busy. Each has less of the latter than those nearer.
    let mut later: VecDeque<(i64, f64)> = VecDeque::new();
    let mut next = u32::MAX;
    for event in events.iter_mut().rev() {
        let rest = (event.at - start) as f64 - passed[event.of as usize];
        // Out of order: not one stretch of the line's work.
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
