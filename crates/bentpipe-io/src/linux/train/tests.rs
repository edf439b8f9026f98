use std::collections::BTreeMap;

use bentpipe_engine::wire::checksum::Checksum;
use proptest::prelude::*;
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, gso_split};

use super::headers::{VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_NONE};
use super::join::Join;
use super::*;

mod gather;
mod odd;
mod packets;
mod twin;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// A train as a host's stack would send it.
#[derive(Clone, Debug)]
struct Sent {
    is_v6: bool,
    is_udp: bool,
    /// Its source port identifies its flow.
    flow: u8,
    /// Payload of a packet, and of the last one.
    size: u16,
    last: u16,
    packets: u16,
    id: u16,
    may_fragment: bool,
    traffic_class: u8,
    seq: u32,
    ack: u32,
    flags: u8,
    /// The value of a TCP timestamp, where there is one.
    timestamp: Option<u32>,
}

impl Sent {
    fn payload(&self) -> usize {
        usize::from(self.packets - 1) * usize::from(self.size) + usize::from(self.last)
    }

    /// Headers and payload with a partial checksum.
    fn packet(&self) -> Vec<u8> {
        let options = self.timestamp.filter(|_| !self.is_udp).map_or(Vec::new(), |value| {
            let mut options = vec![1, 1, 8, 10];
            options.extend(value.to_be_bytes());
            options.extend([0; 4]);
            options
        });
        let mut transport = vec![0x10, self.flow, 0, 80];
        if self.is_udp {
            transport.extend((8 + self.payload() as u16).to_be_bytes());
            transport.extend([0, 0]);
        } else {
            transport.extend(self.seq.to_be_bytes());
            transport.extend(self.ack.to_be_bytes());
            transport.extend([(5 + options.len() as u8 / 4) << 4, self.flags, 1, 0, 0, 0, 0, 0]);
            transport.extend(options);
        }
        let random = |n: usize| (n as u32 ^ self.seq).wrapping_mul(0x9e37_79b9).to_be_bytes()[0];
        transport.extend((0..self.payload()).map(random));
        let protocol = if self.is_udp { 17 } else { 6 };
        let mut header;
        let addresses = if self.is_v6 {
            header = vec![0x60, self.traffic_class, 0, 0];
            header.extend((transport.len() as u16).to_be_bytes());
            header.extend([protocol, 64]);
            header.extend((0..32).map(|n| if n % 16 == 15 { 1 + n / 16 } else { 0xfd }));
            8..40
        } else {
            header = vec![0x45, self.traffic_class];
            header.extend((20 + transport.len() as u16).to_be_bytes());
            header.extend(self.id.to_be_bytes());
            header.extend([if self.may_fragment { 0 } else { 0x40 }, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = Checksum::new().bytes(&header).finish();
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            12..20
        };
        let pseudo = Checksum::new().bytes(&header[addresses]).word(protocol.into()).word(transport.len() as u16);
        let at = if self.is_udp { 6 } else { 16 };
        transport[at..at + 2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        [header, transport].concat()
    }

    fn kernel(&self) -> VirtioNetHdr {
        let csum_start = if self.is_v6 { 40 } else { 20 };
        let head = self.packet().len() - self.payload();
        let gso_type = match (self.packets, self.is_udp, self.is_v6) {
            (1, ..) => VIRTIO_NET_HDR_GSO_NONE,
            (_, true, _) => VIRTIO_NET_HDR_GSO_UDP_L4,
            (_, _, true) => VIRTIO_NET_HDR_GSO_TCPV6,
            (_, _, false) => VIRTIO_NET_HDR_GSO_TCPV4,
        };
        VirtioNetHdr {
            flags: VIRTIO_NET_HDR_F_NEEDS_CSUM,
            gso_type,
            hdr_len: head as u16,
            gso_size: if self.packets > 1 { self.size } else { 0 },
            csum_start,
            csum_offset: if self.is_udp { 6 } else { 16 },
        }
    }

    /// What a read of the device gives.
    fn bytes(&self) -> Vec<u8> {
        framed(self.kernel(), &self.packet())
    }

    fn packets(&self) -> Vec<Packet> {
        read(self.bytes())
    }

    /// True if its last packet leaves alone: a shorter datagram.
    fn has_short_end(&self) -> bool {
        self.is_udp && self.packets > 1 && self.last < self.size
    }

    /// The train that follows in the same flow.
    fn next(&self, packets: u16) -> Sent {
        let (id, seq) = (self.id.wrapping_add(self.packets), self.seq.wrapping_add(self.payload() as u32));
        Sent { id, seq, packets, ..self.clone() }
    }
}

const PLAIN: Sent = Sent {
    is_v6: false,
    is_udp: false,
    flow: 0,
    size: 1000,
    last: 1000,
    packets: 3,
    id: 0xfffe,
    may_fragment: true,
    traffic_class: 0,
    seq: 0xffff_f800,
    ack: 7,
    flags: ACK,
    timestamp: None,
};

fn framed(kernel: VirtioNetHdr, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ROOM];
    kernel.encode(&mut bytes).expect("room");
    bytes.extend_from_slice(packet);
    bytes
}

fn read(bytes: Vec<u8>) -> Vec<Packet> {
    let end = bytes.len();
    Train::read(bytes, end).expect("a train").packets().collect()
}

/// Datagrams of one flow with these payloads, each read by itself.
fn datagrams(sizes: &[u16]) -> Vec<Packet> {
    let one = Sent { is_udp: true, packets: 1, may_fragment: false, ..PLAIN };
    sizes.iter().flat_map(|size| Sent { size: *size, last: *size, ..one.clone() }.packets()).collect()
}

/// What is written where these leave together.
fn joined(packets: impl IntoIterator<Item = Packet>) -> Vec<Vec<u8>> {
    let mut join = Join::new(true);
    packets.into_iter().for_each(|packet| join.put(packet));
    let mut writes = Vec::new();
    join.drain(
        |slices, count| {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            assert_eq!(read(bytes.clone()).len(), usize::from(count));
            writes.push(bytes);
        },
        drop,
    );
    assert!(join.is_empty());
    writes
}

fn bytes(packets: &[Packet]) -> Vec<Vec<u8>> {
    packets.iter().map(Packet::to_bytes).collect()
}

/// The sums of IPv4's header and of the transport with its pseudo header.
fn assert_right(packet: &[u8]) {
    let (addresses, protocol, start) = match packet[0] >> 4 {
        4 => (12..20, packet[9], 20),
        _ => (8..40, packet[6], 40),
    };
    if start == 20 {
        assert_eq!(Checksum::new().bytes(&packet[..20]).finish(), 0, "the header's checksum");
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
    } else {
        assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40);
    }
    let transport = &packet[start..];
    let pseudo = Checksum::new().bytes(&packet[addresses]).word(protocol.into()).word(transport.len() as u16);
    assert_eq!(pseudo.bytes(transport).finish(), 0, "the transport's checksum");
}

fn sent() -> impl Strategy<Value = Sent> {
    let shape = (any::<bool>(), any::<bool>(), 0..4_u8, 1..1461_u16, 1..45_u16, any::<(bool, prop::sample::Index)>());
    let numbers = (any::<u16>(), any::<bool>(), any::<u32>(), any::<u32>(), any::<Option<u32>>());
    let flags = prop::sample::select(vec![ACK, ACK | PSH, ACK | PSH | 1, ACK | 0x40]);
    let classes = prop::sample::select(vec![0, 1, 3, 0xb8]);
    (shape, numbers, flags, classes).prop_map(|(shape, numbers, flags, traffic_class)| {
        let (is_v6, is_udp, flow, size, packets, (is_full, last)) = shape;
        let (id, may_fragment, seq, ack, timestamp) = numbers;
        let last = if is_full { size } else { 1 + last.index(size.into()) as u16 };
        Sent { is_v6, is_udp, flow, size, last, packets, id, may_fragment, traffic_class, seq, ack, flags, timestamp }
    })
}

proptest! {
    /// The literal twin is what `tun-rs` makes of the same train; CWR is what the kernel never puts on one.
    #[test]
    fn packets_are_those_that_a_card_would_send(sent in sent(), has_cwr: bool) {
        let sent = Sent { flags: sent.flags | if has_cwr { CWR } else { 0 }, ..sent };
        let ours = bytes(&sent.packets());
        ours.iter().for_each(|packet| assert_right(packet));
        if sent.packets > 1 {
            let (mut slots, mut sizes) = (vec![vec![0; 1600]; 64], [0; 64]);
            let count = gso_split(&mut sent.packet(), sent.kernel(), &mut slots, &mut sizes, 0, sent.is_v6);
            let theirs: Vec<_> = (0..count.expect("a train")).map(|n| slots[n][..sizes[n]].to_vec()).collect();
            assert_eq!(ours, theirs);
        }
        let lengths: Vec<_> = sent.packets().iter().map(Packet::len).collect();
        assert_eq!(lengths, ours.iter().map(Vec::len).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cut_and_joined_is_as_it_was(sent in sent()) {
        let writes = joined(sent.packets());
        if sent.has_short_end() {
            assert_eq!(writes.len(), 2);
            assert_eq!(bytes(&writes.into_iter().flat_map(read).collect::<Vec<_>>()), bytes(&sent.packets()));
        } else {
            assert_eq!(writes, [sent.bytes()]);
        }
    }

    /// Each run between gaps is a train; every packet that was not lost arrives, in order.
    #[test]
    fn what_is_lost_is_missing_and_nothing_else(sent in sent(), lost: [bool; 45]) {
        let kept: Vec<_> = sent.packets().into_iter().zip(lost).filter(|(_, lost)| !lost).map(|(packet, _)| packet).collect();
        let writes = joined(kept.clone());
        let back: Vec<_> = writes.iter().flat_map(|write| read(write.clone())).collect();
        if sent.is_udp && !sent.may_fragment && !sent.is_v6 {
            // Datagrams follow on each other across holes, and are numbered anew where numbers mean nothing.
            assert_eq!(without_id(bytes(&back)), without_id(bytes(&kept)));
        } else {
            assert_eq!(bytes(&back), bytes(&kept));
        }
        let (lost, end) = lost[..sent.packets.into()].split_at(usize::from(sent.packets) - usize::from(sent.has_short_end()));
        let runs = lost.split(|lost| *lost).filter(|run| !run.is_empty()).count();
        let crosses_holes = sent.is_udp && (sent.is_v6 || !sent.may_fragment);
        let ends = end.iter().filter(|lost| !**lost).count();
        assert_eq!(writes.len(), ends + if crosses_holes { runs.min(1) } else { runs });
    }

    /// Flows take turns packet by packet, trains follow on each other or do not, and acknowledgements are among them.
    #[test]
    fn each_flow_keeps_its_packets_in_order(
        mut trains in prop::collection::vec((sent(), any::<bool>(), 0..4_u8), 1..12),
        turns in prop::collection::vec(0..4_usize, 0..300),
    ) {
        // Flows differ not only by their ports.
        let key = |sent: &Sent| (sent.flow, sent.is_v6, sent.is_udp);
        let mut flows: BTreeMap<_, Vec<Packet>> = BTreeMap::new();
        let mut before: BTreeMap<u8, Sent> = BTreeMap::new();
        for (sent, follows, kind) in &mut trains {
            if let Some(before) = before.get(&sent.flow).filter(|_| *follows) {
                *sent = before.next(sent.packets);
            }
            match kind {
                // Its checksum is there already.
                0 => flows.entry(key(sent)).or_default().extend(sent.packets().iter().map(|p| Packet::new(&p.to_bytes()))),
                1 if !sent.is_udp => flows.entry(key(sent)).or_default().extend(Sent { packets: 1, last: 0, ..sent.clone() }.packets()),
                _ => flows.entry(key(sent)).or_default().extend(sent.packets()),
            }
            before.insert(sent.flow, sent.clone());
        }
        let expected: BTreeMap<_, Vec<_>> = flows.iter().map(|(flow, packets)| (*flow, without_id(bytes(packets)))).collect();
        let mut queues: Vec<_> = flows.into_values().map(Vec::into_iter).collect();
        let count = queues.len();
        let mut mixed: Vec<_> = turns.iter().filter_map(|turn| queues[turn % count].next()).collect();
        queues.into_iter().for_each(|rest| mixed.extend(rest));
        for writes in [gather::gathered(bytes(&mixed)), joined(mixed)] {
            let mut got: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for packet in writes.into_iter().flat_map(read) {
                let packet = packet.to_bytes();
                assert_right(&packet);
                let is_v6 = packet[0] >> 4 == 6;
                let (port, protocol) = if is_v6 { (41, packet[6]) } else { (21, packet[9]) };
                got.entry((packet[port], is_v6, protocol == 17)).or_default().push(packet);
            }
            let got: BTreeMap<_, Vec<_>> = got.into_iter().map(|(flow, packets)| (flow, without_id(packets))).collect();
            assert_eq!(got, expected);
        }
    }

    /// Whatever a device gives, nothing panics.
    #[test]
    fn any_bytes_are_read(
        sent in sent(),
        flips in prop::collection::vec((0..90_usize, any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = sent.bytes();
        let length = bytes.len();
        for (at, value) in flips {
            bytes[at % length] = value;
        }
        if cut.index(4) == 0 {
            bytes.truncate(cut.index(length));
        }
        let end = bytes.len();
        if let Ok(train) = Train::read(bytes, end) {
            let _ = train.destination();
            let packets: Vec<_> = train.packets().collect();
            packets.iter().for_each(|packet| assert_eq!(packet.to_bytes().len(), packet.len()));
            let mut join = Join::new(true);
            packets.into_iter().for_each(|packet| join.put(packet));
            join.drain(|_, _| (), drop);
        }
    }
}

/// Where the identification means nothing, it may change: without it and the sum that it is in.
fn without_id(mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for packet in packets.iter_mut().filter(|packet| packet[0] >> 4 == 4 && packet[6] & 0x40 != 0) {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packets
}

/// How many packets the trains have in which these leave.
fn lengths(trains: &[Sent]) -> Vec<usize> {
    joined(trains.iter().flat_map(Sent::packets)).into_iter().map(|write| read(write).len()).collect()
}

#[test]
fn trains_that_follow_on_each_other_are_one() {
    let next = PLAIN.next(2);
    assert_eq!(lengths(&[PLAIN, next.clone()]), [5]);
    // Numbers wrap; the last packet may be short, and nothing follows it.
    let short = Sent { last: 10, ..PLAIN.next(2) };
    assert_eq!(lengths(&[PLAIN, short.clone(), short.next(2)]), [5, 2]);
    let all = Sent { packets: 5, last: 10, ..PLAIN };
    assert_eq!(joined([PLAIN, short].iter().flat_map(Sent::packets)).len(), 1);
    assert_eq!(
        bytes(
            &joined(PLAIN.packets().into_iter().chain(PLAIN.next(2).packets()))
                .into_iter()
                .flat_map(read)
                .collect::<Vec<_>>()
        )[4]
        .len(),
        1040
    );
    assert_eq!(all.packets().len(), 5);
    // A longer one follows as little.
    let long = Sent { size: 1100, last: 1100, ..PLAIN.next(2) };
    assert_eq!(lengths(&[PLAIN, long]), [3, 2]);
    // No train is longer than an IP packet.
    let many = Sent { packets: 40, ..PLAIN };
    assert_eq!(lengths(&[many.clone(), many.next(40)]), [65, 15]);
}

#[test]
fn what_cutting_would_not_give_again_is_not_joined() {
    let next = PLAIN.next(2);
    for (what, first, second) in [
        ("PSH within", Sent { flags: ACK | PSH, ..PLAIN }, next.clone()),
        ("a mark of congestion", PLAIN, Sent { traffic_class: 3, ..next.clone() }),
        ("another acknowledgement", PLAIN, Sent { ack: 8, ..next.clone() }),
        ("ECE", PLAIN, Sent { flags: ACK | 0x40, ..next.clone() }),
        ("CWR", PLAIN, Sent { flags: ACK | CWR, packets: 1, ..next.clone() }),
        ("another time", Sent { timestamp: Some(1), ..PLAIN }, Sent { timestamp: Some(2), ..next.clone() }),
        ("no time", PLAIN, Sent { timestamp: Some(2), ..next.clone() }),
        ("a hole", PLAIN, Sent { seq: next.seq + 1, ..next.clone() }),
        ("other identifications", PLAIN, Sent { id: next.id + 1, ..next.clone() }),
        ("fragments allowed", PLAIN, Sent { may_fragment: false, ..next.clone() }),
        ("another flow", PLAIN, Sent { flow: 1, ..next.clone() }),
        ("another version", PLAIN, Sent { is_v6: true, ..next.clone() }),
        (
            "a mark of congestion, IPv6",
            Sent { is_v6: true, ..PLAIN },
            Sent { is_v6: true, traffic_class: 0x30, ..next.clone() },
        ),
    ] {
        let count = second.packets.into();
        assert_eq!(lengths(&[first, second]), [3, count], "{what}");
    }
    // PSH may be the last one's.
    assert_eq!(lengths(&[PLAIN, Sent { flags: ACK | PSH, ..next.clone() }]), [5]);
    // What is atomic has any identification.
    let atomic = Sent { may_fragment: false, ..PLAIN };
    assert_eq!(lengths(&[atomic.clone(), Sent { id: 4711, ..atomic.next(2) }]), [5]);
}

#[test]
fn datagrams_are_joined_where_the_host_takes_them_so() {
    let one = Sent { is_udp: true, packets: 1, ..PLAIN };
    let all = [one.clone(), one.next(1), one.next(1).next(1)];
    assert_eq!(lengths(&all), [3]);
    let mut join = Join::new(false);
    let packets: Vec<_> = all.iter().flat_map(Sent::packets).collect();
    packets.iter().cloned().for_each(|packet| join.put(packet));
    let mut writes: Vec<Vec<u8>> = Vec::new();
    join.drain(|slices, _| writes.push(slices.iter().flat_map(|slice| slice.to_vec()).collect()), drop);
    assert_eq!(writes, all.map(|sent| sent.bytes()));
    // As many as every kernel takes.
    let many = Sent { size: 10, last: 10, packets: 100, ..one };
    assert_eq!(lengths(&[many]), [64, 36]);
}

/// Datagrams are joined with those of the same length only: one that is too long for the next hop is lost alone. A shorter packet of TCP
/// ends its train: the kernel cuts all but the last at the first one's size.
#[test]
fn a_shorter_datagram_is_alone_and_a_shorter_segment_the_last() {
    let sizes = [1000, 100, 100, 1000, 50];
    let packets = datagrams(&sizes);
    let writes = joined(packets.clone());
    let back: Vec<_> = writes.iter().flat_map(|write| read(write.clone())).collect();
    assert_eq!(without_id(bytes(&back)), without_id(bytes(&packets)));
    assert_eq!(writes.into_iter().map(|write| read(write).len()).collect::<Vec<_>>(), [1, 2, 1, 1]);
    // TCP: the bytes would be the same, their packets would not.
    let short = Sent { packets: 1, size: 100, last: 100, ..PLAIN.next(1) };
    assert_eq!(
        lengths(&[PLAIN, short.clone(), short.next(1), Sent { size: 1000, last: 1000, ..short.next(1).next(1) }]),
        [4, 1, 1]
    );
}

#[test]
fn nothing_goes_past_what_is_of_no_known_flow() {
    let ping =
        Packet::new(&[&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], &[0; 8]].concat());
    let with =
        |between: Packet| joined(PLAIN.packets().into_iter().chain([between]).chain(PLAIN.next(2).packets())).len();
    assert_eq!(with(ping), 3);
    // An acknowledgement of its own flow neither; of another flow it is in nobody's way.
    let ack = Sent { packets: 1, last: 0, ..PLAIN.next(1) };
    assert_eq!(with(ack.packets().remove(0)), 3);
    assert_eq!(with(Sent { flow: 1, ..ack }.packets().remove(0)), 2);
}
