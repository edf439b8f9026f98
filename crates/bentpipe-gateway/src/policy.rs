//! The destinations to which a gateway connects on behalf of others, and the sources that it accepts from its peer. It
//! does no I/O.
//!
//! A connection that a gateway terminates and continues does not pass the machine's firewall for forwarded packets, and
//! firewalls behind the machine see it as coming from the machine itself. So each box refuses what its settings do not
//! allow: the near box checks its hosts' requests, the far box its own connections. By default, the box itself is
//! refused, and so are addresses that only its local link can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

mod text;

pub(crate) use text::digits;

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Destinations: a prefix or all addresses, and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// `None`: all addresses of both versions.
    pub prefix: Option<Prefix>,
    /// The ports. All ports are 0 to 65535.
    pub ports: RangeInclusive<u16>,
}

/// Who has an address, according to the machine's routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Another host.
    Others,
    /// This machine.
    Own,
    /// Several hosts: broadcast, multicast, anycast.
    Many,
    /// The machine does not know.
    Unknown,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The settings deny it.
    Denied,
    /// The settings allow only other destinations.
    NotAllowed,
    /// An address of the box itself.
    Own,
    /// An address that does not name a single host beyond the local link: loopback, link-local, multicast, broadcast, unspecified.
    Special,
}

/// The policy in the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Destinations that may be reached. If empty, all may be reached except those refused by default. An entry within
    /// a range refused by default opens it.
    pub allow: Vec<Destination>,
    /// Destinations that may not be reached, even if allowed.
    pub deny: Vec<Destination>,
}

/// Source addresses that a peer may use; `None`: all valid ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(pub Option<Vec<Prefix>>);

/// Refused by default: RFC 6890's "this network", loopback, link-local, multicast, and the limited broadcast address.
const SPECIAL: [Prefix; 9] = [
    v4([0, 0, 0, 0], 8),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([224, 0, 0, 0], 4),
    v4([255, 255, 255, 255], 32),
    v6([0; 8], 128),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Prefix {
    Prefix { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], bits: u8) -> Prefix {
    Prefix { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits }
}

impl Prefix {
    /// The prefix with this many bits; `None` if the address has fewer bits, or has bits set beyond the prefix.
    pub fn new(address: IpAddr, bits: u8) -> Option<Prefix> {
        let prefix = Prefix { address: address.to_canonical(), bits };
        (bits <= prefix.len() && prefix.cut(prefix.address) == prefix.number(prefix.address)).then_some(prefix)
    }

    /// A single address.
    pub fn host(address: IpAddr) -> Prefix {
        let prefix = Prefix { address: address.to_canonical(), bits: 0 };
        Prefix { bits: prefix.len(), ..prefix }
    }

    fn len(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The leading bits of an address of this version.
    fn number(&self, address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    fn cut(&self, address: IpAddr) -> u128 {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
        self.number(address) & mask
    }

    /// True if the prefix contains this address. An IPv4 address must not be in its mapped form.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && self.cut(address) == self.cut(self.address)
    }

    /// True for IPv6.
    pub fn is_v6(&self) -> bool {
        self.address.is_ipv6()
    }

    /// Its IP version (true for IPv6), and its first address as a number.
    pub(crate) fn first(&self) -> (bool, u128) {
        (self.address.is_ipv6(), self.cut(self.address))
    }

    /// Its length in bits.
    pub(crate) fn bits(&self) -> u8 {
        self.bits
    }

    /// True if some address is in both.
    pub fn overlaps(&self, other: &Prefix) -> bool {
        self.lies_in(other) || other.lies_in(self)
    }

    fn lies_in(&self, other: &Prefix) -> bool {
        self.bits >= other.bits && other.contains(self.address)
    }
}

impl Destination {
    fn matches(&self, address: IpAddr, port: u16) -> bool {
        self.ports.contains(&port) && self.prefix.is_none_or(|prefix| prefix.contains(address))
    }

    /// True if it opens a range refused by default, because it lies wholly within it.
    fn opens(&self, refused: &Prefix) -> bool {
        self.prefix.is_some_and(|prefix| prefix.lies_in(refused))
    }
}

/// The IPv4 address embedded in an IPv6 address of a translator or tunnel.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        // RFC 4291 §2.5.5.1, except :: and ::1.
        [0, 0, 0, 0, 0, 0] if (g, h) != (0, 0) && (g, h) != (0, 1) => Some(joined(g, h)),
        // RFC 6052 §2.1; RFC 8215, a network's own translators, with the address in the last 32 bits.
        [0x64, 0xff9b, 0, 0, 0, 0] | [0x64, 0xff9b, 1, ..] => Some(joined(g, h)),
        // RFC 2765 §2.1, IPv4-translated addresses.
        [0, 0, 0, 0, 0xffff, 0] => Some(joined(g, h)),
        // RFC 5214, ISATAP.
        [.., 0 | 0x200, 0x5efe] => Some(joined(g, h)),
        // RFC 4380 §4, Teredo: the client's address, inverted.
        [0x2001, 0, ..] => Some(joined(!g, !h)),
        // RFC 3056 §2.
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

/// The address itself, and the IPv4 address embedded in it, if any.
fn forms(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    // For the kernel, ::ffff:a.b.c.d is already IPv4.
    let address = address.to_canonical();
    let other = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => within(address).map(IpAddr::V4),
    };
    std::iter::once(address).chain(other)
}

impl Policy {
    /// Checks whether connections to `to` are allowed; `whose` is what the routing table says about it.
    ///
    /// # Errors
    /// Returns [`Refusal::Denied`] for a destination in `deny`, [`Refusal::Special`] for a special range that `allow`
    /// does not open, [`Refusal::Own`] for this machine's own addresses, and [`Refusal::NotAllowed`] for a destination
    /// that `allow` does not list.
    pub fn destination(&self, to: SocketAddr, whose: Whose) -> Result<(), Refusal> {
        let (address, port) = (to.ip().to_canonical(), to.port());
        if forms(address).any(|form| self.deny.iter().any(|denied| denied.matches(form, port))) {
            return Err(Refusal::Denied);
        }
        let mut allowed = self.allow.iter().filter(|allowed| allowed.matches(address, port));
        let is_open = |refused: &Prefix| {
            let mut allowed = self.allow.iter().filter(|allowed| allowed.matches(address, port));
            allowed.any(|allowed| allowed.opens(refused))
        };
        for form in forms(address) {
            let special = SPECIAL.iter().find(|special| special.contains(form));
            if special.is_some_and(|special| form != address || !is_open(special)) {
                return Err(Refusal::Special);
            }
        }
        match whose {
            Whose::Others => {}
            Whose::Own if is_open(&Prefix::host(address)) => {}
            Whose::Own => return Err(Refusal::Own),
            Whose::Many | Whose::Unknown => return Err(Refusal::Special),
        }
        if self.allow.is_empty() || allowed.next().is_some() { Ok(()) } else { Err(Refusal::NotAllowed) }
    }
}

impl Sources {
    /// Checks whether the peer may send from `address`.
    ///
    /// # Errors
    /// Returns [`Refusal::NotAllowed`] for an address outside the peer's prefixes. Without prefixes, returns
    /// [`Refusal::Special`] for loopback, multicast and unspecified addresses.
    pub fn permit(&self, address: IpAddr) -> Result<(), Refusal> {
        let address = address.to_canonical();
        match &self.0 {
            Some(sources) if sources.iter().any(|prefix| prefix.contains(address)) => Ok(()),
            Some(_) => Err(Refusal::NotAllowed),
            // Link-local addresses are permitted: hosts on other links may have them.
            None if address.is_loopback() || address.is_multicast() || is_nobodys(address) => Err(Refusal::Special),
            None => Ok(()),
        }
    }

    /// True if the peer may send from the source of an IP packet; false for anything else.
    pub(crate) fn permit_packet(&self, packet: &[u8]) -> bool {
        addresses(packet).is_some_and(|[from, _]| self.permit(from).is_ok())
    }
}

/// Source and destination of an IP packet; `None` for anything else.
pub(crate) fn addresses(packet: &[u8]) -> Option<[IpAddr; 2]> {
    fn both<const N: usize>(packet: &[u8], at: usize) -> Option<[IpAddr; 2]>
    where
        IpAddr: From<[u8; N]>,
    {
        let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<N>()?));
        Some([address(at)?, address(at + N)?])
    }
    match packet.first()? >> 4 {
        4 => both::<4>(packet, 12),
        6 => both::<16>(packet, 8),
        _ => None,
    }
}

fn is_nobodys(address: IpAddr) -> bool {
    SPECIAL[0].contains(address) || address.is_unspecified() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests;
