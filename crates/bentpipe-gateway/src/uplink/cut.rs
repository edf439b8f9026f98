//! Cuts segments that are longer than the route to a client takes, as a device with segmentation offload does: the MTU may fall after a
//! connection was opened, and its segments keep their length.

use bentpipe_engine::wire::checksum::Checksum;
use bentpipe_engine::wire::ip::{self, Addresses, TCP};
use bentpipe_engine::wire::ipv6;

/// Places in a TCP header (RFC 9293 §3.1).
const SEQUENCE: usize = 4;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
/// Length of a header without options.
const HEADER: usize = 20;
/// FIN and PSH belong to the last byte. CWR is sent once (RFC 3168 §6.1.2).
const OF_LAST: u8 = 0x01 | 0x08;
const OF_FIRST: u8 = 0x80;

/// Calls `each` with segments of at most `mtu` bytes that carry the data of this one, in order. Returns false if it cannot be cut: it has
/// no data, or there is room for none.
pub(super) fn cut(packet: &[u8], mtu: usize, mut each: impl FnMut(&[u8])) -> bool {
    let Ok(whole) = ip::parse(packet) else { return false };
    let at = whole.payload.start;
    let Some(tcp) = packet.get(at..).filter(|tcp| tcp.len() >= HEADER && whole.protocol == TCP) else { return false };
    let header = at + usize::from(tcp[DATA_OFFSET] >> 4) * 4;
    if header < at + HEADER {
        return false;
    }
    let Some(data) = packet.get(header..whole.payload.end).filter(|data| !data.is_empty()) else { return false };
    let Some(room) = mtu.checked_sub(header).filter(|&room| room > 0) else { return false };
    let count = data.len().div_ceil(room);
    let mut sequence = tcp[SEQUENCE..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let mut part = Vec::new();
    for (n, bytes) in data.chunks(room).enumerate() {
        part.clear();
        part.extend_from_slice(&packet[..header]);
        part.extend_from_slice(bytes);
        let length = part.len();
        let (ip, tcp) = part.split_at_mut(at);
        match whole.addresses {
            Addresses::V4 { .. } => {
                ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                ip[10..12].fill(0);
                let checksum = Checksum::new().bytes(ip).finish();
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            Addresses::V6 { .. } => ip[4..6].copy_from_slice(&((length - ipv6::HEADER) as u16).to_be_bytes()),
        }
        tcp[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        let absent = if n > 0 { OF_FIRST } else { 0 } | if n + 1 < count { OF_LAST } else { 0 };
        tcp[FLAGS] &= !absent;
        tcp[CHECKSUM..CHECKSUM + 2].fill(0);
        let checksum = whole.addresses.pseudo_header(TCP, tcp.len()).bytes(tcp).finish();
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        each(&part);
        sequence = sequence.wrapping_add(bytes.len() as u32);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    /// A segment with these numbers, flags and options, over either version.
    fn segment(is_v6: bool, sequence: u32, flags: u8, options: usize, data: &[u8]) -> Vec<u8> {
        let addresses = match is_v6 {
            true => {
                Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: "2001:db8::1".parse().expect("an address") }
            }
            false => Addresses::V4 { source: [192, 0, 2, 1].into(), destination: [198, 51, 100, 7].into() },
        };
        let mut tcp = vec![0; HEADER + options];
        tcp[..4].copy_from_slice(&[0, 80, 200, 1]);
        tcp[SEQUENCE..8].copy_from_slice(&sequence.to_be_bytes());
        (tcp[DATA_OFFSET], tcp[FLAGS]) = ((((HEADER + options) / 4) << 4) as u8, flags);
        // Options without an effect (RFC 9293 §3.1).
        tcp[HEADER..].fill(1);
        tcp.extend_from_slice(data);
        let checksum = addresses.pseudo_header(TCP, tcp.len()).bytes(&tcp).finish();
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = vec![0; 40];
        let length = ip::emit(&addresses, TCP, tcp.len(), &mut packet).expect("there is room");
        packet.truncate(length);
        [packet, tcp].concat()
    }

    proptest! {
        /// The parts carry the same bytes under the same numbers, each flag once, and all else unchanged; each is a valid packet.
        #[test]
        fn parts_are_the_segment(
            is_v6: bool, sequence: u32, flags: u8, words in 0usize..=10, len in 1usize..1460, mtu in 41usize..1500,
        ) {
            let data: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
            let packet = segment(is_v6, sequence, flags, 4 * words, &data);
            let header = packet.len() - len;
            let (mut got, mut seen) = (Vec::new(), Vec::new());
            let is_cut = cut(&packet, mtu, |part| {
                let whole = ip::parse(part).expect("its header is right");
                assert!(part.len() <= mtu && whole.payload.end == part.len());
                let tcp = &part[whole.payload.clone()];
                assert_eq!(whole.addresses.pseudo_header(TCP, tcp.len()).bytes(tcp).finish(), 0);
                let number = u32::from_be_bytes(*tcp[SEQUENCE..].first_chunk().expect("four bytes"));
                assert_eq!(number, sequence.wrapping_add(got.len() as u32));
                assert_eq!(tcp[..4], packet[whole.payload.start..][..4]);
                assert_eq!(part[whole.payload.start + HEADER..header], packet[whole.payload.start + HEADER..header]);
                seen.push(tcp[FLAGS]);
                got.extend_from_slice(&part[header..]);
            });
            prop_assert_eq!(is_cut, mtu > header);
            if is_cut {
                prop_assert_eq!(got, data);
                let last = seen.len() - 1;
                for (n, seen) in seen.into_iter().enumerate() {
                    let expected = flags & !(if n > 0 { OF_FIRST } else { 0 }) & !(if n < last { OF_LAST } else { 0 });
                    prop_assert_eq!(seen, expected);
                }
            }
        }

        #[test]
        fn nothing_else_is_cut(mut packet in prop::collection::vec(any::<u8>(), 0..100), mtu in 0usize..100) {
            if let Some(first) = packet.first_mut() {
                *first = 0x40 | (*first & 0x2f);
            }
            cut(&packet, mtu, |part| assert!(part.len() <= mtu));
            prop_assert!(!cut(&segment(false, 1, 0x10, 0, &[]), mtu, |_| panic!("it has no data")));
        }
    }
}
