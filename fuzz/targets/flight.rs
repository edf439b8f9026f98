//! Packets on their way between two ends.

use bentpipe_engine::units::Time;

/// A packet, and the end that it goes to.
pub(crate) struct Packet<C> {
    at: Time,
    /// Packets of one instant arrive in the order in which they were sent.
    order: u64,
    pub(crate) to: usize,
    pub(crate) cargo: C,
}

/// All that are on their way. There are few, so nothing is sorted.
pub(crate) struct Flight<C> {
    packets: Vec<Packet<C>>,
    sent: u64,
}

impl<C> Flight<C> {
    pub(crate) fn new() -> Flight<C> {
        Flight { packets: Vec::new(), sent: 0 }
    }

    /// Sends a packet that arrives at `at`.
    pub(crate) fn send(&mut self, at: Time, to: usize, cargo: C) {
        self.sent += 1;
        self.packets.push(Packet { at, order: self.sent, to, cargo });
    }

    /// When the next one arrives.
    pub(crate) fn next(&self) -> Option<Time> {
        self.packets.iter().map(|packet| packet.at).min()
    }

    /// The next of those that have arrived by `now`.
    pub(crate) fn arrived(&mut self, now: Time) -> Option<Packet<C>> {
        let due = (0..self.packets.len()).filter(|&i| self.packets[i].at <= now);
        let next = due.min_by_key(|&i| (self.packets[i].at, self.packets[i].order))?;
        Some(self.packets.swap_remove(next))
    }
}
