//! The pacer of `uplink`: keeps the packets of all connections together to one rate.

use crate::units::{Duration, Rate, Time, TransmitClock};

/// The normal maximum lateness of a loop. Up to this much unused time is made up for.
const CREDIT: Duration = Duration::from_millis(5);

/// When the line has room for the next packet.
#[derive(Clone, Debug)]
pub struct Pacer {
    line: TransmitClock,
    next: Time,
}

impl Pacer {
    /// A pacer with room at once.
    pub fn new(rate: Rate) -> Self {
        Pacer { line: TransmitClock::new(rate), next: Time::ZERO }
    }

    /// The instant from which on the line has room.
    pub fn next(&self) -> Time {
        self.next
    }

    /// True if it has room at `now`.
    pub fn has_room(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Records that a packet of this many bytes was sent, whether there was room or not.
    pub fn sent(&mut self, now: Time, bytes: usize) {
        let earliest = now.saturating_sub(CREDIT);
        self.next = self.next.max(earliest) + self.line.transmit(bytes as u32);
    }

    /// Lets no packet go before `until`.
    pub fn pause(&mut self, until: Time) {
        self.next = self.next.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_their_time_apart_and_little_is_made_up_for() {
        // 1250 B at 10 Mbit/s take 1 ms.
        let mut pacer = Pacer::new(Rate::from_bits_per_second(10_000_000).expect("not zero"));
        let mut at = |millis: u64| {
            let now = Time::ZERO + Duration::from_millis(millis);
            let mut count = 0;
            while pacer.has_room(now) {
                pacer.sent(now, 1250);
                count += 1;
            }
            count
        };
        assert_eq!([at(0), at(1), at(1), at(2), at(5)], [1, 1, 0, 1, 3]);
        // After a pause, as many as 5 ms allow, plus the one that is due.
        assert_eq!(at(1000), 6);
        assert_eq!(at(1001), 1);
    }
}
