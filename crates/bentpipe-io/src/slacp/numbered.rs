//! Values by sequence number, for ranges in which most numbers have a value: an array in chunks, from the lowest number
//! on.

use std::collections::VecDeque;
use std::ops::Range;

/// A map from sequence numbers. Each step takes constant time, and a step over a gap takes time in proportion to the
/// chunks of the gap. It needs memory for chunks with values, and a pointer for each chunk of the range.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    /// The number of the first chunk, which is never empty.
    first: u64,
    chunks: VecDeque<Option<Box<Chunk<T>>>>,
    /// Number of values.
    len: usize,
}

/// The values of [`CHUNK`] consecutive numbers.
#[derive(Debug)]
struct Chunk<T> {
    slots: [Option<T>; CHUNK as usize],
    /// One bit for each slot that is not empty.
    taken: u64,
}

const CHUNK: u64 = 64;

impl<T> Chunk<T> {
    fn new() -> Box<Self> {
        Box::new(Chunk { slots: [const { None }; CHUNK as usize], taken: 0 })
    }
}

impl<T> Numbered<T> {
    pub(super) fn new() -> Self {
        Numbered { first: 0, chunks: VecDeque::new(), len: 0 }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The length of the range from the lowest number to `seq`.
    pub(super) fn span_to(&self, seq: u64) -> u64 {
        self.first().map_or(1, |(first, _)| seq.saturating_sub(first) + 1)
    }

    fn chunk_mut(&mut self, seq: u64) -> Option<&mut Option<Box<Chunk<T>>>> {
        let at = (seq / CHUNK).checked_sub(self.first)?;
        self.chunks.get_mut(usize::try_from(at).ok()?)
    }

    /// Stores a value. Returns the one that it replaces.
    pub(super) fn insert(&mut self, seq: u64, value: T) -> Option<T> {
        if self.chunks.is_empty() {
            self.first = seq / CHUNK;
        }
        while seq / CHUNK < self.first {
            self.first -= 1;
            self.chunks.push_front(None);
        }
        let at = (seq / CHUNK - self.first) as usize;
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        let chunk = self.chunks[at].get_or_insert_with(Chunk::new);
        chunk.taken |= 1 << (seq % CHUNK);
        let before = chunk.slots[(seq % CHUNK) as usize].replace(value);
        self.len += usize::from(before.is_none());
        before
    }

    /// The value with the lowest number.
    pub(super) fn first(&self) -> Option<(u64, &T)> {
        let chunk = self.chunks.front()?.as_ref()?;
        let at = u64::from(chunk.taken.trailing_zeros());
        Some((self.first * CHUNK + at, chunk.slots[at as usize].as_ref()?))
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        self.chunk_mut(seq)?.as_mut()?.slots[(seq % CHUNK) as usize].as_mut()
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let place = self.chunk_mut(seq)?;
        let chunk = place.as_mut()?;
        let value = chunk.slots[(seq % CHUNK) as usize].take()?;
        chunk.taken &= !(1 << (seq % CHUNK));
        if chunk.taken == 0 {
            *place = None;
        }
        self.len -= 1;
        self.trim();
        Some(value)
    }

    /// The values of a range of numbers, in order.
    pub(super) fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &T)> {
        let end = (self.first + self.chunks.len() as u64) * CHUNK;
        let (start, end) = (range.start.max(self.first * CHUNK), range.end.min(end));
        let chunks = (start / CHUNK).saturating_sub(self.first) as usize..;
        let chunks = self.chunks.range(chunks.start.min(self.chunks.len())..);
        let numbered = (start / CHUNK..).zip(chunks).filter_map(|(at, chunk)| Some((at * CHUNK, chunk.as_ref()?)));
        let values = numbered.take_while(move |(first, _)| *first < end).flat_map(|(first, chunk)| {
            (first..).zip(&chunk.slots).filter_map(|(seq, slot)| Some((seq, slot.as_ref()?)))
        });
        values.filter(move |(seq, _)| (start..end).contains(seq))
    }

    /// All values, in order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.range(0..u64::MAX)
    }

    /// Removes the values for which `stays` returns false, and passes them to `gone`.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u64, &T) -> bool, mut gone: impl FnMut(T)) {
        for (at, place) in (self.first..).zip(&mut self.chunks) {
            let Some(chunk) = place else { continue };
            for (seq, slot) in (at * CHUNK..).zip(&mut chunk.slots) {
                if let Some(value) = slot.take_if(|value| !stays(seq, value)) {
                    chunk.taken &= !(1 << (seq % CHUNK));
                    self.len -= 1;
                    gone(value);
                }
            }
            if chunk.taken == 0 {
                *place = None;
            }
        }
        self.trim();
    }

    /// Makes the range begin with a value again.
    fn trim(&mut self) {
        while let Some(None) = self.chunks.front() {
            self.chunks.pop_front();
            self.first += 1;
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
        assert_eq!(numbered.chunks.len(), 1);
    }

    #[test]
    fn a_gap_takes_no_memory() {
        let mut numbered = Numbered::new();
        for seq in [5, 131_000, 70_000] {
            numbered.insert(seq, seq);
        }
        assert_eq!(numbered.chunks.iter().flatten().count(), 3);
        assert_eq!(numbered.range(6..131_000).collect::<Vec<_>>(), [(70_000, &70_000)]);
        numbered.remove(5);
        assert_eq!((numbered.first(), numbered.span_to(70_001)), (Some((70_000, &70_000)), 2));
    }

    proptest! {
        /// It behaves like a map.
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
