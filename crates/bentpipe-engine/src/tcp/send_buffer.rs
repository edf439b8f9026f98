//! A host's send buffer. Written data takes memory until the peer has acknowledged it (Linux: `sk_sndbuf`, tcp_wmem),
//! so the buffer limits the data in flight over a long path.
//!
//! Memory is counted as Linux counts it (`sk_wmem_queued`): the data, plus [`OVERHEAD`] for each packet in flight and
//! for each waiting piece. A program that has filled the buffer may write again once a third of it is free
//! (`sk_stream_is_writeable`). The buffer has its full size from the start; Linux's grows to it along with the
//! congestion window (`tcp_sndbuf_expand`).

use std::collections::VecDeque;

use super::pacing::MAX_TOGETHER;
use super::sequence::SequenceSpace;

/// Memory that a packet takes besides its data: the `sk_buff` and the space for headers. Measured on Linux 6.18 on
/// x86-64 (SO_MEMINFO).
const OVERHEAD: u64 = 832;
/// Waiting data is kept in pieces of this length.
const PIECE: u64 = MAX_TOGETHER;

/// A send buffer, and its packets in flight.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct SendBuffer {
    size: u64,
    /// True if the program has filled the buffer and has not written since.
    is_full: bool,
    /// The segment that leaves next belongs to the same packet as the last one.
    goes_on: bool,
    /// The low bits of the ends of packets in flight.
    packets: VecDeque<u32>,
}

impl SendBuffer {
    pub(in crate::tcp) const fn new(size: u64) -> Self {
        SendBuffer { size, is_full: false, goes_on: false, packets: VecDeque::new() }
    }

    fn memory(&self, seq: &SequenceSpace) -> u64 {
        let waiting = seq.data_end.saturating_sub(seq.snd_max).div_ceil(PIECE);
        seq.data_end.saturating_sub(seq.snd_una) + (waiting + self.packets.len() as u64) * OVERHEAD
    }

    /// Bytes that the program may write now. The last piece may overfill the buffer.
    pub(in crate::tcp) fn room(&self, seq: &SequenceSpace) -> u64 {
        let memory = self.memory(seq);
        if self.is_full && 3 * memory > 2 * self.size {
            return 0;
        }
        self.size.saturating_sub(memory).div_ceil(PIECE + OVERHEAD) * PIECE
    }

    /// True if the program has filled the buffer and has not written since.
    pub(in crate::tcp) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Records that data was written.
    pub(in crate::tcp) fn on_write(&mut self, seq: &SequenceSpace) {
        self.is_full = self.memory(seq) >= self.size;
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
        let mut buffer = SendBuffer::new(300_000);
        assert_eq!(buffer.room(&held(1, 1, 1)), 5 * PIECE, "the last piece may exceed it");
        let end = 1 + 5 * PIECE;
        buffer.on_write(&held(1, 1, end));
        assert!(buffer.is_full());
        (1..=5).for_each(|packet| buffer.on_sent(1 + packet * PIECE));
        for packet in 1..=5 {
            let held = held(1 + packet * PIECE, end, end);
            buffer.on_ack(&held);
            // Three packets of 65 kB are less than 200 000 bytes.
            assert_eq!(buffer.room(&held) > 0, packet >= 2, "{packet}");
            assert_eq!(buffer.is_full(), packet < 5, "{packet}");
        }
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
