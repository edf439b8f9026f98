//! A host's send buffer. Written data takes memory until the peer has acknowledged it (Linux: `sk_sndbuf`, tcp_wmem),
//! so the buffer limits the data in flight over a long path.
//!
//! Memory is counted as Linux counts it (`sk_wmem_queued`): the data, plus [`OVERHEAD`] for each packet in flight and
//! for each waiting piece. A program that has filled the buffer may write again once a third of it is free
//! (`sk_stream_is_writeable`). The buffer begins with room for ten segments twice over, and grows with the congestion window while a program
//! waits that could fill it (`tcp_sndbuf_expand`).

use std::collections::VecDeque;

use super::pacing::MAX_TOGETHER;
use super::sequence::SequenceSpace;

/// Memory that a packet takes besides its data: the `sk_buff` and the space for headers. Measured on Linux 6.18 on
/// x86-64 (SO_MEMINFO).
const OVERHEAD: u64 = 832;
/// Waiting data is kept in pieces of this length.
const PIECE: u64 = MAX_TOGETHER;

/// Memory that the buffer reckons with for the headers and the administration of a segment that has a block of its own; blocks are powers
/// of two (`tcp_sndbuf_expand`: MAX_TCP_HEADER and the `skb_shared_info`). Linux 6.18 begins with 46 080 bytes on x86-64, and with BBR with
/// 69 120 (SO_SNDBUF), which are 20 and 30 times 2304.
const BLOCK_HEADERS: u64 = 576;
/// The `sk_buff` of such a segment.
const SK_BUFF: u64 = 256;
/// The size before the handshake is over (the second value of tcp_wmem).
const BEFORE: u64 = 16_384;
/// Fewest segments for which there is room: the initial window.
const MIN_SEGMENTS: u64 = 10;

/// A send buffer, and its packets in flight.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct SendBuffer {
    size: u64,
    max: u64,
    /// Memory for a segment of the congestion window.
    per_segment: u64,
    /// True if the program has filled the buffer and has not written since.
    is_full: bool,
    /// An ACK has arrived since the program wrote: only then does Linux look at the size (`tcp_check_space`).
    has_heard: bool,
    /// The segment that leaves next belongs to the same packet as the last one.
    goes_on: bool,
    /// The low bits of the ends of packets in flight.
    packets: VecDeque<u32>,
}

impl SendBuffer {
    /// A buffer that grows to `max`.
    pub(in crate::tcp) const fn new(max: u64) -> Self {
        let size = if max < BEFORE { max } else { BEFORE };
        SendBuffer {
            size,
            max,
            per_segment: 0,
            is_full: false,
            has_heard: false,
            goes_on: false,
            packets: VecDeque::new(),
        }
    }

    /// Begins with segments of `mss` bytes, and room for `windows` congestion windows.
    pub(in crate::tcp) fn begin(&mut self, mss: u16, windows: u64) {
        self.per_segment = windows * ((u64::from(mss) + BLOCK_HEADERS).next_power_of_two() + SK_BUFF);
        self.size = self.grown(0);
    }

    /// The size that goes with a congestion window of so many segments: the buffer never shrinks.
    fn grown(&self, segments: u64) -> u64 {
        self.size.max(self.max.min(segments.max(MIN_SEGMENTS) * self.per_segment))
    }

    fn memory(&self, seq: &SequenceSpace) -> u64 {
        let waiting = seq.data_end.saturating_sub(seq.snd_max).div_ceil(PIECE);
        seq.data_end.saturating_sub(seq.snd_una) + (waiting + self.packets.len() as u64) * OVERHEAD
    }

    /// Bytes that the program may write now. The last piece may overfill the buffer. `idle`: the congestion window in segments, if it is not
    /// full; a buffer for which the program waits then grows.
    pub(in crate::tcp) fn room(&self, seq: &SequenceSpace, idle: Option<u64>) -> u64 {
        let (memory, size) = (self.memory(seq), self.sized(idle));
        if self.is_full && 3 * memory > 2 * size {
            return 0;
        }
        size.saturating_sub(memory).div_ceil(PIECE + OVERHEAD) * PIECE
    }

    fn sized(&self, idle: Option<u64>) -> u64 {
        idle.filter(|_| self.is_full && self.has_heard).map_or(self.size, |segments| self.grown(segments))
    }

    /// Called before data is written, with `idle` as for [`room`](Self::room).
    pub(in crate::tcp) fn before_write(&mut self, idle: Option<u64>) {
        self.size = self.sized(idle);
    }

    /// True if the program has filled the buffer and has not written since.
    pub(in crate::tcp) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Records that data was written.
    pub(in crate::tcp) fn on_write(&mut self, seq: &SequenceSpace) {
        self.is_full = self.memory(seq) >= self.size;
        self.has_heard = false;
    }

    /// Records that the next segment belongs to the same packet as the one before it.
    pub(in crate::tcp) fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// Records that a segment of new data leaves; it ends at `end`.
    pub(in crate::tcp) fn on_sent(&mut self, end: u64) {
        match self.packets.back_mut() {
            Some(last) if core::mem::take(&mut self.goes_on) => *last = end as u32,
            _ => self.packets.push_back(end as u32),
        }
    }

    /// Frees the memory of data that is acknowledged.
    pub(in crate::tcp) fn on_ack(&mut self, seq: &SequenceSpace) {
        // No window is as long as half of the number space.
        while self.packets.front().is_some_and(|&end| (seq.snd_una as u32).wrapping_sub(end) as i32 >= 0) {
            self.packets.pop_front();
        }
        self.has_heard = true;
        // If the buffer ran empty, the program has nothing more to write.
        self.is_full &= self.memory(seq) > 0;
    }

    /// Heap memory, bytes.
    pub(in crate::tcp) fn heap(&self) -> usize {
        self.packets.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence space with bytes from `una` on unacknowledged, from `next` on never sent, and up to `end` written.
    fn held(una: u64, next: u64, end: u64) -> SequenceSpace {
        let mut seq = SequenceSpace::new(next, 0);
        (seq.snd_una, seq.data_end) = (una, end);
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
        assert_eq!(buffer.memory(&held(una, next, next + 1_220_664)), 2_429_432);
    }

    #[test]
    fn a_program_waits_until_a_third_is_free() {
        let mut buffer = SendBuffer { size: 300_000, ..SendBuffer::new(300_000) };
        assert_eq!(buffer.room(&held(1, 1, 1), None), 5 * PIECE, "the last piece may exceed it");
        let end = 1 + 5 * PIECE;
        buffer.on_write(&held(1, 1, end));
        assert!(buffer.is_full());
        (1..=5).for_each(|packet| buffer.on_sent(1 + packet * PIECE));
        for packet in 1..=5 {
            let held = held(1 + packet * PIECE, end, end);
            buffer.on_ack(&held);
            // Three packets of 65 kB are less than 200 000 bytes.
            assert_eq!(buffer.room(&held, None) > 0, packet >= 2, "{packet}");
            assert_eq!(buffer.is_full(), packet < 5, "{packet}");
        }
    }

    /// Linux 6.18: SO_SNDBUF after a handshake with an MSS of 1460 bytes was 46 080 bytes, and 69 120 with BBR.
    #[test]
    fn it_grows_with_the_window_while_the_program_waits() {
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.begin(1460, 3);
        assert_eq!(buffer.size, 69_120);
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.begin(1460, 2);
        assert_eq!(buffer.size, 46_080);
        let end = 1 + PIECE;
        buffer.on_write(&held(1, 1, end));
        assert_eq!(buffer.room(&held(1, 1, end), Some(40)), 0, "no ACK has come");
        buffer.on_ack(&held(1, 1, end));
        assert_eq!(buffer.room(&held(1, 1, end), None), 0, "the window is full");
        assert_eq!(buffer.room(&held(1, 1, end), Some(10)), 0, "and that is all that goes with it");
        // 40 segments of 2304 bytes, twice: a third of 184 320 bytes is free.
        assert_eq!(buffer.room(&held(1, 1, end), Some(40)), 2 * PIECE);
        buffer.before_write(Some(40));
        assert_eq!(buffer.size, 184_320);
        buffer.on_write(&held(1, 1, 1 + 3 * PIECE));
        buffer.on_ack(&held(1, 1, 1 + 3 * PIECE));
        buffer.before_write(Some(1000));
        assert_eq!(buffer.size, 1 << 20);
        buffer.before_write(Some(10));
        assert_eq!(buffer.size, 1 << 20, "it does not shrink");
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
            buffer.memory(&held(una, end, end))
        };
        assert_eq!(memory(&mut buffer, u64::from(u32::MAX) - 999), 2000 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end - 1), 1 + OVERHEAD);
        assert_eq!(memory(&mut buffer, end), 0);
    }
}
