//! The sender's model of its line: computes when its packets will have left.

use crate::units::{Duration, Rate, Time, TransmitClock};

/// A serializer of the provisioned rate that sends packets in order.
///
/// It is accurate if the connection has the rate to itself, as STP intends. A real-time driver uses it too, so that
/// timers do not run while segments wait in the socket's buffer.
#[derive(Clone, Debug)]
pub(super) struct Line {
    clock: TransmitClock,
    /// When all packets so far will have left.
    free: Time,
}

impl Line {
    pub(super) const fn new(rate: Rate) -> Self {
        Line { clock: TransmitClock::new(rate), free: Time::ZERO }
    }

    /// When a packet handed over now, after all earlier ones, starts to leave.
    pub(super) fn begins(&self, now: Time) -> Time {
        self.free.max(now)
    }

    /// Adds `bytes`. Returns when the last of them will have left.
    pub(super) fn send(&mut self, now: Time, bytes: u32) -> Time {
        let transmission: Duration = self.clock.transmit(bytes);
        self.free = self.begins(now) + transmission;
        self.free
    }
}
