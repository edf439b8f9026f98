//! The systems for a path: none, a layer over the satellite link, a split connection, or both.

use std::fmt;
use std::sync::Arc;

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::units::Duration;
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::scenario::{
    FlowId, FlowKind, FlowSpec, LayerSpec, NodeId, Scenario, Split, TcpFlow, TcpOverrides, Variants, Workload,
    resolve_tcp,
};
use bentpipe_study::topology;
use serde::Serialize;

/// A system, from the least to the most change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Plain TCP.
    Plain,
    /// S-LACP over the satellite link: helps packets of any kind and terminates nothing.
    Link,
    /// Connections split before and after the satellite link, with the burst-loss sender and a window of one
    /// bandwidth-delay product over it (`minei` §5.3): helps only TCP, and the hosts' security must allow it.
    Split,
    /// Connections split, and S-LACP under the leg over the satellite link, whose sender has a constant window with
    /// SACK and F-RTO: data held for a repair looks like a timeout to it, not like a burst.
    Both,
}

impl System {
    /// All of them, in order.
    pub const ALL: [System; 4] = [System::Plain, System::Link, System::Split, System::Both];

    /// Its display name.
    pub const fn name(self) -> &'static str {
        match self {
            System::Plain => "plain TCP",
            System::Link => "S-LACP",
            System::Split => "split",
            System::Both => "split + S-LACP",
        }
    }

    pub(super) const fn layered(self) -> bool {
        matches!(self, System::Link | System::Both)
    }

    /// The variant of the satellite leg, if connections are split.
    const fn sender(self) -> &'static str {
        if self.layered() { "sack-frto" } else { "burst" }
    }

    pub(super) const fn splits(self) -> bool {
        matches!(self, System::Split | System::Both)
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
    #[error("both hosts are at the satellite link itself: there is no node at which to split")]
    NoGateway,
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
        let mut changed = scenario.clone();
        if system.splits() {
            self.split(&mut changed, system)?;
        }
        if system.layered() {
            let back = self.back.ok_or(Unfit::OneWay)?;
            let over = [self.there, back];
            for link in over.map(|link| &changed[link]) {
                if link.config.rate.is_none() {
                    return Err(Unfit::NoRate(link.name.clone()));
                }
                if link.config.cells.is_some() {
                    return Err(Unfit::Cells);
                }
            }
            changed.layers.push(LayerSpec::new("s-lacp", over));
        }
        Ok(changed)
    }

    fn split(&self, scenario: &mut Scenario, system: System) -> Result<(), Unfit> {
        let link = &scenario[self.there];
        let (near, far) = (link.from, link.to);
        let crosses: Vec<_> = FlowId::first(scenario.flows.len())
            .filter(|&id| {
                let flow = &scenario[id];
                matches!(flow.kind, FlowKind::Tcp(_))
                    && topology::forward_path(scenario, flow).is_ok_and(|path| path.contains(&self.there))
            })
            .collect();
        let mut any = false;
        for id in crosses {
            let window = self.window(scenario, id, system)?;
            let flow = &scenario[id];
            let at: Vec<_> = [near, far].into_iter().filter(|&node| node != flow.from && node != flow.to).collect();
            any |= !at.is_empty();
            let routed = flow.route.is_some() || flow.return_route.is_some();
            if routed || at.is_empty() {
                continue;
            }
            let FlowKind::Tcp(tcp) = &mut scenario.flows[id.index()].kind else { continue };
            divide(Arc::make_mut(tcp), &at, near, system.sender(), window);
        }
        if any { Ok(()) } else { Err(Unfit::NoGateway) }
    }

    /// The window of the satellite leg in bytes: its bandwidth-delay product. With S-LACP twice that, because an
    /// acknowledgement may wait a round trip for a repair, but at most the product plus the queue.
    fn window(&self, scenario: &Scenario, flow: FlowId, system: System) -> Result<u64, Unfit> {
        let link = &scenario[self.there];
        let rate = link.config.rate.ok_or_else(|| Unfit::NoRate(link.name.clone()))?;
        let FlowKind::Tcp(tcp) = &scenario[flow].kind else { return Err(Unfit::NoTransfer) };
        let size = SegmentSize::between(&tcp.sender, &tcp.receiver);
        let wire = u64::from(size.payload + size.headers);
        let back = self.back.map_or(Duration::ZERO, |back| {
            let link = &scenario[back].config;
            link.delay + link.rate.map_or(Duration::ZERO, |rate| rate.time_for_ceil(u64::from(size.headers)))
        });
        let round_trip = link.config.delay + back + rate.time_for_ceil(wire);
        let pipe = rate.bytes_in_floor(round_trip);
        let wanted = if system.layered() { 2 * pipe } else { pipe };
        let room = match link.config.queue.limit {
            QueueLimit::Unlimited => u64::MAX,
            QueueLimit::Packets(count) => u64::from(count) * wire,
            QueueLimit::Bytes(bytes) => bytes.get(),
        };
        let segments = wanted.min(pipe.saturating_add(room)).div_ceil(wire).max(2);
        Ok(segments * u64::from(size.payload))
    }
}

/// Splits a connection at these nodes; the leg that leaves `near` is the satellite leg, the others are unchanged.
fn divide(tcp: &mut TcpFlow, at: &[NodeId], near: NodeId, sender: &str, window: u64) {
    let starts_at_link = !at.contains(&near);
    let plain = (tcp.sender, tcp.receiver);
    if starts_at_link {
        (tcp.sender, tcp.receiver) = satellite_leg(plain, sender, window);
    }
    for &node in at {
        let over_satellite = node == near;
        let ends = if over_satellite { satellite_leg(plain, sender, window) } else { plain };
        let names = if over_satellite { (sender, PROFILE) } else { (&*tcp.variant_name, &*tcp.profile_name) };
        tcp.splits.push(Split {
            at: node,
            stp: None,
            sender: ends.0,
            receiver: ends.1,
            variant_name: names.0.to_owned(),
            profile_name: names.1.to_owned(),
            explicit: if over_satellite { TcpOverrides::default() } else { tcp.explicit.clone() },
            route: None,
            return_route: None,
        });
    }
    if !starts_at_link {
        // The gateway buffers enough for the satellite's window.
        tcp.receiver.receive_buffer = tcp.receiver.receive_buffer.max(room_for(window));
    }
}

const PROFILE: &str = "rfc";

/// Data waiting behind a hole needs room in addition to the window.
fn room_for(window: u64) -> u32 {
    u32::try_from(4 * window).unwrap_or(u32::MAX)
}

/// A sender with a constant window of this many bytes, with segments as long as those of `plain`.
fn satellite_leg(plain: (TcpConfig, TcpConfig), variant: &str, window: u64) -> (TcpConfig, TcpConfig) {
    let resolved = resolve_tcp(PROFILE, variant, &Variants::new(), &TcpOverrides::default());
    let (mut sender, mut receiver) = resolved.expect("both are in the engine's tables");
    (sender.mss, receiver.mss) = (plain.0.mss, plain.1.mss);
    sender.variant.startup = Startup::FixedWindow((window / u64::from(sender.mss)).max(2) as u32);
    for end in [&mut sender, &mut receiver] {
        end.receive_buffer = end.receive_buffer.max(room_for(window));
    }
    (sender, receiver)
}
