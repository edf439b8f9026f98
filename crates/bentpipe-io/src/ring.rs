//! The bytes of a stream, as many as a window: addressed by their offset from the start.

use std::ops::Range;

/// A ring of bytes. An offset has one place in it; what was there a lap before is overwritten.
#[derive(Clone, Debug)]
pub struct Ring {
    bytes: Box<[u8]>,
}

impl Ring {
    /// A ring for `capacity` bytes.
    ///
    /// # Panics
    /// If `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring needs room");
        Ring { bytes: vec![0; capacity].into() }
    }

    /// How many bytes there is room for.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Room for `capacity` bytes from now on; what lies at `kept`, which fits the old and the new room, stays.
    ///
    /// # Panics
    /// If `capacity` is 0 or `kept` longer.
    pub fn resize(&mut self, capacity: usize, kept: Range<u64>) {
        assert!((kept.end - kept.start) as usize <= capacity, "what is kept fits");
        let mut other = Ring::new(capacity);
        let mut at = kept.start;
        for piece in self.slices(kept) {
            other.store(at, piece);
            at += piece.len() as u64;
        }
        *self = other;
    }

    /// Stores `data` at the stream's offset `at`. It must not be longer than the ring.
    pub fn store(&mut self, at: u64, data: &[u8]) {
        let (place, first) = self.place(at, data.len());
        self.bytes[place..place + first].copy_from_slice(&data[..first]);
        self.bytes[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// The bytes at these offsets, in two pieces, of which the second is empty where they do not wrap.
    pub fn slices(&self, span: Range<u64>) -> [&[u8]; 2] {
        let len = (span.end - span.start) as usize;
        let (place, first) = self.place(span.start, len);
        [&self.bytes[place..place + first], &self.bytes[..len - first]]
    }

    /// Where an offset lies, and how many of `len` bytes from there on come before the wrap.
    fn place(&self, at: u64, len: usize) -> (usize, usize) {
        debug_assert!(len <= self.bytes.len(), "no more than a lap");
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
