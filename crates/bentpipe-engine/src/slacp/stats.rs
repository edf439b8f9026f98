//! Counters of an end.

use alloc::vec::Vec;
use core::ops::AddAssign;

use crate::units::Duration;

/// Counters of a channel, first of its sender, then of its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Packets taken from above.
    pub packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Packets dropped by CoDel.
    pub dropped_early: u64,
    /// Acknowledgements replaced by a later one.
    pub superseded: u64,
    /// Packets sent, each counted once.
    pub sent: u64,
    /// Bytes of these packets.
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
    /// Packets that were given up.
    pub abandoned: u64,
    /// Sync frames sent.
    pub syncs: u64,
    /// Sum of the waiting times in the queue.
    pub waited: Duration,
    /// The longest waiting time in the queue.
    pub longest_wait: Duration,
    /// Maximum queue length, packets.
    pub max_waiting: u32,
    /// Packets delivered.
    pub delivered: u64,
    /// Frames refused as duplicate or late.
    pub refused: u64,
    /// Packets recovered from repair frames.
    pub recovered: u64,
    /// Packets that never arrived.
    pub skipped: u64,
    /// Sum of the times from arrival to release.
    pub held: Duration,
    /// The longest time from arrival to release.
    pub longest_hold: Duration,
}

impl AddAssign for ChannelStats {
    /// Adds the counters; of two maxima, keeps the larger.
    fn add_assign(&mut self, more: ChannelStats) {
        let ChannelStats {
            packets,
            dropped_full,
            dropped_early,
            superseded,
            sent,
            sent_bytes,
            lost,
            resent,
            copies,
            repairs,
            repaired,
            abandoned,
            syncs,
            waited,
            longest_wait,
            max_waiting,
            delivered,
            refused,
            recovered,
            skipped,
            held,
            longest_hold,
        } = more;
        self.packets += packets;
        self.dropped_full += dropped_full;
        self.dropped_early += dropped_early;
        self.superseded += superseded;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.lost += lost;
        self.resent += resent;
        self.copies += copies;
        self.repairs += repairs;
        self.repaired += repaired;
        self.abandoned += abandoned;
        self.syncs += syncs;
        self.waited += waited;
        self.longest_wait = self.longest_wait.max(longest_wait);
        self.max_waiting = self.max_waiting.max(max_waiting);
        self.delivered += delivered;
        self.refused += refused;
        self.recovered += recovered;
        self.skipped += skipped;
        self.held += held;
        self.longest_hold = self.longest_hold.max(longest_hold);
    }
}

/// Counters of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By channel.
    pub channels: Vec<ChannelStats>,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Reports among the frames.
    pub reports: u64,
    /// The smoothed round trip, once measured.
    pub srtt: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_the_greatest_is_kept() {
        let channel = |n: u64| ChannelStats {
            packets: n,
            waited: Duration::from_millis(n),
            longest_wait: Duration::from_millis(n),
            max_waiting: n as u32,
            skipped: 10 * n,
            ..ChannelStats::default()
        };
        let mut sum = channel(5);
        sum += channel(3);
        let wanted = ChannelStats {
            packets: 8,
            waited: Duration::from_millis(8),
            longest_wait: Duration::from_millis(5),
            max_waiting: 5,
            skipped: 80,
            ..ChannelStats::default()
        };
        assert_eq!(sum, wanted);
    }
}
