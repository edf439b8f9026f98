//! What happened to each transmission in one direction: delivered, lost, or not needed.
//!
//! The capture sees a segment when it passes, and the receiver's report when the acknowledgement passes. A range of
//! bytes is open until it is acknowledged or SACKed. If it was sent more than once, the transmission that arrived is
//! the latest one that is at least a round trip old by then; earlier ones were lost, and later ones were not needed.
//! Where possible, timestamps decide (RFC 3522): an acknowledgement that echoes a time before a retransmission does not
//! belong to that retransmission.

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
/// Number of reports of a gap that Linux sends at once: as many duplicate acknowledgements as a retransmission needs
/// (`TCP_FASTRETRANS_THRESH`).
const PROMPT_REPORTS: u32 = 3;

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

    fn ack(&mut self, at: i64, header: &Header) {
        let Some(numbering) = self.numbering else { return };
        // What lies before the capture counts as 0.
        let newest = numbering.wrap(self.max_end);
        let ahead = |number: u32| i64::from(SeqNumber(number).distance_from(newest));
        let repairs_before = self.repairs_before(self.max_end as i64 + ahead(header.ack));
        let offset = |number: u32| self.max_end.saturating_add_signed(ahead(number));
        let ack = offset(header.ack);
        // RFC 7323 §2.2: without both options, and in a SYN, the window is as written.
        let scale = match self.scales {
            [Some(_), Some(scale)] if !header.has(Header::SYN) => scale,
            _ => 0,
        };
        let blocks: Vec<(u64, u64)> = header.options.sack().iter().map(|&(l, r)| (offset(l), offset(r))).collect();
        if self.whole_handshake {
            self.window = u64::from(header.window) << scale;
        }
        if let Some((value, _)) = header.options.timestamps {
            self.echoes.acknowledged(at, value);
        }
        // A FIN uses one number after the last byte.
        if ack > self.max_end + 1 {
            // Further beyond, it is damaged. Data that was not kept is not unseen.
            if ack <= self.max_end + MAX_WINDOW && !self.is_full() {
                self.counts.unseen += ack.saturating_sub(self.max_end.max(self.unseen_to));
                self.unseen_to = self.unseen_to.max(ack);
                // What was captured has arrived, perhaps before the capture.
                for range in std::mem::take(&mut self.open).into_values() {
                    self.resolve(&range, at, None, &mut Delivery::default());
                }
            }
            return;
        }
        let was_sack = !blocks.is_empty();
        self.sack |= was_sack;
        let mut delivered = Delivery { is_unsure: repairs_before, ..Delivery::default() };
        let echo = header.options.timestamps.map(|(_, echo)| echo);
        while let Some(entry) = self.open.first_entry().filter(|entry| entry.get().end <= ack) {
            let range = entry.remove();
            // The echo belongs to the segment at the left edge, which is taken here first.
            let echo = echo.filter(|_| delivered.segments == 0);
            self.resolve(&range, at, echo, &mut delivered);
        }
        if ack > self.acked {
            self.idle_since = Some(at);
            self.reports = 0;
        }
        self.reports = self.reports.saturating_add(u32::from(was_sack));
        self.acked = self.acked.max(ack.min(self.max_end));
        self.counts.unseen += self.holes.acknowledged(self.acked);
        for (left, right) in blocks.into_iter().filter(|&(left, right)| left >= ack && left < right) {
            let inside: Vec<u64> =
                self.open.range(left..right).filter(|(_, range)| range.end <= right).map(|(&start, _)| start).collect();
            for start in inside {
                let range = self.open.remove(&start).expect("just found");
                self.resolve(&range, at, None, &mut delivered);
            }
        }
        let Delivery { segments, last: Some(of), again, is_unsure } = delivered else { return };
        let timely = !is_unsure && (was_sack || !again || segments == 1);
        let may_wait = segments == 1 && !was_sack;
        let compressed = was_sack && self.reports > PROMPT_REPORTS;
        self.arrivals.push(Arrival { at, of, segments, may_wait, timely, compressed });
    }

    /// True if an acknowledgement up to `ack` follows the repair of a gap before the capture: it is the first one above the
    /// capture's beginning, at 0, and more than two segments above the last.
    fn repairs_before(&mut self, ack: i64) -> bool {
        if ack <= 0 {
            self.acked_before = Some(ack);
            return false;
        }
        self.acked_before.take().is_some_and(|before| ack - before > 2 * i64::from(self.mss))
    }

    /// Decides the fates of the transmissions of a range that has arrived.
    fn resolve(&mut self, range: &Range, at: i64, echo: Option<u32>, delivered: &mut Delivery) {
        self.repeats -= range.again.len();
        let all = || std::iter::once(range.first).chain(range.again.iter().copied());
        let sent = |index: u32| &self.transmissions[index as usize];
        // The limit is a tenth less, because the shortest trip seen may include the wait of a delayed acknowledgement. Without the
        // handshake it may also have been through a queue as long as the path.
        let least = if self.whole_handshake { self.min_trip / 10 * 9 } else { self.min_trip / 2 };
        let is_old = |index: u32| at - sent(index).at >= least;
        // The echo of a stamp that the first transmission did not have shows which one arrived, however long that took.
        let first_stamp = sent(range.first).stamp;
        let echoed = |index: u32| echo.zip(sent(index).stamp).map(|(echo, stamp)| echo.wrapping_sub(stamp) as i32 >= 0);
        let is_shown = |index: u32| echoed(index) == Some(true) && sent(index).stamp != first_stamp;
        let has_arrived = |index: u32| is_shown(index) || (is_old(index) && echoed(index) != Some(false));
        let arrived = all().rfind(|&index| has_arrived(index)).unwrap_or(range.first);
        // Without the handshake, an old one may be too old for another reason than its own trip (Karn's algorithm).
        let is_ambiguous = !range.again.is_empty() && !self.whole_handshake && !is_shown(arrived);
        if range.again.is_empty() && !range.maybe_before {
            self.min_trip = self.min_trip.min(at - sent(arrived).at);
        }
        for index in all() {
            let fate = match index.cmp(&arrived) {
                std::cmp::Ordering::Less => Fate::Lost,
                std::cmp::Ordering::Equal => Fate::Delivered,
                std::cmp::Ordering::Greater => Fate::NotNeeded,
            };
            // A long transmission has several ranges. It counts as delivered if one of them was.
            let transmission = &mut self.transmissions[index as usize];
            if transmission.fate != Fate::Delivered {
                transmission.fate = fate;
            }
        }
        delivered.segments += 1;
        delivered.again |= !range.again.is_empty();
        delivered.is_unsure |= range.maybe_before || is_ambiguous;
        delivered.last = delivered.last.max(Some(arrived));
    }
}

/// What an acknowledgement delivers.
#[derive(Default)]
struct Delivery {
    segments: u32,
    last: Option<u32>,
    /// True if some of it had been sent more than once.
    again: bool,
    /// True if it is not known which transmission arrived, or whether it arrived long before.
    is_unsure: bool,
}

#[cfg(test)]
mod tests;
