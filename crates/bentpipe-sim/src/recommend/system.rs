//! The systems for a path: other TCP at the hosts, a box at the uplink, or two boxes at the ends of the satellite link.

use std::fmt;
use std::sync::Arc;

use bentpipe_engine::gateway::Satellite;
use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::scenario::{
    Carries, FlowId, FlowKind, FlowSpec, NodeId, PairSpec, Scenario, Split, TcpFlow, TcpOverrides, Variants, Workload,
    resolve_tcp,
};
use bentpipe_study::topology;
use serde::Serialize;

/// A system, from the least to the most change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// The hosts as they are.
    Plain,
    /// BBR at the hosts.
    Bbr,
    /// One box before the satellite link ends connections; over the link it sends with SACK and a constant window of one
    /// bandwidth-delay product. Helps only TCP, and only in that direction.
    Uplink,
    /// Two boxes with S-LACP between them: helps packets of any kind and terminates nothing.
    Link,
    /// Two boxes that end connections, and streams over S-LACP between them: helps only TCP, and the hosts' security must
    /// allow it.
    Split,
}

impl System {
    /// All of them, in order.
    pub const ALL: [System; 5] = [System::Plain, System::Bbr, System::Uplink, System::Link, System::Split];

    /// Its display name.
    pub const fn name(self) -> &'static str {
        match self {
            System::Plain => "hosts as they are",
            System::Bbr => "BBR at the hosts",
            System::Uplink => "uplink",
            System::Link => "link",
            System::Split => "split",
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a scenario or a system is unsuitable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is no finite TCP transfer.
    #[error("no TCP flow with `bytes`: there is no transfer to recommend for")]
    NoTransfer,
    /// The ends of the transfer are not connected.
    #[error("the ends of the flow `{0}` are not joined")]
    Unreachable(String),
    /// Something is already on the path.
    #[error("{0}: describe the bare path, what to put on it is the answer")]
    NotBare(String),
    /// The satellite link has no line rate, so nothing can be paced.
    #[error("the link `{0}` has no rate")]
    NoRate(String),
    /// No return link over the satellite.
    #[error("the acknowledgements do not come back over the satellite link, and S-LACP needs both directions")]
    OneWay,
    /// Cells.
    #[error("the satellite link carries cells, and S-LACP carries packets")]
    Cells,
    /// No node for a gateway.
    #[error("a host is at the satellite link itself: there is no node for a box before it")]
    NoGateway,
    /// The scenario does not allow it.
    #[error("{0}")]
    Refused(String),
}

/// The path of a transfer and its satellite link.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The first TCP transfer.
    pub(super) flow: FlowId,
    /// The link with the longest delay, in the direction of the data.
    pub(super) there: LinkId,
    /// The return link, if any.
    pub(super) back: Option<LinkId>,
}

impl Ground {
    /// Finds the satellite link: the one with the longest delay on the path of the first transfer's data.
    pub(super) fn of(scenario: &Scenario) -> Result<Ground, Unfit> {
        let bulk = |flow: &FlowSpec| matches!(flow.kind.workload(), Some(Workload::Bulk(_)));
        let tcp = |flow: &FlowSpec| matches!(flow.kind, FlowKind::Tcp(_));
        let flow = scenario.flows.iter().position(|flow| tcp(flow) && bulk(flow)).ok_or(Unfit::NoTransfer)?;
        let flow = FlowId::from(flow);
        let spec = &scenario[flow];
        if let Some(pair) = scenario.gateways.pairs.first() {
            return Err(Unfit::NotBare(format!("the gateway `{}` is already on the path", pair.name)));
        }
        if let Some(layer) = scenario.layers.first() {
            return Err(Unfit::NotBare(format!("the layer `{}` is already on the path", layer.name)));
        }
        for flow in &scenario.flows {
            if let FlowKind::Tcp(tcp) = &flow.kind
                && (!tcp.splits.is_empty() || tcp.spoof.is_some())
            {
                return Err(Unfit::NotBare(format!("the flow `{}` is already split", flow.name)));
            }
        }
        let path = topology::forward_path(scenario, spec).map_err(|_| Unfit::Unreachable(spec.name.clone()))?;
        let there = topology::longest_delay(scenario, &path);
        let there = there.ok_or_else(|| Unfit::Unreachable(spec.name.clone()))?;
        let way_back = topology::return_path(scenario, spec).map_err(|_| Unfit::Unreachable(spec.name.clone()))?;
        let (from, to) = (scenario[there].from, scenario[there].to);
        let leads_back = |&link: &LinkId| (scenario[link].from, scenario[link].to) == (to, from);
        Ok(Ground { flow, there, back: way_back.into_iter().find(leads_back) })
    }

    /// The same scenario with this system.
    pub(super) fn with(&self, scenario: &Scenario, system: System) -> Result<Scenario, Unfit> {
        match system {
            System::Plain => Ok(scenario.clone()),
            System::Bbr => scenario.with_hosts("linux", "bbr").map_err(|unknown| Unfit::Refused(unknown.to_string())),
            System::Uplink => self.uplink(scenario),
            System::Link => self.boxes(scenario, Carries::Packets),
            System::Split => self.boxes(scenario, Carries::STREAMS),
        }
    }

    /// Two boxes at the ends of the satellite link; the one at which its data arrives is the near one.
    fn boxes(&self, scenario: &Scenario, carries: Carries) -> Result<Scenario, Unfit> {
        let there = self.back.ok_or(Unfit::OneWay)?;
        let over = [there, self.there];
        let links = over.map(|link| &scenario[link]);
        for link in links {
            if link.config.rate.is_none() {
                return Err(Unfit::NoRate(link.name.clone()));
            }
            if link.config.cells.is_some() {
                return Err(Unfit::Cells);
            }
        }
        let nodes = [links[0].from, links[0].to];
        let flow = &scenario[self.flow];
        if carries != Carries::Packets && nodes.iter().any(|&node| node == flow.from || node == flow.to) {
            return Err(Unfit::NoGateway);
        }
        let round_trip = links[0].config.delay + links[1].config.delay;
        let mtu = links.iter().filter_map(|link| link.config.mtu).min().unwrap_or(MTU);
        let satellite = links.map(|link| Satellite {
            rate: told(link.config.rate.expect("checked above")),
            round_trip,
            path_mtu: mtu.min(MTU) as u16,
            over_ipv6: false,
            reordering: PairSpec::REORDERING,
            shared: false,
        });
        let pair = PairSpec { name: "boxes".to_owned(), carries, nodes, over, satellite, memory: PairSpec::MEMORY };
        scenario.with_pair(pair).map_err(Unfit::Refused)
    }

    /// One box at the beginning of the satellite link.
    fn uplink(&self, scenario: &Scenario) -> Result<Scenario, Unfit> {
        let mut changed = scenario.clone();
        let at = scenario[self.there].from;
        let crosses = FlowId::first(scenario.flows.len()).filter(|&id| {
            let flow = &scenario[id];
            matches!(flow.kind, FlowKind::Tcp(_))
                && topology::forward_path(scenario, flow).is_ok_and(|path| path.contains(&self.there))
        });
        let mut any = false;
        for id in crosses {
            let flow = &scenario[id];
            if flow.route.is_some() || flow.return_route.is_some() || at == flow.from || at == flow.to {
                continue;
            }
            any = true;
            let window = self.window(scenario, id)?;
            if let FlowKind::Tcp(tcp) = &mut changed.flows[id.index()].kind {
                divide(Arc::make_mut(tcp), at, window);
            }
        }
        if any { Ok(changed) } else { Err(Unfit::NoGateway) }
    }

    /// The window of the box in bytes: the bandwidth-delay product of what lies behind it, or what queue and line hold.
    fn window(&self, scenario: &Scenario, flow: FlowId) -> Result<u64, Unfit> {
        let link = &scenario[self.there];
        let rate = link.config.rate.ok_or_else(|| Unfit::NoRate(link.name.clone()))?;
        let FlowKind::Tcp(tcp) = &scenario[flow].kind else { return Err(Unfit::NoTransfer) };
        let size = SegmentSize::between(&tcp.sender, &tcp.receiver);
        let wire = u64::from(size.payload + size.headers);
        let back = self.back.map_or(Duration::ZERO, |back| {
            let link = &scenario[back].config;
            link.delay + link.rate.map_or(Duration::ZERO, |rate| rate.time_for_ceil(u64::from(size.headers)))
        });
        let onward = topology::path(scenario, link.to, scenario[flow].to).unwrap_or_default();
        let home = onward.iter().fold(Duration::ZERO, |sum, &n| sum + scenario[n].config.delay.saturating_mul(2));
        let round_trip = link.config.delay + back + home + rate.time_for_ceil(wire);
        let pipe = rate.bytes_in_floor(round_trip);
        let room = match link.config.queue.limit {
            QueueLimit::Unlimited => u64::MAX,
            QueueLimit::Packets(count) => u64::from(count) * wire,
            QueueLimit::Bytes(bytes) => bytes.get(),
        };
        let segments = pipe.min(pipe.saturating_add(room)).div_ceil(wire).max(2);
        Ok(segments * u64::from(size.payload))
    }
}

/// The MTU that a tunnel finds on a path of Ethernets.
const MTU: u32 = 1500;

/// What a box is told of a line: a little less than it has, so that no queue builds up in it.
fn told(rate: Rate) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second() / 1000 * 995).unwrap_or(rate)
}

/// The profile and the row of the box's sender: `uplink` with `variant = "sack"` and `tcp.fixed_window`.
const PROFILE: &str = "rfc";
const ROW: &str = "sack";

/// Splits a connection at a box; the client behind it is not changed.
fn divide(tcp: &mut TcpFlow, at: NodeId, window: u64) {
    let resolved = resolve_tcp(PROFILE, ROW, &Variants::new(), &TcpOverrides::default());
    let (mut sender, _): (TcpConfig, _) = resolved.expect("both are in the engine's tables");
    sender.mss = tcp.sender.mss;
    sender.variant.startup = Startup::FixedWindow((window / u64::from(sender.mss)).max(2) as u32);
    // The box holds two windows for its client.
    tcp.splits.push(Split {
        at,
        through: None,
        stp: None,
        sender,
        receiver: tcp.receiver,
        variant_name: ROW.to_owned(),
        profile_name: PROFILE.to_owned(),
        explicit: TcpOverrides::default(),
        route: None,
        return_route: None,
    });
    tcp.receiver.receive_buffer = tcp.receiver.receive_buffer.min(u32::try_from(2 * window).unwrap_or(u32::MAX));
}
