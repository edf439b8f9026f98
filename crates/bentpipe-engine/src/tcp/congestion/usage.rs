//! Whether the congestion window is in use, as Linux decides it (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`).
//!
//! It is decided when data leaves, not when it is acknowledged: once a flight has filled the window, all ACKs of what was sent by then open
//! it, though the application has nothing more to send and each ACK finds less in flight.

use super::Window;

/// How the last data that left has used the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// It has filled the window.
    was_full: bool,
    /// Maximum outstanding bytes, until `end` is acknowledged.
    peak: u64,
    end: u64,
    /// All data that had left when this was decided.
    sent: u64,
}

impl Usage {
    /// Takes an ACK; `window` is that of before, and `flight` the bytes outstanding before it. Returns true if the window was in use.
    #[inline(always)]
    pub(super) fn take(&mut self, window: &Window, flight: u64, snd_max: u64) -> bool {
        if snd_max != self.sent {
            // Data has left since the last ACK, and this was outstanding then.
            let una = snd_max.saturating_sub(flight);
            let is_full = flight + window.mss() > window.whole();
            if una >= self.end || is_full || (!self.was_full && flight > self.peak) {
                (self.was_full, self.peak, self.end) = (is_full, flight, snd_max);
            }
            self.sent = snd_max;
        }
        // Slow start doubles at least what was acknowledged.
        self.was_full || (window.in_slow_start() && window.whole() < 2 * self.peak)
    }
}
