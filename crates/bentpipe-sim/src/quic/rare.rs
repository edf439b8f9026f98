//! Rare ACKs from the start.
//!
//! draft-ietf-quic-ack-frequency lets a sender ask for fewer ACKs, but its frame can only be sent after the handshake,
//! which is a round trip after the first 0-RTT data. A receiver that knows the request from an earlier connection need
//! not wait for it (RFC 9000 §13.2 leaves it the choice). quinn has no setting for this, so here the host polls its
//! connection for packets less often.

use bentpipe_engine::units::{Duration, Time};

/// The datagrams that wait for an ACK at a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rare {
    every: u32,
    delay: Duration,
    /// Number of datagrams that have arrived since the connection was last polled, and when the first of them has
    /// waited long enough.
    waiting: u32,
    due: Time,
    /// True if something other than data has arrived.
    is_urgent: bool,
}

impl Rare {
    pub(super) fn new(every: u32, delay: Duration) -> Rare {
        Rare { every, delay, waiting: 0, due: Time::NEVER, is_urgent: false }
    }

    /// Records that a datagram has arrived. Handshake packets are answered at once.
    pub(super) fn received(&mut self, now: Time, datagram: &[u8]) {
        if self.waiting == 0 {
            self.due = now + self.delay;
        }
        self.waiting += 1;
        self.is_urgent |= !is_data(datagram);
    }

    /// Records that a timer of the connection has expired.
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// True if the connection must not be polled for packets yet.
    pub(super) fn waits(&self, now: Time) -> bool {
        self.waiting > 0 && self.waiting < self.every && now < self.due && !self.is_urgent
    }

    /// Records that the connection has been polled.
    pub(super) fn asked(&mut self) {
        *self = Rare::new(self.every, self.delay);
    }

    /// The latest time at which it must be polled.
    pub(super) fn due(&self) -> Time {
        self.due
    }
}

/// True if the first packet of a datagram has a short header or is a 0-RTT packet (RFC 9000 §17.2).
fn is_data(datagram: &[u8]) -> bool {
    const LONG: u8 = 0x80;
    const TYPE: u8 = 0x30;
    const ZERO_RTT: u8 = 0x10;
    datagram.first().is_some_and(|first| first & LONG == 0 || first & TYPE == ZERO_RTT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &[u8] = &[0x40];
    const ZERO_RTT: &[u8] = &[0xd0];
    const HANDSHAKE: &[u8] = &[0xe0];

    #[test]
    fn it_waits_for_a_number_or_a_time() {
        let mut rare = Rare::new(3, Duration::from_millis(10));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert!(!rare.waits(at(0)), "nothing has come");
        rare.received(at(1), SHORT);
        rare.received(at(2), ZERO_RTT);
        assert_eq!((rare.waits(at(10)), rare.waits(at(11)), rare.due()), (true, false, at(11)));
        rare.received(at(3), SHORT);
        assert!(!rare.waits(at(3)), "three have come");
        rare.asked();
        assert_eq!((rare.waits(at(3)), rare.due()), (false, Time::NEVER));
        rare.received(at(4), SHORT);
        assert!(rare.waits(at(4)));
        rare.received(at(4), HANDSHAKE);
        assert!(!rare.waits(at(4)), "the handshake does not wait");
        rare.asked();
        rare.received(at(5), SHORT);
        rare.hurry();
        assert!(!rare.waits(at(5)), "timers do not wait");
    }
}
