//! Packets that look as if they could be part of a train.

use super::gather::gathered;
use super::packets::{set, sum_header, word};
use super::*;
use crate::linux::train::gather::Gather;

/// Adds to a word of a packet in one's complement.
fn add(packet: &mut [u8], at: usize, value: u16) {
    let sum = !Checksum::new().word(word(packet, at)).word(value).finish();
    set(packet, at, sum);
}

#[test]
fn a_kernel_that_contradicts_itself_is_not_believed() {
    let v6 = Sent { is_v6: true, ..PLAIN };
    let headers = VirtioNetHdr { gso_type: VIRTIO_NET_HDR_GSO_NONE, ..PLAIN.kernel() };
    for (what, kernel, packet) in [
        ("a train with full checksums", VirtioNetHdr { flags: 0, ..PLAIN.kernel() }, PLAIN.packet()),
        ("a train of IPv4", VirtioNetHdr { gso_type: VIRTIO_NET_HDR_GSO_TCPV4, ..v6.kernel() }, v6.packet()),
        ("a train of IPv6", v6.kernel(), PLAIN.packet()),
        ("a checksum in the IP header", VirtioNetHdr { csum_start: 12, ..PLAIN.kernel() }, PLAIN.packet()),
        ("a train without payload", PLAIN.kernel(), PLAIN.packet()[..40].to_vec()),
        ("packets without payload", VirtioNetHdr { gso_size: 0, ..PLAIN.kernel() }, PLAIN.packet()),
        ("a checksum behind the end", headers, PLAIN.packet()[..30].to_vec()),
    ] {
        let bytes = framed(kernel, &packet);
        let end = bytes.len();
        assert!(Train::read(bytes, end).is_err(), "{what}");
    }
}

/// A tunnel's packet, such as VXLAN's: the kernel leaves the checksum of the inner datagram, behind the outer one.
#[test]
fn a_datagram_in_a_datagram_is_alone() {
    for is_v6 in [false, true] {
        let inner = Sent { is_v6, is_udp: true, packets: 1, ..PLAIN };
        let kernel = inner.kernel();
        let packet = inner.packet();
        let ip = usize::from(kernel.csum_start);
        let mut outer = packet[..ip + 8].to_vec();
        let length = (8 + packet.len()) as u16;
        set(&mut outer, ip + 4, length);
        if is_v6 {
            set(&mut outer, 4, length);
        } else {
            set(&mut outer, 2, 20 + length);
            sum_header(&mut outer);
        }
        outer.extend(packet);
        let read = || read(framed(VirtioNetHdr { csum_start: 2 * kernel.csum_start + 8, ..kernel }, &outer));
        assert_eq!(joined([read(), read()].concat()).len(), 2, "IPv6: {is_v6}");
    }
}

/// Bytes behind the length in the IP header would become part of the stream.
#[test]
fn a_packet_with_bytes_behind_it_is_alone() {
    let first = Sent { packets: 1, ..PLAIN };
    let next = Sent { seq: first.seq + 1004, ..first.next(1) };
    let with_more = |sent: &Sent| read(framed(sent.kernel(), &[&sent.packet()[..], &[0; 4]].concat()));
    assert_eq!(joined([with_more(&first), with_more(&next)].concat()).len(), 2);
}

/// A train would have new checksums, and the damage would no longer be seen.
#[test]
fn damage_to_the_ip_header_stays_visible() {
    let mut packets = bytes(&PLAIN.packets());
    packets.iter_mut().for_each(|packet| packet[8] ^= 1);
    let writes: Vec<_> = packets.iter().map(|packet| framed(VirtioNetHdr::default(), packet)).collect();
    assert_eq!(gathered(packets), writes);
}

//= RFC 768: "An all zero transmitted checksum value means that the transmitter generated no checksum"
#[test]
fn zero_is_no_checksum() {
    let datagrams = Sent { is_udp: true, ..PLAIN };
    let mut packets = bytes(&datagrams.packets());
    for packet in &mut packets {
        // With this payload, the sum is right without it.
        let sum = word(packet, 26);
        add(packet, 28, sum);
        set(packet, 26, 0);
    }
    assert_eq!(gathered(packets.clone()).len(), 3);
    // If it is computed, it is sent as all ones.
    let one = Sent { packets: 1, ..datagrams };
    let mut packet = one.packet();
    add(&mut packet, 28, word(&bytes(&one.packets())[0], 26));
    assert_eq!(word(&bytes(&read(framed(one.kernel(), &packet)))[0], 26), 0xffff);
}

#[test]
fn fragments_are_alone() {
    for (at, bits) in [(6, 0x20), (6, 1), (7, 1)] {
        let mut packets = bytes(&PLAIN.packets());
        for packet in &mut packets {
            packet[at] |= bits;
            sum_header(packet);
        }
        assert_eq!(gathered(packets).len(), 3, "{at}: {bits}");
    }
}

#[test]
fn another_window_is_told() {
    let mut next = PLAIN.next(1).packet();
    set(&mut next, 34, 512);
    assert_eq!(joined([PLAIN.packets(), read(framed(PLAIN.next(1).kernel(), &next))].concat()).len(), 2);
}

#[test]
fn what_waits_is_bounded() {
    let mut gather = Gather::new(true);
    for flow in 0..64 {
        assert!(!gather.is_full());
        gather.put(&Sent { flow, packets: 1, ..PLAIN }.packet());
    }
    assert!(gather.is_full());
}

#[test]
fn a_train_fits_a_packet_and_a_write() {
    let full = Sent { packets: 65, ..PLAIN };
    let last = |size| Sent { size, last: size, ..full.next(1) };
    // With 40 bytes of headers, 65 535.
    assert_eq!([495, 496].map(|size| lengths(&[full.clone(), last(size)])), [vec![66], vec![65, 1]]);
    // Nor does it have more pieces than one write takes.
    let pieces = (0..70).map(|n| Sent { size: 100, last: 100, packets: 1, id: n, seq: 100 * u32::from(n), ..PLAIN });
    assert_eq!(lengths(&pieces.collect::<Vec<_>>()), [62, 8]);
    // Only its first packet may have CWR.
    assert_eq!(lengths(&[Sent { flags: ACK | CWR, ..PLAIN }]), [1, 2]);
}
