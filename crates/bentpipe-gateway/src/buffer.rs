//! A queue of bytes that takes no memory while it is empty.

/// A queue of bytes whose front is one slice.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

/// A longer buffer grows by at most this or an eighth, and keeps at most this many consumed bytes: it may hold half of a gateway's memory.
const LONG: usize = 1 << 20;

/// What an empty buffer may keep for the next bytes.
const KEPT: usize = 0;

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        Buffer { bytes, start: 0 }
    }
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let len = self.len();
        let spare = (len / 8).max(LONG).min(len);
        if self.start > spare {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if self.bytes.capacity() - self.bytes.len() < bytes.len() && len > LONG {
            self.bytes.reserve_exact(bytes.len() + spare);
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn front(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn take(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.bytes.len(), "only what is there is taken");
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_buffer_takes_little_more_than_its_bytes() {
        let mut buffer = Buffer::default();
        let most = |len: usize| 5 * len / 4 + 3 * LONG;
        for _ in 0..8 * 64 {
            buffer.push(&[0; LONG / 64]);
            assert!(buffer.memory() <= most(buffer.len()), "{} for {}", buffer.memory(), buffer.len());
        }
        // Twice as much is written as read, then equal amounts.
        for n in 0..16 * 64 {
            buffer.take(LONG / if n < 8 * 64 { 128 } else { 64 });
            buffer.push(&[0; LONG / 64]);
            assert!(buffer.memory() <= most(buffer.len()), "{} for {}", buffer.memory(), buffer.len());
        }
    }

    proptest! {
        #[test]
        fn a_queue(steps in prop::collection::vec((any::<bool>(), 0usize..300), 1..100)) {
            let (mut buffer, mut model, mut next) = (Buffer::default(), VecDeque::new(), 0u8);
            for (push, count) in steps {
                if push {
                    let bytes: Vec<u8> = (0..count).map(|_| { next = next.wrapping_add(1); next }).collect();
                    buffer.push(&bytes);
                    model.extend(bytes);
                } else {
                    let count = count.min(model.len());
                    buffer.take(count);
                    model.drain(..count);
                }
                prop_assert_eq!(buffer.front(), model.make_contiguous());
                prop_assert!(buffer.bytes.capacity() == 0 || !buffer.is_empty());
            }
        }
    }
}
