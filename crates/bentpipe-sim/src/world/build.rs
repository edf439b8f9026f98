//! Builds a world from its scenario.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bentpipe_engine::network::{Age, Due, Tournament};
use bentpipe_engine::splice::{EndConfig, Leg};
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::{Role, TcbCache, TcpConfig};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{FlowKind, Scenario, TcpFlow};
use bentpipe_study::topology;

use super::wiring::{Counts, Ways};
use super::{EndState, Timers, World, lifetimes, spoofing};
use crate::boxes::Boxes;
use crate::endpoint::{Endpoint, TcpEnd};
use crate::gateway::Gateway;
use crate::layer::Frames;
use crate::packet::Store;
use crate::run::RunError;
use crate::udp::UdpSource;

/// The settings of connections, kept once where they are alike: a run may have a hundred thousand.
#[derive(Default)]
struct Settings {
    /// The latest ones: mostly those of a flow's two ends.
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

/// State shared by the connections from one host to another.
type Hosts = BTreeMap<(usize, usize), Rc<RefCell<TcbCache>>>;

impl World {
    /// The world of a scenario. `watched`: there is an observer.
    pub(crate) fn new(scenario: &Scenario, seed: u64, timers: Timers, watched: bool) -> Result<World, RunError> {
        let mut settings = Settings::default();
        let connections = topology::connections(scenario);
        let counts = Counts::of(scenario, &connections);
        let (ends, first_sink) = (counts.all(), counts.connections);
        let Ways { network, first_hop, spoofers } = Ways::new(scenario, &connections, seed, !watched)?;
        let mut world = World {
            network,
            packets: Store::default(),
            ends: Vec::with_capacity(ends),
            models: Vec::new(),
            ended: Vec::new(),
            spare: Vec::new(),
            flow_ends: counts.of_flows(),
            spoofers,
            first_sink,
            frames: Frames::default(),
            headers: Vec::new(),
            gateways: Vec::new(),
            boxes: Boxes::new(scenario),
            first_tunnel: counts.of_flows() + 2 * scenario.layers.len(),
            starts: Vec::with_capacity(scenario.flows.len()),
            goals: (0..scenario.flows.len() as u32).map(|n| 2 * n + 1).collect(),
            agenda: Tournament::new(ends),
            timers,
            busy: 0,
            has_finite: false,
            now: Time::ZERO,
            age: Age::default(),
            last: Due::new(Time::ZERO, Time::ZERO, 0),
            events: 0,
        };
        let mut hosts = Hosts::new();
        let mut sinks = spoofing::Sinks::default();
        for (n, flow) in scenario.flows.iter().enumerate() {
            let start = Time::ZERO + flow.start_under(seed);
            world.starts.push(start);
            if n > 0
                && matches!(world.ends.last(), Some(EndState { kind: Endpoint::Late { .. }, .. }))
                && flow.is_alike(&scenario.flows[n - 1])
            {
                world.add_late_ends();
                continue;
            }
            let shared = |from: usize, to: usize, hosts: &mut Hosts| hosts.entry((from, to)).or_default().clone();
            match &flow.kind {
                FlowKind::Tcp(tcp) if !watched && lifetimes::can_be_late(tcp) => {
                    let end = |config, role| {
                        TcpEnd::new(&Arc::new(config), role, tcp.workload, 0, Time::ZERO, &Rc::default())
                    };
                    world.add_models([end(tcp.sender, Role::Active), end(tcp.receiver, Role::Passive)]);
                    world.add_late_ends();
                }
                FlowKind::Tcp(tcp) => {
                    let there = shared(flow.from, flow.to, &mut hosts);
                    let back = shared(flow.to, flow.from, &mut hosts);
                    let receiver = tcp.splits.last().map_or(tcp.receiver, |last| last.receiver);
                    let mut end = |config, stp: Option<StpConfig>, role, shared| {
                        let end = match stp {
                            Some(stp) => TcpEnd::stp(stp, role, tcp.workload, n as u32, start),
                            None => TcpEnd::new(settings.shared(config), role, tcp.workload, n as u32, start, shared),
                        };
                        Endpoint::Tcp(Box::new(end.paced(seed, &flow.name)))
                    };
                    let last = tcp.splits.last().map_or(tcp.stp, |last| last.stp);
                    world.ends.push(EndState::new(end(tcp.sender, tcp.stp, Role::Active, &there)));
                    let receiver = match tcp.spoof {
                        Some(spoof) => sinks.spoofer(first_sink, n, tcp, spoof),
                        None => end(receiver, last, Role::Passive, &back),
                    };
                    world.ends.push(EndState::new(receiver));
                }
                FlowKind::Stp(stp) => {
                    let end = |role| {
                        let end = TcpEnd::stp(stp.config, role, stp.workload, n as u32, start);
                        Endpoint::Tcp(Box::new(end.paced(seed, &flow.name)))
                    };
                    world.ends.extend([end(Role::Active), end(Role::Passive)].map(EndState::new));
                }
                FlowKind::Udp(udp) => {
                    let source = UdpSource::new(udp, n as u32, start, seed, &flow.name);
                    world.ends.push(EndState::new(Endpoint::UdpSource(Box::new(source))));
                    world.ends.push(EndState::new(Endpoint::UdpSink(Box::default())));
                }
            }
        }
        for (n, &(flow, leg, _)) in connections.iter().enumerate() {
            if let (FlowKind::Tcp(tcp), 1..) = (&scenario.flows[flow].kind, leg) {
                match tcp.splits[leg - 1].through {
                    Some(through) => world.cross(scenario, flow, n, tcp, through),
                    None => world.split(flow, n, leg, tcp),
                }
            }
        }
        world.ends.extend(sinks.into_ends().map(EndState::new));
        world.add_layers(scenario);
        world.add_boxes(scenario);
        for (end, hop) in world.ends.iter_mut().zip(first_hop) {
            end.first_hop = hop;
        }
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
        let mut last = core::mem::replace(&mut self.ends[near].kind, Endpoint::Port { gateway, leg: Leg::Near });
        match &mut last {
            Endpoint::Tcp(end) => end.joins(n as u32),
            Endpoint::Spoofer(end) => end.joins(n as u32),
            _ => {}
        }
        self.ends.extend([Endpoint::Port { gateway, leg: Leg::Far }, last].map(EndState::new));
        self.goals[flow] = goal;
    }

    fn plan_first_actions(&mut self) {
        for n in 0..self.ends.len() {
            // Whether the run ends only when this end is done.
            let (counts, first) = match &self.ends[n].kind {
                Endpoint::Tcp(tcp) => (tcp.counts(), tcp.first_action()),
                &Endpoint::Late { model } => {
                    let first = if lifetimes::is_active(n) { self.starts[n / 2] } else { Time::ZERO };
                    (self.models[model as usize].counts(), first)
                }
                Endpoint::Sink(sink) => (sink.is_finite(), Time::NEVER),
                Endpoint::UdpSource(source) => (false, source.first_action()),
                // Listens from the start; the far port is polled with the near one.
                Endpoint::Port { leg: Leg::Near, .. } => (false, Time::ZERO),
                Endpoint::Spoofer(spoofer) => (false, spoofer.first_action()),
                Endpoint::Port { leg: Leg::Far, .. }
                | Endpoint::UdpSink(_)
                | Endpoint::Layer(_)
                | Endpoint::Socket(_)
                | Endpoint::Ended { .. } => (false, Time::NEVER),
            };
            self.busy += counts as usize;
            self.has_finite |= counts;
            self.ends[n].is_done = !counts;
            if first != Time::NEVER {
                self.ends[n].until = first;
                self.put_on_agenda(n, self.due_of_end(n));
            }
        }
    }
}
