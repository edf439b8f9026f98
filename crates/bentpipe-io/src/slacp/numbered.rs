//! Values by sequence number, where most numbers of a range have one: an array from the lowest number on.

use std::collections::VecDeque;
use std::ops::Range;

/// A map from sequence numbers. Each step takes constant time, and memory is as long as the range of numbers.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    /// The number of the first slot, which is never empty.
    first: u64,
    slots: VecDeque<Option<T>>,
    /// Slots that are not empty.
    len: usize,
}

/// Fewer slots than these are not given back.
const MIN_SLOTS: usize = 1024;

impl<T> Numbered<T> {
    pub(super) fn new() -> Self {
        Numbered { first: 0, slots: VecDeque::new(), len: 0 }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The length of the range from the lowest number to `seq`.
    pub(super) fn span_to(&self, seq: u64) -> u64 {
        if self.slots.is_empty() { 1 } else { seq.saturating_sub(self.first) + 1 }
    }

    fn index(&self, seq: u64) -> Option<usize> {
        seq.checked_sub(self.first)?.try_into().ok()
    }

    /// Stores a value. Returns the one that it replaces.
    pub(super) fn insert(&mut self, seq: u64, value: T) -> Option<T> {
        if self.slots.is_empty() {
            self.first = seq;
        }
        while seq < self.first {
            self.first -= 1;
            self.slots.push_front(None);
        }
        let at = (seq - self.first) as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at, || None);
            self.slots.push_back(Some(value));
            self.len += 1;
            return None;
        }
        let before = self.slots[at].replace(value);
        self.len += usize::from(before.is_none());
        before
    }

    /// The value with the lowest number.
    pub(super) fn first(&self) -> Option<(u64, &T)> {
        Some((self.first, self.slots.front()?.as_ref()?))
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        let at = self.index(seq)?;
        self.slots.get_mut(at)?.as_mut()
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let at = self.index(seq)?;
        let value = self.slots.get_mut(at)?.take()?;
        self.len -= 1;
        self.trim();
        Some(value)
    }

    /// The values of a range of numbers, in order.
    pub(super) fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &T)> {
        let end = self.first + self.slots.len() as u64;
        (range.start.max(self.first)..range.end.min(end))
            .filter_map(|seq| Some((seq, self.slots[(seq - self.first) as usize].as_ref()?)))
    }

    /// All values, in order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.range(0..u64::MAX)
    }

    /// Removes the values for which `stays` is false, and passes them to `gone`.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u64, &T) -> bool, mut gone: impl FnMut(T)) {
        for (seq, slot) in (self.first..).zip(&mut self.slots) {
            if let Some(value) = slot.take_if(|value| !stays(seq, value)) {
                self.len -= 1;
                gone(value);
            }
        }
        self.trim();
    }

    /// The range begins with a value again, and gives back most of the memory that it no longer needs.
    fn trim(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        if self.slots.capacity() > MIN_SLOTS.max(8 * self.slots.len()) {
            self.slots.shrink_to(MIN_SLOTS.max(2 * self.slots.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memory_goes_back() {
        let mut numbered = Numbered::new();
        for seq in 0..100_000u64 {
            numbered.insert(seq, seq);
        }
        let mut gone = 0;
        numbered.retain(|seq, _| seq >= 99_990, |_| gone += 1);
        assert_eq!(gone, 99_990);
        assert_eq!((numbered.first(), numbered.iter().count()), (Some((99_990, &99_990)), 10));
        assert!(numbered.slots.capacity() <= 2 * MIN_SLOTS, "{}", numbered.slots.capacity());
    }

    proptest! {
        /// It does what a map does.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u8..5, 0u64..400), 1..300)) {
            let (mut numbered, mut map) = (Numbered::new(), BTreeMap::new());
            for (n, &(step, seq)) in steps.iter().enumerate() {
                match step {
                    0 | 1 => prop_assert_eq!(numbered.insert(1000 + seq, n), map.insert(1000 + seq, n)),
                    2 => prop_assert_eq!(numbered.remove(1000 + seq), map.remove(&(1000 + seq))),
                    3 => prop_assert_eq!(numbered.get_mut(1000 + seq), map.get_mut(&(1000 + seq))),
                    _ => {
                        let goes = |at: u64, value: usize| (at + value as u64 + seq).is_multiple_of(3);
                        let mut gone = Vec::new();
                        numbered.retain(|at, value| !goes(at, *value), |value| gone.push(value));
                        let expected = map.iter().filter(|(at, value)| goes(**at, **value));
                        prop_assert_eq!(gone, expected.map(|(_, value)| *value).collect::<Vec<_>>());
                        map.retain(|at, value| !goes(*at, *value));
                    }
                }
                prop_assert_eq!(numbered.len(), map.len());
                prop_assert_eq!(numbered.first(), map.first_key_value().map(|(at, value)| (*at, value)));
                let range = 1000 + seq..1000 + seq + 30;
                let there = map.range(range.clone()).map(|(at, value)| (*at, value));
                prop_assert_eq!(numbered.range(range).collect::<Vec<_>>(), there.collect::<Vec<_>>());
                prop_assert!(numbered.iter().map(|(at, _)| at).eq(map.keys().copied()));
                let span = map.first_key_value().map_or(1, |(first, _)| 1400 - first + 1);
                prop_assert_eq!(numbered.span_to(1400), span);
            }
        }
    }
}
