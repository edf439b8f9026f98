//! The settings of a relay, and its counters.

use std::io;
use std::net::SocketAddr;

use bentpipe_engine::gateway::kernel_pacing;
use bentpipe_engine::units::{Duration, Rate};
use socket2::{Domain, Protocol, Socket, Type};

use crate::policy::Policy;
use crate::sockets::ClientAddress;

/// The settings of a relay.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayConfig {
    /// The addresses to which TPROXY redirects connections.
    pub listen: Vec<SocketAddr>,
    /// The kernel's congestion control towards clients.
    pub congestion: String,
    /// Maximum rate of a connection towards its client, including IP headers.
    pub rate: Rate,
    /// The round-trip time of the link to the clients. It limits the kernel's timeouts.
    pub round_trip: Duration,
    /// The mark of the gateway's packets: [`Instance::sent`](crate::Instance::sent).
    pub mark: u32,
    /// The source address of connections to servers.
    pub client_address: ClientAddress,
    /// Maximum number of open connections.
    pub max_streams: u32,
    /// Maximum number of bytes that wait for receivers. Above half of it, each connection may hold less.
    pub memory: u64,
    /// The servers that may be reached.
    pub policy: Policy,
}

impl RelayConfig {
    /// The rate at which the kernel paces payload, in bytes per second.
    pub(super) fn pacing(&self) -> u64 {
        kernel_pacing(self.rate)
    }
}

/// Counters of the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Connections that are open or being opened.
    pub open: u64,
    /// Connections accepted from clients.
    pub total: u64,
    /// Connections that the server accepted.
    pub connected: u64,
    /// Connections that the server did not accept.
    pub failed: u64,
    /// Connections refused for lack of descriptors, or because there were too many.
    pub refused: u64,
    /// Connections reset by either end, or timed out.
    pub reset: u64,
    /// Connections that use another port because the client's was taken.
    pub other_port: u64,
    /// Bytes accepted by the kernel for clients.
    pub to_clients: u64,
    /// Bytes accepted by the kernel for servers.
    pub to_servers: u64,
    /// Bytes that wait for receivers.
    pub held: u64,
}

/// Tests whether the kernel has a congestion control of this name, which loads it if it is a module.
///
/// # Errors
/// Fails if no socket can be opened, or if the congestion control may not be used (it may be restricted to root).
pub(crate) fn has_congestion(name: &str) -> io::Result<bool> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    match socket.set_tcp_congestion(name.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The names of the kernel's congestion controls.
pub fn congestion_controls() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
