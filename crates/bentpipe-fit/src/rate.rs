//! The rate of the bottleneck: bytes per time while its queue is not empty.
//!
//! If a segment waited in the queue, the line was busy from the departure of the previous segment to its own. So the
//! time between their arrivals is its bytes divided by the rate, whatever the sender did. Only stretches without a loss
//! count: a segment lost behind the line has taken line time; one that found the queue full has not.

use bentpipe_study::stats::{Sample, mean_interval, standard_deviation};

use crate::estimate::{CONFIDENCE, Estimate};
use crate::ledger::{Fate, Ledger};
use crate::limit::limit;
use crate::view::{Event, Side, View};

/// Number of queued segments from which the line is surely busy: two that an acknowledgement may delay, and one in
/// transmission.
const BUSY_SEGMENTS: f64 = 3.0;
/// A time in the queue above this many jitters counts as a queue.
const BUSY_JITTERS: f64 = 5.0;
/// Minimum number of segments in busy stretches for a rate: with fewer, half a segment at each end is more than 3 %.
const MIN_SEGMENTS: u64 = 30;
/// Maximum and minimum number of parts of the busy time whose rates give the interval.
const BATCHES: u64 = 30;
const MIN_BATCHES: usize = 5;
/// Near the receiver, the rate is at least that of all but the fastest parts.
const FAST_PARTS: f64 = 0.9;

/// The rate, and other results of the busy stretches.
#[derive(Debug)]
pub(crate) struct RateFit {
    /// The rate in bit/s.
    pub(crate) rate: Estimate,
    /// Standard deviation of the rate between parts of the busy time, as a share of the rate.
    pub(crate) spread: f64,
    /// Seconds that a full segment takes on the line; 0 if unknown.
    pub(crate) segment_time: f64,
}

/// Share of other connections' data from which they count as sharing the path. A smaller share is within the rate's interval.
pub(crate) const SHARED: f64 = 0.02;

/// A stretch between two arrivals.
#[derive(Clone, Copy)]
struct Stretch {
    seconds: f64,
    bytes: u64,
    segments: u64,
    /// The smaller time in the queue at its two ends, if both are known, minus the time for which a receiver may have
    /// delayed the reports.
    delay: Option<f64>,
    /// Time in the queue of its last segment in seconds: for this long before the end of the stretch, the line was
    /// surely busy.
    wait: f64,
    /// Seconds by which the start and the end may be late.
    held: (f64, f64),
    /// The transmissions whose arrivals form its ends.
    ends: (usize, usize),
}

/// Stretches between neighbouring arrivals without a loss between them.
fn stretches(ledger: &Ledger, view: &View) -> Vec<Stretch> {
    let sent = &ledger.transmissions;
    // Prefix sums over the transmissions: bytes, and the number of those that say nothing of the rate.
    let mut sums = Vec::with_capacity(sent.len() + 1);
    sums.push((0_u64, 0_u64));
    for transmission in sent {
        let (bytes, bad) = sums[sums.len() - 1];
        // Near the receiver, everything seen has arrived.
        let arrived = transmission.fate == Fate::Delivered || view.side == Side::Receiver;
        // The line has carried other data, too.
        let is_bad = !arrived || transmission.behind_other;
        sums.push((bytes + u64::from(transmission.wire), bad + u64::from(is_bad)));
    }
    let sure = if view.side == Side::Receiver { view.sure_delays(ledger) } else { Vec::new() };
    let mut result = Vec::with_capacity(view.events.len());
    for pair in view.events.windows(2) {
        let (from, to) = (pair[0].of as usize, pair[1].of as usize);
        let in_order = view.side == Side::Sender
            || (from < to && sent[from..=to].windows(2).all(|two| two[0].end == two[1].start));
        let clean = to > from && in_order && sums[to + 1].1 == sums[from + 1].1 && pair[1].at > pair[0].at;
        if !clean {
            continue;
        }
        let waited = |event: &Event| match view.side {
            Side::Sender => event.delay.map(|delay| delay - event.held),
            Side::Receiver => sure[event.of as usize],
        };
        let (before, wait) = (waited(&pair[0]), waited(&pair[1]));
        let delay = before.zip(wait).map(|(a, b)| a.min(b));
        result.push(Stretch {
            wait: wait.unwrap_or(0.0),
            held: if view.side == Side::Sender { (pair[0].held, pair[1].held) } else { (0.0, 0.0) },
            seconds: (pair[1].at - pair[0].at) as f64 / 1e9,
            bytes: sums[to + 1].0 - sums[from + 1].0,
            segments: (to - from) as u64,
            delay,
            ends: (from, to),
        });
    }
    result
}

/// The highest rate over ten consecutive arrivals in bit/s, used to convert "a few segments" into time.
fn highest(stretches: &[Stretch]) -> f64 {
    let mut best = 0.0_f64;
    for window in stretches.windows(10) {
        if window.windows(2).all(|pair| pair[0].ends.1 == pair[1].ends.0) {
            let seconds: f64 = window.iter().map(|stretch| stretch.seconds).sum();
            let bytes: u64 = window.iter().map(|stretch| stretch.bytes).sum();
            best = best.max(bytes as f64 * 8.0 / seconds);
        }
    }
    best
}

/// The share of the segments that arrive faster than the usual rate.
const FASTER: f64 = 0.25;
/// Hosts that pass several arrivals on at once let single ones follow one another faster than this factor times any rate that lasts for
/// this many seconds: that which a small share of the segments exceeds.
const JOINED: f64 = 1.2;
const LASTING: f64 = 2e-3;
const FASTEST: f64 = 0.05;
/// Minimum seconds over which the usual rate is then taken.
const SPAN: f64 = 5e-3;

/// The rate at which arrivals usually follow one another, in bit/s. It is the line's rate if the line is often busy for
/// a few segments or, behind a host that joins them, for a few milliseconds.
pub(crate) fn usual(ledger: &Ledger, view: &View) -> Option<f64> {
    let stretches = stretches(ledger, view);
    let single = faster(&stretches, FASTER, 0.0)?;
    let is_joined = faster(&stretches, FASTEST, LASTING).is_some_and(|lasting| single > JOINED * lasting);
    if is_joined { faster(&stretches, FASTER, SPAN) } else { Some(single) }
}

/// The rate in bit/s, over at least `span` seconds, that a share of the segments exceeds.
fn faster(stretches: &[Stretch], share: f64, span: f64) -> Option<f64> {
    let mut rates = spans(stretches, span);
    rates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let wanted = share * rates.iter().map(|&(_, segments)| segments as f64).sum::<f64>();
    let mut sum = 0.0;
    let found = rates.iter().find(|&&(_, segments)| {
        sum += segments as f64;
        sum >= wanted
    });
    found.map(|&(rate, _)| rate)
}

/// The lowest rate in bit/s over at least `span` seconds without a loss.
pub(crate) fn slowest(ledger: &Ledger, view: &View, span: f64) -> Option<f64> {
    spans(&stretches(ledger, view), span).iter().map(|&(rate, _)| rate).min_by(f64::total_cmp)
}

/// The rates in bit/s and segments of neighbouring stretches that together take at least `span` seconds.
fn spans(stretches: &[Stretch], span: f64) -> Vec<(f64, u64)> {
    let mut rates = Vec::new();
    let (mut seconds, mut bytes, mut segments, mut end) = (0.0, 0, 0, None);
    for stretch in stretches {
        if end != Some(stretch.ends.0) {
            (seconds, bytes, segments) = (0.0, 0, 0);
        }
        (seconds, bytes, segments) = (seconds + stretch.seconds, bytes + stretch.bytes, segments + stretch.segments);
        end = Some(stretch.ends.1);
        if seconds >= span {
            rates.push((bytes as f64 * 8.0 / seconds, segments));
            (seconds, bytes, segments) = (0.0, 0, 0);
        }
    }
    rates
}

/// The maximum amount delivered within one round trip, in bit/s, which is a lower bound for the link. What arrives
/// first was on the line before that time.
fn carried(ledger: &Ledger, view: &View) -> f64 {
    let window = view.to_receiver.unwrap_or(0).max(view.to_sender.unwrap_or(0)).max(10_000_000);
    let (mut from, mut bytes, mut best) = (0, 0_u64, 0_u64);
    let wire = |index: usize| {
        let event = view.events[index];
        u64::from(ledger.transmissions[event.of as usize].wire) * u64::from(event.segments)
    };
    for to in 0..view.events.len() {
        bytes += wire(to);
        while view.events[to].at - view.events[from].at > window {
            bytes -= wire(from);
            from += 1;
        }
        best = best.max(bytes - wire(from));
    }
    best as f64 * 8.0 / (window as f64 / 1e9)
}

/// Maximum number of passes over arrivals whose lateness is known better each time; each pass leaves about a tenth of
/// the previous error.
const PASSES: usize = 5;
/// If the upper bound changes by less than this share, another pass is not worthwhile.
const CLOSE: f64 = 1e-3;

/// Estimates the rate. `shared` is the share of other connections' data.
///
/// If a host stalled, there seems to have been a queue where there was none: the arrivals after the pause count as a
/// busy line, and the pause before them does not. So arrivals that the first estimate shows to be late are moved to
/// their proper time, and if the rate then differs, it is estimated again.
pub(crate) fn rate(ledger: &Ledger, view: &View, shared: f64) -> RateFit {
    refined(raw_rate(ledger, view, shared), |bound| raw_rate(ledger, &view.clone().settled(ledger, bound), shared))
}

/// Refines the first rate: `again` estimates it with better and better upper bounds. A bound that is too high only
/// corrects too little of the lateness, and the steps get shorter. A bound that is too low confirms itself: the steps
/// do not get shorter, and the first rate is kept.
fn refined(first: RateFit, again: impl Fn(f64) -> RateFit) -> RateFit {
    let Estimate::Measured { value: raw, low, high } = first.rate else { return first };
    let (mut bound, mut best) = (high, None);
    let (mut last, mut step) = (raw, f64::INFINITY);
    for _ in 0..PASSES {
        let next = again(bound);
        let Estimate::Measured { value, high, .. } = next.rate else { break };
        let confirms_itself = last - value > (step / 2.0).max(CLOSE * value);
        if (best.is_none() && value >= low) || confirms_itself {
            return first;
        }
        (last, step) = (value, last - value);
        let is_last = high >= bound * (1.0 - CLOSE);
        (bound, best) = (high.min(bound), Some(next));
        if is_last {
            break;
        }
    }
    best.unwrap_or(first)
}

fn raw_rate(ledger: &Ledger, view: &View, shared: f64) -> RateFit {
    let stretches = stretches(ledger, view);
    let full = f64::from(ledger.transmissions.iter().map(|sent| sent.wire).max().unwrap_or(0)) * 8.0;
    let guess = highest(&stretches);
    let threshold = (BUSY_SEGMENTS * full / guess).max(BUSY_JITTERS * view.jitter);
    let busy: Vec<Stretch> = stretches
        .iter()
        .filter(|stretch| stretch.delay.is_some_and(|delay| delay > threshold) && stretch.seconds <= stretch.wait)
        .copied()
        .collect();
    let segments: u64 = busy.iter().map(|stretch| stretch.segments).sum();
    let nothing = |rate| RateFit { rate, spread: 0.0, segment_time: 0.0 };
    if segments < MIN_SEGMENTS || guess <= 0.0 {
        return nothing(bound(ledger, view));
    }
    let seconds: f64 = busy.iter().map(|stretch| stretch.seconds).sum();
    let bytes: u64 = busy.iter().map(|stretch| stretch.bytes).sum();
    let value = bytes as f64 * 8.0 / seconds;
    let parts = batches(&busy, segments);
    let chance = mean_interval(&parts, CONFIDENCE).map_or(value, |interval| (interval.high - interval.low) / 2.0);
    let spread = standard_deviation(&parts) / value;
    // Each stretch begins and ends with an arrival. The length of a whole busy time is known to within a segment, and
    // the time for which reports at its ends were delayed.
    let half = if parts.len() < MIN_BATCHES { value / 2.0 } else { chance } + (full + held(&busy) * value) / seconds;
    let low = (value - half).max(0.0);
    // Pauses of the sender that are too short to be told from the receiver's lateness lower the rate of some parts, and raise none.
    let fast = match view.side {
        Side::Receiver => Sample::new(parts).map_or(value, |parts| parts.quantile(FAST_PARTS)),
        Side::Sender => value,
    };
    let high = fast.max(value + half);
    let rate = if shared > SHARED {
        let why = format!("other connections had {:.0} % of the data on this path", shared * 100.0);
        Estimate::at_least(if low > 0.0 { low } else { carried(ledger, view) }, why)
    } else {
        Estimate::measured(value, low, high)
    };
    RateFit { rate, spread, segment_time: full / value }
}

/// Seconds by which the sum of the busy times may be wrong, because the reports at their ends may have been delayed,
/// each independently. Between two consecutive stretches, the errors cancel.
fn held(busy: &[Stretch]) -> f64 {
    let apart = busy.windows(2).filter(|pair| pair[0].ends.1 != pair[1].ends.0);
    let inner = apart.flat_map(|pair| [pair[0].held.1, pair[1].held.0]);
    let outer = [busy.first().map_or(0.0, |first| first.held.0), busy.last().map_or(0.0, |last| last.held.1)];
    inner.chain(outer).map(|seconds| seconds * seconds).sum::<f64>().sqrt()
}

/// Rates of parts with equal numbers of segments.
fn batches(busy: &[Stretch], segments: u64) -> Vec<f64> {
    let size = (segments / BATCHES).max(MIN_SEGMENTS / MIN_BATCHES as u64);
    let (mut count, mut bytes, mut seconds) = (0, 0_u64, 0.0);
    let mut parts = Vec::new();
    for stretch in busy {
        count += stretch.segments;
        bytes += stretch.bytes;
        seconds += stretch.seconds;
        if count >= size {
            parts.push(bytes as f64 * 8.0 / seconds);
            (count, bytes, seconds) = (0, 0, 0.0);
        }
    }
    parts
}

fn bound(ledger: &Ledger, view: &View) -> Estimate {
    let carried = carried(ledger, view);
    if carried <= 0.0 {
        return Estimate::unknown("nothing is known to have arrived");
    }
    let known = view.events.iter().any(|event| event.delay.is_some());
    let why = if known {
        format!("the link was never full for long: {}", limit(ledger, view))
    } else {
        "the capture is at the receiver, and without timestamps it does not show when the link was full".to_owned()
    };
    Estimate::at_least(carried, why)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bentpipe_engine::wire::ip::{Addresses, Ports};

    use super::*;
    use crate::header::{Header, Options};

    /// A rate of this many Mbit/s, known within 1 %.
    fn of(rate: f64) -> RateFit {
        RateFit { rate: Estimate::measured(rate, 0.99 * rate, 1.01 * rate), spread: 0.0, segment_time: 0.0 }
    }

    #[test]
    fn a_rate_that_confirms_itself_is_not_taken() {
        // Each bound of 1.01 times the rate leaves a tenth of the error above 20.
        let late = refined(of(22.0), |bound| of(20.0 + 0.1 * (bound / 1.01 - 20.0)));
        assert!((late.rate.value().expect("a rate") - 20.0).abs() < 0.01, "{:?}", late.rate);
        // Each bound lowers the rate by a tenth, as in the case where 20 Mbit/s became 10.9.
        let sinking = refined(of(17.8), |bound| of(0.9 * bound / 1.01));
        assert_eq!(sinking.rate.value(), Some(17.8));
    }

    /// A queue of a few milliseconds behind a fast line, where all reports are held back: the rate is hardly known, but it is not
    /// negative.
    #[test]
    fn no_rate_is_below_zero() {
        const FULL: u32 = 1460;
        let header = |seq: u32, ack: u32, payload: u32, block: Option<(u32, u32)>| Header {
            addresses: Addresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::LOCALHOST },
            ports: Ports { source: 1, destination: 2 },
            seq: seq * FULL,
            ack: ack * FULL,
            flags: Header::ACK,
            window: 1000,
            payload,
            headers: 40,
            id: 0,
            options: block.map_or_else(Options::default, |(from, to)| Options::with_block((from * FULL, to * FULL))),
            is_cut: false,
        };
        // Segments of 12 us each. The first hundred leave at the line's rate; of the other 300, which leave at once, the first is lost.
        let departs = |n: u32| 12_000 * i64::from(n.min(100));
        let arrives = |n: u32| 20_000_000 + 12_000 * i64::from(n);
        let mut packets: Vec<_> = (0..400).map(|n| (departs(n), true, header(n, 0, FULL, None))).collect();
        packets.extend((0..100).map(|n| (arrives(n), false, header(0, n + 1, 0, None))));
        // Three reports at once, then one per millisecond.
        for n in [101, 102, 103, 186, 269, 352, 399] {
            packets.push((arrives(n), false, header(0, 100, 0, Some((101, n + 1)))));
        }
        packets.sort_by_key(|&(at, ..)| at);
        let mut ledger = Ledger::new(FULL);
        packets.iter().for_each(|(at, along, header)| ledger.take(*at, *along, header));
        let view = View::new(&ledger);
        let Estimate::Measured { value, low, high } = raw_rate(&ledger, &view, 0.0).rate else { panic!("a rate") };
        assert!((value - 1e9).abs() < 1e6 && high > 2.0 * value && low == 0.0, "{value} {low} {high}");
        // With other connections' data it is a bound, which says something: what arrived in a round trip.
        let Estimate::AtLeast { value, .. } = raw_rate(&ledger, &view, 0.5).rate else { panic!("a bound") };
        assert!(value > 1e8, "{value}");
    }

    #[test]
    fn reports_held_back_between_joined_stretches_cancel() {
        let of = |ends, held| Stretch { seconds: 1.0, bytes: 1, segments: 1, delay: None, wait: 0.0, held, ends };
        // Late by up to 3 ms at the end of the first, and by 4 ms at the beginning of the last.
        let (first, last) = ((0.0, 3e-3), (4e-3, 0.0));
        assert_eq!(held(&[of((0, 1), first), of((1, 2), last)]), 0.0);
        assert!((held(&[of((0, 1), first), of((5, 6), last)]) - 5e-3).abs() < 1e-12);
    }
}
