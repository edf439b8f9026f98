//! Makes trains of packets that arrive one by one with full checksums.
//!
//! A train from the far gateway's host leaves the tunnel packet by packet. A packet joins the last train of its flow
//! under the rules of `join`, but only if its checksums are right: the kernel recomputes the checksums of a train, so
//! the receiver would no longer detect earlier damage. Payloads are copied once, to make them contiguous.

use super::headers::{Headers, LAST, Part, Place, SPECIAL};
use super::join::{DATAGRAMS, OPEN};
use super::{LONGEST, ROOM};

/// Maximum number of waiting trains and single packets; after that, they must be written.
const MAX: usize = 64;

/// An unfinished train, or a single packet.
#[derive(Debug)]
struct Gathered {
    /// From `ROOM` on: the first packet as received, then the payloads of the others.
    bytes: Vec<u8>,
    headers: Headers,
    /// Length of the first packet in bytes.
    first: usize,
    packets: u16,
    /// The flags of the last packet.
    flags: u8,
    /// True if more packets can follow.
    is_open: bool,
}

/// Unfinished trains.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    trains: Vec<Gathered>,
    /// Empty buffers, each at the size to which it has grown.
    spare: Vec<Vec<u8>>,
    /// True if the host accepts UDP trains.
    takes_udp: bool,
}

impl Gather {
    pub(super) fn new(takes_udp: bool) -> Self {
        Gather { takes_udp, ..Gather::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// True if the waiting trains must be written first.
    pub(super) fn is_full(&self) -> bool {
        self.trains.len() == MAX
    }

    pub(super) fn put(&mut self, packet: &[u8]) {
        let headers = Headers::of_whole(packet);
        if let Some(at) = self.last_of(&headers).filter(|at| self.trains[*at].takes(&headers, packet)) {
            return self.trains[at].add(&headers, packet);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(ROOM, 0);
        let flags = headers.flags(packet, 0);
        let is_open = match headers.part {
            Part::Tcp => flags & (SPECIAL | LAST) == 0,
            Part::Udp => self.takes_udp,
            Part::Alone => false,
        };
        bytes.extend_from_slice(packet);
        self.trains.push(Gathered { bytes, headers, first: packet.len(), packets: 1, flags, is_open });
    }

    /// The last train of a flow, as in `join`: nothing overtakes a packet of unknown flow.
    fn last_of(&self, headers: &Headers) -> Option<usize> {
        let flow = headers.flow?;
        for (at, train) in self.trains.iter().enumerate().rev().take(OPEN) {
            if train.headers.flow? == flow {
                return Some(at);
            }
        }
        None
    }

    /// Passes each train in the kernel's form, with its number of packets.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&[u8], u16)) {
        for mut train in self.trains.drain(..) {
            if train.packets > 1 {
                train.headers.make_train(&mut train.bytes, train.packets, train.flags);
            }
            each(&train.bytes, train.packets);
            train.bytes.clear();
            self.spare.push(train.bytes);
        }
    }
}

impl Gathered {
    fn takes(&self, headers: &Headers, packet: &[u8]) -> bool {
        let max = if headers.part == Part::Udp { DATAGRAMS } else { u16::MAX };
        let payload = self.bytes.len() - ROOM - usize::from(self.headers.length);
        let from = Place { index: self.packets, payload: payload as u32 };
        self.is_open
            && self.packets < max
            && headers.part.may_follow(self.headers.size, headers.size)
            && self.bytes.len() - ROOM + usize::from(headers.size) <= LONGEST
            && headers.flags(packet, 0) & SPECIAL == 0
            && self.headers.go_on(&self.bytes[ROOM..ROOM + self.first], from, headers, packet, Place::FIRST)
    }

    fn add(&mut self, headers: &Headers, packet: &[u8]) {
        self.bytes.extend_from_slice(&packet[headers.length.into()..]);
        self.packets += 1;
        self.flags = headers.flags(packet, 0);
        self.is_open = headers.size == self.headers.size && self.flags & LAST == 0;
    }
}
