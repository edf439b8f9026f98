//! Every packet of a run as a capture in pcapng: real IPv4, TCP and UDP headers with correct checksums.
//!
//! Node n (from 1) is 10.0.n.1, flow f (from 0) goes from port 49152 + f to port 30000; the payload is zeros. Initial
//! sequence numbers are fixed by the connection's number; the legs of a split flow have its addresses and ports, and
//! separate sequence numbers. Window scales are read from the SYNs; without a handshake there are none, and windows
//! show as at most 65535.
//!
//! Lengths are those of the written headers. With ns-2's lengths (`ns2_lengths`), the links counted some bytes fewer;
//! the capture's comment says so.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use bentpipe_engine::network::{EndId, LinkId};
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::{Flags, Segment};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::ip::{self, Addresses};
use bentpipe_engine::wire::seq::Numbering;
use bentpipe_engine::wire::stp;
use bentpipe_engine::wire::tcp::Translation;
use bentpipe_engine::wire::{EmitError, udp};
use bentpipe_study::scenario::{ConnectionId, FlowKind, NodeId, Scenario};
use bentpipe_study::topology::{self, Connection};
use bentpipe_study::trace::PcapWriter;

use super::Tap;
use crate::ends;
use crate::observe::{Observer, Passage};
use crate::packet::{self, Body, IPV4_HEADER, Packet};

/// Max length of an IP packet.
const LONGEST: usize = 65_535;
static ZEROS: [u8; LONGEST] = [0; LONGEST];

/// The captured part of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snap {
    /// All of it.
    #[default]
    Whole,
    /// Its headers, with the length on the line.
    Headers,
}

/// An unfinished capture. An error during a run is kept for [`Pcap::finish`].
#[derive(Debug)]
pub struct Pcap {
    writer: PcapWriter,
    snap: Snap,
    error: Option<io::Error>,
    /// The number of the tap at each node, at each link's entrance, and at its exit.
    hosts: Vec<Option<u32>>,
    entrances: Vec<Option<u32>>,
    exits: Vec<Option<u32>>,
    /// Ends of each link, as nodes.
    links: Vec<(NodeId, NodeId)>,
    /// Ends of each connection, as nodes.
    connections: Vec<(NodeId, NodeId)>,
    /// The translation state of each end of each connection; UDP uses only addresses and ports.
    ends: Vec<Translation>,
    /// STP connections, whose segments have another header.
    is_stp: Vec<bool>,
    buffer: Vec<u8>,
}

/// Address of a node.
fn address(node: NodeId) -> Ipv4Addr {
    let [.., high, low] = (node.0 + 1).to_be_bytes();
    Ipv4Addr::new(10, high, low, 1)
}

/// Initial sequence number of an end: any number that is the same in each run.
fn isn(end: EndId) -> u32 {
    (end.0 + 1).wrapping_mul(0x9e37_79b9)
}

impl Pcap {
    /// Starts the capture `path` of runs of `scenario`, with one interface for each of `taps`; `comment` says how to
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
        let mut ends = Vec::with_capacity(2 * connections.len());
        for (id, connection) in ConnectionId::first(connections.len()).zip(&connections) {
            // A gateway that splits a flow keeps the addresses: each host sees the other's.
            let flow = &scenario[connection.flow];
            let (source, destination) = (address(flow.from), address(flow.to));
            let addresses = Addresses::V4 { source, destination };
            let ports = packet::ports(connection.flow);
            let isns = [isn(ends::opener(id)), isn(ends::listener(id))];
            let mut from = Translation::new(addresses, ports, isns[0]);
            let mut to = Translation::new(addresses.reversed(), ports.reversed(), isns[1]);
            from.irs = Some(Numbering::from_isn(isns[1]));
            to.irs = Some(Numbering::from_isn(isns[0]));
            ends.extend([from, to]);
        }
        Ok(Pcap {
            writer,
            snap,
            error: None,
            hosts: NodeId::first(scenario.nodes.len()).map(|node| number(Tap::Host(node))).collect(),
            entrances: links.clone().map(|link| number(Tap::Entrance(link))).collect(),
            exits: links.map(|link| number(Tap::Exit(link))).collect(),
            links: scenario.links.iter().map(|link| (link.from, link.to)).collect(),
            connections: connections.iter().map(|Connection { leg, .. }| (leg.from, leg.to)).collect(),
            ends,
            is_stp: connections
                .iter()
                .map(|&Connection { flow, number, .. }| scenario[flow].kind.stp_of_leg(number).is_some())
                .collect(),
            buffer: vec![0; LONGEST],
        })
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
        let (headers, length) = self.emit(packet).map_err(io::Error::other)?;
        let kept = if self.snap == Snap::Headers { headers } else { length };
        for tap in taps.into_iter().flatten() {
            self.writer.packet(tap, now, &self.buffer[..kept], length as u32)?;
        }
        Ok(())
    }

    /// Writes the packet into the buffer; returns the length of its headers and its total length.
    fn emit(&mut self, packet: &Packet) -> Result<(usize, usize), EmitError> {
        let is_stp = self.is_stp[packet.connection.index()];
        let end = &mut self.ends[packet.from().index()];
        let (ip_header, rest) = self.buffer.split_at_mut(IPV4_HEADER as usize);
        let (protocol, length, payload) = match packet.body {
            Body::Tcp(segment) if is_stp => {
                // The wire format has no poll numbers.
                let segment = Segment { timestamps: None, ..segment };
                let payload = usize::from(segment.len);
                let Translation { addresses, ports, iss, irs, .. } = *end;
                let stp = stp::Translation { addresses, ports, iss, irs };
                (stp::PROTOCOL, stp.emit(&segment, &[&ZEROS[..payload]], rest)?, payload)
            }
            Body::Tcp(segment) => {
                let payload = usize::from(segment.len);
                (ip::TCP, end.emit(&segment, &[&ZEROS[..payload]], rest)?, payload)
            }
            Body::Udp(_) => {
                let headers = ip_header.len() + udp::HEADER;
                let payload = (packet.wire_len as usize).saturating_sub(headers).min(LONGEST - headers);
                (ip::UDP, udp::emit(&end.addresses, end.ports, &[&ZEROS[..payload]], rest)?, payload)
            }
        };
        let ip = ip::emit(&end.addresses, protocol, length, ip_header)?;
        if let Body::Tcp(segment) = packet.body {
            segment.ecn.put(ip_header);
        }
        Ok((ip + length - payload, ip + length))
    }

    /// Stores the window scale of a SYN for both ends, whether or not a tap sees it.
    fn learn(&mut self, packet: &Packet, segment: &Segment) {
        let scale = segment.syn.window_scale;
        let sender = packet.from();
        self.ends[sender.index()].our_scale = scale;
        self.ends[ends::peer(sender).index()].peer_scale = scale;
    }
}

impl Probe for Pcap {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Pcap {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        if let Body::Tcp(segment) = &packet.body
            && segment.flags.has(Flags::SYN)
        {
            self.learn(packet, segment);
        }
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
