//! Joins packets that leave together into trains.
//!
//! A packet joins the last train of its flow if the kernel, splitting that train again, would produce the same packets:
//! there is no hole, its headers count up from the first packet's, and the packet before it was full and without PSH or
//! FIN. Trains leave in the order of their first packets, so each flow stays in order.
//!
//! Datagrams only join those of the same length. A forwarding host drops a whole train if its packets are longer than
//! the next MTU, and the datagram behind a QUIC path MTU probe must not be lost with it.

use std::io::IoSlice;
use std::sync::Arc;

use super::headers::{LAST, Part, Place, SPECIAL};
use super::{LONGEST, Packet, ROOM, Train};

/// Maximum number of open trains that a packet may join, and so of interleaved flows.
pub(super) const OPEN: usize = 16;

/// Maximum number of pieces of read trains in a new train.
const PIECES: u32 = 62;

/// Maximum number of packets in a UDP train (UDP_MAX_SEGMENTS before Linux 6.9).
pub(super) const DATAGRAMS: u16 = 64;

/// Consecutive packets of one read train.
#[derive(Debug)]
struct Piece {
    train: Arc<Train>,
    index: u16,
    count: u16,
    /// The next piece of the same new train.
    next: Option<u32>,
}

/// An unfinished train.
#[derive(Debug)]
struct Joined {
    first: u32,
    last: u32,
    pieces: u32,
    packets: u16,
    /// Payload size of each packet except the last.
    size: u16,
    payload: u32,
    /// The flags of the last packet.
    flags: u8,
    /// True if more packets can follow.
    is_open: bool,
}

/// Unfinished trains.
#[derive(Debug, Default)]
pub(super) struct Join {
    joined: Vec<Joined>,
    pieces: Vec<Piece>,
    /// The train of the last packet.
    recent: usize,
    /// True if the host accepts UDP trains.
    takes_udp: bool,
    head: Vec<u8>,
}

impl Join {
    pub(super) fn new(takes_udp: bool) -> Self {
        Join { takes_udp, ..Join::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    pub(super) fn put(&mut self, packet: Packet) {
        if let Some(joined) = self.joined.get_mut(self.recent) {
            let piece = &mut self.pieces[joined.last as usize];
            let is_next = Arc::ptr_eq(&piece.train, &packet.train) && packet.index == piece.index + piece.count;
            if is_next && joined.has_room(&packet) {
                piece.count += 1;
                return joined.add(&packet);
            }
        }
        let number = self.pieces.len() as u32;
        match self.last_of(&packet).filter(|at| self.goes_on(*at, &packet)) {
            Some(at) => {
                let joined = &mut self.joined[at];
                joined.add(&packet);
                self.pieces[joined.last as usize].next = Some(number);
                joined.last = number;
                joined.pieces += 1;
                self.recent = at;
            }
            None => {
                let mut joined = Joined::at(number, packet.train.headers.size);
                joined.add(&packet);
                joined.is_open &= match packet.train.headers.part {
                    Part::Tcp => packet.flags() & SPECIAL == 0,
                    Part::Udp => self.takes_udp,
                    Part::Alone => false,
                };
                self.recent = self.joined.len();
                self.joined.push(joined);
            }
        }
        self.pieces.push(Piece { train: packet.train, index: packet.index, count: 1, next: None });
    }

    /// The last open train of the packet's flow. After a packet of unknown flow, no packet joins an earlier train.
    fn last_of(&self, packet: &Packet) -> Option<usize> {
        let flow = packet.train.headers.flow?;
        let first = self.joined.len().saturating_sub(OPEN);
        for at in (first..self.joined.len()).rev() {
            if self.first_of(at).train.headers.flow? == flow {
                return Some(at);
            }
        }
        None
    }

    fn first_of(&self, at: usize) -> &Piece {
        &self.pieces[self.joined[at].first as usize]
    }

    fn goes_on(&self, at: usize, packet: &Packet) -> bool {
        let joined = &self.joined[at];
        let (ours, theirs) = (&*self.first_of(at).train, &*packet.train);
        if !joined.has_room(packet) || joined.pieces == PIECES || packet.flags() & SPECIAL != 0 {
            return false;
        }
        let size = u32::from(ours.headers.size);
        let index = self.first_of(at).index;
        let has_size =
            theirs.headers.size == ours.headers.size || theirs.count == 1 && theirs.headers.size < ours.headers.size;
        let from =
            Place { index: index.wrapping_add(joined.packets), payload: u32::from(index) * size + joined.payload };
        let to = Place { index: packet.index, payload: u32::from(packet.index) * u32::from(theirs.headers.size) };
        has_size && ours.headers.go_on(ours.whole(), from, &theirs.headers, theirs.whole(), to)
    }

    /// Passes each train in the kernel's form, with its number of packets. The buffers go to `spare`.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&[IoSlice<'_>], u16), mut spare: impl FnMut(Arc<Train>)) {
        for joined in self.joined.drain(..) {
            let first = &self.pieces[joined.first as usize];
            let (train, headers) = (&*first.train, &first.train.headers);
            let head = &mut self.head;
            head.clear();
            head.resize(ROOM, 0);
            let is_v6 = train.whole().first().is_some_and(|byte| byte >> 4 == 6);
            let kernel = headers.for_kernel(joined.packets, is_v6);
            kernel.encode(head).expect("there is room");
            let mut slices = [IoSlice::new(&[]); PIECES as usize + 1];
            let mut used = 1;
            if headers.part == Part::Alone {
                slices[1] = IoSlice::new(train.whole());
                used = 2;
            } else {
                headers.write(train.whole(), first.index, joined.payload as usize, joined.flags, head);
                let mut piece = Some(joined.first);
                while let Some(Piece { train, index, count, next }) = piece.map(|n| &self.pieces[n as usize]) {
                    slices[used] = IoSlice::new(train.payload_of(*index, *count));
                    used += 1;
                    piece = *next;
                }
            }
            slices[0] = IoSlice::new(head);
            each(&slices[..used], joined.packets);
        }
        self.pieces.drain(..).for_each(|piece| spare(piece.train));
    }
}

impl Joined {
    /// A train without packets, of which this will be the first piece.
    fn at(piece: u32, size: u16) -> Self {
        Joined { first: piece, last: piece, pieces: 1, packets: 0, size, payload: 0, flags: 0, is_open: true }
    }

    /// True if a packet of the same flow can be appended.
    fn has_room(&self, packet: &Packet) -> bool {
        let max = if packet.train.headers.part == Part::Udp { DATAGRAMS } else { u16::MAX };
        self.is_open
            && self.payload as usize + packet.len() <= LONGEST
            && self.packets < max
            && packet.train.headers.part.may_follow(self.size, packet.payload())
    }

    fn add(&mut self, packet: &Packet) {
        let payload = packet.payload();
        self.packets += 1;
        self.payload += u32::from(payload);
        self.flags = packet.flags();
        // The size of this train counts, not that of the train from which the packet was read: a shorter packet is the
        // last one.
        self.is_open &= payload == self.size && self.flags & LAST == 0;
    }
}
