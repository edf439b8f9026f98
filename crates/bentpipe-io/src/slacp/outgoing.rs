//! The bytes that an end sends.

use std::collections::VecDeque;

use bentpipe_engine::slacp::Fec;
use bentpipe_engine::slots::Slots;

use super::{Bytes, Held, cost, erasure};

/// Packets by handle, from [`Given::keep`] until the machine releases them.
#[derive(Debug, Default)]
pub(super) struct Given(Slots<Bytes>);

impl Given {
    pub(super) fn keep(&mut self, packet: Bytes) -> u32 {
        self.0.keep(packet)
    }

    pub(super) fn get(&self, handle: u32) -> &Bytes {
        self.0.get(handle).expect("the machine names only unreleased handles")
    }

    /// Drops a packet. Returns the memory that this frees; 0 while repair frames may still protect it.
    pub(super) fn release(&mut self, handle: u32) -> u64 {
        let packet = self.0.take(handle);
        debug_assert!(packet.is_some(), "released once");
        packet.map_or(0, Bytes::release)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A channel's packets that repair frames may still protect; empty without an erasure code.
#[derive(Debug)]
pub(super) struct Outgoing {
    fec: Option<Fec>,
    first: u64,
    packets: VecDeque<Held>,
    /// Repair symbols of the block that starts with this packet.
    symbols: (u64, Vec<Vec<u8>>),
}

impl Outgoing {
    pub(super) fn new(fec: Option<Fec>) -> Self {
        Outgoing { fec, first: 0, packets: VecDeque::new(), symbols: (0, Vec::new()) }
    }

    /// Called when a data frame is sent.
    pub(super) fn on_sent(&mut self, seq: u64, behind: u32, bytes: &Bytes) {
        // Any other number is a retransmission.
        if self.fec.is_some() && seq == self.first + self.packets.len() as u64 {
            self.packets.push_back(Held { bytes: bytes.clone(), behind: behind as u16 });
        }
    }

    /// Symbol `index` of a block, of `len` bytes.
    pub(super) fn symbol(&mut self, first: u64, count: u8, index: u8, len: u32) -> Option<&Vec<u8>> {
        let index = usize::from(index);
        if self.symbols.0 != first || self.symbols.1.len() <= index {
            let at = first.checked_sub(self.first)? as usize;
            let block = at..at + usize::from(count);
            if self.packets.len() < block.end {
                return None;
            }
            // As many as the machine may request: computing them together costs little more than one.
            let max = (self.fec?.max_overhead * f64::from(count)) as usize;
            let repairs = max.min(usize::from(Fec::MAX_REPAIRS)).max(index + 1);
            self.symbols = (first, erasure::encode(self.packets.range(block), len as usize, repairs));
        }
        self.symbols.1.get(index)
    }

    /// Forgets the packets below this number, which are no longer protected. Returns the memory that this frees.
    pub(super) fn forget(&mut self, below: u64) -> u64 {
        let mut bytes = 0;
        while self.first < below
            && let Some(packet) = self.packets.pop_front()
        {
            self.first += 1;
            bytes += packet.bytes.release();
        }
        if self.symbols.0 < below {
            self.symbols.1.clear();
        }
        bytes
    }

    /// Number of stored packets and symbols.
    pub(super) fn len(&self) -> usize {
        self.packets.len() + self.symbols.1.len()
    }

    /// Memory of the symbols, bytes.
    pub(super) fn symbol_bytes(&self) -> u64 {
        // All have the same length.
        self.symbols.1.first().map_or(0, |symbol| self.symbols.1.len() as u64 * cost(symbol.len()))
    }
}
