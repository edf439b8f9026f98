//! The paths between the ends of a scenario, and the network.

use std::collections::BTreeMap;

use bentpipe_engine::network::{EndId, Hop, Network};
use bentpipe_study::scenario::{FlowKind, Scenario, Spoof};
use bentpipe_study::topology::{self, Leg, Path};
use bentpipe_study::wiring::Wiring;

use super::spoofing;
use crate::packet::Parcel;
use crate::run::RunError;

/// A flow's number, the number of a leg of it, and the leg.
pub(super) type Connection<'s> = (usize, usize, Leg<'s>);

/// Number of ends of each kind, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// Two for each connection.
    pub(super) connections: usize,
    /// One for each spoofed flow: its destination.
    pub(super) sinks: usize,
    /// Two for each link layer and for each pair of boxes.
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

    /// Ends that belong to flows.
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
    /// By spoofed flow: its end at the gateway.
    pub(super) spoofers: Vec<usize>,
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
            first_sink: counts.connections,
            spoofers: vec![0; counts.sinks],
        };
        for (n, &(flow, leg_number, leg)) in connections.iter().enumerate() {
            if n > 0 && n < scenario.flows.len() && is_like_before(scenario, n) {
                laying.lay_like_before(n);
                continue;
            }
            let kind = &scenario.flows[flow].kind;
            let there = leg.forward_path(scenario)?;
            // Nobody answers datagrams.
            let back = match kind {
                FlowKind::Udp(_) => leg.return_path(scenario).unwrap_or_default(),
                _ => leg.return_path(scenario)?,
            };
            let goes_on = topology::legs(&scenario.flows[flow]).len() > leg_number + 1;
            if let (Some(spoof), false) = (kind.spoof(), goes_on) {
                laying.lay_spoofed((flow, n), &leg, spoof, (there, back))?;
                continue;
            }
            laying.lay(2 * n, 2 * n + 1, &there, [leg.from, leg.to]);
            laying.lay(2 * n + 1, 2 * n, &back, [leg.to, leg.from]);
        }
        let network = laying.wiring.network(seed, channels(scenario, connections), chains);
        Ok(Ways { network, first_hop: laying.first_hop, spoofers: laying.spoofers })
    }
}

/// True if a flow's only connection takes the ways of the flow before.
fn is_like_before(scenario: &Scenario, n: usize) -> bool {
    let flow = &scenario.flows[n];
    let is_alone = matches!(&flow.kind, FlowKind::Tcp(tcp) if tcp.splits.is_empty() && tcp.spoof.is_none());
    is_alone && flow.is_alike(&scenario.flows[n - 1])
}

struct Laying<'s> {
    scenario: &'s Scenario,
    wiring: Wiring<'s>,
    first_hop: Vec<Hop>,
    first_sink: usize,
    spoofers: Vec<usize>,
}

impl Laying<'_> {
    /// The path from one end to another.
    fn lay(&mut self, from: usize, to: usize, path: &[usize], nodes: [usize; 2]) {
        self.first_hop[from] = self.wiring.lead(EndId::from(to), path, nodes);
    }

    /// The paths of connection `n`, which are those of the one before.
    fn lay_like_before(&mut self, n: usize) {
        for end in [2 * n, 2 * n + 1] {
            self.wiring.lead_like(EndId::from(end), EndId::from(end - 2));
            self.first_hop[end] = self.first_hop[end - 2];
        }
    }

    /// Source and gateway reach each other, the gateway reaches the sink.
    fn lay_spoofed(
        &mut self,
        (flow, n): (usize, usize),
        leg: &Leg<'_>,
        spoof: &Spoof,
        (there, back): (Path, Path),
    ) -> Result<(), RunError> {
        let scenario = self.scenario;
        let to_host = scenario.flows[flow].to;
        // An explicit route leads through the gateway: the language checks this.
        let cut = |path: &[usize]| path.iter().position(|&link| scenario.links[link].from == spoof.at);
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
        let (source, gateway) = (2 * n, 2 * n + 1);
        // Connections are in another order than flows; sinks are in the order of flows.
        let which = scenario.flows[..flow].iter().filter(|flow| flow.kind.spoof().is_some()).count();
        let sink = self.first_sink + which;
        self.spoofers[which] = gateway;
        self.lay(source, gateway, &onto, [leg.from, spoof.at]);
        self.lay(gateway, source, &to, [spoof.at, leg.from]);
        self.lay(sink, sink, &from, [spoof.at, to_host]);
        Ok(())
    }
}

/// The virtual channel of the packets to each end: one per pair of hosts, as in Classical IP over ATM.
fn channels(scenario: &Scenario, connections: &[Connection<'_>]) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let mut channels = Vec::new();
    let pairs = connections.iter().flat_map(|(.., leg)| [(leg.to, leg.from), (leg.from, leg.to)]);
    // Data forwarded by a spoofing gateway has its own end, after those of the connections.
    let spoofed = scenario.flows.iter().filter_map(|flow| Some((flow.kind.spoof()?.at, flow.to)));
    for pair in pairs.chain(spoofed) {
        let next = known.len() as u32;
        channels.push(*known.entry(pair).or_insert(next));
    }
    // Frames of a layer have a separate channel in each direction.
    let first = known.len() as u32;
    channels.extend(first..first + 2 * scenario.lines().count() as u32);
    channels
}
