//! A second transfer to the same host starts from what the first one learnt (RFC 9040): no overshoot of slow start.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Duration;
use bentpipe_sim::{RunResult, run};
use bentpipe_study::scenario::Scenario;

use crate::worlds::parse;

/// Two transfers over one link, the second from `start` on.
fn transfers(tcp: &str, link: &str, bytes: &str, start: &str) -> RunResult {
    let text = format!(
        r#"
name = "two transfers"
description = "one after the other"
time_limit = "300 s"

[tcp]
{tcp}

[[links]]
name = "sat"
between = ["A", "B"]
{link}

[[flows]]
name = "first"
from = "A"
to = "B"
bytes = "{bytes}"

[[flows]]
name = "second"
from = "A"
to = "B"
bytes = "{bytes}"
start = "{start}"
"#
    );
    let scenario = parse(&text);
    let result = run(&scenario, 1, &mut NoProbe).expect("connected");
    assert!(result.flows.iter().all(|flow| flow.received_at.is_some()));
    result
}

fn drops_of_the_second_transfer(sharing: &str) -> u64 {
    let tcp = format!("profile = \"rfc\"\nvariant = \"sack\"\ntcb_sharing = \"{sharing}\"");
    let link = "rate = \"2 Mbit/s\"\ndelay = \"255 ms\"\nforward.queue = \"20 packets\"";
    transfers(&tcp, link, "1 MB", "100 s").flows[1].stats.retransmits
}

#[test]
fn the_threshold_is_shared() {
    let alone = drops_of_the_second_transfer("off");
    let shared = drops_of_the_second_transfer("ssthresh");
    // The bandwidth-delay product is 87 packets and the queue 20. A window that grows by half per round trip overshoots by a large part of
    // the queue.
    assert!(alone >= 10, "slow start overshoots: {alone}");
    assert!(5 * shared < alone, "{shared} after sharing, {alone} without");
}

/// Twice 3 MB over GEO, with a receive window that does not have to grow. The first transfer is in slow start for six round trips; the
/// second jumps to half of what the first one used after the first of them (RFC 9959).
#[test]
fn the_second_transfer_resumes() {
    let times = |sharing: &str| {
        let tcp = format!("profile = \"linux\"\nfirst_window = \"off\"\ntcb_sharing = \"{sharing}\"");
        let link = "rate = \"20 Mbit/s\"\ndelay = \"300 ms\"\nqueue = \"600 ms\"";
        let result = transfers(&tcp, link, "3 MB", "60 s");
        let took = |n: usize| result.flows[n].received_at.expect("it ends").saturating_since(result.flows[n].start);
        (took(0), took(1))
    };
    let ((first, again), (same, resumed)) = (times("off"), times("resume"));
    assert_eq!((first, first), (same, again), "the first one knows nothing, and without sharing both are alike");
    // At least the two round trips in which slow start would have grown from a quarter to the half.
    assert!(resumed + Duration::from_millis(1200) < again, "{resumed:?} instead of {again:?}");
}

/// What the first transfer has measured is worth less with time: after its lifetime (RFC 9959 §4.3.1) the second transfer takes as long as
/// without it, to the nanosecond. So it does if the stack says that the path is another one before the initial window is acknowledged
/// (§3.2), and if its packets leave by another link (§2.2).
#[test]
fn a_measurement_that_does_not_apply_is_not_used() {
    let took = |sharing: &str, flow: &str| {
        let text = format!(
            r#"
name = "two transfers"
time_limit = "300 s"
[tcp]
profile = "linux"
first_window = "off"
{sharing}
[[links]]
name = "sat"
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "300 ms"
queue = "600 ms"
[[links]]
name = "other"
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "300 ms"
queue = "600 ms"
[[flows]]
name = "first"
from = "A"
to = "B"
route = ["sat"]
return_route = ["sat"]
bytes = "3 MB"
[[flows]]
name = "second"
from = "A"
to = "B"
return_route = ["sat"]
bytes = "3 MB"
start = "60 s"
{flow}
"#
        );
        let scenario = parse(&text);
        let result = run(&scenario, 1, &mut NoProbe).expect("connected");
        result.flows[1].received_at.expect("it ends").saturating_since(result.flows[1].start)
    };
    let same = "route = [\"sat\"]";
    let (resume, alone) = ("tcb_sharing = \"resume\"", took("", same));
    assert!(took(resume, same) + Duration::from_millis(1200) < alone);
    // The first transfer ends after some 6 s.
    assert_eq!(took(&format!("{resume}\nresume_lifetime = \"50 s\""), same), alone);
    assert!(took(&format!("{resume}\nresume_lifetime = \"58 s\""), same) < alone);
    assert_eq!(took(resume, &format!("{same}\npath_change = \"61 s\"")), alone);
    assert!(took(resume, &format!("{same}\npath_change = \"59 s\"")) < alone, "of before the transfer");
    assert!(took(resume, &format!("{same}\npath_change = \"61.5 s\"")) > took(resume, same), "a retreat");
    assert_eq!(took(resume, "route = [\"other\"]"), alone);
    // A bound of the jump: the initial window is as large, so nothing jumps.
    assert_eq!(took(&format!("{resume}\nmax_jump = \"10 kB\""), same), alone);
}

/// Four connections that start together after one has measured the path. RFC 9959 §3.2 lets one of them use it: the others are in slow
/// start. When all four jumped, they lost some 3000 segments.
#[test]
fn one_connection_alone_resumes() {
    let text = r#"
name = "four at once"
time_limit = "300 s"
[tcp]
profile = "rfc"
variant = "cubic"
tcb_sharing = "resume"
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
bytes = "40 MB"
[[flows]]
name = "again"
from = "A"
to = "B"
bytes = "200 kB"
start = "60 s"
count = 4
stagger = "10 ms"
"#;
    let scenario = parse(text);
    let result = run(&scenario, 1, &mut NoProbe).expect("connected");
    let took = |n: usize| result.flows[n].received_at.expect("it ends").saturating_since(result.flows[n].start);
    // Handshake, the initial window, and all the rest: three round trips, and half a one to arrive. Slow start needs two more.
    let times: Vec<_> = (1..=4).map(took).collect();
    assert!(times[0] < Duration::from_millis(2600), "{times:?}");
    assert!(times[1..].iter().all(|&time| time > times[0] + Duration::from_millis(1000)), "{times:?}");
}

/// A cache belongs to a host: a leg that begins at the node of a split has none, and says so instead of ignoring the key.
#[test]
fn a_split_has_no_cache() {
    let world = |tcp: &str| {
        let links = [("near", "\"A\", \"R\""), ("sat", "\"R\", \"B\"")].map(|(name, between)| {
            format!("[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n")
        });
        let flow = "[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 kB\"";
        let text =
            format!("name = \"legs\"\n{}{flow}\nsplit = [{{ at = \"R\", tcp = {{ {tcp} }} }}]\n", links.concat());
        Scenario::parse(&text, "legs.toml", &[]).map_err(|errors| errors.render(false))
    };
    assert!(world("").is_ok());
    let error = world("tcb_sharing = \"resume\"").expect_err("the leg would not use it");
    assert!(error.contains("connections from the node of a split share nothing"), "{error}");
}
