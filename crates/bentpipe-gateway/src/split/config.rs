//! The settings of the shape, and its counters.

use std::net::SocketAddr;

use bentpipe_engine::mux::MuxStats;

use crate::policy::Policy;
use crate::sockets::ClientAddress;

/// Bytes of connections, at this moment.
pub(crate) struct Waiting {
    /// Of hosts, for the link.
    pub(crate) unsent: u64,
    /// From the peer, for hosts; and what may.
    pub(crate) held: u64,
    pub(crate) memory: u64,
}

/// What becomes of new connections while there is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// They bypass the gateway: TPROXY lets connections pass while nothing listens.
    Direct,
    /// They are reset.
    Refuse,
}

/// What the shape is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitConfig {
    /// The listeners of TPROXY: one for each version of IP, or more. None: only connections of the peer are served.
    pub listen: Vec<SocketAddr>,
    /// In whose name the far side connects.
    pub client_address: ClientAddress,
    /// What becomes of new connections while there is no link.
    pub fallback: Fallback,
    /// Window of a stream, bytes.
    pub window: u64,
    /// Streams of a peer that may be open at a time.
    pub max_streams: u32,
    /// Bytes that may wait for users in all.
    pub budget: u64,
    /// The destinations that may be reached, by hosts here and from here by peers.
    pub policy: Policy,
}

/// What the shape counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// Connections accepted here.
    pub accepted: u64,
    /// Connections made for the other box.
    pub connected: u64,
    /// Connections that could not be made.
    pub failed: u64,
    /// Connections refused for want of descriptors, of streams, or of a link.
    pub refused: u64,
    /// Connections reset because the link was lost.
    pub lost_with_link: u64,
    /// Connections that could not have the client's port, and have another.
    pub other_port: u64,
    /// Messages of the peer that could not be read.
    pub malformed: u64,
    /// Connections open at this moment.
    pub open: usize,
    /// Of the multiplexers of all links so far.
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
            lost_with_link: self.lost_with_link + other.lost_with_link,
            other_port: self.other_port + other.other_port,
            malformed: self.malformed + other.malformed,
            open: self.open + other.open,
            mux,
        }
    }
}
