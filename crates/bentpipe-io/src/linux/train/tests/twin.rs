//! Everything that keeps trains beside a literal twin that knows packets only.
//!
//! The twin cuts what a device gives or takes as the receiver of a virtio-net header has to (virtio 1.2 §5.1.6.2, Linux's
//! software segmentation): one packet at a time, every checksum summed anew.

use super::packets::*;
use super::*;
use crate::linux::train::gather::Gather;

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

/// Each flow's packets arrive once, complete and in order, and none overtakes a packet of an unknown flow.
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

/// The emulator: trains in, links with losses, trains out. Returns the expected packets and the written ones.
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
