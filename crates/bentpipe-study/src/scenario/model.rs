//! The values of a scenario.

mod flow;
mod gateway;
mod ids;
mod layer;
mod quic;
mod workload;

use bentpipe_engine::link::{Distribution, LinkConfig};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_language::tcp::Variants;

pub use flow::{BufferSharing, FlowKind, FlowSpec, Split, Spoof, Spread, StpFlow, TcpFlow};
pub use gateway::{Carries, Gateways, Met, PairSpec, SenderOf, Through, UplinkSpec};
pub use ids::{ConnectionId, FlowId, NodeId};
pub use layer::{ChannelSpec, LayerSpec};
pub(crate) use layer::{PLAIN, PLAIN_FEC};
pub use quic::{AckFrequency, QuicControl, QuicFlow};
pub use workload::{Mpeg, UdpFlow, UdpPattern, Workload};

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
    /// Maximum run time. The run stops earlier when all finite flows are done.
    pub time_limit: Duration,
    /// Names of the nodes, in order of first mention.
    pub nodes: Vec<String>,
    /// Settings of the nodes, in the same order.
    pub hosts: Vec<HostSpec>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// Layers over some of the links.
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
    /// The node at which it begins.
    pub from: NodeId,
    /// The node it leads to.
    pub to: NodeId,
    /// Its settings.
    pub config: LinkConfig,
    /// The rate that the network element before it advises to QUIC flows that ask.
    pub throughput_advice: Option<Rate>,
}

impl LinkSpec {
    /// The name under which the link draws at random, in virtual and in real time.
    pub fn component(&self) -> String {
        format!("link/{}", self.name)
    }

    /// Bytes that its line can send from the start of a run with this seed to `end`; `None` if transmission takes no
    /// time ([`LinkConfig::capacity`]).
    pub fn capacity(&self, seed: u64, end: Time) -> Option<f64> {
        self.config.capacity(seed, &self.component(), end)
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

    /// The links below each pair of S-LACP ends, in both directions: first those of the layers, then those of the
    /// gateways.
    pub fn lines(&self) -> impl Iterator<Item = [LinkId; 2]> {
        let pairs = self.gateways.pairs.iter().map(|pair| pair.over);
        self.layers.iter().map(|layer| layer.over).chain(pairs)
    }

    /// The pair of ends (a layer's, or those of a gateway of shape `link`) that takes flows' packets over a link, as
    /// its index in [`Scenario::lines`], and which end it is.
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
