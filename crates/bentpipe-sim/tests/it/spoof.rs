//! A gateway that terminates TCP and forwards over a link with ARQ: complete, within its buffer, and as fast as the buffer allows.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Time;
use bentpipe_sim::{RunResult, Timers, run, run_with};
use bentpipe_study::scenario::Scenario;

fn scenario(flows: &str, buffer: u32, loss: &str, limit: &str) -> Scenario {
    let text = format!(
        r#"
name = "spoof"
time_limit = "{limit}"
[tcp]
profile = "ns2"
variant = "reno"
mss = "460 B"
[[links]]
name = "terrestrial"
between = ["source", "gateway"]
rate = "100 Mbit/s"
delay = "50 ms"
[[links]]
name = "satellite"
between = ["gateway", "destination"]
delay = "125 ms"
forward.rate = "1 Mbit/s"
forward.loss = "{loss}"
backward.rate = "unlimited"
[[layers]]
name = "arq"
over = "satellite"
report_interval = "0 s"
weightless = true
hears_damage = true
channels = [{{ name = "all", transmissions = "unlimited", queue = "unlimited" }}]
[[flows]]
name = "data"
from = "source"
to = "destination"
spoof = {{ at = "gateway", buffer = "{buffer} packets" }}
{flows}
"#
    );
    Scenario::parse(&text, "spoof.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn runs(scenario: &Scenario) -> RunResult {
    run(scenario, 1, &mut NoProbe).expect("it runs")
}

#[test]
fn a_transfer_arrives_whole_and_the_source_is_done_before() {
    let result = runs(&scenario("bytes = \"1000 segments\"", 20, "30 %", "300 s"));
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, flow.refused, flow.stats.timeouts), (460_000, 0, 0));
    let (acked, received) = (flow.acked_at.expect("acknowledged"), flow.received_at.expect("received"));
    assert!(acked < received, "the gateway acknowledges what is still to cross: {acked:?} {received:?}");
    assert!(!result.timed_out);
    // As often as the satellite link loses a packet, and never over the terrestrial part.
    assert_eq!(flow.stats.retransmits, 0);
    let layer = &result.layers[0][0].channels[0];
    assert_eq!((layer.packets, layer.delivered + result.layers[0][1].channels[0].delivered), (1000, 1000));
    assert!(layer.resent > 300, "{layer:?}");
}

/// An application that writes at a rate writes as much as it says, and all of it crosses the satellite.
#[test]
fn what_an_application_writes_at_a_rate_arrives_whole() {
    let paced = "paced = { rate = \"500 kbit/s\", bytes = \"1000 segments\" }";
    let result = runs(&scenario(paced, 20, "30 %", "300 s"));
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, result.timed_out), (460_000, false));
    assert!(flow.received_at > flow.acked_at, "{flow:?}");
}

#[test]
fn the_buffer_bounds_the_throughput() {
    // Eq. 52 without the step from B-1 to B: (B-1) (1-p)/(T2 + 2 T1 (1-p)), 49 packets * 0.9 / 0.43 s. What the model
    // leaves out is that bursts come and go; a few percent.
    let result = runs(&scenario("greedy = true", 50, "10 %", "400 s"));
    let packets = result.flows[0].delivered as f64 / 460.0 / 400.0;
    let model = 49.0 * 0.9 / 0.43;
    assert!((packets / model - 1.0).abs() < 0.2, "{packets} packets/s against {model}");
    // With a large buffer the line is the limit: 250 packets/s less the losses, with a sampling error of sqrt(0.1 * 0.9 / 100 000) = 0.1 %.
    // Slow start takes two seconds of 400.
    let result = runs(&scenario("greedy = true", 400, "10 %", "400 s"));
    let packets = result.flows[0].delivered as f64 / 460.0 / 400.0;
    assert!((packets / 225.0 - 1.0).abs() < 0.01, "{packets} packets/s");
}

#[test]
fn one_connection_never_overflows_and_several_may() {
    let alone = runs(&scenario("greedy = true", 8, "20 %", "100 s"));
    assert_eq!(alone.flows[0].refused, 0);
    let shared = runs(&scenario("greedy = true\ncount = 10", 30, "10 %", "100 s"));
    assert!(shared.flows.iter().map(|flow| flow.refused).sum::<u64>() > 0);
    assert!(shared.flows.iter().all(|flow| flow.delivered > 0), "none is left without a window for good");
}

/// Equal parts of the buffer isolate the flows: no packet is refused, and all flows carry the same.
#[test]
fn equal_parts_of_the_buffer_refuse_nothing() {
    let flows = "greedy = true\ncount = 10";
    let parts = scenario(flows, 30, "10 %", "100 s").to_toml().replace("\"common\"", "\"equal\"");
    let result = runs(&Scenario::parse(&parts, "parts.toml", &[]).expect("it reads back"));
    assert_eq!(result.flows.iter().map(|flow| flow.refused).sum::<u64>(), 0);
    let carried = result.flows.iter().map(|flow| flow.delivered);
    let (min, greatest) = (carried.clone().min().expect("ten"), carried.max().expect("ten"));
    // Three packets per round trip of 350 ms at least: some 850 in 100 s, of which a round trip is 3.
    assert!(greatest - min <= greatest / 20, "{min} {greatest}");
}

/// If a gateway announces its window only in ACKs of data, a stopped source must wait for its persist timer.
#[test]
fn a_window_told_in_acks_only_costs_persist_timers() {
    let text = scenario("greedy = true\ncount = 4", 12, "10 %", "200 s").to_toml().replace("\"common\"", "\"equal\"");
    let with = |reopens: &str| {
        let text = text.replace("reopens = true", reopens);
        let result = runs(&Scenario::parse(&text, "acks-only.toml", &[]).expect("it reads back"));
        result.flows.iter().map(|flow| flow.delivered).sum::<u64>()
    };
    let (told, untold) = (with("reopens = true"), with("reopens = false"));
    assert!(untold > 0 && 2 * untold < told, "{told} {untold}");
}

/// H-M04: a packet in S frames arrives complete and once, whatever is lost; it is lost if one of its frames is.
#[test]
fn packets_in_frames_arrive_whole_or_not_at_all() {
    let text = scenario("bytes = \"1000 segments\"", 20, "30 %", "600 s").to_toml();
    let cut = |text: &str, segments: u32| {
        let text = text.replace("segments = 1", &format!("segments = {segments}"));
        runs(&Scenario::parse(&text, "cut.toml", &[]).expect("it reads back"))
    };
    let whole = cut(&text, 5);
    assert_eq!((whole.flows[0].delivered, whole.flows[0].refused), (460_000, 0));
    let channel = &whole.layers[0][0].channels[0];
    assert_eq!((channel.packets, channel.sent), (1000, 5000), "packets come, frames go");
    // 1000 datagrams, since a gateway that acknowledges needs a layer that gives up nothing.
    let datagrams = "[[flows]]\nname = \"data\"\ntype = \"udp\"\nfrom = \"source\"\nto = \"destination\"\n\
                     rate = \"400 kbit/s\"\npacket = \"500 B\"\nstop = \"10 s\"\n";
    let once =
        text[..text.find("[[flows]]").expect("a flow")].replace("transmissions = \"unlimited\"", "transmissions = 1");
    let arrive = |segments| cut(&(once.clone() + datagrams), segments).flows[0].delivered / 500;
    // A frame may go out once: 0.7^5 of the packets arrive, 168 of 1000, with a deviation of 12; four of them either way.
    let once = arrive(5);
    assert!((120..=216).contains(&once), "{once}");
    // Not cut, 700, with a deviation of 14.5.
    let plain = arrive(1);
    assert!((642..=758).contains(&plain), "{plain}");
}

#[test]
fn literal_timers_give_the_same_run() {
    let scenario = scenario("greedy = true\ncount = 3", 20, "20 %", "60 s");
    let with = |timers| run_with(&scenario, 5, &mut NoProbe, timers, |_: Time| true).expect("it runs");
    assert_eq!(with(Timers::Lazy), with(Timers::Literal));
}
