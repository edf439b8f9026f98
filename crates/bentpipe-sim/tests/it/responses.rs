//! Times of responses: from each request to the last byte of its response.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Duration;
use bentpipe_sim::record::Summary;
use bentpipe_sim::{Fingerprint, FlowResult, RunResult, run};
use bentpipe_study::scenario::Scenario;

use crate::worlds::parse;

/// Flows over a line of 1 Tbit/s that delays by 100 ms, so that only round trips take milliseconds.
fn asks(time_limit: &str, flows: &str) -> Scenario {
    parse(&format!(
        "name = \"pages\"\ntime_limit = \"{time_limit}\"\n[[links]]\nname = \"sky\"\nbetween = [\"ship\", \"hub\"]\nrate = \"1 Tbit/s\"\ndelay = \"100 ms\"\n{flows}"
    ))
}

/// A flow with requests for responses of one packet.
fn flow(name: &str, more: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nfrom = \"ship\"\nto = \"hub\"\n{more}\n\
         request_response = {{ request = \"500 B\", response = \"1 kB\", think = \"1 s\", count = 3 }}\n"
    )
}

fn results(scenario: &Scenario) -> RunResult {
    run(scenario, scenario.seed, &mut NoProbe).expect("a path")
}

fn times(flow: &FlowResult) -> Vec<u64> {
    let millis = |time: &Duration| time.as_nanos() / 1_000_000;
    flow.responses.as_ref().map_or_else(Vec::new, |responses| responses.times().iter().map(millis).collect())
}

fn millis(seconds: Option<f64>) -> Option<u64> {
    seconds.map(|seconds| (seconds * 1e3) as u64)
}

/// A round trip of 200 ms for each request, and before the first one another to open the connection.
#[test]
fn a_response_takes_a_round_trip_and_the_first_the_opening_too() {
    for kind in ["", "type = \"quic\"", "type = \"stp\"\nstp = { rate = \"1 Gbit/s\", rtt = \"200 ms\" }"] {
        let scenario = asks("100 s", &flow("web", kind));
        assert_eq!(times(&results(&scenario).flows[0]), [400, 200, 200], "{kind}");
    }
    let zero_rtt = asks("100 s", &flow("web", "type = \"quic\"\nquic = { zero_rtt = true }"));
    assert_eq!(times(&results(&zero_rtt).flows[0]), [200, 200, 200]);
}

/// With an observer all ends exist for the whole run; without one, what remains of an end keeps its times.
#[test]
fn an_end_that_is_gone_leaves_its_times() {
    let scenario = asks("2000 s", &flow("web", "count = 40\nstagger = \"10 s\""));
    let observed = run(&scenario, scenario.seed, &mut Fingerprint::default()).expect("a path");
    for (flow, other) in results(&scenario).flows.iter().zip(&observed.flows) {
        assert_eq!(times(flow), [400, 200, 200]);
        assert_eq!(flow.responses, other.responses);
    }
}

/// The run ends while the third request waits: the time that falls on it is unknown, and the median of three is the longer of two.
#[test]
fn a_request_without_a_response_ranks_last() {
    let scenario = asks("2700 ms", &flow("web", ""));
    let result = results(&scenario);
    assert_eq!(times(&result.flows[0]), [400, 200]);
    let summary = &Summary::new(&scenario, &result).flows[0];
    // Two responses of 1 kB in 2.7 s.
    assert_eq!((summary.bytes, summary.goodput_bit_s), (2000, Some(16_000.0 / 2.7)));
    let response = summary.response.expect("it asks");
    assert_eq!((response.requests, response.answered), (3, 2));
    assert_eq!(millis(response.median_s), Some(400));
    assert_eq!((response.mean_s, response.p95_s, response.p99_s, response.longest_s), (None, None, None, None));
}

/// Flows in a row whose names differ only in a number are taken together, also in a scenario that has been written out.
#[test]
fn entries_are_taken_together() {
    let flows = [flow("web", "count = 2"), flow("mail-1", ""), flow("mail-old", "")].concat();
    let bulk = "[[flows]]\nname = \"bulk\"\nfrom = \"ship\"\nto = \"hub\"\nbytes = \"1 kB\"\n";
    let scenario = asks("100 s", &(flows + bulk));
    for scenario in [parse(&scenario.to_toml()), scenario] {
        let summary = Summary::new(&scenario, &results(&scenario));
        let entries: Vec<_> = summary
            .responses
            .iter()
            .map(|one| (&*one.name, one.flows, one.response.requests, millis(one.response.longest_s)))
            .collect();
        let longest = Some(400);
        assert_eq!(entries, [("web", 2, 6, longest), ("mail-1", 1, 3, longest), ("mail-old", 1, 3, longest)]);
        assert!(summary.flows[4].response.is_none());
    }
}

/// A client in TIME-WAIT answers the FIN that its peer sends again, because a burst has lost the ACK of the first. Its responses remain.
#[test]
fn a_late_fin_takes_no_responses_away() {
    let link = |name: &str, ends: [&str; 2], rate: &str, delay: u32, more: &str| {
        let [one, other] = ends;
        format!(
            "[[links]]\nname = \"{name}\"\nbetween = [\"{one}\", \"{other}\"]\nrate = \"{rate}\"\ndelay = \"{delay} ms\"\n{more}\n"
        )
    };
    let bursts = "forward.queue = \"2 packets\"\nforward.bursts = { gap = { uniform = [\"1341 ms\", \"2414 ms\"] }, \
                  length = { uniform = [\"1 ms\", \"201 ms\"] }, loss = \"100 %\" }";
    let links = [
        link("near", ["H1", "R1"], "10 Mbit/s", 9, ""),
        link("sat", ["R1", "R2"], "4106 kbit/s", 7, bursts),
        link("far", ["R2", "H2"], "10 Mbit/s", 9, ""),
    ];
    let flow = |start: u32, sends: &str| {
        format!("[[flows]]\nfrom = \"H1\"\nto = \"H2\"\nstart = \"{start} ms\"\ntcp.variant = \"tahoe\"\n{sends}\n")
    };
    let asks = "request_response = { request = \"1761 B\", response = \"13941 B\", think = \"39 ms\", count = 3 }";
    let flows = [flow(1239, asks), flow(0, "bytes = \"1 B\""), flow(1649, "bytes = \"1 B\"")];
    let scenario =
        parse(&format!("name = \"t\"\ntime_limit = \"60 s\"\nseed = 107\n{}{}", links.concat(), flows.concat()));
    let watched = run(&scenario, 107, &mut Fingerprint::default()).expect("a path");
    assert_eq!(results(&scenario), watched);
    assert_eq!(watched.flows[0].responses.as_ref().map(|responses| responses.times().len()), Some(3));
}
