//! The settings of a gateway: TOML in which every quantity has a unit, checked as scenarios are.
//!
//! Reading order: [`GatewayFile`], the values; `grammar`, the keys; `read`, which turns text into values.

mod grammar;
mod peers;
mod read;
mod taken;
mod values;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::{Bytes, Duration, Rate};
use bentpipe_language::error::ScenarioErrors;
use bentpipe_language::gateway::Advice;
use bentpipe_language::reference::{Table, tables};

use crate::policy::{Destination, Prefix};

pub use crate::peers::Carries;

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayFile {
    /// Its name, in status.
    pub name: String,
    /// The tunnel, if there is another box.
    pub tunnel: Option<TunnelTable>,
    /// Its peers: none for one box, a single one without a name, or those of a hub.
    pub peers: Vec<PeerTable>,
    /// The properties of the link.
    pub satellite: SatelliteTable,
    /// The traffic to accelerate.
    pub shape: ShapeTable,
    /// The socket for `status`.
    pub control: PathBuf,
    /// The address at which Prometheus scrapes.
    pub metrics: Option<SocketAddr>,
    /// The user that it becomes if root starts it; `None`: the command's default.
    pub user: Option<String>,
}

/// `[tunnel]`
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelTable {
    /// The file of the private key.
    pub private_key: PathBuf,
    /// The file that keeps the peer's last address.
    pub state: PathBuf,
    /// The address at which this end listens.
    pub listen: SocketAddr,
    /// Maximum length of an IP packet between the boxes.
    pub mtu: u16,
    /// The interval of an idle end's keepalives.
    pub keepalive: Duration,
    /// A peer that is silent for this long is given up.
    pub dead_after: Duration,
}

/// A peer: one of `[[peers]]`, or the only one, of `[tunnel]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerTable {
    /// Its name; `None`: it is the only one, and all destinations are behind it.
    pub name: Option<String>,
    /// Its public key.
    pub key: String,
    /// The file of an additional secret of both boxes.
    pub preshared_key: Option<PathBuf>,
    /// Its address, if this end knows it.
    pub endpoint: Option<SocketAddr>,
    /// Source addresses that it may use; if it has a name, they are also the destinations behind it. `None`: all valid sources.
    pub prefixes: Option<Vec<Prefix>>,
    /// This end's maximum rate to it.
    pub rate: Rate,
    /// The round trip of the link.
    pub round_trip: Duration,
    /// Its weight among peers.
    pub weight: u32,
    /// What is sent to it.
    pub carries: Carries,
    /// The rate written into SCONE packets to it.
    pub advice: Option<Advice>,
}

/// `[satellite]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SatelliteTable {
    /// This end's maximum rate.
    pub rate: Rate,
    /// The round trip of the link.
    pub round_trip: Duration,
    /// Frames that may overtake one before it counts as lost.
    pub reordering: u64,
    /// True if the link also carries other traffic: `rate` is then the upper bound.
    pub shared: bool,
}

/// `[split]`, `[link]` or `[uplink]`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeTable {
    /// TCP connections are terminated and continue from the peer.
    Split(SplitTable),
    /// IP packets, through a TUN device.
    Link(LinkTable),
    /// A hub, of whose peers each has one of the two.
    Both(SplitTable, LinkTable),
    /// TCP connections of clients behind the satellite are terminated by the engine's TCP.
    Uplink(Box<UplinkTable>),
    /// The same with the kernel's TCP: `sender = "kernel"`.
    Relay(RelayTable),
}

/// Settings, common to several shapes, of the TCP connections to terminate.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenTable {
    /// Interfaces whose hosts' connections are terminated: `split.capture`, or `uplink.satellite`. Empty for `split`: only connections
    /// from the peer are served.
    pub interfaces: Vec<String>,
    /// Destination ports to terminate; none: all.
    pub ports: Vec<u16>,
    /// Destinations that may be reached; none: all except those refused by default.
    pub allow: Vec<Destination>,
    /// Destinations that may not be reached.
    pub deny: Vec<Destination>,
    /// True if destinations see the client's address.
    pub keep_client_address: bool,
    /// Maximum number of open connections; for `split`, of each peer.
    pub max_streams: u32,
    /// Maximum bytes that wait for hosts; for the engine's sender, of all buffers.
    pub memory: Bytes,
}

/// `[split]`
#[derive(Clone, Debug, PartialEq)]
pub struct SplitTable {
    /// The connections to terminate.
    pub taken: TakenTable,
    /// The port to which the kernel redirects connections.
    pub port: u16,
    /// True if new connections pass directly while the peer is down; otherwise they are reset.
    pub direct_without_peer: bool,
}

/// `[link]`
#[derive(Clone, Debug, PartialEq)]
pub struct LinkTable {
    /// The device's name.
    pub device: String,
    /// Its addresses, each with the length of its prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Maximum bytes of the packets of all peers.
    pub memory: Bytes,
    /// The rate written into SCONE packets to peers without their own `advice`.
    pub advice: Option<Advice>,
}

/// `[uplink]` with `sender = "kernel"`.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTable {
    /// The connections to terminate.
    pub taken: TakenTable,
    /// The port to which the kernel redirects connections.
    pub port: u16,
    /// The kernel's congestion control towards clients. Its existence is not checked here.
    pub congestion: String,
}

/// `[uplink]` with `sender = "engine"`.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkTable {
    /// The connections to terminate.
    pub taken: TakenTable,
    /// The name of the variant.
    pub variant: String,
    /// The variant's settings, with the changes of `[uplink.tcp]`.
    pub tcp: TcpConfig,
    /// A connection's window; `None`: the variant's.
    pub window: Option<Bytes>,
    /// The TUN device.
    pub device: String,
    /// Maximum length of an IP packet to the clients.
    pub mtu: u16,
    /// True if clients are answered before servers have accepted.
    pub early_accept: bool,
}

/// The folder of a gateway's own, for what it writes while it runs unless its file says otherwise.
fn own_folder(name: &str) -> PathBuf {
    Path::new("/run/bentpipe").join(name)
}

impl GatewayFile {
    /// The folder of this gateway's own.
    pub(crate) fn own_folder(&self) -> PathBuf {
        own_folder(&self.name)
    }

    /// True if it has `[[peers]]`.
    pub(crate) fn is_hub(&self) -> bool {
        self.peers.iter().any(|peer| peer.name.is_some())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Returns all mistakes in it: unknown keys, wrong values, contradictions.
    pub fn load(path: impl AsRef<Path>) -> Result<GatewayFile, ScenarioErrors> {
        Ok(GatewayFile::load_with_warnings(path)?.0)
    }

    /// Reads text; errors name it `file_name`.
    ///
    /// # Errors
    /// Returns all mistakes in the text: TOML's, unknown keys, wrong values, contradictions.
    pub fn parse(text: &str, file_name: &str) -> Result<GatewayFile, ScenarioErrors> {
        Ok(GatewayFile::parse_with_warnings(text, file_name)?.0)
    }

    /// As [`GatewayFile::parse`], with warnings about keys that were renamed.
    ///
    /// # Errors
    /// Returns all mistakes in the text: TOML's, unknown keys, wrong values, contradictions.
    pub fn parse_with_warnings(text: &str, file_name: &str) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
        read::parse(text, file_name)
    }

    /// As [`GatewayFile::load`], with warnings about keys that were renamed.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Returns all mistakes in it: unknown keys, wrong values, contradictions.
    pub fn load_with_warnings(path: impl AsRef<Path>) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
        read::load(path.as_ref())
    }

    /// An error that only the machine can detect in the value of a key, such as `uplink.congestion`, with its place in the text: if
    /// the key is absent, that of its table.
    pub fn mistake(text: &str, file_name: &str, key: &str, message: String, expected: String) -> ScenarioErrors {
        read::mistake(text, file_name, key, message, expected)
    }
}

/// A JSON schema (draft 2020-12) of gateway files.
pub fn schema() -> bentpipe_language::Schema {
    bentpipe_language::schema("bentpipe gateway", grammar::FILE, &["name", "satellite"])
}

/// The tables of a gateway file with their keys.
pub fn reference() -> Vec<Table> {
    tables("Top level", grammar::FILE, &[])
}

#[cfg(test)]
mod tests;
