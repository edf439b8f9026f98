//! The slots of frames, in chunks. A chunk of frames none of which has arrived, or none of which will, takes one word.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::{EMPTY, Slot, State};

/// Number of frames in a chunk.
pub(super) const CHUNK: u64 = 64;

type Slots = Box<[Slot; CHUNK as usize]>;

#[derive(Clone, Debug)]
enum Chunk {
    /// All frames are missing.
    Missing,
    /// No frame will arrive, and none has a follower.
    Gone,
    Each(Slots),
}

/// Slots by number, from a number on that only increases.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// Number of the first chunk.
    first: u64,
    chunks: VecDeque<Chunk>,
    /// The state of frames that will not arrive.
    gone: State,
    /// A chunk kept for reuse.
    spare: Option<Slots>,
}

/// A part of a range of slots.
pub(super) enum Piece<'a> {
    /// This many frames were missing and are now gone.
    Missing,
    Gone,
    Slot(&'a mut Slot),
}

impl Ring {
    pub(super) fn new(gone: State) -> Self {
        Ring { first: 0, chunks: VecDeque::new(), gone, spare: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// One past the number of the last slot.
    pub(super) fn end(&self) -> u64 {
        (self.first + self.chunks.len() as u64) * CHUNK
    }

    fn at(&self, seq: u64) -> Option<usize> {
        usize::try_from((seq / CHUNK).checked_sub(self.first)?).ok()
    }

    /// The slot of a frame; beyond the ends, that of a missing frame.
    pub(super) fn get(&self, seq: u64) -> Slot {
        match self.at(seq).and_then(|at| self.chunks.get(at)) {
            None | Some(Chunk::Missing) => EMPTY,
            Some(Chunk::Gone) => Slot { state: self.gone, ..EMPTY },
            Some(Chunk::Each(slots)) => slots[(seq % CHUNK) as usize],
        }
    }

    /// The slot of a frame that lies before [`Ring::end`].
    pub(super) fn get_mut(&mut self, seq: u64) -> &mut Slot {
        let at = self.at(seq).expect("it is not passed yet");
        if !matches!(self.chunks[at], Chunk::Each(_)) {
            self.fill(at);
        }
        match &mut self.chunks[at] {
            Chunk::Each(slots) => &mut slots[(seq % CHUNK) as usize],
            Chunk::Missing | Chunk::Gone => unreachable!("just filled"),
        }
    }

    /// Gives each frame of a chunk a slot.
    fn fill(&mut self, at: usize) {
        let state = if matches!(self.chunks[at], Chunk::Gone) { self.gone } else { State::Missing };
        let mut slots = self.spare.take().unwrap_or_else(|| Box::new([EMPTY; CHUNK as usize]));
        slots.fill(Slot { state, ..EMPTY });
        self.chunks[at] = Chunk::Each(slots);
    }

    /// The number of consecutive frames that are done, from `next` to the end of the first chunk.
    pub(super) fn done_from(&self, next: u64) -> u64 {
        let Some(Chunk::Each(slots)) = self.chunks.front() else { return 0 };
        slots[(next % CHUNK) as usize..].iter().take_while(|slot| slot.state == State::Done).count() as u64
    }

    /// Creates slots up to `seq`. The first slot is `next`'s, and slots below `floor` are gone.
    pub(super) fn reach(&mut self, next: u64, floor: u64, seq: u64) {
        if self.chunks.is_empty() {
            self.first = next / CHUNK;
        }
        while self.end() <= seq {
            let start = self.end();
            let chunk = if start + CHUNK <= floor { Chunk::Gone } else { Chunk::Missing };
            self.chunks.push_back(chunk);
            if (start + 1..start + CHUNK).contains(&floor) {
                for gone in start..floor {
                    self.get_mut(gone).state = self.gone;
                }
            }
        }
    }

    /// Gives up the missing frames from `from` to `end`, which lie before [`Ring::end`]. Passes the pieces to `heard`,
    /// with the number of their first frame and one past that of their last.
    pub(super) fn give_up(&mut self, from: u64, end: u64, mut heard: impl FnMut(u64, u64, Piece<'_>)) {
        let mut seq = from;
        while seq < end {
            let at = self.at(seq).expect("it is not passed yet");
            let until = ((seq / CHUNK + 1) * CHUNK).min(end);
            match &mut self.chunks[at] {
                Chunk::Gone => heard(seq, until, Piece::Gone),
                chunk @ Chunk::Missing if until - seq == CHUNK => {
                    *chunk = Chunk::Gone;
                    heard(seq, until, Piece::Missing);
                }
                _ => {
                    self.get_mut(seq);
                    let Chunk::Each(slots) = &mut self.chunks[at] else { unreachable!("just made") };
                    let span = (seq % CHUNK) as usize..((until - 1) % CHUNK + 1) as usize;
                    for (seq, slot) in (seq..until).zip(&mut slots[span]) {
                        heard(seq, seq + 1, Piece::Slot(slot));
                    }
                }
            }
            seq = until;
        }
    }

    /// Drops the first chunk if all its frames are gone. Returns true if it did.
    pub(super) fn pass_gone(&mut self) -> bool {
        let is_gone = matches!(self.chunks.front(), Some(Chunk::Gone));
        if is_gone {
            self.pass_first();
        }
        is_gone
    }

    /// Drops the first chunk.
    pub(super) fn pass_first(&mut self) {
        if let Some(Chunk::Each(slots)) = self.chunks.pop_front() {
            self.spare = Some(slots);
        }
        self.first += 1;
    }
}
