//! What acknowledgements deliver: which transmissions arrived, and whether the time of the acknowledgement shows when.

use bentpipe_engine::wire::seq::SeqNumber;

use super::{Arrival, Fate, Ledger, MAX_WINDOW, Range};
use crate::header::Header;

/// Number of reports of a gap that Linux sends at once: as many duplicate acknowledgements as a retransmission needs
/// (`TCP_FASTRETRANS_THRESH`).
const PROMPT_REPORTS: u32 = 3;

impl Ledger {
    /// Takes an acknowledgement.
    pub(super) fn ack(&mut self, at: i64, header: &Header) {
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
