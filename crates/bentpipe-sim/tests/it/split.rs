//! A flow that is split, in virtual time: its legs, its limits, its records.

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::Flags;
use bentpipe_engine::units::Time;
use bentpipe_sim::record::{Summary, Tap};
use bentpipe_sim::{Body, Observer, Packet, Passage, Timers, run, run_with};
use bentpipe_study::scenario::{ConnectionId, Scenario};

/// Three legs: 10 Mbit/s over 20 ms, 2 Mbit/s over 250 ms, 10 Mbit/s over 5 ms; ACKs of the second by a modem.
const WORLD: &str = r#"
name = "split"
[tcp]
mss = "960 B"
[[links]]
name = "terrestrial"
between = ["server", "uplink"]
rate = "10 Mbit/s"
delay = "20 ms"
[[links]]
name = "sat"
from = "uplink"
to = "downlink"
rate = "2 Mbit/s"
delay = "250 ms"
LOSS
[[links]]
name = "modem"
from = "downlink"
to = "uplink"
rate = "28.8 kbit/s"
delay = "40 ms"
[[links]]
name = "home"
between = ["downlink", "PC"]
rate = "10 Mbit/s"
delay = "5 ms"
[[flows]]
name = "data"
from = "server"
to = "PC"
FLOW
[[flows]]
name = "other"
from = "server"
to = "PC"
bytes = "50 kB"
start = "3 s"
"#;

const SPLIT: &str = r#"bytes = "2 MB"
split = [
  { at = "uplink", buffer = "200 kB", tcp = { variant = "burst", fixed_window = 80, ack = { every = 8 } } },
  { at = "downlink", buffer = "100 kB", tcp.variant = "newreno" },
]"#;

fn scenario(loss: &str, flow: &str) -> Scenario {
    let text = WORLD.replace("LOSS", loss).replace("FLOW", flow);
    Scenario::parse(&text, "split.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_leg_repairs_its_own_losses() {
    let scenario = scenario("loss = \"1 %\"", SPLIT);
    let result = run(&scenario, 1, &mut NoProbe).expect("reachable");
    let summary = Summary::new(&scenario, &result);
    let flow = &summary.flows[0];
    assert_eq!((flow.bytes, flow.aborted), (2_000_000, None));
    let legs: Vec<_> = flow.legs.iter().map(|leg| (leg.from.as_str(), leg.to.as_str(), leg.variant.as_str())).collect();
    assert_eq!(legs, [("server", "uplink", "sack"), ("uplink", "downlink", "burst"), ("downlink", "PC", "newreno")]);
    // The server may probe a window that the gateway has closed, and send that byte again. It never detects a loss.
    let found: Vec<_> = flow.legs.iter().map(|leg| leg.fast_retransmits + leg.timeouts).collect();
    assert_eq!((found[0], found[2]), (0, 0), "{:?}", flow.legs);
    assert!(found[1] >= 5 && flow.legs[1].retransmissions >= 10, "1 % of 2084 packets is lost: {:?}", flow.legs[1]);
    // A second flow that is not split travels end to end.
    assert!(summary.flows[1].legs.is_empty());
    assert_eq!(summary.flows[1].bytes, 50_000);
    // Every packet is accounted for.
    let links = &summary.links;
    let gone = |l: &bentpipe_sim::record::LinkSummary| l.dropped.channel + l.dropped.queue_full + l.delivered_packets;
    let inside: u64 = links.iter().map(|l| l.offered_packets - gone(l)).sum();
    assert_eq!(inside, summary.in_flight_packets);
}

/// 80 segments of 1000 B, one window per 290 ms and what a packet and an ACK take: 2 MB in 2084 segments.
#[test]
fn the_slowest_leg_sets_the_pace() {
    let scenario = scenario("", SPLIT);
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    let flow = &summary.flows[0];
    let time = flow.time_s.expect("done");
    // A window of 80 is 0.32 s of the line, more than the 0.3 s of the round trip, so the line never rests but for the
    // ACK that the last segments of a window wait for: within 10 % of 2084 * 4 ms, after the opening.
    assert!((8.3..9.6).contains(&time), "{time}");
    let limit = flow.limit_time_s.expect("finite");
    assert!(limit < time && limit > 8.336 + 0.275, "{limit} {time}");
}

#[test]
fn it_opens_and_closes_both_ways_and_answers_come_back() {
    let flow = r#"request_response = { request = "400 B", response = "30 kB", think = "1 s", count = 5 }
split = [{ at = "uplink" }, { at = "downlink" }]"#;
    let scenario = scenario("loss = \"2 %\"", flow);
    let summary = Summary::new(&scenario, &run(&scenario, 3, &mut NoProbe).expect("reachable"));
    assert_eq!((summary.flows[0].bytes, summary.timed_out), (150_000, false));
}

#[test]
fn timers_lazy_or_literal_give_the_same_run() {
    let scenario = scenario("loss = \"1 %\"", SPLIT);
    let literal = run_with(&scenario, 5, &mut NoProbe, Timers::Literal, |_| true).expect("reachable");
    let lazy = run_with(&scenario, 5, &mut NoProbe, Timers::Lazy, |_| true).expect("reachable");
    assert_eq!(lazy, literal);
}

/// What each link carried: connection, SYN or not, smallest and largest acknowledgement.
#[derive(Default)]
struct Seen {
    connections: Vec<(u32, u32)>,
    windows: Vec<u32>,
    names: Vec<u32>,
}

impl Probe for Seen {
    fn event(&mut self, _: Time, who: Who, _: &Event) {
        if !self.names.contains(&who.0) {
            self.names.push(who.0);
        }
    }
}

impl Observer for Seen {
    fn packet(&mut self, _: Time, LinkId(link): LinkId, passage: Passage, packet: &Packet) {
        let ConnectionId(connection) = packet.connection;
        if passage == Passage::Offered && !self.connections.contains(&(link, connection)) {
            self.connections.push((link, connection));
        }
        // What the uplink offers to the server (link 1 is terrestrial/backward, connection 0 the first leg).
        if let Body::Tcp(segment) = &packet.body
            && (link, connection) == (1, 0)
            && !segment.flags.has(Flags::SYN)
        {
            self.windows.push(segment.window);
        }
    }
}

#[test]
fn links_carry_the_connection_of_their_leg() {
    let scenario = scenario("", SPLIT);
    let mut seen = Seen::default();
    run(&scenario, 1, &mut seen).expect("reachable");
    seen.connections.sort_unstable();
    // Flow 0 on the terrestrial links, its legs 2 and 3 behind; flow 1 everywhere.
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 3), (5, 1), (5, 3)];
    assert_eq!(seen.connections, expected);
    // The window offered to the server is the free buffer. It closes while the satellite lags behind, and never exceeds the buffer.
    assert!(seen.windows.iter().all(|window| *window <= 200_000));
    assert!(seen.windows.iter().any(|window| *window < 100_000), "the server is held back");
    let connections = 2 * 4;
    assert!(seen.names.iter().filter(|who| **who < 1 << 31).all(|who| *who < connections), "{:?}", seen.names);
}

#[test]
fn a_gateway_has_a_tap() {
    let scenario = scenario("", SPLIT);
    assert_eq!(Tap::find(&scenario, "uplink"), Ok(vec![Tap::Host(scenario.node("uplink").expect("a node"))]));
}

/// The last leg is dead from 1 s on, and the first one from 20 s on, so that no reset of a gateway reaches the server.
/// Nothing more can happen then, long before the time limit: the leg's reason ends the flow, not the limit.
#[test]
fn a_leg_that_is_given_up_ends_the_flow_even_if_the_resets_are_lost() {
    let short = SPLIT.replace("2 MB", "150 kB");
    let mut text = WORLD.replace("LOSS", "").replace("FLOW", &short).replace("start = \"3 s\"", "start = \"0 s\"");
    for (link, dies) in [("home", "1 s"), ("terrestrial", "20 s")] {
        let name = format!("name = \"{link}\"\n");
        text = text.replace(&name, &format!("{name}bursts = {{ schedule = [[\"{dies}\", \"9000 s\"]] }}\n"));
    }
    let scenario = Scenario::parse(&text, "split.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let summary = Summary::new(&scenario, &run(&scenario, 1, &mut NoProbe).expect("reachable"));
    let flow = &summary.flows[0];
    assert_eq!((flow.time_s, flow.aborted, summary.timed_out), (None, Some("retries exhausted"), false), "{summary:?}");
    assert!(summary.end_s < scenario.time_limit.as_secs_f64(), "{}", summary.end_s);
}
