//! The round trip of the empty path.
//!
//! Queues and jitter only add time, so the shortest round trip is an upper bound. How far below it the true one may lie
//! follows from the two shortest: for independent values near a lower end, the end is above `x1 - (x2 - x1) (1 - a) /
//! a` with probability 1 - a (Robson and Whitlock, Biometrika 51, 1964).

use crate::estimate::{CONFIDENCE, Estimate};
use crate::ledger::{Arrival, Fate, Ledger};
use crate::view::{Side, View};

/// Length of the longest SYN with its options, bytes on the line.
const SYN_BYTES: f64 = 80.0;

/// The lower end that follows from the two shortest values.
pub(crate) fn lower_end(shortest: f64, second: f64) -> f64 {
    let tail = 1.0 - CONFIDENCE;
    (shortest - (second - shortest) * (1.0 - tail) / tail).max(shortest / 2.0)
}

/// The path's round trip for the shortest packets, in seconds. `rate` is that of the bottleneck: there, segments take
/// longer than the handshake's packets by the time of their data. If only a lower bound of the rate is known, that time
/// is at most the one at this bound.
pub(crate) fn base(ledger: &Ledger, view: &View, rate: &Estimate) -> Estimate {
    let min_rate = rate.value();
    let rate = rate.value_if_measured();
    let (Some(down), up) = (view.to_receiver, view.to_sender) else {
        return Estimate::unknown("no acknowledgement of the data was captured");
    };
    let secs = |nanos: i64| nanos as f64 / 1e9;
    let timely = || ledger.arrivals.iter().filter(|arrival| arrival.timely);
    // The time of the segment's own bytes is subtracted: one that is not full spends less time on the line.
    let took = |arrival: &Arrival, rate: Option<f64>| {
        let on_line = rate.map_or(0.0, |rate| time_on_line(ledger, arrival, rate));
        secs(arrival.at - ledger.transmissions[arrival.of as usize].at) - on_line
    };
    let Some(up) = up else {
        let why = "neither the handshake nor timestamps show the time between the sender and the capture";
        // Near the receiver, the path is on the side that the capture does not see.
        if view.side == Side::Receiver || min_rate.is_none() {
            return Estimate::unknown(why);
        }
        let trips = timely().map(|arrival| took(arrival, min_rate));
        return Estimate::at_least(trips.fold(f64::INFINITY, f64::min).max(0.0), why);
    };
    let handshake = ledger.handshake.zip(ledger.sender_trips.iter().find(|trip| trip.of.is_none()));
    let whole = handshake.map(|(down, up)| secs(down + up.took));
    // The two shortest round trips of the data, on the side of the path.
    let mut data: Vec<f64> = match view.side {
        Side::Sender => timely().map(|arrival| took(arrival, rate) + secs(up)).collect(),
        Side::Receiver => {
            let own = |of: u32| rate.map_or(0.0, |rate| data_of(ledger, of) * 8.0 / rate);
            ledger.sender_trips.iter().filter_map(|trip| Some(secs(trip.took + down) - own(trip.of?))).collect()
        }
    };
    let mut shortest: Vec<f64> = whole.into_iter().collect();
    data.sort_unstable_by(f64::total_cmp);
    shortest.extend(data.iter().take(2).filter(|&&value| value > 0.0));
    shortest.sort_unstable_by(f64::total_cmp);
    let [first, second, ..] = shortest[..] else {
        let upper = secs(down + up);
        return Estimate::at_most(upper, "a single round trip was captured");
    };
    // Both packets of the handshake also take time on the line.
    let own = match (rate, min_rate) {
        (Some(rate), _) => 2.0 * SYN_BYTES * 8.0 / rate,
        (None, Some(min)) => f64::from(ledger.mss) * 8.0 / min,
        (None, None) => 0.0,
    };
    let value = whole.map_or(first, |whole| whole.min(first));
    let low = (lower_end(first, second) - own).max(value / 2.0);
    Estimate::measured(value, low, whole.unwrap_or(secs(down + up)).max(value))
}

/// Bytes of data in a transmission.
fn data_of(ledger: &Ledger, of: u32) -> f64 {
    let sent = &ledger.transmissions[of as usize];
    (sent.end - sent.start) as f64
}

/// Seconds that the newest segment of an acknowledgement takes for its data on a line of `rate` bit/s, including those
/// for which it waits there behind the others: of two segments sent at once, a receiver that acknowledges every second one
/// shows only the trip of the second.
fn time_on_line(ledger: &Ledger, arrival: &Arrival, rate: f64) -> f64 {
    let of = arrival.of as usize;
    let from = of.saturating_sub(arrival.segments.saturating_sub(1) as usize);
    let mut ahead = 0.0_f64;
    for pair in ledger.transmissions[from..=of].windows(2) {
        let own = if pair[0].fate == Fate::Delivered { f64::from(pair[0].wire) * 8.0 / rate } else { 0.0 };
        ahead = (ahead + own - (pair[1].at - pair[0].at) as f64 / 1e9).max(0.0);
    }
    ahead + data_of(ledger, arrival.of) * 8.0 / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end is below the shortest by 19 times its distance to the second (0.95 / 0.05), but not below half of it.
    #[test]
    fn the_lower_end_by_hand() {
        assert!((lower_end(10.0, 10.1) - 8.1).abs() < 1e-9);
        assert_eq!((lower_end(10.0, 10.0), lower_end(10.0, 20.0)), (10.0, 5.0));
    }
}
