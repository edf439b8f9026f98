//! The links between hosts, without clock or device: packets go in at a host and come out at another.
//!
//! Routers are inside: a way is a row of links, and a packet enters the next link at the instant at which it left the
//! one before, however late somebody looks. Ways end at the first host on them; what is for a host beyond is that one's
//! to forward. Where a layer lies over a link, a way leads through the layer instead, and frames have ways of their own.

use std::collections::BTreeMap;

use bentpipe_engine::link::{CellPort, Link, LinkConfig, LinkCounters, Outcome, QueueConfig, QueueLimit, Server, Wire};
use bentpipe_engine::probe::Who;
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, NoProbe};
use bentpipe_study::scenario::Scenario;
use bentpipe_study::topology::{self, Path};

use super::Unsupported;
use super::layer::LayerEnd;
use crate::slacp::Emitted;
use crate::train::Packet;

/// A packet on its way.
#[derive(Debug)]
struct Parcel {
    packet: Packet,
    way: u32,
    /// Stages that are behind it, the one that it is in included.
    hop: u32,
}

impl Wire for Parcel {
    fn wire_len(&self) -> u32 {
        self.packet.len() as u32
    }
}

/// What a packet passes. There are few, and most are links.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
enum Stage {
    Link(Link<Parcel>),
    Cells(Box<CellPort<Parcel>>),
    /// The processor of a host.
    Host(Server<Parcel>),
    /// What comes from above goes to the far end of a layer, in frames over a link.
    Layer(Box<LayerEnd>),
}

/// Where a way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Host(usize),
    /// The stage of a layer's end, for frames.
    Layer(u32),
}

/// A row of stages.
#[derive(Debug)]
struct Way {
    to: Goal,
    stages: Vec<u32>,
}

/// What comes out of a network.
#[derive(Debug)]
pub enum Exit {
    /// At this host.
    Arrived(usize, Packet),
    /// Nowhere: a channel lost it.
    Lost(Packet),
}

/// Links, and the ways of packets over them. Hosts are known by their place in the list that the network was made with.
#[derive(Debug)]
pub struct Network {
    stages: Vec<Stage>,
    /// The stage of each link of the scenario.
    of_link: Vec<u32>,
    /// The stages of both ends of each layer.
    of_layer: Vec<[u32; 2]>,
    ways: Vec<Way>,
    /// By source and destination.
    table: Vec<Option<u32>>,
    hosts: usize,
}

impl Network {
    /// The scenario's links between the nodes `hosts`, with its seed. A flow's own route is the way between its ends.
    ///
    /// # Errors
    /// What of the scenario has no place in real time.
    pub fn new(scenario: &Scenario, hosts: &[usize]) -> Result<Self, Unsupported> {
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
        let seed = scenario.seed;
        let (mut stages, mut of_link) = (Vec::new(), Vec::new());
        for (n, spec) in scenario.links.iter().enumerate() {
            let name = format!("link/{}", spec.name);
            of_link.push(stages.len() as u32);
            stages.push(match spec.config.cells {
                // A channel for each way: those of layers' frames come first.
                Some(_) => {
                    let ways = 2 * scenario.layers.len() + paths.len();
                    Stage::Cells(Box::new(CellPort::new(&spec.config, seed, &name, ways)))
                }
                None if scenario.layer_over(n).is_some() => Stage::Link(below_layer(&spec.config, seed, &name)),
                None => Stage::Link(Link::new(&spec.config, seed, &name)),
            });
        }
        let (mut of_layer, mut ways) = (Vec::new(), Vec::new());
        for layer in &scenario.layers {
            let first = stages.len() as u32;
            for side in 0..2 {
                let far = first + 1 - side as u32;
                let end = LayerEnd::new(layer, &scenario.links, side, far, ways.len() as u32)?;
                stages.push(Stage::Layer(Box::new(end)));
                ways.push(Way { to: Goal::Layer(far), stages: vec![of_link[layer.over[side]]] });
            }
            of_layer.push([first, first + 1]);
        }
        let (mut processors, mut forwarders) = (BTreeMap::new(), BTreeMap::new());
        for (node, name) in scenario.nodes.iter().enumerate() {
            if let Some(time) = scenario.hosts.get(node).and_then(|host| host.processing) {
                processors.insert(node, stages.len() as u32);
                stages.push(Stage::Host(Server::new(time, seed, &format!("node/{name}"))));
            }
            if let Some(time) = scenario.hosts.get(node).and_then(|host| host.forwarding) {
                forwarders.insert(node, stages.len() as u32);
                stages.push(Stage::Host(Server::new(time, seed, &format!("node/{name}/forwarding"))));
            }
        }
        let mut network = Network { stages, of_link, of_layer, ways, table: Vec::new(), hosts: hosts.len() };
        network.table = vec![None; hosts.len() * hosts.len()];
        for ((from, to), path) in paths {
            let mut row: Vec<u32> = processors.get(&hosts[from]).copied().into_iter().collect();
            let mut goal = to;
            for (n, link) in path.into_iter().enumerate() {
                if n > 0 {
                    row.extend(forwarders.get(&scenario.links[link].from));
                }
                row.push(match scenario.layer_over(link) {
                    Some((layer, side)) => network.of_layer[layer][side],
                    None => network.of_link[link],
                });
                if let Some(host) = hosts.iter().position(|host| *host == scenario.links[link].to) {
                    goal = host;
                    break;
                }
            }
            row.extend(processors.get(&hosts[goal]));
            network.table[from * network.hosts + to] = Some(network.ways.len() as u32);
            network.ways.push(Way { to: Goal::Host(goal), stages: row });
        }
        Ok(network)
    }

    /// The host that packets from `from` to `to` come to next, if a way leads there.
    pub fn next_host(&self, from: usize, to: usize) -> Option<usize> {
        match self.ways[self.way(from, to)? as usize].to {
            Goal::Host(host) => Some(host),
            Goal::Layer(_) => None,
        }
    }

    /// The only host to which packets from `from` come first, if there is just one.
    pub fn only_neighbour(&self, from: usize) -> Option<usize> {
        let mut next = (0..self.hosts).filter_map(|to| self.next_host(from, to));
        let first = next.next()?;
        next.all(|other| other == first).then_some(first)
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        self.first().map(|(at, ..)| at)
    }

    /// Puts a packet in at `now`, which no earlier call has passed, on its way from one host to another.
    ///
    /// # Errors
    /// The packet, where no way leads.
    pub fn offer(&mut self, now: Time, from: usize, to: usize, packet: Packet) -> Result<(), Packet> {
        let Some(way) = self.way(from, to) else { return Err(packet) };
        self.enter(now, Parcel { packet, way, hop: 0 });
        Ok(())
    }

    /// Lets everything happen that does until `now`, in its order; `exit` hears what comes out, and when.
    pub fn advance(&mut self, now: Time, mut exit: impl FnMut(Time, Exit)) {
        while let Some((at, _, stage)) = self.first() {
            if at > now {
                return;
            }
            let cx = &mut Context { now: at, who: Who(0), probe: &mut NoProbe };
            let out = match &mut self.stages[stage] {
                Stage::Link(link) => link.take(cx).map(|arrival| (arrival.packet, arrival.outcome)),
                Stage::Cells(port) => port
                    .take(cx)
                    .map(|(parcel, lost)| (parcel, if lost.is_ok() { Outcome::Delivered } else { Outcome::Lost })),
                Stage::Host(server) => server.take(at).map(|parcel| (parcel, Outcome::Delivered)),
                Stage::Layer(_) => {
                    self.run_layer(at, stage, &mut exit);
                    None
                }
            };
            match out {
                None => {}
                Some((parcel, Outcome::Lost)) => exit(at, Exit::Lost(parcel.packet)),
                Some((parcel, Outcome::Delivered)) => self.go_on(at, parcel, &mut exit),
            }
        }
    }

    /// Out of a stage: into the next one of its way, or out of the network.
    fn go_on(&mut self, at: Time, parcel: Parcel, exit: &mut impl FnMut(Time, Exit)) {
        let way = &self.ways[parcel.way as usize];
        match way.to {
            _ if (parcel.hop as usize) < way.stages.len() => self.enter(at, parcel),
            Goal::Host(host) => exit(at, Exit::Arrived(host, parcel.packet)),
            Goal::Layer(end) => self.layer(end as usize).receive(at, &parcel.packet.to_bytes()),
        }
    }

    fn layer(&mut self, stage: usize) -> &mut LayerEnd {
        match &mut self.stages[stage] {
            Stage::Layer(end) => end,
            _ => unreachable!("the stage of a layer's end"),
        }
    }

    /// Polls an end of a layer until it waits.
    fn run_layer(&mut self, at: Time, stage: usize, exit: &mut impl FnMut(Time, Exit)) {
        loop {
            let end = self.layer(stage);
            let frames = end.frames;
            let Some((emitted, bytes)) = end.poll(at) else { return };
            let packet = Packet::new(bytes);
            match emitted {
                Emitted::Frame(_) => self.enter(at, Parcel { packet, way: frames, hop: 0 }),
                Emitted::Packet(_) => {
                    let place = end.place(&packet.to_bytes());
                    let (way, hop) = place.expect("what a layer hands over has entered it");
                    self.go_on(at, Parcel { packet, way, hop }, exit);
                }
            }
        }
    }

    /// What the links have counted, in the scenario's order.
    pub fn counters(&self) -> Vec<LinkCounters> {
        let of = |stage: &u32| match &self.stages[*stage as usize] {
            Stage::Link(link) => link.counters(),
            Stage::Cells(port) => port.counters(),
            Stage::Host(_) | Stage::Layer(_) => LinkCounters::default(),
        };
        self.of_link.iter().map(of).collect()
    }

    /// What the ends of layers have counted, in the scenario's order.
    pub fn layer_stats(&self) -> Vec<[Stats; 2]> {
        let of = |stage: u32| match &self.stages[stage as usize] {
            Stage::Layer(end) => end.stats(),
            _ => unreachable!("the stage of a layer's end"),
        };
        self.of_layer.iter().map(|ends| ends.map(of)).collect()
    }

    /// How long the line of a link of the scenario is busy with what it holds; for one in cells this is not known.
    pub fn backlog(&self, link: usize, now: Time) -> Option<Duration> {
        match &self.stages[self.of_link[link] as usize] {
            Stage::Link(link) => Some(link.backlog(now)),
            Stage::Cells(_) | Stage::Host(_) | Stage::Layer(_) => None,
        }
    }

    /// Packets inside.
    pub fn in_flight(&self) -> usize {
        let of = |stage: &Stage| match stage {
            Stage::Link(link) => link.in_flight(),
            Stage::Cells(port) => port.in_flight(),
            Stage::Host(server) => server.in_flight(),
            Stage::Layer(end) => end.in_flight(),
        };
        self.stages.iter().map(of).sum()
    }

    fn way(&self, from: usize, to: usize) -> Option<u32> {
        self.table[from * self.hosts + to]
    }

    /// Into the next stage of its way.
    fn enter(&mut self, now: Time, mut parcel: Parcel) {
        let stage = self.ways[parcel.way as usize].stages[parcel.hop as usize];
        parcel.hop += 1;
        let cx = &mut Context { now, who: Who(0), probe: &mut NoProbe };
        match &mut self.stages[stage as usize] {
            Stage::Link(link) => {
                // It counts what it refuses.
                let _ = link.offer(cx, parcel);
            }
            Stage::Cells(port) => port.offer(cx, parcel.way, parcel),
            Stage::Host(server) => server.offer(now, parcel),
            Stage::Layer(end) => {
                let packet = parcel.packet.to_bytes();
                let far = end.far;
                if end.send(now, &packet) {
                    self.layer(far as usize).remember(&packet, (parcel.way, parcel.hop));
                }
            }
        }
    }

    /// The next event: its instant, since when it is fixed, and its stage, in the simulator's order.
    fn first(&self) -> Option<(Time, Time, usize)> {
        let head = |(n, stage): (usize, &Stage)| {
            let (at, begun) = match stage {
                Stage::Link(link) => link.head(),
                Stage::Cells(port) => port.head(),
                Stage::Host(server) => server.head(),
                Stage::Layer(end) => end.head(),
            }?;
            Some((at, begun, n))
        };
        self.stages.iter().enumerate().filter_map(head).min()
    }
}

/// Below a layer a link has no queue: the layer sends when the line is free.
fn below_layer(config: &LinkConfig, seed: u64, name: &str) -> Link<Parcel> {
    let mut config = config.clone();
    config.queue = QueueConfig { limit: QueueLimit::Unlimited, ..config.queue };
    // The layer looks at the length of packets; frames are longer.
    config.mtu = None;
    Link::new(&config, seed, name)
}

/// The path between two nodes: that of the connections between them, where there are any, else the shortest.
fn path(scenario: &Scenario, from: usize, to: usize) -> Result<Result<Path, topology::Unreachable>, Unsupported> {
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
                        expected: "one route between two hosts: packets in real time do not say of which flow they are",
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
