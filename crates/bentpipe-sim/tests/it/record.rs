//! The record of a run, against numbers worked out by hand.

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_sim::record::{Outlook, Sequence, Summary, Tap};
use bentpipe_sim::run;
use bentpipe_study::scenario::{NodeId, Scenario};

/// 2 Mbit/s and 100 ms each way; the first link is never the bottleneck.
const TWO_LINKS: &str = r#"
name = "two-links"
[tcp]
mss = "960 B"
WINDOW
[[links]]
name = "access"
between = ["A", "R"]
rate = "1 Gbit/s"
delay = "0 s"
[[links]]
name = "sat"
between = ["R", "B"]
rate = "2 Mbit/s"
delay = "100 ms"
forward.queue = "50 packets"
forward.drop_list = [3]
[[flows]]
name = "data"
from = "A"
to = "B"
FLOW
"#;

fn scenario(window: &str, flow: &str) -> Scenario {
    let text = TWO_LINKS.replace("WINDOW", window).replace("FLOW", flow);
    Scenario::parse(&text, "two-links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

const BULK: &str = "bytes = \"96 kB\"";

#[test]
fn a_summary_adds_up() {
    let scenario = scenario("", BULK);
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    let flow = &summary.flows[0];
    assert_eq!((flow.bytes, flow.retransmissions, flow.aborted), (96_000, 1, None));
    let (time, limit) = (flow.time_s.expect("done"), flow.limit_time_s.expect("finite"));
    assert_eq!((flow.goodput_bit_s, flow.x_limit), (Some(96_000.0 * 8.0 / time), Some(time / limit)));
    let link = summary.links.iter().find(|link| link.name == "sat/forward").expect("a link");
    assert_eq!((link.dropped.listed, link.dropped.queue_full), (1, 0));
    assert_eq!(link.offered_packets, link.delivered_packets + 1);
    // 2 Mbit/s are 250 000 bytes in each second of the run.
    let used = link.utilisation.expect("the line takes time");
    assert!((used - link.delivered_bytes as f64 / (250_000.0 * summary.end_s)).abs() < 1e-12, "{used}");
}

/// A link that loses everything from 1 s on. TCP gives up after its retries, QUIC after its idle timeout.
#[test]
fn a_summary_says_why_a_flow_ended() {
    let dead = TWO_LINKS.replace("forward.drop_list = [3]", "bursts = { schedule = [[\"1 s\", \"2000 s\"]] }");
    for (flow, why) in [("", "retries exhausted"), ("type = \"quic\"", "idle timeout")] {
        let text = dead.replace("WINDOW", "").replace("FLOW", &format!("bytes = \"10 MB\"\n{flow}"));
        let scenario = Scenario::parse(&text, "dead.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
        assert_eq!(summary.flows[0].aborted, Some(why));
    }
}

#[test]
fn responses_are_the_data_of_a_request() {
    let flow = r#"request_response = { request = "400 B", response = "9600 B", think = "0 s", count = 3 }"#;
    let scenario = scenario("", flow);
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    assert_eq!(summary.flows[0].bytes, 28_800);
    let outlook = Outlook::new(&scenario).expect("reachable");
    assert_eq!(outlook.flows[0].nodes, ["B", "R", "A"]);
    assert_eq!(outlook.flows[0].bottleneck.as_deref(), Some("sat/backward"));
    // 30 full segments, from B to A.
    let mut sequence = Sequence::at_bottleneck(&scenario);
    run(&scenario, 1, &mut sequence).expect("reachable");
    let sent: Vec<_> = sequence.flows[0].sent.iter().map(|((_, segment), _)| *segment).collect();
    assert_eq!(sent, (1..=30).map(f64::from).collect::<Vec<_>>());
    assert_eq!(sequence.flows[0].crossed.len(), 30);
    assert_eq!(sequence.flows[0].acks.last().map(|point| point.1), Some(30.0));
}

#[test]
fn an_outlook_by_hand() {
    let outlook = Outlook::new(&scenario("", "bytes = \"10 MB\"")).expect("reachable").flows.remove(0);
    assert_eq!((outlook.one_way_ms, outlook.rtt_ms, outlook.packet_bytes), (100.0, 200.0, 1000));
    // 250 000 B/s for 0.2 s; 50 packets of 4 ms.
    assert_eq!((outlook.bdp_bytes, outlook.bdp_packets), (Some(50_000), Some(50.0)));
    let queue = outlook.queue.expect("limited");
    assert_eq!((queue.packets, queue.bytes, queue.ms, queue.bdps), (50.0, 50_000, 200.0, 1.0));
    assert!(outlook.hints.iter().any(|hint| hint.contains("overshoots it too")), "{:?}", outlook.hints);
}

/// A rare loss is not shown as none: of packets of 8000 bits, 8e-5 % are lost at a bit error rate of 1e-10. A loss that repeats has its
/// mean.
#[test]
fn hints_name_the_loss() {
    let hints = |loss: &str| {
        let text = TWO_LINKS.replace("forward.drop_list = [3]", loss).replace("WINDOW", "").replace("FLOW", BULK);
        let scenario = Scenario::parse(&text, "loss.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        Outlook::new(&scenario).expect("reachable").flows.remove(0).hints.join("\n")
    };
    assert!(hints("forward.bit_error_rate = \"1e-10\"").contains("loses 8.0e-5 % of full packets"));
    assert!(hints("forward.loss = \"1 %\"").contains("loses 1.00 % of full packets"));
    let trace = "forward.loss_trace = { values = [[\"0 s\", \"4 %\"], [\"1 s\", \"0 %\"]] }";
    assert!(hints(trace).contains("loses 2.00 % of full packets"));
    assert!(!hints("").contains("loses"));
}

#[test]
fn hints_follow_the_window() {
    let hints = |window: &str, flow: &str| {
        Outlook::new(&scenario(window, flow)).expect("reachable").flows.remove(0).hints.join("\n")
    };
    // 20 segments of 960 B in a pipe of 50 000 B.
    let small = hints("window_clamp = \"20 segments\"", "bytes = \"10 MB\"");
    assert!(small.contains("19200 B may be outstanding, 0.38 BDP"), "{small}");
    assert!(!small.contains("overshoot"), "{small}");
    let fits = hints("window_clamp = \"80 segments\"", "bytes = \"10 MB\"");
    assert!(fits.contains("the queue never overflows"), "{fits}");
    let short = hints("", "bytes = \"20 kB\"");
    assert!(short.contains("over before slow start fills"), "{short}");
    let threshold = hints("initial_ssthresh = \"60 segments\"", "bytes = \"10 MB\"");
    assert!(threshold.contains("ends slow start before the queue overflows"), "{threshold}");
    // Slow start ends at 20 segments, long before the pipe is full: a doubling from ten.
    let early = hints("initial_ssthresh = \"20 segments\"", "bytes = \"10 MB\"");
    assert!(early.contains("about 1 round trip, 0.2 s, to its first threshold of 19200 B, 0.38 BDP"), "{early}");
    // Linux's send buffer of 4 MiB is less than the receive buffer. Here it is the limit.
    let buffered = hints("profile = \"linux\"\nsend_buffer = \"19200 B\"", "bytes = \"10 MB\"");
    assert!(buffered.contains("19200 B may be outstanding (send buffer), 0.38 BDP: the line can never"), "{buffered}");
    assert!(!buffered.contains("overshoot"), "{buffered}");
    // The window of an end says nothing about a path on which the connection is split.
    let split =
        hints("window_clamp = \"20 segments\"", "bytes = \"10 MB\"\nsplit = [{ at = \"R\", buffer = \"1 MB\" }]");
    assert!(split.contains("the connection is split") && !split.contains("outstanding"), "{split}");
    let ends = "bytes = \"10 MB\"\nspoof = { at = \"R\", buffer = \"30 packets\" }\n[[layers]]\nname = \"arq\"\nover = \"sat\"\n\
                [[layers.channels]]\nname = \"all\"\ntransmissions = \"unlimited\"\nqueue = \"unlimited\"\n";
    let ended = hints("window_clamp = \"20 segments\"", ends);
    assert!(ended.contains("a gateway ends the connection") && !ended.contains("outstanding"), "{ended}");
}

/// Two windows, or one on a path that changes, may fill a line that one does not, and overflow its queue.
#[test]
fn hints_promise_nothing_of_a_path_that_changes_or_is_shared() {
    let hints = |segments: u32, sky: &str, flow: &str| {
        let text =
            TWO_LINKS.replace("forward.drop_list = [3]", sky).replace("FLOW", &format!("bytes = \"10 MB\"\n{flow}"));
        let text = text.replace("WINDOW", &format!("window_clamp = \"{segments} segments\""));
        let scenario = Scenario::parse(&text, "two-links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        Outlook::new(&scenario).expect("reachable").flows.remove(0).hints.join("\n")
    };
    assert!(hints(20, "", "").contains("never be busy") && hints(80, "", "").contains("never overflows"));
    for (sky, flow) in [
        ("", "count = 2"),
        ("forward.schedule = [{ at = \"5 s\", rate = \"1 Mbit/s\" }]", ""),
        ("backward.schedule = [{ at = \"5 s\", delay = \"50 ms\" }]", ""),
    ] {
        let [small, fits] = [20, 80].map(|segments| hints(segments, sky, flow));
        assert!(small.contains("19200 B may be outstanding, 0.") && !small.contains("never"), "{small}");
        assert!(fits.contains("76800 B may be outstanding, 1.") && !fits.contains("never"), "{fits}");
    }
    // The first limit of the queue says nothing of the later ones.
    let schedule = "forward.schedule = [{ at = \"0 s\", queue = \"10 packets\" }]";
    let text = TWO_LINKS.replace("WINDOW", "").replace("50 packets", "unlimited").replace("FLOW", BULK);
    let text = text.replace("forward.drop_list = [3]", schedule);
    let scenario = Scenario::parse(&text, "two-links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let unlimited = Outlook::new(&scenario).expect("reachable").flows.remove(0).hints.join("\n");
    for changing in [unlimited, hints(80, schedule, "")] {
        assert!(changing.contains("the limit of the queue changes"), "{changing}");
        assert!(["never", "slow start", "unlimited"].iter().all(|word| !changing.contains(word)), "{changing}");
    }
    assert!(hints(20, schedule, "").contains("never be busy"));
}

/// 200 ms of round trip; the default idle timeout is 30 s.
#[test]
fn hints_know_the_idle_timeout_of_quic() {
    let hints = |idle: &str| {
        let flow = format!("bytes = \"10 MB\"\ntype = \"quic\"\n{idle}");
        Outlook::new(&scenario("", &flow)).expect("reachable").flows.remove(0).hints.join("\n")
    };
    assert!(!hints("").contains("idle timeout"), "{}", hints(""));
    let short = hints("quic = { idle_timeout = \"150 ms\" }");
    assert!(short.contains("the round trip of 200 ms is longer than QUIC's idle timeout of 150 ms"), "{short}");
}

#[test]
fn a_picture_shows_losses_and_retransmissions() {
    let scenario = scenario("", BULK);
    let mut sequence = Sequence::at_bottleneck(&scenario);
    run(&scenario, 1, &mut sequence).expect("reachable");
    let panel = sequence.panel(0, "data", None);
    let points = |name: &str| panel.series.iter().find(|s| s.name == name).map_or(0, |s| s.points.len());
    // 100 segments; none falls on another at a thousandth of either axis.
    assert_eq!((points("sent"), points("lost (1)"), points("retransmitted (1)")), (100, 1, 1));
    let lost = sequence.flows[0].queue_drops[0].1;
    let again: Vec<_> = sequence.flows[0].sent.iter().filter(|sent| sent.1).map(|sent| sent.0.1).collect();
    assert_eq!(again, [lost]);
}

#[test]
fn taps_have_names() {
    let scenario = scenario("", BULK);
    assert_eq!(Tap::find(&scenario, "A"), Ok(vec![Tap::Host(NodeId(0))]));
    assert_eq!(Tap::find(&scenario, "sat/forward"), Ok(vec![Tap::Entrance(LinkId(2)), Tap::Exit(LinkId(2))]));
    assert_eq!(Tap::find(&scenario, "sat/forward:out"), Ok(vec![Tap::Exit(LinkId(2))]));
    assert_eq!(Tap::find(&scenario, "all").expect("all").len(), 2 + 2 * 4);
    let unknown = Tap::find(&scenario, "R").expect_err("a router is no end of a flow");
    assert!(unknown.to_string().contains("sat/forward:in"), "{unknown}");
    assert_eq!(Tap::first_sender(&scenario), [Tap::Host(NodeId(0))]);
}

#[test]
fn the_mean_rate_of_what_does_not_repeat_is_that_of_the_run() {
    let sets = |key: &str, value: &str| vec![(format!("links.sat.{key}"), value.to_owned())];
    let text = scenario("", "bytes = \"1 MB\"").to_toml().replace("sat/forward", "sat");
    let rate = |sets: &[(String, String)]| {
        let scenario = Scenario::parse(&text, "t.toml", sets).unwrap_or_else(|errors| panic!("{errors}"));
        let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
        let outlook = Outlook::new(&scenario).expect("reachable").flows.remove(0);
        let link = summary.links.into_iter().find(|link| link.name == "sat").expect("it is there");
        (link.rate_bit_s.expect("a line"), outlook.bottleneck_bit_s.expect("a line"), outlook.rate_range_bit_s)
    };
    assert_eq!(rate(&[]), (2_000_000, 2_000_000, None));
    let phases = sets("phases", "{ length = \"10 s\", rate = [\"3 Mbit/s\", \"3 Mbit/s\"] }");
    assert_eq!(rate(&phases), (3_000_000, 3_000_000, None));
    let schedule = sets("schedule", "[{ at = \"1 ms\", rate = \"1 Mbit/s\" }]");
    let (mean, first, range) = rate(&schedule);
    assert!((1_000_000..1_001_000).contains(&mean), "{mean}");
    assert_eq!((first, range), (2_000_000, Some([1_000_000, 2_000_000])));
}

/// A transfer may meet better rates than the mean.
#[test]
fn a_limit_above_the_mean_rate_is_explained() {
    let text = scenario("", "bytes = \"300 kB\"").to_toml().replace("sat/forward", "sat");
    let look = |more: &[(&str, &str)]| {
        let sets: Vec<_> = more.iter().map(|(key, value)| (format!("links.sat.{key}"), (*value).to_owned())).collect();
        let scenario = Scenario::parse(&text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        Outlook::new(&scenario).expect("reachable").flows.remove(0)
    };
    let hinted = |more: &[(&str, &str)]| {
        let look = look(more);
        let hint = look.hints.into_iter().find(|hint| hint.starts_with("the rate changes"));
        (hint, look.limit_long_run_bit_s.is_some())
    };
    assert_eq!(hinted(&[]), (None, false));
    let best = "the rate changes: the limit is for the best rates that this transfer can meet";
    let schedule = ("schedule", "[{ at = \"1 s\", rate = \"1 Mbit/s\" }]");
    assert_eq!(hinted(&[schedule]), (Some(best.to_owned()), false), "what does not repeat has no mean");
    // 1.5 Mbit/s, 960 B of each 1000.
    let (hint, has_mean) = hinted(&[schedule, ("schedule_period", "2 s")]);
    assert_eq!(hint, Some(format!("{best}, and an endless transfer could reach 1.44 Mbit/s")));
    assert!(has_mean);
}

/// Hosts with lines of their own to a port share it only if the lines together are faster than the port: two of 4 Mbit/s are not, two of
/// 8 Mbit/s are, and then cells are lost in its buffer. A second flow of the same hosts is on the same line.
#[test]
fn lines_to_a_port_are_shared_by_the_flows_of_their_hosts() {
    let hints = |line: &str, others: &str| {
        let host = |name: &str| {
            format!(
                "[[links]]\nname = \"{name}\"\nbetween = [\"{name}\", \"R\"]\nrate = \"unlimited\"\ndelay = \"1 ms\"\n"
            )
        };
        let flow = |from: &str| format!("[[flows]]\nfrom = \"{from}\"\nto = \"B\"\nbytes = \"1 MB\"\n");
        let links = [host("A"), host("C")].concat();
        let flows: String = ["A"].into_iter().chain(others.split_whitespace()).map(flow).collect();
        let text = format!(
            "name = \"t\"\n{links}[[links]]\nname = \"port\"\nbetween = [\"R\", \"B\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             framing = \"aal5\"\natm = {{ line = \"{line}\", buffer = \"100 cells\" }}\n{flows}"
        );
        let scenario = Scenario::parse(&text, "port.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let flow = Outlook::new(&scenario).expect("reachable").flows.remove(0);
        let hints = flow.hints.join("\n");
        let queue = flow.queue.map(|queue| (queue.packets, queue.bytes, queue.ms));
        (hints.contains("share"), hints.contains("the queue is unlimited"), queue)
    };
    assert_eq!(hints("4 Mbit/s", ""), (false, true, None));
    assert_eq!(hints("4 Mbit/s", "C"), (false, true, None));
    // A packet of 1500 B and 16 B of LLC and AAL5 takes 32 cells. 100 cells of 53 B take 4.24 ms of 10 Mbit/s.
    assert_eq!(hints("8 Mbit/s", "C"), (true, false, Some((3.125, 5300, 4.24))));
    assert_eq!(hints("4 Mbit/s", "A"), (true, true, None));
    // As fast as the port, a line has no queue of its own.
    assert_eq!(hints("10 Mbit/s", "").2, Some((3.125, 5300, 4.24)));
}

#[test]
fn hints_know_what_ends_slow_start() {
    let hint = |window: &str| {
        let outlook = Outlook::new(&scenario(window, "bytes = \"10 MB\"")).expect("reachable").flows.remove(0);
        outlook.hints.into_iter().find(|hint| hint.contains("overshoot")).expect("it may overshoot")
    };
    assert!(hint("").ends_with("and overshoots it too"), "{}", hint(""));
    let early = hint("profile = \"linux\"\nvariant = \"linux-cubic\"");
    assert!(early.ends_with("and overshoots it too, unless HyStart ends it in time"), "{early}");
}

/// A datagram each 100 ms from 1 s on, the last before 3 s: `stop` counts from the start of the run.
#[test]
fn a_source_of_datagrams_stops_when_it_says() {
    let flow = "type = \"udp\"\nrate = \"80 kbit/s\"\npacket = \"1000 B\"\nstart = \"1 s\"\nstop = \"3 s\"";
    let scenario = scenario("", flow);
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    assert_eq!(summary.flows[0].segments, 20);
    // Of 20 datagrams in 2 s one is dropped. Afterwards the run goes on.
    assert_eq!(summary.flows[0].goodput_bit_s, Some(76_000.0));
}

/// What a source had sent before it stopped may arrive long after. It counts, and so does the time that it took.
#[test]
fn what_is_sent_at_once_arrives_no_faster_than_the_line_is() {
    let deep = TWO_LINKS.replace("forward.queue = \"50 packets\"\nforward.drop_list = [3]", "");
    let flow = |window: &str, flow: &str| {
        let text = deep.replace("WINDOW", window).replace("FLOW", flow);
        let scenario = Scenario::parse(&text, "deep.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable")).flows.remove(0)
    };
    for kind in ["", "type = \"stp\"\nstp = { rate = \"9 Mbit/s\", rtt = \"1 s\" }", "split = [{ at = \"R\" }]"] {
        let found = flow("initial_window = 1000", &format!("greedy = {{ duration = \"1 s\" }}\n{kind}"));
        let (bytes, x_limit) = (found.bytes, found.x_limit.expect("both are known"));
        // More than a second of the line, which is 250 kB; and nearly as fast as the line, but for the handshake and the delay.
        assert!(bytes > 300_000 && (1.0..1.5).contains(&x_limit), "{kind}: {found:?}");
    }
    // 4 Mbit/s for 2 s are 1000 datagrams. The line takes 4 ms for each, and there are 999 such times from the first arrival to the last.
    let datagrams = flow("", "type = \"udp\"\nrate = \"4 Mbit/s\"\npacket = \"1000 B\"\nstop = \"2 s\"");
    assert_eq!(datagrams.bytes, 1_000_000);
    let goodput = datagrams.goodput_bit_s.expect("some arrived");
    assert!((goodput - 8e6 / (999.0 * 0.004)).abs() < 1.0, "{goodput}");
}

/// A source whose time is over has not failed, and neither has a gateway on its path.
#[test]
fn a_flow_that_stops_is_not_aborted() {
    let summary = |text: &str| {
        let scenario = Scenario::parse(text, "stops.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"))
    };
    let text = TWO_LINKS.replace("WINDOW", "");
    for flow in [
        "",
        "type = \"stp\"\nstp = { rate = \"1 Mbit/s\", rtt = \"200 ms\" }",
        "type = \"quic\"",
        "split = [{ at = \"R\" }]",
    ] {
        let summary = summary(&text.replace("FLOW", &format!("greedy = {{ duration = \"3 s\" }}\n{flow}")));
        let result = &summary.flows[0];
        assert_eq!((result.aborted, result.time_s, summary.timed_out), (None, None, false), "{flow}");
        assert!(result.goodput_bit_s > Some(100_000.0), "{flow}");
    }
    // One that fails before.
    let dead = text.replace("forward.drop_list = [3]", "bursts = { schedule = [[\"1 s\", \"3000 s\"]] }");
    let summary = summary(&dead.replace("FLOW", "greedy = { duration = \"2000 s\" }"));
    assert_eq!(summary.flows[0].aborted, Some("retries exhausted"));
}

/// The curve of goodput has all data that arrives, each byte once: of several streams, and of messages that do not fill a segment.
#[test]
fn a_curve_of_goodput_adds_up() {
    use bentpipe_sim::record::{Guides, Plot};
    let asks = "request_response = { request = \"100 B\", response = \"300 B\", count = 5 }";
    for (flow, bytes) in [
        (BULK, 96_000.0),
        ("bytes = \"96100 B\"", 96_100.0),
        ("type = \"quic\"\nbytes = \"90 kB\"\nquic.streams = 3", 90_000.0),
        (asks, 1500.0),
        (&format!("type = \"quic\"\n{asks}"), 1500.0),
    ] {
        let scenario = scenario("", flow);
        let mut sequence = Sequence::at_bottleneck(&scenario);
        run(&scenario, 1, &mut sequence).expect("reachable");
        let panel = sequence.plot(Plot::Throughput, 0, "goodput", Guides::default());
        let points = &panel.series[0].points;
        let megabits: f64 = points.windows(2).map(|step| step[0].1 * (step[1].0 - step[0].0)).sum();
        assert!((megabits * 1e6 / 8.0 - bytes).abs() < 1e-3, "{flow}: {} B", megabits * 1e6 / 8.0);
    }
}

/// A node forwards the packets of others: of its own it sends the datagrams at once. 10 ms on the way and 1000 B at 1 Mbit/s take 18 ms per
/// link; R adds 5 ms.
#[test]
fn forwarding_takes_time_between_links_only() {
    let link = |one: &str, other: &str| {
        format!(
            "[[links]]\nname = \"{one}{other}\"\nbetween = [\"{one}\", \"{other}\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n"
        )
    };
    let text = format!(
        "name = \"t\"\ntime_limit = \"9 s\"\n{}{}[nodes.A]\nforwarding = \"50 ms\"\n[nodes.R]\nforwarding = \"5 ms\"\n[nodes.B]\nforwarding = \"50 ms\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"A\"\nto = \"B\"\ntype = \"udp\"\nrate = \"80 kbit/s\"\npacket = \"1000 B\"\n",
        link("A", "R"),
        link("R", "B")
    );
    let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    let delay = summary.flows[0].delay.as_ref().expect("datagrams came");
    // A histogram has three digits.
    assert!((delay.median_s - 0.041).abs() < 1e-4 && (delay.p99_s - 0.041).abs() < 1e-4, "{delay:?}");
}

/// Where a connection is split, each host still sees the other's address: node n (from 1) is 10.0.n.1.
#[test]
fn captures_of_a_split_have_the_addresses_of_the_hosts() {
    use bentpipe_sim::record::{Pcap, Snap};
    let scenario = scenario("", "bytes = \"96 kB\"\nsplit = [{ at = \"R\" }]");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    let taps = Tap::find(&scenario, "all").expect("taps");
    let mut pcap = Pcap::create(&path, &scenario, &taps, Snap::Headers, "").expect("writable");
    run(&scenario, 1, &mut pcap).expect("reachable");
    pcap.finish().expect("written");
    let bytes = std::fs::read(&path).expect("readable");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
    let (mut at, mut ends) = (0, std::collections::BTreeSet::new());
    while at < bytes.len() {
        if word(at) == 6 {
            // The third bytes of source and destination, in the IPv4 header behind 28 bytes.
            ends.insert((bytes[at + 28 + 14], bytes[at + 28 + 18]));
        }
        at += word(at + 4);
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [(1, 3), (3, 1)]);
}
