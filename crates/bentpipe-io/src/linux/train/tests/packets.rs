//! Packets by chance, of many flows: whole, and as a host writes them in trains.

use super::*;

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const URG: u8 = 0x20;
pub(super) const ECE: u8 = 0x40;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// UDP_MAX_SEGMENTS of the kernels before Linux 6.9, which refuse longer trains.
pub(super) const MAX_DATAGRAMS: usize = 64;

/// What lies between the IP header and the transport, or in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    None,
    /// Options of IPv4, a destination options header of IPv6.
    Options,
    /// A first fragment, and a later one.
    First,
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// Left to the card: VIRTIO_NET_HDR_F_NEEDS_CSUM.
    Partial,
    Whole,
    Wrong,
    /// UDP's zero: none.
    Zero,
}

/// One write of a host: a packet, or a train where `count` is more than 1.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) is_v6: bool,
    pub(super) protocol: u8,
    /// Source host, which is part of the address, and port.
    pub(super) host: u8,
    pub(super) port: u8,
    pub(super) ttl: u8,
    pub(super) traffic_class: u8,
    /// IPv4's flags; flow label of IPv6.
    pub(super) dont_fragment: bool,
    pub(super) label: u8,
    /// Identification and sequence number continue where the flow's last write ended.
    pub(super) id: Option<u16>,
    pub(super) seq: Option<u32>,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// The low four bits of TCP's byte 12: reserved bits and AE.
    pub(super) reserved: u8,
    pub(super) window: u8,
    pub(super) urgent: u8,
    pub(super) options: Vec<u8>,
    pub(super) extra: Extra,
    pub(super) sum: Sum,
    /// Bytes behind the UDP datagram but in the IP packet.
    pub(super) surplus: u8,
    pub(super) size: u16,
    pub(super) last: u16,
    pub(super) count: u16,
}

/// Where a flow continues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    pub(super) id: u16,
    pub(super) seq: u32,
}

type FlowKey = (bool, u8, u8, u8);

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn set(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of the pseudo header, not complemented.
pub(super) fn pseudo(packet: &[u8], protocol: u8, start: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    let length = (packet.len() - start) as u16;
    !Checksum::new().bytes(&packet[addresses]).word(protocol.into()).word(length).finish()
}

pub(super) fn sum_header(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    set(packet, 10, 0);
    let sum = Checksum::new().bytes(&packet[..length]).finish();
    set(packet, 10, sum);
}

impl Spec {
    pub(super) fn key(&self) -> FlowKey {
        (self.is_v6, self.protocol, self.host, self.port)
    }

    pub(super) fn is_train(&self) -> bool {
        let is_cut = self.protocol == TCP || self.protocol == UDP && self.surplus == 0;
        let is_whole = !matches!(self.extra, Extra::First | Extra::Later);
        self.count > 1 && self.size > 0 && is_cut && is_whole
    }

    pub(super) fn payload(&self) -> usize {
        if self.is_train() {
            usize::from(self.count - 1) * usize::from(self.size) + usize::from(self.last.clamp(1, self.size))
        } else {
            self.size.into()
        }
    }

    pub(super) fn transport(&self, next: Next) -> Vec<u8> {
        let mut transport = match self.protocol {
            TCP => {
                let mut header = vec![0x10, self.port, 0, 80];
                header.extend(self.seq.unwrap_or(next.seq).to_be_bytes());
                header.extend(self.ack.to_be_bytes());
                let length = 5 + self.options.len() as u8 / 4;
                header.extend([length << 4 | self.reserved, self.flags, 1, self.window, 0, 0, 0, self.urgent]);
                header.extend(&self.options);
                header
            }
            UDP => {
                let mut header = vec![0x10, self.port, 0, 80];
                header.extend((8 + self.payload() as u16).to_be_bytes());
                header.extend([0, 0]);
                header
            }
            _ => vec![8, 0, 0, 0, 0x10, self.port, 0, 1],
        };
        let begin = self.seq.unwrap_or(next.seq);
        let random = |n: usize| (n as u32).wrapping_add(begin).wrapping_mul(0x9e37_79b9).to_be_bytes()[0];
        transport.extend((0..self.payload()).map(random));
        transport.extend(std::iter::repeat_n(0xee, self.surplus.into()));
        transport
    }

    /// The result of a read from the device, and where the flow continues.
    pub(super) fn write(&self, next: Next) -> (Vec<u8>, Next) {
        let transport = self.transport(next);
        let id = self.id.unwrap_or(next.id);
        let mut packet;
        let options = if self.extra == Extra::Options { 8 } else { 0 };
        if self.is_v6 {
            let (first, between): (u8, Vec<u8>) = match self.extra {
                Extra::None => (self.protocol, Vec::new()),
                Extra::Options => (60, vec![self.protocol, 0, 1, 4, 0, 0, 0, 0]),
                Extra::First => (44, vec![self.protocol, 0, 0, 1, 0, 0, id.to_be_bytes()[0], id.to_be_bytes()[1]]),
                Extra::Later => (44, vec![self.protocol, 0, 4, 0, 0, 0, id.to_be_bytes()[0], id.to_be_bytes()[1]]),
            };
            packet = vec![0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, self.label];
            packet.extend(((between.len() + transport.len()) as u16).to_be_bytes());
            packet.extend([first, self.ttl]);
            for host in [self.host, 9] {
                packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            packet.extend(between);
        } else {
            let fragment: u16 = match self.extra {
                Extra::First => 0x2000,
                Extra::Later => 0x0080,
                _ if self.dont_fragment => 0x4000,
                _ => 0,
            };
            packet = vec![0x45 + options / 4, self.traffic_class];
            packet.extend((20 + u16::from(options) + transport.len() as u16).to_be_bytes());
            packet.extend(id.to_be_bytes());
            packet.extend(fragment.to_be_bytes());
            packet.extend([self.ttl, self.protocol, 0, 0, 10, 0, 0, self.host, 10, 0, 0, 9]);
            packet.extend(&[1, 1, 1, 1, 1, 1, 1, 0][..options.into()]);
            sum_header(&mut packet);
        }
        let start = packet.len();
        packet.extend(transport);
        let kernel = self.sum_transport(&mut packet, start);
        let packets = if self.is_train() { self.count } else { 1 };
        let seq = self.seq.unwrap_or(next.seq).wrapping_add(self.payload() as u32);
        (framed(kernel, &packet), Next { id: id.wrapping_add(packets), seq })
    }

    /// Writes the sender's partial checksum, and marks it as such.
    pub(super) fn sum_transport(&self, packet: &mut [u8], start: usize) -> VirtioNetHdr {
        let offset = match self.protocol {
            TCP => 16,
            UDP => 6,
            _ => 2,
        };
        let at = start + offset;
        let is_fragment = matches!(self.extra, Extra::First | Extra::Later);
        if self.is_train() || self.sum == Sum::Partial && self.protocol != ICMP && !is_fragment {
            let sum = pseudo(packet, self.protocol, start);
            set(packet, at, sum);
            let header = if self.protocol == TCP { 20 + self.options.len() } else { 8 };
            let gso_type = match (self.is_train(), self.protocol, self.is_v6) {
                (false, ..) => VIRTIO_NET_HDR_GSO_NONE,
                (_, UDP, _) => VIRTIO_NET_HDR_GSO_UDP_L4,
                (_, _, true) => VIRTIO_NET_HDR_GSO_TCPV6,
                (_, _, false) => VIRTIO_NET_HDR_GSO_TCPV4,
            };
            return VirtioNetHdr {
                flags: VIRTIO_NET_HDR_F_NEEDS_CSUM,
                gso_type,
                hdr_len: (start + header) as u16,
                gso_size: if self.is_train() { self.size } else { 0 },
                csum_start: start as u16,
                csum_offset: offset as u16,
            };
        }
        if self.protocol == UDP && self.sum == Sum::Zero {
            return VirtioNetHdr::default();
        }
        let pseudo = if self.protocol == ICMP { 0 } else { pseudo(packet, self.protocol, start) };
        let sum = Checksum::new().word(pseudo).bytes(&packet[start..]).finish();
        let sum = if self.protocol == UDP && sum == 0 { u16::MAX } else { sum };
        set(packet, at, if self.sum == Sum::Wrong { sum ^ 0x0100 } else { sum });
        VirtioNetHdr::default()
    }
}

/// What a write is on a wire. Panics where the kernel would refuse it.
pub(super) fn cut(write: &[u8]) -> Vec<Vec<u8>> {
    let (kernel, packet) = (VirtioNetHdr::decode(write).expect("a header"), &write[ROOM..]);
    if kernel.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM == 0 {
        assert_eq!(kernel.gso_type, VIRTIO_NET_HDR_GSO_NONE, "a train has no checksums");
        return vec![packet.to_vec()];
    }
    let (start, offset) = (usize::from(kernel.csum_start), usize::from(kernel.csum_offset));
    if kernel.gso_type == VIRTIO_NET_HDR_GSO_NONE {
        let mut packet = packet.to_vec();
        let sum = Checksum::new().bytes(&packet[start..]).finish();
        set(&mut packet, start + offset, if offset == 6 && sum == 0 { u16::MAX } else { sum });
        return vec![packet];
    }
    let is_v6 = packet[0] >> 4 == 6;
    let protocol = match (kernel.gso_type, is_v6) {
        (VIRTIO_NET_HDR_GSO_TCPV4, false) | (VIRTIO_NET_HDR_GSO_TCPV6, true) => TCP,
        (VIRTIO_NET_HDR_GSO_UDP_L4, _) => UDP,
        other => panic!("no train of a kernel: {other:?}"),
    };
    assert_eq!(offset, if protocol == TCP { 16 } else { 6 });
    let header = if protocol == TCP { usize::from(packet[start + 12] >> 4) * 4 } else { 8 };
    assert_eq!(usize::from(kernel.hdr_len), start + header);
    assert_eq!(word(packet, start + offset), pseudo(packet, protocol, start), "the partial checksum");
    let length = if is_v6 { usize::from(word(packet, 4)) + 40 } else { word(packet, 2).into() };
    assert_eq!(length, packet.len(), "the length in the IP header");
    assert!(is_v6 || Checksum::new().bytes(&packet[..usize::from(packet[0] & 15) * 4]).finish() == 0);
    let (head, payload) = packet.split_at(start + header);
    let size = usize::from(kernel.gso_size);
    assert!(payload.len() > size, "a train has two packets");
    if protocol == UDP {
        assert!(payload.len() <= MAX_DATAGRAMS * size && word(packet, start + 4) as usize == packet.len() - start);
    }
    let last = payload.len().div_ceil(size) - 1;
    let cut = |(n, payload): (usize, &[u8])| {
        let mut one = [head, payload].concat();
        let length = one.len();
        if is_v6 {
            set(&mut one, 4, (length - 40) as u16);
        } else {
            set(&mut one, 2, length as u16);
            set(&mut one, 4, word(head, 4).wrapping_add(n as u16));
            sum_header(&mut one);
        }
        if protocol == TCP {
            let seq = u32::from_be_bytes(head[start + 4..start + 8].try_into().expect("four bytes"));
            one[start + 4..start + 8].copy_from_slice(&seq.wrapping_add((n * size) as u32).to_be_bytes());
            if n > 0 {
                one[start + 13] &= !CWR;
            }
            if n < last {
                one[start + 13] &= !(PSH | FIN);
            }
        } else {
            set(&mut one, start + 4, (length - start) as u16);
        }
        set(&mut one, start + offset, 0);
        let sum = Checksum::new().word(pseudo(&one, protocol, start)).bytes(&one[start..]).finish();
        set(&mut one, start + offset, if protocol == UDP && sum == 0 { u16::MAX } else { sum });
        one
    };
    payload.chunks(size).enumerate().map(cut).collect()
}

pub(super) fn spec() -> impl Strategy<Value = Spec> {
    let pick = prop::sample::select::<u8>;
    let flow = (any::<bool>(), pick(vec![TCP, TCP, UDP, UDP, UDP, ICMP]), 1..3_u8, 0..2_u8);
    // Mostly alike, or nothing would ever be joined.
    let ip = (
        pick(vec![64, 64, 64, 64, 63]),
        pick(vec![0, 0, 0, 0, 3, 0xb8]),
        any::<bool>(),
        pick(vec![0, 0, 0, 1]),
        prop::option::weighted(0.1, prop::sample::select(vec![0, 1, 0xffff_u16])),
        prop::sample::select([[Extra::None; 12].as_slice(), &[Extra::Options, Extra::First, Extra::Later]].concat()),
    );
    let flags = [ACK, ACK, ACK, ACK, ACK, ACK | PSH, ACK | PSH, ACK | FIN, ACK | ECE, ACK | CWR, SYN, RST, ACK | URG];
    let options = [
        vec![],
        vec![],
        vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        vec![1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 2],
        vec![1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        vec![254, 4, 0, 1],
    ];
    let tcp = (
        prop::option::weighted(0.1, prop::sample::select(vec![0, 1000, u32::MAX - 500])),
        pick(flags.to_vec()),
        pick(vec![0, 0, 0, 0, 0, 1]),
        pick(vec![0, 0, 0, 0, 7]),
        pick(vec![0, 0, 0, 0, 0, 9]),
        prop::sample::select(vec![1, 1, 1, 2_u32]),
        prop::sample::select(options.to_vec()),
    );
    let sums = [Sum::Partial, Sum::Partial, Sum::Partial, Sum::Partial, Sum::Whole, Sum::Whole, Sum::Wrong, Sum::Zero];
    let size = || prop_oneof![4 => prop::sample::select(vec![1000, 1000, 100, 50, 1, 0, 1200_u16]), 1 => 0..1461_u16];
    let count = prop_oneof![3 => Just(1), 2 => 2..12_u16, 1 => 40..46_u16];
    let sizes = (size(), size(), count, pick(vec![0, 0, 0, 0, 0, 0, 0, 4]), prop::sample::select(sums.to_vec()));
    (flow, ip, tcp, sizes).prop_map(|(flow, ip, tcp, sizes)| {
        let (is_v6, protocol, host, port) = flow;
        let (ttl, traffic_class, dont_fragment, label, id, extra) = ip;
        let (seq, flags, reserved, window, urgent, ack, options) = tcp;
        let (size, last, count, surplus, sum) = sizes;
        let surplus = if protocol == UDP { surplus } else { 0 };
        #[rustfmt::skip]
        let spec = Spec {
            is_v6, protocol, host, port, ttl, traffic_class, dont_fragment, label, id, seq, ack, flags, reserved, window,
            urgent, options, extra, sum, surplus, size, last, count,
        };
        spec
    })
}

/// Runs of writes that are alike but for their sizes, as one program sends them, and turns of several programs.
pub(super) fn writes() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let sizes = prop::collection::vec(prop_oneof![3 => Just(None), 1 => (0..1461_u16).prop_map(Some)], 1..8);
    let same = prop::sample::select(vec![1000_u16, 100, 50, 1200]);
    prop::collection::vec((spec(), sizes, same, any::<bool>()), 1..12).prop_map(|runs| {
        let mut next: BTreeMap<FlowKey, Next> = BTreeMap::new();
        let mut writes = Vec::new();
        for (spec, sizes, same, is_run) in runs {
            let sizes: Vec<_> = if is_run { sizes } else { vec![Some(spec.size)] };
            for (n, size) in sizes.into_iter().enumerate() {
                let (id, seq) = if n == 0 { (spec.id, spec.seq) } else { (None, None) };
                let spec = Spec { size: size.unwrap_or(same), id, seq, ..spec.clone() };
                let at = next.entry(spec.key()).or_default();
                let (write, then) = spec.write(*at);
                *at = then;
                writes.push(write);
            }
        }
        writes
    })
}
