//! The receiving half: reassembly; how it begins (`opening.rs`), its window (`window.rs`, `tuning.rs`), ACKs (`acks.rs`,
//! `adaptive.rs`) and SACK (`sack.rs`).

mod acks;
mod adaptive;
mod fresh;
mod opening;
mod sack;
mod tuning;
mod window;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::acks::AckSchedule;
pub use self::fresh::Fresh;
use self::sack::SackReport;
use self::tuning::Tuning;
use self::window::OfferedWindow;
use super::config::TcpConfig;
use super::departures::{Departs, Departures};
use super::ranges::Ranges;
use super::segment::{FIRST_BYTE, SackBlocks};
use crate::units::{Duration, Time};

/// Minimum and maximum number of ranges beyond gaps that are stored. In between, it is one for each full segment of the buffer.
const RANGES: core::ops::RangeInclusive<u64> = 64..=65_536;

/// Segments with less data do not let the window grow: their memory overhead is too large (Linux).
const SMALL: u64 = 128;
/// The room for options in a header: a segment is full-sized if its data and options fill it.
const OPTIONS: u64 = 40;

/// The receiver of one connection. Fields used for every segment come first, so that they share cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Receiver {
    /// Next sequence number expected.
    rcv_nxt: u64,
    mss: u16,
    departures: Departures,
    window: OfferedWindow,
    acks: AckSchedule,
    sack: SackReport,
    /// The window grows with what arrives.
    tuning: Option<Box<Tuning>>,
    /// Ranges received beyond a gap.
    beyond: Ranges,
    /// Segments without new data.
    pub(super) duplicates: u64,
    /// Segments received beyond a gap.
    pub(super) out_of_order: u64,
    /// The new parts of the last segment, if received ranges are between them.
    fresh: Vec<(u64, u64)>,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let window = OfferedWindow::new(config);
        let tuning = || Tuning::new(window.max_offer(), window.buffer(), config.receive_buffer, config.mss);
        Receiver {
            rcv_nxt: 0,
            mss: config.mss,
            departures: Departures::of(config),
            tuning: config.first_window.map(|_| Box::new(tuning())),
            window,
            acks: AckSchedule::new(config.ack),
            sack: SackReport::new(),
            beyond: Ranges::new(),
            fresh: Vec::new(),
            duplicates: 0,
            out_of_order: 0,
        }
    }

    /// Next sequence number expected.
    #[inline(always)]
    pub(super) fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Bytes readable by the user from the start, without a FIN.
    #[inline(always)]
    pub(super) fn readable(&self) -> u64 {
        self.rcv_nxt - FIRST_BYTE
    }

    /// Passes the FIN, which uses a sequence number.
    pub(super) fn pass_fin(&mut self) {
        self.rcv_nxt += 1;
        self.window.pass_fin();
    }

    /// Records that the user has read `bytes`. Returns true if a window update must be sent now.
    #[inline(always)]
    pub(super) fn read(&mut self, now: Time, bytes: u64) -> bool {
        if let Some(tuning) = &mut self.tuning
            && let Some(buffer) = tuning.on_read(now, bytes, self.window.buffer())
        {
            self.window.grow(buffer);
        }
        let tell = self.window.read(self.rcv_nxt, bytes);
        if self.acks.adapts() && bytes > 0 {
            self.acks.on_read(self.beyond.is_empty() && self.window.is_all_read(self.rcv_nxt));
        }
        tell
    }

    /// Takes the round trip of the handshake.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.acks.on_round_trip(rtt);
    }

    /// True if the window is tuned. The connection then reports each segment with [`Self::on_arrival`].
    #[inline(always)]
    pub(super) fn is_tuned(&self) -> bool {
        self.tuning.is_some()
    }

    /// To be called before the receiver takes a segment with `bytes` of data that ends at `end`. `echo`: the timestamp
    /// that the segment echoes, and its age. The window follows the free buffer, and an ACK that offers a larger window is not delayed
    /// (Linux).
    pub(super) fn on_arrival(&mut self, now: Time, (bytes, end): (u64, u64), echo: Option<(u32, Duration)>) {
        let Some(tuning) = &mut self.tuning else { return };
        if echo.is_none() && end <= self.rcv_nxt + bytes {
            tuning.on_data(now, end, self.window.offered(self.rcv_nxt));
        }
        if let Some((echo, sample)) = echo.filter(|_| bytes + OPTIONS >= u64::from(self.mss)) {
            tuning.on_echo(echo, sample);
        }
        if !self.beyond.is_empty()
            && let Some(buffer) = tuning.on_disorder(self.beyond.end() - self.rcv_nxt, self.window.buffer())
        {
            self.window.grow(buffer);
        }
        if bytes >= SMALL && self.window.follow(self.rcv_nxt, bytes) {
            self.acks.on_greater_window();
        }
    }

    /// Changes the size of the buffer. Returns true if a window update must be sent now.
    pub(super) fn resize(&mut self, buffer: u64) -> bool {
        self.window.resize(self.rcv_nxt, buffer)
    }

    /// The window to offer, rounded down to a multiple that a shift of `scale` can express.
    #[inline(always)]
    pub(super) fn offer_window(&mut self, scale: u8) -> u32 {
        if self.acks.adapts() && self.acks.is_quick() && self.window.is_half_taken(self.rcv_nxt) {
            self.acks.end_quick();
        }
        self.window.offer(self.rcv_nxt, scale)
    }

    /// The window that was offered last.
    #[inline(always)]
    pub(super) fn last_window(&self) -> u32 {
        self.window.offered(self.rcv_nxt) as u32
    }

    /// True if there is nothing to acknowledge, and another segment with data that is sent changes nothing: the last one has offered the
    /// window and has been noted.
    #[inline(always)]
    pub(super) fn rests(&self) -> bool {
        self.acks.is_silent() && !self.acks.is_quick()
    }

    /// The window of a SYN, at most `limit`.
    pub(super) fn offer_syn_window(&mut self, limit: u64) -> u32 {
        self.window.offer_in_syn(limit)
    }

    /// RFC 9293 §3.10.7.4, first check: true if a segment is in the window.
    #[inline(always)]
    pub(super) fn acceptable(&self, seq: u64, sequence_len: u64) -> bool {
        self.window.accepts(self.rcv_nxt, seq, sequence_len)
    }

    /// True if `seq` is in the receive window, or is the next expected number.
    pub(super) fn in_window(&self, seq: u64) -> bool {
        self.window.holds(self.rcv_nxt, seq)
    }

    /// One past the last byte that fits the buffer or the offered window.
    #[inline(always)]
    pub(super) fn limit(&self) -> u64 {
        self.window.limit()
    }

    /// The new parts of the last segment: see [`Fresh::Spans`].
    pub(super) fn fresh_spans(&self) -> &[(u64, u64)] {
        &self.fresh
    }

    /// Bytes of heap memory, without the user's data.
    pub(super) fn memory(&self) -> usize {
        self.beyond.memory() + self.fresh.capacity() * size_of::<(u64, u64)>()
    }

    /// Bytes beyond gaps.
    pub(super) fn beyond_gaps(&self) -> u64 {
        self.beyond.count_in(self.rcv_nxt, u64::MAX)
    }

    /// One past the highest byte received, in order or not.
    pub(super) fn highest(&self) -> u64 {
        self.beyond.end().max(self.rcv_nxt)
    }

    /// Takes the payload `seq..end`. Returns the new part. If `rcv_nxt` moved, the new bytes begin at its old value.
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Time, seq: u64, end: u64) -> Fresh {
        self.count(now, seq, end);
        // There is no room for data beyond the limit.
        let end = end.min(self.limit());
        if end <= self.rcv_nxt {
            self.on_old_data(now, seq, end);
            return Fresh::None;
        }
        if seq > self.rcv_nxt || !self.beyond.is_empty() {
            return self.on_data_and_gaps(now, seq, end);
        }
        let from = core::mem::replace(&mut self.rcv_nxt, end);
        if seq < from && self.sack.reports_duplicates() {
            self.report_duplicate(seq, from);
        } else {
            self.on_in_order(now, end - seq);
        }
        Fresh::Span(from, end)
    }

    /// Counts a segment with data `seq..end`. Data beyond a known FIN ends before it begins, and does not count.
    #[inline(always)]
    fn count(&mut self, now: Time, seq: u64, end: u64) {
        if !self.acks.adapts() {
            self.acks.on_data(now);
        } else if end > self.rcv_nxt {
            if seq <= self.rcv_nxt {
                self.acks.adapt(now, (end - seq) as u32, self.mss, self.window.offered(self.rcv_nxt));
            } else if seq < end {
                self.acks.adapt_beyond_gap((end - seq) as u32, self.mss);
            }
        }
    }

    /// A segment with `bytes` of data has come in order.
    #[inline(always)]
    fn on_in_order(&mut self, now: Time, bytes: u64) {
        if self.acks.adapts() {
            let (window, rcv_nxt) = (&self.window, self.rcv_nxt);
            self.acks.on_in_order_adaptively(now, bytes as u32, |pending| window.shrinks(rcv_nxt, pending));
        } else {
            self.acks.on_in_order(now, bytes > self.mss as u64);
        }
    }

    /// The last segment, which came in order, has PSH.
    pub(super) fn on_push(&mut self) {
        if self.beyond.is_empty() {
            self.acks.on_push();
        }
    }

    /// This end sends data.
    #[inline(always)]
    pub(super) fn on_answer(&mut self, now: Time) {
        self.acks.on_answer(now);
    }

    /// True if data from `rcv_nxt` to `end` fits, and nothing waits beyond a gap.
    #[inline(always)]
    pub(super) fn expects(&self, end: u64) -> bool {
        self.window.has_room_to(end) && self.beyond.is_empty()
    }

    /// Takes data that [`Self::expects`] has found to be next: the part of [`Self::on_data`] that applies to it.
    #[inline(always)]
    pub(super) fn on_expected_data(&mut self, now: Time, end: u64) {
        self.count(now, self.rcv_nxt, end);
        let from = core::mem::replace(&mut self.rcv_nxt, end);
        self.on_in_order(now, end - from);
    }

    fn on_old_data(&mut self, now: Time, seq: u64, end: u64) {
        self.duplicates += 1;
        let is_last = end == self.rcv_nxt && self.beyond.is_empty();
        if is_last && self.departures.takes_repetition_in_order() {
            self.on_in_order(now, 0);
        } else {
            self.report_duplicate(seq, end);
            self.acks.on_repetition(self.window.offered(self.rcv_nxt));
        }
    }

    /// True if a waiting ACK must go out before the receiver takes data `seq..end`: the next ACK may have no room for its SACK blocks.
    #[inline(always)]
    pub(super) fn needs_ack_before(&self, seq: u64, end: u64) -> bool {
        self.acks.is_waiting() && seq > self.rcv_nxt && self.sack.crowds_out(seq, end)
    }

    /// Takes data beyond a gap, or data that arrives while there are gaps.
    fn on_data_and_gaps(&mut self, now: Time, seq: u64, end: u64) -> Fresh {
        let from = seq.max(self.rcv_nxt);
        if from >= end {
            // All of it lies beyond the window or the FIN.
            self.acks.acknowledge_now();
            return Fresh::None;
        }
        //= RFC 2883 §4: "A D-SACK block is only used to report a duplicate contiguous sequence of data"; of several duplicate
        //= parts only the first is reported.
        let duplicate = if seq < from { Some((seq, from)) } else { self.beyond.first_overlap(from, end) };
        if seq > self.rcv_nxt {
            self.acks.on_gap();
            self.out_of_order += 1;
            let max = (self.window.buffer() / self.mss as u64).clamp(*RANGES.start(), *RANGES.end());
            if !self.beyond.has_room(from, end, max as usize) {
                self.acks.acknowledge_now();
                return Fresh::None;
            }
        }
        if let Some((start, end)) = duplicate {
            self.sack.set_duplicate(start, end);
        }
        self.fresh.clear();
        let fresh = &mut self.fresh;
        self.beyond.insert(from, end, |start, end| fresh.push((start, end)));
        self.window.hold(fresh.iter().map(|(start, end)| end - start).sum(), 0);
        let fresh = match self.fresh[..] {
            [] => Fresh::None,
            [(start, end)] => Fresh::Span(start, end),
            _ => Fresh::Spans,
        };
        if from > self.rcv_nxt {
            self.duplicates += (fresh == Fresh::None) as u64;
            if let Some(block) = self.beyond.holding(seq) {
                self.sack.remember(block);
            }
        } else {
            self.advance();
            self.acks.on_filled();
        }
        //= RFC 5681 §4.2: "the receiver SHOULD send an immediate ACK when it receives a data segment that fills in all or
        //= part of a gap in the sequence space."
        if self.beyond.is_empty() {
            self.acks.acknowledge_now()
        } else {
            self.acks.on_disorder(now, self.rcv_nxt)
        }
        fresh
    }

    /// Moves `rcv_nxt` over the range that begins there. Returns whether there is one.
    fn advance(&mut self) -> bool {
        let Some((_, to)) = self.beyond.holding(self.rcv_nxt) else { return false };
        self.rcv_nxt = to;
        let mut released = 0;
        self.beyond.remove_below(to, |start, end| released += end - start);
        self.window.hold(0, released);
        self.beyond.shrink_if_empty();
        self.sack.advance(to);
        true
    }

    /// The peer's stream ends at `rcv_nxt`: forgets data received beyond it.
    pub(super) fn drop_beyond(&mut self) {
        self.window.hold(0, self.beyond_gaps());
        self.beyond.clear();
        self.beyond.shrink_if_empty();
        self.sack.clear();
    }

    /// Reports a duplicate in the next ACK, which is sent now.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        self.sack.set_duplicate(start, end);
        self.acks.acknowledge_now();
    }

    /// Acknowledges the SYN of a one-way opening.
    pub(super) fn on_bare_syn(&mut self, now: Time) {
        if self.departures.delays_ack_of_syn() { self.on_in_order(now, 0) } else { self.acks.acknowledge_now() }
    }

    /// Forces an immediate ACK.
    #[inline(always)]
    pub(super) fn acknowledge_now(&mut self) {
        self.acks.acknowledge_now();
    }

    /// True if no ACK is due or delayed, nothing is to be reported, and nothing waits beyond a gap.
    pub(super) fn is_silent(&self) -> bool {
        self.acks.is_silent() && self.sack.is_empty() && self.beyond.is_empty()
    }

    /// True if an ACK must be sent.
    #[inline(always)]
    pub(super) fn ack_is_due(&self, now: Time) -> bool {
        self.acks.is_due(now)
    }

    /// True if an ACK must be sent before the user reads anything.
    #[inline(always)]
    pub(super) fn acks_first(&self) -> bool {
        self.acks.is_first()
    }

    /// When the delayed ACK must be sent; [`Time::NEVER`] if none is delayed.
    #[inline(always)]
    pub(super) fn ack_deadline(&self) -> Time {
        self.acks.deadline()
    }

    /// An ACK is sent.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self, now: Time) {
        self.acks.acknowledged(now);
    }

    /// True if the next segment has SACK blocks to report.
    #[inline(always)]
    pub(super) fn has_sack_blocks(&self) -> bool {
        !self.sack.is_empty()
    }

    /// The number of SACK blocks that the next segment carries if it has room for all.
    #[inline(always)]
    pub(super) fn sack_blocks_due(&self) -> usize {
        self.sack.due()
    }

    /// SACK blocks for an outgoing segment, at most `max`.
    pub(super) fn sack_blocks(&mut self, max: usize) -> SackBlocks {
        self.sack.take_blocks(self.rcv_nxt, max)
    }
}

#[cfg(test)]
mod tests;
