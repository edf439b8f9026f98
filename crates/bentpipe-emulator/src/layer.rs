//! Link layers on emulated links: S-LACP with its bytes, an end at each side of a pair of links.
//!
//! A layer carries bytes, so what a packet is on its way to has to be found again behind it: by the packet's addresses,
//! where more than one way leads over the layer.

use std::collections::BTreeMap;

use bentpipe_engine::network::{EndId, Hop, LinkId};
use bentpipe_engine::probe::Who;
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ip;
use bentpipe_engine::wire::slacp::Integrity;
use bentpipe_engine::{Context, NoProbe, Step};
use bentpipe_io::{Emitted, LinkPort, LinkPortConfig};
use bentpipe_study::scenario::{LayerSpec, LinkSpec};

use super::Unsupported;

/// One end of a layer.
#[derive(Debug)]
pub(super) struct LayerEnd {
    port: LinkPort,
    /// The link that it sends on, and how its frames come there.
    pub(super) sends_on: LinkId,
    pub(super) frames: Hop,
    /// Longest packet that it takes.
    mtu: usize,
    wakes: Option<Time>,
    /// Since when that is fixed.
    since: Time,
    /// What the packets are bound for that this end hands over: the first of all, and by their addresses as soon as there
    /// is another one.
    first: Option<EndId>,
    others: BTreeMap<Vec<u8>, EndId>,
    buffer: Vec<u8>,
}

impl LayerEnd {
    /// The end that sends on the first link of the layer, or on the second.
    pub(super) fn new(layer: &LayerSpec, links: &[LinkSpec], side: usize, frames: Hop) -> Result<Self, Unsupported> {
        let refuse = |key: &str, what: &str| {
            Err(Unsupported { key: format!("layers.{}.{key}", layer.name), what: what.to_owned(), expected: "false" })
        };
        if layer.weightless {
            return refuse("weightless", "frames with bytes are not weightless");
        }
        if layer.hears_damage {
            return refuse("hears_damage", "what a channel damages does not arrive in real time");
        }
        let (rules, default_channel) = layer.rules();
        // Compressed headers and frames without CRC are the gateway's; sizes here are those of the simulation.
        let port = LinkPort::new(&LinkPortConfig {
            layer: layer.end(links, side),
            rules,
            default_channel,
            max_packet: LinkPort::MAX_PACKET,
            compresses: false,
            integrity: Integrity::Crc,
        });
        let mtu = links[layer.over[side]].config.mtu.map_or(usize::MAX, |mtu| mtu as usize);
        let buffer = vec![0; port.max_frame()];
        let (wakes, since) = (None, Time::ZERO);
        let sends_on = LinkId::from(layer.over[side]);
        Ok(LayerEnd { port, sends_on, frames, mtu, wakes, since, first: None, others: BTreeMap::new(), buffer })
    }

    /// When it wants to be polled, and since when that is so.
    pub(super) fn head(&self) -> Option<(Time, Time)> {
        self.wakes.map(|wakes| (wakes, self.since))
    }

    /// A packet from above; false where none so long is carried. Then it is to be polled.
    pub(super) fn send(&mut self, now: Time, packet: &[u8]) -> bool {
        if packet.len() > self.mtu {
            return false;
        }
        self.asks(now);
        self.port.send(&mut context(now, &mut NoProbe), packet).is_ok()
    }

    /// A frame of the far end. Then it is to be polled.
    pub(super) fn receive(&mut self, now: Time, frame: &[u8]) {
        self.asks(now);
        // Both ends are ours and links damage nothing: it is a frame.
        let _ = self.port.receive(&mut context(now, &mut NoProbe), frame);
    }

    fn asks(&mut self, now: Time) {
        (self.wakes, self.since) = (Some(now), now);
    }

    /// What it has to give at `now`: a frame for the far end or a packet from there, in its bytes.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Emitted, &[u8])> {
        match self
            .port
            .poll(&mut context(now, &mut NoProbe), &mut self.buffer)
            .expect("the buffer takes each of its frames")
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

    /// This packet, when this end hands it over, is bound for that.
    pub(super) fn remember(&mut self, packet: &[u8], to: EndId) {
        let first = *self.first.get_or_insert(to);
        if to != first || !self.others.is_empty() {
            self.others.insert(addresses(packet).to_vec(), to);
        }
    }

    /// What a packet is bound for that this end hands over.
    pub(super) fn bound_for(&self, packet: &[u8]) -> Option<EndId> {
        self.others.get(addresses(packet)).copied().or(self.first)
    }

    pub(super) fn stats(&self) -> Stats {
        self.port.layer_stats()
    }

    /// Packets of which it is not known that they have arrived.
    pub(super) fn in_flight(&self) -> usize {
        self.port.unconfirmed()
    }
}

fn context(now: Time, probe: &mut NoProbe) -> Context<'_, NoProbe> {
    Context { now, who: Who(0), probe }
}

/// Source and destination; nothing for what is no IP packet.
fn addresses(packet: &[u8]) -> &[u8] {
    ip::peek(packet).map_or(&[], |seen| &packet[seen.addresses])
}
