//! QUIC flows: their keys, writing them as text, and refused settings.

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{AckFrequency, FlowKind, QuicControl, QuicFlow, Scenario, Workload};

/// A link of 20 Mbit/s and 300 ms each way, and a flow of QUIC with these lines.
fn text(lines: &str) -> String {
    format!(
        "name = \"quic\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"20 Mbit/s\"\ndelay = \"300 ms\"\n\
         forward.throughput_advice = \"18 Mbit/s\"\n[[flows]]\nname = \"data\"\ntype = \"quic\"\nfrom = \"A\"\nto = \"B\"\n{lines}\n"
    )
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "quic.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)))
}

fn quic(scenario: &Scenario) -> QuicFlow {
    match &scenario.flows[0].kind {
        FlowKind::Quic(quic) => **quic,
        other => panic!("{other:?}"),
    }
}

const ALL: &str = "bytes = \"1 MB\"\nquic = { congestion_control = \"linux-cubic\", zero_rtt = true, streams = 7, \
                   initial_window = \"20 kB\", initial_rtt = \"700 ms\", pacing = false, unordered = true, receive_window = \"2 MB\", send_window = \"3 MB\", datagram = \"1350 B\", \
                   ack_frequency = { every = \"10 packets\", delay = \"50 ms\", at_once = true }, scone = true, idle_timeout = \"60 s\", encryption = false }";

#[test]
fn every_key_arrives_and_is_written() {
    let scenario = parse(&text(ALL));
    let expected = QuicFlow {
        workload: Workload::Bulk(Bytes::new(1_000_000)),
        congestion_control: QuicControl::LinuxCubic,
        zero_rtt: true,
        streams: 7,
        initial_window: Some(Bytes::new(20_000)),
        initial_rtt: Some(Duration::from_millis(700)),
        pacing: false,
        unordered: true,
        repair: None,
        receive_window: Some(Bytes::new(2_000_000)),
        send_window: Some(Bytes::new(3_000_000)),
        datagram: Some(1350),
        ack_frequency: Some(AckFrequency { every: 10, delay: Some(Duration::from_millis(50)), at_once: true }),
        scone: true,
        idle_timeout: Duration::from_secs(60),
        encryption: false,
    };
    assert_eq!(quic(&scenario), expected);
    let advice = [0, 1].map(|link| scenario.links[link].throughput_advice);
    assert_eq!(advice, [Rate::from_bits_per_second(18_000_000), None]);
    let coded = "bytes = \"1 MB\"\nquic = { repair = \"3 %\" }";
    assert_eq!(quic(&parse(&text(coded))).repair, Probability::new(0.03));
    let large = "bytes = \"1 MB\"\nquic = { datagram = \"9 kB\", initial_window = \"18 kB\" }";
    for lines in [ALL, coded, large, "bytes = \"1 MB\"", "greedy = true\nquic = { ack_frequency = { every = 3 } }"] {
        let scenario = parse(&text(lines));
        assert_eq!(parse(&scenario.to_toml()), scenario, "{lines}");
    }
    for control in QuicControl::ALL {
        assert_eq!(QuicControl::named(control.word()), Some(control));
    }
}

#[test]
fn defaults_are_quinns() {
    let scenario = parse(&text("bytes = \"10 segments\""));
    // A full packet of 1452 B has at most 1424 B of data.
    assert_eq!(quic(&scenario), QuicFlow::new(Workload::Bulk(Bytes::new(10 * 1424))));
}

#[test]
fn mistakes_are_named() {
    let said = |lines: &str| {
        let errors = Scenario::parse(&text(lines), "quic.toml", &[]).expect_err("a mistake");
        errors.render(false)
    };
    let cases = [
        ("bytes = \"1 MB\"\nquic = { congestion_control = \"vegas\" }", "one of \"cubic\", \"reno\", \"bbr\""),
        ("bytes = \"1 MB\"\nquic = { congestion_control = \"linux-bbr\" }", "quinn paces by the window alone"),
        ("bytes = \"1 MB\"\nquic = { streams = 0 }", "a number of streams from 1 to 1000"),
        ("bytes = \"1 MB\"\nquic = { datagram = \"600 B\" }", "from 1200 B to 65507 B"),
        ("bytes = \"1 MB\"\nquic = { initial_window = \"1 B\" }", "cannot be 1 B"),
        (
            "bytes = \"1 MB\"\nquic = { datagram = \"9 kB\", initial_window = \"17999 B\" }",
            "at least two datagrams, 18 kB",
        ),
        ("bytes = \"1 MB\"\nquic = { ack_frequency = { delay = \"1 s\" } }", "every"),
        ("bytes = \"1 MB\"\nquic = { idle_timeout = \"1 us\" }", "too short"),
        ("bytes = \"1 MB\"\nquic = { zero_rtt = 1 }", "true or false"),
        ("greedy = true\nquic = { repair = \"3 %\" }", "needs data of a known size"),
        ("bytes = \"1 MB\"\nquic = { repair = \"3 %\", streams = 2 }", "`bytes`, and one stream"),
        ("bytes = \"1 MB\"\nquic = { tcp = true }", "has no key `tcp`"),
        ("quic = { streams = 2 }", "exactly one of bytes, greedy, paced, request_response"),
        ("bytes = \"1 MB\"\ntcp = { variant = \"sack\" }", "applies to tcp flows, but this flow is quic"),
        (
            "bytes = \"1 MB\"\nspoof = { at = \"A\", buffer = \"9 packets\" }",
            "applies to tcp flows, but this flow is quic",
        ),
        ("bytes = \"1 MB\"\nrate = \"1 Mbit/s\"", "applies to udp flows, but this flow is quic"),
    ];
    for (lines, expected) in cases {
        let said = said(lines);
        assert!(said.contains(expected) && said.contains("quic.toml:"), "{lines}\n{said}");
    }
    let tcp = text("bytes = \"1 MB\"\nquic = { streams = 2 }").replace("type = \"quic\"\n", "");
    let errors = Scenario::parse(&tcp, "quic.toml", &[]).expect_err("a mistake").render(false);
    assert!(errors.contains("applies to quic flows, but this flow is tcp"), "{errors}");
}

/// 1 MB over 20 Mbit/s and 300 ms. Packets of 1480 B on the line have 1424 B of data: 702 of them and a last one with 352 B behind
/// its 56 B of headers. The handshake is 1228 B there and back; with 0-RTT there is none.
#[test]
fn the_limit_by_hand() {
    let time = |lines: &str| {
        let scenario = parse(&text(lines));
        let limit = flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("a connection");
        limit.time.expect("it ends").as_secs_f64()
    };
    // 1 000 000 - 702 * 1424 = 352.
    let data = 0.3 + (702.0 * 1480.0 + 352.0 + 56.0) * 8.0 / 20e6;
    let handshake = 0.6 + 2.0 * 1228.0 * 8.0 / 20e6;
    // Rounded up to a tick of 1/64 ns for each of four sums.
    assert!((time("bytes = \"1 MB\"") - data - handshake).abs() < 1e-9);
    assert!((time("bytes = \"1 MB\"\nquic = { zero_rtt = true }") - data).abs() < 1e-9);
}

/// Every TCP connection becomes QUIC's, whatever lies between its ends; QUIC's get the control.
#[test]
fn variants_of_quic() {
    let path = format!("{}/../../scenarios/split-stp.toml", env!("CARGO_MANIFEST_DIR"));
    let split = Scenario::load(path, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    for (name, control) in Scenario::QUIC_VARIANTS.iter().zip(QuicControl::ALL) {
        assert_eq!(*name, format!("quic-{}", control.word()));
        for before in [&split, &parse(&text(ALL))] {
            let changed = before.with_variant(name).expect("a variant");
            for (flow, was) in changed.flows.iter().zip(&before.flows) {
                let FlowKind::Quic(quic) = &flow.kind else { panic!("{:?}", flow.kind) };
                assert_eq!((quic.congestion_control, Some(quic.workload)), (control, was.kind.workload()));
            }
            assert_eq!(parse(&changed.to_toml()), changed);
        }
    }
    assert!(split.with_variant("quic-vegas").is_err());
}
