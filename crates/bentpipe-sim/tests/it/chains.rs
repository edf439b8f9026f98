//! Chains of links and their twin, the literal network with one event per link, give the same run.
//!
//! A run with a probe uses the literal network, since a probe is told of events in order of time. A run without one uses chains. So each
//! world here runs twice, with and without a probe, and all results must be equal: those of each flow, the counters of each link, the end
//! of the run, and the number of events.

use crate::worlds::parse;
use bentpipe_engine::NoProbe;
use bentpipe_engine::network::{LINK_BASE, LinkId};
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Observer, Packet, Passage, RunResult, Timers, run_with};
use bentpipe_study::scenario::Scenario;
use proptest::prelude::*;

/// Checks that events are reported in order of time.
#[derive(Default)]
struct InOrder {
    now: Time,
}

impl Probe for InOrder {
    fn event(&mut self, now: Time, who: Who, _: &Event) {
        assert!(now >= self.now, "an event of the past, of {}", if who.0 >= LINK_BASE { "a link" } else { "an end" });
        self.now = now;
    }
}

impl Observer for InOrder {
    fn packet(&mut self, now: Time, _: LinkId, _: Passage, _: &Packet) {
        assert!(now >= self.now, "a packet of the past");
        self.now = now;
    }
}

/// The same run with one event per link, and in chains.
fn both(scenario: &Scenario, seed: u64, timers: Timers) -> [RunResult; 2] {
    let mut watch = InOrder::default();
    let literal = run_with(scenario, seed, &mut watch, timers, |_| true).expect("a path for each flow");
    [literal, run_with(scenario, seed, &mut NoProbe, timers, |_| true).expect("a path for each flow")]
}

/// The line of a link. Rates and delays are few and round, so that events coincide.
fn line() -> impl Strategy<Value = String> {
    let delay = prop_oneof![Just(0u32), Just(1), Just(4), Just(10), Just(120)];
    let rate = prop_oneof![
        6 => prop_oneof![Just("500 kbit/s"), Just("1 Mbit/s"), Just("2 Mbit/s"), Just("10 Mbit/s")].prop_map(|rate| format!("rate = \"{rate}\"\n")),
        2 => Just("rate = \"unlimited\"\n".to_owned()),
        1 => prop::collection::vec(1..9u32, 2..12).prop_map(|steps| {
            let mut at = 0;
            let millis: Vec<u32> = steps.iter().map(|step| { at += step; at }).collect();
            format!("rate_trace = {millis:?}\n")
        }),
        2 => (1..30u32, 0..4u32, 0..3u32).prop_map(|(at, over, stop)| format!(
            "rate = \"2 Mbit/s\"\nschedule = [{{ at = \"{at}0 ms\", rate = \"{stop} Mbit/s\", over = \"{over} ms\" }}, {{ at = \"{}0 ms\", rate = \"1 Mbit/s\", queue = \"9 packets\", delay = \"{over}0 ms\" }}]\nschedule_period = \"700 ms\"\n", at + 3
        )),
        2 => (1..30u32, 0..4u32, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(first, outage, loses, rates, delays)| format!(
            "rate = \"2 Mbit/s\"\nphases = {{ length = \"300 ms\", first = \"{first}0 ms\", outage = \"{outage}0 ms\"{}{}{} }}\n",
            if loses && outage > 0 { ", loss = \"50 %\"" } else { "" },
            if rates { ", rate = [\"500 kbit/s\", \"9 Mbit/s\"]" } else { "" },
            if delays { ", delay = [\"0 ms\", \"40 ms\"]" } else { "" },
        )),
        1 => Just("rate = \"8 Mbit/s\"\ntdma = { frame = \"20 ms\", bursts = [[\"1 ms\", \"2 ms\"], [\"9 ms\", \"3 ms\"]] }\n".to_owned()),
    ];
    (rate, delay).prop_map(|(rate, delay)| {
        // A world in which nothing takes time would never end.
        let delay = if rate.contains("unlimited") { delay.max(1) } else { delay };
        format!("{rate}delay = \"{delay} ms\"\n")
    })
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        3 => (1..30u32).prop_map(|n| format!("queue = \"{n} packets\"\n")),
        1 => (2000..40_000u32).prop_map(|n| format!("queue = \"{n} B\"\n")),
        1 => (5..40u32, any::<bool>()).prop_map(|(n, fair)| format!(
            "queue = {{ limit = \"{n} packets\", discipline = \"{}\", target = \"20 ms\" }}\n", if fair { "fq-codel" } else { "codel" }
        )),
        1 => (5..40u32).prop_map(|n| format!("queue = {{ limit = \"{n} packets\", discipline = \"red\" }}\n")),
    ]
}

fn sky() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => Just(String::new()),
        1 => (1..60u32).prop_map(|n| format!("loss = {}\n", f64::from(n) / 1000.0)),
        1 => Just("bit_error_rate = 2e-6\n".to_owned()),
        1 => (1..6u32, 1..4u32).prop_map(|(gap, late)| format!(
            "bursts = {{ schedule = [[\"{gap} s\", \"1 s\"]], loss = \"{} %\", extra_delay = \"{late}00 ms\" }}\n", late * 10
        )),
        1 => Just("packet_bursts = { start = \"1 %\", burstiness = \"50 %\" }\n".to_owned()),
        1 => (0..40u32, 1..30u32).prop_map(|(a, b)| format!("drop_list = [{a}, {}]\n", a + b)),
        1 => (1..30u32).prop_map(|ms| format!("delay_trace = {{ values = [[\"0 s\", \"{ms} ms\"], [\"40 ms\", \"2 ms\"], [\"90 ms\", \"60 ms\"]] }}\n")),
        1 => any::<bool>().prop_map(|reorder| format!("jitter = {{ delay = {{ exponential = \"3 ms\" }}, correlation = \"50 %\", reorder = {reorder} }}\n")),
        1 => Just("reorder = { probability = \"2 %\", delay = \"9 ms\" }\nduplicate = \"2 %\"\ncorrupt = \"1 %\"\n".to_owned()),
        1 => Just("loss_trace = { values = [[\"0 s\", \"1 %\"], [\"300 ms\", 0]] }\n".to_owned()),
        1 => Just("header = \"8 B\"\nmtu = \"1480 B\"\n".to_owned()),
    ]
}

/// A link between two nodes, both ways alike.
fn link(from: String, to: String) -> impl Strategy<Value = String> {
    let cells = "rate = \"5 Mbit/s\"\nframing = \"aal5\"\ndelay = \"10 ms\"\n";
    let packets = (line(), queue(), sky(), any::<bool>())
        // A queue with CoDel keeps its limit.
        .prop_map(|(line, queue, sky, begun)| {
            let queue = if line.contains("schedule") && queue.contains("codel") { String::new() } else { queue };
            (line, queue, sky, begun)
        })
        .prop_map(|(line, queue, sky, begun)| line + &queue + &sky + if begun { "ties = \"begun\"\n" } else { "" });
    let kind = prop_oneof![12 => packets, 1 => Just(cells.to_owned())];
    kind.prop_map(move |settings| {
        format!("[[links]]\nname = \"{from}-{to}\"\nbetween = [\"{from}\", \"{to}\"]\n{settings}\n")
    })
}

/// One to three hosts at either end of a trunk of one to four links, flows between them both ways.
fn tree() -> impl Strategy<Value = String> {
    let shape = (1..4usize, 1..5usize, 1..4usize);
    shape.prop_flat_map(|(left, trunk, right)| {
        let mut links = Vec::new();
        links.extend((0..left).map(|n| link(format!("A{n}"), "R0".to_owned()).boxed()));
        links.extend((0..trunk).map(|n| link(format!("R{n}"), format!("R{}", n + 1)).boxed()));
        links.extend((0..right).map(|n| link(format!("R{trunk}"), format!("B{n}")).boxed()));
        let place = prop_oneof![3 => Just(None), 1 => (0..=trunk).prop_map(Some)];
        let flow = (0..left, 0..right, any::<bool>(), place, 0..20u32, 0..4u32, 1..120u32, any::<bool>());
        let flows = prop::collection::vec(flow, 1..6);
        let limit = prop_oneof![1 => Just(60_000u32), 2 => 100..12_000u32];
        (links, flows, limit, prop::option::weighted(0.2, 1..900u32)).prop_map(
            move |(links, flows, limit, forwarding)| {
                let mut text = format!("name = \"tree\"\ntime_limit = \"{limit} ms\"\n{}", links.concat());
                if let Some(micros) = forwarding {
                    text += &format!("[nodes.R{}]\nforwarding = \"{micros} us\"\n", trunk / 2);
                }
                for (n, (a, b, backward, place, start, kind, size, sack)) in flows.into_iter().enumerate() {
                    // Some begin or end in the middle of the row.
                    let a = place.map_or(format!("A{a}"), |place| format!("R{place}"));
                    let b = format!("B{b}");
                    let (from, to) = if backward { (b, a) } else { (a, b) };
                    text += &format!(
                        "[[flows]]\nname = \"f{n}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{} ms\"\n",
                        start * 50
                    );
                    text += &match kind {
                        0 => format!(
                            "type = \"udp\"\nrate = \"{} kbit/s\"\npacket = \"{} B\"\nstop = \"3 s\"\n",
                            size * 10,
                            100 + size
                        ),
                        1 => "greedy = { duration = \"1 s\" }\n".to_owned(),
                        _ => format!("bytes = \"{size} kB\"\n"),
                    };
                    if kind != 0 {
                        let variant = if sack { "sack" } else { "newreno" };
                        text += &format!("tcp = {{ variant = \"{variant}\", mss = \"1000 B\" }}\n");
                    }
                }
                text
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_are_their_links_one_by_one(text in tree(), seed in 0..1000u64, literal_timers in any::<bool>()) {
        let timers = if literal_timers { Timers::Literal } else { Timers::Lazy };
        // Two bursts must not reach a node at once. The language refuses that.
        let Ok(scenario) = Scenario::parse(&text, "tree.toml", &[]) else { return Err(TestCaseError::reject("refused")) };
        let [literal, chained] = both(&scenario, seed, timers);
        prop_assert_eq!(literal, chained, "{}", text);
    }

    /// A limit at every hundredth of a run, so that the cut falls while packets are inside of chains.
    #[test]
    fn a_run_that_is_cut_short_has_counted_what_was_until_then(text in crate::worlds::world(), limit in 1..6000u32) {
        let text = text.replace("time_limit = \"60 s\"", &format!("time_limit = \"{limit} ms\""));
        let [literal, chained] = both(&parse(&text), 1, Timers::Lazy);
        prop_assert_eq!(literal, chained, "{}", text);
    }
}

/// Three links in a row without other traffic.
const ROW: &str = r#"
name = "row"
[[links]]
name = "near"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
[[links]]
name = "sat"
between = ["b", "c"]
rate = "1 Mbit/s"
delay = "250 ms"
queue = "20 packets"
loss = "1 %"
[[links]]
name = "far"
between = ["c", "d"]
rate = "2 Mbit/s"
delay = "1 ms"
[[flows]]
name = "data"
from = "a"
to = "d"
type = "udp"
rate = "1.5 Mbit/s"
packet = "1000 B"
stop = "5 s"
"#;

#[test]
fn what_waited_most_is_of_the_past_too() {
    // The queue grows by a packet every 16 ms, and packets spend 24 ms on the link before it. So at most instants the packet that will find
    // the longest queue so far is still on that link.
    let mut max = Vec::new();
    for millis in 100..200 {
        let limit = [("time_limit".to_owned(), format!("{millis} ms"))];
        let scenario = Scenario::parse(ROW, "row.toml", &limit).unwrap_or_else(|errors| panic!("{errors}"));
        let [literal, chained] = both(&scenario, 3, Timers::Lazy);
        assert_eq!(literal, chained, "at {millis} ms");
        max.push(chained.links[2].max_waiting);
    }
    assert!(max.is_sorted() && max[0] < max[99], "{max:?}");
}

#[test]
fn links_in_a_row_count_what_comes_from_the_one_before() {
    let scenario = parse(ROW);
    let [literal, chained] = both(&scenario, 3, Timers::Lazy);
    assert_eq!(literal, chained);
    // 938 datagrams: each link counts what the one before has let through, less what its own queue or channel lost.
    let [near, sat, far] = [0, 2, 4].map(|link| chained.links[link]);
    assert_eq!((near.offered, near.delivered), (938, 938));
    assert_eq!((sat.offered, far.offered), (938, sat.delivered));
    assert!(sat.dropped_full > 100 && sat.dropped_channel > 0 && sat.max_waiting == 20, "{sat:?}");
}
