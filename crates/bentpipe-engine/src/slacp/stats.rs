//! Counters of an end.

use core::ops::AddAssign;

use crate::units::Duration;

/// Counters of a channel; the sender's come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Packets from above.
    pub packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Packets dropped by CoDel.
    pub dropped_early: u64,
    /// Acknowledgements that a later one replaced.
    pub superseded: u64,
    /// Packets sent, each counted once.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Transmissions that were lost.
    pub lost: u64,
    /// Retransmissions.
    pub resent: u64,
    /// Copies sent into an idle line; not counted above.
    pub copies: u64,
    /// Repair frames sent.
    pub repairs: u64,
    /// Lost packets that repair frames recovered.
    pub repaired: u64,
    /// Packets given up.
    pub abandoned: u64,
    /// Sync frames sent.
    pub syncs: u64,
    /// Sum of the waits in the queue.
    pub waited: Duration,
    /// The longest of them.
    pub longest_wait: Duration,
    /// Maximum queue length, packets.
    pub max_waiting: u32,
    /// Packets delivered.
    pub delivered: u64,
    /// Duplicate and late frames.
    pub refused: u64,
    /// Packets recovered from repair frames.
    pub recovered: u64,
    /// Packets that never arrived.
    pub skipped: u64,
    /// Sum of the times between arrival and release.
    pub held: Duration,
    /// The longest of them.
    pub longest_hold: Duration,
}

/// Adds counters; of maxima it keeps the greater.
impl AddAssign for ChannelStats {
    fn add_assign(&mut self, more: ChannelStats) {
        self.packets += more.packets;
        self.dropped_full += more.dropped_full;
        self.dropped_early += more.dropped_early;
        self.superseded += more.superseded;
        self.sent += more.sent;
        self.sent_bytes += more.sent_bytes;
        self.lost += more.lost;
        self.resent += more.resent;
        self.copies += more.copies;
        self.repairs += more.repairs;
        self.repaired += more.repaired;
        self.abandoned += more.abandoned;
        self.syncs += more.syncs;
        self.waited += more.waited;
        self.longest_wait = self.longest_wait.max(more.longest_wait);
        self.max_waiting = self.max_waiting.max(more.max_waiting);
        self.delivered += more.delivered;
        self.refused += more.refused;
        self.recovered += more.recovered;
        self.skipped += more.skipped;
        self.held += more.held;
        self.longest_hold = self.longest_hold.max(more.longest_hold);
    }
}

/// Counters of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By channel.
    pub channels: Vec<ChannelStats>,
    /// Frames sent.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Reports among them.
    pub reports: u64,
    /// The smoothed round trip, once measured.
    pub srtt: Option<Duration>,
}
