//! Senders that find their rate, alone and sharing a line.

use crate::link::{ChannelConfig as Channel, Distribution, Jitter, LossConfig};
use crate::slacp::RateControl;
use crate::slacp::rate_control::provisioned::tests::{Second, Sender, line, mean, run_all};
use crate::units::{Duration, Probability};

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
