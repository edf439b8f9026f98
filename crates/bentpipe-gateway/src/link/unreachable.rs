//! ICMP messages to hosts whose packets no peer can take: the peer has another shape, so the link will not come up by
//! itself. Without them, connections would wait for their timeouts.

use std::net::IpAddr;

use bentpipe_engine::wire::checksum::Checksum;

use crate::policy::addresses;

/// Host unreachable (RFC 792), and address unreachable (RFC 4443 §3.1).
const V4: [u8; 2] = [3, 1];
const V6: [u8; 2] = [1, 3];
const HOPS: u8 = 64;
/// RFC 1812 §4.3.2.3: as much of the packet as fits into 576 bytes.
const MAX_V4: usize = 576;
/// RFC 4443 §2.4 (c): at most the minimum MTU of IPv6.
const MAX_V6: usize = 1280;
/// Next headers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
/// The type of ICMPv6 redirects (RFC 4861 §4.5), which are not among the errors: those are below 128.
const REDIRECT6: u8 = 137;

/// The message to the sender of a packet, as from the packet's destination. `None` if the packet must not be answered
/// (RFC 1122 §3.2.2, RFC 4443 §2.4): it is an ICMP error or redirect, not the first fragment, or not from one host to
/// one host.
pub(super) fn unreachable(packet: &[u8]) -> Option<Vec<u8>> {
    let [from, to] = addresses(packet)?;
    // From 224.0.0.0 on, IPv4 has multicast, class E and broadcast.
    let one = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_unspecified() && v4.octets()[0] < 224,
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unspecified() && !v6.is_multicast(),
    };
    if !one(&from) || !one(&to) {
        return None;
    }
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = usize::from(packet[0] & 15) * 4;
            let is_later_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff != 0;
            // Echo and its reply, timestamps, and so on are no errors.
            let is_error = packet[9] == ICMP && matches!(packet.get(header)?, 3 | 4 | 5 | 11 | 12);
            if is_later_fragment || is_error {
                return None;
            }
            let quoted = &packet[..packet.len().min(MAX_V4 - 28)];
            let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, HOPS, ICMP, 0, 0];
            out.extend(to.octets());
            out.extend(from.octets());
            out.extend([V4[0], V4[1], 0, 0, 0, 0, 0, 0]);
            out.extend(quoted);
            let length = out.len() as u16;
            out[2..4].copy_from_slice(&length.to_be_bytes());
            let sum = Checksum::new().bytes(&out[..20]).finish();
            out[10..12].copy_from_slice(&sum.to_be_bytes());
            let sum = Checksum::new().bytes(&out[20..]).finish();
            out[22..24].copy_from_slice(&sum.to_be_bytes());
            Some(out)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            // With extension headers, an ICMP error is not recognised, so only packets without them are answered.
            let is_plain = matches!(packet[6], 6 | 17 | ICMP6);
            let is_error = packet[6] == ICMP6 && matches!(*packet.get(40)?, ..128 | REDIRECT6);
            if !is_plain || is_error {
                return None;
            }
            let quoted = &packet[..packet.len().min(MAX_V6 - 48)];
            let length = 8 + quoted.len() as u16;
            let mut out = vec![0x60, 0, 0, 0];
            out.extend(length.to_be_bytes());
            out.extend([ICMP6, HOPS]);
            out.extend(to.octets());
            out.extend(from.octets());
            out.extend([V6[0], V6[1], 0, 0, 0, 0, 0, 0]);
            out.extend(quoted);
            // RFC 8200 §8.1: the addresses, the length, and the next header.
            let pseudo = Checksum::new().bytes(&out[8..40]).word(length).word(ICMP6.into());
            let sum = pseudo.bytes(&out[40..]).finish();
            out[42..44].copy_from_slice(&sum.to_be_bytes());
            Some(out)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, body: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + body.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 1, 0, 2, 10, 2, 0, 2]);
        packet.extend(body);
        packet
    }

    fn v6(next: u8, body: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, body.len() as u8, next, 64];
        packet.extend([0xfd; 16]);
        packet.extend([0xfc; 16]);
        packet.extend(body);
        packet
    }

    #[test]
    fn the_sender_learns_what_did_not_arrive() {
        let packet = v4(6, &[7; 20]);
        let out = unreachable(&packet).expect("a SYN is answered");
        assert_eq!(
            (out[9], &out[12..16], &out[16..20], &out[20..22]),
            (1, &[10, 2, 0, 2][..], &[10, 1, 0, 2][..], &V4[..])
        );
        assert_eq!(&out[28..], packet);
        let sum = |bytes: &[u8]| Checksum::new().bytes(bytes).finish();
        assert_eq!((sum(&out[..20]), sum(&out[20..])), (0, 0));
        let packet = v6(17, &[7; 30]);
        let out = unreachable(&packet).expect("a datagram is answered");
        assert_eq!((out[6], &out[8..24], &out[24..40], &out[40..42]), (58, &[0xfc; 16][..], &[0xfd; 16][..], &V6[..]));
        assert_eq!(&out[48..], packet);
        assert_eq!(Checksum::new().bytes(&out[8..40]).word(78).word(58).bytes(&out[40..]).finish(), 0);
    }

    #[test]
    fn what_must_not_be_answered_is_not() {
        let change = |mut packet: Vec<u8>, at: usize, value: u8| {
            packet[at] = value;
            packet
        };
        let [tcp4, tcp6] = [v4(6, &[0; 20]), v6(6, &[0; 20])];
        for (what, packet, is_answered) in [
            ("an echo request", v4(1, &[8, 0, 0, 0, 0, 0, 0, 0]), true),
            ("an ICMP error", v4(1, &[3, 1, 0, 0, 0, 0, 0, 0]), false),
            ("ICMP without a type", v4(1, &[]), false),
            ("a later fragment", change(tcp4.clone(), 7, 1), false),
            ("to a multicast address", change(tcp4.clone(), 16, 224), false),
            ("from nobody", [&tcp4[..12], &[0; 4], &tcp4[16..]].concat(), false),
            ("from a loopback address", change(tcp4.clone(), 12, 127), false),
            ("from class E", change(tcp4.clone(), 12, 240), false),
            ("an echo request, IPv6", v6(58, &[128, 0, 0, 0, 0, 0, 0, 0]), true),
            ("an ICMPv6 error", v6(58, &[1, 3, 0, 0, 0, 0, 0, 0]), false),
            ("an ICMPv6 redirect", v6(58, &[137, 0, 0, 0, 0, 0, 0, 0]), false),
            ("ICMPv6 without a type", v6(58, &[]), false),
            ("from the loopback address, IPv6", [&tcp6[..8], &[0; 15], &[1], &tcp6[24..]].concat(), false),
            ("an extension header", v6(44, &[0; 8]), false),
            ("to a multicast address, IPv6", change(tcp6.clone(), 24, 0xff), false),
            ("cut off", tcp4[..19].to_vec(), false),
            ("cut off, IPv6", tcp6[..39].to_vec(), false),
            ("nothing", Vec::new(), false),
        ] {
            assert_eq!(unreachable(&packet).is_some(), is_answered, "{what}");
        }
        let long =
            [unreachable(&[v4(6, &[0; 20]), vec![0; 1480]].concat()), unreachable(&[tcp6, vec![0; 1480]].concat())];
        assert_eq!(long.map(|out| out.map(|out| out.len())), [Some(MAX_V4), Some(MAX_V6)]);
    }
}
