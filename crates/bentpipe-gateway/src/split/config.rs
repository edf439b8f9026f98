//! The settings of the shape, and its counters.

use std::net::SocketAddr;

use bentpipe_engine::mux::MuxStats;

use crate::policy::Policy;
use crate::sockets::ClientAddress;

/// Bytes that connections hold now.
pub(crate) struct Waiting {
    /// Bytes from hosts, for the link.
    pub(crate) unsent: u64,
    /// Bytes from the peer, for hosts; and their limit.
    pub(crate) held: u64,
    pub(crate) memory: u64,
}

/// What happens to new connections while there is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// They bypass the gateway: TPROXY lets connections pass while nothing listens.
    Direct,
    /// They are reset.
    Refuse,
}

/// The settings of the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitConfig {
    /// The TPROXY listeners: one or more for each IP version. If empty, only connections from the peer are served.
    pub listen: Vec<SocketAddr>,
    /// The source address with which the far side connects.
    pub client_address: ClientAddress,
    /// What happens to new connections while there is no link.
    pub fallback: Fallback,
    /// Window of a stream, bytes.
    pub window: u64,
    /// Maximum number of open streams of a peer.
    pub max_streams: u32,
    /// Maximum bytes that wait for users, in total.
    pub budget: u64,
    /// The destinations that hosts here may reach, and that peers may reach from here.
    pub policy: Policy,
}

/// Counters of the shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// Connections accepted here.
    pub accepted: u64,
    /// Connections opened for the other box.
    pub connected: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// Connections refused for lack of descriptors, streams, or a link.
    pub refused: u64,
    /// Connections refused because the peer, one of several, opened too many at once.
    pub throttled: u64,
    /// Connections reset because the link was lost.
    pub lost_with_link: u64,
    /// Connections that use another port because the client's was taken.
    pub other_port: u64,
    /// Messages of the peer that could not be read.
    pub malformed: u64,
    /// Number of connections open now.
    pub open: usize,
    /// The multiplexers' counters, summed over all links so far.
    pub mux: MuxStats,
}

impl std::ops::Add for SplitStats {
    type Output = SplitStats;

    fn add(self, other: SplitStats) -> SplitStats {
        let mut mux = self.mux;
        mux += other.mux;
        SplitStats {
            accepted: self.accepted + other.accepted,
            connected: self.connected + other.connected,
            failed: self.failed + other.failed,
            refused: self.refused + other.refused,
            throttled: self.throttled + other.throttled,
            lost_with_link: self.lost_with_link + other.lost_with_link,
            other_port: self.other_port + other.other_port,
            malformed: self.malformed + other.malformed,
            open: self.open + other.open,
            mux,
        }
    }
}
