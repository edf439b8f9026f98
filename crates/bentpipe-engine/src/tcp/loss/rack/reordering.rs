//! Conclusions from data that arrived late or twice: the reordering window (RFC 8985 §6.2 step 4), and Linux's rules.

use super::{DUP_THRESH, Rack};
use crate::tcp::variant::Reordering;
use crate::units::{Duration, Time};

/// Number of recoveries for which the reordering window keeps the width set after duplicates (RFC 8985 §6.2 step 4).
const REO_WND_PERSIST: u32 = 16;

impl Rack {
    /// Sets the rules for conclusions from reordering.
    pub(in crate::tcp) fn reorder_by(&mut self, rules: Reordering) {
        self.rules = rules;
    }

    /// [`Rack::on_ack`] for an ACK with SACK blocks, which are taken next. Linux takes the blocks first, so of such an
    /// ACK the round trip of the last segment before it counts: returns it, to be [kept](Rack::keep_rtt) then.
    pub(in crate::tcp) fn on_ack_before_blocks(&mut self, una: u64, now: Time) -> Option<Duration> {
        let before = self.rtt.take();
        self.on_ack(una, now);
        let rtt = self.rtt.filter(|_| self.rules == Reordering::Linux);
        self.rtt = self.rtt.or(before);
        rtt
    }

    pub(in crate::tcp) fn keep_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// Data to the same host has come so many segments late before (Linux's `tcp_init_metrics`).
    pub(in crate::tcp) fn expect_reordering(&mut self, segments: u64) {
        self.reordered = self.reordered.max(segments * u64::from(self.full));
    }

    /// The number of SACKed segments that mean a loss without delay. More than [`DUP_THRESH`] where an earlier connection has seen
    /// reordering.
    pub(super) fn dup_thresh(&self) -> usize {
        match self.rules {
            Reordering::Linux => DUP_THRESH.max(self.reordered.div_ceil(u64::from(self.full).max(1)) as usize),
            Reordering::Rfc8985 => DUP_THRESH,
        }
    }

    /// A D-SACK that acknowledges up to `una`, when data up to `snd_max` was sent: the peer has received something twice, so the
    /// reordering window was too narrow (RFC 8985 §6.2 step 4). In Linux only if reordering was seen, and what came twice is not the tail
    /// loss probe (`of_probe`), which RACK has not sent.
    pub(in crate::tcp) fn on_duplicate_report(&mut self, una: u64, snd_max: u64, of_probe: bool) {
        if self.rules == Reordering::Linux && (of_probe || !self.reordering_seen) {
            return;
        }
        if una >= self.dsack_round_end {
            self.dsack_round_end = snd_max;
            //= RFC 8985 §6.2 step 4: "RACK.reo_wnd_mult += 1 [...] RACK.reo_wnd_persist = 16"
            self.reo_wnd_mult = self.reo_wnd_mult.max(1) + 1;
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    //= RFC 8985 §6.2 step 4: "RACK.reo_wnd_persist -= 1 If RACK.reo_wnd_persist <= 0 RACK.reo_wnd_mult = 1"
    /// Handles the end of a recovery or of the repair after a timeout.
    pub(in crate::tcp::loss) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Records that data from `start` on, below `una`, was late: a timestamp shows that the retransmitted data had not
    /// been lost.
    pub(in crate::tcp) fn note_late(&mut self, start: u64, una: u64) {
        if self.rules == Reordering::Linux {
            self.reordering_seen = true;
            self.reordered = self.reordered.max(self.fack.max(una).saturating_sub(start));
        }
    }

    /// Takes a report that `start..end` has arrived twice; `resent` segments of up to `full` bytes were ever
    /// retransmitted. In Linux, needless retransmissions count as delivered, and packets duplicated by the network
    /// prove nothing (`tcp_dsack_seen`). Returns false if the report proves nothing.
    pub(in crate::tcp) fn count_repeated(&mut self, (start, end): (u64, u64), resent: u64, full: u64) -> bool {
        if self.rules != Reordering::Linux {
            return true;
        }
        let bytes = end.saturating_sub(start);
        let repeats = self.repeats.saturating_add(bytes.div_ceil(full));
        let is_ours = repeats <= resent;
        if is_ours {
            (self.repeats, self.repeated) = (repeats, self.repeated + bytes);
            if let Some(rate) = &mut self.rate {
                rate.on_repeated(bytes);
            }
        }
        is_ours
    }

    /// Bytes counted by [`Self::count_repeated`].
    #[inline(always)]
    pub(in crate::tcp) fn repeated_bytes(&self) -> u64 {
        self.repeated
    }

    /// The largest distance, in bytes, by which a segment came late.
    pub(in crate::tcp) fn reordered_bytes(&self) -> u64 {
        self.reordered
    }

    /// True if a segment has come more than `bytes` late, and Linux's rules apply.
    pub(in crate::tcp) fn has_reordered(&self, bytes: u64) -> bool {
        self.rules == Reordering::Linux && self.reordered > bytes
    }

    /// Called at a timeout outside of recoveries. If enough segments are SACKed to mean a loss without reordering,
    /// there is less reordering than it seemed, and the measured distance is reset (Linux's `tcp_enter_loss`).
    pub(in crate::tcp) fn doubt_reordering(&mut self) {
        if self.rules == Reordering::Linux && self.sacked_segments >= DUP_THRESH {
            self.reordered = 0;
        }
    }

    /// The reordering window in quarters of `min_rtt`.
    #[cfg(test)]
    pub(in crate::tcp) fn reo_wnd_mult(&self) -> u64 {
        self.reo_wnd_mult
    }
}
