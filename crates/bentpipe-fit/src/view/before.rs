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
/// The multiple assumed if nothing shows the rate: hosts are seldom on slower lines than this.
const ASSUMED_FACTOR: f64 = 5.0;
/// How much better the agreement must be than without a line before the bottleneck, as a ratio.
const BETTER: f64 = 1.1;
/// Number of jitters by which equal times may differ.
const JITTERS: f64 = 5.0;

/// Seconds that each transmission waits for those before it on a line of `rate` bit/s.
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

/// For each transmission next to a loss, the time in the queue of its own arrival in seconds, and how much of that may
/// be due to the receiver.
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

/// How many of these times equal their maximum, if `rate` is assumed for the line before. Each counts by how near it is
/// to the maximum.
fn agreement(ledger: &Ledger, beside: &[Option<(f64, f64)>], rate: f64, width: f64) -> f64 {
    let left =
        || waits(ledger, rate).zip(beside).filter_map(|(wait, known)| known.map(|(delay, held)| (delay - wait, held)));
    let longest = left().map(|(delay, held)| delay - held).fold(0.0, f64::max);
    left().map(|(delay, _)| (1.0 - (longest - delay).max(0.0) / width).max(0.0)).sum()
}

/// Rate of the line before the bottleneck in bit/s; `None` if no waits are visible there. `segment` is the seconds of a
/// full segment at the bottleneck, `rate` the bottleneck's rate.
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

/// Subtracts from the times in the queue what was spent on the line before. If that line's rate is not visible, records
/// how much it may be.
pub(super) fn take_waits(ledger: &Ledger, view: &mut View, rate: f64, segment: f64) {
    if view.side == Side::Receiver {
        // Everything sent since the same acknowledgement may have left the host together.
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
