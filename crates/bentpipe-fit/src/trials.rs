//! Which segments were lost, in the order in which the link saw them.
//!
//! Near the sender, this is the order of the transmissions, including repeated ones. Near the receiver, it is the order
//! of the data: a gap that was filled at least a round trip to the sender later was a loss. There, repeated
//! transmissions that are lost again leave no trace.

use std::collections::BTreeSet;

use crate::ledger::{Fate, Ledger, Transmission};
use crate::view::{ASSUMED_FACTOR, Side, View, larger};

/// Late data counts as sent again after this many nanoseconds if the time to the sender is unknown: networks that
/// reorder packets do so by less.
const LATE_NS: i64 = 10_000_000;

/// A segment that either was lost or arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) lost: bool,
    /// Time in the queue of its neighbours, in seconds.
    pub(crate) delay: Option<f64>,
}

/// For each trial, whether a full queue may have dropped it although too few losses show that: it is one of several losses
/// in a row, and its neighbours waited at least `from` seconds. A single loss may as well be the link's.
pub(crate) fn doubtful(trials: &[Trial], from: f64) -> Vec<bool> {
    let near = |trial: &Trial| trial.lost && trial.delay.is_some_and(|delay| delay >= from);
    let is_run = |run: &[Trial]| run.len() > 1 && run.iter().any(near);
    trials.chunk_by(|a, b| a.lost && b.lost).flat_map(|run| std::iter::repeat_n(is_run(run), run.len())).collect()
}

/// All segments whose fate is known. `rate` is that of the bottleneck in bit/s, if it was measured.
pub(crate) fn trials(ledger: &Ledger, view: &View, rate: Option<f64>) -> Vec<Trial> {
    match view.side {
        Side::Sender => {
            let waits = rate.map_or(Vec::new(), |rate| waits(ledger, view, rate));
            let waits = waits.into_iter().map(Some).chain(std::iter::repeat(None));
            let delays = view.delays(ledger).into_iter().zip(waits).map(|(known, wait)| larger(known, wait));
            let fates = ledger.transmissions.iter().zip(delays);
            let trial = |(sent, delay): (&Transmission, Option<f64>)| match sent.fate {
                Fate::Delivered => Some(Trial { lost: false, delay }),
                Fate::Lost => Some(Trial { lost: true, delay }),
                Fate::Open | Fate::NotNeeded => None,
            };
            fates.filter_map(trial).collect()
        }
        Side::Receiver => by_number(ledger, view),
    }
}

/// How long each transmission had to wait, in seconds: as its own answer says, or else as follows from the last one
/// whose answer says it and from what was sent since. Of many segments sent at once, few are answered one by one, and the
/// queue may fill between these.
fn waits(ledger: &Ledger, view: &View, rate: f64) -> Vec<f64> {
    let mut own = vec![None; ledger.transmissions.len()];
    view.events.iter().for_each(|event| own[event.of as usize] = event.delay);
    // When the last one came to the bottleneck, in seconds, and how long the next one would have to wait then.
    let (mut last, mut queue) = (f64::NEG_INFINITY, 0.0_f64);
    let wait = |(sent, own): (&Transmission, Option<f64>)| {
        let time = f64::from(sent.wire) * 8.0 / rate;
        // Segments sent at once follow one another on the host's own line.
        let at = (sent.at as f64 / 1e9).max(last + time / ASSUMED_FACTOR);
        let wait = own.unwrap_or((queue - (at - last)).max(0.0));
        queue = if sent.fate == Fate::Lost { wait } else { wait + time };
        last = at;
        wait
    };
    ledger.transmissions.iter().zip(own).map(wait).collect()
}

fn by_number(ledger: &Ledger, view: &View) -> Vec<Trial> {
    let late = view.to_sender.map_or(LATE_NS, |took| took / 10 * 9);
    let mss = u64::from(ledger.mss.max(1));
    // Start of the data, and the fate of the first transmission there.
    let mut all: Vec<(u64, Trial)> = Vec::with_capacity(ledger.transmissions.len());
    let mut end = 0;
    let (mut fills, mut early) = (Vec::new(), BTreeSet::new());
    for fill in &ledger.holes.fills {
        if fill.after >= late {
            fills.push(fill);
        } else {
            early.insert(fill.start);
        }
    }
    fills.sort_unstable_by_key(|fill| fill.start);
    for (sent, delay) in ledger.transmissions.iter().zip(view.delays(ledger)) {
        // What came late is tried once, even if it is sent again without need.
        if sent.start >= end || early.remove(&sent.start) {
            all.push((sent.start, Trial { lost: false, delay }));
            end = end.max(sent.end);
        }
    }
    // What came late is behind others until here.
    all.sort_by_key(|(start, _)| *start);
    let arrived = all.clone();
    for fill in fills {
        // The missing segment was sent just after the data before the gap, or just before the data behind it: a sender
        // may pause on either side, and the queue empties meanwhile. So the longer of the two times in the queue is
        // used.
        let behind = arrived.partition_point(|(start, _)| *start < fill.end);
        let before = behind.checked_sub(1).and_then(|before| arrived[before].1.delay);
        let behind = arrived.get(behind).and_then(|(_, trial)| trial.delay);
        let delay = larger(before, behind);
        for segment in 0..(fill.end - fill.start).div_ceil(mss) {
            all.push((fill.start + segment * mss, Trial { lost: true, delay }));
        }
    }
    all.sort_by_key(|(start, _)| *start);
    let known_from = known_from(ledger, view);
    all.into_iter().filter(|(start, _)| *start >= known_from).map(|(_, trial)| trial).collect()
}

/// Share of the longest time in the queue from which it counts as long.
const LONG: f64 = 0.9;

/// Start of the first data whose time in the queue is known, if the capture begins in the middle of a connection: data of the
/// first round trip echoes acknowledgements from before the capture. The queue may have been full meanwhile, even if it is not
/// later. If it is, all data counts.
fn known_from(ledger: &Ledger, view: &View) -> u64 {
    if ledger.whole_handshake {
        return 0;
    }
    let longest = view.events.iter().filter_map(|event| event.delay).fold(0.0, f64::max);
    let first = view.events.iter().find_map(|event| Some((event, event.delay?)));
    let first = first.filter(|&(_, delay)| delay < LONG * longest);
    first.map_or(0, |(event, _)| ledger.transmissions[event.of as usize].start)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bentpipe_engine::wire::ip::{Addresses, Ports};

    use super::*;
    use crate::header::Header;
    use crate::view::Event;

    /// The segment with this number.
    fn segment(number: u32) -> Header {
        Header {
            addresses: Addresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::LOCALHOST },
            ports: Ports { source: 1, destination: 2 },
            seq: number * 100,
            ack: 0,
            flags: Header::ACK,
            window: 1000,
            payload: 100,
            headers: 40,
            id: 0,
            options: Default::default(),
            is_cut: false,
        }
    }

    /// Runs of two or more losses are doubtful as a whole if one of them waited long enough; a single loss is not.
    #[test]
    fn runs_at_the_longest_wait_are_doubtful() {
        let trial = |lost, delay| Trial { lost, delay: Some(delay) };
        let all = [
            trial(true, 0.1),
            trial(true, 0.5),
            trial(false, 0.5),
            trial(true, 0.5),
            trial(false, 0.5),
            trial(true, 0.1),
            trial(true, 0.4),
        ];
        assert_eq!(doubtful(&all, 0.5), [true, true, false, false, false, false, false]);
        assert_eq!(doubtful(&all, 0.4), [true, true, false, false, false, true, true]);
    }

    /// Segments of 100 bytes that pass near the receiver at these times (ms), by number.
    fn received(mut passed: Vec<(i64, u32)>) -> Ledger {
        let mut ledger = Ledger::new(100);
        passed.sort_by_key(|(at, _)| *at);
        for (at, number) in passed {
            ledger.take(at * 1_000_000, true, &segment(number));
        }
        ledger
    }

    fn near_the_receiver(ledger: &Ledger) -> View {
        View { side: Side::Receiver, to_sender: Some(200_000_000), ..View::new(ledger) }
    }

    /// 30 is late by 4 ms, 20 by 15 ms; 10 is lost, and sent again after 250 ms; 20 is also sent again, without need. Each was tried once,
    /// whatever the order in which the gaps were filled.
    #[test]
    fn late_segments_were_tried_once() {
        let late = |n: u32| match n {
            10 => 250,
            20 => 15,
            30 => 4,
            _ => 0,
        };
        let again = (i64::from(20 + 240), 20);
        let ledger = received((0..300).map(|n| (i64::from(n + late(n)), n)).chain([again]).collect());
        let fills: Vec<_> = ledger.holes.fills.iter().map(|fill| fill.start / 100).collect();
        assert_eq!(fills, [30, 20, 10]);
        let all = trials(&ledger, &near_the_receiver(&ledger), None);
        assert_eq!((all.len(), all.iter().filter(|trial| trial.lost).count()), (300, 1));
    }

    /// 1 to 9 come behind 150, and 10, which was lost, at the end: its neighbours are 9 and 11, of which 11 waited longer.
    #[test]
    fn the_neighbours_of_a_loss_are_those_of_its_data() {
        let order: Vec<u32> = (0..=0).chain(11..=150).chain(1..=9).chain(151..300).chain([10]).collect();
        let ledger = received((0..).zip(order.iter().copied()).collect());
        let waited = |number: u32| if number == 11 { 0.5 } else { 0.1 };
        let events = order.iter().zip(0..).map(|(&number, of)| Event {
            at: 0,
            of,
            segments: 1,
            delay: Some(waited(number)),
            held: 0.0,
            is_first: true,
            ahead: 0.0,
        });
        let view = View { events: events.collect(), ..near_the_receiver(&ledger) };
        let lost: Vec<_> = trials(&ledger, &view, None).into_iter().filter(|trial| trial.lost).collect();
        assert_eq!(lost, [Trial { lost: true, delay: Some(0.5) }]);
    }

    /// 10 and 150 are lost, and the first data that echoes an acknowledgement of the capture is 100. In the middle of a connection, what
    /// came before may have met a full queue if 100 did not; after a handshake, it was sent into an empty one.
    #[test]
    fn losses_in_a_round_trip_of_unknown_delays_do_not_count() {
        let late = |number: u32| if [10, 150].contains(&number) { 500 } else { 0 };
        let mut ledger = received((0..300).map(|number| (i64::from(number) + late(number), number)).collect());
        let cases = [(false, 0.1, 200, 1), (false, 0.5, 300, 2), (true, 0.1, 300, 2)];
        for (whole_handshake, first, count, lost) in cases {
            ledger.whole_handshake = whole_handshake;
            let event = |(of, sent): (u32, &Transmission)| Event {
                at: sent.at,
                of,
                segments: 1,
                delay: (sent.start >= 10_000).then_some(if sent.start < 15_000 { first } else { 0.5 }),
                held: 0.0,
                is_first: true,
                ahead: 0.0,
            };
            let events = (0..).zip(&ledger.transmissions).map(event).collect();
            let all = trials(&ledger, &View { events, ..near_the_receiver(&ledger) }, None);
            assert_eq!((all.len(), all.iter().filter(|trial| trial.lost).count()), (count, lost));
        }
    }
}
