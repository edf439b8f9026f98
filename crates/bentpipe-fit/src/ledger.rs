//! What happened to each transmission in one direction: delivered, lost, or not needed.
//!
//! The capture sees a segment when it passes, and the receiver's report when the acknowledgement passes. A range of
//! bytes is open until it is acknowledged or SACKed. If it was sent more than once, the transmission that arrived is
//! the latest one that is at least a round trip old by then; earlier ones were lost, and later ones were not needed.
//! Where possible, timestamps decide (RFC 3522): an acknowledgement that echoes a time before a retransmission does not
//! belong to that retransmission.

mod delivery;
mod echoes;
mod holes;

use std::collections::{BTreeMap, VecDeque};

use bentpipe_engine::wire::seq::{Numbering, SeqNumber};

use crate::header::Header;
use echoes::Echoes;
pub(crate) use echoes::Trip;
use holes::Holes;

/// Maximum number of transmissions kept: some 3 GB of data in segments of 1460 bytes.
const MAX_TRANSMISSIONS: usize = 2_000_000;
/// Maximum number of repeated transmissions kept for all open ranges: a long one repeats each range that it covers.
const MAX_REPEATS: usize = 2 * MAX_TRANSMISSIONS;
/// Longest window (RFC 7323 §2.3), bytes.
const MAX_WINDOW: u64 = 1 << 30;
/// Number of headers among which the copy of a packet is sought, and how many nanoseconds later a copy may appear: an
/// interface that joins several passes a packet on at once.
const COPIES: usize = 16;
const COPY_NS: i64 = 5_000_000;

/// The fate of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Unknown, because the capture or the connection ended.
    Open,
    /// Acknowledged or SACKed.
    Delivered,
    /// It was sent again, and a later transmission arrived.
    Lost,
    /// It was sent again although an earlier transmission arrived.
    NotNeeded,
}

/// A segment as it passed the tap. Segments merged by an offload count as several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) at: i64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Length of the IP packet in bytes.
    pub(crate) wire: u32,
    pub(crate) fate: Fate,
    /// Bytes up to its end that were unacknowledged when it passed.
    pub(crate) flight: u64,
    /// True if other data passed between the one before and this one, such as repairs of what was sent before the capture.
    pub(crate) behind_other: bool,
    /// The sender's timestamp.
    stamp: Option<u32>,
}

/// An acknowledgement that delivered something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: i64,
    /// The transmission sent last among those that it delivers.
    pub(crate) of: u32,
    /// Number of segments that it delivers.
    pub(crate) segments: u32,
    /// True if the receiver may have delayed it, because it acknowledges a single in-order segment.
    pub(crate) may_wait: bool,
    /// True if its time is the arrival time of `of`. This is not so if a repaired gap delivers data that had arrived
    /// long before.
    pub(crate) timely: bool,
    /// True if the receiver may have delayed it to report several segments at once, as Linux does when it compresses
    /// SACKs.
    pub(crate) compressed: bool,
}

/// Unacknowledged bytes, with the transmissions that contain them.
#[derive(Debug)]
struct Range {
    end: u64,
    first: u32,
    again: Vec<u32>,
    /// True if it may have been sent before the capture: it fills a gap in what was captured, or one opened above it.
    maybe_before: bool,
}

/// Counts for the notes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Packets captured twice.
    pub(crate) copies: u64,
    /// Packets longer than the maximum segment size.
    pub(crate) merged: u64,
    /// Transmissions above the limit.
    pub(crate) beyond: u64,
    /// Acknowledgements.
    pub(crate) acks: u64,
    /// Data packets while the receiver's window was full.
    pub(crate) window_full: u64,
    /// Number of data packets, and the bytes of all but the last one.
    pub(crate) data: u64,
    pub(crate) data_bytes: u64,
    /// Bytes that were acknowledged but not captured.
    pub(crate) unseen: u64,
    /// Nanoseconds before data during which nothing was in flight.
    pub(crate) paused: i64,
}

/// The transmissions of the direction, and what the acknowledgements say about them.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) transmissions: Vec<Transmission>,
    pub(crate) arrivals: Vec<Arrival>,
    /// Trips from the tap to the sender and back: an acknowledgement and the data that echoes it, or the handshake.
    pub(crate) sender_trips: Vec<Trip>,
    /// The trip from the tap to the receiver and back during the handshake.
    pub(crate) handshake: Option<i64>,
    pub(crate) holes: Holes,
    pub(crate) counts: Counts,
    /// True if both SYNs were captured.
    pub(crate) whole_handshake: bool,
    /// True if both SYNs permit SACK, or an acknowledgement has blocks.
    pub(crate) sack: bool,
    pub(crate) mss: u32,
    numbering: Option<Numbering>,
    max_end: u64,
    acked: u64,
    /// The highest acknowledged number beyond all captured data.
    unseen_to: u64,
    /// The last acknowledged number, at most 0, if all were before the capture.
    acked_before: Option<i64>,
    /// True if other data has passed since the last transmission.
    other_data: bool,
    /// When `acked` last grew, or data passed while nothing was in flight.
    idle_since: Option<i64>,
    /// Acknowledgements with SACK blocks since `acked` last grew, including the one that made it grow.
    reports: u32,
    open: BTreeMap<u64, Range>,
    /// Repeated transmissions of all of them.
    repeats: usize,
    /// Shortest unambiguous time from data to acknowledgement.
    min_trip: i64,
    /// The window scales of the sender's and the receiver's SYN.
    scales: [Option<u8>; 2],
    window: u64,
    echoes: Echoes,
    recent: VecDeque<(i64, bool, Header)>,
    /// Times of the first SYN in this direction, and in the other.
    syns: [Option<i64>; 2],
    /// True if they permit SACK.
    permit_sack: [bool; 2],
    syns_again: bool,
}

impl Ledger {
    /// A ledger. `mss` is the maximum segment size, unless a SYN gives another.
    pub(crate) fn new(mss: u32) -> Self {
        Ledger {
            transmissions: Vec::new(),
            arrivals: Vec::new(),
            sender_trips: Vec::new(),
            handshake: None,
            holes: Holes::default(),
            counts: Counts::default(),
            whole_handshake: false,
            sack: false,
            mss,
            numbering: None,
            max_end: 0,
            acked: 0,
            unseen_to: 0,
            acked_before: None,
            other_data: false,
            idle_since: None,
            reports: 0,
            open: BTreeMap::new(),
            repeats: 0,
            min_trip: i64::MAX,
            scales: [None; 2],
            window: u64::MAX,
            echoes: Echoes::default(),
            recent: VecDeque::new(),
            syns: [None; 2],
            permit_sack: [false; 2],
            syns_again: false,
        }
    }

    /// Takes a packet of the connection. `along`: it travels in the direction of the data.
    pub(crate) fn take(&mut self, at: i64, along: bool, header: &Header) {
        if self.is_copy(at, along, header) {
            self.counts.copies += 1;
            return;
        }
        if header.has(Header::SYN) {
            self.syn(at, along, header);
        }
        if along {
            self.shake_hands(at, header);
            self.data(at, header);
        } else if header.has(Header::ACK) {
            self.counts.acks += 1;
            self.ack(at, header);
        }
    }

    fn is_copy(&mut self, at: i64, along: bool, header: &Header) -> bool {
        // Without an identification (RFC 6864 allows 0), a copy looks like a retransmission.
        let same = |(before, way, other): &(i64, bool, Header)| {
            header.id != 0 && *way == along && other == header && (0..COPY_NS).contains(&at.saturating_sub(*before))
        };
        let copy = self.recent.iter().any(same);
        if !copy {
            if self.recent.len() == COPIES {
                self.recent.pop_front();
            }
            self.recent.push_back((at, along, *header));
        }
        copy
    }

    fn syn(&mut self, at: i64, along: bool, header: &Header) {
        let side = usize::from(!along);
        self.syns_again |= self.syns[side].is_some();
        self.syns[side].get_or_insert(at);
        self.permit_sack[side] |= header.options.permits_sack;
        self.sack |= self.permit_sack == [true; 2];
        self.scales[side] = header.options.scale;
        if let (false, Some(mss)) = (along, header.options.mss) {
            self.mss = u32::from(mss);
        }
        // The second SYN: the time since the first one is a trip to its end.
        if let [Some(ours), Some(theirs)] = self.syns
            && header.has(Header::ACK)
            && !self.syns_again
        {
            self.whole_handshake = true;
            if along {
                self.sender_trips.push(Trip { took: ours - theirs, ..Trip::default() });
            } else {
                self.handshake = Some(theirs - ours);
                self.min_trip = theirs - ours;
            }
        }
    }

    /// Takes the third packet of the handshake, if it is the sender's.
    fn shake_hands(&mut self, at: i64, header: &Header) {
        if let [Some(ours), Some(theirs)] = self.syns
            && ours < theirs
            && !header.has(Header::SYN)
            && !self.syns_again
            && self.sender_trips.is_empty()
        {
            self.sender_trips.push(Trip { took: at - theirs, ..Trip::default() });
        }
    }

    fn data(&mut self, at: i64, header: &Header) {
        let seq = header.seq.wrapping_add(u32::from(header.has(Header::SYN)));
        let first = self.numbering.is_none();
        let numbering = *self.numbering.get_or_insert(Numbering::from_isn(seq));
        let start = numbering.unwrap(SeqNumber(seq), self.max_end);
        if header.payload == 0 {
            return;
        }
        if self.is_full() {
            self.counts.beyond += 1;
            return;
        }
        // It was sent before the capture for the first time, or it belongs to another connection, or it is damaged.
        if start > self.max_end + MAX_WINDOW {
            self.other_data = true;
            return;
        }
        let end = start + u64::from(header.payload);
        self.counts.data += 1;
        if !first && start > self.max_end {
            self.holes.open(self.max_end, start, at);
            self.open.values_mut().for_each(|range| range.maybe_before = true);
        }
        self.window_use(end);
        if self.acked == self.max_end {
            self.counts.paused = self.counts.paused.saturating_add(at - self.idle_since.replace(at).unwrap_or(at));
        }
        let from = self.transmissions.len();
        let largest = u64::from(self.mss.saturating_sub(header.options_len()).max(1));
        self.counts.merged += u64::from(u64::from(header.payload) > largest);
        let mut piece = start;
        // No more pieces than fit: a maximum segment of a byte makes 64 thousand of a packet.
        while piece < end && !self.is_full() {
            // What was sent before and what is new are two pieces.
            let border = if piece < self.max_end { self.max_end } else { u64::MAX };
            let stop = end.min(piece + largest).min(border);
            self.transmit(at, piece, stop, header);
            piece = stop;
        }
        if let Some((_, echo)) = header.options.timestamps
            && header.has(Header::ACK)
            && self.transmissions.len() > from
        {
            self.sender_trips.extend(self.echoes.answer(at, echo, from as u32, self.counts.data_bytes));
        }
        self.counts.data_bytes += u64::from(header.payload);
    }

    fn window_use(&mut self, end: u64) {
        let limit = self.acked.saturating_add(self.window);
        self.counts.window_full += u64::from(end.saturating_add(u64::from(self.mss)) > limit);
    }

    /// True if no further transmission is kept.
    fn is_full(&self) -> bool {
        self.transmissions.len() >= MAX_TRANSMISSIONS
    }

    fn transmit(&mut self, at: i64, start: u64, end: u64, header: &Header) {
        let index = self.transmissions.len() as u32;
        let wire = header.headers + (end - start) as u32;
        let stamp = header.options.timestamps.map(|(value, _)| value);
        let flight = end.saturating_sub(self.acked);
        let behind_other = std::mem::take(&mut self.other_data);
        self.transmissions.push(Transmission { at, start, end, wire, fate: Fate::Open, flight, behind_other, stamp });
        let fills = self.holes.fill(start, end, at);
        if start >= self.max_end || (fills && start >= self.acked) {
            self.max_end = self.max_end.max(end);
            self.open.insert(start, Range { end, first: index, again: Vec::new(), maybe_before: fills });
            return;
        }
        let before = self.open.range(..start).next_back().filter(|(_, range)| range.end > start).map(|(&key, _)| key);
        let mut known = false;
        for (_, range) in self.open.range_mut(before.unwrap_or(start)..end) {
            known = true;
            if self.repeats == MAX_REPEATS {
                self.counts.beyond += 1;
                break;
            }
            range.again.push(index);
            self.repeats += 1;
        }
        if !known {
            self.transmissions[index as usize].fate = Fate::NotNeeded;
        }
    }
}

#[cfg(test)]
mod tests;
