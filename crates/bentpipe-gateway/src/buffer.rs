//! A queue of bytes that takes no memory while it is empty.
//!
//! A buffer that becomes full and empty again in each turn would have to grow each time, for which some allocators
//! (musl's, for example) request pages from the system and return them. So each thread keeps the memory of a few
//! emptied buffers for the next ones that are filled. Idle connections hold none of it.

use std::cell::RefCell;
use std::ops::RangeInclusive;

/// A byte queue whose front is a single slice.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

/// A buffer longer than this grows by at most this amount or an eighth, and keeps at most this many consumed bytes,
/// because it may hold half of a gateway's memory.
const LONG: usize = 1 << 20;

/// Sizes of memory that is reused: smaller memory is quickly grown again, and larger memory is rare.
const REUSED: RangeInclusive<usize> = 32 << 10..=128 << 10;
/// A buffer occupies at most this many times the memory that it needs, which matters if many buffers hold a few bytes
/// each.
const LARGER: usize = 8;
/// Number of spare memories, for a few buffers that are filled at a time.
const SPARES: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

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
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            if len > LONG {
                self.bytes.reserve_exact(bytes.len() + spare);
            } else {
                self.move_to_spare(len + bytes.len());
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Moves the content to spare memory with room for `needed` bytes, if there is some.
    fn move_to_spare(&mut self, needed: usize) {
        let fits = |spare: &mut Vec<u8>| (needed..=LARGER * needed).contains(&spare.capacity());
        if let Some(mut spare) = SPARE.with_borrow_mut(|spares| spares.pop_if(fits)) {
            spare.extend_from_slice(self.front());
            (self.bytes, self.start) = (spare, 0);
        }
    }

    pub(super) fn front(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn take(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.bytes.len(), "only what is there is taken");
        if self.is_empty() {
            self.start = 0;
            let mut bytes = std::mem::take(&mut self.bytes);
            if REUSED.contains(&bytes.capacity()) {
                bytes.clear();
                SPARE.with_borrow_mut(|spare| {
                    if spare.len() < SPARES {
                        spare.push(bytes)
                    }
                });
            }
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
        // At first twice as much is written as read, then equal amounts.
        for n in 0..16 * 64 {
            buffer.take(LONG / if n < 8 * 64 { 128 } else { 64 });
            buffer.push(&[0; LONG / 64]);
            assert!(buffer.memory() <= most(buffer.len()), "{} for {}", buffer.memory(), buffer.len());
        }
    }

    fn spare() -> usize {
        SPARE.with_borrow(|spare| {
            assert!(spare.iter().all(|bytes| bytes.is_empty() && REUSED.contains(&bytes.capacity())));
            spare.len()
        })
    }

    #[test]
    fn the_memory_of_few_buffers_is_used_again() {
        let filled = |len: usize| {
            let mut buffer = Buffer::default();
            buffer.push(&vec![7; len]);
            buffer
        };
        let len = *REUSED.start();
        let mut buffers: Vec<_> = (0..2 * SPARES).map(|_| filled(len)).collect();
        assert_eq!(spare(), 0);
        let memory = |buffers: &[Buffer]| buffers.iter().map(Buffer::memory).sum::<usize>();
        buffers.iter_mut().for_each(|buffer| buffer.take(len));
        assert_eq!((memory(&buffers), spare()), (0, SPARES), "an empty one has none");
        let few = len / LARGER - 1;
        buffers.iter_mut().for_each(|buffer| buffer.push(&vec![1; few]));
        assert_eq!((memory(&buffers), spare()), (2 * SPARES * few, SPARES), "few bytes take little");
        buffers.iter_mut().for_each(|buffer| buffer.push(&[1]));
        assert_eq!((memory(&buffers[..SPARES]), spare()), (SPARES * len, 0), "what is taken counts");
        assert!(memory(&buffers[SPARES..]) < SPARES * len);
        drop(buffers);
        // Too short, and too long.
        for len in [len / 2, 2 * REUSED.end()] {
            filled(len).take(len);
        }
        assert_eq!(spare(), 0);
    }

    proptest! {
        #[test]
        fn a_queue(steps in prop::collection::vec((any::<bool>(), (0usize..300, 0u32..10)), 1..100)) {
            let (mut buffer, mut model, mut next) = (Buffer::default(), VecDeque::new(), 0u8);
            for (push, (count, doublings)) in steps {
                // Some are as long as memory that is reused.
                let count = count << doublings.saturating_sub(1);
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
