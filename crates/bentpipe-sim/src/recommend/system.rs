//! The systems for a path: other TCP at the hosts, a box at the uplink, or two boxes at the ends of the satellite link.

use std::fmt;

use bentpipe_engine::gateway::{Satellite, UplinkSender};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::scenario::{
    Carries, Cell, FlowId, FlowKind, FlowSpec, PairSpec, Scenario, SenderOf, TcpOverrides, UplinkSpec, Workload,
    uplink_sender,
};
use bentpipe_study::topology;
use serde::Serialize;

/// A system. The order is from the smallest to the largest change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// The hosts as they are.
    Plain,
    /// BBR at the hosts.
    Bbr,
    /// A box before the satellite link terminates connections. Over the link, it sends with RACK-TLP and a constant window
    /// of one bandwidth-delay product. It helps only TCP, and only in that direction.
    Uplink,
    /// Two boxes with S-LACP between them. They help packets of any kind and terminate nothing.
    Link,
    /// Two boxes that terminate connections, with streams over S-LACP between them. They help only TCP, and the hosts'
    /// security must allow it.
    Split,
}

impl System {
    /// All systems, in order.
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
    #[error("{0}: describe the path without it, and see what to add")]
    NotBare(String),
    /// The satellite link has no line rate, so nothing can be paced.
    #[error("the link `{0}` has no rate")]
    NoRate(String),
    /// There is no return link over the satellite.
    #[error("the acknowledgements do not return over the satellite link, but S-LACP needs both directions")]
    OneWay,
    /// The path has links in cells.
    #[error("the satellite link carries cells, but S-LACP carries packets")]
    Cells,
    /// There is no node for a gateway.
    #[error("a host is at the end of the satellite link: there is no node for a box")]
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
    /// Finds the satellite link: the link with the longest delay on the path of the first transfer's data.
    pub(super) fn of(scenario: &Scenario) -> Result<Ground, Unfit> {
        let bulk = |flow: &FlowSpec| matches!(flow.kind.workload(), Some(Workload::Bulk(_)));
        let tcp = |flow: &FlowSpec| matches!(flow.kind, FlowKind::Tcp(_));
        let flow = scenario.flows.iter().position(|flow| tcp(flow) && bulk(flow)).ok_or(Unfit::NoTransfer)?;
        let flow = FlowId::from(flow);
        let spec = &scenario[flow];
        if let Some(name) = scenario.gateways.names().next() {
            return Err(Unfit::NotBare(format!("the gateway `{name}` is already on the path")));
        }
        if let Some(layer) = scenario.layers.first() {
            return Err(Unfit::NotBare(format!("the layer `{}` is already on the path", layer.name)));
        }
        // A spoofing gateway needs a layer.
        for flow in &scenario.flows {
            if let FlowKind::Tcp(tcp) = &flow.kind
                && !tcp.splits.is_empty()
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

    /// The same scenario, using this system.
    pub(super) fn with(&self, scenario: &Scenario, system: System) -> Result<Scenario, Unfit> {
        match system {
            System::Plain => Ok(scenario.clone()),
            System::Bbr => scenario.with_hosts("linux", "bbr").map_err(|unknown| Unfit::Refused(unknown.to_string())),
            System::Uplink => self.uplink(scenario),
            System::Link => self.boxes(scenario, Carries::Packets),
            System::Split => self.boxes(scenario, Carries::STREAMS),
        }
    }

    /// Places two boxes at the ends of the satellite link. The one at which the data arrives is the near one.
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
        let (name, memory, advice) = ("boxes".to_owned(), PairSpec::MEMORY, [None; 2]);
        let pair = PairSpec { name, carries, nodes, over, satellite, memory, advice };
        scenario.with_pair(pair).map_err(Unfit::Refused)
    }

    /// Places one box at the beginning of the satellite link.
    fn uplink(&self, scenario: &Scenario) -> Result<Scenario, Unfit> {
        let over = [self.there, self.back.ok_or(Unfit::OneWay)?];
        let [link, back] = over.map(|link| &scenario[link]);
        let flow = &scenario[self.flow];
        if link.from == flow.from || link.from == flow.to {
            return Err(Unfit::NoGateway);
        }
        let rate = link.config.rate.ok_or_else(|| Unfit::NoRate(link.name.clone()))?;
        let explicit = TcpOverrides {
            both: [("fixed_window", Cell::Count(self.window(scenario, rate)?))].into(),
            ..TcpOverrides::default()
        };
        let mtu = over.iter().filter_map(|&link| scenario[link].config.mtu).min().unwrap_or(MTU).min(MTU) as u16;
        let tcp = uplink_sender(ROW, &explicit, mtu).expect("the row and the setting are in the tables");
        let round_trip = link.config.delay + back.config.delay;
        let sender = UplinkSender { tcp, window: None, rate: told(rate), round_trip, mtu };
        let by = SenderOf::Engine { variant: ROW.to_owned(), explicit, early_accept: false };
        let spec = UplinkSpec { name: "box".to_owned(), at: link.from, over, sender, by };
        scenario.with_uplink(spec).map_err(Unfit::Refused)
    }

    /// The window of the box in segments: the bandwidth-delay product of the path behind it.
    fn window(&self, scenario: &Scenario, rate: Rate) -> Result<u64, Unfit> {
        let link = &scenario[self.there];
        let flow = &scenario[self.flow];
        let FlowKind::Tcp(tcp) = &flow.kind else { return Err(Unfit::NoTransfer) };
        let size = SegmentSize::between(&tcp.sender, &tcp.receiver);
        let wire = u64::from(size.payload + size.headers);
        let back = self.back.map_or(Duration::ZERO, |back| {
            let link = &scenario[back].config;
            link.delay + link.rate.map_or(Duration::ZERO, |rate| rate.time_for_ceil(u64::from(size.headers)))
        });
        let onward = topology::path(scenario, link.to, flow.to).unwrap_or_default();
        let home = onward.iter().fold(Duration::ZERO, |sum, &n| sum + scenario[n].config.delay.saturating_mul(2));
        let round_trip = link.config.delay + back + home + rate.time_for_ceil(wire);
        Ok(rate.bytes_in_floor(round_trip).div_ceil(wire).max(2))
    }
}

/// The MTU that a tunnel finds on a path of Ethernets.
const MTU: u32 = 1500;

/// The rate configured at a box for a line: slightly less than the line has, so that no queue builds up in it.
fn told(rate: Rate) -> Rate {
    let bits = rate.bits_per_second();
    Rate::from_bits_per_second(bits - bits.div_ceil(200)).unwrap_or(rate)
}

/// The row of the box's sender: the default of `uplink`.
const ROW: &str = "constant-rack";
