//! What an end counts.

use core::ops::AddAssign;

use crate::units::Duration;

/// What a channel counted, the sender's side first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Packets from above.
    pub packets: u64,
    /// Refused for want of room.
    pub dropped_full: u64,
    /// Taken out by CoDel.
    pub dropped_early: u64,
    /// Acknowledgements whose place a later one has taken.
    pub superseded: u64,
    /// Packets sent, each counted once, and their bytes.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Transmissions that were lost.
    pub lost: u64,
    /// Packets sent again, each time counted.
    pub resent: u64,
    /// Packets sent again into an idle line, each time counted; not among those above.
    pub copies: u64,
    /// Repair frames sent.
    pub repairs: u64,
    /// Lost packets that repair frames made good.
    pub repaired: u64,
    /// Packets given up.
    pub abandoned: u64,
    /// Sync frames sent.
    pub syncs: u64,
    /// Sum of the waits for the first transmission.
    pub waited: Duration,
    /// The longest of them.
    pub longest_wait: Duration,
    /// Most packets that waited at once.
    pub max_waiting: u32,
    /// Packets passed on.
    pub delivered: u64,
    /// Frames that had been there before, or came too late.
    pub refused: u64,
    /// Packets computed from repair frames.
    pub recovered: u64,
    /// Packets that never came.
    pub skipped: u64,
    /// Sum of the times between arrival and release.
    pub held: Duration,
    /// The longest of them.
    pub longest_hold: Duration,
}

/// Sums, and of what is a maximum the greater one.
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

/// What an end counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By channel.
    pub channels: Vec<ChannelStats>,
    /// Frames sent, and their bytes on the line.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Reports among them.
    pub reports: u64,
    /// The smoothed round trip, once measured.
    pub srtt: Option<Duration>,
}
