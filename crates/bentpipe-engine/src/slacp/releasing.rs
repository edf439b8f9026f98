//! When packets that waited for an earlier one are delivered.

use alloc::collections::VecDeque;

use super::config::Release;
use crate::units::{Duration, Time, TransmitClock};

/// A packet whose turn has come: its channel and number.
pub(super) type Ready = (u8, u64);

/// Number of late round-trip samples after which HyStart ends slow start. Fewer consecutive losses than this cannot
/// produce them, so they are not treated as an outage. It is also the number of groups per round trip.
//= RFC 9406 §4.2: N_RTT_SAMPLE = 8
const SAMPLES: u64 = 8;

/// The packets that wait to be released.
#[derive(Clone, Debug)]
pub(super) struct Releasing {
    release: Release,
    pace: Option<TransmitClock>,
    waiting: VecDeque<Ready>,
    /// When the next packet may pass.
    free: Time,
    /// Until when retransmissions of packets lost in an outage may arrive.
    catching_up: Time,
    /// When the last frame arrived.
    heard: Time,
}

impl Releasing {
    pub(super) fn new(release: Release) -> Self {
        let pace = if let Release::Paced(rate) = release { Some(TransmitClock::new(rate)) } else { None };
        Releasing {
            release,
            pace,
            waiting: VecDeque::new(),
            free: Time::ZERO,
            catching_up: Time::ZERO,
            heard: Time::ZERO,
        }
    }

    /// True if a packet may have to wait although its predecessor is done.
    pub(super) fn may_wait(&self) -> bool {
        self.release != Release::AtOnce
    }

    /// True if that wait has no upper bound.
    pub(super) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Records that a frame arrived and the `missing` frames before it did not, over a line with this round trip.
    pub(super) fn heard(&mut self, now: Time, missing: u64, round_trip: Duration) {
        if missing > SAMPLES && self.release == Release::Grouped {
            // Retransmissions arrive after a round trip and take as long as the silence did. A quarter more allows for
            // reports and for frames that go first. A sender without an answer stops after about two round trips.
            let silence = now.saturating_since(self.heard).min(round_trip.saturating_mul(2));
            let again = silence + round_trip.saturating_mul(5).div_floor(4);
            self.catching_up = self.catching_up.max(now + again);
        }
        self.heard = now;
    }

    /// True while packets that could pass on arrival wait for their group.
    pub(super) fn groups(&self, now: Time) -> bool {
        now < self.catching_up
    }

    /// True while a packet freed by another one waits for its release time.
    pub(super) fn holds(&self, now: Time) -> bool {
        self.pace.is_some() || self.groups(now)
    }

    /// Makes a packet wait.
    pub(super) fn wait(&mut self, now: Time, ready: Ready, round_trip: Duration) {
        if self.pace.is_none() && self.waiting.is_empty() {
            self.free = now + round_trip.div_floor(SAMPLES);
        }
        self.waiting.push_back(ready);
    }

    /// Queues a packet that was freed by a delivered one. It goes to the end, since flows take turns.
    pub(super) fn follow(&mut self, ready: Ready) {
        self.waiting.push_back(ready);
    }

    /// When the next packet may pass.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.free)
    }

    /// The next packet, if it may pass now; `length` returns a packet's length.
    pub(super) fn pop(&mut self, now: Time, length: impl FnOnce(Ready) -> u32) -> Option<Ready> {
        let ready = *self.waiting.front().filter(|_| self.free <= now)?;
        self.waiting.pop_front();
        if let Some(pace) = &mut self.pace {
            self.free = now + pace.transmit(length(ready));
        }
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_after_a_pause_is_no_longer_for_it() {
        let (round_trip, at) = (Duration::from_millis(600), |ms| Time::ZERO + Duration::from_millis(ms));
        let mut releasing = Releasing::new(Release::Grouped);
        releasing.heard(at(0), 0, round_trip);
        releasing.heard(at(500), SAMPLES, round_trip);
        assert!(!releasing.groups(at(500)), "too few");
        releasing.heard(at(1000), SAMPLES + 1, round_trip);
        // 500 ms of silence, plus five quarters of a round trip.
        assert!(releasing.groups(at(2249)) && !releasing.groups(at(2250)));
        releasing.heard(at(60_000), 100, round_trip);
        assert!(releasing.groups(at(61_949)) && !releasing.groups(at(61_950)));
    }

    #[test]
    fn neither_a_short_outage_nor_another_packet_changes_when_a_group_passes() {
        let (round_trip, at) = (Duration::from_millis(600), |ms| Time::ZERO + Duration::from_millis(ms));
        let mut releasing = Releasing::new(Release::Grouped);
        releasing.heard(at(1200), 100, round_trip);
        releasing.heard(at(1300), SAMPLES + 1, round_trip);
        // 1200 ms of silence, plus five quarters of a round trip, after the first.
        assert!(releasing.groups(at(3149)) && !releasing.groups(at(3150)));
        releasing.wait(at(1300), (0, 1), round_trip);
        releasing.wait(at(1350), (0, 2), round_trip);
        assert_eq!(releasing.next(), Some(at(1375)));
    }
}
