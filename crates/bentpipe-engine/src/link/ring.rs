//! A queue in a ring whose length is a power of two, so that a mask finds a place. Each packet enters and leaves one at
//! each link.

use alloc::vec::Vec;

/// A first-in first-out queue.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    /// The places: a power of two of them, or none.
    places: Vec<Option<T>>,
    /// Number of entries taken out so far, and put in so far.
    out: usize,
    put: usize,
}

impl<T> Ring<T> {
    pub(super) const fn new() -> Self {
        Ring { places: Vec::new(), out: 0, put: 0 }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.put.wrapping_sub(self.out)
    }

    /// The index of the `n`th entry ever put in.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        n & self.places.len().wrapping_sub(1)
    }

    /// The entry that was put in first.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&T> {
        self.places.get(self.place(self.out))?.as_ref()
    }

    #[inline(always)]
    pub(super) fn push_back(&mut self, entry: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.put);
        self.places[place] = Some(entry);
        self.put = self.put.wrapping_add(1);
    }

    /// Moves the entry that was put in last ahead of entries that must follow it, as `ahead(before, last)` decides.
    /// Returns true if it is now the first.
    #[inline]
    pub(super) fn settle(&mut self, ahead: impl Fn(&T, &T) -> bool) -> bool {
        let mut at = self.put.wrapping_sub(1);
        while at != self.out {
            let (here, before) = (self.place(at), self.place(at.wrapping_sub(1)));
            match (&self.places[before], &self.places[here]) {
                (Some(earlier), Some(last)) if ahead(earlier, last) => self.places.swap(before, here),
                _ => return false,
            }
            at = at.wrapping_sub(1);
        }
        true
    }

    /// Takes out the entry that was put in first.
    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        self.pop_front_if(|_| true)
    }

    /// Takes out the entry that was put in first, if `wanted` accepts it.
    #[inline(always)]
    pub(super) fn pop_front_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let place = self.place(self.out);
        let front = self.places.get_mut(place)?.take_if(|front| wanted(front))?;
        self.out = self.out.wrapping_add(1);
        Some(front)
    }

    /// Doubles the number of places, when all are in use.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let first = self.place(self.out);
        if !self.places.is_empty() {
            self.places.rotate_left(first);
        }
        (self.out, self.put) = (0, self.places.len());
        self.places.resize_with((2 * self.places.len()).max(16), || None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// A ring behaves like a deque.
        #[test]
        fn agrees_with_a_deque(puts in prop::collection::vec(0u8..5, 0..300)) {
            let (mut ring, mut deque) = (Ring::new(), VecDeque::new());
            for (n, put) in puts.into_iter().enumerate() {
                if put > 1 {
                    ring.push_back(n);
                    deque.push_back(n);
                } else {
                    prop_assert_eq!(ring.pop_front(), deque.pop_front());
                }
                prop_assert_eq!((ring.len(), ring.front()), (deque.len(), deque.front()));
            }
        }
    }
}
