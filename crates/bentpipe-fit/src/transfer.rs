//! The path of a TCP transfer, estimated from a capture.

use std::path::Path;

use serde::Serialize;

use crate::capture::{Ending, frames};
use crate::choice::{Choice, Chosen, Flow};
use crate::empty::was_empty;
use crate::error::{FitError, Problem};
use crate::estimate::Estimate;
use crate::header::{self, Header, Skip};
use crate::in_order::{InOrder, MAX_BACK_NS};
use crate::ledger::Ledger;
use crate::limit::limit;
use crate::link_layer::{self, Content};
use crate::losses::{Losses, losses};
use crate::queue::queue;
use crate::rate::{SHARED, rate, usual};
use crate::round_trip::base;
use crate::trials::{doubtful, trials};
use crate::view::{Side, View};
use crate::{Bytes, Open};

/// A packet with more payload than this consists of several segments: jumbo frames have 9000 bytes.
const MAX_MTU: u32 = 9000;
/// Maximum segment size for Ethernet's 1500 bytes (RFC 9293 §3.7.1).
const ETHERNET_MSS: u32 = 1460;
/// Maximum time between the first packet of a transfer and another one. With it, differences of times and sums of some of them fit 64
/// bits.
const MAX_NS: u64 = 10 * 31_556_952 * 1_000_000_000;
/// Width of the bins of the delays over time.
const BIN_NS: i64 = 10_000_000;
/// Variation of the rate, as a share of it, from which a note mentions it.
const VARIES: f64 = 0.1;

/// What a capture of a transfer says about the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    /// Sender of the data: address and port.
    pub from: String,
    /// Receiver of the data: address and port.
    pub to: String,
    /// The end that is nearer to the point of capture: `sender` or `receiver`.
    pub near: &'static str,
    /// Seconds from the first to the last packet in the data's direction.
    pub seconds: f64,
    /// Bytes of data, each counted once.
    pub bytes: u64,
    /// Maximum segment size, bytes.
    pub mss: u32,
    /// Rate of the bottleneck, bit/s of IP packets.
    pub rate: Estimate,
    /// Standard deviation of the rate between parts of the busy time, as a share of it.
    pub rate_spread: f64,
    /// Round trip of the shortest packets on the empty path, seconds.
    pub base_round_trip: Estimate,
    /// Longest time in the queue, seconds.
    pub queue_time: Estimate,
    /// Length of the queue at that time, in bytes.
    pub queue_bytes: Estimate,
    /// Number of losses caused by the queue.
    pub queue_losses: u64,
    /// Losses on the link: all that the queue did not cause, among the segments for which the queue had room.
    pub losses: Losses,
    /// Round trips of the data: pairs of seconds since the start and the shortest round trip in each 10 ms, in seconds.
    pub round_trips: Vec<(f64, f64)>,
    /// The limitations of these figures.
    pub notes: Vec<String>,
}

/// Counts of packets that were not used.
#[derive(Default)]
struct Skipped {
    short: u64,
    /// Number of packets used without all their options, and the frame length in bytes that would hold the longest.
    cut: u64,
    whole: usize,
    damaged: u64,
    fragments: u64,
    /// Frames of unsupported link types, and one such type.
    unknown: Option<i32>,
}

/// Reads the file and passes each TCP segment.
fn segments(path: &Path, source: Bytes, mut each: impl FnMut(i64, u32, Header)) -> Result<(Skipped, Ending), FitError> {
    let mut skipped = Skipped::default();
    let ending = frames(source, |frame| match link_layer::content(frame.link_type, frame.bytes) {
        Content::Ip(at) => {
            let line = (frame.length as usize).saturating_sub(at);
            match header::parse(frame.bytes.get(at..).unwrap_or_default(), line) {
                Ok(header) => {
                    skipped.cut += u64::from(header.is_cut);
                    skipped.whole = skipped.whole.max(at + header.max_headers());
                    each(frame.at, frame.interface, header);
                }
                Err(Skip::Short) => skipped.short += 1,
                Err(Skip::Damaged) => skipped.damaged += 1,
                Err(Skip::Fragment) => skipped.fragments += 1,
                Err(Skip::NotTcp) => {}
            }
        }
        Content::Other => {}
        Content::UnknownLinkType => skipped.unknown = Some(frame.link_type),
    });
    match ending {
        Ok(ending) => Ok((skipped, ending)),
        Err(Problem { offset, message }) => Err(FitError::Capture { path: path.to_owned(), offset, message }),
    }
}

/// Estimates the path of the largest transfer in a capture.
pub(crate) fn fit(path: &Path, open: Open<'_>) -> Result<Transfer, FitError> {
    let mut choice = Choice::default();
    let mut interfaces = 0;
    let (skipped, ending) = segments(path, open()?, |at, interface, header| {
        interfaces = interfaces.max(interface + 1);
        choice.count(at, Flow::of(interface, &header), &header);
    })?;
    let chosen = choice.chosen().ok_or_else(|| nothing(path, &skipped))?;
    // Used without a SYN: a longer packet must come from an offload, which joins segments as long as Ethernet's.
    let mss = if chosen.longest > MAX_MTU { ETHERNET_MSS } else { chosen.longest };
    let mut ledger = Ledger::new(mss);
    let mut ends = (i64::MAX, i64::MIN);
    let mut order = InOrder::new();
    let mut take = |at: i64, (along, header): (bool, Header)| {
        if along {
            ends = (ends.0.min(at), ends.1.max(at));
        }
        ledger.take(at, along, &header);
    };
    let (mut first, mut apart) = (None, 0);
    segments(path, open()?, |at, interface, header| {
        let flow = Flow::of(interface, &header);
        if !flow.same_connection(&chosen.flow) {
            return;
        }
        let since = at.abs_diff(*first.get_or_insert(at));
        if since > MAX_NS {
            apart = apart.max(since);
            return;
        }
        order.take(at, (flow == chosen.flow, header), &mut take);
    })?;
    order.finish(take);
    let unusable = |message: String| Err(FitError::Nothing { path: path.to_owned(), message });
    if order.max_back > MAX_BACK_NS {
        let back = order.max_back as f64 / 1e9;
        return unusable(format!(
            "the times of its packets go back by {back:.3} s: expected packets in order of time. `reordercap` sorts them; if the clock was set \
             meanwhile, capture again"
        ));
    }
    if apart > 0 {
        let years = apart / (MAX_NS / 10);
        return unusable(format!(
            "its packets are {years} years apart: expected a transfer of less than ten years. If the clock was set meanwhile, capture again"
        ));
    }
    if ledger.counts.acks == 0 {
        return unusable(
            "of the largest transfer none of its acknowledgements was captured: capture both directions".to_owned(),
        );
    }
    let mut notes = notes(&skipped, ending, interfaces);
    if order.back > 0 {
        notes.push(format!(
            "{} packets have a time before that of the packet before, by up to {:.3} ms; they were sorted",
            order.back,
            order.max_back as f64 / 1e6
        ));
    }
    Ok(estimate(&ledger, &chosen, ends, &mut notes))
}

fn nothing(path: &Path, skipped: &Skipped) -> FitError {
    let message = match skipped {
        Skipped { unknown: Some(kind), .. } => {
            format!("link type {kind} is not supported: expected {}", link_layer::SUPPORTED)
        }
        Skipped { short: 1.., .. } => {
            "every TCP packet is cut off within its headers: capture 128 bytes or more of each".to_owned()
        }
        _ if skipped.whole > 0 => {
            "expected TCP packets with data; those of the capture have none: capture both directions".to_owned()
        }
        _ => "expected TCP packets with data: of UDP, and so of QUIC, nothing is read".to_owned(),
    };
    FitError::Nothing { path: path.to_owned(), message }
}

fn notes(skipped: &Skipped, ending: Ending, interfaces: u32) -> Vec<String> {
    let mut notes = Vec::new();
    if skipped.cut > 0 {
        notes.push(format!(
            "{} packets are cut off within their options, so SACK blocks are missing and less is known of losses: capture {} bytes or more \
             of each (`tcpdump -s {}`)",
            skipped.cut, skipped.whole, skipped.whole
        ));
    }
    let counted = [
        (
            skipped.short,
            "packets are cut off within their headers and were left out: capture 128 bytes or more of each",
        ),
        (skipped.damaged, "packets have impossible lengths and were left out"),
        (skipped.fragments, "IP fragments were left out"),
    ];
    notes.extend(counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    if let Ending::Cut(at) = ending {
        notes.push(format!("from byte {at} on the file has no whole packet; what is before it was used"));
    }
    if interfaces > 1 {
        notes.push(format!("of {interfaces} interfaces the one with the most data was used"));
    }
    notes
}

/// Why times are measured from a trip that may have been through a queue.
const NEVER_EMPTY: &str = "the capture begins in the middle of a connection, and the queue was never seen to be empty";

fn estimate(ledger: &Ledger, chosen: &Chosen, ends: (i64, i64), notes: &mut Vec<String>) -> Transfer {
    let view = View::new(ledger);
    let view = match usual(ledger, &view) {
        Some(usual) => view.while_busy(ledger, usual),
        None => view,
    };
    let rate = rate(ledger, &view, chosen.others_share);
    let view = match rate.rate {
        Estimate::Measured { value, high, .. } => view
            .sized(ledger, value)
            .settled(ledger, high)
            .while_busy(ledger, value)
            .behind_fast_line(ledger, value, rate.segment_time),
        _ => view,
    };
    let fates = trials(ledger, &view, rate.rate.value_if_measured());
    let is_shared = chosen.others_share > SHARED;
    let mut queue = queue(&view, &rate, &fates, limit(ledger, &view), is_shared);
    let is_full = |delay: Option<f64>| queue.full_from.zip(delay).is_some_and(|(from, delay)| delay >= from);
    let with_room = fates.iter().filter(|trial| !is_full(trial.delay)).map(|trial| trial.lost);
    let mut losses = losses(with_room);
    if let Some(from) = queue.maybe_full_from {
        let doubtful = doubtful(&fates, from);
        let count = doubtful.iter().filter(|&&doubtful| doubtful).count();
        if count > 0 {
            let others = fates.iter().zip(&doubtful).filter(|(_, doubtful)| !**doubtful).map(|(trial, _)| trial.lost);
            losses = losses.or(&crate::losses::losses(others));
            notes.push(format!(
                "{count} losses in a row came when the wait was longest: a full queue's or the link's, so the interval has both"
            ));
        }
    }
    if view.events.iter().all(|event| event.delay.is_none()) {
        losses = losses
            .with_those_of_a_queue("the times in the queue are not seen, so losses of a full queue are among these");
    } else if is_shared {
        losses = losses.with_those_of_a_queue(
            "other connections fill the queue, too, between this one's segments, so its losses may be among these",
        );
    }
    let mut base_round_trip = base(ledger, &view, &rate.rate);
    if !was_empty(ledger, &view, &rate.rate, is_shared) {
        base_round_trip = base_round_trip.or_less(NEVER_EMPTY);
        (queue.time, queue.bytes) = (queue.time.or_more(NEVER_EMPTY), queue.bytes.or_more(NEVER_EMPTY));
        losses = losses.with_those_of_a_queue(NEVER_EMPTY);
    }
    let queue_losses = fates.iter().filter(|trial| trial.lost && is_full(trial.delay)).count() as u64;
    remarks(ledger, &view, chosen, notes);
    if rate.spread > VARIES {
        notes.push(format!("the rate varies by {:.0} % between parts of the busy time", rate.spread * 100.0));
    }
    let distinct = ledger.transmissions.iter().map(|sent| sent.end).max().unwrap_or(0);
    let first = ledger.transmissions.iter().map(|sent| sent.start).min().unwrap_or(0);
    let address = |address: std::net::IpAddr, port: u16| std::net::SocketAddr::new(address, port).to_string();
    let Flow { addresses, ports, .. } = chosen.flow;
    Transfer {
        from: address(addresses.source(), ports.source),
        to: address(addresses.destination(), ports.destination),
        near: if view.side == Side::Sender { "sender" } else { "receiver" },
        seconds: (ends.1 - ends.0).max(0) as f64 / 1e9,
        bytes: distinct - first,
        mss: ledger.mss,
        base_round_trip,
        rate: rate.rate,
        rate_spread: rate.spread,
        queue_time: queue.time,
        queue_bytes: queue.bytes,
        queue_losses,
        losses,
        round_trips: binned(&view.trips),
        notes: std::mem::take(notes),
    }
}

/// Adds the limitations of the figures from this capture.
fn remarks(ledger: &Ledger, view: &View, chosen: &Chosen, notes: &mut Vec<String>) {
    let counts = ledger.counts;
    if !ledger.whole_handshake {
        notes.push(
            "the handshake was not captured: window scales, and so the receiver's window, are not known".to_owned(),
        );
    }
    if counts.copies > 0 {
        notes.push(format!("{} packets were captured twice; the copies were left out", counts.copies));
    }
    if counts.merged > 0 {
        let merged = counts.merged;
        notes.push(format!(
            "{merged} packets are longer than a segment (offloads join them); each counts as several sent at once"
        ));
    }
    if counts.unseen > 0 {
        notes.push(format!("{} bytes were acknowledged that the capture does not have", counts.unseen));
    }
    if counts.beyond > 0 {
        notes.push(format!("the last {} segments were left out: there are more than fit", counts.beyond));
    }
    if !ledger.sack {
        notes.push(
            "without SACK, losses are seen only as far as data was sent again, and arrivals behind a gap not at all"
                .to_owned(),
        );
    }
    match view.side {
        Side::Receiver => notes.push(
            "captured near the receiver: repeated segments that were lost again are not seen; nor is what the sender's side lost of \
             acknowledgements"
                .to_owned(),
        ),
        Side::Sender => notes.push("captured near the sender: losses of acknowledgements are not seen".to_owned()),
    }
    match chosen.others {
        0 => {}
        1 => notes.push("1 other connection in the capture was not looked at".to_owned()),
        others => notes.push(format!("{others} other connections in the capture were not looked at")),
    }
}

/// The shortest round trip in each bin.
fn binned(trips: &[(i64, i64)]) -> Vec<(f64, f64)> {
    let Some(start) = trips.iter().map(|trip| trip.0).min() else { return Vec::new() };
    let mut bins = std::collections::BTreeMap::new();
    for &(at, took) in trips {
        let least = bins.entry((at - start) / BIN_NS).or_insert(took);
        *least = took.min(*least);
    }
    bins.into_iter().map(|(bin, took): (i64, i64)| ((bin * BIN_NS) as f64 / 1e9, took as f64 / 1e9)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_of_each_bin() {
        let trips = [(1000, 5), (2000, 3), (BIN_NS + 999, 4), (3 * BIN_NS + 1000, 7)];
        assert_eq!(binned(&trips), [(0.0, 3e-9), (0.03, 7e-9)]);
        assert!(binned(&[]).is_empty());
    }
}
