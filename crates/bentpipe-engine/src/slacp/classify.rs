//! The channel of a packet, by DSCP (RFC 2474), protocol and ports: the first matching rule decides. Also its flow:
//! packets of a flow keep their order.

use core::hash::Hasher;

use crate::wire::ip;

/// The fields of a packet's headers that rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Protocol number of IP: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Source port, if the protocol has ports.
    pub source_port: Option<u16>,
    /// Destination port, if the protocol has ports.
    pub destination_port: Option<u16>,
    /// True for a bare ACK of TCP, which may echo marks (RFC 3168, RFC 9768). The next ACK replaces it, so it needs neither retransmission
    /// nor order.
    pub bare_ack: bool,
    /// The acknowledgement number of a bare ACK whose only options are timestamps, if it has any options. A later ACK
    /// of the same flow then replaces it (RFC 3449 §5.2.1). An ACK with SACK blocks, MPTCP options or an echo of marks
    /// is not replaced, because a later one may not repeat them.
    pub acknowledges: Option<u32>,
}

/// A rule: every field that it sets must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The code point.
    pub dscp: Option<u8>,
    /// The protocol.
    pub protocol: Option<u8>,
    /// A port, at either end.
    pub port: Option<u16>,
    /// True: bare ACKs. False: all other packets.
    pub bare_ack: Option<bool>,
    /// Maximum length of a packet in bytes: separates small packets (acknowledgements, voice) from large ones.
    pub max_bytes: Option<u32>,
}

impl Rule {
    /// True if a packet of `len` bytes with these headers matches.
    pub fn fits(&self, headers: &Headers, len: u32) -> bool {
        self.dscp.is_none_or(|dscp| dscp == headers.dscp)
            && self.protocol.is_none_or(|protocol| protocol == headers.protocol)
            && self.port.is_none_or(|port| [headers.source_port, headers.destination_port].contains(&Some(port)))
            && self.bare_ack.is_none_or(|bare| bare == headers.bare_ack)
            && self.max_bytes.is_none_or(|max| len <= max)
    }
}

/// The channel of a packet: that of the first matching rule, otherwise `default`.
pub fn classify(rules: &[(Rule, u8)], default: u8, headers: &Headers, len: u32) -> u8 {
    rules.iter().find(|(rule, _)| rule.fits(headers, len)).map_or(default, |&(_, channel)| channel)
}

/// Reads the headers of an IP packet. Returns them and a number for the flow: a hash of addresses, protocol and ports.
///
/// Fragments (of which only the first has ports) and protocols without known ports are hashed by addresses alone.
/// Everything that is not IP forms one flow. Two flows with the same number share one order, which does no harm.
pub fn read(packet: &[u8]) -> (Headers, u64) {
    let (headers, flow) = read_with(packet, None);
    (headers, flow.flow)
}

/// Which of a packet's addresses belongs to the host on this side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// Packets come from the host.
    Source,
    /// Packets go to the host.
    Destination,
}

/// A keyed hash of flows and hosts. The key is secret, so that an attacker cannot construct flows that collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    /// The secret, for SipHash (Aumasson and Bernstein 2012).
    pub key: [u64; 2],
    /// Which address is the host's.
    pub host: HostAddress,
}

/// Numbers for a packet's flow and host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The flow's number, as [`read`] returns it.
    pub flow: u64,
    /// The host's address; for IPv6 its /64 prefix. 0 without a [`FlowHash`].
    pub host: u64,
}

/// Like [`read`], but with a secret hash if there is one.
pub fn read_with(packet: &[u8], secret: Option<&FlowHash>) -> (Headers, Flow) {
    let unknown = Headers {
        dscp: 0,
        protocol: 0,
        source_port: None,
        destination_port: None,
        bare_ack: false,
        acknowledges: None,
    };
    let Some(seen) = ip::peek(packet) else { return (unknown, Flow::default()) };
    let ports = seen.ports;
    let bare_ack = if seen.protocol == ip::TCP && ports.is_some() { bare_ack(packet) } else { None };
    let headers = Headers {
        dscp: seen.dscp,
        protocol: seen.protocol,
        source_port: ports.map(|ports| ports.source),
        destination_port: ports.map(|ports| ports.destination),
        bare_ack: bare_ack.is_some(),
        acknowledges: bare_ack.filter(|header| header[FLAGS] == ACK).and_then(acknowledged),
    };
    let addresses = &packet[seen.addresses];
    let of_ports = ports.map(|ports| {
        let ([a, b], [c, d]) = (ports.source.to_be_bytes(), ports.destination.to_be_bytes());
        [seen.protocol, a, b, c, d]
    });
    let pieces = [addresses, of_ports.as_ref().map_or(&[][..], |bytes| &bytes[..])];
    let Some(secret) = secret else {
        let bytes = pieces.into_iter().flatten();
        let flow = bytes.fold(FNV_OFFSET, |flow, &byte| (flow ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        return (headers, Flow { flow, host: 0 });
    };
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    let host = if secret.host == HostAddress::Source { source } else { destination };
    // An IPv6 host may use any address of its /64.
    let host = &host[..host.len().min(8)];
    (headers, Flow { flow: secret.hash(&pieces), host: secret.hash(&[host]) })
}

impl FlowHash {
    // The standard library's keyed SipHash. It is deprecated, but its successor takes no key, and deprecated items are not removed.
    #[expect(deprecated)]
    fn hash(&self, pieces: &[&[u8]]) -> u64 {
        let mut hasher = core::hash::SipHasher::new_with_keys(self.key[0], self.key[1]);
        pieces.iter().for_each(|bytes| hasher.write(bytes));
        hasher.finish()
    }
}

/// Bytes of TCP's header without options, and the position of its flags.
const TCP_HEADER: usize = 20;
const FLAGS: usize = 13;
/// The flag ACK, and those of ECN: CWR and ECE.
const ACK: u8 = 0x10;
const ECN: u8 = 0xc0;

/// The TCP header of a packet that has no flags but ACK and those of ECN and carries no payload.
fn bare_ack(packet: &[u8]) -> Option<&[u8]> {
    let field = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]) as usize);
    let (start, end) = match packet[0] >> 4 {
        4 => ((packet[0] & 15) as usize * 4, field(2)?),
        _ => (40, field(4)? + 40),
    };
    let header = packet.get(start..end).filter(|header| header.len() >= TCP_HEADER)?;
    (header[FLAGS] & !ECN == ACK && (header[12] >> 4) as usize * 4 == header.len()).then_some(header)
}

/// The acknowledgement number of a bare ACK with this header, if its only options are timestamps.
fn acknowledged(header: &[u8]) -> Option<u32> {
    // RFC 9293 §3.1: end of list and no-operation have no length; RFC 7323 §3.2: timestamps have ten bytes.
    const END: u8 = 0;
    const NOP: u8 = 1;
    const TIMESTAMPS: u8 = 8;
    let mut options = &header[TCP_HEADER..];
    while let Some((&kind, rest)) = options.split_first() {
        options = match kind {
            END => &[],
            NOP => rest,
            TIMESTAMPS => options.get(10..)?,
            _ => return None,
        };
    }
    Some(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo): the same number on every machine.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ipv4, ipv6};

    fn v4(protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let header = ipv4::Header {
            tos: 46 << 2 | 1,
            ..ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), protocol)
        };
        let mut packet = vec![0; 28];
        ipv4::emit(&header, 8, &mut packet).expect("it fits");
        packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    fn v6(next_header: u8, ports: [u16; 2]) -> Vec<u8> {
        let header =
            ipv6::Header { traffic_class: 46 << 2, ..ipv6::Header::new([1; 16].into(), [2; 16].into(), next_header) };
        let mut packet = vec![0; 48];
        ipv6::emit(&header, 8, &mut packet).expect("it fits");
        packet[40..42].copy_from_slice(&ports[0].to_be_bytes());
        packet[42..44].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    #[test]
    fn headers_of_either_version() {
        let expected = Headers {
            dscp: 46,
            protocol: 6,
            source_port: Some(80),
            destination_port: Some(5001),
            bare_ack: false,
            acknowledges: None,
        };
        for packet in [v4(6, [80, 5001]), v6(6, [80, 5001])] {
            assert_eq!(read(&packet).0, expected);
        }
        let without = Headers { protocol: 1, source_port: None, destination_port: None, ..expected };
        assert_eq!(read(&v4(1, [80, 5001])).0, without, "ICMP has no ports");
        assert_eq!(read(&[]).1, read(&[0xff; 60]).1, "no IP packets");
    }

    #[test]
    fn acknowledgements_without_data() {
        for (header, mut packet) in [(20, v4(6, [80, 5001])), (40, v6(6, [80, 5001]))] {
            let length = if header == 20 { 2 } else { 4 };
            let mut set = |payload: u16, flags| {
                let total = if header == 20 { 40 + payload } else { 20 + payload };
                packet.resize(header + 20 + payload as usize, 0);
                packet[length..length + 2].copy_from_slice(&total.to_be_bytes());
                (packet[header + 12], packet[header + 13]) = (5 << 4, flags);
                read(&packet).0.bare_ack
            };
            assert!(set(0, 0x10));
            assert!(set(0, 0x50) && set(0, 0xd0), "with an echo of marks, also by accurate ECN");
            assert!(!set(1, 0x10) && !set(0, 0x12) && !set(0, 0x11) && !set(0, 0x40), "data, SYN, FIN, no ACK");
        }
    }

    #[test]
    fn what_a_bare_acknowledgement_says() {
        let mut packet = v4(6, [80, 5001]);
        let mut says = |options: &[u8]| {
            let header = 20 + options.len();
            packet.resize(20 + header, 0);
            packet[2..4].copy_from_slice(&(20 + header as u16).to_be_bytes());
            packet[28..32].copy_from_slice(&0xfffe_1234_u32.to_be_bytes());
            (packet[32], packet[33]) = ((header / 4) as u8 * 16, 0x10);
            packet[40..].copy_from_slice(options);
            let headers = read(&packet).0;
            assert!(headers.bare_ack);
            headers.acknowledges
        };
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!((says(&[]), says(&timestamps)), (Some(0xfffe_1234), Some(0xfffe_1234)));
        assert_eq!(says(&[1, 0, 5, 5]), Some(0xfffe_1234), "behind the end of the list");
        let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!((says(&sack), says(&[30, 4, 0, 0]), says(&[1, 1, 8, 10])), (None, None, None));
    }

    /// Marks that an ACK echoes do not make it anything else, but it is not replaced by a later one.
    #[test]
    fn an_echo_of_marks_is_not_replaced() {
        let says = |flags| {
            let mut packet = v4(6, [80, 5001]);
            packet.resize(40, 0);
            packet[2..4].copy_from_slice(&40_u16.to_be_bytes());
            (packet[32], packet[33]) = (5 << 4, flags);
            let headers = read(&packet).0;
            (headers.bare_ack, headers.acknowledges.is_some())
        };
        assert_eq!([0x10, 0x50, 0xd0].map(says), [(true, true), (true, false), (true, false)]);
    }

    #[test]
    fn flows_by_five_tuple() {
        for packet in [v4, v6] {
            let flow = |protocol, ports| read(&packet(protocol, ports)).1;
            assert_eq!(flow(6, [80, 5001]), flow(6, [80, 5001]));
            assert_ne!(flow(6, [80, 5001]), flow(6, [80, 5002]));
            assert_ne!(flow(6, [80, 5001]), flow(6, [5001, 80]));
            assert_ne!(flow(6, [80, 5001]), flow(17, [80, 5001]));
            // Without ports, the addresses alone decide.
            assert_eq!(flow(1, [1, 2]), flow(50, [3, 4]));
        }
        assert_ne!(read(&v4(1, [0, 0])).1, read(&v6(1, [0, 0])).1);
    }

    /// Ports that collide under one secret do not collide under another, and hosts are addresses on one side.
    #[test]
    fn a_secret_decides_what_falls_together() {
        let secret = |key, host| FlowHash { key: [key, 7], host };
        let flow = |key, ports| read_with(&v4(6, ports), Some(&secret(key, HostAddress::Source))).1.flow;
        let low = |key| (0..65_535).filter(|&port| flow(key, [port, 80]) % 4096 == 1).collect::<Vec<_>>();
        let (one, other) = (low(1), low(2));
        // 16 of 65 535 are expected by chance.
        assert!(one.len() > 4 && other.len() > 4);
        assert!(one.iter().filter(|port| other.contains(port)).count() <= 1, "{one:?} {other:?}");
        assert_eq!(flow(1, [80, 5001]), flow(1, [80, 5001]));
        for packet in [v4, v6] {
            let host = |packet: &[u8], host| read_with(packet, Some(&secret(1, host))).1.host;
            let (mut near, mut far) = (packet(6, [1, 2]), packet(6, [3, 4]));
            assert_eq!(host(&near, HostAddress::Source), host(&far, HostAddress::Source));
            assert_ne!(host(&near, HostAddress::Source), host(&near, HostAddress::Destination));
            // The last byte of the source address.
            let at = if near[0] >> 4 == 4 { 15 } else { 23 };
            (near[at], far[at]) = (9, 10);
            let same = host(&near, HostAddress::Source) == host(&far, HostAddress::Source);
            assert_eq!(same, at == 23, "of IPv6 a network of 64 bits");
        }
    }

    #[test]
    fn fragments_stay_together() {
        let mut first = v4(17, [1, 2]);
        first[6] = 0x20;
        let mut second = v4(17, [0xdead, 0xbeef]);
        second[7] = 0x10;
        assert_eq!(read(&first).1, read(&second).1);
        assert_eq!(read(&first).0.source_port, None);
        // In version 6, an extension header marks a fragment.
        assert_eq!(read(&v6(44, [0x1100, 0])).1, read(&v6(44, [0x1100, 8])).1);
    }

    #[test]
    fn short_packets_have_no_ports() {
        for packet in [v4(6, [80, 5001]), v6(6, [80, 5001])] {
            for length in 0..packet.len() {
                let _ = read(&packet[..length]);
            }
            let header = packet.len() - 8;
            assert_eq!(read(&packet[..header + 3]).0.source_port, None);
        }
    }

    #[test]
    fn the_first_rule_that_fits() {
        // Expedited forwarding (RFC 3246) is code point 46.
        let voice = Rule { dscp: Some(46), ..Rule::default() };
        let names = Rule { protocol: Some(17), port: Some(53), ..Rule::default() };
        let small = Rule { max_bytes: Some(100), ..Rule::default() };
        let rules = [(voice, 1), (names, 2), (small, 3)];
        let udp = |dscp, port| Headers {
            dscp,
            protocol: 17,
            source_port: Some(4000),
            destination_port: Some(port),
            bare_ack: false,
            acknowledges: None,
        };
        assert_eq!(classify(&rules, 0, &udp(46, 53), 60), 1);
        assert_eq!(classify(&rules, 0, &udp(0, 53), 60), 2);
        assert_eq!(classify(&rules, 0, &udp(0, 54), 60), 3);
        assert_eq!(classify(&rules, 0, &udp(0, 54), 101), 0);
        let tcp = Headers { protocol: 6, ..udp(0, 53) };
        assert_eq!(classify(&rules, 0, &tcp, 101), 0);
        let acks = [(Rule { bare_ack: Some(true), ..Rule::default() }, 4)];
        assert_eq!(classify(&acks, 0, &tcp, 40), 0);
        assert_eq!(classify(&acks, 0, &Headers { bare_ack: true, ..tcp }, 40), 4);
    }
}
