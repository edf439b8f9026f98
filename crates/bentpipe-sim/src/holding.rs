//! Memory of the packets at an end of a gateway's tunnel, counted and limited as in the gateway's link
//! (`bentpipe_io::LinkEndpoint`).
//!
//! Packets that the link endpoint keeps only for repair frames are not counted, neither here nor at the far end: they
//! are dropped as soon as other packets need the memory.

use std::collections::BTreeMap;

use bentpipe_engine::gateway::{packet_memory, queue_room};
use bentpipe_engine::slacp::{End, Frame};

/// An end's packets, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    /// Packets for the far end.
    given: u64,
    /// Packets from the far end that wait for earlier ones, by channel and number; and their total.
    arrived: BTreeMap<(u8, u64), u64>,
    waiting: u64,
    /// The limit for all packets.
    room: u64,
}

impl Holding {
    pub(crate) fn new(room: u64) -> Self {
        Holding { given: 0, arrived: BTreeMap::new(), waiting: 0, room }
    }

    pub(crate) fn set_room(&mut self, room: u64) {
        self.room = room;
    }

    /// Memory of all packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.given + self.waiting
    }

    /// Memory of packets for the far end.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    pub(super) fn give(&mut self, len: u32) {
        self.given += packet_memory(len.into());
    }

    pub(super) fn release(&mut self, len: u32) {
        self.given -= packet_memory(len.into());
    }

    pub(super) fn arrive(&mut self, channel: u8, seq: u64, len: u32) {
        let memory = packet_memory(len.into());
        self.arrived.insert((channel, seq), memory);
        self.waiting += memory;
    }

    pub(super) fn deliver(&mut self, channel: u8, seq: u64) {
        self.waiting -= self.arrived.remove(&(channel, seq)).unwrap_or(0);
    }

    /// True if a frame may be accepted. The packet for which all others wait is always accepted.
    pub(super) fn has_room(&self, frame: &Frame, end: &End) -> bool {
        let fits = |len: u32| self.bytes() + packet_memory(len.into()) <= self.room;
        match *frame {
            Frame::Data { channel, seq, len, .. } => fits(len) || (end.near().packet)(channel) == Some(seq),
            Frame::Repair { len, .. } => fits(len),
            Frame::Sync { .. } | Frame::Report(_) => true,
        }
    }

    /// Limits a queue to the memory available for the next packet, which has at most `max_packet` bytes.
    pub(super) fn limit_queue(&self, end: &mut End, channel: u8, is_default: bool, max_packet: u32) {
        let free = queue_room(self.room, self.given, is_default);
        let is_plenty = free >= max_packet.into();
        let bytes = if is_plenty { u64::MAX } else { end.waiting_bytes(channel) + free };
        end.set_room(channel, bytes);
    }
}
