//! The bytes of a packet, in memory that is reused.
//!
//! A link at full speed takes and releases thousands of packets of one length per second, and a report releases all
//! that it confirms at once. Some allocators, such as musl's, then keep returning pages to the system and requesting
//! them again. So each thread keeps some arrays of released packets for later ones. All links of a thread share them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use super::cost;

/// A packet's bytes, in an array that may be longer than the packet by up to [`SLACK`].
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    array: Arc<[u8]>,
    len: usize,
}

/// Maximum bytes of an array that a packet may leave unused. [`cost`] allows for them.
const SLACK: usize = 63;
/// Shorter packets are always allocated: their pages are not returned as often.
const SHORTEST: usize = 512;
/// Maximum bytes in spare arrays: what a report releases every 20 ms at 400 Mbit/s.
const MAX_SPARE: usize = 1 << 20;
/// Number of spare arrays that are tried for a packet, from the oldest on. A box thus writes packets to ascending
/// addresses, which takes 1 to 8 % less time than using the latest array first.
const TRIED: usize = 8;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { arrays: VecDeque::new(), bytes: 0 }) };
}

/// Arrays without a packet, the oldest first. Nothing else refers to them.
#[derive(Debug)]
struct Spare {
    arrays: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

impl Spare {
    fn take(&mut self, len: usize) -> Option<Arc<[u8]>> {
        let fits = |array: &Arc<[u8]>| (len..=len + SLACK).contains(&array.len());
        let place = self.arrays.iter().take(TRIED).position(fits)?;
        let array = self.arrays.swap_remove_front(place)?;
        self.bytes -= array.len();
        Some(array)
    }

    /// Keeps an array. The oldest ones make way for it, because packets may now have a different length.
    fn keep(&mut self, array: Arc<[u8]>) {
        self.bytes += array.len();
        self.arrays.push_back(array);
        while self.bytes > MAX_SPARE
            && let Some(oldest) = self.arrays.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }
}

impl Bytes {
    /// Drops this reference. Returns the memory of the packet that this frees; 0 while there is another reference.
    pub(super) fn release(mut self) -> u64 {
        if Arc::get_mut(&mut self.array).is_none() {
            return 0;
        }
        if self.array.len() >= SHORTEST {
            SPARE.with_borrow_mut(|spare| spare.keep(self.array));
        }
        cost(self.len)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        let len = bytes.len();
        let spare = if len >= SHORTEST { SPARE.with_borrow_mut(|spare| spare.take(len)) } else { None };
        let Some(mut array) = spare else { return Bytes { array: bytes.into(), len } };
        Arc::get_mut(&mut array).expect("nobody else refers to it")[..len].copy_from_slice(bytes);
        Bytes { array, len }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.array[..self.len]
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare() -> (usize, usize) {
        SPARE.with_borrow(|spare| {
            assert_eq!(spare.bytes, spare.arrays.iter().map(|array| array.len()).sum::<usize>());
            (spare.arrays.len(), spare.bytes)
        })
    }

    #[test]
    fn an_array_is_used_again_by_a_packet_of_about_its_length() {
        let first = Bytes::from(&[1; 1400][..]);
        let at = first.as_ptr();
        assert_eq!((first.release(), spare()), (cost(1400), (1, 1400)));
        for other in [1401, 1400 - SLACK - 1] {
            assert_ne!(Bytes::from(&vec![2; other][..]).as_ptr(), at);
        }
        let next = Bytes::from(&[3; 1400 - SLACK][..]);
        assert_eq!((next.as_ptr(), &*next, spare()), (at, &[3; 1400 - SLACK][..], (0, 0)));
        assert_eq!(next, Bytes::from(&[3; 1400 - SLACK][..]), "what is left of the longer packet is not seen");
        assert_eq!((next.release(), spare()), (cost(1400 - SLACK), (1, 1400)));
    }

    #[test]
    fn an_array_is_kept_after_its_last_reference() {
        let first = Bytes::from(&[1; 1400][..]);
        let second = first.clone();
        assert_eq!((first.release(), spare()), (0, (0, 0)));
        assert_eq!((second.release(), spare()), (cost(1400), (1, 1400)));
    }

    #[test]
    fn spare_memory_is_bounded_and_follows_the_length_of_packets() {
        for len in [600, 1400, SHORTEST - 1] {
            let packets: Vec<_> = (0..4000).map(|_| Bytes::from(&vec![0; len][..])).collect();
            let freed: u64 = packets.into_iter().map(Bytes::release).sum();
            assert_eq!(freed, 4000 * cost(len));
            let (count, bytes) = spare();
            // Short packets leave those of 1400 bytes in place.
            let len = if len < SHORTEST { 1400 } else { len };
            assert_eq!((count, bytes), (MAX_SPARE / len, MAX_SPARE / len * len));
        }
    }
}
