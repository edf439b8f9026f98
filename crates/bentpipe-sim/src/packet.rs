//! Packets in virtual time.

use bentpipe_engine::link::Wire;
use bentpipe_engine::network::{Bound, EndId};
use bentpipe_engine::probe::QuicPacket;
use bentpipe_engine::tcp::{Flags, SackBlocks, Segment, SynOptions, Timestamps};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ecn::Ecn;
use bentpipe_engine::wire::ip::Ports;
use bentpipe_study::scenario::{ConnectionId, FlowId};

use crate::ends;

/// Bytes of an IPv4 header without options (RFC 791).
pub(crate) const IPV4_HEADER: u32 = 20;
/// Bytes of a TCP header without options (RFC 9293 §3.1).
pub(crate) const TCP_HEADER: u32 = 20;

/// The first ephemeral port (RFC 6335 §6).
const FIRST_PORT: u32 = 49152;
/// Number of ephemeral ports. Further flows use the next destination port.
const PORTS: u32 = 16384;
/// A port without a well-known service, so that analysers do not interpret the zeros.
const SERVICE: u32 = 30000;

/// Source and destination port of a flow.
pub(crate) fn ports(FlowId(flow): FlowId) -> Ports {
    Ports { source: (FIRST_PORT + flow % PORTS) as u16, destination: (SERVICE + flow / PORTS) as u16 }
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A segment of TCP or STP: both have the same values and differ only on the wire.
    Tcp(Segment),
    /// A UDP datagram, the n-th of its flow.
    Udp(u64),
    /// A UDP datagram of QUIC, represented by the packet in it or, if there are several, by the one with the most data.
    /// Only reported to observers.
    Quic(QuicPacket),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Its connection.
    pub connection: ConnectionId,
    /// True if it goes from the connection's `from` to its `to`.
    pub forward: bool,
    /// Bytes on the line.
    pub wire_len: u32,
    /// Its content.
    pub body: Body,
}

impl Packet {
    /// The end that sent it.
    pub(crate) fn from(&self) -> EndId {
        if self.forward { ends::opener(self.connection) } else { ends::listener(self.connection) }
    }
}

/// Position of the ECN field in [`Parcel`]'s `way`, above the slot.
const FIELD_AT: u32 = 30;
/// The bits of the slot.
const SLOT: u32 = (1 << FIELD_AT) - 1;

/// A packet on a link: its destination, its length, and the slot of its content. Between its first and last hop nothing
/// reads the content, so only this is moved.
///
/// Its fields are written in the pieces in which it is copied, eight bytes and four: a processor cannot forward two
/// small writes to a larger read that follows soon, and stalls.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Parcel {
    /// The destination in the upper half. In the lower half, the ECN field and the slot.
    way: u64,
    wire_len: u32,
}

impl Parcel {
    #[inline(always)]
    pub(crate) fn new(place: u32, to: EndId, wire_len: u32) -> Self {
        Parcel { way: u64::from(to.0) << 32 | u64::from(place), wire_len }
    }

    /// The slot of its content.
    #[inline(always)]
    pub(crate) fn slot(&self) -> u32 {
        self.way as u32 & SLOT
    }

    /// Its destination.
    #[inline(always)]
    pub(crate) fn to(&self) -> EndId {
        EndId((self.way >> 32) as u32)
    }

    /// The same content addressed to another end, with another length.
    pub(crate) fn redirected(self, to: EndId, wire_len: u32) -> Self {
        Parcel::new(self.way as u32, to, wire_len)
    }

    /// The source: the other end of the connection.
    #[inline(always)]
    pub(crate) fn from(&self) -> EndId {
        ends::peer(self.to())
    }
}

impl Wire for Parcel {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        self.wire_len
    }

    fn flow(&self) -> u64 {
        self.way >> 32
    }

    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.way as u32 >> FIELD_AT) as u8)
    }
}

impl Bound for Parcel {
    #[inline(always)]
    fn to(&self) -> EndId {
        Parcel::to(self)
    }
}

/// The fields that every packet has. They fill half a cache line: a large pipe holds many thousands of packets.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The number of a datagram.
    seq: u64,
    /// The sending time of a datagram.
    ack: u64,
    window: u32,
    wire_len: u32,
    connection: ConnectionId,
    len: u16,
    flags: Flags,
    /// The direction, and flags for further fields.
    marks: u8,
}

const FORWARD: u8 = 1;
const DATAGRAM: u8 = 2;
const OPTIONS: u8 = 4;
const CORRUPT: u8 = 8;
/// The ECN field.
const ECN: u8 = 3 << ECN_AT;
const ECN_AT: u8 = 4;
/// With [`DATAGRAM`]: the datagram is one of QUIC and has a content.
#[cfg(feature = "quic")]
const QUIC: u8 = 64;

/// Additional fields of some segments.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    syn: SynOptions,
    timestamps: Option<Timestamps>,
    sack: SackBlocks,
}

/// A number beyond all slots.
const NO_SLOT: u32 = u32::MAX;

/// A queue of free slots, linked by the field `seq` of their heads: the number of the next slot, [`NO_SLOT`] in the last.
#[derive(Clone, Copy, Debug)]
struct Free {
    first: u32,
    /// Meaningless if the queue is empty.
    last: u32,
}

impl Default for Free {
    fn default() -> Self {
        Free { first: NO_SLOT, last: NO_SLOT }
    }
}

/// The contents of packets in flight. There are as many slots as the maximum number of simultaneous packets in each
/// direction.
#[derive(Debug, Default)]
pub(crate) struct Store {
    heads: Vec<Head>,
    /// Options by slot; valid only if the head says so.
    options: Vec<Options>,
    /// Contents of QUIC datagrams by slot. The content of a lost datagram remains until its slot is reused.
    #[cfg(feature = "quic")]
    contents: Vec<(QuicPacket, bytes::BytesMut)>,
    /// Free slots of backward and of forward packets. The slot freed first is reused first, in the same direction.
    /// Packets are thus stored in the order in which they were sent, which is mostly that of arrival, so the processor
    /// can prefetch them.
    free: [Free; 2],
}

impl Store {
    /// Stores a datagram that is sent now, the n-th of its flow.
    pub(crate) fn put_datagram(&mut self, connection: ConnectionId, wire_len: u32, number: u64, now: Time) -> Parcel {
        let marks = FORWARD | DATAGRAM;
        self.keep(Head {
            seq: number,
            ack: now.as_ticks(),
            window: 0,
            wire_len,
            connection,
            len: 0,
            flags: Flags::NONE,
            marks,
        })
    }

    /// Stores a QUIC datagram.
    #[cfg(feature = "quic")]
    pub(crate) fn put_quic(&mut self, from: EndId, packet: QuicPacket, content: bytes::BytesMut) -> Parcel {
        let marks = if ends::opens(from) { FORWARD } else { 0 } | DATAGRAM | QUIC;
        let wire_len = content.len() as u32 + bentpipe_study::scenario::QuicFlow::UDP_HEADERS;
        let connection = ends::connection(from);
        let head = Head { seq: 0, ack: 0, window: 0, wire_len, connection, len: 0, flags: Flags::NONE, marks };
        let parcel = self.keep(head);
        self.keep_content(parcel.slot() as usize, (packet, content));
        parcel
    }

    #[cfg(feature = "quic")]
    fn keep_content(&mut self, slot: usize, content: (QuicPacket, bytes::BytesMut)) {
        if self.contents.len() <= slot {
            self.contents.resize(self.heads.len(), Default::default());
        }
        self.contents[slot] = content;
    }

    /// Takes the content of a QUIC datagram that has arrived.
    #[cfg(feature = "quic")]
    pub(crate) fn take_content(&mut self, parcel: Parcel) -> bytes::BytesMut {
        std::mem::take(&mut self.contents[parcel.slot() as usize].1)
    }

    /// Stores a segment.
    #[inline(always)]
    pub(crate) fn put_segment(&mut self, from: EndId, wire_len: u32, segment: &Segment) -> Parcel {
        let &Segment { seq, ack, window, len, flags, ecn, syn, timestamps, sack } = segment;
        let plain = !segment.has_options();
        let marks =
            if ends::opens(from) { FORWARD } else { 0 } | if plain { 0 } else { OPTIONS } | ecn.bits() << ECN_AT;
        let connection = ends::connection(from);
        let parcel = self.keep(Head { seq, ack, window, wire_len, connection, len, flags, marks });
        if !plain {
            self.keep_options(parcel.slot() as usize, Options { syn, timestamps, sack });
        }
        parcel
    }

    /// Stores a segment that has no options and is not marked.
    #[inline(always)]
    pub(crate) fn put_plain_segment(&mut self, from: EndId, wire_len: u32, segment: &Segment) -> Parcel {
        debug_assert!(!segment.has_options() && segment.ecn == Ecn::NotEct, "a plain segment: {segment:?}");
        let &Segment { seq, ack, window, len, flags, .. } = segment;
        let marks = if ends::opens(from) { FORWARD } else { 0 };
        self.keep(Head { seq, ack, window, wire_len, connection: ends::connection(from), len, flags, marks })
    }

    #[inline(always)]
    fn keep(&mut self, head: Head) -> Parcel {
        let free = &mut self.free[usize::from(head.marks & FORWARD)];
        let mut slot = free.first;
        if let Some(place) = self.heads.get_mut(slot as usize) {
            free.first = place.seq as u32;
            *place = head;
        } else {
            slot = self.heads.len() as u32;
            self.heads.push(head);
        }
        let EndId(opener) = ends::opener(head.connection);
        let to = EndId(opener + u32::from(head.marks & FORWARD));
        let place = slot | u32::from((head.marks & ECN) >> ECN_AT) << FIELD_AT;
        Parcel::new(place, to, head.wire_len)
    }

    fn keep_options(&mut self, slot: usize, options: Options) {
        if self.options.len() <= slot {
            self.options.resize(self.heads.len(), Options::default());
        }
        self.options[slot] = options;
    }

    /// The packet of a parcel.
    pub(crate) fn get(&self, parcel: Parcel) -> Packet {
        let Head { seq, wire_len, connection, marks, .. } = self.heads[parcel.slot() as usize];
        let body = match marks & DATAGRAM {
            0 => Body::Tcp(self.segment(parcel)),
            #[cfg(feature = "quic")]
            _ if marks & QUIC != 0 => Body::Quic(self.contents[parcel.slot() as usize].0),
            _ => Body::Udp(seq),
        };
        Packet { connection, forward: marks & FORWARD != 0, wire_len, body }
    }

    /// The segment of a parcel, if it is undamaged and has no options.
    #[inline(always)]
    pub(crate) fn plain_segment(&self, parcel: Parcel) -> Option<Segment> {
        let Head { seq, ack, window, len, flags, marks, .. } = self.heads[parcel.slot() as usize];
        if marks & (OPTIONS | DATAGRAM | CORRUPT | ECN) != 0 {
            return None;
        }
        Some(Segment { seq, ack, window, len, ..Segment::new(flags) })
    }

    /// The segment of a parcel.
    #[inline(always)]
    pub(crate) fn segment(&self, parcel: Parcel) -> Segment {
        let Head { seq, ack, window, len, flags, marks, .. } = self.heads[parcel.slot() as usize];
        let Options { syn, timestamps, sack } = match marks & OPTIONS {
            0 => Options::default(),
            _ => self.options[parcel.slot() as usize],
        };
        Segment { seq, ack, window, len, flags, ecn: Ecn::from_bits(marks >> ECN_AT), syn, timestamps, sack }
    }

    /// When the datagram of a parcel was sent.
    pub(crate) fn departure(&self, parcel: Parcel) -> Time {
        Time::from_ticks(self.heads[parcel.slot() as usize].ack)
    }

    /// True if a parcel is a bare ACK. It may echo marks.
    pub(crate) fn is_bare_ack(&self, parcel: Parcel) -> bool {
        let Head { len, flags, marks, .. } = self.heads[parcel.slot() as usize];
        marks & DATAGRAM == 0 && len == 0 && flags.without_ecn() == Flags::ACK
    }

    /// The acknowledgement number of a bare ACK without SACK blocks and echo of marks, modulo 2^32.
    pub(crate) fn acknowledges(&self, parcel: Parcel) -> Option<u32> {
        let Head { ack, flags, marks, .. } = self.heads[parcel.slot() as usize];
        let has_blocks = marks & OPTIONS != 0 && !self.options[parcel.slot() as usize].sack.is_empty();
        (self.is_bare_ack(parcel) && flags == Flags::ACK && !has_blocks).then_some(ack as u32)
    }

    /// A second parcel with the same packet.
    pub(crate) fn copy(&mut self, parcel: Parcel) -> Parcel {
        let slot = parcel.slot() as usize;
        let copy = self.keep(self.heads[slot]);
        if self.heads[slot].marks & OPTIONS != 0 {
            self.keep_options(copy.slot() as usize, self.options[slot]);
        }
        #[cfg(feature = "quic")]
        if self.heads[slot].marks & QUIC != 0 {
            self.keep_content(copy.slot() as usize, self.contents[slot].clone());
        }
        copy.redirected(parcel.to(), copy.wire_len)
    }

    /// Marks a packet (RFC 3168 §5). Returns it with its mark, for the queues behind.
    pub(crate) fn mark(&mut self, parcel: Parcel) -> Parcel {
        self.heads[parcel.slot() as usize].marks |= ECN;
        Parcel { way: parcel.way | u64::from(!SLOT), ..parcel }
    }

    /// Flips a bit of the packet.
    pub(crate) fn corrupt(&mut self, parcel: Parcel) {
        self.heads[parcel.slot() as usize].marks |= CORRUPT;
    }

    /// True if the checksum of the packet is wrong.
    pub(crate) fn is_corrupt(&self, parcel: Parcel) -> bool {
        self.heads[parcel.slot() as usize].marks & CORRUPT != 0
    }

    /// Frees the slot of a packet that has arrived or is lost.
    #[inline(always)]
    pub(crate) fn release(&mut self, parcel: Parcel) {
        // Forward packets go to listeners, whose numbers are odd. For a sink, the direction does not matter.
        let (slot, free) = (parcel.slot(), &mut self.free[usize::from(!ends::opens(parcel.to()))]);
        self.heads[slot as usize].seq = NO_SLOT.into();
        if free.first == NO_SLOT {
            free.first = slot;
        } else {
            self.heads[free.last as usize].seq = slot.into();
        }
        free.last = slot;
    }
}

/// Bytes of a segment on the line, including its headers. The numbers of STP's polls count like timestamps.
#[inline(always)]
pub(crate) fn wire_len(segment: &Segment, ns2_lengths: bool) -> u32 {
    let options = match ns2_lengths {
        true => 8 * segment.sack.len() as u32,
        false if segment.has_options() => segment.options_len(),
        false => 0,
    };
    IPV4_HEADER + TCP_HEADER + options + segment.len as u32
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
