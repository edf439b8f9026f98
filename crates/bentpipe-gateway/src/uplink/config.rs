//! The settings of the machine, and the counters.

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::tcp::TcpStats;
use bentpipe_io::Endpoint;

/// The smallest size of each of a connection's buffers, bytes.
pub(super) const MIN_BUFFER: usize = 16 << 10;

/// The settings of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkConfig {
    /// What sends to the clients.
    pub sender: UplinkSender,
    /// Whether clients are answered before the server has accepted.
    pub early_accept: bool,
    /// Connections that may be open at a time.
    pub max_streams: u32,
    /// Bytes that all buffers together may take.
    pub memory: u64,
}

impl UplinkConfig {
    /// The most half-open connections: half of all places, and half of the memory, are reserved for open ones.
    pub(super) fn max_half_open(&self) -> usize {
        let room = self.memory / 2 / (2 * MIN_BUFFER as u64);
        usize::try_from(room.min(u64::from(self.max_streams) / 2)).unwrap_or(usize::MAX).max(1)
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UplinkStats {
    /// Connections that are open or being opened.
    pub open: u64,
    /// Connections begun by a SYN that was taken.
    pub total: u64,
    /// Connections that the server accepted.
    pub connected: u64,
    /// Connections that it did not.
    pub failed: u64,
    /// Connections refused for want of descriptors, of memory, or because there were too many.
    pub refused: u64,
    /// Connections that were reset, by the client, or because it was gone.
    pub reset: u64,
    /// Connections given up because nothing was heard of the client.
    pub silent: u64,
    /// Packets of other connections, which passed unchanged.
    pub passed: u64,
    /// Packets that were damaged.
    pub malformed: u64,
    /// Packets sent, and their bytes.
    pub packets: u64,
    /// Bytes of them, headers included.
    pub bytes: u64,
    /// Segments that take sequence space, and those of them that were sent before.
    pub segments: u64,
    /// Repetitions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets of clients that found no memory.
    pub no_room: u64,
    /// Bytes that buffers take.
    pub memory: u64,
}

impl UplinkStats {
    /// Adds what a connection counted.
    pub(super) fn add(&mut self, endpoint: &Endpoint) {
        let TcpStats { data_segments, retransmits, timeouts, .. } = endpoint.connection().stats();
        self.segments += data_segments;
        self.retransmits += retransmits;
        self.timeouts += timeouts;
        self.no_room += endpoint.no_room();
    }
}
