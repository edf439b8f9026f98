//! Segments that leave the host together: how long each then waits for those before it on its way to the bottleneck.
//!
//! A capture at the sender sees segments before the host's own line does. Where an acknowledgement repairs a gap, a sender whose send
//! buffer or whose receiver's window was full may send hundreds at once. At 1 Gbit/s the last of 500 waits 6 ms for the others, and
//! that is no time in the bottleneck's queue. The rate of the line before is found from the losses: all that passed a full queue
//! waited equally long there, so those next to a loss had equal times once the waits before are taken from them.

use super::{Side, View};
use crate::ledger::{Fate, Ledger};

/// Rates that are tried for the line before, as multiples of the bottleneck's: each by `STEP` more than the one before.
const MIN_FACTOR: f64 = 1.5;
const MAX_FACTOR: f64 = 2000.0;
const STEP: f64 = 1.03;
/// The same where nothing shows it: hosts are seldom on slower lines than this multiple of the bottleneck's.
const ASSUMED_FACTOR: f64 = 5.0;
/// Share by which the agreement must be better than without a line before.
const BETTER: f64 = 1.1;
/// Jitters by which equal times differ.
const JITTERS: f64 = 5.0;

/// Seconds that each transmission waits for those before it, on a line of `rate` bit/s.
fn waits(ledger: &Ledger, rate: f64) -> impl Iterator<Item = f64> {
    let (mut last, mut backlog) = (i64::MIN, 0.0_f64);
    ledger.transmissions.iter().map(move |sent| {
        backlog = (backlog - sent.at.saturating_sub(last) as f64 / 1e9).max(0.0);
        last = sent.at;
        let wait = backlog;
        backlog += f64::from(sent.wire) * 8.0 / rate;
        wait
    })
}

/// For each transmission the time in the queue of its own arrival, if it is next to a loss: seconds, and how much of it may be the
/// receiver's.
fn beside_losses(ledger: &Ledger, view: &View) -> Vec<Option<(f64, f64)>> {
    let lost = |index: usize| ledger.transmissions.get(index).is_some_and(|sent| sent.fate == Fate::Lost);
    let mut result = vec![None; ledger.transmissions.len()];
    for event in &view.events {
        let of = event.of as usize;
        if lost(of + 1) || of.checked_sub(1).is_some_and(lost) {
            result[of] = event.delay.map(|delay| (delay, event.held));
        }
    }
    result
}

/// How many of these times are the longest of them, once `rate` is taken for the line before: each counts by how near to it it is.
fn agreement(ledger: &Ledger, beside: &[Option<(f64, f64)>], rate: f64, width: f64) -> f64 {
    let left =
        || waits(ledger, rate).zip(beside).filter_map(|(wait, known)| known.map(|(delay, held)| (delay - wait, held)));
    let longest = left().map(|(delay, held)| delay - held).fold(0.0, f64::max);
    left().map(|(delay, _)| (1.0 - (longest - delay).max(0.0) / width).max(0.0)).sum()
}

/// Rate of the line before the bottleneck, bit/s; `None` if waits there are not seen. `segment` are the seconds of a full segment at the
/// bottleneck, `rate` is the bottleneck's.
fn rate_before(ledger: &Ledger, view: &View, rate: f64, segment: f64) -> Option<f64> {
    let beside = beside_losses(ledger, view);
    let width = 2.0 * segment + JITTERS * view.jitter;
    let without = agreement(ledger, &beside, f64::INFINITY, width);
    let mut best = (without * BETTER + 1.0, None);
    let mut factor = MIN_FACTOR;
    while factor < MAX_FACTOR {
        let found = agreement(ledger, &beside, rate * factor, width);
        if found > best.0 {
            best = (found, Some(rate * factor));
        }
        factor *= STEP;
    }
    best.1
}

/// Takes from the times in the queue what was spent on the line before. Where its rate is not seen, notes how much that may be.
pub(super) fn take_waits(ledger: &Ledger, view: &mut View, rate: f64, segment: f64) {
    if view.side == Side::Receiver {
        // What was sent since the same acknowledgement may have left the host together.
        view.events.iter_mut().for_each(|event| event.ahead = event.behind as f64 * 8.0 / (rate * ASSUMED_FACTOR));
        return;
    }
    let before = rate_before(ledger, view, rate, segment);
    let waits: Vec<f64> = waits(ledger, before.unwrap_or(rate * ASSUMED_FACTOR)).collect();
    for event in &mut view.events {
        let wait = waits[event.of as usize];
        match (&mut event.delay, before) {
            (Some(delay), Some(_)) => *delay = (*delay - wait).max(0.0),
            _ => event.ahead = wait,
        }
    }
}
