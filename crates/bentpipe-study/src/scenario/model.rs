//! The values of a scenario.

mod gateway;
mod ids;
mod layer;
mod quic;

use std::iter;
use std::sync::Arc;

use bentpipe_engine::link::{Distribution, LinkConfig};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::{Bytes, Duration, Rate, Time};
use bentpipe_language::tcp::{TcpOverrides, UnknownName, Variants, resolve_tcp};

pub use gateway::{Carries, Gateways, Met, PairSpec, SenderOf, Through, UplinkSpec};
pub use ids::{ConnectionId, FlowId, NodeId};
pub use layer::{ChannelSpec, LayerSpec};
pub(crate) use layer::{PLAIN, PLAIN_FEC};
pub use quic::{AckFrequency, QuicControl, QuicFlow};

/// A resolved experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The source of its numbers.
    pub source: Option<String>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Max run time; it stops earlier when all finite flows are done.
    pub time_limit: Duration,
    /// Names of the nodes, in order of first mention.
    pub nodes: Vec<String>,
    /// Settings of the nodes, in the same order.
    pub hosts: Vec<HostSpec>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// Layers over some of them.
    pub layers: Vec<LayerSpec>,
    /// Gateways.
    pub gateways: Gateways,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// The scenario's own rows of the table of variants.
    pub variants: Variants,
}

/// Settings of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostSpec {
    /// CPU time for each packet that a flow sends or receives there, one at a time; `None`: no time.
    pub processing: Option<Distribution>,
    /// CPU time for each packet that the node forwards, one at a time, independent of its own flows' packets; `None`:
    /// no time.
    pub forwarding: Option<Distribution>,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name; `NAME/forward` and `NAME/backward` are the two directions of a duplex link.
    pub name: String,
    /// The node it leaves.
    pub from: NodeId,
    /// The node it leads to.
    pub to: NodeId,
    /// Its settings.
    pub config: LinkConfig,
    /// What the network element before it advises to flows of QUIC that ask.
    pub throughput_advice: Option<Rate>,
}

impl LinkSpec {
    /// The name under which the link draws at random, in virtual and in real time.
    pub fn component(&self) -> String {
        format!("link/{}", self.name)
    }

    /// Bytes that its line can send from the start of a run with this seed to `end`; `None` if the line takes no time
    /// ([`LinkConfig::capacity`]).
    pub fn capacity(&self, seed: u64, end: Time) -> Option<f64> {
        self.config.capacity(seed, &self.component(), end)
    }
}

/// A flow of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// The node that sends (or asks, with request and response).
    pub from: NodeId,
    /// The node that receives (or answers).
    pub to: NodeId,
    /// Its start time.
    pub start: Duration,
    /// The interval of a random start, if any: [`Scenario::with_seed`] draws again.
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

    /// True if both have TCP, share its settings, and take the same ways. Compares no settings: flows whose equal settings
    /// are not shared are not alike.
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
        let part = Stream::named(seed, &format!("flow/{name}/start")).uniform();
        self.earliest + Duration::from_nanos((self.width.as_nanos() as f64 * part) as u64)
    }
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// TCP; flows of one entry of the text share the settings.
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
    /// Explicit settings; they survive a change of variant.
    pub explicit: TcpOverrides,
    /// Its splits, in order from `from` to `to`. The settings above are then those of the first leg.
    pub splits: Vec<Split>,
    /// The spoofing gateway in which the connection ends, if any.
    pub spoof: Option<Spoof>,
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
    /// Capacity of the node's buffer in full segments, waiting or unacknowledged; flows that end there share it.
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

/// The workload of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// A number of bytes, then the end.
    Bulk(Bytes),
    /// As much as possible.
    Greedy {
        /// The duration; `None`: until the scenario ends.
        duration: Option<Duration>,
    },
    /// Writes of an application at a rate, independent of delivery.
    Paced {
        /// Rate while it writes.
        rate: Rate,
        /// Length of a write.
        write: Bytes,
        /// When it writes.
        pattern: UdpPattern,
        /// Total amount; `None`: until the scenario ends.
        total: Option<Bytes>,
    },
    /// Requests from `from`, each answered by `to`, one after the other.
    RequestResponse {
        /// Length of a request.
        request: Bytes,
        /// Length of a response.
        response: Bytes,
        /// Pause between a response and the next request.
        think: Duration,
        /// Number of requests.
        count: u32,
    },
}

/// Packets without feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpFlow {
    /// Rate on the wire while it sends.
    pub rate: Rate,
    /// Packet length on the wire in bytes, with 28 bytes of IPv4 and UDP headers.
    pub packet: u32,
    /// When it sends.
    pub pattern: UdpPattern,
    /// When it stops, from the scenario's start; `None`: when the scenario ends.
    pub stop: Option<Duration>,
}

/// When a UDP flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UdpPattern {
    /// Always: constant bit rate.
    Cbr,
    /// On and off.
    OnOff {
        /// Lengths of sending periods.
        on: Distribution,
        /// Lengths of pauses.
        off: Distribution,
    },
    /// Video frames, each at its time.
    Mpeg(Mpeg),
}

/// MPEG video (ISO/IEC 11172-2): groups of pictures with one independent frame (I), frames predicted from earlier ones
/// (P), and frames in between predicted from both sides (B). All frames of a kind have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpeg {
    /// Time from the start of a frame to the next.
    pub interval: Duration,
    /// Frames per group.
    pub group: u8,
    /// Frames from one I or P frame to the next.
    pub distance: u8,
    /// Bytes of an I frame.
    pub i: u32,
    /// Of a P frame.
    pub p: u32,
    /// Of a B frame.
    pub b: u32,
}

impl Mpeg {
    /// Bytes of the n-th frame, from 0, in the order in which they are sent.
    pub fn bytes(&self, n: u64) -> u32 {
        match n % u64::from(self.group) {
            0 => self.i,
            at if at % u64::from(self.distance) == 0 => self.p,
            _ => self.b,
        }
    }
}

impl Scenario {
    /// Its name, with its description if it has one: "geo: A download ...".
    pub fn headline(&self) -> String {
        match self.description.as_str() {
            "" => self.name.clone(),
            description => format!("{}: {description}", self.name),
        }
    }

    /// The same scenario under another seed.
    pub fn with_seed(&self, seed: u64) -> Scenario {
        let mut changed = self.clone();
        changed.seed = seed;
        for flow in &mut changed.flows {
            flow.start = flow.start_under(seed);
        }
        changed
    }

    /// The layer over a link, and the link's number in it (0 or 1).
    pub fn layer_over(&self, link: LinkId) -> Option<(usize, usize)> {
        let side = |layer: &LayerSpec| layer.over.iter().position(|&over| over == link);
        self.layers.iter().enumerate().find_map(|(n, layer)| Some((n, side(layer)?)))
    }

    /// The links below each pair of S-LACP's ends, in both directions: those of the layers, then those of the gateways.
    pub fn lines(&self) -> impl Iterator<Item = [LinkId; 2]> {
        let pairs = self.gateways.pairs.iter().map(|pair| pair.over);
        self.layers.iter().map(|layer| layer.over).chain(pairs)
    }

    /// The pair of ends that takes packets of flows over a link, as its position among [`Scenario::lines`], and the end: a
    /// layer's, or those of a gateway of shape `link`.
    pub(crate) fn line_over(&self, link: LinkId) -> Option<(usize, usize)> {
        let side = |over: [LinkId; 2]| over.iter().position(|&over| over == link);
        let (line, end) = self.lines().enumerate().find_map(|(n, over)| Some((n, side(over)?)))?;
        let pair = line.checked_sub(self.layers.len()).map(|n| &self.gateways.pairs[n]);
        pair.is_none_or(|pair| pair.carries == Carries::Packets).then_some((line, end))
    }

    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node == name).map(NodeId::from)
    }

    /// The link with this name.
    pub fn link(&self, name: &str) -> Option<LinkId> {
        self.links.iter().position(|link| link.name == name).map(LinkId::from)
    }

    /// Names of all variants for [`Scenario::with_variant`]: the scenario's own, then the engine's.
    pub fn variant_names(&self) -> Vec<&str> {
        let own = self.variants.keys().map(String::as_str);
        let table = bentpipe_engine::tcp::variant::VARIANTS.iter().map(|&(name, ..)| name);
        own.chain(table.filter(|name| !self.variants.contains_key(*name))).collect()
    }
}
