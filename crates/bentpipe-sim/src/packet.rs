//! What travels in virtual time.

use std::collections::VecDeque;

use bentpipe_engine::link::Wire;
use bentpipe_engine::tcp::Segment;

/// Bytes of an IPv4 header without options (RFC 791).
pub(crate) const IPV4_HEADER: u32 = 20;
/// Bytes of a TCP header without options (RFC 9293 §3.1).
pub(crate) const TCP_HEADER: u32 = 20;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram, the n-th of its flow.
    Udp(u64),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Number of the flow it belongs to.
    pub flow: u32,
    /// Whether it goes from the flow's `from` to its `to`.
    pub forward: bool,
    /// Bytes on the line.
    pub wire_len: u32,
    /// What it carries.
    pub body: Body,
}

impl Packet {
    /// Number of the endpoint it goes to: each flow has two, first that of `from`, then that of `to`.
    #[inline(always)]
    pub(crate) fn endpoint(&self) -> usize {
        2 * self.flow as usize + self.forward as usize
    }
}

/// A packet as a link holds it: where it goes, what it weighs, and where its contents are kept. Between its first and
/// its last hop nobody looks inside, so nothing larger is moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) slot: u32,
    pub(crate) to: u32,
    wire_len: u32,
}

impl Wire for Parcel {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        self.wire_len
    }
}

/// The contents of the packets on their way: as many slots as there ever were packets at once.
#[derive(Debug, Default)]
pub(crate) struct Store {
    packets: Vec<Packet>,
    /// Taken from the front, given back at the end: packets keep their order in memory, which the cache likes.
    free: VecDeque<u32>,
}

impl Store {
    /// Keeps a packet.
    #[inline(always)]
    pub(crate) fn put(&mut self, packet: Packet) -> Parcel {
        let (to, wire_len) = (packet.endpoint() as u32, packet.wire_len);
        let slot = match self.free.pop_front() {
            Some(slot) => {
                self.packets[slot as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as u32 - 1
            }
        };
        Parcel { slot, to, wire_len }
    }

    /// The packet of a parcel.
    #[inline(always)]
    pub(crate) fn get(&self, parcel: Parcel) -> &Packet {
        &self.packets[parcel.slot as usize]
    }

    /// Looks at the packet ahead of time: it is wanted soon, and has lain untouched for a round trip. The load costs
    /// nothing now and saves a wait for memory later.
    #[inline(always)]
    pub(crate) fn warm(&self, parcel: Parcel) {
        core::hint::black_box(self.packets[parcel.slot as usize].wire_len);
    }

    /// The packet has arrived or is lost.
    #[inline(always)]
    pub(crate) fn release(&mut self, parcel: Parcel) {
        self.free.push_back(parcel.slot);
    }
}

/// Bytes on the line of a segment with its headers.
#[inline]
pub(crate) fn wire_len(segment: &Segment, ns2_lengths: bool) -> u32 {
    let options = if ns2_lengths { 8 * segment.sack.len() as u32 } else { segment.options_len() };
    IPV4_HEADER + TCP_HEADER + options + segment.len as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_stay_small() {
        // Rings hold them by value: what they weigh is what a hop costs.
        assert_eq!(size_of::<Parcel>(), 12);
    }
}
