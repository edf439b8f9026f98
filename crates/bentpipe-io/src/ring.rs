//! A window of the bytes of a stream, addressed by their offset from the start.

use std::ops::Range;

/// A ring of bytes. Each offset has one place in it, where it overwrites the byte one lap earlier.
#[derive(Clone, Debug)]
pub struct Ring {
    bytes: Box<[u8]>,
}

impl Ring {
    /// Creates a ring for `capacity` bytes.
    ///
    /// # Panics
    /// Panics if `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring needs room");
        Ring { bytes: vec![0; capacity].into() }
    }

    /// The capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Changes the capacity. The bytes at `kept`, which must fit both the old and the new capacity, are preserved.
    ///
    /// # Panics
    /// Panics if `capacity` is 0, or less than the length of `kept`.
    pub fn resize(&mut self, capacity: usize, kept: Range<u64>) {
        assert!((kept.end - kept.start) as usize <= capacity, "`kept` fits");
        let mut other = Ring::new(capacity);
        let mut at = kept.start;
        for piece in self.slices(kept) {
            other.store(at, piece);
            at += piece.len() as u64;
        }
        *self = other;
    }

    /// Stores `data` at the stream's offset `at`. `data` must not be longer than the ring.
    pub fn store(&mut self, at: u64, data: &[u8]) {
        let (place, first) = self.place(at, data.len());
        self.bytes[place..place + first].copy_from_slice(&data[..first]);
        self.bytes[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// The bytes at these offsets, in two pieces. The second is empty if they do not wrap.
    pub fn slices(&self, span: Range<u64>) -> [&[u8]; 2] {
        let len = (span.end - span.start) as usize;
        let (place, first) = self.place(span.start, len);
        [&self.bytes[place..place + first], &self.bytes[..len - first]]
    }

    /// The index of an offset, and how many of `len` bytes from there come before the wrap.
    fn place(&self, at: u64, len: usize) -> (usize, usize) {
        debug_assert!(len <= self.bytes.len(), "at most one lap");
        let place = (at % self.bytes.len() as u64) as usize;
        (place, len.min(self.bytes.len() - place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_is_read(capacity in 1usize..50, at: u32, data in proptest::collection::vec(any::<u8>(), 0..50)) {
            let data = &data[..data.len().min(capacity)];
            let mut ring = Ring::new(capacity);
            let at = u64::from(at);
            ring.store(at, data);
            prop_assert_eq!(ring.slices(at..at + data.len() as u64).concat(), data);
        }

        #[test]
        fn what_is_kept_stays(capacity in 1usize..50, more in 0usize..50, at: u32, data in proptest::collection::vec(any::<u8>(), 0..50)) {
            let data = &data[..data.len().min(capacity)];
            let span = u64::from(at)..u64::from(at) + data.len() as u64;
            let mut ring = Ring::new(capacity);
            ring.store(span.start, data);
            ring.resize(data.len().max(1) + more, span.clone());
            prop_assert_eq!(ring.slices(span).concat(), data);
        }
    }
}
