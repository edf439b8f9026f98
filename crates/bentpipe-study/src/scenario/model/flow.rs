//! Flows: their nodes, transport and start time.

use std::iter;
use std::sync::Arc;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::Duration;
use bentpipe_language::tcp::{TcpOverrides, UnknownName, Variants, resolve_tcp};

use super::{Met, NodeId, QuicFlow, Through, UdpFlow, Workload};

/// A flow of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// The node that sends (or, with request and response, asks).
    pub from: NodeId,
    /// The node that receives (or answers).
    pub to: NodeId,
    /// Its start time.
    pub start: Duration,
    /// The interval of a random start, if any: [`Scenario::with_seed`](crate::scenario::Scenario::with_seed) draws again.
    pub spread: Option<Spread>,
    /// DSCP of its packets (RFC 2474).
    pub dscp: u8,
    /// What it sends.
    pub kind: FlowKind,
    /// Explicit links from `from` to `to`, or to the first split.
    pub route: Option<Vec<LinkId>>,
    /// Explicit links back.
    pub return_route: Option<Vec<LinkId>>,
}

impl FlowSpec {
    /// When it starts under `seed`.
    pub fn start_under(&self, seed: u64) -> Duration {
        self.spread.map_or(self.start, |spread| spread.draw(seed, &self.name))
    }

    /// Its name without the number at the end, if it has one, as `count` gives it: `web` for `web-1`.
    pub fn family(&self) -> Option<&str> {
        let (family, number) = self.name.rsplit_once('-')?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(family)
    }

    /// True if both have TCP, share its settings, and take the same paths. Settings are not compared: flows with equal
    /// settings that are not shared do not count as alike.
    pub fn is_alike(&self, other: &FlowSpec) -> bool {
        let (FlowKind::Tcp(one), FlowKind::Tcp(two)) = (&self.kind, &other.kind) else { return false };
        let ways = |flow: &FlowSpec| (flow.from, flow.to);
        Arc::ptr_eq(one, two)
            && ways(self) == ways(other)
            && self.route == other.route
            && self.return_route == other.return_route
    }
}

/// Starts drawn uniformly from `earliest..earliest + width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Earliest start.
    pub earliest: Duration,
    /// Width of the interval.
    pub width: Duration,
}

impl Spread {
    /// The start of the flow `name` under `seed`.
    pub fn draw(&self, seed: u64, name: &str) -> Duration {
        let part = Stream::named(seed, format_args!("flow/{name}/start")).uniform();
        self.earliest + Duration::from_nanos((self.width.as_nanos() as f64 * part) as u64)
    }
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// TCP. Flows of one entry in the text share the settings.
    Tcp(Arc<TcpFlow>),
    /// ESA's STP.
    Stp(Box<StpFlow>),
    /// QUIC.
    Quic(Box<QuicFlow>),
    /// UDP.
    Udp(UdpFlow),
}

impl FlowKind {
    /// The workload, if it is a connection.
    pub fn workload(&self) -> Option<Workload> {
        match self {
            FlowKind::Tcp(tcp) => Some(tcp.workload),
            FlowKind::Stp(stp) => Some(stp.workload),
            FlowKind::Quic(quic) => Some(quic.workload),
            FlowKind::Udp(_) => None,
        }
    }

    /// The gateway in which the flow's TCP ends.
    pub fn spoof(&self) -> Option<&Spoof> {
        match self {
            FlowKind::Tcp(tcp) => tcp.spoof.as_ref(),
            _ => None,
        }
    }

    /// The STP settings of a leg, by its number from 0; the flow's own if it is not split.
    pub fn stp_of_leg(&self, leg: usize) -> Option<&StpConfig> {
        match self {
            FlowKind::Stp(stp) => Some(&stp.config),
            FlowKind::Tcp(tcp) => match leg.checked_sub(1) {
                None => tcp.stp.as_ref(),
                Some(split) => tcp.splits.get(split)?.stp.as_ref(),
            },
            FlowKind::Quic(_) | FlowKind::Udp(_) => None,
        }
    }
}

/// An STP connection with equal ends, and its workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StpFlow {
    /// The settings of both ends.
    pub config: StpConfig,
    /// Its workload.
    pub workload: Workload,
}

/// A TCP connection and its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpFlow {
    /// Set if the first leg of a split connection is STP, with these settings.
    pub stp: Option<StpConfig>,
    /// The end at `from`, which opens the connection.
    pub sender: TcpConfig,
    /// The end at `to`.
    pub receiver: TcpConfig,
    /// Its workload.
    pub workload: Workload,
    /// Name of the variant.
    pub variant_name: String,
    /// Name of the profile.
    pub profile_name: String,
    /// Explicit settings, which are kept when the variant changes.
    pub explicit: TcpOverrides,
    /// Its splits, in order from `from` to `to`. The settings above are then those of the first leg.
    pub splits: Vec<Split>,
    /// The spoofing gateway in which the connection ends, if any.
    pub spoof: Option<Spoof>,
    /// When the stacks of its hosts learn that the path has changed.
    pub path_change: Option<Duration>,
}

/// A node at which a connection is split, and its outgoing leg.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The node.
    pub at: NodeId,
    /// Set if the node is a box of a gateway.
    pub gateway: Option<Met>,
    /// Set if the leg is STP, with these settings for both ends.
    pub stp: Option<StpConfig>,
    /// The end of the leg at this node, which opens it.
    pub sender: TcpConfig,
    /// The end at the next split, or at the flow's `to`.
    pub receiver: TcpConfig,
    /// Name of the leg's variant.
    pub variant_name: String,
    /// Name of its profile.
    pub profile_name: String,
    /// Its explicit settings.
    pub explicit: TcpOverrides,
    /// Explicit links of the leg.
    pub route: Option<Vec<LinkId>>,
    /// Explicit links back.
    pub return_route: Option<Vec<LinkId>>,
}

impl Split {
    /// Set if the node is one of two boxes: the outgoing leg then starts at the other one.
    pub fn through(&self) -> Option<Through> {
        match self.gateway {
            Some(Met::Pair(through)) => Some(through),
            _ => None,
        }
    }

    /// The node at which the outgoing leg starts.
    pub fn leaves(&self) -> NodeId {
        self.through().map_or(self.at, |through| through.starts_at)
    }
}

impl TcpFlow {
    /// A connection without explicit settings, from a profile and a row of the engine's table.
    pub fn new(profile: &str, variant: &str, workload: Workload) -> Result<TcpFlow, UnknownName> {
        let explicit = TcpOverrides::default();
        let (sender, receiver) = resolve_tcp(profile, variant, &Variants::new(), &explicit)?;
        Ok(TcpFlow {
            stp: None,
            sender,
            receiver,
            workload,
            variant_name: variant.to_owned(),
            profile_name: profile.to_owned(),
            explicit,
            splits: Vec::new(),
            spoof: None,
            path_change: None,
        })
    }

    /// The variants of the legs, in order from `from` to `to`: at least one. STP is `stp`.
    pub fn leg_variants(&self) -> impl Iterator<Item = &str> {
        let name = |stp: &Option<StpConfig>, variant| if stp.is_some() { "stp" } else { variant };
        let later = self.splits.iter().map(move |split| name(&split.stp, split.variant_name.as_str()));
        iter::once(name(&self.stp, self.variant_name.as_str())).chain(later)
    }
}

/// A gateway that terminates a connection and forwards its data without TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoof {
    /// The node.
    pub at: NodeId,
    /// Capacity of the node's buffer in full segments, waiting or unacknowledged. Flows that end there share it.
    pub buffer: u32,
    /// How the flows share it.
    pub sharing: BufferSharing,
    /// True if a reopened window is advertised at once, not only in the next ACK of data.
    pub reopens: bool,
}

/// How flows that end at one gateway share its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSharing {
    /// Each is offered all free space.
    Common,
    /// Each has an equal part.
    Equal,
}
