//! Loss detection: finds suspected or certain losses from ACKs and SACK blocks.
//!
//! Each method is a [`Method`] with its rule in [`Detector::on_duplicate`]. Recovery reads the lost segments from the
//! scoreboard. There, RACK (`rack.rs`) marks segments by the time at which they were sent; `tlp.rs` provokes an ACK
//! when none arrives.

pub(in crate::tcp) mod frto;
mod rack;
pub(in crate::tcp) mod scoreboard;
pub(in crate::tcp) mod tlp;
pub(in crate::tcp) mod undo;

pub(in crate::tcp) use self::rack::DUP_THRESH;
use self::scoreboard::Scoreboard;
use super::segment::{MAX_SACK_BLOCKS, Segment};
use super::sequence::SequenceSpace;
#[cfg(feature = "ns2")]
use super::variant::PipeForm;
use super::variant::{DupThresh, Recovery};
use crate::units::Time;

/// How a loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum FoundBy {
    /// By duplicate ACKs or SACK blocks.
    DuplicateAcks,
    /// By an echoed mark: nothing is lost (RFC 3168 §6.1.2).
    Mark,
    /// By the retransmission timer; `repeated`: for a segment that it had already retransmitted.
    Timeout { repeated: bool },
}

/// A loss, reported to congestion control.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct LossReport {
    pub(in crate::tcp) found_by: FoundBy,
    /// Bytes outstanding when it was detected, without those sent by limited transmit.
    pub(in crate::tcp) flight: u64,
    /// The window that the peer offers, bytes.
    pub(in crate::tcp) peer_window: u64,
}

/// What is known about the segments that are sent and not acknowledged. RACK counts them; without RACK, all values are
/// 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Reported by SACK blocks.
    pub sacked: u64,
    /// Lost, whether retransmitted or not.
    pub lost: u64,
    /// Retransmitted, and neither reported nor lost again.
    pub retransmitted: u64,
    /// The largest distance so far, in bytes, by which a segment has arrived behind later ones.
    pub reordered: u64,
}

/// The rule by which ACKs reveal a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Duplicate ACKs count (RFC 5681 §3.2).
    DuplicateAcks,
    /// ACKs with new SACK blocks count, and SACK blocks also mark losses: by ranges above, or by more than
    /// (DupThresh - 1) * SMSS bytes above (RFC 6675 §4).
    Rfc6675,
    /// ACKs with new SACK blocks count; DupThresh * SMSS bytes above mark a loss (RFC 3517 §4).
    Rfc3517,
    /// ACKs with new SACK blocks are counted but decide nothing: time tells what is lost (RFC 8985).
    Rack,
    /// ACKs with new SACK blocks count; nothing is marked.
    #[cfg(feature = "ns2")]
    CountedSack,
}

impl Method {
    fn of(recovery: Recovery) -> Method {
        use super::variant::PipeForm::{Rack, Rfc3517, Rfc6675};
        match recovery {
            Recovery::Pipe(Rfc6675) => Method::Rfc6675,
            Recovery::Pipe(Rfc3517) => Method::Rfc3517,
            Recovery::Pipe(Rack) => Method::Rack,
            #[cfg(feature = "ns2")]
            Recovery::Pipe(PipeForm::Ns2) => Method::CountedSack,
            _ => Method::DuplicateAcks,
        }
    }
}

/// The number of consecutive duplicate ACKs, including a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Duplicates {
    pub(in crate::tcp) count: u32,
    /// The count from which they indicate a loss.
    pub(in crate::tcp) threshold: u32,
    /// The segment at `snd_una` is lost.
    pub(in crate::tcp) lost: bool,
}

/// Finds losses from ACKs.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Detector {
    method: Method,
    thresh: DupThresh,
    /// Duplicate ACKs since `snd_una` moved.
    count: u32,
    pub(in crate::tcp) scoreboard: Scoreboard,
}

impl Detector {
    pub(in crate::tcp) fn new(recovery: Recovery, thresh: DupThresh) -> Self {
        let method = Method::of(recovery);
        let scoreboard = if method == Method::Rack { Scoreboard::with_rack() } else { Scoreboard::default() };
        Detector { method, thresh, count: 0, scoreboard }
    }

    /// The peer sends no SACK blocks.
    pub(in crate::tcp) fn without_sack(&mut self) {
        self.method = Method::DuplicateAcks;
        self.scoreboard.without_rack();
    }

    fn uses_sack(&self) -> bool {
        self.method != Method::DuplicateAcks
    }

    /// True if an ACK of new data also counts as a duplicate ACK if it has new SACK blocks.
    #[inline(always)]
    pub(in crate::tcp) fn counts_advancing_acks(&self) -> bool {
        //= RFC 6675 §2: an ACK with new SACK data is a duplicate "even if it [...] moves the cumulative
        //= acknowledgment point"
        self.method == Method::Rfc6675
    }

    /// Takes the SACK blocks of an acceptable ACK. Returns whether they have new information.
    pub(in crate::tcp) fn take_sack(&mut self, now: Time, segment: &Segment, seq: &SequenceSpace, mss: u64) -> bool {
        let mut news = false;
        let before = self.scoreboard.sacked_bytes();
        let floor = seq.snd_una.max(segment.ack);
        let max = seq.max_sacked_ranges(mss);
        let (mut taken, mut count) = ([(0, 0); MAX_SACK_BLOCKS], 0);
        for (start, end) in segment.sack.iter(segment.ack) {
            // A block below the ACK is a D-SACK (RFC 2883). One beyond sent data is invalid.
            if start >= floor && start < end && end <= seq.snd_max && self.scoreboard.has_room(start, end, max) {
                news |= self.scoreboard.sack(start, end);
                taken[count] = (start, end);
                count += 1;
            }
        }
        if let Some(rack) = self.scoreboard.rack() {
            // Blocks come newest first (RFC 2018 §4), and one ACK may report several arrivals. In that order, a lower
            // block that has grown together with a higher one would look late.
            taken[..count].sort_unstable();
            for &(start, end) in &taken[..count] {
                rack.on_sack(start, end, seq.fin.then_some(seq.data_end), now);
            }
        }
        self.scoreboard.note_delivered(self.scoreboard.sacked_bytes() - before);
        if news {
            self.mark_losses(mss);
        }
        news
    }

    fn mark_losses(&mut self, mss: u64) {
        let thresh = self.thresh.count;
        let bytes = match self.method {
            Method::Rfc6675 => (thresh as u64).saturating_sub(1) * mss,
            //= RFC 3517 §4: "(DupThresh * SMSS) bytes with sequence numbers greater than 'SeqNum' have been SACKed"
            Method::Rfc3517 => thresh as u64 * mss - 1,
            _ => return,
        };
        self.scoreboard.find_losses(thresh, bytes);
    }

    /// The data that an ACK reports as received twice (RFC 2883 §4), if any.
    #[inline(always)]
    pub(in crate::tcp) fn duplicate_report(segment: &Segment) -> Option<(u64, u64)> {
        if segment.sack.is_empty() {
            return None;
        }
        let mut blocks = segment.sack.iter(segment.ack);
        let (start, end) = blocks.next()?;
        let inside = |(outer_start, outer_end)| outer_start <= start && end <= outer_end;
        (end <= segment.ack || blocks.next().is_some_and(inside)).then_some((start, end))
    }

    /// True if an ACK that does not move `snd_una` is a duplicate. `plain`: it carries neither data nor a changed
    /// window. `news`: its SACK blocks are new. With SACK, `news` decides (RFC 6675 §2); without it, `plain` (RFC 5681
    /// §2).
    pub(in crate::tcp) fn is_duplicate(&self, plain: bool, news: bool) -> bool {
        if self.uses_sack() { news } else { plain }
    }

    /// The number of duplicate ACKs that indicate a loss, for a window of this many segments.
    pub(in crate::tcp) fn threshold(&self, window_segments: u32) -> u32 {
        match self.thresh.window_fraction {
            Some(fraction) if self.uses_sack() => self.thresh.count.max(window_segments / fraction),
            _ => self.thresh.count,
        }
    }

    /// Duplicate ACKs since `snd_una` moved.
    pub(in crate::tcp) fn duplicates(&self) -> u32 {
        self.count
    }

    /// Counts a duplicate ACK.
    pub(in crate::tcp) fn on_duplicate(&mut self, snd_una: u64, window_segments: u32) -> Duplicates {
        self.count += 1;
        let threshold = self.threshold(window_segments);
        let lost = match self.method {
            //= RFC 6675 §5: "(2) If DupAcks < DupThresh but IsLost (HighACK + 1) returns true"
            Method::Rfc6675 => self.count >= threshold || self.scoreboard.is_lost(snd_una),
            Method::Rack => false,
            _ => self.count == threshold,
        };
        Duplicates { count: self.count, threshold, lost }
    }

    /// Without SACK, the bytes of `acked` that duplicate ACKs had reported: a segment each, except the one that was missing (Linux's
    /// `tcp_add_reno_sack`). SACK blocks report them otherwise.
    #[inline(always)]
    pub(in crate::tcp) fn reported_by_duplicates(&self, acked: u64, mss: u64) -> u64 {
        if self.count == 0 || self.uses_sack() {
            return 0;
        }
        (u64::from(self.count) * mss).min(acked.saturating_sub(mss))
    }

    /// Resets the count.
    #[inline(always)]
    pub(in crate::tcp) fn forget_duplicates(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Flags;
    use crate::tcp::variant::PipeForm;

    fn ack(ack: u64, blocks: &[(u64, u64)]) -> Segment {
        let mut segment = Segment { ack, ..Segment::new(Flags::ACK) };
        blocks.iter().for_each(|&(start, end)| _ = segment.sack.push(ack, start, end));
        segment
    }

    /// Data 1001..9001 is outstanding. A block that begins below the ACK is a D-SACK (RFC 2883 §4), one that ends beyond what was sent is
    /// invalid, and so is one that does not end behind its beginning.
    #[test]
    fn only_blocks_of_outstanding_data_count() {
        let mut seq = SequenceSpace::new(1001, 1 << 20);
        seq.snd_max = 9001;
        for (una, block, counts) in [
            (1001, (2001, 3001), true),
            (1001, (8001, 9001), true),
            (1001, (8001, 9002), false),
            (1001, (1000, 3001), false),
            (3001, (2001, 4001), false),
            (1001, (3001, 3001), false),
            (1001, (4001, 3001), false),
        ] {
            let thresh = DupThresh { count: 3, window_fraction: None };
            let mut detector = Detector::new(Recovery::Pipe(PipeForm::Rfc6675), thresh);
            assert_eq!(detector.take_sack(Time::ZERO, &ack(una, &[block]), &seq, 1000), counts, "{block:?}");
            assert_eq!(detector.scoreboard.sacked_bytes() > 0, counts, "{block:?}");
        }
    }

    /// RFC 2883 §4: the first block reports a duplicate if it lies below the ACK, or inside the second block.
    #[test]
    fn a_duplicate_lies_below_the_ack_or_inside_the_second_block() {
        for (first, second, is_duplicate) in [
            ((500, 1000), (3001, 4001), true),
            ((500, 1001), (3001, 4001), false),
            ((3001, 3501), (3001, 4001), true),
            ((3501, 4001), (3001, 4001), true),
            ((3000, 3501), (3001, 4001), false),
            ((3501, 4002), (3001, 4001), false),
        ] {
            let report = Detector::duplicate_report(&ack(1000, &[first, second]));
            assert_eq!(report, is_duplicate.then_some(first), "{first:?}");
        }
    }
}
