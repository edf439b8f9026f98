//! The ECN field of IP headers (RFC 3168 §5), in either version.

use super::checksum::Checksum;
use super::ipv4;

/// What an IP header says about ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct,
    /// The transport understands marks: ECT(1).
    Ect1,
    /// The transport understands marks: ECT(0), which senders of RFC 3168 use.
    Ect0,
    /// Congestion experienced: a queue has marked the packet.
    Ce,
}

impl Ecn {
    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// The lower two bits of a type of service or traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// True if a queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// The field of a packet; [`Ecn::NotEct`] if it is not an IP packet.
    pub fn of(packet: &[u8]) -> Ecn {
        match packet {
            [first, class, ..] if first >> 4 == 4 => Ecn::from_bits(*class),
            [first, class, ..] if first >> 4 == 6 => Ecn::from_bits(class >> 4),
            _ => Ecn::NotEct,
        }
    }

    /// Writes the field into the header of an IP packet, and updates the header checksum of version 4. Any other
    /// packet stays as it is.
    pub fn put(self, packet: &mut [u8]) {
        match packet.first().map(|first| first >> 4) {
            Some(4) => {
                let length = usize::from(packet[0] & 0x0f) * 4;
                let Some(header) = packet.get_mut(..length).filter(|header| header.len() >= ipv4::HEADER) else {
                    return;
                };
                header[1] = header[1] & 0xfc | self.bits();
                header[10..12].fill(0);
                let sum = Checksum::new().bytes(header).finish();
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Some(6) if packet.len() >= 2 => packet[1] = packet[1] & 0xcf | self.bits() << 4,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ip::{self, Addresses};
    use super::*;

    #[test]
    fn a_mark_is_read_back_in_both_versions() {
        for [source, destination] in [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]] {
            let parse = |text: &str| text.parse().expect("an address");
            let addresses = Addresses::new(parse(source), parse(destination)).expect("one IP version");
            let mut packet = [0; 60];
            let header = ip::emit(&addresses, ip::TCP, 20, &mut packet).expect("it fits");
            for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::NotEct] {
                ecn.put(&mut packet);
                assert_eq!(Ecn::of(&packet), ecn);
                let parsed = ip::parse(&packet).expect("the checksum is right");
                assert_eq!((parsed.addresses, parsed.protocol, parsed.ecn), (addresses, ip::TCP, ecn));
                assert_eq!(parsed.payload, header..header + 20);
            }
        }
    }

    /// RFC 3168 §5, figure 1.
    #[test]
    fn code_points() {
        assert_eq!([0, 1, 2, 3].map(Ecn::from_bits), [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
        assert_eq!([0, 1, 2, 3].map(|bits| Ecn::from_bits(bits).bits()), [0, 1, 2, 3]);
    }

    /// A header that ends too early, or says that it does, is left alone.
    #[test]
    fn short_packets_stay() {
        for bytes in [&[][..], &[0x45], &[0x45; 19], &[0x41; 20], &[0x60], &[0x10, 0, 0]] {
            let mut packet = bytes.to_vec();
            Ecn::Ce.put(&mut packet);
            assert_eq!(packet, bytes);
        }
    }
}
