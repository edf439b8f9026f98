//! Tahoe: after a loss, the window is one segment and everything from the loss on is retransmitted (Jacobson 1988).

use super::Parts;
use crate::tcp::loss::LossReport;

/// Starts over, because duplicate ACKs indicate a loss; `None`: the threshold has been reduced for it.
pub(super) fn enter(parts: Parts<'_>, loss: Option<&LossReport>) {
    loss.inspect(|loss| parts.congestion.on_loss(loss));
    parts.congestion.restart(1);
    parts.seq.snd_nxt = parts.seq.snd_una;
}
