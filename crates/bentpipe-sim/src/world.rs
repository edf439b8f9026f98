//! The world of a run: links and ends of flows, who is wired to whom, and what happens next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bentpipe_engine::link::{Link, LinkCounters, Outcome, Wire};
use bentpipe_engine::probe::{DropReason, Who};
use bentpipe_engine::slacp::classify::Headers;
use bentpipe_engine::splice::{EndConfig, Leg};
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::{Abort, Input, Role, TcbCache, TcpConfig, TcpStats};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Step};
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, TcpFlow};
use bentpipe_study::topology;

use crate::agenda::{Age, Agenda, Due, Next};
use crate::delays::Delays;
use crate::endpoint::{Endpoint, TcpEnd, UdpSource};
use crate::gateway::Gateway;
use crate::layer::Frames;
use crate::observe::{LINK_BASE, Observer, Passage};
use crate::packet::{Parcel, Store};
use crate::port::{Port, Ports};
use crate::run::RunError;

mod layers;
mod spoofing;

/// Where a packet goes from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    /// Onto this link.
    Link(u32),
    /// Into the end of a link layer, which is this one of the ends.
    Layer(u32),
    /// Into this port.
    Port(u32),
    /// It is there.
    Arrived,
}

/// How timers are kept in the agenda. Both give the same run; the literal one is the lazy one's twin in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// A timer that moves later stays where it is; when its slot comes, the machine is polled and says so.
    #[default]
    Lazy,
    /// Each change is carried over at once.
    Literal,
}

/// How many legs a flow has.
fn legs_of(flow: &FlowSpec) -> usize {
    topology::legs(flow).len()
}

/// What the connections from one host to another share.
type Hosts = BTreeMap<(usize, usize), Rc<RefCell<TcbCache>>>;

/// Links, ends and agenda of one run. Components are numbered, links first; the two ends of connection n are 2n and
/// 2n + 1. A flow's connection has the flow's number; the further legs of split ones stand behind all flows.
#[derive(Debug)]
pub(crate) struct World {
    links: Vec<Link<Parcel>>,
    packets: Store,
    /// The first hop of each end's packets, and the next one behind each link for packets to each end.
    first_hop: Vec<Hop>,
    next_hop: Vec<Hop>,
    /// Links in cells and processors of hosts; in the agenda they follow the links.
    ports: Ports,
    /// As `next_hop`, behind each port.
    port_hop: Vec<Hop>,
    /// Two for each connection, one for each flow whose TCP ends on the way, then two for each link layer.
    ends: Vec<Endpoint>,
    /// By flow whose TCP ends on the way: its end there.
    spoofers: Vec<usize>,
    /// The ends from here to those of layers are where such flows arrive.
    first_sink: usize,
    /// How many of them belong to flows.
    flow_ends: usize,
    frames: Frames,
    /// By end: what the headers of packets to it say to a link layer; empty where there is none.
    headers: Vec<Headers>,
    gateways: Vec<Gateway>,
    /// The end at which each flow arrives.
    goals: Vec<u32>,
    /// What each end waits for at last: the agenda may hold something earlier.
    waits: Vec<Due>,
    agenda: Agenda,
    timers: Timers,
    /// Finite ends that are not done; the run is over when none is left of those there were.
    busy: usize,
    has_finite: bool,
    done: Vec<bool>,
    pub(crate) now: Time,
    /// How long ago the event that happens now was begun.
    age: Age,
    pub(crate) events: u64,
}

/// What one flow achieved.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// When it started.
    pub start: Time,
    /// When the opening was done at the sender, from which moment on it sends data.
    pub connected_at: Option<Time>,
    /// When the ACK of the last byte arrived at the sender.
    pub acked_at: Option<Time>,
    /// When the last missing byte arrived at the receiver.
    pub received_at: Option<Time>,
    /// Bytes that arrived in order at the flow's far end; for UDP all that arrived, headers included.
    pub delivered: u64,
    /// What the sender counted; for UDP only `data_segments`, the datagrams sent.
    pub stats: TcpStats,
    /// What the receiver counted.
    pub receiver_stats: TcpStats,
    /// What both ends of each leg counted, of a flow that is split; empty for others.
    pub legs: Vec<[TcpStats; 2]>,
    /// Why it was given up, if it was.
    pub aborted: Option<Abort>,
    /// Segments that the node on the way in which the flow's TCP ends had no room for.
    pub refused: u64,
    /// How long its datagrams were on their way; `None` where it has none.
    pub delays: Option<Delays>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, seed: u64, timers: Timers) -> Result<World, RunError> {
        let connections = topology::connections(scenario);
        let (links, first_sink) = (scenario.links.len(), 2 * connections.len());
        let flow_ends = first_sink + spoofing::count(scenario);
        let ends = flow_ends + 2 * scenario.layers.len();
        let ports = Ports::new(scenario, seed);
        let mut world = World {
            links: scenario.links.iter().enumerate().map(|(n, _)| layers::link(scenario, n, seed)).collect(),
            packets: Store::default(),
            first_hop: vec![Hop::Arrived; ends],
            next_hop: vec![Hop::Arrived; links * ends],
            port_hop: vec![Hop::Arrived; ports.all.len() * ends],
            ends: Vec::with_capacity(ends),
            flow_ends,
            spoofers: vec![0; spoofing::count(scenario)],
            first_sink,
            frames: Frames::default(),
            headers: Vec::new(),
            gateways: Vec::new(),
            goals: (0..scenario.flows.len() as u32).map(|n| 2 * n + 1).collect(),
            waits: vec![Due::NEVER; ends],
            agenda: Agenda::new(links + ports.all.len(), ends),
            ports,
            timers,
            busy: 0,
            has_finite: false,
            done: vec![false; ends],
            now: Time::ZERO,
            age: Age::default(),
            events: 0,
        };
        for (n, (flow, leg_number, leg)) in connections.iter().enumerate() {
            let there = leg.forward_path(scenario)?;
            // Nobody answers datagrams.
            let back = match scenario.flows[*flow].kind {
                FlowKind::Udp(_) => leg.return_path(scenario).unwrap_or_default(),
                _ => leg.return_path(scenario)?,
            };
            let goes_on = legs_of(&scenario.flows[*flow]) > leg_number + 1;
            if let (Some(spoof), false) = (scenario.flows[*flow].kind.spoof(), goes_on) {
                world.wire_spoofer(scenario, (*flow, n), leg, spoof, (&there, &back))?;
                continue;
            }
            world.wire(scenario, 2 * n, 2 * n + 1, &there, [leg.from, leg.to]);
            world.wire(scenario, 2 * n + 1, 2 * n, &back, [leg.to, leg.from]);
        }
        let mut hosts = Hosts::new();
        let mut sinks = spoofing::Sinks::default();
        for (n, flow) in scenario.flows.iter().enumerate() {
            let start = Time::ZERO + flow.start;
            let shared = |from: usize, to: usize, hosts: &mut Hosts| hosts.entry((from, to)).or_default().clone();
            match &flow.kind {
                FlowKind::Tcp(tcp) => {
                    let there = shared(flow.from, flow.to, &mut hosts);
                    let back = shared(flow.to, flow.from, &mut hosts);
                    let receiver = tcp.splits.last().map_or(tcp.receiver, |last| last.receiver);
                    let end = |config, stp: Option<StpConfig>, role, shared| {
                        let end = match stp {
                            Some(stp) => TcpEnd::stp(stp, role, tcp.workload, n as u32, start),
                            None => TcpEnd::new(config, role, tcp.workload, n as u32, start, shared),
                        };
                        Endpoint::Tcp(Box::new(end.paced(seed, &flow.name)))
                    };
                    let last = tcp.splits.last().map_or(tcp.stp, |last| last.stp);
                    world.ends.push(end(tcp.sender, tcp.stp, Role::Active, &there));
                    let receiver = match tcp.spoof {
                        Some(spoof) => sinks.spoofer(first_sink, n, tcp, spoof),
                        None => end(receiver, last, Role::Passive, &back),
                    };
                    world.ends.push(receiver);
                }
                FlowKind::Stp(stp) => {
                    let end = |role| {
                        let end = TcpEnd::stp(stp.config, role, stp.workload, n as u32, start);
                        Endpoint::Tcp(Box::new(end.paced(seed, &flow.name)))
                    };
                    world.ends.extend([end(Role::Active), end(Role::Passive)]);
                }
                FlowKind::Udp(udp) => {
                    world.ends.push(Endpoint::UdpSource(UdpSource::new(udp, n as u32, start, seed, &flow.name)));
                    world.ends.push(Endpoint::UdpSink(Box::default()));
                }
            }
        }
        for (n, &(flow, leg, _)) in connections.iter().enumerate() {
            if let (FlowKind::Tcp(tcp), 1..) = (&scenario.flows[flow].kind, leg) {
                world.split(flow, n, leg, tcp);
            }
        }
        world.ends.extend(sinks.into_ends());
        world.add_layers(scenario);
        world.plan_first_actions();
        Ok(world)
    }

    /// Puts a gateway between the last leg of a flow so far and connection `n`, its next leg. The end that was the
    /// flow's last one moves to the end of the new leg.
    fn split(&mut self, flow: usize, n: usize, leg: usize, tcp: &TcpFlow) {
        let near = self.goals[flow] as usize;
        let (far, goal) = (2 * n as u32, 2 * n as u32 + 1);
        let gateway = self.gateways.len() as u32;
        let config = |stp: Option<StpConfig>, tcp: TcpConfig| stp.map_or(EndConfig::Tcp(tcp), EndConfig::Stp);
        let near_config = match leg.checked_sub(2) {
            None => config(tcp.stp, tcp.receiver),
            Some(before) => config(tcp.splits[before].stp, tcp.splits[before].receiver),
        };
        let far_config = config(tcp.splits[leg - 1].stp, tcp.splits[leg - 1].sender);
        self.gateways.push(Gateway::new([near_config, far_config], [near as u32, far]));
        let mut last = core::mem::replace(&mut self.ends[near], Endpoint::Port { gateway, leg: Leg::Near });
        match &mut last {
            Endpoint::Tcp(end) => end.joins(n as u32),
            Endpoint::Spoofer(end) => end.joins(n as u32),
            _ => {}
        }
        self.ends.extend([Endpoint::Port { gateway, leg: Leg::Far }, last]);
        self.goals[flow] = goal;
    }

    /// The way of packets from one end to another: over links and the layers above them, and before and behind those
    /// through the processors of the hosts where they take time.
    fn wire(&mut self, scenario: &Scenario, from: usize, to: usize, path: &[usize], [here, there]: [usize; 2]) {
        let (ends, flow_ends) = (self.first_hop.len(), self.flow_ends);
        let processor = |node| self.ports.of_node(node).map(|port| (Hop::Port(port), None));
        let onto = |&link: &usize| {
            let hop = match (scenario.layer_over(link), self.ports.of_link(link)) {
                (Some((layer, side)), _) => Hop::Layer((flow_ends + 2 * layer + side) as u32),
                (None, Some(port)) => Hop::Port(port),
                (None, None) => Hop::Link(link as u32),
            };
            (hop, Some(link))
        };
        // Between two links lies a node that passes packets on.
        let passed_on =
            |link: &usize| self.ports.forwarding(scenario.links[*link].from).map(|port| (Hop::Port(port), None));
        let way = path.iter().enumerate().flat_map(|(n, link)| {
            let node = if n > 0 { passed_on(link) } else { None };
            node.into_iter().chain([onto(link)])
        });
        let hops = processor(here).into_iter().chain(way).chain(processor(there));
        let hops: Vec<(Hop, Option<usize>)> = hops.collect();
        let hop = |at: usize| hops.get(at).map_or(Hop::Arrived, |&(hop, _)| hop);
        self.first_hop[from] = hop(0);
        for (i, &at) in hops.iter().enumerate() {
            match at {
                (Hop::Port(port), _) => self.port_hop[port as usize * ends + to] = hop(i + 1),
                // Behind a layer packets go on from the link that it sends on.
                (_, link) => self.next_hop[link.expect("on a path") * ends + to] = hop(i + 1),
            }
        }
    }

    fn plan_first_actions(&mut self) {
        for (n, end) in self.ends.iter().enumerate() {
            let first = match end {
                Endpoint::Tcp(tcp) => {
                    let counts = tcp.is_finite() && !tcp.is_done();
                    self.busy += counts as usize;
                    self.has_finite |= counts;
                    self.done[n] = !counts;
                    tcp.first_action()
                }
                Endpoint::UdpSource(source) => source.first_action(),
                // Listens from the beginning; the far port is polled with the near one.
                Endpoint::Port { leg: Leg::Near, .. } => Time::ZERO,
                Endpoint::Port { leg: Leg::Far, .. } | Endpoint::UdpSink(_) | Endpoint::Layer(_) => Time::NEVER,
                Endpoint::Spoofer(spoofer) => spoofer.first_action(),
                Endpoint::Sink(sink) => {
                    let counts = sink.is_finite();
                    self.busy += counts as usize;
                    self.has_finite |= counts;
                    self.done[n] = !counts;
                    Time::NEVER
                }
            };
            if !matches!(end, Endpoint::Tcp(_) | Endpoint::Sink(_)) {
                self.done[n] = true;
            }
            if first != Time::NEVER {
                self.waits[n] = self.agenda.due_of_end(n, first, Time::ZERO);
                self.agenda.set_end(n, self.waits[n]);
            }
        }
    }

    #[inline(always)]
    /// Whether all finite flows are done; never true where there are none.
    pub(crate) fn is_over(&self) -> bool {
        self.busy == 0 && self.has_finite
    }

    /// Whether anything is to happen yet.
    pub(crate) fn has_more(&self) -> bool {
        // Not by the agenda, in which a timer that was called off may still stand.
        self.waits.iter().any(|waits| *waits != Due::NEVER)
            || self.links.iter().any(|link| link.in_flight() > 0)
            || self.ports.all.iter().any(|port| port.in_flight() > 0)
    }

    /// Does what is next, if that is not after `limit`. False when nothing is left.
    #[inline]
    pub(crate) fn step<O: Observer>(&mut self, limit: Time, observer: &mut O) -> bool {
        let (due, next) = self.agenda.first();
        let time = due.at();
        if time > limit || time == Time::NEVER {
            return false;
        }
        debug_assert!(time >= self.now, "time runs forward");
        self.events += 1;
        match next {
            Next::Link(n) => {
                (self.now, self.age) = (time, due.age());
                match n.checked_sub(self.links.len()) {
                    None => self.arrive(n, observer),
                    Some(port) => self.run_port(port, observer),
                }
            }
            // A timer that was put off since: nothing happens now, so the present stays where it is.
            Next::End(n) if self.waits[n].at() > time => self.agenda.set_end(n, self.waits[n]),
            Next::End(n) => {
                (self.now, self.age) = (time, self.waits[n].age());
                self.run_end(n, observer);
            }
        }
        true
    }

    /// The head of a link has reached its far end.
    #[inline]
    fn arrive<O: Observer>(&mut self, n: usize, observer: &mut O) {
        let link = &mut self.links[n];
        let mut cx = Context { now: self.now, who: Who(LINK_BASE + n as u32), probe: observer };
        let arrival = link.take(&mut cx);
        match link.head() {
            Some((at, begun)) => self.agenda.set_link(n, at, begun),
            None => self.agenda.clear_link(n),
        }
        let Some(arrival) = arrival else { return };
        let parcel = arrival.packet;
        let lost = arrival.outcome == Outcome::Lost;
        if O::WATCHES && !self.is_frame(parcel) {
            let passage = if lost { Passage::Dropped(DropReason::Channel) } else { Passage::Delivered };
            observer.packet(self.now, n, passage, &self.packets.get(parcel));
        }
        if lost {
            self.lose(parcel, observer);
            return;
        }
        let to = parcel.to as usize;
        match self.next_hop[n * self.first_hop.len() + to] {
            Hop::Link(next) => self.offer(next as usize, parcel, observer),
            Hop::Arrived => self.deliver(to, parcel, observer),
            hop => self.go(hop, parcel, observer),
        }
    }

    /// Brings a packet to where it goes next.
    fn go<O: Observer>(&mut self, hop: Hop, parcel: Parcel, observer: &mut O) {
        match hop {
            Hop::Link(next) => self.offer(next as usize, parcel, observer),
            Hop::Port(next) => self.enter(next as usize, parcel, observer),
            Hop::Layer(end) => self.enter_layer(end as usize, parcel, observer),
            Hop::Arrived => self.deliver(parcel.to as usize, parcel, observer),
        }
    }

    /// A packet comes to a port.
    fn enter<O: Observer>(&mut self, n: usize, parcel: Parcel, observer: &mut O) {
        let link = self.ports.all[n].link();
        if O::WATCHES
            && let Some(link) = link
            && !self.is_frame(parcel)
        {
            observer.packet(self.now, link, Passage::Offered, &self.packets.get(parcel));
        }
        let port = &mut self.ports.all[n];
        let who = Who(LINK_BASE + link.unwrap_or(0) as u32);
        let mut cx = Context { now: self.now, who, probe: observer };
        port.offer(&mut cx, self.ports.channel_to[parcel.to as usize], parcel);
        self.plan_port(n);
    }

    /// The turn of a port: packets have come to their end in it.
    fn run_port<O: Observer>(&mut self, n: usize, observer: &mut O) {
        loop {
            let port = &mut self.ports.all[n];
            let link = port.link();
            let who = Who(LINK_BASE + link.unwrap_or(0) as u32);
            let mut cx = Context { now: self.now, who, probe: &mut *observer };
            let Some((parcel, fate)) = port.take(&mut cx) else { break };
            if O::WATCHES
                && let Some(link) = link
                && !self.is_frame(parcel)
            {
                let passage = fate.map_or_else(Passage::Dropped, |()| Passage::Delivered);
                observer.packet(self.now, link, passage, &self.packets.get(parcel));
            }
            match fate {
                Ok(()) => {
                    let hop = self.port_hop[n * self.first_hop.len() + parcel.to as usize];
                    self.go(hop, parcel, observer);
                }
                Err(_) => self.lose(parcel, observer),
            }
        }
        self.plan_port(n);
    }

    fn plan_port(&mut self, n: usize) {
        let component = self.links.len() + n;
        match self.ports.all[n].head() {
            Some((at, begun)) => self.agenda.set_link(component, at, begun),
            None => self.agenda.clear_link(component),
        }
    }

    #[inline]
    fn offer<O: Observer>(&mut self, n: usize, parcel: Parcel, observer: &mut O) {
        if O::WATCHES && !self.is_frame(parcel) {
            observer.packet(self.now, n, Passage::Offered, &self.packets.get(parcel));
        }
        let link = &mut self.links[n];
        let idle = link.in_flight() == 0;
        let mut cx = Context { now: self.now, who: Who(LINK_BASE + n as u32), probe: observer };
        match link.offer_begun(&mut cx, parcel, || self.age.begun(self.now)) {
            Ok(()) if idle => {
                let (at, begun) = link.head().expect("a packet was admitted");
                self.agenda.set_link(n, at, begun);
            }
            Ok(()) => {}
            Err(reason) => {
                if O::WATCHES && !self.is_frame(parcel) {
                    observer.packet(self.now, n, Passage::Dropped(reason), &self.packets.get(parcel));
                }
                self.lose(parcel, observer);
            }
        }
    }

    #[inline(always)]
    fn deliver<O: Observer>(&mut self, to: usize, parcel: Parcel, observer: &mut O) {
        if let Endpoint::Tcp(tcp) = &mut self.ends[to] {
            let mut cx = Context { now: self.now, who: Who(to as u32), probe: &mut *observer };
            tcp.connection.handle(&mut cx, Input::Segment(self.packets.segment(parcel)));
            self.run_end(to, observer);
            self.packets.release(parcel);
        } else {
            self.deliver_elsewhere(to, parcel, observer);
        }
    }

    /// To an end that is no connection.
    #[inline(never)]
    fn deliver_elsewhere<O: Observer>(&mut self, to: usize, parcel: Parcel, observer: &mut O) {
        match &mut self.ends[to] {
            Endpoint::UdpSink(sink) => {
                sink.bytes += parcel.wire_len() as u64;
                sink.delays.record(self.now.saturating_since(self.packets.departure(parcel)));
            }
            &mut Endpoint::Port { gateway, leg } => {
                let segment = self.packets.segment(parcel);
                let gateway = &mut self.gateways[gateway as usize];
                let mut cx = Context { now: self.now, who: Who(to as u32), probe: &mut *observer };
                gateway.take(&mut cx, leg, segment);
                let slot = gateway.slot();
                self.run_end(slot, observer);
            }
            Endpoint::Tcp(_) | Endpoint::UdpSource(_) => debug_assert!(false, "nobody answers datagrams"),
            Endpoint::Spoofer(_) => self.reach_spoofer(to, parcel, observer),
            Endpoint::Sink(sink) => {
                sink.take(self.now, parcel.wire_len());
                if !self.done[to] {
                    self.note_done(to);
                }
            }
            Endpoint::Layer(_) => return self.leave_line(to, parcel, observer),
        }
        self.packets.release(parcel);
    }

    /// Polls an end until it waits. Those of TCP have a loop of their own: what they send never leaves the registers.
    fn run_end<O: Observer>(&mut self, n: usize, observer: &mut O) {
        while let Endpoint::Tcp(tcp) = &mut self.ends[n]
            && tcp.is_tcp()
        {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut *observer };
            match tcp.poll(&mut cx, &mut self.packets) {
                Step::Do(parcel) => self.send(parcel, observer),
                Step::Wait(until) => {
                    self.wait(n, until);
                    if !self.done[n] {
                        self.note_done(n);
                    }
                    return;
                }
            }
        }
        self.run_other(n, observer);
    }

    /// The same for an end of another kind.
    #[inline(never)]
    fn run_other<O: Observer>(&mut self, n: usize, observer: &mut O) {
        loop {
            let mut cx = Context { now: self.now, who: Who(n as u32), probe: &mut *observer };
            let step = match &mut self.ends[n] {
                Endpoint::UdpSource(source) => source.poll(self.now, &mut self.packets),
                &mut Endpoint::Port { gateway, .. } => self.gateways[gateway as usize].poll(&mut cx, &mut self.packets),
                Endpoint::Spoofer(spoofer) => spoofer.poll(&mut cx, &mut self.packets),
                Endpoint::Tcp(stp) => stp.poll_stp(&mut cx, &mut self.packets),
                Endpoint::UdpSink(_) | Endpoint::Sink(_) => Step::Wait(None),
                Endpoint::Layer(_) => return self.run_layer(n, observer),
            };
            match step {
                Step::Do(parcel) => self.send(parcel, observer),
                Step::Wait(until) => break self.wait(n, until),
            }
        }
        if !self.done[n] {
            self.note_done(n);
        }
    }

    /// An end sends a packet: to its first hop.
    #[inline(always)]
    fn send<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        match self.first_hop[self.leaves_by(parcel)] {
            Hop::Link(link) => self.offer(link as usize, parcel, observer),
            hop => self.go(hop, parcel, observer),
        }
    }

    /// Keeps what an end waits for. Since when is remembered with it, so that a lazy agenda orders events of one
    /// instant as a literal one does.
    #[inline(always)]
    fn wait(&mut self, n: usize, until: Option<Time>) {
        let waits = match until {
            Some(until) if until == self.waits[n].at() => self.waits[n],
            Some(until) => self.agenda.due_of_end(n, until, self.now),
            None => Due::NEVER,
        };
        self.waits[n] = waits;
        let due = self.agenda.end_due(n);
        // Lazy: a slot that lies in the future but too early only costs a poll.
        let keep = self.timers == Timers::Lazy && due.at() > self.now && due <= waits;
        if !keep && due != waits {
            self.agenda.set_end(n, waits);
        }
    }

    #[inline(always)]
    fn note_done(&mut self, n: usize) {
        let done = match &self.ends[n] {
            Endpoint::Tcp(tcp) if tcp.is_done() => {
                tcp.leave();
                true
            }
            Endpoint::Sink(sink) => sink.is_done(),
            _ => false,
        };
        if done {
            self.done[n] = true;
            self.busy -= 1;
        }
    }

    /// What the links counted.
    pub(crate) fn link_counters(&self) -> Vec<LinkCounters> {
        let counters = |(n, link): (usize, &Link<Parcel>)| self.ports.counters(n).unwrap_or_else(|| link.counters());
        let mut all: Vec<LinkCounters> = self.links.iter().enumerate().map(counters).collect();
        self.add_too_long(&mut all);
        all
    }

    /// Packets admitted to links and still there.
    pub(crate) fn in_flight(&self) -> u64 {
        let on_links = self.links.iter().map(Link::in_flight);
        on_links.chain(self.ports.all.iter().map(Port::in_flight)).sum::<usize>() as u64
    }

    /// Both ends of each leg, from one gateway to the next.
    fn leg_stats(&self, flow: usize, first: TcpStats, last: TcpStats) -> Vec<[TcpStats; 2]> {
        let mut legs = Vec::new();
        let (mut sender, mut end) = (first, 2 * flow + 1);
        while let Endpoint::Port { gateway, leg: Leg::Near } = self.ends[end] {
            let gateway = &self.gateways[gateway as usize];
            legs.push([sender, gateway.splice.leg(Leg::Near).stats()]);
            sender = gateway.splice.leg(Leg::Far).stats();
            end = gateway.far_end() + 1;
        }
        if !legs.is_empty() {
            legs.push([sender, last]);
        }
        legs
    }

    pub(crate) fn flow_result(&self, n: usize, start: Duration) -> FlowResult {
        let start = Time::ZERO + start;
        match (&self.ends[2 * n], &self.ends[self.goals[n] as usize]) {
            (Endpoint::Tcp(from), Endpoint::Tcp(to)) => FlowResult {
                start,
                connected_at: from.connected_at,
                acked_at: from.acked_at,
                // With requests and responses the client's last byte ends the flow.
                received_at: from.received_at.or(to.received_at),
                delivered: to.connection.received(),
                stats: from.connection.stats(),
                receiver_stats: to.connection.stats(),
                legs: self.leg_stats(n, from.connection.stats(), to.connection.stats()),
                aborted: from.aborted.or(to.aborted),
                refused: 0,
                delays: None,
            },
            (Endpoint::Tcp(from), Endpoint::Spoofer(spoofer)) => {
                let sink = self.sink_of(self.goals[n] as usize);
                FlowResult {
                    start,
                    connected_at: from.connected_at,
                    acked_at: from.acked_at,
                    received_at: sink.received_at,
                    delivered: sink.received,
                    stats: from.connection.stats(),
                    receiver_stats: spoofer.stats(),
                    legs: self.leg_stats(n, from.connection.stats(), spoofer.stats()),
                    aborted: from.aborted,
                    refused: spoofer.drops(),
                    delays: None,
                }
            }
            (Endpoint::UdpSource(from), Endpoint::UdpSink(sink)) => FlowResult {
                start,
                connected_at: None,
                acked_at: None,
                received_at: None,
                delivered: sink.bytes,
                stats: TcpStats { data_segments: from.sent, ..TcpStats::default() },
                receiver_stats: TcpStats { data_segments: sink.delays.count(), ..TcpStats::default() },
                legs: Vec::new(),
                aborted: None,
                refused: 0,
                delays: Some(sink.delays.clone()),
            },
            _ => unreachable!("both ends of a flow have its transport"),
        }
    }
}
