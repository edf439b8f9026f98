//! The memory of one end: what it stores, and the limit.

use bentpipe_engine::compression::Headers;
use bentpipe_engine::gateway::queue_room;
use bentpipe_engine::slacp::Frame;

use super::incoming::{self, Incoming};
use super::outgoing::Outgoing;
use super::{LinkEndpoint, cost};

impl LinkEndpoint {
    /// Number of stored packets and symbols.
    pub fn held(&self) -> usize {
        let outgoing: usize = self.outgoing.iter().map(Outgoing::len).sum();
        self.given.len() + outgoing + self.incoming.iter().map(Incoming::len).sum::<usize>()
    }

    /// Memory of all stored packets and symbols, bytes.
    pub fn held_bytes(&self) -> u64 {
        let symbols: u64 = self.outgoing.iter().map(Outgoing::symbol_bytes).sum();
        self.given_bytes + symbols + self.incoming.iter().map(Incoming::bytes).sum::<u64>()
    }

    /// Memory of all packets except those kept only for repair frames, which are dropped as soon as
    /// [`LinkEndpoint::set_room`] leaves less.
    pub fn needed_bytes(&self) -> u64 {
        self.held_bytes() - self.incoming.iter().map(Incoming::kept_bytes).sum::<u64>()
    }

    /// Memory in bytes of the packets for the far end that it has not confirmed.
    pub fn given_bytes(&self) -> u64 {
        self.given_bytes
    }

    /// Memory in bytes of the flow contexts of header compression. [`LinkEndpoint::held_bytes`] does not include it.
    pub fn context_bytes(&self) -> u64 {
        self.headers.as_ref().map_or(0, Headers::memory)
    }

    /// Limits the memory of packets and symbols to `bytes`. If there is no room:
    ///
    /// - Packets kept for repair frames are dropped first and at once, the oldest first, and repair frames for them are
    ///   no longer accepted. The search for them is limited: if a thousand others lie before them, they are found at
    ///   the next call.
    /// - A packet given to [`LinkEndpoint::send`] replaces a waiting one, as when the queue is full, or is dropped.
    ///   Packets for the far end may take at most half of the limit, and five eighths in channels other than the
    ///   default one, so that the rest is left for packets from the far end.
    /// - A frame from the far end is refused and will be repeated, unless it has the packet that all others wait for.
    ///   So the far end should repeat the oldest first (`ChannelConfig::resends_oldest_first`): a refused frame is not
    ///   reported.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
        let excess = self.held_bytes().saturating_sub(bytes);
        incoming::spare(&mut self.incoming, excess);
    }

    /// Gives a queue as much room for the next packet as the memory limit leaves.
    pub(super) fn limit_queue(&mut self, channel: u8) {
        let free = queue_room(self.room, self.given_bytes, channel == self.default_channel);
        let is_plenty = free >= self.max_packet as u64;
        self.end.set_room(channel, if is_plenty { u64::MAX } else { self.end.waiting_bytes(channel) + free });
    }

    /// True if a frame of `len` bytes may be kept.
    pub(super) fn has_room(&mut self, frame: &Frame, len: usize) -> bool {
        if let Frame::Data { channel, seq, .. } = *frame
            && !self.incoming.get_mut(usize::from(channel)).is_some_and(|incoming| incoming.reaches(seq))
        {
            return false;
        }
        if self.held_bytes() + cost(len) <= self.room {
            return true;
        }
        let excess = self.held_bytes() + cost(len) - self.room;
        incoming::spare(&mut self.incoming, excess);
        match *frame {
            _ if self.held_bytes() + cost(len) <= self.room => true,
            Frame::Data { channel, seq, .. } => (self.end.near().packet)(channel) == Some(seq),
            Frame::Repair { .. } => false,
            Frame::Sync { .. } | Frame::Report(_) => true,
        }
    }
}
