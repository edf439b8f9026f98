//! What packets pass that is no plain link: links in cells, and the processors of hosts.

use std::collections::BTreeMap;

use bentpipe_engine::link::{CellPort, LinkCounters, Server};
use bentpipe_engine::probe::DropReason;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Probe};
use bentpipe_study::scenario::Scenario;
use bentpipe_study::topology;

use crate::packet::Parcel;

/// A port.
#[derive(Debug)]
pub(crate) enum Port {
    /// The link with this number, in cells.
    Cells { link: usize, port: Box<CellPort<Parcel>> },
    /// The processor of a host.
    Host(Server<Parcel>),
}

impl Port {
    /// The link that it is.
    pub(crate) fn link(&self) -> Option<usize> {
        match self {
            Port::Cells { link, .. } => Some(*link),
            Port::Host(_) => None,
        }
    }

    pub(crate) fn offer<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>, channel: u32, parcel: Parcel) {
        match self {
            Port::Cells { port, .. } => port.offer(cx, channel, parcel),
            Port::Host(server) => server.offer(cx.now, parcel),
        }
    }

    /// The next packet that has come to its end, and what that was.
    pub(crate) fn take<Pr: Probe>(&mut self, cx: &mut Context<'_, Pr>) -> Option<(Parcel, Result<(), DropReason>)> {
        match self {
            Port::Cells { port, .. } => port.take(cx),
            Port::Host(server) => server.take(cx.now).map(|parcel| (parcel, Ok(()))),
        }
    }

    /// When it is to be asked, and since when that is so.
    pub(crate) fn head(&self) -> Option<(Time, Time)> {
        match self {
            Port::Cells { port, .. } => port.head(),
            Port::Host(server) => server.head(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        match self {
            Port::Cells { port, .. } => port.in_flight(),
            Port::Host(server) => server.in_flight(),
        }
    }
}

/// The ports of a scenario, and which way leads through them.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) all: Vec<Port>,
    of_link: Vec<Option<u32>>,
    of_node: Vec<Option<u32>>,
    forwarding: Vec<Option<u32>>,
    /// The virtual channel of the packets to each end: one from each host to each other, as Classical IP over ATM has it.
    pub(crate) channel_to: Vec<u32>,
}

impl Ports {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut channels = BTreeMap::new();
        let connections = topology::connections(scenario);
        let mut channel_to = Vec::with_capacity(2 * connections.len());
        let mut pairs = Vec::new();
        for (.., leg) in &connections {
            pairs.extend([(leg.to, leg.from), (leg.from, leg.to)]);
        }
        // What goes on behind a gateway that spoofs has an end of its own, behind those of the connections.
        pairs.extend(scenario.flows.iter().filter_map(|flow| Some((flow.kind.spoof()?.at, flow.to))));
        for pair in pairs {
            let next = channels.len() as u32;
            channel_to.push(*channels.entry(pair).or_insert(next));
        }
        // Frames of a layer have a channel of their own each way, whose number follows from the layer's.
        for layer in 0..scenario.layers.len() {
            let first = channels.len() as u32 + 2 * layer as u32;
            channel_to.extend([first, first + 1]);
        }
        let count = channels.len() + 2 * scenario.layers.len();
        let (of_link, of_node, forwarding) = (Vec::new(), Vec::new(), Vec::new());
        let mut ports = Ports { all: Vec::new(), of_link, of_node, forwarding, channel_to };
        for (link, spec) in scenario.links.iter().enumerate() {
            let port = spec.config.cells.map(|_| {
                let port = CellPort::new(&spec.config, seed, &format!("link/{}", spec.name), count);
                ports.add(Port::Cells { link, port: Box::new(port) })
            });
            ports.of_link.push(port);
        }
        for (node, name) in scenario.nodes.iter().enumerate() {
            let port = scenario.hosts.get(node).and_then(|host| host.processing).map(|time| {
                let server = Server::new(time, seed, &format!("node/{name}"));
                ports.add(Port::Host(server))
            });
            ports.of_node.push(port);
            let port = scenario.hosts.get(node).and_then(|host| host.forwarding).map(|time| {
                let server = Server::new(time, seed, &format!("node/{name}/forwarding"));
                ports.add(Port::Host(server))
            });
            ports.forwarding.push(port);
        }
        ports
    }

    fn add(&mut self, port: Port) -> u32 {
        self.all.push(port);
        self.all.len() as u32 - 1
    }

    /// The port that a link is, if it is one.
    pub(crate) fn of_link(&self, link: usize) -> Option<u32> {
        self.of_link[link]
    }

    /// The processor of a host, if what it sends and receives takes time.
    pub(crate) fn of_node(&self, node: usize) -> Option<u32> {
        self.of_node[node]
    }

    /// What passes packets on at a node, if that takes time.
    pub(crate) fn forwarding(&self, node: usize) -> Option<u32> {
        self.forwarding[node]
    }

    /// What the port counted that a link is.
    pub(crate) fn counters(&self, link: usize) -> Option<LinkCounters> {
        match &self.all[self.of_link[link]? as usize] {
            Port::Cells { port, .. } => Some(port.counters()),
            Port::Host(_) => None,
        }
    }
}
