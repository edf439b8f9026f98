//! The sender's shadow of its line: when what it hands down will have left.

use crate::units::{Duration, Rate, Time, TransmitClock};

/// A serializer of the provisioned rate that sends what it is handed, in order.
///
/// It is right as far as the connection has the rate to itself, which is what STP is for. A driver in real time asks it
/// the same question, so that timers there, too, do not run while segments wait in the socket's buffer.
#[derive(Clone, Debug)]
pub(super) struct Line {
    clock: TransmitClock,
    /// When everything handed down so far has left.
    free: Time,
}

impl Line {
    pub(super) const fn new(rate: Rate) -> Self {
        Line { clock: TransmitClock::new(rate), free: Time::ZERO }
    }

    /// When what is handed down now, after all before it, begins to leave.
    pub(super) fn begins(&self, now: Time) -> Time {
        self.free.max(now)
    }

    /// Takes `bytes`; the instant at which the last of them has left.
    pub(super) fn send(&mut self, now: Time, bytes: u32) -> Time {
        let transmission: Duration = self.clock.transmit(bytes);
        self.free = self.begins(now) + transmission;
        self.free
    }
}
