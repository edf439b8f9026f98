//! The scenario language: text to values.
//!
//! A scenario is a TOML file in which every quantity carries its unit. Reading order: [`Scenario`] is what comes out;
//! `shape` and `grammar` say what may be written; `document` keeps the place of each key and value; `overrides` is
//! `--set`; `reader` makes values out of nodes; `links`, `layers`, `flows` and `variants` read the tables; [`profile`]
//! and `settings` are the defaults and the names of TCP's cells; `write` turns a [`Scenario`] back into text; [`single`]
//! reads quantities outside of files.

mod bursts;
mod cells;
pub(crate) mod document;
pub(crate) mod error;
mod flows;
pub(crate) mod grammar;
mod hosts;
mod layers;
mod links;
mod overrides;
mod place;
pub mod profile;
mod quantity;
pub(crate) mod reader;
pub mod reference;
mod resolve;
pub(crate) mod schema;
mod settings;
pub(crate) mod shape;
pub mod single;
mod splits;
mod spoof;
mod stp;
mod suggest;
mod tcp;
mod tdma;
mod timers;
mod traces;
pub(crate) mod variants;
mod windows;
mod write;

use std::path::Path;

use bentpipe_engine::link::{Distribution, LinkConfig};
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::{Bytes, Duration, Rate};

pub use bursts::mean_secs;
pub use error::{ScenarioError, ScenarioErrors};
pub use layers::{ChannelSpec, LayerSpec};
pub use quantity::{BadQuantity, size};
pub use schema::schema;
pub use settings::Cell;
pub use spoof::{BufferSharing, Spoof};
use windows::TcpEnds;

pub use tcp::{TcpOverrides, UnknownName, VariantRow, Variants, resolve_tcp};

/// A resolved experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Where its numbers come from.
    pub source: Option<String>,
    /// Seed of all random draws.
    pub seed: u64,
    /// When it stops at the latest; it stops earlier when all finite flows are done.
    pub time_limit: Duration,
    /// Names of the nodes, in order of first mention.
    pub nodes: Vec<String>,
    /// What the nodes are, in their order.
    pub hosts: Vec<HostSpec>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// Layers over some of them.
    pub layers: Vec<LayerSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// The scenario's own rows of the table of variants.
    pub variants: Variants,
}

/// What a node is besides the end of links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostSpec {
    /// What each packet takes of the host's processor that a flow sends or receives there, one after the other; `None`:
    /// no time.
    pub processing: Option<Distribution>,
    /// What each packet takes that the node passes on from one link to another, one after the other, whatever it does for
    /// the packets of its own flows; `None`: no time.
    pub forwarding: Option<Distribution>,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name; `NAME/forward` and `NAME/backward` are the two directions of a duplex link.
    pub name: String,
    /// Index of the node it leaves.
    pub from: usize,
    /// Index of the node it leads to.
    pub to: usize,
    /// What it is made of.
    pub config: LinkConfig,
}

/// A flow of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// Index of the node that sends (or asks, with request and response).
    pub from: usize,
    /// Index of the node that receives (or answers).
    pub to: usize,
    /// When it starts.
    pub start: Duration,
    /// Where the start was drawn from, if it was: [`Scenario::with_seed`] draws again.
    pub spread: Option<Spread>,
    /// Code point of its packets (RFC 2474).
    pub dscp: u8,
    /// What it sends.
    pub kind: FlowKind,
    /// Links from `from` to `to`, where they are given; to the first split of a connection that is split.
    pub route: Option<Vec<usize>>,
    /// Links back, where they are given.
    pub return_route: Option<Vec<usize>>,
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
    /// TCP.
    Tcp(Box<TcpFlow>),
    /// ESA's STP.
    Stp(Box<StpFlow>),
    /// UDP.
    Udp(UdpFlow),
}

impl FlowKind {
    /// What the flow carries, where it is a connection.
    pub fn workload(&self) -> Option<Workload> {
        match self {
            FlowKind::Tcp(tcp) => Some(tcp.workload),
            FlowKind::Stp(stp) => Some(stp.workload),
            FlowKind::Udp(_) => None,
        }
    }
}

impl FlowKind {
    /// The settings of a leg that is STP, by its number from 0; the flow's own where it is not split.
    pub fn stp_of_leg(&self, leg: usize) -> Option<&StpConfig> {
        match self {
            FlowKind::Stp(stp) => Some(&stp.config),
            FlowKind::Tcp(tcp) => match leg.checked_sub(1) {
                None => tcp.stp.as_ref(),
                Some(split) => tcp.splits.get(split)?.stp.as_ref(),
            },
            FlowKind::Udp(_) => None,
        }
    }
}

/// An STP connection, both ends alike, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StpFlow {
    /// The settings of both ends.
    pub config: StpConfig,
    /// What it carries.
    pub workload: Workload,
}

/// A TCP connection and what it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpFlow {
    /// The first leg of a connection that is split is not TCP but STP, with these settings.
    pub stp: Option<StpConfig>,
    /// The end at `from`, which opens the connection.
    pub sender: TcpConfig,
    /// The end at `to`.
    pub receiver: TcpConfig,
    /// What it carries.
    pub workload: Workload,
    /// Name of the variant.
    pub variant_name: String,
    /// Name of the profile.
    pub profile_name: String,
    /// What was set explicitly; survives a change of variant.
    pub explicit: TcpOverrides,
    /// Where it is split, in order from `from` to `to`. The settings above are then those of the first leg.
    pub splits: Vec<Split>,
    /// The gateway in which the connection ends, if it does not go through.
    pub spoof: Option<Spoof>,
}

/// A node at which a connection is split, and the leg that leaves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Index of the node.
    pub at: usize,
    /// The leg is not TCP but STP, with these settings for both ends.
    pub stp: Option<StpConfig>,
    /// The end of the leg at this node, which opens it.
    pub sender: TcpConfig,
    /// The end at the next split, or at the flow's `to`.
    pub receiver: TcpConfig,
    /// Name of the leg's variant.
    pub variant_name: String,
    /// Name of its profile.
    pub profile_name: String,
    /// What was set explicitly for it.
    pub explicit: TcpOverrides,
    /// Links of the leg, where they are given.
    pub route: Option<Vec<usize>>,
    /// Links back, where they are given.
    pub return_route: Option<Vec<usize>>,
}

impl TcpFlow {
    /// A connection with nothing set explicitly, by the names of a profile and a row of the engine's table.
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
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// So many bytes, then the end.
    Bulk(Bytes),
    /// As much as goes through.
    Greedy {
        /// For so long; `None`: until the scenario ends.
        duration: Option<Duration>,
    },
    /// What an application writes that keeps to a rate, whatever becomes of it.
    Paced {
        /// Rate of the writes while it writes.
        rate: Rate,
        /// Length of a write.
        write: Bytes,
        /// When it writes.
        pattern: UdpPattern,
        /// So much in all; `None`: until the scenario ends.
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
    /// Length of a packet on the wire in bytes, the 28 bytes of IPv4 and UDP headers included.
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
    /// In turns.
    OnOff {
        /// Lengths of the times it sends.
        on: Distribution,
        /// Lengths of the times it does not.
        off: Distribution,
    },
    /// A frame of video after the other, each at its time.
    Mpeg(Mpeg),
}

/// Video as MPEG codes it (ISO/IEC 11172-2): groups of pictures, of which one stands for itself (I), some follow from those
/// before (P), and those between follow from both sides (B). Frames of a kind are alike here; a recorded film is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpeg {
    /// From the start of a frame to that of the next.
    pub interval: Duration,
    /// Frames of a group.
    pub group: u8,
    /// From one I or P frame to the next.
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
    /// Reads a scenario file; `overrides` are `--set`'s keys and values, in order.
    ///
    /// # Errors
    /// All mistakes that were found in the file, the overrides and the traces they name.
    pub fn load(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Scenario, ScenarioErrors> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Scenario::parse(&text, &name, overrides),
            Err(error) => Err(ScenarioErrors(vec![ScenarioError::without_place(&name, error.to_string())])),
        }
    }

    /// Reads a scenario; `file_name` stands in errors, and files that the text names lie beside it.
    ///
    /// # Errors
    /// All mistakes that were found in the text, the overrides and the traces they name.
    pub fn parse(text: &str, file_name: &str, overrides: &[(String, String)]) -> Result<Scenario, ScenarioErrors> {
        resolve::scenario(text, file_name, overrides)
    }

    /// What somebody says who cannot use a scenario that is right as such: a mistake at `key`, a path as `--set` takes
    /// it, of the text that [`Scenario::parse`] has read.
    pub fn refusal(
        text: &str,
        file_name: &str,
        overrides: &[(String, String)],
        key: &str,
        message: &str,
        expected: &str,
    ) -> ScenarioErrors {
        place::refusal(text, file_name, overrides, key, message, expected)
    }

    /// The resolved scenario as text: links and flows written out, a TCP as its profile, its variant and what is set
    /// on top of them. It reads back as the same value.
    pub fn to_toml(&self) -> String {
        write::scenario(self)
    }

    /// The same scenario with every TCP connection, each leg of one that is split, of another variant; what was set explicitly stays.
    ///
    /// # Errors
    /// No variant of the scenario or of the engine's table has this name.
    pub fn with_variant(&self, name: &str) -> Result<Scenario, UnknownName> {
        let mut changed = self.clone();
        for (flow, before) in changed.flows.iter_mut().zip(&self.flows) {
            let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
            let change = |leg: usize, profile: &str, variant: &mut String, explicit: &mut TcpOverrides, ends| {
                let known = TcpEnds { profile, variant, explicit, ends };
                *explicit = windows::all_explicit(self, before, leg, &known)?;
                name.clone_into(variant);
                windows::resolve(self, before, leg, profile, name, explicit)
            };
            let ends = (tcp.sender, tcp.receiver);
            // A leg that is STP has no variant.
            if tcp.stp.is_none() {
                (tcp.sender, tcp.receiver) =
                    change(0, &tcp.profile_name, &mut tcp.variant_name, &mut tcp.explicit, ends)?;
            }
            for (n, leg) in tcp.splits.iter_mut().enumerate().filter(|(_, leg)| leg.stp.is_none()) {
                let ends = (leg.sender, leg.receiver);
                (leg.sender, leg.receiver) =
                    change(n + 1, &leg.profile_name, &mut leg.variant_name, &mut leg.explicit, ends)?;
            }
        }
        Ok(changed)
    }

    /// The same scenario under another seed.
    pub fn with_seed(&self, seed: u64) -> Scenario {
        let mut changed = self.clone();
        changed.seed = seed;
        for flow in &mut changed.flows {
            if let Some(spread) = flow.spread {
                flow.start = spread.draw(seed, &flow.name);
            }
        }
        changed
    }

    /// Whether the window of a variant with a fixed one follows the path, since nothing sets it: `variant` and `explicit` are
    /// those of a flow or of a leg.
    pub fn window_follows_path(&self, variant: &str, explicit: &TcpOverrides) -> bool {
        windows::follow_path(self, variant, explicit).into_iter().any(|follows| follows)
    }

    /// The layer over a link, and whether the link is its first (0) or its second (1).
    pub fn layer_over(&self, link: usize) -> Option<(usize, usize)> {
        layers::over_link(self, link)
    }

    /// The index of a node.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == name)
    }

    /// Names of all variants that [`Scenario::with_variant`] takes: the scenario's own, then the engine's.
    pub fn variant_names(&self) -> Vec<&str> {
        let own = self.variants.keys().map(String::as_str);
        let table = bentpipe_engine::tcp::variant::VARIANTS.iter().map(|&(name, ..)| name);
        own.chain(table.filter(|name| !self.variants.contains_key(*name))).collect()
    }
}
