//! The language: what each key becomes, in both directions.

use std::sync::Arc;

use bentpipe_engine::link::{ChannelConfig, Discipline, Distribution, QueueLimit, Ties};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::Fec;
use bentpipe_engine::tcp::RttClock;
use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use bentpipe_study::scenario::{FlowKind, Scenario, TcpFlow, UdpPattern, Workload};
use proptest::prelude::*;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Every key of the language, none of them at its default.
pub(crate) const EVERYTHING: &str = include_str!("everything.toml");

pub(crate) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tcp<'s>(scenario: &'s Scenario, name: &str) -> &'s TcpFlow {
    match &scenario.flows.iter().find(|flow| flow.name == name).expect("there").kind {
        FlowKind::Tcp(tcp) => tcp,
        FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => panic!("a TCP flow"),
    }
}

#[test]
fn every_key_arrives() {
    let scenario = parse(EVERYTHING);
    assert_eq!((scenario.seed, scenario.time_limit), (u64::MAX, Duration::from_secs(90)));
    let up = &scenario.links[0].config;
    // 1.5 Mbit/s for 200 ms.
    assert_eq!(up.queue.limit, QueueLimit::Bytes(Bytes::new(37_500)));
    let Discipline::Red(red) = up.queue.discipline else { panic!("RED") };
    assert_eq!((red.min_threshold, red.max_threshold, red.weight), (4.5, 20.0, 0.002));
    assert_eq!((red.gentle, red.wait, red.mean_packet), (false, false, Bytes::new(1000)));
    let gap = Distribution::ExponentialTruncated { mean: ms(5000), min: ms(1000), max: ms(20_000) };
    assert_eq!(up.channel, ChannelConfig::OnOff { gap, burst: Distribution::Fixed(ms(30)) });
    assert_eq!((up.good.packet.get(), up.good.bit.get()), (0.001, 1e-7));
    assert_eq!((up.bad.packet.get(), up.bad.bit.get()), (0.5, 1e-4));
    assert_eq!(up.ties, Ties::Begun);
    assert_eq!(up.drop_list, [1, 5, 100]);

    let names: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "up",
            "down/forward",
            "down/backward",
            "far/forward",
            "far/backward",
            "leo/forward",
            "leo/backward",
            "meo/forward",
            "meo/backward",
            "lossy/forward",
            "lossy/backward",
            "beam/forward",
            "beam/backward",
            "cells/forward",
            "cells/backward",
            "house/forward",
            "house/backward",
            "orbit/forward",
            "orbit/backward",
            "port/forward",
            "port/backward",
            "feeder/forward",
            "feeder/backward",
            "own beam/forward",
            "own beam/backward",
            "fibre/forward",
            "fibre/backward",
            "mast/forward",
            "mast/backward"
        ]
    );
    let down = &scenario.links[1].config;
    assert_eq!((down.rate, down.delay), (None, Duration::from_micros(7)));
    assert_eq!(down.channel, ChannelConfig::Schedule(vec![(ms(4200), ms(24)), (ms(10_000), ms(1))]));
    assert_eq!((down.bad.packet, down.queue.limit), (Probability::ONE, QueueLimit::Bytes(Bytes::new(64_000))));
    let back = &scenario.links[2].config;
    assert_eq!(back.rate.map(|rate| rate.bits_per_second()), Some(10_000));
    assert_eq!((back.good.packet.get(), back.bad.packet.get()), (1e-5, 0.5));
    let mean = |mean| Distribution::Exponential { mean };
    assert_eq!(back.channel, ChannelConfig::OnOff { gap: mean(ms(10_000)), burst: mean(ms(100)) });

    let bulk = tcp(&scenario, "bulk-2");
    assert_eq!((bulk.profile_name.as_str(), bulk.variant_name.as_str()), ("rfc", "mine"));
    assert_eq!(bulk.workload, Workload::Bulk(Bytes::new(3 * 536)));
    assert_eq!((bulk.sender.variant.max_burst, bulk.receiver.variant.max_burst), (Some(3), Some(7)));
    assert_eq!((bulk.sender.receive_buffer, bulk.receiver.receive_buffer), (32 << 20, 65_536));
    assert_eq!((bulk.sender.ack.delay, bulk.receiver.ack.delay), (ms(200), ms(100)));
    assert_eq!(bulk.sender.rto.clock, RttClock::Ticks { tick: ms(500), phase: ms(20), fire_on_tick: true, bsd: true });
    let second = scenario.flows.iter().find(|flow| flow.name == "bulk-2").expect("there");
    assert!(second.start >= ms(1010) && second.start < ms(1015), "{:?}", second.start);
    assert_eq!((second.route.clone(), second.return_route.clone()), (Some(vec![LinkId(0)]), Some(vec![LinkId(1)])));

    let greedy = tcp(&scenario, "flow-2");
    assert_eq!(greedy.workload, Workload::Greedy { duration: Some(Duration::from_secs(20)) });
    assert_eq!((greedy.sender.window_clamp, greedy.sender.initial_ssthresh), (Some(100), None));
    // What the flow sets for both ends replaces what [tcp] set for one.
    assert_eq!(greedy.receiver.ack.delay, Duration::ZERO);
    let voice = scenario.flows.iter().find(|flow| flow.name == "voice").expect("there");
    let FlowKind::Udp(voice) = &voice.kind else { panic!("UDP") };
    assert!(matches!(voice.pattern, UdpPattern::OnOff { on: Distribution::Uniform(..), .. }));
    assert_eq!(voice.stop, Some(Duration::from_secs(60)));
}

#[test]
fn a_split_has_a_leg_of_its_own() {
    let scenario = parse(EVERYTHING);
    let flow = tcp(&scenario, "parted");
    let [leg] = flow.splits.as_slice() else { panic!("one split") };
    assert_eq!(&scenario[leg.at], "B");
    // The buffer is that of the gateway: where the first leg ends and where the second begins.
    let buffers = [flow.sender, flow.receiver, leg.sender, leg.receiver].map(|end| end.receive_buffer);
    assert_eq!(buffers, [32 << 20, 40_000, 40_000, 64 << 10]);
    // What the leg does not say it has from [tcp].
    assert_eq!((leg.variant_name.as_str(), leg.sender.window_clamp, leg.sender.mss), ("newreno", Some(9), 536));
    assert_eq!(flow.variant_name, "mine");
    assert_eq!(leg.route.as_ref().map(|links| scenario[links[0]].name.as_str()), Some("far/forward"));
    assert_eq!(leg.return_route.as_ref().map(|links| scenario[links[0]].name.as_str()), Some("far/backward"));
    let changed = scenario.with_variant("tahoe").expect("a variant");
    assert_eq!(tcp(&changed, "parted").splits[0].variant_name, "tahoe");
    assert_eq!(tcp(&changed, "parted").splits[0].sender.window_clamp, Some(9));
}

/// A connection that crosses the boxes ends at the first one; another variant applies to its hosts only.
#[test]
fn a_gateway_ends_connections() {
    let scenario = parse(EVERYTHING);
    let flow = tcp(&scenario, "boxed");
    let [leg] = flow.splits.as_slice() else { panic!("one split") };
    assert_eq!([leg.at, leg.leaves()].map(|node| &scenario[node]), ["I", "H"]);
    let pair = &scenario.gateways.pairs[0];
    assert_eq!(pair.satellite.map(|box_| box_.rate.bits_per_second()), [9_000_000, 8_000_000]);
    assert_eq!((pair.satellite[0].path_mtu, pair.satellite[1].shared), (1400, true));
    let advice = scenario.gateways.pairs[1].advice.map(|rate| rate.map(Rate::bits_per_second));
    assert_eq!((pair.advice, advice), ([None; 2], [Some(10_000_000), Some(7_000_000)]));
    let names = |links: Option<&Vec<LinkId>>| {
        links.map(|links| links.iter().map(|&link| scenario[link].name.as_str()).collect::<Vec<_>>())
    };
    let spec = scenario.flows.iter().find(|flow| flow.name == "boxed").expect("there");
    assert_eq!(names(spec.route.as_ref()), Some(vec!["port/backward"]));
    assert_eq!(names(leg.route.as_ref()), Some(vec!["house/backward"]));
    // The boxes are Linux hosts.
    assert_eq!((leg.profile_name.as_str(), leg.variant_name.as_str()), ("linux", "linux-cubic"));
    assert!(flow.receiver.timestamps && leg.sender.timestamps);
    let changed = scenario.with_variant("tahoe").expect("a variant");
    let after = tcp(&changed, "boxed");
    assert_eq!((after.variant_name.as_str(), after.splits[0].variant_name.as_str()), ("tahoe", "linux-cubic"));
    assert_eq!(after.splits[0].sender, leg.sender);
}

#[test]
fn everything_reads_back() {
    let scenario = parse(EVERYTHING);
    let text = scenario.to_toml();
    assert_eq!(parse(&text), scenario, "{text}");
}

#[test]
fn explicit_settings_survive_a_change_of_variant() {
    let scenario = parse(EVERYTHING).with_variant("tahoe").expect("a variant");
    let bulk = tcp(&scenario, "bulk-1");
    assert_eq!((bulk.variant_name.as_str(), bulk.sender.variant.initial_window), ("tahoe", 10));
    assert_eq!((bulk.sender.mss, bulk.sender.variant.max_burst, bulk.receiver.variant.max_burst), (536, Some(3), None));
    assert_eq!(parse(&scenario.to_toml()), scenario);
    assert!(scenario.with_variant("tahoo").is_err());
    // Also if they equal the old variant's values.
    let text = EVERYTHING.replace("variant = \"mine\"\n", "variant = \"mine\"\ninitial_window = 3\n");
    let same = parse(&text).with_variant("tahoe").expect("a variant");
    assert_eq!(tcp(&same, "bulk-1").sender.variant.initial_window, 3);
}

#[test]
fn what_a_caller_changes_by_hand_is_written_too() {
    let mut scenario = parse(EVERYTHING);
    let FlowKind::Tcp(tcp) = &mut scenario.flows[0].kind else { panic!("TCP") };
    let tcp = Arc::make_mut(tcp);
    tcp.sender.mss = 1000;
    tcp.receiver.nagle = true;
    let again = parse(&scenario.to_toml());
    let FlowKind::Tcp(read) = &again.flows[0].kind else { panic!("TCP") };
    assert_eq!((read.sender.mss, read.receiver.mss, read.sender.nagle, read.receiver.nagle), (1000, 536, false, true));
}

#[test]
fn a_seed_moves_the_drawn_starts_only() {
    let scenario = parse(EVERYTHING);
    let other = scenario.with_seed(7);
    assert_eq!(other.seed, 7);
    assert_ne!(other.flows[0].start, scenario.flows[0].start);
    assert_eq!(other.flows[3].start, scenario.flows[3].start);
    assert_eq!(other.with_seed(scenario.seed), scenario);
}

#[test]
fn overrides_reach_every_place() {
    let sets = [
        ("links.up.delay", "300 ms"),
        ("links.down.forward.queue.discipline", "red"),
        ("links.down.forward.rate", "1 Mbit/s"),
        ("links.up.drop_list", "[2]"),
        ("flows.forever.bytes", "10 MB"),
        ("flows.0.count", "2"),
        ("tcp.rto.min", "300 ms"),
        ("links.2", "{ name = \"x\" }"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let scenario = Scenario::parse(EVERYTHING, "test.toml", &sets[..7]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        (scenario.links[0].config.delay, scenario.links[0].config.drop_list.as_slice()),
        (ms(300), [2].as_slice())
    );
    let down = &scenario.links[1].config.queue;
    assert_eq!(down.limit, QueueLimit::Bytes(Bytes::new(64_000)));
    // 1-exp(-1/C) for 1 Mbit/s and packets of 500 B: C = 250.
    let Discipline::Red(red) = down.discipline else { panic!("RED") };
    assert!((red.weight - (1.0 - (-1.0f64 / 250.0).exp())).abs() < 1e-15);
    assert_eq!(tcp(&scenario, "forever").workload, Workload::Bulk(Bytes::new(10_000_000)));
    assert!(scenario.flows.iter().all(|flow| flow.name != "bulk-3"));
    assert_eq!(tcp(&scenario, "forever").sender.rto.min, ms(300));
    assert!(Scenario::parse(EVERYTHING, "test.toml", &sets[7..]).is_err());
}

#[test]
fn an_override_with_many_steps_is_refused() {
    let sets = [(["a"; 100_000].join("."), "1".to_owned())];
    let errors = Scenario::parse(EVERYTHING, "test.toml", &sets).expect_err("too deep");
    assert_eq!(errors.0[0].message, "the path has 100000 steps");
    assert_eq!(errors.0[0].expected.as_deref(), Some("at most 32"));
    assert!(errors.0[0].to_string().len() < 2000);
    // The first that is too long, and the longest that is not: its mistake is the key.
    let said = |steps: usize| {
        let sets = [(["a"; 100].map(str::to_owned)[..steps].join("."), "1".to_owned())];
        Scenario::parse(EVERYTHING, "test.toml", &sets).expect_err("no such key").0.remove(0).message
    };
    assert_eq!(said(33), "the path has 33 steps");
    assert!(said(32).contains("has no key `a`"), "{}", said(32));
}

#[test]
fn a_trace_of_bursts_is_read_from_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("fades.csv"), "# a walk\nstart_s,length_s\n4.2,0.024\n\n10, 1e-3\n")
        .expect("written");
    let text = EVERYTHING.replace("schedule = [[\"4.2 s\", \"24 ms\"], [\"10 s\", \"1 ms\"]]", "file = \"fades.csv\"");
    std::fs::write(folder.path().join("s.toml"), text).expect("written");
    let scenario = Scenario::load(folder.path().join("s.toml"), &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario, parse(EVERYTHING));
    std::fs::write(folder.path().join("fades.csv"), "start_s,length_s\n4.2,24 ms\n").expect("written");
    let errors = Scenario::load(folder.path().join("s.toml"), &[]).expect_err("a unit in a column of seconds");
    assert!(errors.0[0].source.ends_with("fades.csv"), "{errors}");
    assert_eq!((errors.0[0].line, errors.0[0].key.as_str()), (2, "links.down.forward.bursts.file"));
}

/// A piece of the text above, mangled.
fn mangled() -> impl Strategy<Value = String> {
    let replacement = prop_oneof![
        Just(String::new()),
        "[0-9.e+-]{0,6}",
        Just("\"\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("-1".to_owned()),
        Just("\"99999999999999999999 s\"".to_owned()),
        Just("\"0 s\"".to_owned()),
        Just("\"é %\"".to_owned()),
        "\\PC{0,8}",
    ];
    (0..EVERYTHING.len(), 0usize..40, replacement).prop_map(|(at, length, with)| {
        let floor =
            |at: usize| (0..=at.min(EVERYTHING.len())).rev().find(|at| EVERYTHING.is_char_boundary(*at)).unwrap_or(0);
        let (start, end) = (floor(at), floor(at + length));
        format!("{}{with}{}", &EVERYTHING[..start], &EVERYTHING[end..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(text in prop_oneof![mangled(), "\\PC*", "(.|\n)*"], key in "[a-z0-9.=é]{0,12}", value in "\\PC{0,12}") {
        for sets in [vec![], vec![(key, value)]] {
            match Scenario::parse(&text, "test.toml", &sets) {
                Ok(scenario) => {
                    let written = scenario.to_toml();
                    let again = Scenario::parse(&written, "again.toml", &[]);
                    prop_assert_eq!(again.map_err(|errors| errors.to_string()), Ok(scenario), "{}", written);
                }
                Err(errors) => {
                    prop_assert!(!errors.0.is_empty());
                    prop_assert!(!errors.to_string().is_empty());
                }
            }
        }
    }
}

/// The text above misses no key of the language, so the tests above cover them all.
#[test]
fn everything_is_everything() {
    fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
        let children = match schema {
            serde_json::Value::Object(children) => children,
            serde_json::Value::Array(children) => return children.iter().for_each(|child| keys(child, found)),
            _ => return,
        };
        if let Some(properties) = children.get("properties").and_then(|properties| properties.as_object()) {
            // Old names of keys have a test of their own.
            let current = properties.iter().filter(|(_, value)| value.get("deprecated").is_none());
            found.extend(current.map(|(key, _)| key.clone()));
            properties.values().for_each(|child| keys(child, found));
        }
        children.iter().filter(|(key, _)| *key != "properties").for_each(|(_, child)| keys(child, found));
    }
    let mut found = Vec::new();
    keys(&bentpipe_study::scenario::schema(), &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let is_key = |key: &String| {
        EVERYTHING.match_indices(key.as_str()).any(|(at, _)| {
            let before = EVERYTHING[..at].chars().next_back().unwrap_or('\n');
            let after = EVERYTHING[at + key.len()..].trim_start_matches(' ').chars().next();
            !(before.is_alphanumeric() || before == '_' || before == '"') && matches!(after, Some('=' | '.' | ']'))
        })
    };
    // A trace has a test of its own, with a file.
    let missing: Vec<_> = found.iter().filter(|key| !is_key(key) && *key != "file").collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A renamed key still works, with a warning at its place; in an override it replaces the file's.
#[test]
fn old_names_of_keys_work_with_a_warning() {
    let renamed = [
        ("release = \"2 Mbit/s\"", "release_rate = \"gathered\""),
        ("max = 2", "most = 2"),
        ("max_overhead", "most_overhead"),
        ("burstiness = 0.95, max", "burstiness = 0.95, most"),
    ];
    let (mut old, grouped) = (EVERYTHING.to_owned(), EVERYTHING.replace(renamed[0].0, "release = \"grouped\""));
    for (new, before) in renamed {
        assert!(old.contains(new), "{new}");
        old = old.replace(new, before);
    }
    let read = |text: &str, sets: &[(String, String)]| {
        Scenario::parse_with_warnings(text, "test.toml", sets).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let (scenario, warnings) = read(&old, &[]);
    assert_eq!(scenario, parse(&grouped));
    insta::assert_snapshot!(warnings.render(false));
    assert_eq!(read(&grouped, &[]).1.0, []);
    // Either name in an override replaces either name in the file.
    let key = |key: &str| (format!("layers.arq.channels.urgent.fec.{key}"), "20 %".to_owned());
    for (text, name) in [(&old, "max_overhead"), (&grouped, "most_overhead")] {
        let (scenario, _) = read(text, &[key(name)]);
        assert_eq!(scenario.layers[0].channels[0].config.fec.expect("there is one").max_overhead, 0.2, "{name}");
    }
    let both = EVERYTHING.replace("max = 2", "most = 2, max = 3");
    let errors = Scenario::parse(&both, "test.toml", &[]).expect_err("two names of one key").0;
    let (said, _) = errors.split_first().expect("at least one");
    assert_eq!((said.key.as_str(), said.line > 100), ("layers.arq.channels.urgent.copies.most", true), "{said}");
}

#[test]
fn layers_read_back_as_written() {
    let text = "
        name = \"t\"
        [[links]]
        name = \"sat\"
        between = [\"A\", \"B\"]
        rate = \"20 Mbit/s\"
        delay = \"300 ms\"
        queue = \"600 ms\"
        [[layers]]
        name = \"s-lacp\"
        over = \"sat\"
        release = \"30 Mbit/s\"
        [[layers.channels]]
        name = \"voice\"
        match = [{ dscp = 46 }, { protocol = \"udp\", port = 5004, up_to = \"200 B\" }]
        transmissions = \"off\"
        fec = { block = 10, interval = \"200 ms\", repairs = \"spare\" }
        order = \"none\"
        [[layers.channels]]
        name = \"rest\"
        priority = 1
        transmissions = 3
        queue = \"100 packets\"
        codel = { target = \"50 ms\", interval = \"1 s\" }
        [[flows]]
        from = \"A\"
        to = \"B\"
        dscp = 46
        bytes = \"1 MB\"";
    let scenario = parse(text);
    assert_eq!(parse(&scenario.to_toml()), scenario);
    let layer = &scenario.layers[0];
    assert_eq!((layer.over, scenario.layer_over(LinkId(1))), ([0, 1].map(LinkId), Some((0, 1))));
    let end = layer.end(&scenario.links, 0);
    // A channel without a queue of its own has the link's: 600 ms of 20 Mbit/s.
    assert_eq!(end.channels[0].limit, QueueLimit::Bytes(Bytes::new(1_500_000)));
    assert_eq!(end.channels[1].limit, QueueLimit::Packets(100));
    assert_eq!(layer.rules().1, 1, "what matches nothing goes to the last channel");
}

/// In the 560 ms that a retransmission takes, 5.97 frames of 1500 B fit on a line of 128 kbit/s, and 933 on one of 20 Mbit/s. Packets that
/// are not retransmitted, as those of the channel `urgent`, are worth the same on every line.
#[test]
fn repair_frames_are_worth_less_on_a_slow_line() {
    let worth = |rate: &str| {
        let link = format!("name = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"{rate}\"\ndelay = \"280 ms\"");
        let flow = "[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"";
        let scenario =
            parse(&format!("name = \"t\"\n[[links]]\n{link}\n[[layers]]\nname = \"l\"\nover = \"sat\"\n{flow}"));
        let end = scenario.layers[0].end(&scenario.links, 0);
        [0, 2].map(|channel: usize| end.channels[channel].fec.expect("by default").worth)
    };
    assert_eq!(worth("128 kbit/s"), [Fec::WORTH, 1500.0 / 8960.0]);
    assert_eq!(worth("20 Mbit/s"), [Fec::WORTH; 2]);
}

/// A link that is named in one direction only: the message says how to name the pair.
#[test]
fn a_layer_over_one_direction_is_told_of_the_pair() {
    let minei = include_str!("../../../../scenarios/minei-split.toml");
    let layer = [("layers".to_owned(), "[{ name = \"s\", over = \"sat\" }]".to_owned())];
    let error = Scenario::parse(minei, "minei-split.toml", &layer).expect_err("it is one-way").render(false);
    assert!(error.contains("the link `sat` is one-way") && error.contains("over = [\"sat\", \"modem\"]"), "{error}");
    let pair = [(layer[0].0.clone(), layer[0].1.replace("\"sat\"", "[\"sat\", \"modem\"]"))];
    let scenario = Scenario::parse(minei, "minei-split.toml", &pair).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario.layers[0].over, [2, 3].map(LinkId));
}
