//! Tahoe: after a loss the window is one segment, and everything from the loss on is retransmitted (Jacobson
//! 1988).

use super::Parts;
use crate::tcp::loss::LossReport;

/// Duplicate ACKs mean a loss.
pub(super) fn enter(parts: Parts<'_>, loss: &LossReport) {
    parts.congestion.on_loss(loss);
    parts.congestion.restart(1);
    parts.seq.snd_nxt = parts.seq.snd_una;
}
