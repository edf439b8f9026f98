//! Everything that keeps trains beside a literal twin that knows packets only.
//!
//! The twin cuts what a device gives or takes as the receiver of a virtio-net header has to (virtio 1.2 §5.1.6.2, Linux's
//! software segmentation): one packet at a time, every checksum summed anew.

use super::*;
use crate::train::gather::Gather;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// UDP_MAX_SEGMENTS of the kernels before Linux 6.9, which refuse longer trains.
const MAX_DATAGRAMS: usize = 64;

/// What lies between the IP header and the transport, or in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    None,
    /// Options of IPv4, a destination options header of IPv6.
    Options,
    /// A first fragment, and a later one.
    First,
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    /// Left to the card: VIRTIO_NET_HDR_F_NEEDS_CSUM.
    Partial,
    Whole,
    Wrong,
    /// UDP's zero: none.
    Zero,
}

/// One write of a host: a packet, or a train where `count` is more than 1.
#[derive(Clone, Debug)]
struct Spec {
    is_v6: bool,
    protocol: u8,
    /// Source host, which is part of the address, and port.
    host: u8,
    port: u8,
    ttl: u8,
    traffic_class: u8,
    /// IPv4's flags; flow label of IPv6.
    dont_fragment: bool,
    label: u8,
    /// Identification and sequence number go on where the flow's last write ended.
    id: Option<u16>,
    seq: Option<u32>,
    ack: u32,
    flags: u8,
    /// The low four bits of TCP's byte 12: reserved bits and AE.
    reserved: u8,
    window: u8,
    urgent: u8,
    options: Vec<u8>,
    extra: Extra,
    sum: Sum,
    /// Bytes behind the UDP datagram but in the IP packet.
    surplus: u8,
    size: u16,
    last: u16,
    count: u16,
}

/// Where a flow goes on.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    id: u16,
    seq: u32,
}

type FlowKey = (bool, u8, u8, u8);

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn set(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of the pseudo header, not complemented.
fn pseudo(packet: &[u8], protocol: u8, start: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    let length = (packet.len() - start) as u16;
    !Checksum::new().bytes(&packet[addresses]).word(protocol.into()).word(length).finish()
}

fn sum_header(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    set(packet, 10, 0);
    let sum = Checksum::new().bytes(&packet[..length]).finish();
    set(packet, 10, sum);
}

impl Spec {
    fn key(&self) -> FlowKey {
        (self.is_v6, self.protocol, self.host, self.port)
    }

    fn is_train(&self) -> bool {
        let is_cut = self.protocol == TCP || self.protocol == UDP && self.surplus == 0;
        let is_whole = !matches!(self.extra, Extra::First | Extra::Later);
        self.count > 1 && self.size > 0 && is_cut && is_whole
    }

    fn payload(&self) -> usize {
        if self.is_train() {
            usize::from(self.count - 1) * usize::from(self.size) + usize::from(self.last.clamp(1, self.size))
        } else {
            self.size.into()
        }
    }

    fn transport(&self, next: Next) -> Vec<u8> {
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

    /// What a read of the device gives, and where the flow goes on.
    fn write(&self, next: Next) -> (Vec<u8>, Next) {
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

    /// Puts the checksum that the sender puts there, and says so.
    fn sum_transport(&self, packet: &mut [u8], start: usize) -> VirtioNetHdr {
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
fn cut(write: &[u8]) -> Vec<Vec<u8>> {
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

fn spec() -> impl Strategy<Value = Spec> {
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
fn writes() -> impl Strategy<Value = Vec<Vec<u8>>> {
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

/// Of which flow a packet is, if it is a whole one without options; and its sender.
fn flow_of(packet: &[u8]) -> (Option<Vec<u8>>, Vec<u8>) {
    let (sender, addresses, protocol, at) = match packet[0] >> 4 {
        4 => (packet[12..16].to_vec(), &packet[12..20], packet[9], 20),
        _ => (packet[8..24].to_vec(), &packet[8..40], packet[6], 40),
    };
    let is_plain = packet[0] >> 4 == 6 || packet[0] == 0x45 && word(packet, 6) & 0x3fff == 0;
    let is_known = is_plain && matches!(protocol, TCP | UDP);
    let flow = is_known.then(|| [addresses, &[protocol], &packet[at..at + 4]].concat());
    (flow, sender)
}

/// The identification of an atomic datagram means nothing (RFC 6864 §4.1); the header's sum stays right or wrong.
fn without_atomic_id(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 && word(&packet, 6) & 0x7fff == 0x4000 {
        let is_right = Checksum::new().bytes(&packet[..usize::from(packet[0] & 15) * 4]).finish() == 0;
        set(&mut packet, 4, 0);
        set(&mut packet, 10, is_right.into());
    }
    packet
}

/// Each flow's packets come once, whole and in order, and nothing passes what is of no known flow.
fn assert_same(got: &[Vec<u8>], sent: &[Vec<u8>]) {
    let flows: std::collections::BTreeSet<_> = sent.iter().map(|packet| flow_of(packet)).collect();
    for (flow, sender) in flows {
        let of = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
            let is_of = |packet: &&Vec<u8>| {
                let (its, from) = flow_of(packet);
                from == sender && (its == flow || its.is_none())
            };
            packets.iter().filter(is_of).map(|packet| without_atomic_id(packet)).collect()
        };
        assert_eq!(of(got), of(sent), "{flow:?} of {sender:?}");
    }
    assert_eq!(got.len(), sent.len());
}

/// Which packets are lost, who is next, and when a turn ends.
type Events = Vec<(bool, bool, bool)>;

/// Two hosts' packets, some lost, in some order. What is behind `events` comes, host by host.
fn on_links<P>(packets: Vec<P>, host: impl Fn(&P) -> usize, events: &Events) -> Vec<(P, bool)> {
    let mut queues = [const { std::collections::VecDeque::new() }; 2];
    packets.into_iter().for_each(|packet| queues[host(&packet)].push_back(packet));
    let mut passed = Vec::new();
    for &(is_lost, second, ends_turn) in events {
        let from = usize::from(second);
        let from = if queues[from].is_empty() { 1 - from } else { from };
        passed.extend(queues[from].pop_front().filter(|_| !is_lost).map(|packet| (packet, ends_turn)));
    }
    passed.extend(queues.into_iter().flatten().map(|packet| (packet, false)));
    passed
}

fn host_of(packet: &[u8]) -> usize {
    usize::from(if packet[0] >> 4 == 4 { packet[15] } else { packet[23] }) - 1
}

/// The emulator: trains in, links that lose, trains out. What has to come, and what is written.
fn emulated(writes: Vec<Vec<u8>>, events: &Events, takes_udp: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut packets = Vec::new();
    for write in writes {
        let literal = cut(&write);
        let read = read(write);
        assert_eq!(bytes(&read), literal, "what was read");
        assert_eq!(read.iter().map(Packet::len).collect::<Vec<_>>(), literal.iter().map(Vec::len).collect::<Vec<_>>());
        packets.extend(read.into_iter().zip(literal));
    }
    let mut join = Join::new(takes_udp);
    let (mut expected, mut out) = (Vec::new(), Vec::new());
    let mut drain = |join: &mut Join| {
        join.drain(
            |slices, count| {
                let write: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(cut(&write).len(), usize::from(count));
                out.push(write);
            },
            drop,
        );
    };
    for ((packet, literal), ends_turn) in on_links(packets, |(_, literal)| host_of(literal), events) {
        expected.push(literal);
        join.put(packet);
        if ends_turn {
            drain(&mut join);
        }
    }
    drain(&mut join);
    (expected, out)
}

/// The gateway's `link`: trains in, packets through a tunnel that loses, trains out.
fn tunnelled(writes: Vec<Vec<u8>>, events: &Events, takes_udp: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut packets, mut scratch) = (Vec::new(), Vec::new());
    for write in writes {
        let literal = cut(&write);
        let end = write.len();
        let train = Train::read(write, end).expect("a train");
        let before = packets.len();
        train.each(&mut scratch, |packet| packets.push(packet.to_vec()));
        assert_eq!(packets[before..], literal, "what was read");
    }
    let mut gather = Gather::new(takes_udp);
    let (mut expected, mut out) = (Vec::new(), Vec::new());
    let mut drain = |gather: &mut Gather| {
        gather.drain(|write, count| {
            assert_eq!(cut(write).len(), usize::from(count));
            out.push(write.to_vec());
        });
    };
    for (packet, ends_turn) in on_links(packets, |packet| host_of(packet), events) {
        if gather.is_full() {
            drain(&mut gather);
        }
        gather.put(&packet);
        expected.push(packet);
        if ends_turn {
            drain(&mut gather);
        }
    }
    drain(&mut gather);
    (expected, out)
}

fn on_wire(writes: &[Vec<u8>]) -> Vec<Vec<u8>> {
    writes.iter().flat_map(|write| cut(write)).collect()
}

fn events() -> impl Strategy<Value = Events> {
    let event = (prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.05));
    prop::collection::vec(event, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_emulator_gives_each_packet_as_it_was(writes in writes(), events in events(), takes_udp: bool) {
        let (expected, out) = emulated(writes, &events, takes_udp);
        assert_same(&on_wire(&out), &expected);
    }

    #[test]
    fn a_link_gives_each_packet_as_it_was(writes in writes(), events in events(), takes_udp: bool) {
        let (expected, out) = tunnelled(writes, &events, takes_udp);
        assert_same(&on_wire(&out), &expected);
    }

    /// A link behind an emulated one and before another: each reads what the other wrote.
    #[test]
    fn one_behind_the_other(writes in writes(), events in prop::array::uniform3(events())) {
        let (expected, out) = emulated(writes, &events[0], true);
        assert_same(&on_wire(&out), &expected);
        let (expected, out) = tunnelled(out, &events[1], true);
        assert_same(&on_wire(&out), &expected);
        let (expected, out) = emulated(out, &events[2], true);
        assert_same(&on_wire(&out), &expected);
    }
}

/// What the strategy is there for happens: writes are joined, in both ways, of both protocols.
#[test]
fn runs_are_joined() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut joined = BTreeMap::new();
    for _ in 0..200 {
        let writes = writes().new_tree(&mut runner).expect("no filter").current();
        for (way, out) in [emulated(writes.clone(), &Vec::new(), true), tunnelled(writes, &Vec::new(), true)]
            .iter()
            .map(|(_, out)| out)
            .enumerate()
        {
            for write in out {
                let kernel = VirtioNetHdr::decode(write).expect("a header");
                *joined.entry((way, kernel.gso_type)).or_insert(0) += 1;
            }
        }
    }
    for way in 0..2 {
        for kind in [VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4] {
            assert!(joined.get(&(way, kind)).is_some_and(|count| *count > 20), "{joined:?}");
        }
    }
}
