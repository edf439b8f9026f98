//! A second transfer to the same host starts from what the first one learnt (RFC 9040): no overshoot of slow start.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Duration;
use bentpipe_sim::run;
use bentpipe_study::scenario::Scenario;

fn drops_of_the_second_transfer(sharing: &str) -> u64 {
    let text = format!(
        r#"
name = "two transfers"
description = "one after the other"
time_limit = "300 s"

[tcp]
profile = "rfc"
variant = "sack"
tcb_sharing = "{sharing}"

[[links]]
name = "sat"
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "255 ms"
forward.queue = "20 packets"

[[flows]]
name = "first"
from = "A"
to = "B"
bytes = "1 MB"

[[flows]]
name = "second"
from = "A"
to = "B"
bytes = "1 MB"
start = "100 s"
"#
    );
    let scenario = Scenario::parse(&text, "two.toml", &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let result = run(&scenario, 1, &mut NoProbe).expect("connected");
    assert!(result.flows.iter().all(|flow| flow.received_at.is_some()));
    result.flows[1].stats.retransmits
}

#[test]
fn the_threshold_is_shared() {
    let alone = drops_of_the_second_transfer("off");
    let shared = drops_of_the_second_transfer("ssthresh");
    // BDP 87 packets, queue 20: a window that grows by half per round trip overshoots by a good part of the queue.
    assert!(alone >= 10, "slow start overshoots: {alone}");
    assert!(5 * shared < alone, "{shared} after sharing, {alone} without");
}

/// Twice 3 MB over GEO, with a receive window that does not have to grow. The first transfer is in slow start for six round trips; the second
/// jumps to half of what the first one used after the first of them (RFC 9959).
#[test]
fn the_second_transfer_resumes() {
    let times = |sharing: &str| {
        let text = format!(
            r#"
name = "two transfers"
time_limit = "300 s"
[tcp]
profile = "linux"
first_window = "off"
tcb_sharing = "{sharing}"
[[links]]
name = "sat"
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "300 ms"
queue = "600 ms"
[[flows]]
name = "first"
from = "A"
to = "B"
bytes = "3 MB"
[[flows]]
name = "second"
from = "A"
to = "B"
bytes = "3 MB"
start = "60 s"
"#
        );
        let scenario = Scenario::parse(&text, "two.toml", &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let result = run(&scenario, 1, &mut NoProbe).expect("connected");
        let took = |n: usize| result.flows[n].received_at.expect("it ends").saturating_since(result.flows[n].start);
        (took(0), took(1))
    };
    let ((first, again), (same, resumed)) = (times("off"), times("resume"));
    assert_eq!((first, first), (same, again), "the first one knows nothing, and without sharing both are alike");
    // At least the two round trips in which slow start would have grown from a quarter to the half.
    assert!(resumed + Duration::from_millis(1200) < again, "{resumed:?} instead of {again:?}");
}
