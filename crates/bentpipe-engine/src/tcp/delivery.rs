//! The delivery rate, measured at each ACK (draft-cheng-iccrg-delivery-rate-estimation-02).
//!
//! A sample is the data delivered between the sending of a segment and its acknowledgement, divided by the longer of
//! two times: that in which the data was sent and that in which it was acknowledged. So neither a burst of data nor a
//! burst of ACKs makes the sample too high. Bytes are counted where the draft counts packets.

use alloc::collections::BTreeMap;

use crate::units::{Duration, Rate, Time};

/// The state when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    sent: Time,
    /// When the first segment of its flight was sent.
    first_sent: Time,
    delivered: u64,
    delivered_time: Time,
    is_app_limited: bool,
    /// Bytes in flight, this segment included, and all bytes found lost so far.
    in_flight: u64,
    lost: u64,
}

/// The share of losses above which BBRv3 takes the amount in flight to be too high (draft-ietf-ccwg-bbr-06 §2.8).
pub(in crate::tcp) const LOSS_THRESH: f64 = 0.02;

/// A segment that an ACK shows to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct LostSample {
    /// Its length in bytes.
    pub(in crate::tcp) size: u64,
    /// Bytes in flight when it was sent, itself included.
    pub(in crate::tcp) tx_in_flight: u64,
    /// Bytes found lost since then, itself included.
    pub(in crate::tcp) lost: u64,
    /// The sender had nothing more to send at that time.
    pub(in crate::tcp) is_app_limited: bool,
}

impl LostSample {
    /// True if more than the tolerated share of the data in flight was lost (IsInflightTooHigh).
    pub(in crate::tcp) fn is_too_high(&self) -> bool {
        is_too_high(self.lost, self.tx_in_flight)
    }
}

fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost as f64 > in_flight as f64 * LOSS_THRESH
}

/// What an ACK shows about the delivery rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct RateSample {
    /// All bytes that had been delivered when the newest segment that the ACK delivers was sent.
    pub(in crate::tcp) prior_delivered: u64,
    /// Bytes delivered since then.
    pub(in crate::tcp) delivered: u64,
    /// The time in which they were delivered.
    pub(in crate::tcp) interval: Duration,
    /// The sender had nothing more to send when that segment was sent.
    pub(in crate::tcp) is_app_limited: bool,
    /// Bytes in flight when that segment was sent, itself included, and bytes found lost since.
    pub(in crate::tcp) tx_in_flight: u64,
    pub(in crate::tcp) lost: u64,
}

impl RateSample {
    /// True if more than the tolerated share of that data was lost since (IsInflightTooHigh).
    pub(in crate::tcp) fn is_too_high(&self) -> bool {
        is_too_high(self.lost, self.tx_in_flight)
    }

    /// The delivery rate in bytes per second.
    pub(in crate::tcp) fn rate(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

/// The delivery rate estimator of a connection.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct DeliveryRate {
    /// Stamps of the segments that are neither delivered nor retransmitted since, by first byte.
    stamps: BTreeMap<u64, Stamp>,
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// Samples of segments sent before this many bytes are delivered are limited by the application.
    app_limited_until: Option<u64>,
    /// The stamp of the newest segment that the current ACK delivers.
    newest: Option<Stamp>,
    /// The first segment with too many losses among those that the current ACK shows to be lost.
    too_high: Option<LostSample>,
    /// All bytes found lost.
    lost: u64,
}

impl DeliveryRate {
    /// Records that the segment beginning at `start` is sent, with `in_flight` bytes in flight. `is_first`: nothing
    /// else is outstanding.
    pub(in crate::tcp) fn on_sent(&mut self, start: u64, now: Time, in_flight: u64, is_first: bool) {
        if is_first {
            (self.first_sent, self.delivered_time) = (now, now);
        }
        let stamp = Stamp {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            is_app_limited: self.app_limited_until.is_some(),
            in_flight,
            lost: self.lost,
        };
        self.stamps.insert(start, stamp);
    }

    /// Records that the segment beginning at `start`, which is sent now, ends at `end`. What it contains of other segments is no longer
    /// theirs.
    pub(in crate::tcp) fn on_joined(&mut self, start: u64, end: u64) {
        if let Some(&stamp) = self.stamps.get(&start) {
            self.stamps.range_mut(start + 1..end).for_each(|(_, other)| *other = stamp);
        }
    }

    /// Records that `bytes` from `start` on have arrived.
    pub(in crate::tcp) fn on_delivered(&mut self, start: u64, bytes: u64, now: Time) {
        self.delivered += bytes;
        self.delivered_time = now;
        let Some(stamp) = self.stamps.remove(&start) else { return };
        let is_newer = |known: Stamp| (stamp.delivered, stamp.sent) >= (known.delivered, known.sent);
        if self.newest.is_none_or(is_newer) {
            self.newest = Some(stamp);
            self.first_sent = stamp.sent;
        }
    }

    /// Records that `bytes` have arrived a second time.
    pub(in crate::tcp) fn on_repeated(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Records that `bytes` from `start` on are found lost.
    pub(in crate::tcp) fn on_lost(&mut self, start: u64, bytes: u64) {
        self.lost += bytes;
        let Some(stamp) = self.stamps.get(&start) else { return };
        let lost = LostSample {
            size: bytes,
            tx_in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            is_app_limited: stamp.is_app_limited,
        };
        self.too_high = self.too_high.or(Some(lost).filter(LostSample::is_too_high));
    }

    /// Takes the first segment with too many losses among those that the current ACK shows to be lost.
    pub(in crate::tcp) fn take_too_high(&mut self) -> Option<LostSample> {
        self.too_high.take()
    }

    /// The sample of the ACK just processed. `None` if it delivered nothing, or implausibly fast: in less than
    /// `min_rtt`.
    pub(in crate::tcp) fn sample(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let stamp = self.newest.take()?;
        let sending = stamp.sent.saturating_since(stamp.first_sent);
        let interval = sending.max(self.delivered_time.saturating_since(stamp.delivered_time));
        if interval == Duration::ZERO || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        Some(RateSample {
            prior_delivered: stamp.delivered,
            delivered: self.delivered - stamp.delivered,
            interval,
            is_app_limited: stamp.is_app_limited,
            tx_in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
        })
    }

    /// All bytes delivered.
    pub(in crate::tcp) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Records that the sender could send more but has nothing to send; `pipe` bytes are in flight.
    pub(in crate::tcp) fn limited_by_application(&mut self, pipe: u64) {
        self.app_limited_until = Some((self.delivered + pipe).max(1));
    }

    /// True if what is sent now is limited by the application.
    pub(in crate::tcp) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Forgets everything before `una`, which is acknowledged.
    pub(in crate::tcp) fn advance(&mut self, una: u64) {
        while self.stamps.first_key_value().is_some_and(|(&start, _)| start < una) {
            self.stamps.pop_first();
        }
    }

    /// Approximate heap memory in bytes.
    pub(in crate::tcp) fn memory(&self) -> usize {
        self.stamps.len() * (size_of::<u64>() + size_of::<Stamp>())
    }
}

/// Bytes per second as a rate, at least one bit per second.
pub(in crate::tcp) fn rate_of(bytes_per_second: f64) -> Rate {
    Rate::from_bits_per_second(((bytes_per_second * 8.0) as u64).max(1)).expect("it is not zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Segments of 1000 bytes leave every 10 ms and arrive every 20 ms, over a round trip of 100 ms. The sixth is sent
    /// at 50 ms, when nothing is acknowledged yet, and its ACK arrives at 200 ms: 6000 bytes in 200 ms, not in the 50
    /// ms in which they were sent.
    #[test]
    fn the_slower_of_sending_and_acknowledging_counts() {
        let mut rate = DeliveryRate::default();
        (0..6).for_each(|n| rate.on_sent(n * 1000, at(n * 10), (n + 1) * 1000, n == 0));
        let mut last = None;
        for n in 0..6 {
            rate.on_delivered(n * 1000, 1000, at(100 + n * 20));
            last = rate.sample(None);
        }
        let sample = last.expect("it delivers");
        assert_eq!((sample.prior_delivered, sample.delivered, sample.interval), (0, 6000, Duration::from_millis(200)));
        assert_eq!(sample.rate(), 30_000.0);
    }

    /// The first ACK comes 90 ms late, at 190 ms, and the third segment leaves at 195 ms. Its ACK comes at 295 ms: 2000 bytes have been
    /// acknowledged in 105 ms, but sent in the 195 ms since the first segment.
    #[test]
    fn bunched_acks_make_no_rate() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(0, at(0), 1000, true);
        rate.on_sent(1000, at(100), 2000, false);
        rate.on_delivered(0, 1000, at(190));
        assert!(rate.sample(None).is_some());
        rate.on_sent(2000, at(195), 2000, false);
        rate.on_delivered(1000, 1000, at(200));
        assert!(rate.sample(None).is_some());
        rate.on_delivered(2000, 1000, at(295));
        let sample = rate.sample(None).expect("it delivers");
        assert_eq!((sample.delivered, sample.interval), (2000, Duration::from_millis(195)));
    }

    /// An ACK that arrives impossibly early gives no sample.
    #[test]
    fn an_impossible_rate_is_no_sample() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(0, at(0), 1000, true);
        rate.on_delivered(0, 1000, at(50));
        assert_eq!(rate.sample(Some(Duration::from_millis(100))), None);
        assert_eq!(rate.sample(None), None, "each ACK once");
    }

    /// Segments sent while the application has nothing more to send are marked until they are delivered.
    #[test]
    fn samples_of_an_idle_application_are_marked() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(0, at(0), 1000, true);
        rate.limited_by_application(1000);
        rate.on_sent(1000, at(10), 2000, false);
        rate.on_delivered(0, 1000, at(100));
        assert_eq!(rate.sample(None).map(|sample| sample.is_app_limited), Some(false));
        assert!(rate.is_app_limited(), "until more is delivered than was in flight");
        rate.on_delivered(1000, 1000, at(110));
        assert_eq!(rate.sample(None).map(|sample| sample.is_app_limited), Some(true));
        assert!(!rate.is_app_limited());
        rate.on_sent(2000, at(120), 1000, true);
        rate.on_delivered(2000, 1000, at(220));
        assert_eq!(rate.sample(None).map(|sample| sample.is_app_limited), Some(false));
    }

    /// A hundred segments of 1000 bytes are sent at once; the 70th, 80th, 90th and 95th are lost. 1000 of 70 000 bytes
    /// are less than 2 %, 2000 of 80 000 are more. The first segment above the threshold decides. A later sample tells
    /// how much was lost since its own segment was sent.
    #[test]
    fn losses_are_seen_from_where_they_were_sent() {
        let mut rate = DeliveryRate::default();
        (0..100).for_each(|n| rate.on_sent(n * 1000, at(0), (n + 1) * 1000, n == 0));
        rate.on_lost(69_000, 1000);
        assert_eq!(rate.take_too_high(), None);
        [79_000, 89_000, 94_000].into_iter().for_each(|start| rate.on_lost(start, 1000));
        let first = rate.take_too_high().expect("more than 2 % are lost");
        assert_eq!((first.size, first.tx_in_flight, first.lost), (1000, 80_000, 2000));
        assert_eq!(rate.take_too_high(), None);
        rate.on_delivered(99_000, 1000, at(100));
        let sample = rate.sample(None).expect("it delivers");
        assert_eq!((sample.tx_in_flight, sample.lost, sample.is_too_high()), (100_000, 4000, true));
    }
}
