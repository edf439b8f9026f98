//! Packets that come one by one.

use super::*;
use crate::linux::train::gather::Gather;

/// What is written where these come together.
pub(super) fn gathered(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut gather = Gather::new(true);
    packets.into_iter().for_each(|packet| gather.put(&packet));
    let mut writes = Vec::new();
    gather.drain(|bytes, count| {
        assert_eq!(read(bytes.to_vec()).len(), usize::from(count));
        writes.push(bytes.to_vec());
    });
    assert!(gather.is_empty());
    writes
}

fn lengths(trains: &[Sent]) -> Vec<usize> {
    let packets = trains.iter().flat_map(|sent| bytes(&sent.packets()));
    gathered(packets).into_iter().map(|write| read(write).len()).collect()
}

proptest! {
    #[test]
    fn a_train_is_as_it_was(sent in sent()) {
        let packets = bytes(&sent.packets());
        let writes = gathered(packets.clone());
        match sent.packets {
            // A single packet has its checksums already.
            1 => prop_assert_eq!(writes, [framed(VirtioNetHdr::default(), &packets[0])]),
            _ if sent.has_short_end() => {
                prop_assert_eq!(writes.len(), 2);
                prop_assert_eq!(writes.into_iter().flat_map(|write| bytes(&read(write))).collect::<Vec<_>>(), packets);
            }
            _ => prop_assert_eq!(writes, [sent.bytes()]),
        }
    }

    /// A damaged packet reaches its receiver unchanged; its neighbours are not affected.
    #[test]
    fn damage_stays_visible(
        sent in sent(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX,
    ) {
        let mut packets = bytes(&sent.packets());
        let damaged = &mut packets[which.index(sent.packets.into())];
        // Not the IP header, whose damage may make another packet of it.
        let start = if sent.is_v6 { 40 } else { 20 };
        let at = start + at.index(damaged.len() - start);
        damaged[at] ^= flip;
        let damaged = damaged.clone();
        let writes = gathered(packets.clone());
        prop_assert!(writes.contains(&framed(VirtioNetHdr::default(), &damaged)));
        let back: Vec<_> = writes.iter().flat_map(|write| read(write.clone())).collect();
        // A port that changed is another flow, which may go before.
        let mut all = [without_id(bytes(&back)), without_id(packets)];
        all.iter_mut().for_each(|packets| packets.sort());
        prop_assert_eq!(&all[0], &all[1]);
    }

    #[test]
    fn any_packet_is_taken(
        sent in sent(),
        flips in prop::collection::vec((0..90_usize, any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packet = sent.packet();
        let length = packet.len();
        for (at, value) in flips {
            packet[at % length] = value;
        }
        if cut.index(4) == 0 {
            packet.truncate(cut.index(length));
        }
        prop_assert_eq!(gathered([packet.clone()]), [framed(VirtioNetHdr::default(), &packet)]);
    }
}

#[test]
fn joined_and_not_joined() {
    let next = PLAIN.next(2);
    assert_eq!(lengths(&[PLAIN, next.clone()]), [5]);
    assert_eq!(lengths(&[PLAIN, Sent { flags: ACK | PSH, ..next.clone() }, next.next(1)]), [5, 1], "PSH ends a train");
    let short = Sent { last: 10, ..PLAIN };
    assert_eq!(lengths(&[short.clone(), short.next(2)]), [3, 2], "short");
    assert_eq!(lengths(&[PLAIN, Sent { size: 1100, last: 1100, ..next.clone() }]), [3, 2], "longer");
    assert_eq!(lengths(&[PLAIN, Sent { traffic_class: 3, ..next.clone() }]), [3, 2], "a mark of congestion");
    assert_eq!(lengths(&[PLAIN, Sent { flags: ACK | CWR, packets: 1, ..next.clone() }]), [3, 1], "CWR");
    assert_eq!(lengths(&[PLAIN, Sent { packets: 1, last: 0, ..next.clone() }, next.clone()]), [3, 1, 2], "an ACK");
    let many = Sent { packets: 40, ..PLAIN };
    assert_eq!(lengths(&[many.clone(), many.next(40)]), [65, 15], "no train is longer than an IP packet");
    let full = Sent { packets: 65, ..PLAIN };
    let last = |size| Sent { size, last: size, packets: 1, ..full.next(1) };
    assert_eq!([495, 496].map(|size| lengths(&[full.clone(), last(size)])), [vec![66], vec![65, 1]]);
    let datagrams = Sent { is_udp: true, size: 10, last: 10, packets: 100, ..PLAIN };
    assert_eq!(lengths(std::slice::from_ref(&datagrams)), [64, 36]);
    let mut gather = Gather::new(false);
    bytes(&datagrams.packets()).iter().for_each(|packet| gather.put(packet));
    let mut count = 0;
    gather.drain(|_, packets| count += usize::from(packets == 1));
    assert_eq!(count, 100, "a host that takes no trains of UDP");
    // RFC 768: without a checksum there is nothing to be right.
    let mut silent = bytes(&datagrams.packets());
    silent.iter_mut().for_each(|packet| packet[26..28].fill(0));
    assert_eq!(gathered(silent).len(), 100);
}
