//! The receiving half: reassembly, the window offered, SACK and D-SACK blocks, and when to acknowledge.

use super::config::TcpConfig;
use super::ranges::Ranges;
use super::segment::{FIRST_BYTE, MAX_SACK_BLOCKS, SackBlocks};
use super::variant::Daass;
use crate::units::{Duration, Time};

/// When an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckDue {
    No,
    Now,
    By(Time),
}

/// Which bytes of a segment's payload are new, in sequence numbers. A driver that keeps bytes stores these and no others, so
/// that what has been received once, and perhaps reported by SACK, is never overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fresh {
    /// None.
    #[default]
    None,
    /// From the first number to before the second.
    Span(u64, u64),
    /// The spans that [`Duplex::fresh_spans`](super::Duplex::fresh_spans) lists until the next segment: received ranges lie
    /// between them.
    Spans,
}

/// The fewest and the most ranges beyond gaps that a receiver keeps. In between, one for each full segment of the buffer.
const RANGES: core::ops::RangeInclusive<u64> = 64..=65_536;

/// The receiver of one connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Next sequence number expected.
    rcv_nxt: u64,
    /// Up to here the user has taken the data.
    read: u64,
    buffer: u64,
    /// The greatest window that the header can say.
    max_window: u64,
    /// Right edge of the window last offered; it never moves back (RFC 9293 §3.8.6).
    edge: u64,
    /// The right edge that the peer has been told: `edge`, rounded down by the window scale, which was this.
    told: u64,
    scale: u8,
    mss: u16,
    /// What has come beyond a gap.
    beyond: Ranges,
    /// The new parts of the segment that came last, where received ranges lie between them.
    fresh: Vec<(u64, u64)>,
    /// The blocks changed last, newest first (RFC 2018 §4).
    recent: [(u64, u64); MAX_SACK_BLOCKS],
    recent_len: usize,
    sack_blocks: usize,
    /// A duplicate to report once (RFC 2883 §4).
    duplicate: Option<(u64, u64)>,
    dsack: bool,

    delay: Duration,
    every: u32,
    daass: Daass,
    tick: Option<Duration>,
    due: AckDue,
    /// In-order segments not acknowledged yet.
    pending: u32,
    /// Segments with data so far, for DAASS.
    data_segments: u32,
    had_gap: bool,
    /// ns-2's sink takes a repetition of the last segment for one in order.
    ns2: bool,
    /// Segments that brought nothing new.
    pub(super) duplicates: u64,
    /// Segments that came beyond a gap.
    pub(super) out_of_order: u64,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Receiver {
            rcv_nxt: 0,
            read: FIRST_BYTE,
            buffer: config.receive_buffer as u64,
            max_window: u64::MAX,
            edge: 0,
            told: 0,
            scale: 0,
            mss: config.mss,
            beyond: Ranges::new(),
            fresh: Vec::new(),
            recent: [(0, 0); MAX_SACK_BLOCKS],
            recent_len: 0,
            sack_blocks: 0,
            duplicate: None,
            dsack: false,
            delay: config.ack.delay,
            every: config.ack.every,
            daass: config.ack.daass,
            tick: config.ack.tick,
            due: AckDue::No,
            pending: 0,
            data_segments: 0,
            had_gap: false,
            ns2: config.shortcuts.ns2_recovery,
            duplicates: 0,
            out_of_order: 0,
        }
    }

    /// The handshake is known: what both ends agreed on.
    pub(super) fn negotiated(&mut self, sack_blocks: usize, dsack: bool, max_window: u64) {
        self.sack_blocks = sack_blocks;
        self.dsack = dsack && sack_blocks > 1;
        self.max_window = max_window;
    }

    /// The peer's SYN has come (or there is none): data starts here.
    pub(super) fn synchronize(&mut self) {
        self.rcv_nxt = FIRST_BYTE;
    }

    #[inline(always)]
    pub(super) fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Bytes that the user can have from the start on, a FIN not counted.
    #[inline(always)]
    pub(super) fn readable(&self) -> u64 {
        self.rcv_nxt - FIRST_BYTE
    }

    /// The FIN has been reached: it takes a sequence number.
    pub(super) fn pass_fin(&mut self) {
        self.rcv_nxt += 1;
        self.read += 1;
    }

    /// The user has taken `bytes`. Whether the peer should hear of the window now: it was smaller than a segment and opens by
    /// one (RFC 9293 §3.8.6.2.2), or this read alone has freed two segments and a quarter of the buffer.
    pub(super) fn read(&mut self, bytes: u64) -> bool {
        self.read = (self.read + bytes).min(self.rcv_nxt);
        let mss = self.mss as u64;
        let frees_much = bytes >= (2 * mss).max(self.buffer / 4);
        if self.told.saturating_sub(self.rcv_nxt) >= mss && !frees_much {
            return false;
        }
        let wanted = (self.read + self.buffer).max(self.edge);
        let window = wanted.saturating_sub(self.rcv_nxt).min(self.max_window);
        let tell = self.rcv_nxt + ((window >> self.scale) << self.scale) >= self.told + mss.min(self.buffer / 2);
        if tell {
            self.edge = wanted;
        }
        tell
    }

    /// The buffer has another size. Whether the peer should hear of it, as in [`Receiver::read`].
    pub(super) fn resize(&mut self, buffer: u64) -> bool {
        self.buffer = buffer;
        // Before the peer's SYN there is nobody to tell.
        self.rcv_nxt > 0 && self.read(0)
    }

    /// Bytes beyond gaps.
    pub(super) fn beyond_gaps(&self) -> u64 {
        self.beyond.count_in(self.rcv_nxt, u64::MAX)
    }

    /// The window to offer, rounded down to what a shift of `scale` can say.
    #[inline(always)]
    pub(super) fn offer_window(&mut self, scale: u8) -> u32 {
        let wanted = self.read + self.buffer;
        // Small openings are held back; an edge once offered stands.
        if wanted >= self.edge + (self.mss as u64).min(self.buffer / 2) {
            self.edge = wanted;
        }
        let window = (self.edge.saturating_sub(self.rcv_nxt).min(self.max_window) >> scale) << scale;
        (self.told, self.scale) = (self.rcv_nxt + window, scale);
        window as u32
    }

    /// The window of a SYN, at most `limit`, since it is not scaled (RFC 7323 §2.2): no more has been offered until the
    /// next segment.
    pub(super) fn offer_syn_window(&mut self, limit: u64) -> u32 {
        let window = self.buffer.min(limit);
        self.edge = FIRST_BYTE + window;
        self.told = self.edge;
        window as u32
    }

    /// RFC 9293 §3.10.7.4, first check: whether a segment lies in the window.
    #[inline(always)]
    pub(super) fn acceptable(&self, seq: u64, sequence_len: u64) -> bool {
        let window = (self.read + self.buffer).max(self.edge).saturating_sub(self.rcv_nxt);
        match (sequence_len, window) {
            (0, 0) => seq == self.rcv_nxt,
            // One below is a probe of Linux's: it wants an answer, and gets it because it is not acceptable.
            (0, w) => seq >= self.rcv_nxt && seq < self.rcv_nxt + w,
            // A zero-window probe: nothing fits, but the ACK in it counts and it wants an answer.
            (_, 0) => false,
            (len, w) => seq < self.rcv_nxt + w && seq + len > self.rcv_nxt,
        }
    }

    /// Whether `seq` lies in the receive window, or is the number expected next.
    pub(super) fn in_window(&self, seq: u64) -> bool {
        seq == self.rcv_nxt || (seq > self.rcv_nxt && seq < self.limit())
    }

    /// One past the last byte that the buffer or the window offered takes.
    #[inline(always)]
    pub(super) fn limit(&self) -> u64 {
        (self.read + self.buffer).max(self.edge)
    }

    /// The new parts of the segment that came last: see [`Fresh::Spans`].
    pub(super) fn fresh_spans(&self) -> &[(u64, u64)] {
        &self.fresh
    }

    /// Bytes of memory beside the user's data.
    pub(super) fn memory(&self) -> usize {
        self.beyond.memory() + self.fresh.capacity() * size_of::<(u64, u64)>()
    }

    /// Takes the payload `seq..end`: which of it is new. If `rcv_nxt` moved, it begins there.
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Time, seq: u64, end: u64) -> Fresh {
        self.data_segments = self.data_segments.saturating_add(1);
        // Beyond what the buffer takes there is nowhere to put it.
        let end = end.min(self.limit());
        if end <= self.rcv_nxt {
            self.on_old_data(now, seq, end);
            return Fresh::None;
        }
        if seq > self.rcv_nxt || !self.beyond.is_empty() {
            return self.on_data_and_gaps(seq, end);
        }
        let from = core::mem::replace(&mut self.rcv_nxt, end);
        if seq < from && self.dsack {
            self.report_duplicate(seq, from);
        } else {
            //= RFC 5681 §4.2: "an ACK SHOULD be generated for at least every second full-sized segment", and one that is
            // longer was joined from several on its way.
            self.pending += (end - seq > self.mss as u64) as u32;
            self.in_order(now);
        }
        Fresh::Span(from, end)
    }

    fn on_old_data(&mut self, now: Time, seq: u64, end: u64) {
        self.duplicates += 1;
        if self.ns2 && end == self.rcv_nxt && self.beyond.is_empty() {
            self.in_order(now);
        } else {
            self.report_duplicate(seq, end);
        }
    }

    /// Data beyond a gap, or data that comes while there are gaps.
    fn on_data_and_gaps(&mut self, seq: u64, end: u64) -> Fresh {
        //= RFC 5681 §4.2: "the receiver SHOULD send an immediate ACK when it receives a data segment that fills in all or
        //= part of a gap in the sequence space."
        self.due = AckDue::Now;
        let from = seq.max(self.rcv_nxt);
        if from >= end {
            // All of it lies behind the window or the FIN.
            return Fresh::None;
        }
        //= RFC 2883 §4: "A D-SACK block is only used to report a duplicate contiguous sequence of data"; of several duplicate
        //= parts only the first is reported.
        let duplicate = if seq < from { Some((seq, from)) } else { self.beyond.first_overlap(from, end) };
        if seq > self.rcv_nxt {
            self.had_gap = true;
            self.out_of_order += 1;
            let max = (self.buffer / self.mss as u64).clamp(*RANGES.start(), *RANGES.end());
            if self.beyond.len() as u64 >= max && !self.beyond.touches(from, end) {
                return Fresh::None;
            }
        }
        if let Some((start, end)) = duplicate {
            self.report_duplicate(start, end);
        }
        self.fresh.clear();
        let fresh = &mut self.fresh;
        self.beyond.insert(from, end, |start, end| fresh.push((start, end)));
        let fresh = match self.fresh[..] {
            [] => Fresh::None,
            [(start, end)] => Fresh::Span(start, end),
            _ => Fresh::Spans,
        };
        if from > self.rcv_nxt {
            self.duplicates += (fresh == Fresh::None) as u64;
            self.remember(seq);
        } else {
            self.advance();
        }
        fresh
    }

    /// Moves `rcv_nxt` over the range that begins there. Whether there is one.
    fn advance(&mut self) -> bool {
        let Some((_, to)) = self.beyond.holding(self.rcv_nxt) else { return false };
        self.rcv_nxt = to;
        self.beyond.remove_below(to, |_, _| ());
        self.beyond.shrink_if_empty();
        self.forget_acknowledged();
        true
    }

    /// Keeps the payload of a SYN, `FIRST_BYTE..end`, until the handshake is done (RFC 9293 §3.10.7.2).
    pub(super) fn keep_until_open(&mut self, end: u64) -> Fresh {
        let end = end.min(self.limit());
        if end <= self.rcv_nxt || !self.beyond.is_empty() {
            return Fresh::None;
        }
        self.beyond.insert(self.rcv_nxt, end, |_, _| ());
        Fresh::Span(self.rcv_nxt, end)
    }

    /// The handshake is done: what came with the SYN counts as data in order. Whether there was anything.
    pub(super) fn open(&mut self, now: Time) -> bool {
        let any = !self.beyond.is_empty() && self.advance();
        if any {
            self.in_order(now);
        }
        any
    }

    /// The peer's stream ends at `rcv_nxt`: forgets what was received beyond.
    pub(super) fn drop_beyond(&mut self) {
        self.beyond.clear();
        self.beyond.shrink_if_empty();
        self.recent_len = 0;
    }

    /// One past the highest byte received, in order or not.
    pub(super) fn highest(&self) -> u64 {
        self.beyond.end().max(self.rcv_nxt)
    }

    /// Notes a duplicate for the very next ACK, which goes out now.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
        self.due = AckDue::Now;
    }

    /// The SYN of a one-way opening is acknowledged like a segment of data.
    pub(super) fn on_bare_syn(&mut self, now: Time, like_data: bool) {
        if like_data { self.in_order(now) } else { self.due = AckDue::Now }
    }

    fn in_order(&mut self, now: Time) {
        let quick = match self.daass {
            Daass::Off => false,
            Daass::FirstSegments(n) => self.data_segments <= n,
            Daass::SlowStart => !self.had_gap,
        };
        self.pending += 1;
        let at_once = self.delay == Duration::ZERO && self.tick.is_none();
        if quick || at_once || self.pending >= self.every {
            self.due = AckDue::Now;
        } else if self.due == AckDue::No {
            self.due = AckDue::By(match self.tick {
                None => now + self.delay,
                // The next expiry: one that falls on this instant has passed.
                Some(tick) => Time::from_ticks((now.as_ticks() / tick.as_ticks().max(1) + 1) * tick.as_ticks().max(1)),
            });
        }
    }

    /// An ACK must go out now, whatever else.
    pub(super) fn acknowledge_now(&mut self) {
        self.due = AckDue::Now;
    }

    #[inline(always)]
    pub(super) fn ack_is_due(&self, now: Time) -> bool {
        match self.due {
            AckDue::No => false,
            AckDue::Now => true,
            AckDue::By(at) => at <= now,
        }
    }

    /// When the delayed ACK must go out.
    #[inline(always)]
    pub(super) fn ack_deadline(&self) -> Option<Time> {
        match self.due {
            AckDue::By(at) => Some(at),
            AckDue::No | AckDue::Now => None,
        }
    }

    /// An ACK goes out with this segment.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self) {
        self.due = AckDue::No;
        self.pending = 0;
    }

    /// How many SACK blocks the next segment carries if it has room for all.
    #[inline(always)]
    pub(super) fn sack_blocks_due(&self) -> usize {
        if self.recent_len == 0 && self.duplicate.is_none() {
            return 0;
        }
        (self.recent_len + (self.dsack && self.duplicate.is_some()) as usize).min(self.sack_blocks)
    }

    /// SACK blocks for a segment that goes out, at most `max`: a D-SACK first, then the newest.
    #[inline(always)]
    pub(super) fn sack_blocks(&mut self, max: usize) -> SackBlocks {
        let duplicate = self.duplicate.take();
        let mut blocks = SackBlocks::NONE;
        let max = max.min(self.sack_blocks);
        if max == 0 || (self.recent_len == 0 && duplicate.is_none()) {
            return blocks;
        }
        if let Some((start, end)) = duplicate.filter(|_| self.dsack) {
            blocks.push(self.rcv_nxt, start, end);
        }
        let room = max - blocks.len();
        for &(start, end) in self.recent[..self.recent_len].iter().take(room) {
            blocks.push(self.rcv_nxt, start, end);
        }
        blocks
    }

    //= RFC 2018 §4: "The first SACK block [...] MUST specify the contiguous block of data containing the segment which
    //= triggered this ACK" and the others come "by repeating the most recently reported SACK blocks"
    fn remember(&mut self, seq: u64) {
        if self.sack_blocks == 0 {
            return;
        }
        let Some(block) = self.beyond.holding(seq) else { return };
        let mut kept = 0;
        let mut recent = [(0, 0); MAX_SACK_BLOCKS];
        recent[0] = block;
        for &old in &self.recent[..self.recent_len] {
            let covered = old.0 >= block.0 && old.1 <= block.1;
            if !covered && kept + 1 < self.sack_blocks.min(MAX_SACK_BLOCKS) {
                kept += 1;
                recent[kept] = old;
            }
        }
        self.recent = recent;
        self.recent_len = kept + 1;
    }

    fn forget_acknowledged(&mut self) {
        let mut kept = 0;
        for i in 0..self.recent_len {
            if self.recent[i].0 > self.rcv_nxt {
                self.recent[kept] = self.recent[i];
                kept += 1;
            }
        }
        self.recent_len = kept;
    }

    /// Whether nothing waits beyond a gap.
    pub(super) fn is_contiguous(&self) -> bool {
        self.beyond.is_empty()
    }
}
