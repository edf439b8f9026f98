//! The settings of a gateway: TOML in which every quantity has a unit, checked in the same way as scenarios.
//!
//! Reading order: [`GatewayFile`] (the values); `grammar` (the keys); `read` (turns text into values).

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
use crate::tunnel::PublicKey;

pub use crate::peers::Carries;

/// The content of a gateway file.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayFile {
    /// Its name, shown in the status.
    pub name: String,
    /// The tunnel, if there is another box.
    pub tunnel: Option<TunnelTable>,
    /// Its peers: none for a single box, one without a name, or those of a hub.
    pub peers: Vec<PeerTable>,
    /// The properties of the link.
    pub satellite: SatelliteTable,
    /// The traffic to accelerate.
    pub shape: ShapeTable,
    /// The socket for `status`.
    pub control: PathBuf,
    /// The address at which Prometheus scrapes, if any.
    pub metrics: Option<SocketAddr>,
    /// The user to switch to if root starts the gateway; `None`: the command's default.
    pub user: Option<String>,
}

/// `[tunnel]`
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelTable {
    /// The file of the private key.
    pub private_key: PathBuf,
    /// The file in which the peer's last address is saved.
    pub state: PathBuf,
    /// The address at which this end listens.
    pub listen: SocketAddr,
    /// Maximum length of an IP packet between the boxes.
    pub mtu: u16,
    /// The interval of keepalives sent by an idle end.
    pub keepalive: Duration,
    /// How long a peer may be silent before it is given up.
    pub dead_after: Duration,
}

/// A peer: one of `[[peers]]`, or the only one, from `[tunnel]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerTable {
    /// Its name; `None`: it is the only peer, and all destinations are behind it.
    pub name: Option<String>,
    /// Its public key.
    pub key: PublicKey,
    /// The file of an additional secret that both boxes share.
    pub preshared_key: Option<PathBuf>,
    /// Its address, if this end knows it.
    pub endpoint: Option<SocketAddr>,
    /// Source addresses that it may use. If it has a name, they are also the destinations behind it. `None`: all valid
    /// sources.
    pub prefixes: Option<Vec<Prefix>>,
    /// Maximum rate from this end to the peer.
    pub rate: Rate,
    /// The round trip of the link.
    pub round_trip: Duration,
    /// Its weight among the peers.
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
    /// Number of later frames that may overtake a frame before it counts as lost.
    pub reordering: u64,
    /// True if the link also carries other traffic; `rate` is then the upper bound.
    pub shared: bool,
}

/// `[split]`, `[link]` or `[uplink]`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeTable {
    /// TCP connections are terminated and continue from the peer.
    Split(SplitTable),
    /// IP packets, through a TUN device.
    Link(LinkTable),
    /// A hub each of whose peers uses one of the two.
    Both(SplitTable, LinkTable),
    /// TCP connections of clients behind the satellite are terminated by the engine's TCP.
    Uplink(Box<UplinkTable>),
    /// As `Uplink`, with the kernel's TCP: `sender = "kernel"`.
    Relay(RelayTable),
}

/// Settings of the TCP connections to terminate, shared by several shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenTable {
    /// Interfaces of the hosts whose connections are terminated: `split.capture` or `uplink.satellite`. If empty for
    /// `split`, only connections from the peer are served.
    pub interfaces: Vec<String>,
    /// Destination ports to terminate; if empty, all.
    pub ports: Vec<u16>,
    /// Destinations that may be reached; if empty, all except those refused by default.
    pub allow: Vec<Destination>,
    /// Destinations that may not be reached.
    pub deny: Vec<Destination>,
    /// True if destinations see the client's address.
    pub keep_client_address: bool,
    /// Maximum number of open connections; for `split`, per peer.
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
    /// Its addresses, each with its prefix length.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Maximum bytes of the packets of all peers together.
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
    /// The kernel's congestion control towards clients. Whether it exists is not checked here.
    pub congestion: String,
}

/// `[uplink]` with `sender = "engine"`.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkTable {
    /// The connections to terminate.
    pub taken: TakenTable,
    /// The name of the variant.
    pub variant: String,
    /// The variant's settings, with the changes from `[uplink.tcp]`.
    pub tcp: TcpConfig,
    /// A connection's window; `None`: that of the variant.
    pub window: Option<Bytes>,
    /// The TUN device.
    pub device: String,
    /// Maximum length of an IP packet to the clients.
    pub mtu: u16,
    /// True if clients are answered before servers have accepted.
    pub early_accept: bool,
}

/// The folder of a gateway's own, to which it writes while it runs unless its file says otherwise.
fn own_folder(name: &str) -> PathBuf {
    Path::new("/run/bentpipe").join(name)
}

impl GatewayFile {
    /// This gateway's own folder.
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
    /// Fails if the file cannot be read. Otherwise returns all mistakes in it: invalid TOML, unknown keys, wrong
    /// values, contradictions.
    pub fn load(path: impl AsRef<Path>) -> Result<GatewayFile, ScenarioErrors> {
        Ok(GatewayFile::load_with_warnings(path)?.0)
    }

    /// Reads text. Errors call it `file_name`.
    ///
    /// # Errors
    /// Returns all mistakes in the text: invalid TOML, unknown keys, wrong values, contradictions.
    pub fn parse(text: &str, file_name: &str) -> Result<GatewayFile, ScenarioErrors> {
        Ok(GatewayFile::parse_with_warnings(text, file_name)?.0)
    }

    /// Like [`GatewayFile::parse`], and also returns warnings about renamed keys.
    ///
    /// # Errors
    /// Returns all mistakes in the text: invalid TOML, unknown keys, wrong values, contradictions.
    pub fn parse_with_warnings(text: &str, file_name: &str) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
        read::parse(text, file_name)
    }

    /// Like [`GatewayFile::load`], and also returns warnings about renamed keys.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Otherwise returns all mistakes in it: invalid TOML, unknown keys, wrong
    /// values, contradictions.
    pub fn load_with_warnings(path: impl AsRef<Path>) -> Result<(GatewayFile, ScenarioErrors), ScenarioErrors> {
        read::load(path.as_ref())
    }

    /// An error that only the machine can detect in the value of a key, such as `uplink.congestion`. It refers to the
    /// key's place in the text or, if the key is absent, to that of its table.
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
