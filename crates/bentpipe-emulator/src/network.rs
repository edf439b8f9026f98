//! The links between hosts, without clock or device: packets enter at one host and leave at another.
//!
//! Routers are internal: a path is a row of links, and a packet enters the next link at the instant at which it left
//! the previous one, however late the caller is. A path ends at the first host on it, which forwards packets for the
//! hosts beyond. If there is a layer over a link, the path leads through the layer, and frames have their own paths.

use std::collections::BTreeMap;

use bentpipe_engine::NoProbe;
use bentpipe_engine::link::{Altered, LinkCounters, Wire};
use bentpipe_engine::network::{self, Age, Books, Bound, Due, EndId, Hop, LinkId};
use bentpipe_engine::slacp::{Stats, classify};
use bentpipe_engine::stream::TimeNoise;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ecn::Ecn;
use bentpipe_io::{Emitted, Packet};
use bentpipe_study::scenario::{Gateways, LinkSpec, NodeId, Scenario};
use bentpipe_study::topology::{self, Path};
use bentpipe_study::wiring::Wiring;

use super::Unsupported;
use crate::layer::LayerEnd;
use crate::plan::{HostId, with_boxes};

bentpipe_engine::ids! {
    /// A device of a host: the only one, or one of a box, which has a device for each neighbour.
    PortId,
}

/// The destination of a packet in flight: a host (by the number of the path) or, for a frame, the end of a layer.
#[derive(Debug)]
struct Parcel {
    packet: Packet,
    to: EndId,
}

impl Wire for Parcel {
    fn wire_len(&self) -> u32 {
        self.packet.len() as u32
    }

    fn flow(&self) -> u64 {
        classify::read(&self.packet.to_bytes()).1
    }

    fn ecn(&self) -> Ecn {
        Ecn::of(&self.packet.to_bytes())
    }
}

impl Bound for Parcel {
    fn to(&self) -> EndId {
        self.to
    }
}

/// A path from one host to another, or to the first host in between.
#[derive(Clone, Copy, Debug)]
struct Way {
    first: Hop,
    /// The host at its end.
    to: HostId,
    /// The devices by which a packet leaves the first host and enters the last.
    ports: [PortId; 2],
}

/// A device of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// The host.
    pub(crate) host: HostId,
    /// The neighbour to which the device of a box leads.
    pub(crate) neighbour: Option<NodeId>,
}

/// How a packet leaves the network.
#[derive(Debug)]
pub enum Exit {
    /// It arrived at this device of a host. If there are no boxes, the devices have the numbers of the hosts.
    Arrived(PortId, Packet),
    /// A channel lost it.
    Lost(Packet),
}

/// Links, and the paths over them. A [`HostId`] is an index in the list of hosts given to the constructor.
#[derive(Debug)]
pub struct Network {
    network: network::Network<Parcel>,
    ways: Vec<Way>,
    /// By source and destination.
    table: Vec<Option<EndId>>,
    hosts: usize,
    ports: Vec<Port>,
    /// The ends of layers, two per layer. As destinations, and in the order of events, they come after all others.
    layers: Vec<LayerEnd>,
    seed: u64,
    /// Chooses the bits to flip.
    bits: TimeNoise,
}

impl Network {
    /// The scenario's links between the nodes `hosts`, using the scenario's seed. The explicit route of a flow becomes
    /// the path between its ends. A host that is the node of a box has a device for each of its neighbours.
    ///
    /// # Errors
    /// Fails if the scenario is unsupported in real time.
    pub fn new(scenario: &Scenario, hosts: &[NodeId]) -> Result<Self, Unsupported> {
        let scenario = &scenario.with_whole_connections();
        let mut paths = BTreeMap::new();
        for (i, &from) in hosts.iter().enumerate() {
            for (j, &to) in hosts.iter().enumerate() {
                if i != j
                    && let Ok(path) = path(scenario, from, to)?
                {
                    paths.insert((i, j), path);
                }
            }
        }
        refuse_idle(scenario, &paths)?;
        // The simulator takes a gateway of shape `link` for a layer over its links.
        let bare = Scenario { gateways: Gateways::default(), ..scenario.clone() };
        let mut wiring = Wiring::new(&bare, paths.len());
        let mut layers = Vec::new();
        for layer in &scenario.layers {
            for side in 0..2 {
                layers.push(LayerEnd::new(layer, &scenario.links, side)?);
            }
        }
        let (mut ways, mut table) = (Vec::new(), vec![None; hosts.len() * hosts.len()]);
        let mut rows = Vec::new();
        for ((from, to), mut path) in paths {
            let ends_at = |&link: &LinkId| hosts.iter().position(|host| *host == scenario[link].to);
            let goal = path.iter().enumerate().find_map(|(n, link)| Some((n + 1, ends_at(link)?)));
            let (length, goal) = goal.unwrap_or((path.len(), to));
            path.truncate(length);
            rows.push((from, to, goal, path));
        }
        let ends = rows.iter().flat_map(|(from, _, goal, path)| ends_of(scenario, [*from, *goal], path));
        let ports = ports(scenario, hosts, ends.collect());
        for (from, to, goal, path) in rows {
            let way = EndId::from(ways.len());
            let first = wiring.lead(way, &path, [hosts[from], hosts[goal]]);
            let port = |(host, neighbour)| {
                let is_it =
                    |port: &Port| port.host == host && port.neighbour.is_none_or(|towards| towards == neighbour);
                PortId::from(ports.iter().position(is_it).expect("each end of a path has a device"))
            };
            ways.push(Way { first, to: HostId::from(goal), ports: ends_of(scenario, [from, goal], &path).map(port) });
            table[from * hosts.len() + to] = Some(way);
        }
        // A channel for each path.
        let channels = (0..(ways.len() + layers.len()) as u32).collect();
        // No chains are used, because counters are read while packets are in flight.
        let network = wiring.network(scenario.seed, channels, false);
        let bits = TimeNoise::named(scenario.seed, "corrupt bits");
        Ok(Network { network, ways, table, hosts: hosts.len(), ports, layers, seed: scenario.seed, bits })
    }

    /// The number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.hosts
    }

    /// The hosts' devices: those of each host together, in the order of the hosts.
    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The device by which packets from `from` to `to` leave, if there is a path.
    pub(crate) fn port(&self, from: HostId, to: HostId) -> Option<PortId> {
        Some(self.ways[self.way(from, to)?.index()].ports[0])
    }

    /// The next host for packets from `from` to `to`, if there is a path.
    pub(crate) fn next_host(&self, from: HostId, to: HostId) -> Option<HostId> {
        Some(self.ways[self.way(from, to)?.index()].to)
    }

    /// The only next host for packets that leave by a device, if there is just one.
    pub(crate) fn only_neighbour(&self, port: PortId) -> Option<HostId> {
        let from = self.ports[port.index()].host;
        let through = HostId::first(self.hosts).filter(|&to| self.port(from, to) == Some(port));
        let mut next = through.filter_map(|to| self.next_host(from, to));
        let first = next.next()?;
        next.all(|other| other == first).then_some(first)
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Time> {
        let first = self.first();
        (first != Due::NEVER).then(|| first.at())
    }

    /// Sends a packet from one host to another at `now`, which must not be before earlier calls.
    ///
    /// # Errors
    /// Returns the packet if there is no path.
    pub fn offer(&mut self, now: Time, from: HostId, to: HostId, packet: Packet) -> Result<(), Packet> {
        let Some(way) = self.way(from, to) else { return Err(packet) };
        // Departures from queues at this instant come first.
        self.go(now, None, self.ways[way.index()].first, Parcel { packet, to: way }, &mut |_, _| {});
        Ok(())
    }

    /// Runs all events until `now` in order. `exit` receives each packet that leaves, with its time.
    pub fn advance(&mut self, now: Time, mut exit: impl FnMut(Time, Exit)) {
        loop {
            let due = self.first();
            let (at, component) = (due.at(), due.component());
            if due == Due::NEVER || at > now {
                return;
            }
            if let Some(end) = component.checked_sub(self.network.components()) {
                self.run_layer(due, end, &mut exit);
                continue;
            }
            match self.network.take(at, &mut NoProbe, component) {
                None => {}
                Some((parcel, Ok(hop))) => {
                    let altered = self.network.altered();
                    if altered == Altered::NOT {
                        self.go(at, Some(due.age()), hop, parcel, &mut exit);
                    } else {
                        self.go_altered(due, altered, hop, parcel, &mut exit);
                    }
                }
                Some((parcel, Err(_))) => exit(at, Exit::Lost(parcel.packet)),
            }
        }
    }

    /// Moves a packet that a link has altered: duplicated, marked, or with a flipped bit.
    #[cold]
    fn go_altered(
        &mut self,
        due: Due,
        altered: Altered,
        hop: Hop,
        mut parcel: Parcel,
        exit: &mut impl FnMut(Time, Exit),
    ) {
        let at = due.at();
        if altered.marked {
            let mut bytes = parcel.packet.to_bytes();
            Ecn::Ce.put(&mut bytes);
            parcel.packet = Packet::new(&bytes);
        }
        if altered.corrupt {
            let mut bytes = parcel.packet.to_bytes();
            let bit = (self.bits.at(at.index(), 0) * (8 * bytes.len()) as f64) as usize;
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            parcel.packet = Packet::new(&bytes);
        }
        if altered.twice {
            let copy = Parcel { packet: parcel.packet.clone(), to: parcel.to };
            self.go(at, Some(due.age()), hop, copy, exit);
        }
        self.go(at, Some(due.age()), hop, parcel, exit);
    }

    /// Moves a packet to its next hop, either by an event with this scheduling time or from outside.
    fn go(&mut self, at: Time, age: Option<Age>, hop: Hop, parcel: Parcel, exit: &mut impl FnMut(Time, Exit)) {
        match hop {
            Hop::Link(link) => {
                let begun = || age.map_or(Time::NEVER, |age| age.begun(at));
                // The link counts its drops.
                let _ = self.network.offer(at, begun, &mut NoProbe, link, parcel);
            }
            Hop::Station(station) => {
                // The network returns a dropped packet when its turn comes.
                let _ = self.network.enter(at, &mut NoProbe, station, parcel);
            }
            Hop::Layer { end, .. } => {
                let far = self.network.layers().far(end);
                let packet = parcel.packet.to_bytes();
                if self.layer(end).send(at, &packet) {
                    self.layer(far).remember(&packet, parcel.to);
                }
            }
            Hop::Arrived => match self.ways.get(parcel.to.index()) {
                Some(way) => exit(at, Exit::Arrived(way.ports[1], parcel.packet)),
                None => self.layer(parcel.to).receive(at, &parcel.packet.to_bytes()),
            },
        }
    }

    /// An end of a layer.
    fn layer(&mut self, end: EndId) -> &mut LayerEnd {
        let index = self.network.layers().index(end).expect("an end of a layer");
        &mut self.layers[index]
    }

    /// Polls an end of a layer until it waits.
    fn run_layer(&mut self, due: Due, end: usize, exit: &mut impl FnMut(Time, Exit)) {
        let (at, age) = (due.at(), Some(due.age()));
        loop {
            let layer = &mut self.layers[end];
            let Some((emitted, bytes)) = layer.poll(at) else { return };
            let packet = Packet::new(bytes);
            let (layers, id) = (self.network.layers(), EndId::from(self.ways.len() + end));
            let (hop, to) = match emitted {
                Emitted::Frame(_) => (layers.frames(id), layers.far(id)),
                Emitted::Packet(_) => {
                    let to = layer.bound_for(&packet.to_bytes()).expect("a delivered packet has entered the layer");
                    (self.network.behind(layers.hears(id), to), to)
                }
            };
            self.go(at, age, hop, Parcel { packet, to }, exit);
        }
    }

    fn books(&self) -> Books {
        self.network.books(Due::NEVER)
    }

    /// Counters of the links, in the scenario's order.
    pub fn counters(&self) -> Vec<LinkCounters> {
        let mut links = self.books().links;
        for (n, end) in self.layers.iter().enumerate() {
            let link = &mut links[self.network.layers().sends_on(EndId::from(self.ways.len() + n)).index()];
            link.offered += end.too_long();
            link.dropped_too_long += end.too_long();
        }
        links
    }

    /// Counters of the ends of layers, in the scenario's order.
    pub fn layer_stats(&self) -> Vec<[Stats; 2]> {
        self.layers.chunks(2).map(|ends| [ends[0].stats(), ends[1].stats()]).collect()
    }

    /// Changes the settings of a link at `now`. No packet is lost by it.
    pub fn retune(&mut self, now: Time, link: LinkId, spec: &LinkSpec) {
        self.network.retune(now, link, &spec.config, self.seed, &spec.component());
    }

    /// How long a link's line is busy with its queue. Unknown for a link in cells.
    pub fn backlog(&self, link: LinkId, now: Time) -> Option<Duration> {
        self.network.backlog(link, now)
    }

    /// Number of packets inside.
    pub fn in_flight(&self) -> usize {
        self.books().in_flight as usize + self.layers.iter().map(LayerEnd::in_flight).sum::<usize>()
    }

    fn way(&self, from: HostId, to: HostId) -> Option<EndId> {
        self.table[from.index() * self.hosts + to.index()]
    }

    /// The next event, in the simulator's order.
    fn first(&self) -> Due {
        let head = |(n, end): (usize, &LayerEnd)| {
            let (at, begun) = end.head()?;
            Some(Due::new(at, begun, self.network.components() + n))
        };
        let layers = self.layers.iter().enumerate().filter_map(head);
        layers.fold(self.network.first(), Due::min)
    }
}

/// The ends of a path, each with the neighbour on the path.
fn ends_of(scenario: &Scenario, [from, to]: [usize; 2], path: &Path) -> [(HostId, NodeId); 2] {
    let [first, last] = [path.first(), path.last()].map(|link| *link.expect("two hosts are at least a link apart"));
    [(HostId::from(from), scenario[first].to), (HostId::from(to), scenario[last].from)]
}

/// The devices of the hosts, whose paths have these ends.
fn ports(scenario: &Scenario, hosts: &[NodeId], mut ends: Vec<(HostId, NodeId)>) -> Vec<Port> {
    ends.sort_unstable();
    ends.dedup();
    let boxes = with_boxes(scenario);
    let of = |(id, node): (HostId, &NodeId)| {
        let neighbours = ends.iter().filter(|(host, _)| *host == id).map(|&(_, neighbour)| Some(neighbour));
        let neighbours: Vec<_> = neighbours.filter(|_| boxes.contains(node)).collect();
        let neighbours = if neighbours.is_empty() { vec![None] } else { neighbours };
        neighbours.into_iter().map(move |neighbour| Port { host: id, neighbour })
    };
    HostId::first(hosts.len()).zip(hosts).flat_map(of).collect()
}

/// Refuses a link that no packet uses because another link joins the same nodes.
fn refuse_idle(scenario: &Scenario, paths: &BTreeMap<(usize, usize), Path>) -> Result<(), Unsupported> {
    let takes = |link: &LinkId| paths.values().flatten().any(|on| on == link) || scenario.layer_over(*link).is_some();
    let links = || LinkId::first(scenario.links.len());
    for idle in links().filter(|link| !takes(link)) {
        let spec = &scenario[idle];
        let is_twin = |other: &LinkSpec| (other.from, other.to) == (spec.from, spec.to);
        let twin = links().find(|&link| link != idle && takes(&link) && is_twin(&scenario[link]));
        if let Some(twin) = twin.map(|link| &scenario[link]) {
            return Err(Unsupported {
                key: format!("links.{}", spec.name.split('/').next().unwrap_or(&spec.name)),
                what: format!("all packets take `{}`, which joins the same nodes", twin.name),
                expected: "one link between two nodes, or a flow with a `route` over this one",
            });
        }
    }
    Ok(())
}

/// The path between two nodes: that of the connections between them, otherwise the shortest one. Between the boxes of
/// a gateway it is the link with the tunnel.
fn path(scenario: &Scenario, from: NodeId, to: NodeId) -> Result<Result<Path, topology::Unreachable>, Unsupported> {
    for pair in &scenario.gateways.pairs {
        if let Some(side) = [0, 1].into_iter().find(|&side| [pair.nodes[side], pair.nodes[1 - side]] == [from, to]) {
            return Ok(Ok(vec![pair.over[side]]));
        }
    }
    let mut known: Option<(&str, Path)> = None;
    for flow in &scenario.flows {
        for leg in topology::legs(flow) {
            let path = match (leg.from, leg.to) {
                ends if ends == (from, to) => leg.forward_path(scenario),
                ends if ends == (to, from) => leg.return_path(scenario),
                _ => continue,
            };
            let Ok(path) = path else { continue };
            match &known {
                Some((first, other)) if *other != path => {
                    return Err(Unsupported {
                        key: format!("flows.{}", flow.name),
                        what: format!("it takes another route than `{first}` between the same hosts"),
                        expected: "one route between two hosts: packets in real time do not identify their flow",
                    });
                }
                Some(_) => {}
                None => known = Some((&flow.name, path)),
            }
        }
    }
    Ok(known.map_or_else(|| topology::path(scenario, from, to), |(_, path)| Ok(path)))
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
