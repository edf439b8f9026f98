//! Finds where the IP packet begins in a captured frame.

/// Supported link types, for messages.
pub(crate) const SUPPORTED: &str =
    "Ethernet (1), PPP (9), raw IP (12, 14, 101, 228, 229), loopback (0, 108), Linux cooked (113, 276)";

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Maximum number of tags that are skipped: 802.1ad allows two.
const MAX_TAGS: usize = 2;

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An IP packet from this position on.
    Ip(usize),
    /// Something else, or too few bytes to decide.
    Other,
    /// The link type is not supported.
    UnknownLinkType,
}

/// Finds the IP packet in the bytes of a frame.
pub(crate) fn content(link_type: i32, bytes: &[u8]) -> Content {
    match link_type {
        1 => ethernet(bytes),
        9 => ppp(bytes),
        12 | 14 | 101 | 228 | 229 => Content::Ip(0),
        // The address family, whose values differ between systems. The IP version is read from the packet itself.
        0 | 108 => Content::Ip(4),
        113 => by_type(bytes, 14, 16),
        276 => by_type(bytes, 0, 20),
        _ => Content::UnknownLinkType,
    }
}

fn type_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn by_type(bytes: &[u8], at: usize, header: usize) -> Content {
    if matches!(type_at(bytes, at), Some(IPV4 | IPV6)) { Content::Ip(header) } else { Content::Other }
}

fn ethernet(bytes: &[u8]) -> Content {
    let tagged = |at: &usize| type_at(bytes, *at).is_some_and(|found| TAGS.contains(&found));
    let mut at = 12;
    for _ in 0..MAX_TAGS {
        if tagged(&at) {
            at += 4;
        }
    }
    by_type(bytes, at, at + 2)
}

/// Reads the protocol numbers of IPv4 and IPv6 (RFC 1332, RFC 5072), which follow address and control if the framing is
/// HDLC's (RFC 1662).
fn ppp(bytes: &[u8]) -> Content {
    let at = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    if matches!(type_at(bytes, at), Some(0x0021 | 0x0057)) { Content::Ip(at + 2) } else { Content::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_passed_over() {
        let mut frame = [0; 40];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        assert_eq!(content(1, &frame), Content::Ip(14));
        frame[12..20].copy_from_slice(&[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2]);
        frame[20..22].copy_from_slice(&[0x86, 0xdd]);
        assert_eq!(content(1, &frame), Content::Ip(22));
    }

    #[test]
    fn ppp_has_two_framings() {
        assert_eq!(content(9, &[0x00, 0x21, 0x45]), Content::Ip(2));
        assert_eq!(content(9, &[0xff, 0x03, 0x00, 0x57, 0x60]), Content::Ip(4));
        // The link control protocol.
        assert_eq!(content(9, &[0xc0, 0x21, 1]), Content::Other);
    }

    #[test]
    fn other_frames_are_no_ip() {
        let mut arp = [0; 40];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(content(1, &arp), Content::Other);
        assert_eq!(content(1, &arp[..9]), Content::Other);
        assert_eq!(content(127, &arp), Content::UnknownLinkType);
    }
}
