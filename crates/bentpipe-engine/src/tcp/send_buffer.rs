//! A host's send buffer. Written data takes memory until the peer has acknowledged it (Linux: `sk_sndbuf`, tcp_wmem),
//! so the buffer limits the data in flight over a long path.
//!
//! Memory is counted as Linux counts it (`sk_wmem_queued`): the data, plus [`OVERHEAD`] for each packet in flight and for each waiting
//! piece; packets of data that SACK has reported count as one. A program that waits for room may write again once a third of the buffer is
//! free (`sk_stream_is_writeable`). The buffer begins with room for two windows of ten segments. It grows to two windows, or three with
//! BBR, when the window has room while a program waits (`tcp_new_space`).

use std::collections::VecDeque;

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
/// The size before the handshake is over (tcp_wmem[1]).
const BEFORE: u64 = 16_384;
/// There is room for at least this many segments (TCP_INIT_CWND).
const MIN_SEGMENTS: u64 = 10;

/// The lower half of an offset. No window is as long as half of the number space, so offsets of one window compare by it.
const fn number(offset: u64) -> SeqNumber {
    SeqNumber(offset as u32)
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
    /// Where the last piece that was written is full.
    end_of_piece: u64,
    /// The ends of packets in flight.
    packets: VecDeque<SeqNumber>,
}

impl SendBuffer {
    /// A buffer that grows to `max` bytes.
    pub(in crate::tcp) const fn new(max: u64) -> Self {
        let size = if max < BEFORE { max } else { BEFORE };
        SendBuffer {
            size,
            max,
            per_segment: 0,
            is_full: false,
            waits: false,
            has_news: false,
            goes_on: false,
            end_of_piece: 0,
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

    fn memory(&self, seq: &SequenceSpace, piece: u64) -> u64 {
        let waiting = seq.data_end.saturating_sub(seq.snd_max).div_ceil(piece);
        seq.data_end.saturating_sub(seq.snd_una) + (waiting + self.packets.len() as u64) * OVERHEAD
    }

    /// Bytes that the program may write now, with segments of `full` bytes.
    pub(in crate::tcp) fn room(&self, seq: &SequenceSpace, full: u64) -> u64 {
        let piece = piece(full, seq.peer.max);
        let rest = match self.room_in_piece(seq, full, false) {
            0 => return 0,
            rest if seq.data_end > seq.snd_max => rest,
            _ => 0,
        };
        rest + self.size.saturating_sub(self.memory(seq, piece) + rest).div_ceil(piece + OVERHEAD) * piece
    }

    /// Bytes that the program may write before segments leave: what fills up the last waiting piece, or another piece if
    /// memory is left. `goes_on`: it has begun to write a block of data. While that leaves, its last piece is filled up,
    /// whatever memory it takes (Linux, `tcp_sendmsg_locked`).
    pub(in crate::tcp) fn room_in_piece(&self, seq: &SequenceSpace, full: u64, goes_on: bool) -> u64 {
        let piece = piece(full, seq.peer.max);
        let memory = self.memory(seq, piece);
        if self.waits && 3 * memory > 2 * self.size {
            return 0;
        }
        let rest = self.end_of_piece(seq, piece).saturating_sub(seq.data_end);
        match goes_on || seq.data_end > seq.snd_max {
            true if rest > 0 => rest,
            _ if memory < self.size => piece,
            _ => 0,
        }
    }

    /// Where the last waiting piece is full. What has left of it makes room in it.
    fn end_of_piece(&self, seq: &SequenceSpace, piece: u64) -> u64 {
        self.end_of_piece.max(seq.snd_max + piece)
    }

    /// Records that the program waits for room.
    pub(in crate::tcp) fn wait(&mut self) {
        if !core::mem::replace(&mut self.waits, true) {
            (self.is_full, self.has_news) = (true, false);
        }
    }

    /// Records an event that may make room.
    #[inline(always)]
    pub(in crate::tcp) fn on_event(&mut self) {
        self.has_news = true;
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

    /// Records that data was written.
    pub(in crate::tcp) fn on_write(&mut self, seq: &SequenceSpace, full: u64) {
        let piece = piece(full, seq.peer.max);
        (self.is_full, self.waits) = (self.memory(seq, piece) >= self.size, false);
        let end = self.end_of_piece(seq, piece);
        self.end_of_piece = end + seq.data_end.saturating_sub(end).div_ceil(piece) * piece;
    }

    /// Records that the next segment belongs to the same packet as the one before it.
    pub(in crate::tcp) fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// Records that a segment of new data leaves; it ends at `end`.
    pub(in crate::tcp) fn on_sent(&mut self, end: u64) {
        self.on_event();
        match self.packets.back_mut() {
            Some(last) if core::mem::take(&mut self.goes_on) => *last = number(end),
            _ => self.packets.push_back(number(end)),
        }
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
        self.packets.capacity() * size_of::<SeqNumber>()
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

    /// Linux 6.18, 100 Mbit/s over GEO: with 640 segments in flight, two in a packet, and 1 220 664 bytes waiting, SO_MEMINFO showed
    /// 2 429 432 bytes.
    #[test]
    fn memory_is_that_of_linux() {
        let mut buffer = SendBuffer::new(4 << 20);
        let una = 1;
        for packet in 0..320 {
            buffer.on_sent(una + (2 * packet + 1) * 1448);
            buffer.go_on();
            buffer.on_sent(una + (2 * packet + 2) * 1448);
        }
        let next = una + 640 * 1448;
        assert_eq!(buffer.memory(&held(una, next, next + 1_220_664), PIECE), 2_429_432);
    }

    #[test]
    fn a_program_waits_until_a_third_is_free() {
        let mut buffer = SendBuffer { size: 300_000, ..SendBuffer::new(300_000) };
        assert_eq!(buffer.room(&held(1, 1, 1), FULL), 5 * PIECE, "the last piece may exceed it");
        let end = 1 + 5 * PIECE;
        buffer.on_write(&held(1, 1, end), FULL);
        assert!(buffer.is_full());
        buffer.wait();
        (1..=5).for_each(|packet| buffer.on_sent(1 + packet * PIECE));
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
        let mut buffer = SendBuffer::new(1 << 20);
        let start = u64::from(u32::MAX) - 2999;
        (1..=6).for_each(|packet| buffer.on_sent(start + packet * 1000));
        let end = start + 6000;
        buffer.on_sacked(start + 1000, start + 4000);
        assert_eq!(buffer.memory(&held(start, end, end), PIECE), 6000 + 4 * OVERHEAD);
        buffer.on_sacked(start + 1000, start + 5500);
        assert_eq!(
            buffer.memory(&held(start, end, end), PIECE),
            6000 + 3 * OVERHEAD,
            "half of the sixth is not reported"
        );
        buffer.on_sacked(start + 1000, end);
        assert_eq!(buffer.memory(&held(start, end, end), PIECE), 6000 + 2 * OVERHEAD);
        buffer.on_sacked(start, start + 1);
        assert_eq!(buffer.memory(&held(start, end, end), PIECE), 6000 + 2 * OVERHEAD);
    }

    /// Linux 6.18: SO_SNDBUF was 46 080 bytes after the handshake, and 69 120 with BBR; with windows of 22, 42 and 82
    /// segments it grew to 101 376, 193 536 and 377 856 bytes.
    #[test]
    fn it_grows_with_the_window_while_the_program_waits() {
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.begin(1448, 3);
        assert_eq!(buffer.size, 69_120);
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.begin(1448, 2);
        assert_eq!(buffer.size, 46_080);
        let end = 1 + PIECE;
        buffer.on_write(&held(1, 1, end), FULL);
        assert!(!buffer.may_grow(), "the program does not wait");
        buffer.wait();
        assert!(!buffer.may_grow(), "nothing has happened");
        buffer.on_event();
        assert!(buffer.may_grow());
        for (window, size) in [(9, 46_080), (22, 101_376), (21, 101_376), (42, 193_536), (82, 377_856), (1000, 1 << 20)]
        {
            buffer.grow(window);
            assert_eq!(buffer.size, size);
        }
        assert!(!buffer.may_grow(), "the maximum");
        buffer.on_write(&held(1, 1, end), FULL);
        assert!(!buffer.waits);
    }

    /// Linux 6.18 over 150 ms, with a first window of 64 kB (SO_MEMINFO): half of it holds 22 segments. Ten have left when the program is
    /// held up, in five packets, and 22 wait: 51 328 bytes of 46 080.
    #[test]
    fn a_piece_is_filled_up_as_it_leaves() {
        let mut buffer = SendBuffer { size: 46_080, ..SendBuffer::new(46_080) };
        let piece = 22 * FULL;
        let of_window = |next, end| {
            let mut seq = held(1, next, end);
            seq.peer.max = 64_512;
            seq
        };
        let room = |buffer: &SendBuffer, next, end, goes_on| buffer.room_in_piece(&of_window(next, end), FULL, goes_on);
        assert_eq!((room(&buffer, 1, 1, false), buffer.room(&of_window(1, 1), FULL)), (piece, 2 * piece));
        let mut end = 1 + piece;
        buffer.on_write(&of_window(1, end), FULL);
        for packet in 1..=5 {
            let next = 1 + packet * 2 * FULL;
            buffer.on_sent(next);
            assert_eq!(room(&buffer, next, end, true), 2 * FULL);
            end += 2 * FULL;
            buffer.on_write(&of_window(next, end), FULL);
        }
        let full = of_window(1 + 10 * FULL, end);
        assert_eq!((buffer.memory(&full, piece), buffer.room_in_piece(&full, FULL, true)), (51_328, 0));
        // If all has left, only a block that has begun goes on.
        buffer.on_sent(end);
        assert_eq!([false, true].map(|goes_on| room(&buffer, end, end, goes_on)), [0, piece]);
    }

    #[test]
    fn a_packet_is_freed_with_its_last_segment() {
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.on_sent(u64::from(u32::MAX) - 999);
        buffer.go_on();
        buffer.on_sent(u64::from(u32::MAX) + 1001);
        let end = u64::from(u32::MAX) + 1001;
        let memory = |buffer: &mut SendBuffer, una| {
            buffer.on_ack(&held(una, end, end));
            buffer.memory(&held(una, end, end), PIECE)
        };
        assert_eq!(memory(&mut buffer, u64::from(u32::MAX) - 999), 2000 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end - 1), 1 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end), 0);
    }
}
