//! Flows of QUIC: they complete whatever the links do, they are the same again for the same seed, and no limit is beaten.

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, QuicKind, QuicPacket, Who};
use bentpipe_engine::tcp::Abort;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::record::{Plot, Sequence, Summary};
use bentpipe_sim::{
    Body, Fingerprint, FlowResult, Observer, Packet, Passage, RunResult, Timers, in_parallel, run, run_with,
};
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

/// A transfer of so much data with these settings.
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

/// The least time that the links allow, seconds.
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

/// Losses and all controls: the same seed is the same run beside others, in other threads, with lazy and literal timers, with and
/// without an observer; another seed is another run. TLS draws other keys each time, so these change nothing.
#[test]
fn a_seed_is_a_run() {
    for control in CONTROLS {
        let settings = format!("congestion_control = \"{control}\", streams = 3");
        let scenario = geo("loss = \"1 %\"", &bulk("500 kB", &settings));
        let alone = fingerprint(&scenario);
        let beside = in_parallel(vec![(); 4], 4, |()| Ok(fingerprint(&scenario))).expect("threads");
        assert_eq!(beside, [alone; 4], "{control}");
        let plain = results(&scenario);
        let watched = run(&scenario, 1, &mut Fingerprint::default()).expect("a path");
        let literal = run_with(&scenario, 1, &mut NoProbe, Timers::Literal, |_| true).expect("a path");
        assert_eq!(plain, watched, "{control}");
        assert_eq!(plain, literal, "{control}");
        assert_ne!(fingerprint(&scenario.with_seed(2)), alone, "{control}");
    }
}

/// The run is the same in another process: this test starts itself, and compares.
#[test]
fn another_process_has_the_same_run() {
    const ASKED: &str = "BENTPIPE_QUIC_FINGERPRINT";
    let all: Vec<String> = CONTROLS
        .iter()
        .map(|control| {
            let settings = format!("congestion_control = \"{control}\", zero_rtt = true");
            format!("{:016x}", fingerprint(&geo("loss = \"2 %\"", &bulk("300 kB", &settings))))
        })
        .collect();
    let line = format!("fingerprints {}", all.join(" "));
    if std::env::var_os(ASKED).is_some() {
        println!("{line}");
        return;
    }
    let program = std::env::current_exe().expect("this test");
    let arguments = ["quic::another_process_has_the_same_run", "--exact", "--nocapture"];
    let output = std::process::Command::new(program).args(arguments).env(ASKED, "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&line), "{line}\n{said}");
}

/// Without encryption all packets have the same lengths, numbers and times.
#[test]
fn packets_in_the_clear_are_the_same() {
    for settings in ["", ", zero_rtt = true"] {
        let run =
            |on: bool| fingerprint(&geo("loss = \"1 %\"", &bulk("500 kB", &format!("encryption = {on}{settings}"))));
        assert_eq!(run(true), run(false), "{settings}");
    }
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

/// With ACKs asked for every 20 packets far fewer come back.
#[test]
fn acks_are_as_rare_as_asked() {
    let acks = |settings| results(&geo("", &bulk("2 MB", settings))).links[1].offered;
    let (usual, rare) = (acks(""), acks("ack_frequency = { every = \"20 packets\", delay = \"100 ms\" }"));
    assert!(usual > 4 * rare, "{usual} packets, {rare} with fewer ACKs");
}

/// With 0-RTT a frame that asks for rare ACKs comes after a round trip, when all of the data has left. A receiver that knows sends as
/// few from the start: an ACK for 50 packets, or after the 25 ms in which 20 Mbit/s bring as many.
#[test]
fn a_receiver_that_knows_acknowledges_rarely_at_once() {
    let acks = |at_once: bool| {
        let asked = format!("ack_frequency = {{ every = 50, at_once = {at_once} }}");
        let run = results(&geo("", &bulk("1 MB", &format!("zero_rtt = true, initial_window = \"2 MB\", {asked}"))));
        assert_eq!(run.flows[0].delivered, 1_000_000);
        run.links[1].offered
    };
    let (asked, known) = (acks(false), acks(true));
    assert!(asked > 5 * known, "{asked} packets, {known} if it is known");
}

/// What is lost is repaired half a round trip after it was sent, not one and a half: before any packet could be sent again. With more
/// losses than repair symbols the data comes as without them.
#[test]
fn repair_symbols_take_the_place_of_lost_packets() {
    let known = "zero_rtt = true, initial_window = \"2 MB\", unordered = true";
    let took = |seed, loss: &str, repair: &str| {
        let flows = bulk("1 MB", &format!("{known}{repair}"));
        let flow = result(&geo(&format!("loss = \"{loss}\""), &flows).with_seed(seed));
        assert_eq!((flow.delivered, flow.aborted), (1_000_000, None), "seed {seed}, {loss}{repair}");
        assert!(flow.acked_at.is_some(), "the sender learns that it is over");
        seconds(&flow)
    };
    for seed in 1..=3 {
        let [plain, coded] = ["", ", repair = \"5 %\""].map(|repair| took(seed, "1 %", repair));
        assert!(coded < 0.9 && plain > 0.9, "seed {seed}: {coded} s, {plain} s without repair symbols");
        took(seed, "10 %", ", repair = \"1 %\"");
    }
}

/// quinn gives up a stream of which more than 1024 pieces wait for lost ones. BBR with a known window overshoots a path of 250 Mbit/s
/// and 650 ms, whose queue then drops every few packets: read in order, the stream ends the connection at both ends. Data that is taken
/// in any order does not wait.
#[test]
fn many_gaps_end_a_stream_that_is_read_in_order() {
    let path = format!("{}/../../scenarios/geo-board.toml", env!("CARGO_MANIFEST_DIR"));
    let run = |unordered: &str| {
        let quic = [
            ("congestion_control", "bbr"),
            ("zero_rtt", "true"),
            ("initial_window", "19.6 MB"),
            ("encryption", "false"),
            ("unordered", unordered),
        ];
        let mut sets = vec![
            ("flows.download.type".to_owned(), "quic".to_owned()),
            ("flows.download.bytes".to_owned(), "100 MB".to_owned()),
            ("links.sat.backward.rate".to_owned(), "30 Mbit/s".to_owned()),
        ];
        sets.extend(quic.map(|(key, value)| (format!("flows.download.quic.{key}"), value.to_owned())));
        result(&Scenario::load(&path, &sets).unwrap_or_else(|errors| panic!("{errors}")))
    };
    let (in_order, any_order) = (run("false"), run("true"));
    assert!(in_order.aborted.is_some() && in_order.delivered < 100_000_000, "{in_order:?}");
    assert_eq!((any_order.delivered, any_order.aborted), (100_000_000, None));
}

/// Flow control and the initial window bound what is in flight.
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

/// Advice of 18 Mbit/s: signal 45, 100 kbit/s times 10^2.25, 17.78 Mbit/s. Over 600 ms the window that fills it is 1.52 MB, which the
/// path of 1.5 MB and its queue of as much can hold: nothing is lost. Slow start without advice fills both and loses packets.
#[test]
fn advice_keeps_the_queue_short() {
    let losses = |link: &str, quic: &str| {
        let scenario = geo(link, &bulk("20 MB", quic));
        let result = results(&scenario);
        assert_eq!(result.flows[0].delivered, 20_000_000, "{link}, {quic}");
        (result.links[0].dropped_full, result.flows[0].stats.max_flight)
    };
    const ADVICE: &str = "throughput_advice = \"18 Mbit/s\"";
    let (alone, followed) = (losses(ADVICE, "scone = false"), losses(ADVICE, "scone = true"));
    assert!(alone.0 > 0 && followed.0 == 0, "{alone:?}, {followed:?}");
    // The window counts data, the flight packets with their headers, and packets without data.
    let window = 17_782_794 * 6 / 80 * 8 / 7;
    assert!((window * 9 / 10..window * 11 / 10).contains(&followed.1), "{followed:?}");
    let unadvised = losses("", "scone = true");
    assert!(unadvised.0 > 0 && unadvised.1 > followed.1, "{unadvised:?}");
}

/// A gateway of shape `link` advises as a network element before the link does: connections behave as they do at the same advice.
#[test]
fn a_gateway_advises_as_a_link_does() {
    let through = |link: &str, gateway: &str| {
        let boxes = format!(
            "[[gateways]]\nname = \"boxes\"\nshape = \"link\"\nnear = \"client\"\nfar = \"server\"\n{gateway}\n"
        );
        fingerprint(&geo(link, &(boxes + &bulk("5 MB", "scone = true"))))
    };
    let unadvised = through("", "");
    let links = |there: u32, back: u32| {
        let advice = |way, rate| format!("{way}.throughput_advice = \"{rate} Mbit/s\"\n");
        through(&(advice("forward", there) + &advice("backward", back)), "")
    };
    let by_link = links(15, 19);
    assert_ne!(by_link, unadvised);
    // The far box sends what the server does, the near one what the client does.
    assert_eq!(through("", "throughput_advice = [\"19 Mbit/s\", \"15 Mbit/s\"]"), by_link);
    assert_eq!(through("", "throughput_advice = \"line\""), links(20, 20));
}

/// A link layer repairs what the channel loses: no packet is lost to QUIC.
#[test]
fn a_layer_repairs_under_it() {
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
    let plain = geo("loss = \"1 %\"", &bulk("5 MB", ""));
    let repaired = geo("loss = \"1 %\"", &(layer.to_owned() + &bulk("5 MB", "")));
    let (plain, repaired) = (result(&plain), result(&repaired));
    assert!(plain.stats.retransmits > 20, "{:?}", plain.stats);
    assert!(seconds(&repaired) < 0.5 * seconds(&plain), "{} s, {} s", seconds(&repaired), seconds(&plain));
}

/// Datagrams of a fixed size are all that long, and are not searched for.
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

/// What observers are told.
#[derive(Default)]
struct Told {
    sent: Vec<(u32, QuicPacket)>,
    received: Vec<(u32, QuicPacket)>,
    windows: u64,
    round_trips: Vec<Duration>,
}

impl Probe for Told {
    fn event(&mut self, _: Time, who: Who, event: &Event) {
        match *event {
            Event::QuicSent(packet) => self.sent.push((who.0, packet)),
            Event::QuicReceived(packet) => self.received.push((who.0, packet)),
            Event::Window { .. } => self.windows += 1,
            Event::Rtt { sample, .. } => self.round_trips.push(sample),
            _ => {}
        }
    }
}

impl Observer for Told {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, packet: &Packet) {
        assert!(matches!(packet.body, Body::Quic(_)));
    }
}

/// An observer sees every type of packet, each packet that arrived as it was sent, and the data's place in its stream.
#[test]
fn packets_are_told() {
    let scenario = geo("", &bulk("300 kB", "zero_rtt = true"));
    let mut told = Told::default();
    let result = run(&scenario, 1, &mut told).expect("a path");
    for kind in [QuicKind::Initial, QuicKind::ZeroRtt, QuicKind::Handshake, QuicKind::OneRtt] {
        assert!(told.sent.iter().any(|(_, packet)| packet.kind == kind), "{kind:?}");
    }
    for (who, packet) in &told.received {
        let same = |(from, sent): &&(u32, QuicPacket)| {
            (*from ^ 1, sent.kind, sent.number) == (*who, packet.kind, packet.number)
        };
        let sent = told.sent.iter().find(same).unwrap_or_else(|| panic!("{packet:?} was not sent"));
        assert_eq!(QuicPacket { repeats: false, ..sent.1 }, *packet);
    }
    // Without losses the data is sent once: its pieces, put one after the other, are the stream.
    let mut data: Vec<_> = told.sent.iter().filter(|(who, packet)| *who == 0 && packet.data > 0).collect();
    data.sort_by_key(|(_, packet)| packet.at);
    let mut end = 0;
    for (_, packet) in data {
        assert_eq!((packet.at.map(|(_, offset)| offset), packet.repeats), (Some(end), false));
        end += u64::from(packet.data);
    }
    assert_eq!((end, result.flows[0].stats.retransmits), (300_000, 0));
    assert!(told.windows > 50);
    // A round trip of 600 ms, with the lines' time, an ACK's delay of 25 ms and the queue.
    assert!(told.round_trips.iter().all(|rtt| (600..1300).contains(&(rtt.as_nanos() / 1_000_000))));
}

/// A plot has points for data, ACKs, losses and repetitions.
#[test]
fn a_plot_has_its_points() {
    let scenario = geo("loss = \"1 %\"", &bulk("1 MB", ""));
    let mut sequence = Sequence::at_bottleneck(&scenario);
    run(&scenario, 1, &mut sequence).expect("a path");
    let flow = &sequence.flows[0];
    let repeated = flow.sent.iter().filter(|(_, again)| *again).count();
    assert!(flow.sent.len() > 700 && flow.received.len() > 700 && flow.acks.len() > 300);
    assert!(repeated > 3 && flow.channel_drops.len() > 3 && flow.windows.len() > 100);
    // 1 MB in segments of at most 1424 B.
    let last = flow.acks.iter().map(|(_, segment)| *segment).fold(0.0, f64::max);
    assert_eq!(last, (1_000_000.0_f64 / 1424.0).ceil());
    let panel = sequence.plot(Plot::Sequence, 0, "quic", Default::default());
    assert!(panel.series.len() >= 3);
}
