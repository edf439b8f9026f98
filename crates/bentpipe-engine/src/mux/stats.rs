//! What an end counts.

use core::ops::AddAssign;

/// What an end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxStats {
    /// Streams that we opened, and those that the peer did.
    pub opened: u64,
    /// Streams that the peer opened.
    pub accepted: u64,
    /// Streams that ended in both directions.
    pub closed: u64,
    /// Streams that were reset by the peer.
    pub reset_by_peer: u64,
    /// Streams that were reset here, those refused for their number among them.
    pub reset_here: u64,
    /// Streams reset for want of memory, counted above as well.
    pub out_of_memory: u64,
    /// Messages of streams that are over or never were; after a reset some are on their way.
    pub stray: u64,
    /// Bytes of streams sent.
    pub bytes_sent: u64,
    /// Bytes of streams received.
    pub bytes_received: u64,
}

impl AddAssign for MuxStats {
    fn add_assign(&mut self, more: MuxStats) {
        let MuxStats {
            opened,
            accepted,
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
        self.closed += closed;
        self.reset_by_peer += reset_by_peer;
        self.reset_here += reset_here;
        self.out_of_memory += out_of_memory;
        self.stray += stray;
        self.bytes_sent += bytes_sent;
        self.bytes_received += bytes_received;
    }
}
