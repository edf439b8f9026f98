//! The ledger expressed as times in the queue: on which side the capture was made, and how long each segment waited.
//!
//! A capture near the sender shows the queue in the time from data to acknowledgement. A capture near the receiver
//! shows it in the time from an acknowledgement to the data that echoes its timestamp.

mod before;
mod busy;
mod late;

use bentpipe_study::stats::Sample;

use crate::ledger::{Arrival, Fate, Ledger, Trip};
pub(crate) use before::ASSUMED_FACTOR;
use late::settle;

/// Maximum time in seconds for which Linux delays a SACK: `tcp_comp_sack_delay_ns` plus `tcp_comp_sack_slack_ns`.
const MAX_HELD: f64 = 1.1e-3;

/// Tick of hosts' timestamps in seconds (RFC 7323 §5.4: 1 ms to 1 s; Linux uses 1 ms). Acknowledgements within one tick
/// look the same in an echo, so only the first data that echoes them surely answers the first.
const CLOCK: f64 = 1e-3;
/// Minimum time in seconds for which hosts delay an acknowledgement: Linux's 40 ms (`TCP_DELACK_MIN`) minus a tick of 4
/// ms.
const DELAYED_ACK: f64 = 0.036;
/// Share of the arrivals that are less late than what counts as a pause.
const LATE: f64 = 0.9;
/// A gap between acknowledgements of at least this many median gaps is a pause, whatever the rate.
const PAUSE_GAPS: f64 = 8.0;

/// The arrival of a segment, from which the timing of the bottleneck is derived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Time in nanoseconds.
    pub(crate) at: i64,
    /// The transmission.
    pub(crate) of: u32,
    /// Number of segments that arrived with it.
    pub(crate) segments: u32,
    /// Time in the queue in seconds; `None` if this arrival does not show it.
    pub(crate) delay: Option<f64>,
    /// Seconds by which `delay` may be too long, because the receiver may have delayed the report.
    pub(crate) held: f64,
    /// Near the receiver, true for the first data that echoes a timestamp: other data that echoes it may have been sent later.
    pub(crate) is_first: bool,
    /// Seconds of `delay` that may have been spent on a line before the bottleneck, behind segments sent just before.
    pub(crate) ahead: f64,
}

/// The side on which the capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// Arrivals in order, and the time that each transmission spent in the queue.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) side: Side,
    /// Minimum time of data to the receiver and back, in nanoseconds.
    pub(crate) to_receiver: Option<i64>,
    /// Minimum time to the sender and back, in nanoseconds.
    pub(crate) to_sender: Option<i64>,
    pub(crate) events: Vec<Event>,
    /// Median change of the time in the queue from arrival to arrival, in seconds: a measure of the variations of delay that have other
    /// causes than the queue.
    pub(crate) jitter: f64,
    /// Round trips of data in order of time, in nanoseconds.
    pub(crate) trips: Vec<(i64, i64)>,
}

impl View {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        let sent = |index: u32| ledger.transmissions[index as usize].at;
        let to_receiver = ledger.arrivals.iter().filter(|a| a.timely).map(|a| a.at - sent(a.of)).min();
        let to_sender = ledger.sender_trips.iter().map(|trip| trip.took).min();
        let side = match (to_receiver, to_sender) {
            (Some(down), Some(up)) if down < up => Side::Receiver,
            // Acknowledgements follow within a millisecond, so there is no path behind the point of capture.
            (Some(down), None) if down < 1_000_000 => Side::Receiver,
            _ => Side::Sender,
        };
        let events = match side {
            Side::Sender => at_sender(ledger, to_receiver.unwrap_or(0)),
            Side::Receiver => at_receiver(ledger),
        };
        let beyond = match side {
            Side::Sender => to_sender,
            Side::Receiver => to_receiver,
        };
        let least = match side {
            Side::Sender => to_receiver,
            Side::Receiver => data_to_sender(ledger),
        };
        let whole = beyond.unwrap_or(0) + least.unwrap_or(0);
        let trips = events.iter().filter_map(|e| Some((e.at, whole + (e.delay? * 1e9) as i64))).collect();
        let jitter = jitter(&events);
        View { side, to_receiver, to_sender, events, jitter, trips }
    }

    /// For each transmission, the larger of the known times in the queue at and around it, in seconds; `None` if none is known.
    pub(crate) fn delays(&self, ledger: &Ledger) -> Vec<Option<f64>> {
        spread(self.events.iter().map(|event| (event.of, event.delay)), ledger.transmissions.len())
    }

    /// As [`Self::delays`], of first answers only, and less the time by which they may be too long.
    pub(crate) fn sure_delays(&self, ledger: &Ledger) -> Vec<Option<f64>> {
        let first = self.events.iter().filter(|event| event.is_first);
        let sure = first.map(|event| (event.of, event.delay.map(|delay| delay - event.held)));
        spread(sure, ledger.transmissions.len())
    }

    /// Moves arrivals to the latest time at which they can have left the line, and removes later delays from the times
    /// in the queue, as far as the line's rate (bit/s) shows this.
    pub(crate) fn settled(mut self, ledger: &Ledger, rate: f64) -> Self {
        settle(ledger, self.side, &mut self.events, rate);
        self.jitter = jitter(&self.events);
        self
    }

    /// Times in the queue relative to the shortest trip, without the packet's own time on a line of `rate` bit/s: a
    /// short segment's trip is shorter without there being less queue.
    pub(crate) fn sized(mut self, ledger: &Ledger, rate: f64) -> Self {
        let own = |of: u32| f64::from(ledger.transmissions[of as usize].wire) * 8.0 / rate;
        let trips: Vec<(i64, u32)> = match self.side {
            Side::Sender => {
                let timely = ledger.arrivals.iter().filter(|arrival| arrival.timely);
                timely.map(|arrival| (arrival.at - ledger.transmissions[arrival.of as usize].at, arrival.of)).collect()
            }
            Side::Receiver => ledger.sender_trips.iter().filter_map(|trip| Some((trip.took, trip.of?))).collect(),
        };
        let shortest = trips.iter().map(|&(took, _)| took).min().unwrap_or(0);
        let base =
            trips.iter().map(|&(took, of)| (took - shortest) as f64 / 1e9 - own(of)).fold(f64::INFINITY, f64::min);
        for event in &mut self.events {
            if let Some(delay) = &mut event.delay {
                *delay = (*delay - own(event.of) - base).max(0.0);
            }
        }
        self
    }

    /// Near the receiver, limits times in the queue to the time for which the line has been busy. A sender whose
    /// application pauses answers late, which is not queueing. `rate` is that of the bottleneck in bit/s.
    pub(crate) fn while_busy(mut self, ledger: &Ledger, rate: f64) -> Self {
        if self.side == Side::Receiver {
            let settled = self.clone().settled(ledger, rate);
            let pairs = self.events.iter().zip(&settled.events);
            let late: Vec<f64> = pairs.map(|(event, settled)| (event.at - settled.at) as f64).collect();
            let late = Sample::new(late).map_or(0.0, |late| late.quantile(LATE));
            busy::bound(ledger, &mut self.events, &settled.events, (rate, late));
        }
        self
    }

    /// Removes from the times in the queue what was spent on a faster line before it, if the sender sent many segments
    /// at once. `rate` is that of the bottleneck in bit/s, and `segment` the seconds that a full segment takes there.
    pub(crate) fn behind_fast_line(mut self, ledger: &Ledger, rate: f64, segment: f64) -> Self {
        before::take_waits(ledger, &mut self, rate, segment);
        self
    }
}

/// Median change of the time in the queue from arrival to arrival, in seconds.
fn jitter(events: &[Event]) -> f64 {
    let known: Vec<f64> = events.iter().filter_map(|event| event.delay).collect();
    let changes: Vec<f64> = known.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    Sample::new(changes).map_or(0.0, |changes| changes.median())
}

fn at_sender(ledger: &Ledger, least: i64) -> Vec<Event> {
    // A receiver that acknowledges every second segment delays the acknowledgement of a single one. A receiver that
    // acknowledges each segment seems to acknowledge two only where an acknowledgement was lost. If these losses are
    // independent with probability p, such pairs are p times as many as single ones: less than one in ten up to p = 10 %.
    // (Behind a gap, every receiver acknowledges each segment.) Linux alternates between the two: if single segments
    // are seldom delayed, the pause before such an acknowledgement and its long trip show it.
    let timely = || ledger.arrivals.iter().filter(|arrival| arrival.timely);
    let pairs = timely().filter(|arrival| arrival.segments == 2).count();
    let waits = 10 * pairs > timely().filter(|arrival| arrival.may_wait).count();
    let mut last = None;
    let gaps: Vec<f64> = ledger.arrivals.windows(2).map(|pair| (pair[1].at - pair[0].at) as f64 / 1e9).collect();
    let pause = Sample::new(gaps).map_or(0.0, |gaps| PAUSE_GAPS * gaps.median()).max(DELAYED_ACK);
    let wait = |arrival: &Arrival| arrival.at - ledger.transmissions[arrival.of as usize].at - least;
    let kept = timely().filter(|arrival| {
        let gap = last.replace(arrival.at).map_or(0, |last| arrival.at - last);
        let waited = gap.min(wait(arrival)) as f64 / 1e9 >= pause;
        !(arrival.may_wait && (waits || waited))
    });
    // Whatever the gaps: if no further segment can have come before this acknowledgement, the receiver may have waited for one.
    let is_held = |arrival: &Arrival| {
        let next = ledger.transmissions.get(arrival.of as usize + 1);
        let is_alone = next.is_none_or(|next| next.at > arrival.at - least);
        arrival.may_wait && is_alone && wait(arrival) as f64 / 1e9 >= DELAYED_ACK
    };
    let event = |arrival: &Arrival| Event {
        at: arrival.at,
        of: arrival.of,
        segments: arrival.segments,
        delay: (!is_held(arrival)).then(|| wait(arrival) as f64 / 1e9),
        held: if arrival.compressed { MAX_HELD } else { 0.0 },
        is_first: true,
        ahead: 0.0,
    };
    kept.map(event).collect()
}

/// Minimum time from an acknowledgement to data that answers it, in nanoseconds.
fn data_to_sender(ledger: &Ledger) -> Option<i64> {
    ledger.sender_trips.iter().filter(|trip| trip.of.is_some()).map(|trip| trip.took).min()
}

/// Seconds by which the time of each trip that ends with data may be too long, with the trip.
///
/// The first data of a tick answers the tick's first acknowledgement if the sender answers each one: in this tick and in
/// the one before, it sent at least as many segments as it received acknowledgements.
fn held(ledger: &Ledger) -> Vec<(Trip, f64)> {
    let trips = || ledger.sender_trips.iter().filter(|trip| trip.of.is_some());
    let firsts: Vec<&Trip> = trips().filter(|trip| trip.behind == 0).collect();
    let answered = |pair: &[&Trip]| pair[1].of.zip(pair[0].of).is_some_and(|(next, of)| next - of >= pair[0].acks);
    // The capture may show only a part of the last tick.
    let answered: Vec<bool> = firsts.windows(2).map(answered).chain([false]).collect();
    let mut tick = 0;
    let held = |trip: &Trip| {
        if trip.behind > 0 {
            return (*trip, CLOCK);
        }
        let before = tick == 0 || (answered[tick - 1] && !trip.skipped);
        let sure = before && answered[tick];
        tick += 1;
        (*trip, if sure { 0.0 } else { trip.apart as f64 / 1e9 })
    };
    trips().map(held).collect()
}

fn at_receiver(ledger: &Ledger) -> Vec<Event> {
    let least = data_to_sender(ledger).unwrap_or(0);
    let trips = held(ledger);
    let mut trips =
        trips.iter().filter_map(|(trip, held)| Some((trip.of?, trip.took, trip.behind == 0, *held))).peekable();
    let arrived = ledger.transmissions.iter().enumerate().filter(|(_, sent)| sent.fate != Fate::NotNeeded);
    let event = |(index, sent): (usize, &crate::ledger::Transmission)| {
        let of = index as u32;
        while trips.next_if(|&(other, ..)| other < of).is_some() {}
        let trip = trips.next_if(|&(other, ..)| other == of);
        let delay = trip.map(|(_, took, ..)| (took - least) as f64 / 1e9);
        let held = trip.map_or(0.0, |(.., held)| held);
        let is_first = trip.is_none_or(|(_, _, first, _)| first);
        Event { at: sent.at, of, segments: 1, delay, held, is_first, ahead: 0.0 }
    };
    let mut events: Vec<Event> = Vec::new();
    for event in arrived.map(event) {
        match events.last_mut() {
            // If an offload has joined packets, the last segment arrived when the joined packet is seen.
            Some(last) if last.at == event.at => {
                last.of = event.of;
                last.segments += 1;
            }
            _ => events.push(event),
        }
    }
    events
}

/// For each of `count` transmissions the larger of the known delays before and after it.
fn spread(delays: impl Iterator<Item = (u32, Option<f64>)>, count: usize) -> Vec<Option<f64>> {
    let mut own = vec![None; count];
    for (of, delay) in delays {
        own[of as usize] = delay;
    }
    let carry = |last: &mut Option<f64>, value: &Option<f64>| {
        *last = value.or(*last);
        Some(*last)
    };
    let before: Vec<_> = own.iter().scan(None, carry).collect();
    let mut after: Vec<_> = own.iter().rev().scan(None, carry).collect();
    after.reverse();
    before.into_iter().zip(after).map(|(a, b)| larger(a, b)).collect()
}

/// The larger of the known values.
pub(crate) fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}
