//! Worlds drawn at random, as texts of the scenario language: what properties are tried on.

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
    ]
}

const VARIANTS: [&str; 13] = [
    "tahoe",
    "reno",
    "newreno",
    "newreno-sbs",
    "sack",
    "sack-3517",
    "sack-ns2",
    "sack-frto",
    "constant-window",
    "burst",
    "burst-ca",
    "cubic",
    "rack",
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
