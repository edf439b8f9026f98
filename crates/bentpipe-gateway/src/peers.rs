//! The peers of a box, and the prefixes behind each.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_engine::wire::scone::Signal;

use crate::hub::{Slot, TerminalConfig};
use crate::policy::{Prefix, Sources};
pub use crate::tunnel::Carries;

/// The hosts behind a peer, and the rate advice for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Destinations behind the peer; `None`: all destinations.
    pub to: Option<Vec<Prefix>>,
    /// Source addresses that the peer may use.
    pub from: Sources,
    /// What is sent to the peer.
    pub carries: Carries,
    /// The rate written into SCONE packets to the peer.
    pub advice: Option<Signal>,
}

impl Reach {
    /// The reach of a hub's peer, which may send only from its prefixes (WireGuard's cryptokey routing).
    pub fn of(prefixes: Vec<Prefix>, carries: Carries) -> Self {
        Reach { from: Sources(Some(prefixes.clone())), to: Some(prefixes), carries, advice: None }
    }
}

/// A peer in the settings.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its name in the log, status and metrics; `None` for an only peer.
    pub name: Option<Arc<str>>,
    /// Its identity, and the link to it.
    pub terminal: TerminalConfig,
    /// The hosts behind it.
    pub reach: Reach,
}

impl PeerConfig {
    /// The only peer of a box, to which everything is sent.
    pub fn alone(tunnel: crate::tunnel::TunnelConfig, link: bentpipe_io::LinkEndpointConfig) -> Self {
        PeerConfig { name: None, terminal: TerminalConfig { tunnel, link, weight: 1 }, reach: Reach::default() }
    }
}

/// Finds the peer behind which an address lies. Prefixes of different peers do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Prefixes by IP version and first address.
    prefixes: BTreeMap<(bool, u128), (Prefix, Slot)>,
    /// The prefixes behind each peer.
    behind: BTreeMap<Slot, Vec<Prefix>>,
    /// The peer behind which all addresses lie, if there is only one.
    all: Option<Slot>,
}

impl Routes {
    /// Replaces the destinations of the peer in `slot`.
    pub(crate) fn set(&mut self, slot: Slot, to: Option<&[Prefix]>) {
        self.remove(slot);
        match to {
            None => self.all = Some(slot),
            Some(prefixes) => {
                self.prefixes.extend(prefixes.iter().map(|prefix| (prefix.first(), (*prefix, slot))));
                self.behind.insert(slot, prefixes.to_vec());
            }
        }
    }

    /// Removes the destinations of the peer in `slot`.
    pub(crate) fn remove(&mut self, slot: Slot) {
        for prefix in self.behind.remove(&slot).unwrap_or_default() {
            // By now it may be another peer's.
            if let Entry::Occupied(entry) = self.prefixes.entry(prefix.first())
                && entry.get().1 == slot
            {
                entry.remove();
            }
        }
        self.all = self.all.filter(|other| *other != slot);
    }

    /// The peer behind which an address lies.
    pub(crate) fn of(&self, address: IpAddr) -> Option<Slot> {
        self.by_prefix(address).or(self.all)
    }

    /// The peer whose prefixes contain an address.
    pub(crate) fn by_prefix(&self, address: IpAddr) -> Option<Slot> {
        let host = Prefix::host(address);
        let before = self.prefixes.range(..=host.first()).next_back();
        before.filter(|(_, (prefix, _))| prefix.overlaps(&host)).map(|(_, (_, slot))| *slot)
    }

    /// The only peer, behind which all addresses lie.
    pub(crate) fn only(&self) -> Option<Slot> {
        self.all
    }

    /// The peer behind which the destination of an IP packet lies.
    pub(crate) fn of_packet(&self, packet: &[u8]) -> Option<Slot> {
        // With a single peer, the packet need not be read.
        if self.prefixes.is_empty() {
            return self.all;
        }
        crate::policy::addresses(packet).and_then(|[_, to]| self.of(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| text.parse().expect("a prefix")).collect()
    }

    fn of(routes: &Routes, address: &str) -> Option<u16> {
        routes.of(address.parse().expect("an address")).map(|slot| slot.0)
    }

    #[test]
    fn an_address_lies_behind_one_peer() {
        let mut routes = Routes::default();
        routes.set(Slot(1), Some(&prefixes(&["10.1.0.0/16", "fd01::/64"])));
        routes.set(Slot(2), Some(&prefixes(&["10.2.0.0/24", "10.2.1.7", "fd01:0:0:1::/64"])));
        for (address, slot) in [
            ("10.1.0.0", Some(1)),
            ("10.1.255.255", Some(1)),
            ("10.2.0.255", Some(2)),
            ("10.2.1.7", Some(2)),
            ("10.2.1.8", None),
            ("10.0.255.255", None),
            ("255.255.255.255", None),
            ("fd01::1", Some(1)),
            ("fd01::1:0:0:0:1", Some(2)),
            ("fd01:0:0:2::", None),
            ("::", None),
        ] {
            assert_eq!(of(&routes, address), slot, "{address}");
        }
        routes.set(Slot(1), Some(&prefixes(&["10.3.0.0/16"])));
        assert_eq!(
            [of(&routes, "10.1.0.1"), of(&routes, "10.3.0.1"), of(&routes, "10.2.1.7")],
            [None, Some(1), Some(2)]
        );
        routes.remove(Slot(2));
        assert_eq!(of(&routes, "10.2.1.7"), None);
        // Two peers exchange their prefixes, one after the other.
        routes.set(Slot(2), Some(&prefixes(&["10.4.0.0/16"])));
        routes.set(Slot(1), Some(&prefixes(&["10.4.0.0/16"])));
        routes.set(Slot(2), Some(&prefixes(&["10.3.0.0/16"])));
        assert_eq!([of(&routes, "10.3.0.1"), of(&routes, "10.4.0.1")], [Some(2), Some(1)]);
        routes.set(Slot(1), Some(&prefixes(&["10.3.0.0/16"])));
        routes.remove(Slot(2));
        routes.set(Slot(4), None);
        assert_eq!([of(&routes, "10.2.1.7"), of(&routes, "10.3.0.1")], [Some(4), Some(1)]);
    }

    #[test]
    fn a_packet_is_read_by_its_destination() {
        let mut routes = Routes::default();
        let mut packet = [0; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[10, 1, 2, 3]);
        assert_eq!(routes.of_packet(&packet), None);
        routes.set(Slot(3), Some(&prefixes(&["10.1.0.0/16"])));
        assert_eq!(routes.of_packet(&packet), Some(Slot(3)));
        assert_eq!(routes.of_packet(&packet[..19]), None, "it is cut off");
        assert_eq!(routes.of_packet(&[]), None);
    }
}
