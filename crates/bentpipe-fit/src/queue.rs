//! The queue of the bottleneck: the longest time in it, and whether it overflowed.
//!
//! A queue is known to have been full only if segments were lost there, that is, if more losses fell on times when it
//! was almost at its longest than chance would explain.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::estimate::Estimate;
use crate::limit::Limit;
use crate::rate::RateFit;
use crate::trials::Trial;
use crate::view::{ASSUMED_FACTOR, Event, Side, View};

/// Number of segments below the longest queue that still counts as almost full: two that an acknowledgement may hide,
/// and one in transmission.
const NEAR_SEGMENTS: f64 = 3.0;
/// Number of jitters below the longest time in the queue that still counts as almost full.
const NEAR_JITTERS: f64 = 5.0;
/// Seconds between the bursts of a sender that paces, and the segments of the shortest ones: Linux's `tcp_tso_autosize`.
const PACED: f64 = 1e-3;
const PACED_SEGMENTS: f64 = 2.0;
/// If chance explains the losses with less than this probability, they are the queue's.
const LEVEL: f64 = 1e-3;

/// The queue, and which of the losses it caused.
#[derive(Debug)]
pub(crate) struct QueueFit {
    /// Longest time in the queue, in seconds.
    pub(crate) time: Estimate,
    /// Bytes that wait while one segment is on the line.
    pub(crate) bytes: Estimate,
    /// The time in the queue from which it counts as full, in seconds, if it overflowed.
    pub(crate) full_from: Option<f64>,
    /// The same where too few losses show that.
    pub(crate) maybe_full_from: Option<f64>,
}

impl QueueFit {
    /// The same if other connections share the path. Their segments may have been ahead of this one on the host's own line,
    /// where segments wait outside of the queue. If that line has five times the bottleneck's rate, this is a fifth of the
    /// whole wait.
    fn shared(mut self) -> Self {
        let less = 1.0 - 1.0 / ASSUMED_FACTOR;
        for estimate in [&mut self.time, &mut self.bytes] {
            match estimate {
                Estimate::Measured { low, .. } => *low *= less,
                Estimate::AtLeast { value, .. } => *value *= less,
                _ => {}
            }
        }
        self
    }
}

/// Estimates the queue. `is_shared`: other connections fill it, too.
pub(crate) fn queue(view: &View, rate: &RateFit, trials: &[Trial], limit: Limit, is_shared: bool) -> QueueFit {
    let fit = alone(view, rate, trials, limit, is_shared);
    if is_shared { fit.shared() } else { fit }
}

fn alone(view: &View, rate: &RateFit, trials: &[Trial], limit: Limit, is_shared: bool) -> QueueFit {
    let delays = || view.events.iter().filter_map(|event| Some((event.delay?, event.held)));
    // Near the receiver, only the first data that echoes a timestamp surely waited this long: a sender that paces sends the rest later.
    // Where others fill the queue, too, few arrivals see it full, so all of them count.
    let is_sure = |event: &&Event| view.side == Side::Sender || event.is_first || is_shared;
    let longest =
        view.events.iter().filter(is_sure).filter_map(|event| Some(event.delay? - event.held)).fold(0.0, f64::max);
    // Leaves out the time that hundreds of segments sent at once waited for one another elsewhere.
    let surely = view
        .events
        .iter()
        .filter(is_sure)
        .filter_map(|event| Some(event.delay? - event.held - event.ahead))
        .fold(0.0, f64::max);
    // Other data that echoes a timestamp may have been sent later than the first, by a sender that paces it, and the first later by the
    // time between two bursts. A lower bound.
    let late = match view.side {
        Side::Receiver => PACED.max(PACED_SEGMENTS * rate.segment_time),
        Side::Sender => 0.0,
    };
    let firsts = view.events.iter().filter(|event| event.is_first);
    let least = firsts.filter_map(|event| Some(event.delay? - event.held - event.ahead - late)).fold(0.0, f64::max);
    // Upper bound: includes reports that a receiver may have delayed.
    let at_most = delays().map(|(delay, _)| delay).fold(0.0, f64::max);
    if view.events.iter().all(|event| event.delay.is_none()) {
        let why = match view.side {
            Side::Receiver => "the capture is at the receiver, and without timestamps times in the queue are not seen",
            Side::Sender => "no acknowledgement says how long a segment waited",
        };
        return QueueFit {
            time: Estimate::unknown(why),
            bytes: Estimate::unknown(why),
            full_from: None,
            maybe_full_from: None,
        };
    }
    // Where a segment takes long, the jitter is that of the queue itself, which grows and shrinks by one or two segments.
    let narrow = NEAR_SEGMENTS * rate.segment_time;
    let near = narrow + NEAR_JITTERS * view.jitter;
    let shows = |near: f64| {
        let full_from = surely - near;
        let is_known = full_from > 0.0 && rate.segment_time > 0.0;
        is_known && (is_overflow(trials, longest - near) || is_overflow(trials, full_from))
    };
    let Some(near) = [near, narrow].into_iter().find(|&near| shows(near)) else {
        let full_from = surely - near;
        let why = if trials.iter().all(|trial| !trial.lost) {
            format!("the queue never filled: {limit}")
        } else {
            format!("no more was lost when it was longest than at other times, so it is not seen to fill: {limit}")
        };
        let bytes = match rate.rate.value() {
            Some(rate) => Estimate::at_least(least * rate / 8.0, why.as_str()),
            None => Estimate::unknown("the rate is not known"),
        };
        let maybe_full_from = Some(full_from).filter(|&from| from > 0.0);
        return QueueFit { time: Estimate::at_least(least, why), bytes, full_from: None, maybe_full_from };
    };
    let full_from = surely - near;
    // A segment that finds room waits for those before it and for the rest of the one on the line, so the queue
    // including this segment is up to one segment longer than its wait. Of two segments that share an acknowledgement,
    // the first may have waited longer by one.
    //
    // What was lost may have come when more was in the queue than any acknowledgement shows, as in a long repair without
    // SACK. Other connections' segments, and a slow line before, are not in that.
    let lost = trials.iter().filter(|trial| trial.lost).filter_map(|trial| trial.delay).fold(0.0, f64::max);
    let (full, most) = if lost > at_most + near { (lost, lost) } else { (longest + rate.segment_time / 2.0, at_most) };
    let (low, high) = (least, most + 2.0 * rate.segment_time);
    let time = Estimate::measured(full, low, high);
    let bytes = match &rate.rate {
        Estimate::Measured { value, low: slow, high: fast } => {
            Estimate::measured(full * value / 8.0, low * slow / 8.0, high * fast / 8.0)
        }
        other => match other.value() {
            Some(rate) => Estimate::at_least(least * rate / 8.0, "of the rate only a lower bound is known"),
            None => Estimate::unknown("the rate is not known"),
        },
    };
    QueueFit { time, bytes, full_from: Some(full_from), maybe_full_from: None }
}

/// True if losses at an almost full queue are more frequent than their share of the segments explains. Consecutive
/// losses count as one, since a burst on the link is one event. A full queue accepts a segment whenever one leaves, so
/// its losses form many short runs.
fn is_overflow(trials: &[Trial], full_from: f64) -> bool {
    let before = std::iter::once(false).chain(trials.iter().map(|trial| trial.lost));
    let runs = trials.iter().zip(before).filter(|(trial, before)| !(trial.lost && *before)).map(|(trial, _)| trial);
    let known = || runs.clone().filter_map(|trial| Some((trial.lost, trial.delay? >= full_from)));
    let count = |want: fn(&(bool, bool)) -> bool| known().filter(want).count() as u64;
    let (all, losses) = (count(|_| true), count(|&(lost, _)| lost));
    let (near, both) = (count(|&(_, near)| near), count(|&(lost, near)| lost && near));
    if both == 0 || near == all {
        return both > 0;
    }
    let chance = Binomial::new(near as f64 / all as f64, losses).expect("a share of something");
    chance.sf(both - 1) < LEVEL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fifth of the wait may have been on the sender's own line, so lower ends and lower bounds are a fifth less.
    #[test]
    fn shared_queues_are_at_least_four_fifths() {
        let fit = |time, bytes| QueueFit { time, bytes, full_from: None, maybe_full_from: None }.shared();
        let shared = fit(Estimate::measured(0.6, 0.5, 0.7), Estimate::at_least(1000.0, "why"));
        assert_eq!((shared.time, shared.bytes), (Estimate::measured(0.6, 0.4, 0.7), Estimate::at_least(800.0, "why")));
    }

    /// Two of three losses fall on the half of the segments that waited longest: that happens by chance. Ten of ten do not. If all waited
    /// equally long, every loss was at the longest wait.
    #[test]
    fn losses_at_the_longest_wait_by_hand() {
        let trials = |lost: &[(usize, f64)], others: f64| -> Vec<Trial> {
            let mut all: Vec<_> =
                (0..200).map(|n| Trial { lost: false, delay: Some(if n % 2 == 0 { 1.0 } else { others }) }).collect();
            lost.iter().for_each(|&(n, delay)| all[n] = Trial { lost: true, delay: Some(delay) });
            all
        };
        assert!(!is_overflow(&trials(&[(10, 1.0), (20, 1.0), (31, 0.1)], 0.1), 0.9));
        let ten: Vec<_> = (0..10).map(|n| (20 * n, 1.0)).collect();
        assert!(is_overflow(&trials(&ten, 0.1), 0.9));
        // Twenty losses in a row are one event.
        let row: Vec<_> = (100..120).map(|n| (n, 1.0)).collect();
        assert!(!is_overflow(&trials(&row, 0.1), 0.9));
        assert!(is_overflow(&trials(&[(10, 1.0)], 1.0), 0.9) && !is_overflow(&trials(&[], 1.0), 0.9));
    }
}
