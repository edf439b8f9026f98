//! Builds a world from its scenario.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bentpipe_engine::network::{Age, Due, EndId, Hop};
use bentpipe_engine::splice::{EndConfig, Leg};
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::{Role, TcbCache, TcpConfig};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{ConnectionId, FlowId, FlowKind, FlowSpec, Met, NodeId, Scenario, TcpFlow, Workload};
use bentpipe_study::topology::{self, Connection};

use super::agenda::Agenda;
use super::uplinks::UplinkBox;
use super::wiring::{Counts, Ways};
use super::{EndState, FlowState, Former, Timers, World, lifetimes, spoofing};
use crate::boxes::Boxes;
use crate::endpoint::{Endpoint, TcpEnd};
use crate::ends;
use crate::gateway::Gateway;
use crate::layer::Frames;
use crate::packet::Store;
use crate::run::RunError;
use crate::udp::UdpSource;

/// The settings of connections, shared if equal: a run may have a hundred thousand connections.
#[derive(Default)]
struct Settings {
    /// The most recent settings, mostly those of a flow's two ends.
    latest: Vec<Arc<TcpConfig>>,
}

impl Settings {
    const KEPT: usize = 8;

    fn shared(&mut self, config: TcpConfig) -> &Arc<TcpConfig> {
        let place = self.latest.iter().position(|known| **known == config).unwrap_or_else(|| {
            self.latest.truncate(Self::KEPT - 1);
            self.latest.insert(0, Arc::new(config));
            0
        });
        &self.latest[place]
    }
}

//= RFC 9959 §2.2: "an identifier representing the sending interface"
/// State shared by the connections from one host to another whose packets leave it in the same way.
type Hosts = BTreeMap<(NodeId, NodeId, Hop), Rc<RefCell<TcbCache>>>;

/// State shared by the ends of flows while a world is built.
struct Parts<'a> {
    scenario: &'a Scenario,
    seed: u64,
    watched: bool,
    settings: Settings,
    hosts: Hosts,
    /// The first hop of each end's packets.
    first_hop: &'a [Hop],
    sinks: spoofing::Sinks,
}

impl Parts<'_> {
    /// Adds a flow with the two ends of its connection.
    fn add_flow(&mut self, world: &mut World, connection: ConnectionId, flow: &FlowSpec) -> Result<(), RunError> {
        let (seed, start) = (self.seed, Time::ZERO + flow.start_under(self.seed));
        let ends @ [source, goal] = [ends::opener(connection), ends::listener(connection)];
        let ends_with_response = matches!(flow.kind.workload(), Some(Workload::RequestResponse { .. }));
        let stops = matches!(flow.kind.workload(), Some(Workload::Greedy { duration: Some(_) }));
        world.flows.push(FlowState { start, goal, ends_with_response, stops });
        let is_like_the_last = |n: usize| flow.is_alike(&self.scenario.flows[n]);
        if matches!(world.ends.last(), Some(EndState { kind: Endpoint::Late { .. }, .. }))
            && connection.index().checked_sub(1).is_some_and(is_like_the_last)
        {
            world.add_late_ends();
            return Ok(());
        }
        match &flow.kind {
            FlowKind::Tcp(tcp) if !self.watched && lifetimes::can_be_late(tcp) => {
                let model = |config, role, end| {
                    TcpEnd::new(&Arc::new(config), role, tcp.workload, end, Time::ZERO, &Rc::default())
                };
                world.add_models([model(tcp.sender, Role::Active, source), model(tcp.receiver, Role::Passive, goal)]);
                world.add_late_ends();
            }
            FlowKind::Tcp(tcp) => {
                let ends = self.tcp_ends(flow, tcp, connection, ends, start);
                world.ends.extend(ends.map(EndState::new));
            }
            FlowKind::Stp(stp) => {
                let end = |(role, number)| {
                    let end = TcpEnd::stp(stp.config, role, stp.workload, number, start);
                    Endpoint::Tcp(Box::new(end.paced(seed, &flow.name)))
                };
                let ends = [(Role::Active, source), (Role::Passive, goal)].map(end);
                world.ends.extend(ends.map(EndState::new));
            }
            #[cfg(feature = "quic")]
            FlowKind::Quic(quic) => {
                let ends = crate::quic::both(self.scenario, (connection, flow, quic), start, seed, self.watched);
                world.ends.extend(ends.map(|end| EndState::new(Endpoint::Quic(Box::new(end)))));
            }
            #[cfg(not(feature = "quic"))]
            FlowKind::Quic(_) => return Err(RunError::NoQuic),
            FlowKind::Udp(udp) => {
                let source = UdpSource::new(udp, connection, start, seed, &flow.name);
                world.ends.push(EndState::new(Endpoint::UdpSource(Box::new(source))));
                world.ends.push(EndState::new(Endpoint::UdpSink(Box::default())));
            }
        }
        Ok(())
    }

    /// The ends of a TCP flow: its first sender, and its last receiver or the gateway that acknowledges for it.
    fn tcp_ends(
        &mut self,
        flow: &FlowSpec,
        tcp: &TcpFlow,
        connection: ConnectionId,
        [source, goal]: [EndId; 2],
        start: Time,
    ) -> [Endpoint; 2] {
        let Parts { seed, settings, hosts, sinks, first_hop, .. } = self;
        let mut shared =
            |from: NodeId, to: NodeId, end: EndId| hosts.entry((from, to, first_hop[end.index()])).or_default().clone();
        let (there, back) = (shared(flow.from, flow.to, source), shared(flow.to, flow.from, goal));
        let mut end = |config, stp: Option<StpConfig>, role, number, shared| {
            let end = match stp {
                Some(stp) => TcpEnd::stp(stp, role, tcp.workload, number, start),
                None => TcpEnd::new(settings.shared(config), role, tcp.workload, number, start, shared),
            };
            Endpoint::Tcp(Box::new(end.paced(*seed, &flow.name).told_of_path(tcp.path_change)))
        };
        let sender = end(tcp.sender, tcp.stp, Role::Active, source, &there);
        let (receiver, stp) = tcp.splits.last().map_or((tcp.receiver, tcp.stp), |last| (last.receiver, last.stp));
        let receiver = match tcp.spoof {
            Some(spoof) => sinks.spoofer(connection, tcp, spoof),
            None => end(receiver, stp, Role::Passive, goal, &back),
        };
        [sender, receiver]
    }
}

impl World {
    /// The world of a scenario. `watched`: there is an observer.
    pub(crate) fn new(scenario: &Scenario, seed: u64, timers: Timers, watched: bool) -> Result<World, RunError> {
        let connections = topology::connections(scenario);
        let counts = Counts::of(scenario, &connections);
        let first_sink = EndId::from(counts.connections);
        let sinks = spoofing::Sinks::new(first_sink);
        let Ways { network, first_hop, spoofers } = Ways::new(scenario, &connections, seed, !watched)?;
        let mut world = World {
            network,
            packets: Store::default(),
            ends: Vec::with_capacity(counts.all()),
            models: Vec::new(),
            ended: Vec::new(),
            responses: BTreeMap::new(),
            former: Former::default(),
            first_sink,
            first_layer_end: EndId::from(counts.of_flows()),
            frames: Frames::default(),
            headers: Vec::new(),
            gateways: Vec::new(),
            uplinks: UplinkBox::all(scenario),
            boxes: Boxes::new(scenario),
            first_tunnel: EndId::from(counts.of_flows() + 2 * scenario.layers.len()),
            flows: Vec::with_capacity(scenario.flows.len()),
            agenda: Agenda::new(),
            timers,
            busy: 0,
            has_finite: false,
            now: Time::ZERO,
            age: Age::default(),
            last: Due::new(Time::ZERO, Time::ZERO, 0),
            events: 0,
        };
        let mut parts = Parts {
            scenario,
            seed,
            watched,
            settings: Settings::default(),
            hosts: Hosts::new(),
            first_hop: &first_hop,
            sinks,
        };
        for (n, flow) in scenario.flows.iter().enumerate() {
            parts.add_flow(&mut world, ConnectionId::from(n), flow)?;
        }
        for (id, connection) in ConnectionId::first(connections.len()).zip(&connections) {
            world.add_leg(scenario, id, connection);
        }
        world.ends.extend(parts.sinks.into_ends(spoofers).map(EndState::new));
        world.add_layers(scenario);
        world.add_boxes(scenario);
        for (end, hop) in world.ends.iter_mut().zip(first_hop) {
            end.first_hop = hop;
        }
        world.ended.reserve_exact(world.late_ends());
        world.plan_first_actions();
        Ok(world)
    }

    /// Adds a further leg of a split flow, with the gateway in front of it.
    fn add_leg(&mut self, scenario: &Scenario, id: ConnectionId, connection: &Connection) {
        let (FlowKind::Tcp(tcp), 1..) = (&scenario[connection.flow].kind, connection.number) else { return };
        match tcp.splits[connection.number - 1].gateway {
            Some(Met::Pair(through)) => self.cross(scenario, connection.flow, id, tcp, through),
            Some(Met::Uplink { number, client_opens }) => {
                let client = if client_opens { Leg::Near } else { Leg::Far };
                let spec = &scenario.gateways.uplinks[number];
                self.split(connection.flow, id, connection.number, tcp, |splice| {
                    splice.at_uplink(spec, number, client)
                });
            }
            None => self.split(connection.flow, id, connection.number, tcp, |splice| splice),
        }
    }

    /// Puts a gateway between a flow's last leg so far and its next leg, a connection. The end that was the flow's last
    /// one moves to the end of the new leg. `place` says where the gateway is.
    fn split(
        &mut self,
        flow: FlowId,
        connection: ConnectionId,
        leg: usize,
        tcp: &TcpFlow,
        place: impl FnOnce(Gateway) -> Gateway,
    ) {
        let near = self.flows[flow.index()].goal;
        let (far, goal) = (ends::opener(connection), ends::listener(connection));
        let gateway = self.gateways.len() as u32;
        let config = |stp: Option<StpConfig>, tcp: TcpConfig| stp.map_or(EndConfig::Tcp(tcp), EndConfig::Stp);
        let near_config = match leg.checked_sub(2) {
            None => config(tcp.stp, tcp.receiver),
            Some(before) => config(tcp.splits[before].stp, tcp.splits[before].receiver),
        };
        let far_config = config(tcp.splits[leg - 1].stp, tcp.splits[leg - 1].sender);
        self.gateways.push(place(Gateway::new([near_config, far_config], [near, far])));
        let mut last = core::mem::replace(&mut self.ends[near.index()].kind, Endpoint::Leg { gateway, leg: Leg::Near });
        match &mut last {
            Endpoint::Tcp(end) => end.joins(connection),
            Endpoint::Spoofer(end) => end.joins(connection),
            _ => {}
        }
        self.ends.extend([Endpoint::Leg { gateway, leg: Leg::Far }, last].map(EndState::new));
        self.flows[flow.index()].goal = goal;
    }

    fn plan_first_actions(&mut self) {
        let mut starts = Vec::new();
        for n in EndId::first(self.ends.len()) {
            // Whether the run must wait until this end is done.
            let (counts, first) = match &self.ends[n.index()].kind {
                Endpoint::Tcp(tcp) => (tcp.counts(), tcp.first_action()),
                &Endpoint::Late { model } => {
                    let start = self.flows[ends::connection(n).index()].start;
                    // The model of the passive end already listens, which would be an event if the ends existed from
                    // the start.
                    self.events += !ends::opens(n) as u64;
                    let first = if ends::opens(n) { start } else { Time::NEVER };
                    (self.models[model as usize].end.counts(), first)
                }
                Endpoint::Sink(sink) => (sink.is_finite(), Time::NEVER),
                #[cfg(feature = "quic")]
                Endpoint::Quic(quic) => (quic.counts(), quic.first_action()),
                Endpoint::UdpSource(source) => (false, source.first_action()),
                // It listens from the start. The far leg is polled together with the near one.
                Endpoint::Leg { leg: Leg::Near, .. } => (false, Time::ZERO),
                Endpoint::Spoofer(spoofer) => (false, spoofer.first_action()),
                Endpoint::Leg { leg: Leg::Far, .. }
                | Endpoint::UdpSink(_)
                | Endpoint::Layer(_)
                | Endpoint::Socket(_)
                | Endpoint::Ended { .. } => (false, Time::NEVER),
            };
            self.busy += counts as usize;
            self.has_finite |= counts;
            self.ends[n.index()].is_done = !counts;
            if first != Time::NEVER {
                let state = &mut self.ends[n.index()];
                (state.until, state.on_agenda) = (first, first);
                starts.push(self.due_of_end(n));
            }
        }
        self.agenda.add_starts(starts);
    }
}
