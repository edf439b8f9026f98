use bentpipe_sim::run as simulate;

use super::*;

fn shipped(name: &str, settings: &[&str]) -> Scenario {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let pair = |setting: &&str| setting.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let settings: Vec<_> = settings.iter().map(|setting| pair(setting).expect("KEY=VALUE")).collect();
    Scenario::load(path, &settings).unwrap_or_else(|errors| panic!("{errors}"))
}

fn drawn(scenario: &Scenario, late: Option<&Lateness>, seed: u64) -> Vec<Option<Time>> {
    let bulks = bulks(scenario).unwrap_or_else(|error| panic!("{error}"));
    let all = redraw(scenario, &bulks, late, seed, |_| true).unwrap_or_else(|error| panic!("{error}"));
    assert!(all.iter().all(|went| went.intact && went.aborted.is_none()));
    all.iter().map(|went| went.received_at).collect()
}

/// Only lateness separates the real run from virtual time: without it they are equal to the nanosecond.
#[test]
fn a_loop_that_is_never_late_is_virtual_time() {
    let cases: [(&str, &[&str]); 5] = [
        ("geo", &[]),
        ("meo", &[]),
        ("leo", &["flows.download.bytes=20 MB"]),
        ("geo-bursts", &["flows.download.bytes=5 MB"]),
        ("slacp-geo", &["flows.download.bytes=5 MB"]),
    ];
    for (name, settings) in cases {
        let scenario = shipped(name, settings);
        let result = simulate(&scenario, scenario.seed, &mut NoProbe).expect("connected");
        let simulated: Vec<_> = result.flows.iter().map(|flow| flow.received_at).collect();
        assert_eq!(drawn(&scenario, None, 1), simulated, "{name}");
    }
}

#[test]
fn lateness_is_drawn_by_seed() {
    let mut late = Lateness::default();
    (1..100).for_each(|micros| late.record(Time::ZERO, Time::from_nanos(micros * 1000)));
    let scenario = shipped("geo", &["flows.download.bytes=100 kB"]);
    let [first, again, other] = [1, 1, 2].map(|seed| drawn(&scenario, Some(&late), seed));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let on_time = drawn(&scenario, None, 1)[0].expect("it ends");
    let late = first[0].expect("it ends");
    // Seven round trips of fewer than ten wake-ups, each at most 99 us late.
    assert!(on_time < late && late < on_time + Duration::from_millis(7), "{on_time:?} {late:?}");
}

/// A transfer over a satellite link with this text, between two gateways, one with a processing time.
fn crossing(sat: &str, rest: &str, flow: &str) -> Scenario {
    crossing_with(&[], sat, rest, flow)
}

fn crossing_with(sets: &[(String, String)], sat: &str, rest: &str, flow: &str) -> Scenario {
    let end = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n"
        )
    };
    let text = format!(
        "name = \"crossing\"\ntime_limit = \"300 s\"\n{rest}\n[nodes.G1]\nforwarding = \"6 us\"\n{}{}[[links]]\nname = \"sat\"\n\
         between = [\"G1\", \"G2\"]\ndelay = \"250 ms\"\n{sat}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\n{flow}\n",
        end("ground", "A", "G1"),
        end("tail", "G2", "B")
    );
    Scenario::parse(&text, "crossing.toml", sets).unwrap_or_else(|errors| panic!("{errors}"))
}

const LAYER: &str = "[[layers]]\nname = \"layer\"\nover = \"sat\"\n";

/// Each kind of link, with and without a layer: equal by both clocks, to the nanosecond.
#[test]
fn links_of_any_paper_are_the_same_in_both_clocks() {
    let links = [
        "rate = \"2 Mbit/s\"\nqueue = \"100 packets\"",
        "rate = \"2 Mbit/s\"\nmtu = \"1500 B\"",
        "rate = \"2 Mbit/s\"\nqueue = { limit = \"50 packets\", discipline = \"red\" }",
        "rate = \"2 Mbit/s\"\npacket_bursts = { start = \"1 %\", burstiness = \"50 %\" }",
        "rate = \"2 Mbit/s\"\nbursts = { schedule = [[\"1 s\", \"200 ms\"]] }",
        "rate_trace = [4, 9, 12, 20, 26, 31]",
        "rate = \"8 Mbit/s\"\ntdma = { frame = \"20 ms\", bursts = [[\"1 ms\", \"2 ms\"], [\"9 ms\", \"3 ms\"]] }",
        "rate = \"2 Mbit/s\"\nframing = \"aal5\"",
        "rate = \"2 Mbit/s\"\nframing = \"aal5\"\natm = { line = \"8 Mbit/s\", buffer = \"4000 cells\" }",
    ];
    for link in links {
        for layer in ["", LAYER] {
            let scenario = crossing(link, layer, "bytes = \"200 kB\"");
            let result = simulate(&scenario, scenario.seed, &mut NoProbe).expect("connected");
            assert_eq!((result.flows[0].delivered, result.timed_out), (200_000, false), "{link} {layer}");
            assert_eq!(drawn(&scenario, None, 1), [result.flows[0].received_at], "{link} {layer}");
        }
    }
}

/// Unsupported scenarios are refused with the supported alternative.
#[test]
fn what_real_ends_cannot_do_is_refused_with_a_reason() {
    let arq = "[[layers]]\nname = \"layer\"\nover = \"sat\"\nchannels = [{ name = \"all\", transmissions = \"unlimited\" }]\n";
    let stp = "{ rate = \"2 Mbit/s\", rtt = \"520 ms\" }";
    let flows = [
        (format!("type = \"stp\"\nbytes = \"1 MB\"\nstp = {stp}"), "only TCP"),
        ("type = \"udp\"\nrate = \"1 Mbit/s\"\npacket = \"1000 B\"".to_owned(), "only TCP"),
        ("greedy = true".to_owned(), "no number of bytes"),
        ("bytes = \"1 MB\"\nsplit = [{ at = \"G1\" }]".to_owned(), "one TCP connection"),
        (format!("bytes = \"1 MB\"\nsplit = [{{ at = \"G1\", stp = {stp} }}]"), "one TCP connection"),
        ("bytes = \"1 MB\"\nspoof = { at = \"G1\", buffer = \"50 packets\" }".to_owned(), "one TCP connection"),
        ("bytes = \"1 MB\"\ntcp.profile = \"ns2\"".to_owned(), "simulator shortcuts"),
    ];
    for (flow, reason) in flows {
        let refused = bulks(&crossing("rate = \"2 Mbit/s\"", arq, &flow)).expect_err("no real ends");
        assert!(refused.what.contains(reason) && refused.key.starts_with("flows.data"), "{flow}: {refused:?}");
    }
    let weightless = arq.replace("over", "weightless = true\nover");
    let scenario = crossing("rate = \"2 Mbit/s\"", &weightless, "bytes = \"1 MB\"");
    let hosts = [scenario.node("A"), scenario.node("B")].map(|node| node.expect("a node"));
    let refused = Network::new(&scenario, &hosts).expect_err("no frames without a weight");
    assert!(refused.what.contains("frames with bytes are not weightless"), "{refused:?}");
}

/// A layer over one link and cells on another: each path has its own channel at the port.
#[test]
fn a_layer_and_cells_on_two_links() {
    let cells = [("links.ground.framing".to_owned(), "aal5".to_owned())];
    let scenario = crossing_with(&cells, "rate = \"2 Mbit/s\"", LAYER, "bytes = \"200 kB\"");
    assert!(scenario.links[0].config.cells.is_some());
    let result = simulate(&scenario, scenario.seed, &mut NoProbe).expect("connected");
    assert_eq!(drawn(&scenario, None, 1), [result.flows[0].received_at]);
}
