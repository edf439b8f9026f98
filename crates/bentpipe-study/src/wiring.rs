//! The network of a scenario: its links, cell ports and processors, and the paths over them.
//!
//! A driver defines the ends: [`Wiring::lead`] lays the path to each, [`Wiring::network`] builds the network. The ends of
//! link layers are wired here.

use bentpipe_engine::link::{CellPort, Link, QueueConfig, QueueLimit, Server};
use bentpipe_engine::network::{
    Bound, EndId, Hop, LayerEnds, LinkId, ManagedLink, Network, Routes, Station, StationId,
};

use crate::scenario::{NodeId, Scenario};

/// The paths laid so far over the links of a scenario.
#[derive(Debug)]
pub struct Wiring<'s> {
    scenario: &'s Scenario,
    routes: Routes,
    layers: LayerEnds,
    /// By link: its station, if it carries cells or its queue decides when packets leave.
    of_link: Vec<Option<StationId>>,
    /// By node: the processor for packets that it sends and receives, and the one for packets that it forwards.
    processing: Vec<Option<StationId>>,
    forwarding: Vec<Option<StationId>>,
}

impl<'s> Wiring<'s> {
    /// No paths yet. The ends of link layers come after `ends` others.
    pub fn new(scenario: &'s Scenario, ends: usize) -> Self {
        let mut stations = 0..;
        let mut number = |exists: bool| exists.then(|| StationId::from(stations.next().unwrap_or_default()));
        let of_link: Vec<_> =
            LinkId::first(scenario.links.len()).map(|link| number(is_station(scenario, link))).collect();
        let (mut processing, mut forwarding) = (Vec::new(), Vec::new());
        for node in 0..scenario.nodes.len() {
            let host = scenario.hosts.get(node);
            processing.push(number(host.is_some_and(|host| host.processing.is_some())));
            forwarding.push(number(host.is_some_and(|host| host.forwarding.is_some())));
        }
        let stations = number(true).map_or(0, StationId::index);
        let mut routes = Routes::new(scenario.links.len(), stations, ends + 2 * scenario.lines().count());
        let mut layers = LayerEnds::new(ends);
        for over in scenario.lines() {
            layers.add(&mut routes, over, over.map(|link| bare(&of_link, link)));
        }
        Wiring { scenario, routes, layers, of_link, processing, forwarding }
    }

    /// Lays the path to an end along the links of `path`: over the layers above them, and through the processors of the
    /// hosts `here` and `there` and of the nodes between, if they take time. Returns where the path begins.
    pub fn lead(&mut self, to: EndId, path: &[LinkId], [here, there]: [NodeId; 2]) -> Hop {
        let mut way: Vec<Hop> = self.processing[here.index()].map(Hop::Station).into_iter().collect();
        for (n, &link) in path.iter().enumerate() {
            if n > 0 {
                way.extend(self.forwarding[self.scenario[link].from.index()].map(Hop::Station));
            }
            way.push(match self.scenario.line_over(link) {
                Some((layer, side)) => Hop::Layer { end: self.layers.end(layer, side), link },
                None => bare(&self.of_link, link),
            });
        }
        way.extend(self.processing[there.index()].map(Hop::Station));
        self.routes.lead(to, &way)
    }

    /// Lays to an end the path that leads to `other`.
    pub fn lead_like(&mut self, to: EndId, other: EndId) {
        self.routes.lead_like(to, other);
    }

    /// The network, with random streams derived from `seed`. Packets to an end use its virtual channel. With `chains`,
    /// links in a row share their events; there must be no observer.
    pub fn network<P: Bound>(self, seed: u64, channels: Vec<u32>, chains: bool) -> Network<P> {
        let scenario = self.scenario;
        let count = channels.iter().max().map_or(0, |&max| max as usize + 1);
        let links = LinkId::first(scenario.links.len()).map(|link| plain_link(scenario, link, seed)).collect();
        let mut stations = Vec::new();
        for link in LinkId::first(scenario.links.len()).filter(|&link| is_station(scenario, link)) {
            let spec = &scenario[link];
            let name = spec.component();
            stations.push(match ManagedLink::new(&spec.config, seed, &name) {
                Some(port) => Station::Managed { link, port: Box::new(port) },
                None => Station::Cells { link, port: Box::new(CellPort::new(&spec.config, seed, &name, count)) },
            });
        }
        for (node, name) in scenario.nodes.iter().enumerate() {
            let Some(host) = scenario.hosts.get(node) else { continue };
            let processing = host.processing.map(|time| Server::new(time, seed, &format!("node/{name}")));
            let forwarding = host.forwarding.map(|time| Server::new(time, seed, &format!("node/{name}/forwarding")));
            stations.extend(processing.into_iter().chain(forwarding).map(Station::Host));
        }
        Network::new(links, stations, (self.routes, self.layers), channels, chains)
    }
}

/// The link itself, without the layer over it.
fn bare(of_link: &[Option<StationId>], link: LinkId) -> Hop {
    of_link[link.index()].map_or(Hop::Link(link), Hop::Station)
}

/// True if a link is a station: in cells, or with a queue that decides when packets leave it. Below a layer it has no queue.
fn is_station(scenario: &Scenario, link: LinkId) -> bool {
    let config = &scenario[link].config;
    config.cells.is_some() || scenario.layer_over(link).is_none() && config.has_managed_queue()
}

/// A link of the scenario. Below a layer it has no queue, because the layer sends when the line is free.
fn plain_link<P: Bound>(scenario: &Scenario, link: LinkId, seed: u64) -> Link<P> {
    let spec = &scenario[link];
    let name = spec.component();
    if scenario.layer_over(link).is_none() {
        return Link::new(&spec.config, seed, &name);
    }
    let mut config = spec.config.clone();
    config.queue = QueueConfig { limit: QueueLimit::Unlimited, ..config.queue };
    // The layer checks packet lengths; frames are longer.
    config.mtu = None;
    Link::new(&config, seed, &name)
}
