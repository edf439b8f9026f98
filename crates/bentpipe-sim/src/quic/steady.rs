//! A window that random losses do not change.
//!
//! For paths whose losses say little about congestion. A round ends when a packet sent in the next one is acknowledged.
//! Each round is judged as a whole:
//!
//! - If more than 2 % of its bytes and more than three packets were lost, the window shrinks to 0.7 of its size. Both
//!   values are BBRv3's (draft-ietf-ccwg-bbr, BBRLossThresh and BBRBeta).
//! - If no queue was seen, the window grows by an eighth, provided that it limited the sender.
//! - If a queue was seen, the window stays.
//!
//! A queue is seen if even the minimum round trip of the round is both a quarter and 20 ms above the connection's
//! minimum.
//!
//! Without an initial window, it begins with ten packets and doubles each round trip until a queue is seen within a
//! round. It is then halved, because it has doubled since the packets that saw the queue were sent. A configured initial window is used
//! unchanged: it is known from an earlier connection. After persistent congestion (RFC 9002 §7.6) the window doubles
//! from its minimum.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Initial window in packets if none is configured (RFC 9002 §7.2).
const INITIAL_PACKETS: u64 = 10;
/// Minimum window, in packets: BBR's.
const MIN_PACKETS: u64 = 4;
/// Number of packets that may be lost in a round, however few it has.
const SPARE_PACKETS: u64 = 3;
/// Number of batches of ACKs after which the round trips of a round count: HyStart's eight samples (RFC 9406).
const ENOUGH: u32 = 8;
/// Minimum delay that counts as a queue: moving links vary by this much without one.
const MIN_QUEUE: Duration = Duration::from_millis(20);

/// Creates controls.
pub(super) struct SteadyConfig {
    pub(super) initial: Option<u64>,
}

impl ControllerFactory for SteadyConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Steady::new(self.initial, current_mtu.into(), now))
    }
}

/// The state of a round.
#[derive(Clone, Copy)]
struct Round {
    /// The round ends when a packet with a greater number is acknowledged.
    end: u64,
    acked: u64,
    lost: u64,
    /// Its minimum round trip, and the number of its batches of ACKs.
    min_rtt: Duration,
    batches: u32,
    /// True if there was a time when the window did not limit the sender.
    had_room: bool,
}

impl Round {
    fn until(end: u64) -> Round {
        Round { end, acked: 0, lost: 0, min_rtt: Duration::MAX, batches: 0, had_room: false }
    }
}

#[derive(Clone)]
struct Steady {
    /// The window in bytes.
    window: u64,
    initial_window: u64,
    mtu: u64,
    /// True while the window doubles: until a queue is seen or a round shrinks it, if no initial window was configured or
    /// after persistent congestion.
    doubles: bool,
    /// The minimum round trip.
    min_rtt: Duration,
    round: Round,
    /// For the packets that the current ACK acknowledges: their bytes, and when the newest of them was sent.
    batch: (u64, Instant),
    /// The number of the last packet sent.
    sent: u64,
}

impl Steady {
    fn new(initial: Option<u64>, mtu: u64, now: Instant) -> Steady {
        let initial_window = initial.unwrap_or(INITIAL_PACKETS * mtu);
        Steady {
            window: initial_window,
            initial_window,
            mtu,
            doubles: initial.is_none(),
            min_rtt: Duration::MAX,
            round: Round::until(0),
            batch: (0, now),
            sent: 0,
        }
    }

    /// Takes a packet of the batch.
    fn acknowledge(&mut self, sent: Instant, bytes: u64) {
        let (so_far, newest) = self.batch;
        self.batch = (so_far + bytes, if so_far == 0 { sent } else { newest.max(sent) });
    }

    fn set(&mut self, window: u64) {
        self.window = window.max(MIN_PACKETS * self.mtu);
    }

    fn sees_queue(&self) -> bool {
        self.round.min_rtt > self.min_rtt + MIN_QUEUE.max(self.min_rtt / 4)
    }

    fn end_round(&mut self) {
        let Round { acked, lost, had_room, .. } = self.round;
        if lost * 50 > acked + lost && lost > SPARE_PACKETS * self.mtu {
            self.doubles = false;
            self.set(self.window * 7 / 10);
        } else if !self.doubles && !had_room && !self.sees_queue() {
            self.set(self.window + self.window / 8);
        }
        self.round = Round::until(self.sent);
    }
}

impl Controller for Steady {
    fn on_sent(&mut self, _: Instant, _: u64, last_packet_number: u64) {
        self.sent = last_packet_number;
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        self.acknowledge(sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, _: u64, app_limited: bool, largest: Option<u64>) {
        let (bytes, newest) = std::mem::replace(&mut self.batch, (0, now));
        if bytes == 0 {
            return;
        }
        let round_trip = now.saturating_duration_since(newest);
        if self.min_rtt == Duration::MAX {
            // Everything sent before the first ACK forms one round.
            self.round = Round::until(self.sent);
        }
        self.min_rtt = self.min_rtt.min(round_trip);
        self.round.min_rtt = self.round.min_rtt.min(round_trip);
        self.round.acked += bytes;
        self.round.batches += 1;
        self.round.had_room |= app_limited;
        if self.doubles {
            if self.round.batches >= ENOUGH && self.sees_queue() {
                self.doubles = false;
                self.set(self.window / 2);
            } else if !app_limited {
                self.set(self.window + bytes);
            }
        }
        if largest.is_some_and(|largest| largest > self.round.end) {
            self.end_round();
        }
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, is_persistent: bool, lost_bytes: u64) {
        self.round.lost += lost_bytes;
        if is_persistent {
            self.set(0);
            self.doubles = true;
            // The losses have had their effect: at the end of their round they would end the doubling at once.
            self.round = Round::until(self.sent);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.set(self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1000;

    /// The window in packets after a round, for a control with a window of `packets`, if the round trips were 600 ms
    /// plus `queue`.
    fn after(packets: u64, queue: u64, lost: u64) -> u64 {
        let mut control = Steady::new(Some(packets * MTU), MTU, Instant::now());
        control.min_rtt = Duration::from_millis(600);
        let (min_rtt, acked) = (control.min_rtt + Duration::from_millis(queue), (packets - lost) * MTU);
        control.round = Round { acked, lost: lost * MTU, min_rtt, ..control.round };
        control.end_round();
        control.window / MTU
    }

    #[test]
    fn random_losses_change_nothing() {
        // A queue of 151 ms is more than a quarter of 600: no growth. 20 of 1000 is 2 %; 21 is more.
        assert_eq!([after(1000, 151, 10), after(1000, 151, 20), after(1000, 151, 21)], [1000, 1000, 700]);
        // Without a queue, it grows by an eighth.
        assert_eq!(after(1000, 149, 10), 1125);
        // With few packets, three may be lost.
        assert_eq!([after(20, 151, 3), after(20, 151, 4)], [20, 14]);
    }

    #[test]
    fn it_doubles_until_a_queue_is_seen() {
        let mut now = Instant::now();
        let mut control = Steady::new(None, MTU, now);
        let mut number = 0;
        let mut windows = Vec::new();
        for queue in [0, 0, 0, 151, 151] {
            let (packets, sent, first) = (control.window / MTU, now, number);
            number += packets;
            now += Duration::from_millis(600 + queue);
            for batch in 1..=10 {
                let so_far = |batch| packets * batch / 10;
                control.acknowledge(sent, (so_far(batch) - so_far(batch - 1)) * MTU);
                control.on_end_acks(now, 0, false, Some(first + so_far(batch)));
                // The next window begins to leave.
                control.on_sent(now, MTU, number + 1);
            }
            windows.push(control.window / MTU);
        }
        // The fourth window's first packet has left with the first batch of the third's ACKs, so its round begins with
        // the second batch of its own. The eighth batch after that sees the queue: half of 80 + 9 x 8 packets remains.
        assert_eq!(windows, [20, 40, 80, 76, 76]);
    }

    #[test]
    fn four_packets_are_the_minimum() {
        let now = Instant::now();
        let mut control = Steady::new(Some(5 * MTU), MTU, now);
        control.on_congestion_event(now, now, true, 5 * MTU);
        assert_eq!(control.window, 4 * MTU);
    }

    /// A control with 100 packets that knows a round trip of this many milliseconds.
    fn known(initial: Option<u64>, min_rtt: u64, now: Instant) -> Steady {
        let mut control = Steady::new(initial, MTU, now);
        control.min_rtt = Duration::from_millis(min_rtt);
        control.window = 100 * MTU;
        control
    }

    #[test]
    fn losses_end_the_doubling() {
        let mut control = known(None, 600, Instant::now());
        control.round = Round { acked: 90 * MTU, lost: 10 * MTU, min_rtt: control.min_rtt, ..control.round };
        control.end_round();
        assert_eq!((control.window, control.doubles), (70 * MTU, false));
        // Of a persistent congestion nothing is left but the minimum, from which it doubles again.
        let now = Instant::now();
        control.on_congestion_event(now, now, true, 70 * MTU);
        assert_eq!((control.window, control.doubles), (4 * MTU, true));
        // The minimum is one of packets, also if these become longer.
        control.on_mtu_update(1500);
        assert_eq!(control.window, 6000);
    }

    /// The losses that were a persistent congestion do not end the doubling: rounds without any follow, from four packets on.
    #[test]
    fn it_doubles_after_persistent_congestion() {
        let start = Instant::now();
        let mut control = known(Some(100 * MTU), 600, start);
        (control.round.end, control.sent) = (99, 120);
        // The ACK of a probe shows that all packets before it were lost.
        control.acknowledge(start, MTU);
        control.on_end_acks(start + Duration::from_millis(600), 0, false, Some(120));
        control.on_congestion_event(start, start, true, 100 * MTU);
        let (mut now, mut windows) = (start, Vec::new());
        for _ in 0..4 {
            let (first, packets, sent) = (control.sent, control.window / MTU, now);
            control.on_sent(now, packets * MTU, first + packets);
            now += Duration::from_millis(600);
            for number in first + 1..=first + packets {
                control.acknowledge(sent, MTU);
                control.on_end_acks(now, 0, false, Some(number));
            }
            windows.push(control.window / MTU);
        }
        assert_eq!((windows, control.doubles), (vec![8, 16, 32, 64], true));
    }

    /// On a path of 40 ms a quarter is 10 ms, and less than 20 ms are no queue.
    #[test]
    fn short_paths_need_twenty_milliseconds() {
        let grows = |queue: u64| {
            let mut control = known(Some(100 * MTU), 40, Instant::now());
            control.round = Round { acked: 100 * MTU, min_rtt: Duration::from_millis(40 + queue), ..control.round };
            control.end_round();
            control.window > 100 * MTU
        };
        assert!(grows(15) && grows(20) && !grows(21));
    }

    /// Batches of ACKs in a round that ends with packet 5: the window grows at its end, unless it was not used at some time.
    #[test]
    fn a_window_that_limits_nothing_does_not_grow() {
        let start = Instant::now();
        let now = start + Duration::from_millis(600);
        for (limited, windows) in
            [([false, false], [100, 112]), ([true, false], [100, 100]), ([false, true], [100, 100])]
        {
            let mut control = known(Some(100 * MTU), 600, start);
            (control.round.end, control.sent) = (5, 9);
            let mut found = [0; 2];
            for (n, (app_limited, largest)) in limited.into_iter().zip([5, 6]).enumerate() {
                control.acknowledge(start, MTU);
                control.on_end_acks(now, 0, app_limited, Some(largest));
                found[n] = control.window / MTU;
            }
            assert_eq!(found, windows, "{limited:?}");
            assert_eq!((control.round.end, control.round.acked), (9, 0));
        }
        // While it doubles, only a window that limits grows.
        let mut control = known(None, 600, start);
        control.round.end = 5;
        for (app_limited, window) in [(true, 100), (false, 101)] {
            control.acknowledge(start, MTU);
            control.on_end_acks(now, 0, app_limited, Some(1));
            assert_eq!(control.window / MTU, window);
        }
    }

    /// The newest packet of a batch gives its round trip, in whatever order they are acknowledged; a batch without packets gives none.
    #[test]
    fn the_newest_packet_is_measured() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut control = Steady::new(None, MTU, start);
        control.on_end_acks(at(5), 0, false, None);
        assert_eq!((control.min_rtt, control.round.batches), (Duration::MAX, 0));
        [100, 300, 200].into_iter().for_each(|sent| control.acknowledge(at(sent), MTU));
        control.on_end_acks(at(1000), 0, false, None);
        assert_eq!((control.min_rtt, control.round.batches), (Duration::from_millis(700), 1));
    }
}
