//! Packets of a run as bytes: real IPv4, TCP, STP and UDP headers with correct checksums, for captures and for code
//! that reads headers.
//!
//! Node n (from 1) is 10.0.n.1. Flow f (from 0) goes from port 49152 + f to port 30000. The payload is zeros. Initial
//! sequence numbers follow from the connection's number. The legs of a split flow have the flow's addresses and ports,
//! and separate sequence numbers. Window scales are read from the SYNs; without a handshake there are none, and windows
//! are shown as at most 65535.

use std::net::Ipv4Addr;

use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Flags, Segment};
use bentpipe_engine::wire::ip::{self, Addresses};
use bentpipe_engine::wire::seq::Numbering;
use bentpipe_engine::wire::tcp::Translation;
use bentpipe_engine::wire::{EmitError, ipv4, stp, udp};
use bentpipe_study::scenario::{ConnectionId, NodeId, Scenario};
use bentpipe_study::topology::{self, Connection};

use crate::ends;
use crate::packet::{self, Body, IPV4_HEADER, Packet};

/// Maximum length of an IP packet.
const LONGEST: usize = 65_535;
static ZEROS: [u8; LONGEST] = [0; LONGEST];

/// Address of a node.
pub(crate) fn address(node: NodeId) -> Ipv4Addr {
    let [.., high, low] = (node.0 + 1).to_be_bytes();
    Ipv4Addr::new(10, high, low, 1)
}

/// Initial sequence number of an end: any number that is the same in every run.
fn isn(end: EndId) -> u32 {
    (end.0 + 1).wrapping_mul(0x9e37_79b9)
}

/// The lengths of the parts of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Bytes of its headers.
    pub(crate) headers: usize,
    /// Total length in bytes.
    pub(crate) whole: usize,
}

/// Writes packets.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// The translation state of each end of each connection; UDP uses only addresses and ports.
    ends: Vec<Translation>,
    /// True for STP connections, whose segments have a different header.
    is_stp: Vec<bool>,
    buffer: Vec<u8>,
}

impl Bytes {
    /// A writer for the packets of this scenario.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let connections = topology::connections(scenario);
        let mut ends = Vec::with_capacity(2 * connections.len());
        for (id, connection) in ConnectionId::first(connections.len()).zip(&connections) {
            // A gateway that splits a flow keeps the addresses, so each host sees the other's.
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
        let is_stp =
            |&Connection { flow, number, .. }: &Connection<'_>| scenario[flow].kind.stp_of_leg(number).is_some();
        Bytes { is_stp: connections.iter().map(is_stp).collect(), ends, buffer: vec![0; LONGEST] }
    }

    /// The bytes of the packet written last.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer
    }

    /// Writes a packet.
    pub(crate) fn write(&mut self, packet: &Packet, identification: u16) -> Result<Lengths, EmitError> {
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
            Body::Udp(_) | Body::Quic(_) => {
                let headers = ip_header.len() + udp::HEADER;
                let payload = (packet.wire_len as usize).saturating_sub(headers).min(LONGEST - headers);
                (ip::UDP, udp::emit(&end.addresses, end.ports, &[&ZEROS[..payload]], rest)?, payload)
            }
        };
        let ip = match end.addresses {
            Addresses::V4 { source, destination } => {
                let header = ipv4::Header { identification, ..ipv4::Header::new(source, destination, protocol) };
                ipv4::emit(&header, length, ip_header)?
            }
            Addresses::V6 { .. } => ip::emit(&end.addresses, protocol, length, ip_header)?,
        };
        if let Body::Tcp(segment) = packet.body {
            segment.ecn.put(ip_header);
        }
        Ok(Lengths { headers: ip + length - payload, whole: ip + length })
    }

    /// Stores the window scale of a SYN for both ends.
    pub(crate) fn learn(&mut self, packet: &Packet) {
        if let Body::Tcp(segment) = &packet.body
            && segment.flags.has(Flags::SYN)
        {
            let scale = segment.syn.window_scale;
            let sender = packet.from();
            self.ends[sender.index()].our_scale = scale;
            self.ends[ends::peer(sender).index()].peer_scale = scale;
        }
    }
}
