//! QUIC flows: they complete, whatever the links do, and never beat the limit.

mod advice;
mod known_path;
mod observed;
mod pacing;
mod same;

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::Abort;
use bentpipe_engine::units::Time;
use bentpipe_sim::record::Summary;
use bentpipe_sim::{Fingerprint, FlowResult, Observer, Packet, Passage, RunResult, run};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::Scenario;

use crate::worlds::parse;

/// A path of 20 Mbit/s and 600 ms there and back, with further lines for the satellite link, and flows.
fn geo(link: &str, flows: &str) -> Scenario {
    parse(&format!(
        "name = \"quic\"\ntime_limit = \"600 s\"\n[[links]]\nname = \"sat\"\nbetween = [\"server\", \"client\"]\n\
         rate = \"20 Mbit/s\"\ndelay = \"300 ms\"\nqueue = \"600 ms\"\n{link}\n{flows}"
    ))
}

/// A flow with this workload and these settings.
fn flow(name: &str, workload: &str, quic: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\ntype = \"quic\"\nfrom = \"server\"\nto = \"client\"\n{workload}\nquic = {{ {quic} }}\n"
    )
}

/// A transfer of this much data with these settings.
fn bulk(bytes: &str, quic: &str) -> String {
    flow("data", &format!("bytes = \"{bytes}\""), quic)
}

fn results(scenario: &Scenario) -> RunResult {
    run(scenario, scenario.seed, &mut NoProbe).expect("a path")
}

fn result(scenario: &Scenario) -> FlowResult {
    results(scenario).flows.remove(0)
}

fn fingerprint(scenario: &Scenario) -> u64 {
    let mut fingerprint = Fingerprint::default();
    run(scenario, scenario.seed, &mut fingerprint).expect("a path");
    fingerprint.value()
}

/// Seconds from the start to the arrival of the last byte.
fn seconds(flow: &FlowResult) -> f64 {
    flow.received_at.unwrap_or_else(|| panic!("{flow:?}")).saturating_since(flow.start).as_secs_f64()
}

/// The minimum time that the links allow, seconds.
fn limit(scenario: &Scenario) -> f64 {
    let limit = flow_limit(scenario, &scenario.flows[0]).expect("a path").expect("a connection");
    limit.time.expect("it ends").as_secs_f64()
}

const CONTROLS: [&str; 6] = ["cubic", "reno", "bbr", "linux-cubic", "cubic-rfc9438", "steady"];
const BURSTS: &str = "[links.bursts]\ngap = \"2 s\"\nlength = \"100 ms\"\nloss = \"100 %\"";

/// Everything arrives with 0, 1 and 5 % of loss in both directions and in bursts, and never sooner than the links allow.
#[test]
fn everything_arrives() {
    for channel in ["", "loss = \"1 %\"", "loss = \"5 %\"", BURSTS] {
        for control in CONTROLS {
            let scenario = geo(channel, &bulk("2 MB", &format!("congestion_control = \"{control}\"")));
            let flow = result(&scenario);
            assert_eq!((flow.delivered, flow.aborted), (2_000_000, None), "{control}, {channel}");
            let (took, limit) = (seconds(&flow), limit(&scenario));
            assert!(took >= limit, "{control}, {channel}: {took} s, limit {limit} s");
            // Without losses slow start is all there is: windows from 12 kB on, doubled, are 2 MB after eight. With a handshake and
            // half a round trip that is 5.7 s, and 0.8 s of the line.
            assert!(!channel.is_empty() || took < 6.5, "{control}: {took} s");
        }
    }
}

/// Over a link that changes its rate, delay and loss, reorders, duplicates and damages packets.
#[test]
fn a_link_that_moves_is_survived() {
    let moving = "duplicate = \"2 %\"\ncorrupt = \"1 %\"\nreorder = { probability = \"2 %\", delay = \"20 ms\" }\n\
                  schedule = [{ at = \"2 s\", rate = \"2 Mbit/s\", delay = \"40 ms\" }, \
                  { at = \"4 s\", rate = \"15 Mbit/s\", loss = \"2 %\" }]\nschedule_period = \"6 s\"";
    for control in CONTROLS {
        let scenario = geo(moving, &bulk("1 MB", &format!("congestion_control = \"{control}\"")));
        let flow = result(&scenario);
        assert_eq!((flow.delivered, flow.aborted), (1_000_000, None), "{control}");
        assert!(seconds(&flow) >= limit(&scenario), "{control}");
    }
}

/// Packets of the handshake are lost, one after the other, in each direction: it is repeated.
#[test]
fn a_lost_handshake_is_repeated() {
    let whole = seconds(&result(&geo("", &bulk("5 kB", ""))));
    for direction in ["forward", "backward"] {
        for number in 0..3 {
            let scenario = geo(&format!("{direction}.drop_list = [{number}]"), &bulk("5 kB", ""));
            let flow = result(&scenario);
            assert_eq!((flow.delivered, flow.aborted), (5_000, None), "{direction} {number}");
            let took = seconds(&flow);
            assert!(took >= whole, "{direction} {number}: {took} s, {whole} s without a loss");
        }
    }
    // The first Initial packet is repeated after 999 ms, three times the first guess at a round trip (RFC 9002 section 6.2.2). The
    // loss costs 0.3 of a window of 12 kB; 5 kB still fit.
    let took = seconds(&result(&geo("forward.drop_list = [0]", &bulk("5 kB", ""))));
    assert!((took - whole - 0.999).abs() < 0.01, "{took} s, {whole} s without a loss");
}

/// With 0-RTT data comes a round trip earlier: 600 ms and the time of two datagrams on the line, less what is sent besides. 5 kB fit
/// the first window beside the Initial packet.
#[test]
fn zero_rtt_saves_a_round_trip() {
    let took = |settings| {
        let scenario = geo("", &bulk("5 kB", settings));
        let flow = result(&scenario);
        assert!(seconds(&flow) >= limit(&scenario), "{settings}");
        assert_eq!(flow.delivered, 5_000);
        seconds(&flow)
    };
    let saved = took("") - took("zero_rtt = true");
    assert!((saved - 0.6).abs() < 2.0 * 1500.0 * 8.0 / 20e6, "{saved} s");
    // Half a round trip, and the time of the datagrams.
    assert!((took("zero_rtt = true") - 0.3).abs() < 0.02);
}

/// Two flows share the line: together they fill it, and neither has less than a fifth. Later shares depend on who loses in slow
/// start, so the bound is a loose one.
#[test]
fn two_flows_share() {
    let greedy = "greedy = { duration = \"60 s\" }";
    let flows = flow("one", greedy, "") + &flow("two", greedy, "");
    let scenario = geo("", &flows);
    let result = results(&scenario);
    let rates: Vec<f64> = result.flows.iter().map(|flow| flow.delivered as f64 * 8.0 / 60.0).collect();
    let sum: f64 = rates.iter().sum();
    assert!(sum > 0.6 * 20e6 && rates.iter().all(|rate| *rate > 0.2 * sum), "{rates:?}");
}

/// Streams share the data; requests are answered one after the other; a paced application is as slow as it is.
#[test]
fn workloads() {
    let streams = result(&geo("loss = \"1 %\"", &bulk("1000003 B", "streams = 150")));
    assert_eq!((streams.delivered, streams.aborted), (1_000_003, None));

    let asking = "request_response = { request = \"500 B\", response = \"50 kB\", think = \"1 s\", count = 3 }";
    let scenario = geo("", &flow("data", asking, ""));
    let answers = result(&scenario);
    assert_eq!((answers.delivered, answers.aborted), (3 * 500, None));
    // A handshake; three windows, of 12, 24 and 48 kB, for the first response and at most two for the others; two pauses. A quarter
    // of a second is for lines, pacing and delayed ACKs.
    let took = seconds(&answers);
    assert!(took >= limit(&scenario) && took < (1.0 + 3.0 + 2.0 + 2.0) * 0.6 + 2.0 + 0.25, "{took} s");
    let summary = Summary::new(&scenario, &results(&scenario));
    assert_eq!((summary.flows[0].bytes, summary.flows[0].variant.as_deref()), (150_000, Some("quic-cubic")));

    let paced = "paced = { rate = \"1 Mbit/s\", write = \"1000 B\", bytes = \"500 kB\" }";
    let paced = result(&geo("", &flow("data", paced, "")));
    // 500 writes, 8 ms apart, from the start on; the last arrives half a round trip after it.
    let took = seconds(&paced);
    assert!(paced.delivered == 500_000 && (took - (499.0 * 0.008 + 0.3)).abs() < 0.05, "{took} s");
}

/// Nothing comes back: the client gives up after the idle timeout, and the run ends at its limit.
#[test]
fn silence_ends_a_connection() {
    let scenario = geo("backward.loss = \"100 %\"", &bulk("10 kB", "idle_timeout = \"10 s\""));
    let flow = result(&scenario);
    assert_eq!((flow.delivered, flow.aborted), (0, Some(Abort::RetriesExhausted)));
}

/// Flow control and the initial window bound the data in flight.
#[test]
fn windows_are_kept() {
    let most = |settings| {
        let flow = result(&geo("", &bulk("1 MB", settings)));
        assert_eq!(flow.delivered, 1_000_000);
        (flow.stats.max_flight, seconds(&flow))
    };
    let (flight, slow) = most("receive_window = \"30 kB\"");
    // Each packet adds its headers to the data: up to 60 bytes for 1100.
    assert!(flight <= 33_000, "{flight} bytes");
    let (free, fast) = most("");
    assert!(free > 200_000 && fast < slow, "{free} bytes");
    let (_, wide) = most("initial_window = \"1 MB\"");
    // All of it goes out at once, but paced over the first guess at a round trip.
    assert!(wide < fast - 0.6, "{wide} s, {fast} s with the usual window");
}

/// A link layer repairs the channel's losses: QUIC loses no packet.
#[test]
fn a_layer_repairs_under_it() {
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
    let plain = geo("loss = \"1 %\"", &bulk("5 MB", ""));
    let repaired = geo("loss = \"1 %\"", &(layer.to_owned() + &bulk("5 MB", "")));
    let (plain, repaired) = (result(&plain), result(&repaired));
    assert!(plain.stats.retransmits > 20, "{:?}", plain.stats);
    assert!(seconds(&repaired) < 0.5 * seconds(&plain), "{} s, {} s", seconds(&repaired), seconds(&plain));
}

/// A window in which a full datagram does not fit would stop the connection before its first packet.
#[test]
fn the_longest_datagrams_fit_the_first_window() {
    for control in ["cubic", "reno", "bbr", "linux-cubic", "cubic-rfc9438", "steady"] {
        for datagram in [9000, 65_507] {
            let quic = format!("datagram = \"{datagram} B\", congestion_control = \"{control}\"");
            let run = run(&geo("", &bulk("1 MB", &quic)), 1, &mut NoProbe).expect("a path");
            assert_eq!(run.flows[0].delivered, 1_000_000, "{control}, {datagram} B");
        }
    }
}

/// Datagrams of a fixed size are all of this size, without path MTU discovery.
#[test]
fn datagrams_have_the_size_they_are_given() {
    #[derive(Default)]
    struct Longest(u32, u64);
    impl Probe for Longest {
        fn event(&mut self, _: Time, _: Who, _: &Event) {}
    }
    impl Observer for Longest {
        fn packet(&mut self, _: Time, _: LinkId, passage: Passage, packet: &Packet) {
            if passage == Passage::Offered && packet.forward {
                (self.0, self.1) = (self.0.max(packet.wire_len), self.1 + u64::from(packet.wire_len == 1378));
            }
        }
    }
    let mut sizes = [Longest::default(), Longest::default()];
    run(&geo("", &bulk("1 MB", "datagram = \"1350 B\"")), 1, &mut sizes[0]).expect("a path");
    run(&geo("", &bulk("1 MB", "")), 1, &mut sizes[1]).expect("a path");
    assert!(sizes[0].0 == 1378 && sizes[0].1 > 700, "{} B, {} times", sizes[0].0, sizes[0].1);
    // The search ends at 1452 B.
    assert_eq!(sizes[1].0, 1452 + 28);
}

/// Data behind a gap is not read: a flow that stops before the gap is filled ends with what came before it.
#[test]
fn what_waits_behind_a_gap_is_not_read() {
    let of = |lost: &str| result(&geo(lost, &flow("data", "greedy = { duration = \"4 s\" }", "pacing = true")));
    // Some 430 packets carry data, the last of them in a burst that is not answered before the end.
    let (clean, cut) = (of(""), of("forward.drop_list = [380]"));
    assert!(cut.delivered < clean.delivered && cut.stats.data_segments == clean.stats.data_segments, "{cut:?}");
    let last = |flow: &FlowResult| flow.arrivals.expect("data was read").1;
    assert!(last(&cut) < last(&clean), "{:?} {:?}", last(&cut), last(&clean));
}
