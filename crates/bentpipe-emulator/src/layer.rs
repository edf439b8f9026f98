//! Link layers on emulated links: S-LACP with bytes, with an end on each side of a pair of links.
//!
//! A layer carries only bytes, so a packet's path must be found again behind it: if several paths use the layer, by the
//! packet's addresses.

use std::collections::BTreeMap;

use bentpipe_engine::network::EndId;
use bentpipe_engine::probe::Who;
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ip;
use bentpipe_engine::wire::slacp::Integrity;
use bentpipe_engine::{Context, NoProbe, Step};
use bentpipe_io::{Emitted, LinkEndpoint, LinkEndpointConfig};
use bentpipe_study::scenario::{LayerSpec, LinkSpec};

use super::Unsupported;

/// One end of a layer.
#[derive(Debug)]
pub(super) struct LayerEnd {
    endpoint: LinkEndpoint,
    /// Maximum length of a packet.
    mtu: usize,
    /// Number of packets that were longer.
    too_long: u64,
    wakes: Option<Time>,
    /// When the next poll was scheduled.
    since: Time,
    /// Destinations of the packets that this end delivers.
    destinations: Destinations,
    buffer: Vec<u8>,
}

impl LayerEnd {
    /// The end that sends on the first or the second link of the layer.
    pub(super) fn new(layer: &LayerSpec, links: &[LinkSpec], side: usize) -> Result<Self, Unsupported> {
        let refuse = |key: &str, what: &str| {
            Err(Unsupported { key: format!("layers.{}.{key}", layer.name), what: what.to_owned(), expected: "false" })
        };
        if layer.weightless {
            return refuse("weightless", "frames with bytes are not weightless");
        }
        if layer.hears_damage {
            return refuse("hears_damage", "damaged frames do not arrive in real time");
        }
        let (rules, default_channel) = layer.rules();
        // Only the gateway uses compressed headers and frames without CRC; here, sizes are those of the simulation.
        let endpoint = LinkEndpoint::new(&LinkEndpointConfig {
            layer: layer.end(links, side),
            rules,
            default_channel,
            flows: None,
            max_packet: LinkEndpoint::MAX_PACKET,
            compresses: false,
            integrity: Integrity::Crc,
        });
        let max = u32::from(LinkEndpoint::MAX_PACKET);
        let mtu = links[layer.over[side].index()].config.mtu.map_or(max, |mtu| mtu.min(max)) as usize;
        let buffer = vec![0; endpoint.max_frame()];
        let (wakes, since) = (None, Time::ZERO);
        Ok(LayerEnd { endpoint, mtu, too_long: 0, wakes, since, destinations: Destinations::default(), buffer })
    }

    /// When to poll this end, and when that was scheduled.
    pub(super) fn head(&self) -> Option<(Time, Time)> {
        self.wakes.map(|wakes| (wakes, self.since))
    }

    /// Handles a packet from above. Returns false if it is too long. Poll afterwards.
    pub(super) fn send(&mut self, now: Time, packet: &[u8]) -> bool {
        if packet.len() > self.mtu {
            self.too_long += 1;
            return false;
        }
        self.asks(now);
        self.endpoint.send(&mut context(now, &mut NoProbe), packet).is_ok()
    }

    /// Handles a frame from the far end. Poll afterwards.
    pub(super) fn receive(&mut self, now: Time, frame: &[u8]) {
        self.asks(now);
        // A frame with a flipped bit (`corrupt`) is refused, and counts as lost.
        let _ = self.endpoint.receive(&mut context(now, &mut NoProbe), frame);
    }

    fn asks(&mut self, now: Time) {
        (self.wakes, self.since) = (Some(now), now);
    }

    /// The output at `now`: the bytes of a frame for the far end, or of a packet from the far end.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Emitted, &[u8])> {
        match self
            .endpoint
            .poll(&mut context(now, &mut NoProbe), &mut self.buffer)
            .expect("the buffer has room for every frame")
        {
            Step::Wait(until) => {
                (self.wakes, self.since) = (until, now);
                None
            }
            Step::Do(emitted) => {
                let (Emitted::Frame(length) | Emitted::Packet(length)) = emitted;
                Some((emitted, &self.buffer[..length]))
            }
        }
    }

    /// Stores the destination of a packet that this end will deliver.
    pub(super) fn remember(&mut self, packet: &[u8], to: EndId) {
        self.destinations.remember(addresses(packet), to);
    }

    /// The destination of a packet that this end delivers.
    pub(super) fn bound_for(&self, packet: &[u8]) -> Option<EndId> {
        self.destinations.of(addresses(packet))
    }

    /// Number of packets that were too long. They never reached the link.
    pub(super) fn too_long(&self) -> u64 {
        self.too_long
    }

    pub(super) fn stats(&self) -> Stats {
        self.endpoint.layer_stats()
    }

    /// Number of packets not known to have arrived.
    pub(super) fn in_flight(&self) -> usize {
        self.endpoint.unconfirmed()
    }
}

/// Number of pairs of addresses after which those that do not return are forgotten: the outside has any number of addresses, but
/// those of the packets on the way are not so many.
const MAX_PAIRS: usize = 1 << 16;

/// The destinations of packets by their addresses: the first one, and a table as soon as there is another.
#[derive(Debug, Default)]
struct Destinations {
    first: Option<EndId>,
    /// The pairs seen last, at most [`MAX_PAIRS`].
    recent: BTreeMap<Vec<u8>, EndId>,
    /// As many from before them.
    older: BTreeMap<Vec<u8>, EndId>,
}

impl Destinations {
    fn remember(&mut self, addresses: &[u8], to: EndId) {
        let first = *self.first.get_or_insert(to);
        if to == first && self.recent.is_empty() || self.recent.get(addresses) == Some(&to) {
            return;
        }
        if self.recent.len() == MAX_PAIRS {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(addresses.to_vec(), to);
    }

    fn of(&self, addresses: &[u8]) -> Option<EndId> {
        self.recent.get(addresses).or_else(|| self.older.get(addresses)).copied().or(self.first)
    }
}

fn context(now: Time, probe: &mut NoProbe) -> Context<'_, NoProbe> {
    Context { now, who: Who(0), probe }
}

/// The source and destination addresses; empty if it is not an IP packet.
fn addresses(packet: &[u8]) -> &[u8] {
    ip::peek(packet).map_or(&[], |seen| &packet[seen.addresses])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each address of the outside left an entry for ever.
    #[test]
    fn a_scan_of_the_outside_does_not_fill_the_memory() {
        let pair = |n: usize| (n as u64).to_be_bytes();
        let mut destinations = Destinations::default();
        destinations.remember(b"to the first", EndId(1));
        destinations.remember(b"to another", EndId(2));
        for n in 0..3 * MAX_PAIRS {
            destinations.remember(&pair(n), EndId(n as u32 % 3));
            destinations.remember(b"to another", EndId(2));
            assert_eq!(destinations.of(&pair(n)), Some(EndId(n as u32 % 3)));
        }
        // Those of the packets on the way are known, also around a change of tables.
        assert_eq!(destinations.of(&pair(2 * MAX_PAIRS)), Some(EndId((2 * MAX_PAIRS) as u32 % 3)));
        assert_eq!((destinations.of(b"to another"), destinations.of(&pair(2))), (Some(EndId(2)), Some(EndId(1))));
        assert!(destinations.recent.len() + destinations.older.len() <= 2 * MAX_PAIRS);
    }
}
