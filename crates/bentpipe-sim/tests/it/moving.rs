//! Every transport survives a link that moves: whatever the schedule, all data arrives, and the run ends.

use crate::worlds::{moving, parse};
use bentpipe_engine::probe::NoProbe;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_sim::record::Summary;
use bentpipe_sim::{RunResult, run};
use proptest::prelude::*;

const BYTES: u64 = 150_000;

/// A link that moves both ways, between two that do not, and one transfer over it.
fn world(link: &str, flow: &str, layer: &str) -> String {
    let still = |name: &str, between: &str| {
        format!("[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"50 Mbit/s\"\ndelay = \"1 ms\"\n")
    };
    format!(
        "name = \"moving\"\ntime_limit = \"300 h\"\n{}{}[[links]]\nname = \"sat\"\nbetween = [\"R1\", \"R2\"]\n\
         rate = \"2 Mbit/s\"\ndelay = \"50 ms\"\n{link}\n{layer}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\n\
         bytes = \"{BYTES} B\"\n{flow}\n",
        still("near", "\"A\", \"R1\""),
        still("far", "\"R2\", \"B\"")
    )
}

fn transfer(text: &str, seed: u64) -> RunResult {
    run(&parse(text), seed, &mut NoProbe).expect("a path for the flow")
}

/// Runs it. The error says what is missing.
fn survives(text: &str, seed: u64) -> Result<(), String> {
    is_whole(&transfer(text, seed), text)
}

fn is_whole(result: &RunResult, text: &str) -> Result<(), String> {
    let flow = &result.flows[0];
    if flow.delivered == BYTES && flow.received_at.is_some() && flow.aborted.is_none() {
        return Ok(());
    }
    Err(format!("{} B of {BYTES}, aborted {:?}, timed out {}\n{text}", flow.delivered, flow.aborted, result.timed_out))
}

/// quinn's sender does not send its Finished again if it is lost while data that the receiver cannot read yet fills the congestion window.
/// The receiver repeats its own part of the handshake until the idle timeout, and no byte arrives. In the case below 12 kB arrive within
/// 14 s, and so does all of it with a first window of 24 kB.
#[cfg(feature = "quic")]
fn is_stuck_handshake(result: &RunResult) -> bool {
    result.flows[0].delivered == 0 && result.flows[0].aborted.is_some()
}

/// A host that never gives up: an outage may be longer than its patience.
fn tcp(variant: &str) -> String {
    format!("tcp = {{ profile = \"rfc\", variant = \"{variant}\", rto.max_retries = \"unlimited\" }}")
}

#[cfg(feature = "quic")]
fn quic(control: &str) -> String {
    format!("type = \"quic\"\nquic = {{ congestion_control = \"{control}\", idle_timeout = \"1000000 s\" }}")
}

const STP: &str = "type = \"stp\"\nstp = { rate = \"1 Mbit/s\", rtt = \"300 ms\", mss = \"1000 B\", overhead = \"28 B\", \
                   rto = \"900 ms\", max_retransmissions = 60 }";

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_row_of_tcp(link in moving(), seed in 0..1000u64) {
        for (name, ..) in VARIANTS {
            prop_assert_eq!(survives(&world(&link, &tcp(name), ""), seed), Ok(()), "{}", name);
        }
    }

    #[test]
    fn stp(link in moving(), seed in 0..1000u64) {
        prop_assert_eq!(survives(&world(&link, STP, ""), seed), Ok(()));
    }

    #[cfg(feature = "quic")]
    #[test]
    fn every_control_of_quic(link in moving(), seed in 0..1000u64) {
        for name in ["cubic", "reno", "bbr", "linux-cubic", "cubic-rfc9438", "steady"] {
            let text = world(&link, &quic(name), "");
            let result = transfer(&text, seed);
            if !is_stuck_handshake(&result) {
                prop_assert_eq!(is_whole(&result, &text), Ok(()), "{}", name);
            }
        }
    }

    /// S-LACP's ARQ below TCP: it delivers exactly the packets that it was given.
    #[test]
    fn slacp(link in moving(), seed in 0..1000u64) {
        let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
        prop_assert_eq!(survives(&world(&link, &tcp("sack"), layer), seed), Ok(()));
        prop_assert_eq!(survives(&world(&link, &tcp("cubic"), layer), seed), Ok(()));
    }
}

/// The case that [`is_stuck_handshake`] excepts. If quinn mends it, this fails, and both can go.
#[cfg(feature = "quic")]
#[test]
fn a_lost_finished_is_not_sent_again() {
    let link = "schedule = [{ at = \"64 ms\", rate = \"15848 kbit/s\", delay = \"250 ms\", loss = \"7 %\" }, \
                { at = \"2052 ms\", rate = \"6661 kbit/s\", delay = \"250 ms\", loss = \"4 %\", over = \"195 ms\" }, \
                { at = \"4294 ms\", rate = \"7072 kbit/s\", delay = \"174 ms\", loss = \"3 %\", over = \"280 ms\" }, \
                { at = \"5074 ms\", rate = \"900 kbit/s\" }]\n\
                reorder = { probability = 0.0, delay = \"1 ms\" }\nduplicate = 0.0\ncorrupt = 0.002\n";
    assert!(is_stuck_handshake(&transfer(&world(link, &quic("cubic"), ""), 134)));
}

/// The limit of a flow without an end is what the line can send while it runs, in this run. Each of these lines is faster than its mean at
/// first, or its rates are drawn.
#[test]
fn no_flow_is_faster_than_a_line_that_moves() {
    let lines = [
        "rate = \"2 Mbit/s\"\nschedule = [{ at = \"2 s\", rate = \"200 kbit/s\" }]\nschedule_period = \"30 s\"",
        "rate_trace = [500, 500, 501, 502, 503, 504, 505, 506, 600, 700, 800, 2000, 9000]",
        "rate = \"10 Mbit/s\"\ntdma = { frame = \"1 s\", bursts = [[\"0 ms\", \"500 ms\"]] }",
        "rate = \"2 Mbit/s\"\nphases = { length = \"700 ms\", outage = \"20 ms\", rate = [\"1 Mbit/s\", \"6 Mbit/s\"] }",
    ];
    for line in lines {
        for flow in ["", "type = \"quic\"", "split = [{ at = \"R2\" }]"] {
            for (duration, seed) in [("500 ms", 1), ("1700 ms", 2), ("5 s", 3), ("1 h", 4)] {
                let still = "rate = \"2 Mbit/s\"\ndelay = \"50 ms\"\nMOVES";
                let moves = format!("delay = \"50 ms\"\nqueue = \"200 packets\"\n{line}");
                let greedy = format!("start = \"300 ms\"\ngreedy = {{ duration = \"{duration}\" }}");
                let text = world("MOVES", flow, "").replace(still, &moves).replace("300 h", "8 s");
                let text = text.replace(&format!("bytes = \"{BYTES} B\""), &greedy);
                let scenario = parse(&text);
                let flow = Summary::new(&scenario, &transfer(&text, seed)).flows.remove(0);
                let x_limit = flow.x_limit.expect("some data arrives");
                // The handshake and slow start take most of a short run, and most of a trace's first opportunities.
                let most = if ["5 s", "1 h"].contains(&duration) && !line.contains("trace") { 2.0 } else { 30.0 };
                assert!((1.0..most).contains(&x_limit), "{x_limit}, {:?}\n{text}", flow.goodput_bit_s);
            }
        }
    }
}
