//! Every packet of a run as a capture in pcapng: real IPv4, TCP and UDP headers with correct checksums.
//!
//! Lengths are those of the written headers. With ns-2's lengths (`ns2_lengths`), the links count some bytes fewer, and
//! the capture's comment says so. For QUIC datagrams, only the headers are captured, with the length on the line; a
//! trace has their packets.

use std::io;
use std::path::Path;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{FlowKind, NodeId, Scenario};
use bentpipe_study::topology::{self, Connection};
use bentpipe_study::trace::PcapWriter;

use super::Tap;
use crate::bytes::{Bytes, Lengths, address};
use crate::observe::{Observer, Passage};
use crate::packet::{Body, Packet};

/// The captured part of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snap {
    /// The whole packet.
    #[default]
    Whole,
    /// Only its headers, with the length on the line.
    Headers,
}

/// A capture that is being written. An error during a run is kept for [`Pcap::finish`].
#[derive(Debug)]
pub struct Pcap {
    writer: PcapWriter,
    snap: Snap,
    error: Option<io::Error>,
    /// The numbers of the taps at each node, at each link's entrance, and at each link's exit.
    hosts: Vec<Option<u32>>,
    entrances: Vec<Option<u32>>,
    exits: Vec<Option<u32>>,
    /// The nodes at the ends of each link.
    links: Vec<(NodeId, NodeId)>,
    /// The nodes at the ends of each connection.
    connections: Vec<(NodeId, NodeId)>,
    bytes: Bytes,
}

impl Pcap {
    /// Starts the capture `path` for runs of `scenario`, with one interface for each of `taps`. `comment` says how to
    /// reproduce it.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created or written.
    pub fn create(path: &Path, scenario: &Scenario, taps: &[Tap], snap: Snap, comment: &str) -> io::Result<Self> {
        let names: Vec<_> = taps.iter().map(|tap| tap.name(scenario)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let comment = format!("{comment}\n{}", remark(scenario));
        let writer = PcapWriter::create(path, &names, &comment)?;
        let number = |tap: Tap| taps.iter().position(|t| *t == tap).map(|n| n as u32);
        let links = LinkId::first(scenario.links.len());
        let connections = topology::connections(scenario);
        Ok(Pcap {
            writer,
            snap,
            error: None,
            hosts: NodeId::first(scenario.nodes.len()).map(|node| number(Tap::Host(node))).collect(),
            entrances: links.clone().map(|link| number(Tap::Entrance(link))).collect(),
            exits: links.map(|link| number(Tap::Exit(link))).collect(),
            links: scenario.links.iter().map(|link| (link.from, link.to)).collect(),
            connections: connections.iter().map(|Connection { leg, .. }| (leg.from, leg.to)).collect(),
            bytes: Bytes::new(scenario),
        })
    }

    /// The first error, after which nothing more is written.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Renames the capture to its final name.
    ///
    /// # Errors
    /// Returns the first error since the start, with the path.
    pub fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err).and_then(|()| self.writer.finish())
    }

    /// The packet's two taps at this passage: the link's, and the host's at the start or end of its path.
    fn taps(&self, link: LinkId, passage: Passage, packet: &Packet) -> [Option<u32>; 2] {
        let (from, to) = self.connections[packet.connection.index()];
        let (origin, goal) = if packet.forward { (from, to) } else { (to, from) };
        let at = |node: NodeId, host: NodeId| self.hosts[host.index()].filter(|_| node == host);
        let (near, far) = self.links[link.index()];
        match passage {
            Passage::Offered => [at(near, origin), self.entrances[link.index()]],
            Passage::Delivered => [self.exits[link.index()], at(far, goal)],
            Passage::Dropped(_) => [None, None],
        }
    }

    fn record(&mut self, now: Time, taps: [Option<u32>; 2], packet: &Packet) -> io::Result<()> {
        let Lengths { headers, whole } = self.bytes.write(packet, 0).map_err(io::Error::other)?;
        // The contents of QUIC packets are not kept, so nothing is shown in their place.
        let is_told = self.snap == Snap::Whole && !matches!(packet.body, Body::Quic(_));
        let kept = if is_told { whole } else { headers };
        for tap in taps.into_iter().flatten() {
            self.writer.packet(tap, now, &self.bytes.written()[..kept], whole as u32)?;
        }
        Ok(())
    }
}

impl Probe for Pcap {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Pcap {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        // This must be done whether a tap sees the packet or not.
        self.bytes.learn(packet);
        let taps = self.taps(link, passage, packet);
        if self.error.is_none() && taps != [None, None] {
            self.error = self.record(now, taps, packet).err();
        }
    }
}

/// The comment for readers of the capture.
fn remark(scenario: &Scenario) -> String {
    let nodes: Vec<_> =
        NodeId::first(scenario.nodes.len()).map(|node| format!("{} {}", &scenario[node], address(node))).collect();
    let mut text = format!("Simulated: times count from the start of the run, payload is zeros. {}.", nodes.join(", "));
    let counts_as_ns2 = |kind: &FlowKind| matches!(kind, FlowKind::Tcp(tcp) if tcp.sender.shortcuts.ns2_lengths);
    if scenario.flows.iter().any(|flow| counts_as_ns2(&flow.kind)) {
        text.push_str(
            " Lengths are those of the real headers shown here. The links of this run counted lengths as ns-2 does: a \
             SACK block as 8 bytes without padding, the options of a SYN as nothing.",
        );
    }
    text
}
