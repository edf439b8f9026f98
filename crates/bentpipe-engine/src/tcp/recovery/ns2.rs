//! ns-2's SACK recovery (`sack1`, Fall and Floyd 1996): a counter of segments in place of RFC 6675's pipe.

use super::Parts;
use crate::tcp::congestion::Window;
use crate::tcp::loss::LossReport;

/// Segments assumed to be in the network: minus one per ACK, plus one per transmission.
#[derive(Clone, Debug, Default)]
pub(super) struct CountedPipe {
    segments: i64,
}

impl CountedPipe {
    /// Starts the recovery. The ACK that causes it triggers only the retransmission.
    pub(super) fn enter(&mut self, parts: Parts<'_>, loss: Option<&LossReport>, threshold: u32) {
        parts.scoreboard.begin_recovery(parts.seq.snd_una);
        self.segments = (parts.seq.flight() / parts.congestion.window.mss()) as i64 - threshold as i64;
        loss.inspect(|loss| parts.congestion.on_loss(loss));
        *parts.burst = 0;
    }

    pub(super) fn on_duplicate(&mut self) {
        self.segments -= 1;
    }

    /// Takes a partial ACK: the retransmission and the segment after it have left the network. ns-2 takes no round-trip
    /// sample here, but ends the backoff. Returns true if the retransmission timer restarts.
    pub(super) fn on_partial_ack(&mut self, parts: Parts<'_>) -> bool {
        self.segments -= 2;
        parts.timer.rtt.reset_backoff();
        true
    }

    pub(super) fn leave(&mut self, parts: Parts<'_>) {
        self.segments -= 1;
        parts.scoreboard.clear();
    }

    pub(super) fn has_room(&self, window: &Window) -> bool {
        self.segments < (window.whole().min(window.clamp()) / window.mss()) as i64
    }

    pub(super) fn sent(&mut self) {
        self.segments += 1;
    }
}
