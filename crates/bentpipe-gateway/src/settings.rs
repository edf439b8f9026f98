//! The settings of a gateway: TOML in which every quantity carries its unit, checked as scenarios are.
//!
//! Reading order: [`GatewayFile`] is what comes out, `grammar` what may be written, `read` how it is read.

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
    /// The tunnel, where there is another box.
    pub tunnel: Option<TunnelTable>,
    /// Its peers: none for one box, one that has no name, or those of a hub.
    pub peers: Vec<PeerTable>,
    /// What is known of the link.
    pub satellite: SatelliteTable,
    /// What goes through it.
    pub shape: ShapeTable,
    /// The socket at which `status` asks.
    pub control: PathBuf,
    /// Where Prometheus scrapes.
    pub metrics: Option<SocketAddr>,
    /// Whom it becomes if root starts it; `None`: the command's default.
    pub user: Option<String>,
}

/// `[tunnel]`
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelTable {
    /// The file that the private key lies in.
    pub private_key: PathBuf,
    /// The file that notes where the peer was last.
    pub state: PathBuf,
    /// Where this end listens.
    pub listen: SocketAddr,
    /// The longest IP packet that passes between the two.
    pub mtu: u16,
    /// An idle end says so often that it is there.
    pub keepalive: Duration,
    /// A peer that is not heard for so long is given up.
    pub dead_after: Duration,
}

/// A peer: one of `[[peers]]`, or the only one, of `[tunnel]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerTable {
    /// What it is called; `None`: it is the only one, and all destinations lie behind it.
    pub name: Option<String>,
    /// Its public key.
    pub key: String,
    /// The file of a secret that both boxes have besides.
    pub preshared_key: Option<PathBuf>,
    /// Where it is, if this end knows.
    pub endpoint: Option<SocketAddr>,
    /// Addresses that it may speak from; if it has a name, they also lie behind it. `None`: it may use all valid ones.
    pub prefixes: Option<Vec<Prefix>>,
    /// What this end may send to it.
    pub rate: Rate,
    /// There and back.
    pub round_trip: Duration,
    /// Its share beside the others'.
    pub weight: u32,
    /// What goes to it.
    pub carries: Carries,
    /// What is written into SCONE packets to it.
    pub advice: Option<Advice>,
}

/// `[satellite]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SatelliteTable {
    /// What this end may send.
    pub rate: Rate,
    /// There and back.
    pub round_trip: Duration,
    /// Frames that may overtake one before it counts as lost.
    pub reordering: u64,
    /// Whether others use the link too: `rate` is then the most that is tried.
    pub shared: bool,
}

/// `[split]`, `[link]` or `[uplink]`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeTable {
    /// TCP connections end here and continue from the peer.
    Split(SplitTable),
    /// IP packets, by a TUN device.
    Link(LinkTable),
    /// Of a hub: each peer has one of the two.
    Both(SplitTable, LinkTable),
    /// TCP connections of clients behind the satellite end here, and the engine's TCP answers them.
    Uplink(Box<UplinkTable>),
    /// The same, and the kernel's TCP answers them: `sender = "kernel"`.
    Relay(RelayTable),
}

/// What all shapes say of the TCP connections that end at them.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenTable {
    /// Interfaces whose hosts' connections are taken: `split.capture`, or `uplink.satellite`. Empty for `split`: only connections that
    /// come from the peer are served.
    pub interfaces: Vec<String>,
    /// Destination ports that are taken; none: all.
    pub ports: Vec<u16>,
    /// Destinations that may be reached; none: all but those refused by default.
    pub allow: Vec<Destination>,
    /// Destinations that may not be reached.
    pub deny: Vec<Destination>,
    /// Whether destinations see the client's address.
    pub keep_client_address: bool,
    /// Connections that may be open at a time; of `split`, the peer's.
    pub max_streams: u32,
    /// Bytes that may wait for hosts that do not take them; of the engine's sender, that all buffers may take.
    pub memory: Bytes,
}

/// `[split]`
#[derive(Clone, Debug, PartialEq)]
pub struct SplitTable {
    /// The connections to take.
    pub taken: TakenTable,
    /// Where the kernel hands connections over.
    pub port: u16,
    /// Whether new connections pass directly while the peer is gone; else they are reset.
    pub direct_without_peer: bool,
}

/// `[link]`
#[derive(Clone, Debug, PartialEq)]
pub struct LinkTable {
    /// The device's name.
    pub device: String,
    /// Its addresses, each with the length of its prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Bytes that the packets of all peers may take.
    pub memory: Bytes,
    /// What is written into SCONE packets to peers that do not say it themselves.
    pub advice: Option<Advice>,
}

/// `[uplink]` with `sender = "kernel"`.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTable {
    /// The connections to take.
    pub taken: TakenTable,
    /// Where the kernel hands connections over.
    pub port: u16,
    /// The kernel's congestion control towards clients; whether it has it is not asked here.
    pub congestion: String,
}

/// `[uplink]` with `sender = "engine"`.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkTable {
    /// The connections to take.
    pub taken: TakenTable,
    /// Name of the row in the engine's table of variants.
    pub variant: String,
    /// That row, and what `[uplink.tcp]` changes.
    pub tcp: TcpConfig,
    /// A connection's window; `None` leaves the row as it is.
    pub window: Option<Bytes>,
    /// The TUN device.
    pub device: String,
    /// The longest IP packet that the way to the clients takes.
    pub mtu: u16,
    /// Whether clients are answered before servers have accepted.
    pub early_accept: bool,
}

impl GatewayFile {
    /// Whether it has `[[peers]]`.
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

    /// What only the machine can tell of the value of a key, such as `uplink.congestion`, with its place in the text: where
    /// the key is not given, that of its table.
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
