//! The paths between the ends of a scenario, and the network.

use std::collections::BTreeMap;

use bentpipe_engine::network::{EndId, Hop, LinkId, Network};
use bentpipe_study::scenario::{ConnectionId, FlowId, FlowKind, NodeId, Scenario, Spoof};
use bentpipe_study::topology::{self, Connection, Leg, Path};
use bentpipe_study::wiring::Wiring;

use super::spoofing;
use crate::ends;
use crate::packet::Parcel;
use crate::run::RunError;

/// Number of ends of each kind, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// Two ends for each connection.
    pub(super) connections: usize,
    /// One end for each spoofed flow: its destination.
    pub(super) sinks: usize,
    /// Two ends for each link layer and for each pair of boxes.
    pub(super) layers: usize,
}

impl Counts {
    pub(super) fn of(scenario: &Scenario, connections: &[Connection<'_>]) -> Self {
        Counts {
            connections: 2 * connections.len(),
            sinks: spoofing::count(scenario),
            layers: 2 * scenario.lines().count(),
        }
    }

    /// Number of ends that belong to flows.
    pub(super) fn of_flows(&self) -> usize {
        self.connections + self.sinks
    }

    pub(super) fn all(&self) -> usize {
        self.of_flows() + self.layers
    }
}

/// The network, and how packets of each end enter it.
pub(super) struct Ways {
    pub(super) network: Network<Parcel>,
    /// The first hop of each end's packets.
    pub(super) first_hop: Vec<Hop>,
    /// For each spoofed flow, its end at the gateway.
    pub(super) spoofers: Vec<EndId>,
}

impl Ways {
    pub(super) fn new(
        scenario: &Scenario,
        connections: &[Connection<'_>],
        seed: u64,
        chains: bool,
    ) -> Result<Ways, RunError> {
        let counts = Counts::of(scenario, connections);
        let mut laying = Laying {
            scenario,
            wiring: Wiring::new(scenario, counts.of_flows()),
            first_hop: vec![Hop::Arrived; counts.all()],
            first_sink: EndId::from(counts.connections),
            spoofers: vec![EndId(0); counts.sinks],
        };
        for (id, &connection) in ConnectionId::first(connections.len()).zip(connections) {
            if is_like_before(scenario, id) {
                laying.lay_like_before(id);
                continue;
            }
            let Connection { flow, number, leg } = connection;
            let kind = &scenario[flow].kind;
            let there = leg.forward_path(scenario)?;
            // Datagrams are not answered.
            let back = match kind {
                FlowKind::Udp(_) => leg.return_path(scenario).unwrap_or_default(),
                _ => leg.return_path(scenario)?,
            };
            let goes_on = topology::legs(&scenario[flow]).len() > number + 1;
            if let (Some(spoof), false) = (kind.spoof(), goes_on) {
                laying.lay_spoofed((flow, id), &leg, spoof, (there, back))?;
                continue;
            }
            let [opener, listener] = [ends::opener(id), ends::listener(id)];
            laying.lay(opener, listener, &there, [leg.from, leg.to]);
            laying.lay(listener, opener, &back, [leg.to, leg.from]);
        }
        let network = laying.wiring.network(seed, channels(scenario, connections), chains);
        Ok(Ways { network, first_hop: laying.first_hop, spoofers: laying.spoofers })
    }
}

/// True if this is the only connection of its flow and takes the same paths as the flow before it.
fn is_like_before(scenario: &Scenario, id: ConnectionId) -> bool {
    let n = id.index();
    if n == 0 || n >= scenario.flows.len() {
        return false;
    }
    let flow = &scenario.flows[n];
    let is_alone = matches!(&flow.kind, FlowKind::Tcp(tcp) if tcp.splits.is_empty() && tcp.spoof.is_none());
    is_alone && flow.is_alike(&scenario.flows[n - 1])
}

struct Laying<'s> {
    scenario: &'s Scenario,
    wiring: Wiring<'s>,
    first_hop: Vec<Hop>,
    first_sink: EndId,
    spoofers: Vec<EndId>,
}

impl Laying<'_> {
    /// The path from one end to another.
    fn lay(&mut self, from: EndId, to: EndId, path: &[LinkId], nodes: [NodeId; 2]) {
        self.first_hop[from.index()] = self.wiring.lead(to, path, nodes);
    }

    /// Lays the same paths for a connection as for the one before it.
    fn lay_like_before(&mut self, id: ConnectionId) {
        let before = ConnectionId(id.0 - 1);
        for (end, other) in [(ends::opener(id), ends::opener(before)), (ends::listener(id), ends::listener(before))] {
            self.wiring.lead_like(end, other);
            self.first_hop[end.index()] = self.first_hop[other.index()];
        }
    }

    /// Lays the paths of a spoofed flow: source and gateway reach each other, and the gateway reaches the sink.
    fn lay_spoofed(
        &mut self,
        (flow, id): (FlowId, ConnectionId),
        leg: &Leg<'_>,
        spoof: &Spoof,
        (there, back): (Path, Path),
    ) -> Result<(), RunError> {
        let scenario = self.scenario;
        let to_host = scenario[flow].to;
        // An explicit route leads through the gateway, as the scenario's checks ensure.
        let cut = |path: &[LinkId]| path.iter().position(|&link| scenario[link].from == spoof.at);
        let (onto, from, to) = match (cut(&there), cut(&back)) {
            (Some(there_at), Some(back_at)) => {
                (there[..there_at].to_vec(), there[there_at..].to_vec(), back[back_at..].to_vec())
            }
            _ => (
                topology::path(scenario, leg.from, spoof.at)?,
                topology::path(scenario, spoof.at, to_host)?,
                topology::path(scenario, spoof.at, leg.from)?,
            ),
        };
        let (source, gateway) = (ends::opener(id), ends::listener(id));
        // Connections are ordered differently from flows; sinks are in the order of flows.
        let which = scenario.flows[..flow.index()].iter().filter(|flow| flow.kind.spoof().is_some()).count();
        let sink = EndId::from(self.first_sink.index() + which);
        self.spoofers[which] = gateway;
        self.lay(source, gateway, &onto, [leg.from, spoof.at]);
        self.lay(gateway, source, &to, [spoof.at, leg.from]);
        self.lay(sink, sink, &from, [spoof.at, to_host]);
        Ok(())
    }
}

/// The virtual channel of packets to each end: one per pair of hosts, as in Classical IP over ATM.
fn channels(scenario: &Scenario, connections: &[Connection<'_>]) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let mut channels = Vec::new();
    let pairs = connections.iter().flat_map(|Connection { leg, .. }| [(leg.to, leg.from), (leg.from, leg.to)]);
    // Data forwarded by a spoofing gateway has its own end, after those of the connections.
    let spoofed = scenario.flows.iter().filter_map(|flow| Some((flow.kind.spoof()?.at, flow.to)));
    for pair in pairs.chain(spoofed) {
        let next = known.len() as u32;
        channels.push(*known.entry(pair).or_insert(next));
    }
    // The frames of a layer have a separate channel in each direction.
    let first = known.len() as u32;
    channels.extend(first..first + 2 * scenario.lines().count() as u32);
    channels
}
