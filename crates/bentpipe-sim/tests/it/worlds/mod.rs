//! Random worlds as texts of the scenario language, for property tests.

use bentpipe_study::scenario::Scenario;
use proptest::prelude::*;

/// A scenario from its text.
pub(crate) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "random.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)))
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        (2..80u32).prop_map(|n| format!("forward.queue = \"{n} packets\"")),
        (3000..60_000u32).prop_map(|n| format!("forward.queue = \"{n} B\"")),
        (5..60u32, any::<bool>()).prop_map(|(n, fair)| format!(
            "forward.queue = {{ limit = \"{n} packets\", discipline = \"{}\" }}",
            if fair { "fq-codel" } else { "codel" }
        )),
        (5..60u32).prop_map(|n| format!("forward.queue = {{ limit = \"{n} packets\", discipline = \"red\" }}")),
        Just(String::new()),
    ]
}

fn channel() -> impl Strategy<Value = String> {
    let span = |name: &str, low: u32, high: u32| format!("{name} = {{ uniform = [\"{low} ms\", \"{high} ms\"] }}\n");
    let bursts = (1..3000u32, 1..3000u32, 1..400u32, prop_oneof![Just(100u32), 1..100u32], prop::option::of(1..600u32));
    prop_oneof![
        2 => Just(String::new()),
        2 => (1..80u32).prop_map(|n| format!("forward.loss = {}\n", n as f64 / 1000.0)),
        1 => (1..50u32).prop_map(|n| format!("forward.bit_error_rate = {}e-7\n", n)),
        2 => bursts.prop_map(move |(gap, width, length, loss, extra)| {
            let extra = extra.map_or(String::new(), |ms| format!("extra_delay = \"{ms} ms\"\n"));
            format!(
                "[links.forward.bursts]\n{}{}loss = \"{loss} %\"\n{extra}",
                span("gap", gap, gap + width),
                span("length", length, length + 200)
            )
        }),
        3 => moving(),
    ]
}

/// Settings of a link that changes while it is used: schedules, traces, phases, jitter, and what it does to single packets.
/// They go into a link of two directions, of 1 to 300 ms and 200 kbit/s and more.
pub(crate) fn moving() -> impl Strategy<Value = String> {
    let step = (1..4000u32, prop::option::of(0..400u32), 0..20_000u32, 1..300u32, 0..30u32, prop::option::of(3..60u32));
    let schedule = (prop::collection::vec(step, 1..6), any::<bool>()).prop_map(|(steps, repeats)| {
        let (mut at, mut all) = (0, String::new());
        for (gap, over, rate, delay, loss, queue) in steps {
            at += gap;
            let queue = queue.map_or(String::new(), |n| format!(", queue = \"{n} packets\""));
            let ramp = over.map_or(String::new(), |over| format!(", over = \"{over} ms\""));
            all += &format!(
                "{{ at = \"{at} ms\", rate = \"{rate} kbit/s\", delay = \"{delay} ms\", loss = \"{loss} %\"{queue}{ramp} }}, "
            );
            at += over.unwrap_or(0);
        }
        at += 500;
        all += &format!("{{ at = \"{at} ms\", rate = \"900 kbit/s\" }}");
        let period = if repeats { format!("schedule_period = \"{} ms\"\n", at + 700) } else { String::new() };
        format!("schedule = [{all}]\n{period}")
    });
    let delays = prop::collection::vec((1..90u32, 1..300u32), 1..9).prop_map(|steps| {
        let mut at = 0;
        let rows = steps.into_iter().map(|(gap, delay)| {
            at += gap;
            format!("[\"{at} ms\", \"{delay} ms\"]")
        });
        format!("delay_trace = {{ values = [[\"0 s\", \"9 ms\"], {}] }}\n", rows.collect::<Vec<_>>().join(", "))
    });
    // Outages take at most a quarter of the time, so more than half of all round trips pass: (3/4)^2. Timeouts double without a limit. With
    // less, 2^n times as long a wait is likely enough after n failures that no time limit suffices.
    let phases = (500..6000u32, 0..25u32, 0..100u32, 200..3000u32, 1..200u32).prop_map(|(length, share, loss, rate, delay)| {
        let outage = length * share / 100;
        format!(
            "phases = {{ length = \"{length} ms\", outage = \"{} ms\", loss = \"{loss} %\", rate = [\"{rate} kbit/s\", \"4 Mbit/s\"], \
             delay = [\"{delay} ms\", \"300 ms\"] }}\n",
            outage + 1
        )
    });
    let jitter = (0..3usize, 0..99u32, any::<bool>()).prop_map(|(kind, correlation, reorder)| {
        let delay = [
            "{ uniform = [\"0 s\", \"40 ms\"] }",
            "{ normal = [\"20 ms\", \"9 ms\"] }",
            "{ pareto = [\"1 ms\", \"4 ms\"] }",
        ];
        format!("jitter = {{ delay = {}, correlation = \"{correlation} %\", reorder = {reorder} }}\n", delay[kind])
    });
    let packets = (0..40u32, 1..200u32, 0..30u32, 0..30u32).prop_map(|(late, by, twice, bad)| {
        let share = |n: u32| f64::from(n) / 1000.0;
        format!(
            "reorder = {{ probability = {:?}, delay = \"{by} ms\" }}\nduplicate = {:?}\ncorrupt = {:?}\n",
            share(late),
            share(twice),
            share(bad)
        )
    });
    let line = prop_oneof![3 => schedule, 2 => phases, 2 => delays, 1 => Just(String::new())];
    let rest = |what: BoxedStrategy<String>| prop_oneof![1 => Just(String::new()), 1 => what];
    (line, rest(jitter.boxed()), rest(packets.boxed())).prop_map(|(line, jitter, packets)| line + &jitter + &packets)
}

const VARIANTS: [&str; 22] = [
    "tahoe",
    "reno",
    "newreno",
    "newreno-sbs",
    "sack",
    "sack-3517",
    "sack-ns2",
    "sack-frto",
    "constant-window",
    "constant-rack",
    "burst",
    "burst-ca",
    "cubic",
    "rack",
    "linux-reno",
    "linux-cubic",
    "bbr",
    "bbr3",
    "vegas",
    "westwood",
    "hybla",
    "prague",
];

fn flow(n: usize) -> impl Strategy<Value = String> {
    let tcp = (0..3usize, 0..VARIANTS.len(), any::<bool>(), 0..3000u32).prop_map(|(profile, variant, backward, start)| {
        let profile = ["rfc", "ns2", "ns2-2003"][profile];
        let (from, to) = if backward { ("H2", "H1") } else { ("H1", "H2") };
        format!(
            "from = \"{from}\"\nto = \"{to}\"\nstart = \"{start} ms\"\ntcp = {{ profile = \"{profile}\", variant = \"{}\" }}\n",
            VARIANTS[variant]
        )
    });
    let carries = prop_oneof![
        4 => (1..300_000u32).prop_map(|n| format!("bytes = \"{n} B\"\n")),
        1 => Just("greedy = { duration = \"10 s\" }\n".to_owned()),
        // Requests need the two-way connections of the RFC profile.
        1 => (1..2000u32, 1..40_000u32, 0..500u32, 1..5u32).prop_map(|(request, response, think, count)| format!(
            "request_response = {{ request = \"{request} B\", response = \"{response} B\", think = \"{think} ms\", \
             count = {count} }}\n"
        )),
    ];
    let udp = (100..1500u32, 10..900u32, any::<bool>()).prop_map(|(packet, rate, on_off)| {
        let pattern = if on_off {
            "pattern = { on = { exponential = \"200 ms\" }, off = { exponential = \"300 ms\" } }\n"
        } else {
            ""
        };
        format!(
            "type = \"udp\"\nfrom = \"H1\"\nto = \"H2\"\nrate = \"{rate} kbit/s\"\npacket = \"{packet} B\"\n\
             stop = \"20 s\"\n{pattern}"
        )
    });
    let tcp = (tcp, carries).prop_map(|(tcp, carries)| {
        let tcp = if carries.starts_with("request") {
            tcp.replace("\"ns2-2003\"", "\"rfc\"").replace("\"ns2\"", "\"rfc\"")
        } else {
            tcp
        };
        tcp + &carries
    });
    prop_oneof![4 => tcp, 1 => udp].prop_map(move |text| format!("[[flows]]\nname = \"f{n}\"\n{text}\n"))
}

/// A bottleneck between two access links, a channel, one to four flows in either direction.
pub(crate) fn world() -> impl Strategy<Value = String> {
    let links = (1..20u32, 200..20_000u32, 1..300u32, queue(), channel());
    let flows = (1..5usize).prop_flat_map(|n| (0..n).map(flow).collect::<Vec<_>>());
    (links, flows).prop_map(|((near, rate, far, queue, channel), flows)| {
        // A queue with CoDel keeps its limit.
        let queue = if channel.contains(", queue = ") { queue.replace("fq-codel", "red").replace("codel", "red") } else { queue };
        let access = |name: &str, between: &str| {
            format!("[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"10 Mbit/s\"\ndelay = \"{near} ms\"\n\n")
        };
        format!(
            "name = \"random\"\ndescription = \"drawn\"\nseed = 1\ntime_limit = \"60 s\"\n\n{}[[links]]\nname = \"sat\"\n\
             between = [\"R1\", \"R2\"]\nrate = \"{rate} kbit/s\"\ndelay = \"{far} ms\"\n{queue}\n{channel}\n{}{}",
            access("near", "\"H1\", \"R1\""),
            access("far", "\"R2\", \"H2\""),
            flows.concat()
        )
    })
}
