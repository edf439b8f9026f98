//! The headers before payloads: virtio-net's, which says how to split a train, and those of IP, TCP and UDP.
//!
//! The packets of a train share its headers, with some exceptions. Lengths and checksums differ. The IPv4
//! identification and TCP's sequence number count up. Of the flags, only the first packet has CWR, and only the last
//! has PSH and FIN. If the kernel left the transport checksum to the card (NEEDS_CSUM), it is partial: the field holds
//! the sum of the pseudo header, in which only the length differs between packets.

use bentpipe_engine::wire::checksum::Checksum;
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, VirtioNetHdr};

use super::ROOM;

/// Values of virtio-net's header that `tun-rs` does not export (virtio 1.2 §5.1.6).
pub(super) const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;
pub(super) const VIRTIO_NET_HDR_GSO_NONE: u8 = 0;
const VIRTIO_NET_HDR_GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Offset of the checksum in TCP's header and in UDP's.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

/// Flags that only the last packet of a train has.
pub(super) const LAST: u8 = FIN | PSH;

/// Flags that no packet of our own trains has. (A train from the kernel may have CWR on its first packet.)
pub(super) const SPECIAL: u8 = SYN | RST | URG | CWR;

/// The kind of trains that a packet can be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It cannot be part of a train.
    Alone,
    Tcp,
    Udp,
}

impl Part {
    /// True if a packet with this payload may follow in a train whose packets carry `size` bytes each.
    pub(super) fn may_follow(self, size: u16, payload: u16) -> bool {
        match self {
            Part::Udp => payload == size,
            Part::Tcp | Part::Alone => payload <= size,
        }
    }
}

/// The headers shared by the packets of a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    pub(super) part: Part,
    /// Offsets of the transport header and of its checksum, if that is partial.
    checksum: Option<(u16, u16)>,
    /// Bytes before the payload.
    pub(super) length: u16,
    /// Payload size of each packet except the last, which may be shorter.
    pub(super) size: u16,
    /// A flow hash: equal for packets of the same flow, rarely for others; `None` if unknown.
    pub(super) flow: Option<u64>,
}

impl Headers {
    /// A packet with full checksums.
    pub(super) const ALONE: Headers = Headers { part: Part::Alone, checksum: None, length: 0, size: 0, flow: None };

    /// Parses the kernel's header and the packet; `None` if they contradict each other.
    pub(super) fn read(kernel: VirtioNetHdr, packet: &[u8]) -> Option<Headers> {
        let flow = flow(packet);
        let is_partial = kernel.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM != 0;
        if !is_partial {
            let is_one = kernel.gso_type == VIRTIO_NET_HDR_GSO_NONE;
            return is_one.then_some(Headers { flow, ..Headers::ALONE });
        }
        let (start, offset) = (kernel.csum_start, kernel.csum_offset);
        let at = start.checked_add(offset)?;
        packet.get(usize::from(at)..usize::from(at) + 2)?;
        let alone = Headers { checksum: Some((start, at)), flow, ..Headers::ALONE };
        let transport = &packet[start.into()..];
        let is_v6 = packet[0] >> 4 == 6;
        let part = match (kernel.gso_type & !VIRTIO_NET_HDR_GSO_ECN, offset) {
            (VIRTIO_NET_HDR_GSO_NONE, _) => return Some(alone.single(packet, start, offset).unwrap_or(alone)),
            (VIRTIO_NET_HDR_GSO_TCPV4, TCP_CHECKSUM) if !is_v6 => Part::Tcp,
            (VIRTIO_NET_HDR_GSO_TCPV6, TCP_CHECKSUM) if is_v6 => Part::Tcp,
            (VIRTIO_NET_HDR_GSO_UDP_L4, UDP_CHECKSUM) => Part::Udp,
            _ => return None,
        };
        let ip = if is_v6 { 40 } else { 20 };
        let length = start + header_length(part, transport)?;
        let is_whole = start >= ip && usize::from(length) < packet.len() && kernel.gso_size > 0;
        is_whole.then_some(Headers { part, length, size: kernel.gso_size, ..alone })
    }

    /// A packet with payload that others may follow: no IP options, no special flags.
    fn single(self, packet: &[u8], start: u16, offset: u16) -> Option<Headers> {
        // Fragments and packets with IP options have no known flow.
        self.flow?;
        let (protocol, ip) = if packet[0] >> 4 == 4 { (packet[9], 20) } else { (packet[6], 40) };
        // Of a tunnel's packet, the kernel leaves the inner checksum.
        if start != ip {
            return None;
        }
        let part = match (protocol, offset) {
            (TCP, TCP_CHECKSUM) => Part::Tcp,
            (UDP, UDP_CHECKSUM) => Part::Udp,
            _ => return None,
        };
        let transport = packet.get(start.into()..)?;
        let length = start + header_length(part, transport)?;
        let size = packet.len().checked_sub(length.into()).filter(|size| *size > 0)? as u16;
        // Bytes after a datagram (UDP options) would become part of the datagram, because lengths are rewritten.
        let is_whole = length_in_ip(packet)? == packet.len()
            && (part == Part::Tcp || usize::from(get(transport, 4)) == transport.len());
        is_whole.then_some(Headers { part, length, size, ..self })
    }

    /// Parses a packet with full checksums. It can be part of a train if they are right.
    pub(super) fn of_whole(packet: &[u8]) -> Headers {
        let alone = Headers { flow: flow(packet), ..Headers::ALONE };
        Headers::of_sound(alone, packet).unwrap_or(alone)
    }

    fn of_sound(alone: Headers, packet: &[u8]) -> Option<Headers> {
        let (start, protocol, addresses) = match packet.first()? >> 4 {
            4 if packet.len() > 20 => (20, packet[9], 12..20),
            6 if packet.len() > 40 => (40, packet[6], 8..40),
            _ => return None,
        };
        let offset = match protocol {
            TCP => TCP_CHECKSUM,
            UDP => UDP_CHECKSUM,
            _ => return None,
        };
        let at = start + offset;
        let headers = Headers { checksum: Some((start, at)), ..alone }.single(packet, start, offset)?;
        let transport = &packet[start.into()..];
        let has_sums = (start == 40 || sum(&packet[..20]) == u16::MAX)
            // RFC 768: zero means no checksum.
            && (protocol == TCP || get(packet, at.into()) != 0);
        let pseudo = Checksum::new().bytes(&packet[addresses]).word(protocol.into()).word(transport.len() as u16);
        let is_right = || tun_rs::checksum(transport, u64::from(!pseudo.finish())) == u16::MAX;
        (has_sums && is_right()).then_some(headers)
    }

    /// Turns a packet with these headers and full checksums into a train in the kernel's form. There must be space
    /// before the packet, and the payloads of the other packets must follow it.
    pub(super) fn make_train(&self, train: &mut [u8], packets: u16, last: u8) {
        let (start, at) = self.checksum.expect("a joined packet has a checksum");
        let (start, at) = (usize::from(start), usize::from(at));
        let (room, whole) = train.split_at_mut(ROOM);
        let length = whole.len();
        let is_v6 = whole[0] >> 4 == 6;
        self.for_kernel(packets, is_v6).encode(room).expect("there is room");
        let addresses = if is_v6 {
            put(whole, 4, (length - 40) as u16);
            8..40
        } else {
            put(whole, 2, length as u16);
            put(whole, 10, 0);
            let sum = Checksum::new().bytes(&whole[..start]).finish();
            put(whole, 10, sum);
            12..20
        };
        let transport = (length - start) as u16;
        let protocol = if self.part == Part::Udp { UDP } else { TCP };
        let sum = Checksum::new().bytes(&whole[addresses]).word(protocol.into()).word(transport).finish();
        put(whole, at, !sum);
        if self.part == Part::Udp {
            put(whole, start + 4, transport);
        } else {
            whole[start + 13] = whole[start + 13] & !LAST | last & LAST;
        }
    }

    /// Appends the headers of a train that starts with packet `index` of this one, `whole`, with this payload size, and
    /// with these flags on its last packet. The transport checksum is partial.
    pub(super) fn write(&self, whole: &[u8], index: u16, payload: usize, last: u8, to: &mut Vec<u8>) {
        let (start, at) = self.checksum.expect("a split train has a partial checksum");
        let (start, at) = (usize::from(start), usize::from(at));
        let first = to.len();
        to.extend_from_slice(&whole[..self.length.into()]);
        let header = &mut to[first..];
        let length = header.len() + payload;
        if header[0] >> 4 == 6 {
            put(header, 4, (length - 40) as u16);
        } else {
            let id = get(whole, 4).wrapping_add(index);
            // Updated incrementally (RFC 1624), because reading back words that were just written is slow.
            let sum = Checksum::new().bytes(&whole[..start]).word(!get(whole, 10));
            let sum = sum.word(!get(whole, 2)).word(length as u16).word(!get(whole, 4)).word(id).finish();
            put(header, 2, length as u16);
            put(header, 4, id);
            put(header, 10, sum);
        }
        // RFC 1624: subtracts the old length, adds the new one.
        let (old, new) = ((whole.len() - start) as u16, (length - start) as u16);
        let sum = Checksum::new().word(get(header, at)).word(!old).word(new).finish();
        put(header, at, !sum);
        match self.part {
            Part::Tcp => {
                let seq = sequence(header, start).wrapping_add(u32::from(index) * u32::from(self.size));
                header[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
                header[start + 13] = self.flags(whole, index) & !LAST | last & LAST;
            }
            Part::Udp => put(header, start + 4, new),
            Part::Alone => {}
        }
    }

    /// Replaces a packet's partial checksum with the full one.
    pub(super) fn finish_checksum(&self, packet: &mut [u8]) {
        let Some((start, at)) = self.checksum else { return };
        // The field has the pseudo header's sum, which the total includes.
        let sum = !sum(&packet[start.into()..]);
        // RFC 768: in UDP, zero would mean no checksum.
        let is_udp = at - start == UDP_CHECKSUM;
        put(packet, at.into(), if is_udp && sum == 0 { u16::MAX } else { sum });
    }

    /// The virtio-net header of a train with these headers, or of a packet.
    pub(super) fn for_kernel(&self, count: u16, is_v6: bool) -> VirtioNetHdr {
        let Some((start, at)) = self.checksum else { return VirtioNetHdr::default() };
        let flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        let (csum_start, csum_offset) = (start, at - start);
        let gso_type = match self.part {
            Part::Tcp if is_v6 => VIRTIO_NET_HDR_GSO_TCPV6,
            Part::Tcp => VIRTIO_NET_HDR_GSO_TCPV4,
            Part::Udp => VIRTIO_NET_HDR_GSO_UDP_L4,
            Part::Alone => VIRTIO_NET_HDR_GSO_NONE,
        };
        if count > 1 {
            VirtioNetHdr { flags, gso_type, hdr_len: self.length, gso_size: self.size, csum_start, csum_offset }
        } else {
            VirtioNetHdr { flags, hdr_len: self.length, csum_start, csum_offset, ..VirtioNetHdr::default() }
        }
    }

    /// The TCP flags of one packet.
    pub(super) fn flags(&self, whole: &[u8], index: u16) -> u8 {
        let (Part::Tcp, Some((start, _))) = (self.part, self.checksum) else { return 0 };
        let mut flags = whole[usize::from(start) + 13];
        if index > 0 {
            flags &= !CWR;
        }
        let behind = (usize::from(index) + 1) * usize::from(self.size);
        if usize::from(self.length) + behind < whole.len() {
            flags &= !LAST;
        }
        flags
    }

    /// True if the packet at `to` in the train `follower` continues the flow after `from` in this train, `whole`. Its
    /// headers must be equal except for lengths, checksums and a last packet's flags, and its counters must have
    /// advanced accordingly.
    pub(super) fn go_on(&self, whole: &[u8], from: Place, other: &Headers, follower: &[u8], to: Place) -> bool {
        if (self.part, self.checksum, self.length) != (other.part, other.checksum, other.length) {
            return false;
        }
        let Some((start, _)) = self.checksum else { return false };
        let start = usize::from(start);
        let same = |from: usize, to: usize| whole[from..to] == follower[from..to];
        let same_ip = if whole[0] >> 4 == 6 {
            same(0, 4) && same(6, start)
        } else {
            //= RFC 6864 §4.1: "All devices that examine IPv4 headers MUST ignore the IPv4 ID field of atomic datagrams."
            let is_atomic = whole[6] & 0x40 != 0;
            let id = |packet: &[u8], place: Place| get(packet, 4).wrapping_add(place.index);
            let counts_up = is_atomic || id(whole, from) == id(follower, to);
            same(0, 2) && same(6, 10) && same(12, start) && counts_up
        };
        let same_ports = || same(start, start + 4);
        match self.part {
            Part::Tcp => {
                let seq = |packet, place: Place| sequence(packet, start).wrapping_add(place.payload);
                same_ip
                    && same_ports()
                    && seq(whole, from) == seq(follower, to)
                    && same(start + 8, start + 13)
                    && (whole[start + 13] ^ follower[start + 13]) & !LAST == 0
                    && same(start + 14, start + 16)
                    && same(start + 18, self.length.into())
            }
            Part::Udp => same_ip && same_ports(),
            Part::Alone => false,
        }
    }
}

/// A position in a train, relative to its first packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of packets before it.
    pub(super) index: u16,
    /// Payload bytes before it.
    pub(super) payload: u32,
}

impl Place {
    /// The position of a single packet.
    pub(super) const FIRST: Place = Place { index: 0, payload: 0 };
}

/// The one's complement sum (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    tun_rs::checksum(bytes, 0)
}

fn header_length(part: Part, transport: &[u8]) -> Option<u16> {
    match part {
        Part::Tcp => {
            let length = usize::from(*transport.get(12)? >> 4) * 4;
            (length >= TCP_HEADER).then_some(length as u16)
        }
        Part::Udp => (transport.len() >= UDP_HEADER).then_some(UDP_HEADER as u16),
        Part::Alone => None,
    }
}

/// Packet length in bytes, from the IP header.
fn length_in_ip(packet: &[u8]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => Some(get(packet, 2).into()),
        6 if packet.len() >= 40 => Some(usize::from(get(packet, 4)) + 40),
        _ => None,
    }
}

/// A hash of addresses, protocol and ports, for packets without fragments or options.
fn flow(packet: &[u8]) -> Option<u64> {
    let (addresses, protocol, ports) = match packet.first()? >> 4 {
        4 if packet[0] == 0x45 && packet.get(6)? & 0x3f == 0 && *packet.get(7)? == 0 => {
            (12..20, packet.get(9)?, 20..24)
        }
        6 => (8..40, packet.get(6)?, 40..44),
        _ => return None,
    };
    if !matches!(*protocol, TCP | UDP) {
        return None;
    }
    // FNV-1a over words; security does not depend on it.
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ u64::from(*protocol);
    for word in packet.get(addresses)?.chunks(4).chain(packet.get(ports)?.chunks(4)) {
        let word = u32::from_be_bytes(word.try_into().ok()?);
        hash = (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Some(hash)
}

fn sequence(packet: &[u8], start: usize) -> u32 {
    u32::from_be_bytes([packet[start + 4], packet[start + 5], packet[start + 6], packet[start + 7]])
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
