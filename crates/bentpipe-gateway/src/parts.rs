//! Frames that are longer than the path's MTU are sent in parts.
//!
//! A frame fits the MTU when its packet is queued, but the MTU may be smaller by the time the frame is retransmitted.
//! The layer above keeps its frames unchanged, and their datagrams are cut here. New packets are shortened as soon as
//! the new length is known. Parts are needed until then, and for IPv6 packets of 1280 bytes, which must not be
//! shortened.
//!
//! A part consists of the number of the frame (2 bytes), its index and the number of parts (1 byte each), and its
//! payload. All parts except the last have the same length. If one part is lost, the whole frame is lost.

/// Length of the header of a part.
pub(crate) const PART_HEADER: usize = 4;
/// Maximum number of incomplete frames: the parts of a frame are sent one after the other, but paths may reorder them.
const WAITING: usize = 16;

/// The frame that is being sent in parts.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    frame: Vec<u8>,
    id: u16,
    len: usize,
    count: usize,
    next: usize,
}

impl Cutter {
    /// Takes a frame to be sent in parts of at most `max` bytes, including the header. Returns false if that would take
    /// too many parts.
    pub(crate) fn take(&mut self, frame: &[u8], max: usize) -> bool {
        let Some(room) = max.checked_sub(PART_HEADER).filter(|&room| room > 0) else { return false };
        let count = frame.len().div_ceil(room).max(1);
        if count > usize::from(u8::MAX) {
            return false;
        }
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        self.id = self.id.wrapping_add(1);
        (self.count, self.next, self.len) = (count, 0, frame.len().div_ceil(count));
        true
    }

    /// Writes the next part and returns its length; `None` if there is none.
    pub(crate) fn write(&mut self, out: &mut [u8]) -> Option<usize> {
        if self.next >= self.count {
            return None;
        }
        let bytes = &self.frame[self.next * self.len..((self.next + 1) * self.len).min(self.frame.len())];
        out[..2].copy_from_slice(&self.id.to_le_bytes());
        (out[2], out[3]) = (self.next as u8, self.count as u8);
        out[PART_HEADER..PART_HEADER + bytes.len()].copy_from_slice(bytes);
        self.next += 1;
        Some(PART_HEADER + bytes.len())
    }

    /// Drops the parts that are still to be sent.
    pub(crate) fn clear(&mut self) {
        self.next = self.count;
    }
}

#[derive(Debug, Default)]
struct Frame {
    id: u16,
    parts: Vec<Option<Vec<u8>>>,
}

/// Frames some of whose parts are missing.
#[derive(Debug)]
pub(crate) struct Joiner {
    frames: [Frame; WAITING],
    max_frame: usize,
}

impl Joiner {
    /// A joiner of frames of up to `max_frame` bytes, of which it holds 16.
    pub(crate) fn new(max_frame: usize) -> Self {
        Joiner { frames: Default::default(), max_frame }
    }

    /// Drops incomplete frames.
    pub(crate) fn clear(&mut self) {
        self.frames = Default::default();
    }

    /// Takes a part. Returns the frame if it is complete. Malformed parts are dropped.
    pub(crate) fn take(&mut self, part: &[u8]) -> Option<Vec<u8>> {
        let (&[low, high, index, count], bytes) = part.split_first_chunk()?;
        let (id, index, count) = (u16::from_le_bytes([low, high]), usize::from(index), usize::from(count));
        if index >= count || bytes.is_empty() {
            return None;
        }
        let frame = &mut self.frames[usize::from(id) % WAITING];
        if frame.id != id || frame.parts.len() != count {
            *frame = Frame { id, parts: vec![None; count] };
        }
        let held: usize = frame.parts.iter().flatten().map(Vec::len).sum();
        if held + bytes.len() > self.max_frame {
            *frame = Frame::default();
            return None;
        }
        frame.parts[index].get_or_insert_with(|| bytes.to_vec());
        if frame.parts.iter().any(Option::is_none) {
            return None;
        }
        Some(std::mem::take(&mut frame.parts).into_iter().flatten().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Parts may arrive in any order and more than once.
        #[test]
        fn frames_come_whole(len in 1usize..4000, max in 5usize..1400, swaps in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let frame: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut cutter = Cutter::default();
            prop_assume!(cutter.take(&frame, max));
            let (mut parts, mut out) = (Vec::new(), [0; 1500]);
            while let Some(length) = cutter.write(&mut out) {
                prop_assert!(length <= max);
                parts.push(out[..length].to_vec());
            }
            for (at, to) in swaps.iter().enumerate() {
                let count = parts.len();
                parts.swap(at % count, to.index(count));
            }
            parts.insert(0, parts[parts.len() / 2].clone());
            let mut joiner = Joiner::new(len + len / 2 + 1);
            let whole: Vec<_> = parts.iter().filter_map(|part| joiner.take(part)).collect();
            // A part repeated after its frame was complete begins another frame, which stays incomplete.
            prop_assert_eq!(&whole[0], &frame);
        }

        /// Whatever a peer sends, the effect is bounded and harmless.
        #[test]
        fn no_parts_do_harm(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..200)) {
            let mut joiner = Joiner::new(100);
            parts.iter().for_each(|part| { joiner.take(part); });
            let held = |frame: &Frame| frame.parts.iter().flatten().map(Vec::len).sum::<usize>();
            prop_assert!(joiner.frames.iter().all(|frame| held(frame) <= 100));
        }
    }
}
