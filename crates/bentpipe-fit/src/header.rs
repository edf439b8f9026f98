//! TCP segments as found in captures: truncated after the headers, merged by offloads, with checksums not yet computed.
//!
//! [`bentpipe_engine::wire`] parses what an endpoint receives: whole packets with correct checksums. Sent packets are
//! often captured before the network card has computed their checksums, and are as long as the card accepts them. So
//! lengths are taken from the IP header or, where that says 0 (segments above 64 kB), from the capture. Checksums are
//! not verified.

use std::net::{Ipv4Addr, Ipv6Addr};

use bentpipe_engine::wire::ip::{Addresses, Ports, TCP};

/// IPv6 extension headers that are skipped: hop-by-hop, routing, destination (RFC 8200).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// Maximum number of consecutive extension headers.
const MAX_EXTENSIONS: usize = 8;
/// Longest packet: Linux joins at most eight times what IP's length field holds (`GSO_MAX_SIZE`).
const MAX_LENGTH: usize = 8 * 65_536;
/// Longest TCP header.
pub(crate) const MAX_TCP: usize = 60;
/// SACK blocks that fit the options.
const MAX_SACK: usize = 4;

/// The fields read from a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) addresses: Addresses,
    pub(crate) ports: Ports,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    /// The window as on the wire, unscaled.
    pub(crate) window: u16,
    /// Bytes of TCP payload.
    pub(crate) payload: u32,
    /// Bytes of the IP and TCP headers.
    pub(crate) headers: u32,
    /// IPv4 identification; 0 for IPv6.
    pub(crate) id: u16,
    pub(crate) options: Options,
    /// True if the capture ends within the options.
    pub(crate) is_cut: bool,
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    /// SACK-permitted, in a SYN.
    pub(crate) permits_sack: bool,
    /// Value and echo.
    pub(crate) timestamps: Option<(u32, u32)>,
    blocks: [(u32, u32); MAX_SACK],
    count: usize,
}

impl Options {
    #[cfg(test)]
    pub(crate) fn with_block(block: (u32, u32)) -> Self {
        let mut options = Options { count: 1, ..Options::default() };
        options.blocks[0] = block;
        options
    }

    #[cfg(test)]
    pub(crate) fn with_scale(scale: u8) -> Self {
        Options { scale: Some(scale), ..Options::default() }
    }

    /// SACK blocks in their order.
    pub(crate) fn sack(&self) -> &[(u32, u32)] {
        &self.blocks[..self.count]
    }
}

impl Header {
    pub(crate) const SYN: u8 = 2;
    pub(crate) const ACK: u8 = 16;

    /// Bytes of an IP packet that hold the longest options.
    pub(crate) fn max_headers(&self) -> usize {
        self.addresses.header_len() + MAX_TCP
    }

    /// Bytes of the options of IP and TCP, which a full segment has less data for (RFC 9293 §3.7.1).
    pub(crate) fn options_len(&self) -> u32 {
        let fixed = self.addresses.header_len() as u32 + 20;
        self.headers.saturating_sub(fixed)
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Why a packet is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// Not TCP.
    NotTcp,
    /// A fragment: only the first one has ports.
    Fragment,
    /// The capture ends within the headers.
    Short,
    /// Contradictory lengths.
    Damaged,
}

/// The IP part: addresses, position of the TCP header, length of the packet, identification.
struct Ip {
    addresses: Addresses,
    payload: usize,
    length: usize,
    id: u16,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// Reads an IP packet of which `bytes` were captured and that was `line` bytes long.
pub(crate) fn parse(bytes: &[u8], line: usize) -> Result<Header, Skip> {
    let ip = match bytes.first().ok_or(Skip::Short)? >> 4 {
        4 => ipv4(bytes)?,
        6 => ipv6(bytes)?,
        _ => return Err(Skip::NotTcp),
    };
    // 0 means more than the field can express.
    let length = if ip.length == 0 { line } else { ip.length };
    if length > line || length > MAX_LENGTH {
        return Err(Skip::Damaged);
    }
    let tcp = bytes.get(ip.payload..).and_then(|rest| rest.first_chunk::<20>()).ok_or(Skip::Short)?;
    let own = usize::from(tcp[12] >> 4) * 4;
    let headers = ip.payload + own;
    if own < 20 || headers > length {
        return Err(Skip::Damaged);
    }
    let options = &bytes[ip.payload + 20..headers.min(bytes.len())];
    let word = |at| u32_at(tcp, at).expect("20 bytes");
    Ok(Header {
        addresses: ip.addresses,
        ports: Ports {
            source: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination: u16::from_be_bytes([tcp[2], tcp[3]]),
        },
        seq: word(4),
        ack: word(8),
        flags: tcp[13],
        window: u16::from_be_bytes([tcp[14], tcp[15]]),
        payload: u32::try_from(length - headers).map_err(|_| Skip::Damaged)?,
        headers: headers as u32,
        id: ip.id,
        options: read_options(options),
        is_cut: bytes.len() < headers,
    })
}

fn ipv4(bytes: &[u8]) -> Result<Ip, Skip> {
    let header = bytes.first_chunk::<20>().ok_or(Skip::Short)?;
    let payload = usize::from(header[0] & 15) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    match (header[9], fragment, payload) {
        (TCP, true, _) => return Err(Skip::Fragment),
        (TCP, false, 20..) => {}
        (TCP, false, _) => return Err(Skip::Damaged),
        _ => return Err(Skip::NotTcp),
    }
    let address = |at| Ipv4Addr::from_bits(u32_at(header, at).expect("20 bytes"));
    Ok(Ip {
        addresses: Addresses::V4 { source: address(12), destination: address(16) },
        payload,
        length: usize::from(u16::from_be_bytes([header[2], header[3]])),
        id: u16::from_be_bytes([header[4], header[5]]),
    })
}

fn ipv6(bytes: &[u8]) -> Result<Ip, Skip> {
    let header = bytes.first_chunk::<40>().ok_or(Skip::Short)?;
    let (mut protocol, mut payload) = (header[6], 40);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&protocol) {
            break;
        }
        let next = bytes.get(payload..payload + 2).ok_or(Skip::Short)?;
        protocol = next[0];
        payload += (usize::from(next[1]) + 1) * 8;
    }
    match protocol {
        TCP => {}
        44 => return Err(Skip::Fragment),
        _ => return Err(Skip::NotTcp),
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
        Ipv6Addr::from(octets)
    };
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    Ok(Ip {
        addresses: Addresses::V6 { source: address(8), destination: address(24) },
        payload,
        length: if length == 0 { 0 } else { 40 + length },
        id: 0,
    })
}

/// Reads the options as far as their lengths are plausible (RFC 9293 §3.1, RFC 7323, RFC 2018).
fn read_options(mut rest: &[u8]) -> Options {
    let mut options = Options::default();
    while let [kind, after @ ..] = rest {
        match kind {
            0 => break,
            1 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let Some(length) = after.first().map(|&length| usize::from(length)).filter(|&length| length >= 2) else {
            break;
        };
        let Some((option, next)) = rest.split_at_checked(length) else { break };
        let body = &option[2..];
        match (kind, body.len()) {
            (2, 2) => options.mss = u16_at(body, 0),
            (4, 0) => options.permits_sack = true,
            (3, 1) => options.scale = Some(body[0].min(14)),
            (8, 8) => options.timestamps = u32_at(body, 0).zip(u32_at(body, 4)),
            (5, _) => {
                for (slot, block) in options.blocks.iter_mut().zip(body.chunks_exact(8)) {
                    *slot = (u32_at(block, 0).expect("8 bytes"), u32_at(block, 4).expect("8 bytes"));
                }
                options.count = (body.len() / 8).min(MAX_SACK);
            }
            _ => {}
        }
        rest = next;
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet of `length` bytes in all, with TCP ports 1 and 2, sequence number 3, acknowledgement 4, and these
    /// options.
    fn packet(length: u16, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        bytes.extend([(5 + options.len() as u8 / 4) << 4, 0x10, 0, 9, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes
    }

    #[test]
    fn a_packet_cut_off_after_its_headers() {
        let sack = [1, 1, 5, 10, 0, 0, 0, 6, 0, 0, 0, 8];
        let header = parse(&packet(1500, &sack), 1500).expect("whole headers");
        assert_eq!((header.seq, header.ack, header.window, header.id), (3, 4, 9, 7));
        assert_eq!((header.headers, header.payload), (52, 1448));
        assert_eq!(header.options.sack(), [(6, 8)]);
        assert_eq!(parse(&packet(1500, &sack)[..39], 1500), Err(Skip::Short));
        let cut = parse(&packet(1500, &sack)[..45], 1500).expect("all but the options");
        assert!(cut.is_cut && !header.is_cut && cut.options.sack().is_empty());
        assert_eq!((cut.seq, cut.ack, cut.payload, cut.max_headers()), (3, 4, 1448, 80));
    }

    #[test]
    fn a_segment_above_64_kb_has_the_length_of_the_capture() {
        assert_eq!(parse(&packet(0, &[]), 100_040).expect("long").payload, 100_000);
    }

    #[test]
    fn lengths_that_contradict_are_refused() {
        // Longer than the line allows, and shorter than its own headers.
        assert_eq!(parse(&packet(1500, &[]), 1499), Err(Skip::Damaged));
        assert_eq!(parse(&packet(39, &[]), 60), Err(Skip::Damaged));
        let mut other = packet(40, &[]);
        other[9] = 17;
        assert_eq!(parse(&other, 40), Err(Skip::NotTcp));
        other[9] = 6;
        other[6] = 0x20;
        assert_eq!(parse(&other, 40), Err(Skip::Fragment));
    }

    /// An IPv6 packet: a hop-by-hop header of 16 bytes, then the TCP header of [`packet`], and 4 bytes of data.
    #[test]
    fn ipv6_and_its_extension_headers() {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 40, 0, 64];
        bytes.extend([7; 32]);
        bytes.extend([6, 1]);
        bytes.extend([0; 14]);
        bytes.extend(&packet(44, &[])[20..]);
        bytes.extend([1; 4]);
        let header = parse(&bytes, bytes.len()).expect("a segment");
        assert_eq!((header.seq, header.headers, header.payload), (3, 76, 4));
        // Longer than the length field can say: the line's length counts.
        bytes[5] = 0;
        assert_eq!(parse(&bytes, 100_076).expect("a jumbogram").payload, 100_000);
    }

    #[test]
    fn options_as_they_are_used() {
        let blocks = [1, 1, 5, 18, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(parse(&packet(60, &blocks), 60).expect("two blocks").options.sack(), [(6, 8), (1, 2)]);
        // RFC 7323 §2.3: a shift above 14 counts as 14.
        let scaled = |shift| parse(&packet(44, &[1, 3, 3, shift]), 44).expect("a scale").options.scale;
        assert_eq!([scaled(7), scaled(14), scaled(15)], [Some(7), Some(14), Some(14)]);
    }

    #[test]
    fn options_with_impossible_lengths_end_the_list() {
        let header = parse(&packet(44, &[2, 4, 5, 0xb4]), 44).expect("an MSS");
        assert_eq!(header.options.mss, Some(1460));
        let header = parse(&packet(44, &[8, 0, 2, 4]), 44).expect("no options");
        assert_eq!(header.options, Options::default());
    }
}
