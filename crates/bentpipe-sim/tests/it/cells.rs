//! Links in cells, processors of hosts and applications that keep to a rate, in whole worlds.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunResult, run};
use bentpipe_study::scenario::Scenario;

fn result(text: &str, sets: &[(&str, &str)], seed: u64) -> RunResult {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let scenario = Scenario::parse(text, "cells.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    run(&scenario, seed, &mut NoProbe).expect("reachable")
}

const ONE: &str = r#"
name = "one"
[tcp]
profile = "bsd-reno"
mss = "9140 B"
receive_buffer = "800 KiB"
initial_window = "2 segments"
[[links]]
name = "line"
between = ["a", "b"]
rate = "149.76 Mbit/s"
delay = "1 ms"
framing = "aal5"
[[flows]]
name = "data"
from = "a"
to = "b"
bytes = "50 MiB"
"#;

fn rate(run: &RunResult, flow: usize) -> f64 {
    let flow = &run.flows[flow];
    flow.delivered as f64 * 8.0 / (flow.received_at.expect("done") - flow.start).as_secs_f64()
}

#[test]
fn cells_cost_what_they_cost() {
    // A full line carries 9140 bytes in 192 cells of 53: 134.5 Mbit/s. Slow start takes some round trips of 3 ms in 3 s.
    let full = 149.76e6 * 9140.0 / (192.0 * 53.0);
    let cells = rate(&result(ONE, &[], 1), 0);
    assert!(cells < full && cells > 0.98 * full, "{cells}");
    // As packets at the rate that is left for IP: all but the padding of the ACKs is the same.
    let ip = [("links.line.framing", "packets"), ("links.line.rate", "135101887 bit/s")];
    let packets = rate(&result(ONE, &ip, 1), 0);
    assert!((cells / packets - 1.0).abs() < 1e-3, "{cells} {packets}");
}

#[test]
fn a_processor_is_shared_by_what_is_sent_and_received() {
    // 200 µs for each segment that a host sends or receives, and an ACK for every second one: three times 200 µs for two
    // segments at either end, so 2 * 9140 bytes in 600 µs at most, whatever the link could do.
    let sets = [("nodes.b.processing", "200 us"), ("links.line.rate", "10 Gbit/s"), ("tcp.ack.tick", "off")];
    let max = 2.0 * 9140.0 * 8.0 / 600e-6;
    let slow = rate(&result(ONE, &sets, 1), 0);
    assert!(slow < max && slow > 0.97 * max, "{slow} {max}");
}

#[test]
fn an_application_keeps_to_its_rate() {
    let paced = [("flows.data.paced", "{ rate = \"20 Mbit/s\", write = \"25 kB\", bytes = \"5 MB\" }")];
    // The last of 200 writes of 10 ms each comes at 1.99 s; its 25 kB take a few ms more.
    let run = result(ONE, &paced, 1);
    let took = (run.flows[0].received_at.expect("done") - run.flows[0].start).as_secs_f64();
    assert!((1.99..2.01).contains(&took), "{took}");
    assert_eq!(run.flows[0].delivered, 5_000_000);
    let turns = [(
        "flows.data.paced",
        "{ rate = \"20 Mbit/s\", write = \"25 kB\", bytes = \"5 MB\", pattern = { on = \"100 ms\", off = \"100 ms\" } }",
    )];
    // Twenty times 100 ms of sending, with nineteen pauses between them.
    let run = result(ONE, &turns, 1);
    let took = (run.flows[0].received_at.expect("done") - run.flows[0].start).as_secs_f64();
    assert!((3.8..4.0).contains(&took), "{took}");
}

#[test]
fn nothing_is_lost_from_sight_under_congestion() {
    let text = include_str!("../../../../scenarios/acts-5.toml");
    for seed in 1..4 {
        let run = result(text, &[("time_limit", "3 s"), ("links.sat.forward.atm.buffer", "400 cells")], seed);
        let sat = run.links.iter().find(|link| link.dropped() > 0).expect("the port is too small");
        assert!(sat.dropped_early > 0 && sat.delivered > 0);
        // Each packet offered to a link was delivered, lost, or is still in flight.
        let missing: u64 = run.links.iter().map(|link| link.offered - link.delivered - link.dropped()).sum();
        assert!(missing <= run.in_flight, "{missing} {}", run.in_flight);
        assert_eq!(result(text, &[("time_limit", "3 s"), ("links.sat.forward.atm.buffer", "400 cells")], seed), run);
    }
}
