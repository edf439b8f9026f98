//! The SACK blocks that the receiver reports (RFC 2018 §4), and the duplicates (RFC 2883).

use alloc::boxed::Box;

use crate::tcp::segment::{MAX_SACK_BLOCKS, SackBlocks};

/// Maximum number of blocks that may change between two ACKs: Linux's `TCP_SACK_BLOCKS_EXPECTED`.
const FRESH: usize = 2;

/// The blocks and duplicates to report.
#[derive(Clone, Debug, Default)]
struct Blocks {
    /// The blocks that changed last, newest first.
    recent: [(u64, u64); MAX_SACK_BLOCKS],
    /// A duplicate to report once.
    duplicate: Option<(u64, u64)>,
}

/// The state for reports in the next segments.
#[derive(Clone, Debug)]
pub(super) struct SackReport {
    /// Set by the first gap or duplicate, which many connections never see.
    blocks: Option<Box<Blocks>>,
    recent_len: u8,
    /// Maximum number of blocks per segment; 0 without SACK.
    max_blocks: u8,
    reports_duplicates: bool,
    /// True if there is nothing to report. Tested for every segment.
    is_empty: bool,
}

impl SackReport {
    pub(super) const fn new() -> Self {
        SackReport { blocks: None, recent_len: 0, max_blocks: 0, reports_duplicates: false, is_empty: true }
    }

    fn duplicate(&self) -> Option<(u64, u64)> {
        self.blocks.as_ref()?.duplicate
    }

    /// The blocks that changed last, newest first.
    fn recent(&self) -> &[(u64, u64)] {
        self.blocks.as_ref().map_or(&[], |blocks| &blocks.recent[..self.recent_len as usize])
    }

    /// Sets what the handshake has agreed on: at most `max_blocks` blocks per segment; `dsack`: duplicates are
    /// reported.
    pub(super) fn negotiated(&mut self, max_blocks: usize, dsack: bool) {
        self.max_blocks = max_blocks.min(MAX_SACK_BLOCKS) as u8;
        self.reports_duplicates = dsack && max_blocks > 1;
    }

    #[inline(always)]
    pub(super) fn reports_duplicates(&self) -> bool {
        self.reports_duplicates
    }

    /// Reports `start..end` as a duplicate in the next segment.
    pub(super) fn set_duplicate(&mut self, start: u64, end: u64) {
        self.blocks.get_or_insert_default().duplicate = Some((start, end));
        self.is_empty = false;
    }

    /// True if there is nothing to report.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The number of blocks that the next segment carries if it has room for all.
    #[inline(always)]
    pub(super) fn due(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let duplicates = self.reports_duplicates && self.duplicate().is_some();
        (self.recent_len + duplicates as u8).min(self.max_blocks) as usize
    }

    /// The blocks of a segment that acknowledges `rcv_nxt`, at most `max`: a D-SACK first, then the newest.
    pub(super) fn take_blocks(&mut self, rcv_nxt: u64, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        let duplicate = self.blocks.as_mut().and_then(|blocks| blocks.duplicate.take());
        self.is_empty = self.recent_len == 0;
        let max = max.min(self.max_blocks as usize);
        if max == 0 {
            return blocks;
        }
        if let Some((start, end)) = duplicate.filter(|_| self.reports_duplicates) {
            blocks.push(rcv_nxt, start, end);
        }
        let room = max - blocks.len();
        for &(start, end) in self.recent().iter().take(room) {
            blocks.push(rcv_nxt, start, end);
        }
        blocks
    }

    /// True if the data `from..end` starts a new block while two others are not yet reported: it extends neither of the
    /// two blocks that changed last. An ACK has room for three blocks beside timestamps, and may be lost.
    pub(super) fn crowds_out(&self, from: u64, end: u64) -> bool {
        let grows = |&(start, stop): &(u64, u64)| from <= stop && start <= end;
        self.recent().len() >= FRESH && !self.recent()[..FRESH].iter().any(grows)
    }

    //= RFC 2018 §4: "The first SACK block [...] MUST specify the contiguous block of data containing the segment which
    //= triggered this ACK" and the others come "by repeating the most recently reported SACK blocks"
    /// Records that `block` has grown by the last segment.
    pub(super) fn remember(&mut self, block: (u64, u64)) {
        if self.max_blocks == 0 {
            return;
        }
        let mut kept = 0;
        let mut recent = [(0, 0); MAX_SACK_BLOCKS];
        recent[0] = block;
        for &old in self.recent() {
            let covered = old.0 >= block.0 && old.1 <= block.1;
            if !covered && kept + 1 < self.max_blocks as usize {
                kept += 1;
                recent[kept] = old;
            }
        }
        self.blocks.get_or_insert_default().recent = recent;
        self.recent_len = kept as u8 + 1;
        self.is_empty = false;
    }

    /// Forgets the blocks below `rcv_nxt`.
    pub(super) fn advance(&mut self, rcv_nxt: u64) {
        let Some(Blocks { recent, duplicate }) = self.blocks.as_deref_mut() else { return };
        let mut kept = 0;
        for i in 0..self.recent_len as usize {
            if recent[i].0 > rcv_nxt {
                recent[kept] = recent[i];
                kept += 1;
            }
        }
        self.recent_len = kept as u8;
        self.is_empty = kept == 0 && duplicate.is_none();
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.recent_len = 0;
        self.is_empty = self.duplicate().is_none();
    }
}
