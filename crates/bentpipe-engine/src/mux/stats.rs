//! Counters of an end.

use core::ops::AddAssign;

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxStats {
    /// Streams opened here.
    pub opened: u64,
    /// Streams opened by the peer.
    pub accepted: u64,
    /// Streams reset here before their opening was sent, so the peer never learned of them.
    pub cancelled: u64,
    /// Streams that ended in both directions.
    pub closed: u64,
    /// Streams reset by the peer.
    pub reset_by_peer: u64,
    /// Streams reset here, including those refused because too many were open.
    pub reset_here: u64,
    /// Streams reset for lack of memory. They are also counted above.
    pub out_of_memory: u64,
    /// Messages for closed or unknown streams. After a reset, some are still in transit.
    pub stray: u64,
    /// Stream bytes sent.
    pub bytes_sent: u64,
    /// Stream bytes received.
    pub bytes_received: u64,
}

impl AddAssign for MuxStats {
    fn add_assign(&mut self, more: MuxStats) {
        let MuxStats {
            opened,
            accepted,
            cancelled,
            closed,
            reset_by_peer,
            reset_here,
            out_of_memory,
            stray,
            bytes_sent,
            bytes_received,
        } = more;
        self.opened += opened;
        self.accepted += accepted;
        self.cancelled += cancelled;
        self.closed += closed;
        self.reset_by_peer += reset_by_peer;
        self.reset_here += reset_here;
        self.out_of_memory += out_of_memory;
        self.stray += stray;
        self.bytes_sent += bytes_sent;
        self.bytes_received += bytes_received;
    }
}
