//! The settings of the machine, and the counters.

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::tcp::TcpStats;
use bentpipe_engine::units::Duration;
use bentpipe_io::Endpoint;

/// Minimum size of each of a connection's buffers in bytes.
pub(super) const MIN_BUFFER: usize = 16 << 10;

/// The settings of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkConfig {
    /// The sender towards the clients.
    pub sender: UplinkSender,
    /// True if clients are answered before the server has accepted.
    pub early_accept: bool,
    /// Maximum number of open connections.
    pub max_streams: u32,
    /// Maximum bytes of all buffers together.
    pub memory: u64,
}

impl UplinkConfig {
    /// Maximum number of half-open connections: half of all places, and half of the memory, are reserved for open ones.
    pub(super) fn max_half_open(&self) -> usize {
        let room = self.memory / 2 / (2 * MIN_BUFFER as u64);
        usize::try_from(room.min(u64::from(self.max_streams) / 2)).unwrap_or(usize::MAX).max(1)
    }
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UplinkStats {
    /// Connections that are open or being opened.
    pub open: u64,
    /// Connections begun by an accepted SYN.
    pub total: u64,
    /// Connections that the server accepted.
    pub connected: u64,
    /// Connections that the server did not accept.
    pub failed: u64,
    /// Connections refused for lack of descriptors or memory, or because there were too many.
    pub refused: u64,
    /// Connections reset by the client, or because the client was gone.
    pub reset: u64,
    /// Connections given up because the client was silent.
    pub silent: u64,
    /// Packets of foreign connections, which passed unchanged.
    pub passed: u64,
    /// Damaged packets.
    pub malformed: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of these packets, including headers.
    pub bytes: u64,
    /// Segments sent that take sequence space.
    pub segments: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets from clients dropped for lack of memory.
    pub no_room: u64,
    /// Bytes occupied by buffers.
    pub memory: u64,
    /// Excess of all round trips of a minute over `round_trip`, if a queue that the sender built was the reason; 0 after
    /// five minutes without.
    pub standing_queue: Duration,
}

impl UplinkStats {
    /// Adds a connection's counters.
    pub(super) fn add(&mut self, endpoint: &Endpoint) {
        let TcpStats { data_segments, retransmits, timeouts, .. } = endpoint.connection().stats();
        self.segments += data_segments;
        self.retransmits += retransmits;
        self.timeouts += timeouts;
        self.no_room += endpoint.no_room();
    }
}
