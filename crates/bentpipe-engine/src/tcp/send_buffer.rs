//! A host's send buffer. Written data takes memory until the peer has acknowledged it (Linux: `sk_sndbuf`, tcp_wmem),
//! so the buffer limits the data in flight over a long path.
//!
//! Memory is counted as Linux counts it (`sk_wmem_queued`): the data, plus [`OVERHEAD`] for each packet in flight and for each waiting
//! piece; packets of data that SACK has reported count as one. A program that waits for room may write again once a third of the buffer is
//! free (`sk_stream_is_writeable`). The buffer begins with room for two windows of ten segments, or with a set size. It grows to two
//! windows, or three with BBR, when the window has room while a program waits (`tcp_new_space`).
//!
//! Data is divided into pieces as the program writes it (`tcp_sendmsg_locked`). A write first fills up the last waiting piece. What leaves
//! of that piece makes room in it. The length of a piece depends on the window that the peer has at the time of the write.

use alloc::collections::VecDeque;

use super::FIRST_BYTE;
use super::offload::piece;
use super::sequence::SequenceSpace;
use crate::wire::seq::SeqNumber;

/// Memory that a packet takes besides its data: the `sk_buff` and the space for headers. Measured on Linux 6.18 on
/// x86-64 (SO_MEMINFO).
const OVERHEAD: u64 = 832;
/// Memory for the headers and the administration of a segment in a block of its own; blocks are powers of two
/// (`tcp_sndbuf_expand`: MAX_TCP_HEADER and `skb_shared_info`). Linux 6.18 on x86-64 begins with 46 080 bytes, and with
/// BBR with 69 120 (SO_SNDBUF): 20 and 30 times 2304.
const BLOCK_HEADERS: u64 = 576;
/// The `sk_buff` of such a segment.
const SK_BUFF: u64 = 256;
/// There is room for at least this many segments (TCP_INIT_CWND).
const MIN_SEGMENTS: u64 = 10;

/// The lower half of an offset. No window is as long as half of the number space, so offsets of one window compare by it.
const fn number(offset: u64) -> SeqNumber {
    SeqNumber(offset as u32)
}

/// Data that waits, from `start` to the start of the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    /// Its last segment has PSH.
    push: bool,
}

/// A send buffer, and its packets in flight.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct SendBuffer {
    size: u64,
    max: u64,
    /// Memory for a segment of the congestion window.
    per_segment: u64,
    /// True if the program has filled the buffer and has not written since.
    is_full: bool,
    /// True if the program waits for room (SOCK_NOSPACE), and if anything has happened since.
    waits: bool,
    has_news: bool,
    /// The segment that leaves next belongs to the same packet as the last one.
    goes_on: bool,
    /// The pieces that wait. Parts of the first may have left.
    pieces: VecDeque<Piece>,
    /// The end of the first piece, and whether it has PSH. `u64::MAX`: it is the last one, which may still grow.
    first: (u64, bool),
    /// One past the last byte that leaves with PSH, as far as it is known (`pushed_seq`).
    pushed: u64,
    /// The ends of packets in flight.
    packets: VecDeque<SeqNumber>,
}

impl SendBuffer {
    /// A buffer that begins with `first` bytes and grows to `max` (tcp_wmem[1] and tcp_wmem[2]).
    pub(in crate::tcp) const fn new(first: u64, max: u64) -> Self {
        SendBuffer {
            size: if max < first { max } else { first },
            max,
            per_segment: 0,
            is_full: false,
            waits: false,
            has_news: false,
            goes_on: false,
            pieces: VecDeque::new(),
            first: (u64::MAX, false),
            pushed: FIRST_BYTE,
            packets: VecDeque::new(),
        }
    }

    /// Begins with segments of `mss` bytes, and room for `windows` congestion windows.
    pub(in crate::tcp) fn begin(&mut self, mss: u16, windows: u64) {
        self.per_segment = windows * ((u64::from(mss) + BLOCK_HEADERS).next_power_of_two() + SK_BUFF);
        self.grow(0);
    }

    /// Grows to the size for a congestion window of `segments`, if that is larger.
    pub(in crate::tcp) fn grow(&mut self, segments: u64) {
        self.size = self.size.max(self.max.min(segments.max(MIN_SEGMENTS) * self.per_segment));
    }

    fn memory(&self, seq: &SequenceSpace) -> u64 {
        seq.data_end.saturating_sub(seq.snd_una) + (self.pieces.len() + self.packets.len()) as u64 * OVERHEAD
    }

    /// Bytes that fill up the last waiting piece; 0 if none waits.
    fn rest_of_last(&self, seq: &SequenceSpace, piece: u64) -> u64 {
        self.pieces.back().map_or(0, |last| (last.start.max(seq.snd_max) + piece).saturating_sub(seq.data_end))
    }

    /// Bytes that the program may write now, with segments of `full` bytes.
    pub(in crate::tcp) fn room(&self, seq: &SequenceSpace, full: u64) -> u64 {
        let piece = piece(full, seq.peer.max);
        if self.must_wait(seq) {
            return 0;
        }
        let rest = self.rest_of_last(seq, piece);
        rest + self.size.saturating_sub(self.memory(seq) + rest).div_ceil(piece + OVERHEAD) * piece
    }

    /// Bytes that the program may write before segments leave: what fills up the last waiting piece, or another piece if
    /// memory is left. The piece is filled up whatever memory that takes (Linux, `tcp_sendmsg_locked`).
    pub(in crate::tcp) fn room_in_piece(&self, seq: &SequenceSpace, full: u64) -> u64 {
        let piece = piece(full, seq.peer.max);
        if self.must_wait(seq) {
            return 0;
        }
        match self.rest_of_last(seq, piece) {
            0 if self.memory(seq) < self.size => piece,
            rest => rest,
        }
    }

    /// True if the program waits, and less than a third is free.
    fn must_wait(&self, seq: &SequenceSpace) -> bool {
        self.waits && 3 * self.memory(seq) > 2 * self.size
    }

    /// The end of the first waiting piece. `u64::MAX`: it is the last one, which may still grow.
    #[inline(always)]
    pub(in crate::tcp) fn end_of_first(&self) -> u64 {
        self.first.0
    }

    /// True if a packet that ends at `end` has PSH because the piece does.
    #[inline(always)]
    pub(in crate::tcp) fn pushes(&self, end: u64) -> bool {
        self.first.1 && end >= self.first.0
    }

    fn note_first(&mut self) {
        self.first = match (self.pieces.front(), self.pieces.get(1)) {
            (Some(first), Some(second)) => (second.start, first.push),
            _ => (u64::MAX, false),
        };
    }

    /// Records that the program waits for room. What it has written is pushed (`tcp_push`).
    pub(in crate::tcp) fn wait(&mut self, data_end: u64) {
        if !core::mem::replace(&mut self.waits, true) {
            (self.is_full, self.has_news) = (true, false);
            if let Some(last) = self.pieces.back_mut() {
                (last.push, self.pushed) = (true, data_end);
            }
        }
    }

    /// Records an event that may make room.
    #[inline(always)]
    pub(in crate::tcp) fn on_event(&mut self) {
        self.has_news = true;
    }

    /// True if another event would change nothing.
    pub(in crate::tcp) fn is_at_start(&self) -> bool {
        self.has_news
    }

    /// True if the program waits, and something has happened since it began to.
    #[inline(always)]
    pub(in crate::tcp) fn may_grow(&self) -> bool {
        self.waits && self.has_news && self.size < self.max
    }

    /// True if the program has filled the buffer and has not written since.
    pub(in crate::tcp) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Records that the last `bytes` before `data_end` were written. A piece that is full is pushed if nothing was for half of the peer's
    /// largest window (`forced_push`).
    pub(in crate::tcp) fn on_write(&mut self, seq: &SequenceSpace, bytes: u64, full: u64) {
        let piece = piece(full, seq.peer.max);
        let before = seq.data_end - bytes;
        let last = SequenceSpace { data_end: before, ..*seq };
        // The piece that ends here is full.
        let mut end = before + self.rest_of_last(&last, piece);
        while end <= seq.data_end {
            if let Some(last) = self.pieces.back_mut()
                && end - self.pushed > seq.peer.max / 2
            {
                (last.push, self.pushed) = (true, end);
            }
            if end == seq.data_end {
                break;
            }
            self.pieces.push_back(Piece { start: end, push: false });
            end += piece;
        }
        self.note_first();
        (self.is_full, self.waits) = (self.memory(seq) >= self.size, false);
    }

    /// Records that the next segment belongs to the same packet as the one before it.
    pub(in crate::tcp) fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// Records that a segment of new data leaves; it ends at `end`, of all data up to `data_end`.
    pub(in crate::tcp) fn on_sent(&mut self, end: u64, data_end: u64) {
        self.on_event();
        if end >= self.first.0.min(data_end) {
            self.end_pieces(end, data_end);
        }
        match self.packets.back_mut() {
            Some(last) if core::mem::take(&mut self.goes_on) => *last = number(end),
            _ => self.packets.push_back(number(end)),
        }
    }

    /// Removes the pieces that have left.
    fn end_pieces(&mut self, end: u64, data_end: u64) {
        if end >= data_end {
            self.pieces.clear();
        }
        while self.pieces.get(1).is_some_and(|second| second.start <= end) {
            self.pieces.pop_front();
        }
        self.note_first();
    }

    /// Frees the memory of data that is acknowledged.
    pub(in crate::tcp) fn on_ack(&mut self, seq: &SequenceSpace) {
        while self.packets.front().is_some_and(|&end| number(seq.snd_una).distance_from(end) >= 0) {
            self.packets.pop_front();
        }
        // If the buffer ran empty, the program has nothing more to write.
        self.is_full &= seq.data_end > seq.snd_una;
    }

    /// Joins the packets of reported data: they then take the memory of one packet (Linux, `tcp_shift_skb_data`).
    pub(in crate::tcp) fn on_sacked(&mut self, start: u64, end: u64) {
        let up_to = |edge: u64| move |packet: &SeqNumber| packet.distance_from(number(edge)) <= 0;
        let (first, next) = (self.packets.partition_point(up_to(start)), self.packets.partition_point(up_to(end)));
        if next > first + 1 {
            self.packets.drain(first..next - 1);
        }
    }

    /// Heap memory, bytes.
    pub(in crate::tcp) fn heap(&self) -> usize {
        self.packets.capacity() * size_of::<SeqNumber>() + self.pieces.capacity() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Full segments and whole pieces of them.
    const FULL: u64 = 1448;
    const PIECE: u64 = 45 * FULL;

    /// A sequence space with bytes from `una` on unacknowledged, from `next` on never sent, and up to `end` written.
    fn held(una: u64, next: u64, end: u64) -> SequenceSpace {
        let mut seq = SequenceSpace::new(next, 0);
        (seq.snd_una, seq.data_end, seq.peer.max) = (una, end, 1 << 30);
        seq
    }

    /// A buffer that grows to `max` bytes.
    fn growing_to(max: u64) -> SendBuffer {
        SendBuffer::new(16_384, max)
    }

    /// Linux 6.18, 100 Mbit/s over GEO: with 640 segments in flight, two in a packet, and 1 220 664 bytes waiting, SO_MEMINFO showed
    /// 2 429 432 bytes.
    #[test]
    fn memory_is_that_of_linux() {
        let mut buffer = growing_to(4 << 20);
        let una = 1;
        for packet in 0..320 {
            buffer.on_sent(una + (2 * packet + 1) * 1448, u64::MAX);
            buffer.go_on();
            buffer.on_sent(una + (2 * packet + 2) * 1448, u64::MAX);
        }
        let next = una + 640 * 1448;
        let held = held(una, next, next + 1_220_664);
        buffer.on_write(&held, 1_220_664, FULL);
        assert_eq!(buffer.memory(&held), 2_429_432);
    }

    #[test]
    fn a_program_waits_until_a_third_is_free() {
        let mut buffer = SendBuffer { size: 300_000, ..growing_to(300_000) };
        assert_eq!(buffer.room(&held(1, 1, 1), FULL), 5 * PIECE, "the last piece may exceed it");
        let end = 1 + 5 * PIECE;
        buffer.on_write(&held(1, 1, end), 5 * PIECE, FULL);
        assert!(buffer.is_full());
        buffer.wait(end);
        (1..=5).for_each(|packet| buffer.on_sent(1 + packet * PIECE, end));
        for packet in 1..=5 {
            let held = held(1 + packet * PIECE, end, end);
            buffer.on_ack(&held);
            // Three packets of 65 kB are less than 200 000 bytes.
            assert_eq!(buffer.room(&held, FULL) > 0, packet >= 2, "{packet}");
            assert_eq!(buffer.is_full(), packet < 5, "{packet}");
        }
    }

    /// Four of six packets are reported, and then the fifth. The number space wraps between them.
    #[test]
    fn reported_packets_take_the_memory_of_one() {
        let mut buffer = growing_to(1 << 20);
        let start = u64::from(u32::MAX) - 2999;
        (1..=6).for_each(|packet| buffer.on_sent(start + packet * 1000, start + 6000));
        let end = start + 6000;
        buffer.on_sacked(start + 1000, start + 4000);
        assert_eq!(buffer.memory(&held(start, end, end)), 6000 + 4 * OVERHEAD);
        buffer.on_sacked(start + 1000, start + 5500);
        assert_eq!(buffer.memory(&held(start, end, end)), 6000 + 3 * OVERHEAD, "half of the sixth is not reported");
        buffer.on_sacked(start + 1000, end);
        assert_eq!(buffer.memory(&held(start, end, end)), 6000 + 2 * OVERHEAD);
        buffer.on_sacked(start, start + 1);
        assert_eq!(buffer.memory(&held(start, end, end)), 6000 + 2 * OVERHEAD);
    }

    /// Linux 6.18: SO_SNDBUF was 46 080 bytes after the handshake, and 69 120 with BBR; with windows of 22, 42 and 82
    /// segments it grew to 101 376, 193 536 and 377 856 bytes.
    #[test]
    fn it_grows_with_the_window_while_the_program_waits() {
        let mut buffer = growing_to(1 << 20);
        buffer.begin(1448, 3);
        assert_eq!(buffer.size, 69_120);
        let mut buffer = growing_to(1 << 20);
        buffer.begin(1448, 2);
        assert_eq!(buffer.size, 46_080);
        let end = 1 + PIECE;
        buffer.on_write(&held(1, 1, end), PIECE, FULL);
        assert!(!buffer.may_grow(), "the program does not wait");
        buffer.wait(end);
        assert!(!buffer.may_grow(), "nothing has happened");
        buffer.on_event();
        assert!(buffer.may_grow());
        for (window, size) in [(9, 46_080), (22, 101_376), (21, 101_376), (42, 193_536), (82, 377_856), (1000, 1 << 20)]
        {
            buffer.grow(window);
            assert_eq!(buffer.size, size);
        }
        assert!(!buffer.may_grow(), "the maximum");
        buffer.on_write(&held(1, 1, end), 0, FULL);
        assert!(!buffer.waits);
    }

    /// Linux 6.18 over 150 ms, with a first window of 64 kB (SO_MEMINFO): half of it holds 22 segments. Ten have left when the program is
    /// held up, in five packets, and 22 wait: 51 328 bytes of 46 080.
    #[test]
    fn a_piece_is_filled_up_as_it_leaves() {
        let mut buffer = SendBuffer { size: 46_080, ..growing_to(46_080) };
        let piece = 22 * FULL;
        let of_window = |next, end| {
            let mut seq = held(1, next, end);
            seq.peer.max = 64_512;
            seq
        };
        let room = |buffer: &SendBuffer, next, end| buffer.room_in_piece(&of_window(next, end), FULL);
        assert_eq!((room(&buffer, 1, 1), buffer.room(&of_window(1, 1), FULL)), (piece, 2 * piece));
        let mut end = 1 + piece;
        buffer.on_write(&of_window(1, end), piece, FULL);
        for packet in 1..=5 {
            let next = 1 + packet * 2 * FULL;
            buffer.on_sent(next, end);
            assert_eq!(room(&buffer, next, end), 2 * FULL);
            end += 2 * FULL;
            buffer.on_write(&of_window(next, end), 2 * FULL, FULL);
        }
        let full = of_window(1 + 10 * FULL, end);
        assert_eq!((buffer.memory(&full), buffer.room_in_piece(&full, FULL)), (51_328, 0));
        // Once all has left, no piece waits, and the buffer has no room for another.
        buffer.on_sent(end, end);
        assert_eq!((room(&buffer, end, end), buffer.memory(&of_window(end, end))), (0, 51_328));
    }

    /// With a window of 64 kB a piece has 22 segments, with 80 kB 27. A piece keeps the length that it had when it was written; the last
    /// one may still grow, and what has left of it makes room.
    #[test]
    fn a_piece_keeps_the_length_that_it_was_written_with() {
        let mut buffer = growing_to(1 << 20);
        let of_window = |window, next, end| {
            let mut seq = held(1, next, end);
            seq.peer.max = window;
            seq
        };
        buffer.on_write(&of_window(64_512, 1, 1 + 30 * FULL), 30 * FULL, FULL);
        let starts = |buffer: &SendBuffer| buffer.pieces.iter().map(|piece| piece.start).collect::<Vec<_>>();
        assert_eq!(starts(&buffer), [1, 1 + 22 * FULL]);
        assert_eq!(buffer.room_in_piece(&of_window(80_896, 1, 1 + 30 * FULL), FULL), 19 * FULL);
        buffer.on_write(&of_window(80_896, 1, 1 + 60 * FULL), 30 * FULL, FULL);
        assert_eq!(starts(&buffer), [1, 1 + 22 * FULL, 1 + 49 * FULL]);
        assert_eq!(buffer.end_of_first(), 1 + 22 * FULL);
        // A packet may end in the next piece.
        buffer.on_sent(1 + 24 * FULL, 1 + 60 * FULL);
        assert_eq!((buffer.pieces.len(), buffer.end_of_first()), (2, 1 + 49 * FULL));
        buffer.on_sent(1 + 52 * FULL, 1 + 60 * FULL);
        assert_eq!((buffer.pieces.len(), buffer.end_of_first()), (1, u64::MAX));
        let next = of_window(80_896, 1 + 52 * FULL, 1 + 60 * FULL);
        assert_eq!(buffer.room_in_piece(&next, FULL), 19 * FULL);
        buffer.on_sent(1 + 60 * FULL, 1 + 60 * FULL);
        assert!(buffer.pieces.is_empty());
    }

    #[test]
    fn a_packet_is_freed_with_its_last_segment() {
        let mut buffer = growing_to(1 << 20);
        buffer.on_sent(u64::from(u32::MAX) - 999, u64::MAX);
        buffer.go_on();
        buffer.on_sent(u64::from(u32::MAX) + 1001, u64::MAX);
        let end = u64::from(u32::MAX) + 1001;
        let memory = |buffer: &mut SendBuffer, una| {
            buffer.on_ack(&held(una, end, end));
            buffer.memory(&held(una, end, end))
        };
        assert_eq!(memory(&mut buffer, u64::from(u32::MAX) - 999), 2000 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end - 1), 1 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end), 0);
    }
}
