//! The links between hosts, without clock or device: packets go in at a host and come out at another.
//!
//! Routers are inside: a way is a row of links, and a packet enters the next link at the instant at which it left the
//! one before, however late somebody looks. Ways end at the first host on them; what is for a host beyond is that one's
//! to forward. Where a layer lies over a link, a way leads through the layer instead, and frames have ways of their own.

use std::collections::BTreeMap;

use bentpipe_engine::NoProbe;
use bentpipe_engine::link::{LinkCounters, Wire};
use bentpipe_engine::network::{self, Age, Books, Bound, Due, EndId, Hop, LinkId};
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Emitted, Packet};
use bentpipe_study::scenario::Scenario;
use bentpipe_study::topology::{self, Path};
use bentpipe_study::wiring::Wiring;

use super::Unsupported;
use crate::layer::LayerEnd;

/// A packet on its way: to a host, by the number of the way, or as a frame to the end of a layer.
#[derive(Debug)]
struct Parcel {
    packet: Packet,
    to: EndId,
}

impl Wire for Parcel {
    fn wire_len(&self) -> u32 {
        self.packet.len() as u32
    }
}

impl Bound for Parcel {
    fn to(&self) -> EndId {
        self.to
    }
}

/// A way of packets from one host to another, or to the first host that lies between.
#[derive(Clone, Copy, Debug)]
struct Way {
    first: Hop,
    /// The host at its end.
    to: usize,
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
    network: network::Network<Parcel>,
    ways: Vec<Way>,
    /// By source and destination.
    table: Vec<Option<EndId>>,
    hosts: usize,
    /// Two for each layer; as ends of packets, and in the order of events, they stand behind all others.
    layers: Vec<LayerEnd>,
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
        let mut wiring = Wiring::new(scenario, paths.len());
        let mut layers = Vec::new();
        for (number, layer) in scenario.layers.iter().enumerate() {
            for (side, frames) in wiring.lead_frames(number).into_iter().enumerate() {
                layers.push(LayerEnd::new(layer, &scenario.links, side, frames)?);
            }
        }
        let (mut ways, mut table) = (Vec::new(), vec![None; hosts.len() * hosts.len()]);
        for ((from, to), mut path) in paths {
            let ends_at = |link: &usize| hosts.iter().position(|host| *host == scenario.links[*link].to);
            let goal = path.iter().enumerate().find_map(|(n, link)| Some((n + 1, ends_at(link)?)));
            let (length, goal) = goal.unwrap_or((path.len(), to));
            path.truncate(length);
            let way = EndId::from(ways.len());
            let first = wiring.lead(way, &path, [hosts[from], hosts[goal]]);
            ways.push(Way { first, to: goal });
            table[from * hosts.len() + to] = Some(way);
        }
        // A channel for each way.
        let channels = (0..(ways.len() + layers.len()) as u32).collect();
        // Not in chains: counters are read while packets are on their way.
        let network = wiring.network(scenario.seed, channels, false);
        Ok(Network { network, ways, table, hosts: hosts.len(), layers })
    }

    /// The host that packets from `from` to `to` come to next, if a way leads there.
    pub fn next_host(&self, from: usize, to: usize) -> Option<usize> {
        Some(self.ways[self.way(from, to)?.index()].to)
    }

    /// The only host to which packets from `from` come first, if there is just one.
    pub fn only_neighbour(&self, from: usize) -> Option<usize> {
        let mut next = (0..self.hosts).filter_map(|to| self.next_host(from, to));
        let first = next.next()?;
        next.all(|other| other == first).then_some(first)
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        let first = self.first();
        (first != Due::NEVER).then(|| first.at())
    }

    /// Puts a packet in at `now`, which no earlier call has passed, on its way from one host to another.
    ///
    /// # Errors
    /// The packet, where no way leads.
    pub fn offer(&mut self, now: Time, from: usize, to: usize, packet: Packet) -> Result<(), Packet> {
        let Some(way) = self.way(from, to) else { return Err(packet) };
        // What leaves a queue at this instant leaves first.
        self.go(now, None, self.ways[way.index()].first, Parcel { packet, to: way }, &mut |_, _| {});
        Ok(())
    }

    /// Lets everything happen that does until `now`, in its order; `exit` hears what comes out, and when.
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
                Some((parcel, Ok(hop))) => self.go(at, Some(due.age()), hop, parcel, &mut exit),
                Some((parcel, Err(_))) => exit(at, Exit::Lost(parcel.packet)),
            }
        }
    }

    /// Brings a packet to where it goes next, by an event of this age, or from outside.
    fn go(&mut self, at: Time, age: Option<Age>, hop: Hop, parcel: Parcel, exit: &mut impl FnMut(Time, Exit)) {
        match hop {
            Hop::Link(link) => {
                let begun = || age.map_or(Time::NEVER, |age| age.begun(at));
                // The link counts what it refuses.
                let _ = self.network.offer(at, begun, &mut NoProbe, link, parcel);
            }
            Hop::Station(station) => self.network.enter(at, &mut NoProbe, station, parcel),
            Hop::Layer { end, .. } => {
                let end = self.layer(end);
                let packet = parcel.packet.to_bytes();
                if self.layers[end].send(at, &packet) {
                    self.layers[end ^ 1].remember(&packet, parcel.to);
                }
            }
            Hop::Arrived => match self.ways.get(parcel.to.index()) {
                Some(way) => exit(at, Exit::Arrived(way.to, parcel.packet)),
                None => {
                    let end = self.layer(parcel.to);
                    self.layers[end].receive(at, &parcel.packet.to_bytes());
                }
            },
        }
    }

    /// Which of the ends of layers an end is.
    fn layer(&self, end: EndId) -> usize {
        end.index() - self.ways.len()
    }

    /// Polls an end of a layer until it waits.
    fn run_layer(&mut self, due: Due, end: usize, exit: &mut impl FnMut(Time, Exit)) {
        let (at, age) = (due.at(), Some(due.age()));
        loop {
            let (frames, hears) = (self.layers[end].frames, self.layers[end ^ 1].sends_on);
            let layer = &mut self.layers[end];
            let Some((emitted, bytes)) = layer.poll(at) else { return };
            let packet = Packet::new(bytes);
            let (hop, to) = match emitted {
                Emitted::Frame(_) => (frames, EndId::from(self.ways.len() + (end ^ 1))),
                Emitted::Packet(_) => {
                    let to = layer.bound_for(&packet.to_bytes()).expect("what a layer hands over has entered it");
                    (self.network.behind(hears, to), to)
                }
            };
            self.go(at, age, hop, Parcel { packet, to }, exit);
        }
    }

    fn books(&self) -> Books {
        self.network.books(Due::NEVER)
    }

    /// What the links have counted, in the scenario's order.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.books().links
    }

    /// What the ends of layers have counted, in the scenario's order.
    pub fn layer_stats(&self) -> Vec<[Stats; 2]> {
        self.layers.chunks(2).map(|ends| [ends[0].stats(), ends[1].stats()]).collect()
    }

    /// How long the line of a link of the scenario is busy with what it holds; for one in cells this is not known.
    pub fn backlog(&self, link: usize, now: Time) -> Option<Duration> {
        self.network.backlog(LinkId::from(link), now)
    }

    /// Packets inside.
    pub fn in_flight(&self) -> usize {
        self.books().in_flight as usize + self.layers.iter().map(LayerEnd::in_flight).sum::<usize>()
    }

    fn way(&self, from: usize, to: usize) -> Option<EndId> {
        self.table[from * self.hosts + to]
    }

    /// What happens next, in the simulator's order.
    fn first(&self) -> Due {
        let head = |(n, end): (usize, &LayerEnd)| {
            let (at, begun) = end.head()?;
            Some(Due::new(at, begun, self.network.components() + n))
        };
        let layers = self.layers.iter().enumerate().filter_map(head);
        layers.fold(self.network.first(), Due::min)
    }
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
