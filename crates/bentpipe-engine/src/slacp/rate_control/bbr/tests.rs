//! Senders that find their rate, alone and sharing a line.

use super::*;
use crate::link::{ChannelConfig as Channel, Distribution, Jitter, LossConfig};
use crate::slacp::RateControl;
use crate::slacp::rate_control::provisioned::tests::{Second, Sender, line, mean, run_all};
use crate::units::Probability;

fn shared(begins: u64) -> Sender {
    Sender { max_rate: 20_000_000, rate_control: RateControl::Shared, begins }
}

fn delivered(second: &Second) -> f64 {
    second.delivered
}

/// The line is full after as many doublings as it takes from ten packets per round trip, and stays so.
#[test]
fn an_empty_line_is_filled() {
    for (packets, min) in [(500, 9.5), (100, 8.5)] {
        let seen = run_all(&[shared(0)], &line(10_000_000, packets, 0.0), 60).swap_remove(0);
        assert!(mean(&seen[10..], delivered) > min, "{packets}: {seen:?}");
        assert!(mean(&seen[10..], |s| s.offered) < 10.4, "{packets}: {seen:?}");
    }
}

#[test]
fn losses_are_no_congestion() {
    for loss in [0.01, 0.05] {
        let seen = run_all(&[shared(0)], &line(10_000_000, 500, loss), 60).swap_remove(0);
        let max = 10.0 * (1.0 - loss);
        // It continues at the rate of delivery, and loses part of that again.
        assert!(mean(&seen[10..], delivered) > (1.0 - loss) * 0.97 * max, "{loss}: {seen:?}");
    }
    let mut there = line(10_000_000, 500, 0.0);
    let span = |from, to| Distribution::Uniform(Duration::from_millis(from), Duration::from_millis(to));
    there.channel = Channel::OnOff { gap: span(1000, 10_000), burst: span(100, 500) };
    there.bad = LossConfig { packet: Probability::ONE, bit: Probability::ZERO };
    let seen = run_all(&[shared(0)], &there, 120).swap_remove(0);
    // The line is down for a twentieth of the time.
    assert!(mean(&seen[10..], delivered) > 0.85 * 9.5, "{seen:?}");
}

/// The round trip is 600 ms on average, as configured, and varies from 300 ms to 900 ms, as over satellites in low orbit. Half of the
/// product of the average would not fill the line; one and a half of it are in flight.
#[test]
fn delays_that_vary_leave_the_line_full() {
    let mut there = line(10_000_000, 500, 0.0);
    there.delay = Duration::ZERO;
    there.jitter = Some(Jitter {
        delay: Distribution::Uniform(Duration::ZERO, Duration::from_millis(600)),
        correlation: Probability::ZERO,
        every: Duration::from_millis(150),
        reorder: false,
    });
    let seen = run_all(&[shared(0)], &there, 120).swap_remove(0);
    assert!(mean(&seen[20..], delivered) > 8.0, "{seen:?}");
}

/// Two senders that begin at different times share the line (Jain) and fill it.
#[test]
fn two_share() {
    for begins in [0, 20] {
        let seen = run_all(&[shared(0), shared(begins)], &line(10_000_000, 500, 0.0), 180);
        let rates: Vec<f64> = seen.iter().map(|seen| mean(&seen[60..], delivered)).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        assert!(sum > 9.5, "{rates:?}");
        let offered: f64 = seen.iter().map(|seen| mean(&seen[60..], |second| second.offered)).sum();
        assert!(offered < 1.01 * sum, "nothing is lost by it: {offered}");
        assert!(sum * sum / (2.0 * squares) > 0.9, "{rates:?}");
    }
}

/// When one sender ends, the other takes the freed capacity; it never exceeds its maximum rate.
#[test]
fn what_becomes_free_is_found() {
    let provisioned = Sender { max_rate: 5_000_000, rate_control: RateControl::Provisioned, begins: 0 };
    let seen = run_all(&[shared(0), provisioned], &line(10_000_000, 500, 0.0), 60);
    assert!(mean(&seen[0][20..], delivered) > 4.0, "{:?}", seen[0]);
    let bounded = Sender { max_rate: 4_000_000, ..shared(0) };
    let seen = run_all(&[bounded], &line(10_000_000, 500, 0.0), 30).swap_remove(0);
    assert!(seen.iter().all(|second| second.offered < 4.1) && mean(&seen[10..], delivered) > 3.9, "{seen:?}");
}

/// A sender at 8 Mbit/s at most, over a round trip of 1 s, and its reports, one per second.
struct Reports {
    bbr: Bbr,
    second: u64,
}

impl Reports {
    fn new() -> Self {
        let rate = Rate::from_bits_per_second(8_000_000).expect("not zero");
        let mut reports = Reports { bbr: Bbr::new(rate, Duration::from_secs(1)), second: 0 };
        reports.round(0, 0);
        reports
    }

    /// A report of `arrived` kilobytes in a round, with so many bytes in flight: the rate from now on, kbit/s.
    fn round(&mut self, arrived: u64, in_flight: u64) -> u64 {
        let newest = 100 * self.second;
        let sample = RateSample { arrived: 1000 * arrived, lost: 0, rtt: None, newest, next: newest + 100, in_flight };
        self.bbr.on_report(Time::ZERO + Duration::from_secs(self.second), sample);
        self.second += 1;
        self.bbr.rate().bits_per_second() / 1000
    }

    /// The same for a round in which the sender had less to send than it might.
    fn idle_round(&mut self, arrived: u64, in_flight: u64) -> u64 {
        self.bbr.on_idle(100 * self.second);
        self.round(arrived, in_flight)
    }
}

/// Ten packets per round trip at first, 120 kbit/s. The rate is twice the bandwidth until three rounds have not brought a quarter
/// more; then half of it until 9/8 of a product are in flight, here 67,500 bytes.
#[test]
fn rounds_by_hand() {
    let mut reports = Reports::new();
    assert_eq!((reports.bbr.rate().bits_per_second(), reports.bbr.max_in_flight()), (240_000, 7 * 15_000 / 2 + 15_000));
    assert_eq!([30, 60].map(|arrived| reports.round(arrived, 0)), [480, 960]);
    // A sender that does not use the rate has not found the end of the line, and what it did not send is no lower bandwidth.
    assert_eq!([10; 8].map(|arrived| reports.idle_round(arrived, 0)), [960; 8]);
    assert_eq!([60, 60].map(|arrived| reports.round(arrived, 0)), [960, 960]);
    assert_eq!(reports.bbr.max_in_flight(), 7 * 60_000 / 2 + 15_000);
    assert_eq!([(60, 67_501), (60, 67_501), (60, 67_500)].map(|(kb, bytes)| reports.round(kb, bytes)), [240, 240, 480]);
    assert_eq!(reports.bbr.max_in_flight(), 3 * 60_000 / 2 + 15_000);
    // A probe each few rounds, of one round: a quarter faster. Then a quarter slower until the queue is gone, or for a round.
    let rates: Vec<u64> = (0..200).map(|_| reports.round(60, 67_501)).collect();
    let whole = rates.iter().rposition(|&rate| rate == 600).expect("some probe");
    let cruises = rates[..whole].split(|&rate| rate == 600).skip(1).map(|rest| match rest {
        [360, cruise @ ..] if cruise.iter().all(|&rate| rate == 480) => cruise.len(),
        _ => panic!("{rates:?}"),
    });
    let lengths: alloc::collections::BTreeSet<usize> = cruises.collect();
    assert!(lengths.iter().rev().take(4).eq(&[6, 5, 4, 3]), "2 to 5 more rounds after the first: {lengths:?}");
    // More than the bandwidth counts even if the sender was the limit. A lower bandwidth is believed after six rounds.
    let mut bandwidth = |idle, arrived| {
        let _ = if idle { reports.idle_round(arrived, 67_501) } else { reports.round(arrived, 67_501) };
        reports.bbr.bandwidth() / 1000
    };
    assert_eq!([(true, 70), (true, 60), (false, 30)].map(|(idle, kb)| bandwidth(idle, kb)), [560; 3]);
    assert_eq!([30; 6].map(|kb| bandwidth(false, kb)), [560, 560, 560, 560, 240, 240]);
}
