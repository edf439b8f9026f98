use std::collections::{BTreeMap, BTreeSet};

use bentpipe_engine::units::Rate;

use super::*;
use crate::carrier::readings::layer_readings;
use crate::relay::RelayStats;
use crate::tunnel::{PrivateKey, TunnelConfig};
use crate::tunnelled::tests::idle;
use crate::uplink::UplinkStats;
use crate::{CarrierStats, Gateway, GatewayStats, PeerConfig, SplitShape};

/// A metric's name, and a label's without colons (data model of Prometheus).
fn is_name(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The labels between braces, unescaped.
fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a name, an equals sign, a quote");
        assert!(is_name(name), "{name}");
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next().expect("the quote is closed") {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().expect("something is escaped").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} is no escape"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(all.insert(name.to_owned(), value).is_none(), "{name} twice");
        text = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
    }
    all
}

/// A strict parser of version 0.0.4: each family once, its HELP and TYPE before its samples,
/// names and units as Prometheus requires, no duplicate samples. Returns samples by their names and labels.
fn strictly(text: &str) -> BTreeMap<(String, BTreeMap<String, String>), f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut helped, mut typed) = (String::new(), (String::new(), String::new()));
    assert!(text.ends_with('\n'), "the last line ends, too");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a help");
            assert!(is_name(name) && !help.is_empty(), "{line}");
            assert!(families.insert(name.to_owned()), "{name} twice");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(name, helped, "HELP goes before TYPE");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(
                !["_ms", "_us", "_bits", "_ms_total"].iter().any(|unit| name.ends_with(unit)),
                "{line}: base units"
            );
            typed = (name.to_owned(), kind.to_owned());
        } else {
            let (name, rest) = line.split_once('{').expect("a name and labels");
            assert_eq!(name, typed.0, "a sample stands under its TYPE");
            let (inner, value) = rest.rsplit_once("} ").expect("labels and a value");
            let value: f64 = value.parse().expect("a number");
            assert!(value.is_finite() && (typed.1 == "gauge" || value >= 0.0), "{line}");
            let labels = labels(inner);
            assert!(labels.contains_key("gateway") && labels.contains_key("shape"), "{line}");
            assert!(samples.insert((name.to_owned(), labels), value).is_none(), "{line} twice");
        }
    }
    samples
}

fn gateway() -> Gateway<SplitShape> {
    with_peers(&[None])
}

fn with_peers(names: &[Option<&str>]) -> Gateway<SplitShape> {
    let private = PrivateKey::generate();
    let (mut gateway, link) = idle();
    for name in names {
        let tunnel = TunnelConfig {
            keepalive: Duration::from_secs(1),
            dead_after: Duration::from_secs(4),
            ..TunnelConfig::new(private.clone(), PrivateKey::generate().public(), Some(([127, 0, 0, 1], 9).into()))
        };
        let alone = PeerConfig::alone(tunnel, link.clone());
        gateway.add(PeerConfig { name: name.map(Into::into), ..alone }).expect("a key of its own");
    }
    gateway
}

#[test]
fn the_text_is_strictly_what_prometheus_reads() {
    let gateway = gateway();
    let mut readings = gateway.readings("ne\"ar\\\n");
    readings.add_process().expect("there is /proc");
    let samples = strictly(&readings.exposition());
    let value = |name: &str, label: Option<(&str, &str)>| {
        let mut labels = BTreeMap::from([("gateway", "ne\"ar\\\n"), ("shape", "split")]);
        labels.extend(label);
        let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        samples.get(&(name.to_owned(), labels)).copied()
    };
    assert_eq!(value("bentpipe_gateway_link_up", None), Some(0.0));
    assert_eq!(value("bentpipe_gateway_rate_told_bytes_per_second", None), Some(1e6));
    assert_eq!(value("bentpipe_gateway_rate_shared", None), Some(0.0));
    assert_eq!(value("bentpipe_gateway_packets_resent_total", Some(("channel", "0"))), Some(0.0));
    assert_eq!(value("bentpipe_gateway_peer_info", Some(("peer", "127.0.0.1:9"))), Some(1.0));
    // Not known yet, so absent.
    assert_eq!(value("bentpipe_gateway_round_trip_seconds", None), None);
    // Descriptors of the test's own process: those of the gateway and the three standard ones at least.
    assert!(value("process_open_fds", None).is_some_and(|count| count >= 7.0));
    assert!(value("process_resident_memory_bytes", None).is_some_and(|bytes| bytes > 1e6));
    assert_eq!(samples.keys().filter(|(name, _)| name == "bentpipe_gateway_cipher_info").count(), 0);
    // Each value is present except the two that are not known, and the other shape that the peer does not have.
    assert_eq!(samples.len(), readings.list().len() - 3);
}

#[test]
fn units_are_those_of_prometheus() {
    let mut readings = Readings::new("a", "link");
    readings.add("t", "a_ms", "a_seconds", "A.", Value::Millis(Some(Duration::from_micros(1500))));
    readings.add("t", "b_us", "b_seconds", "B.", Value::Micros(Duration::from_nanos(100)));
    readings.add("t", "c_ms", "c_seconds_total", "C.", Value::Spent(Duration::from_secs(2)));
    let samples: Vec<f64> = strictly(&readings.exposition()).into_values().collect();
    assert_eq!(samples, [0.0015, 1e-7, 2.0]);
}

/// No two values have the same place in status without a label that distinguishes them.
#[test]
fn keys_are_single() {
    let readings = gateway().readings("a");
    let mut seen = BTreeSet::new();
    for Reading { table, key, label, .. } in readings.list() {
        assert!(seen.insert((table, key, label)), "{table}.{key}");
    }
}

/// Channels are distinguished by a label, and each metric's lines are adjacent.
#[test]
fn channels_have_labels() {
    let channel = |resent| bentpipe_engine::slacp::ChannelStats { resent, ..Default::default() };
    let stats = CarrierStats { channels: vec![channel(1), channel(20), channel(300)], ..CarrierStats::default() };
    let mut readings = Readings::new("a", "link");
    layer_readings(&mut readings, &stats);
    let samples = strictly(&readings.exposition());
    let resent: Vec<_> = samples
        .iter()
        .filter(|((name, _), _)| name == "bentpipe_gateway_packets_resent_total")
        .map(|((_, labels), &value)| (labels["channel"].as_str(), value))
        .collect();
    assert_eq!(resent, [("0", 1.0), ("1", 20.0), ("2", 300.0)]);
}

/// The kernel's sender uses the same names as the engine's for what they have in common.
#[test]
fn both_senders_have_the_same_names_for_the_same_things() {
    let rate = Rate::from_bits_per_second(8_000_000).expect("not zero");
    let [mut engine, mut kernel] = [(); 2].map(|()| Readings::new("hub", "uplink"));
    engine.add_uplink(rate, &UplinkStats { open: 3, total: 5, ..UplinkStats::default() }, 0, 2);
    let counted = RelayStats { open: 3, total: 5, other_port: 2, to_clients: 7, ..RelayStats::default() };
    kernel.add_relay(rate, 9, &counted);
    let samples = strictly(&kernel.exposition());
    let value = |name: &str| samples.iter().find(|((metric, _), _)| metric == name).map(|(_, value)| *value);
    assert_eq!(value("bentpipe_gateway_streams_sent_bytes_total"), Some(7.0));
    let own = ["bytes_sent", "bytes_received", "held_bytes", "memory_bytes"];
    let mut keys = BTreeSet::new();
    for reading in kernel.list() {
        assert!(keys.insert((reading.table, reading.key)), "{reading:?}");
        assert!(own.contains(&reading.key) || engine.list().contains(reading), "{reading:?}");
    }
}

/// The readings of one box: none is listed twice, and none duplicates another shape's under a different name.
#[test]
fn an_uplink_has_the_same_names_for_the_same_things() {
    let counted = UplinkStats { open: 3, retransmits: 7, ..UplinkStats::default() };
    let mut readings = Readings::new("hub", "uplink");
    readings.add_loop(&GatewayStats::default());
    readings.add_uplink(Rate::from_bits_per_second(8_000_000).expect("not zero"), &counted, 1, 2);
    let samples = strictly(&readings.exposition());
    let of = |readings: &Readings| -> BTreeMap<&str, &str> {
        readings.list().iter().map(|reading| (reading.metric, reading.help)).collect()
    };
    let value = |name: &str| samples.iter().find(|((metric, _), _)| metric == name).map(|(_, value)| *value);
    assert_eq!(value("bentpipe_gateway_rate_told_bytes_per_second"), Some(1e6));
    assert_eq!(value("bentpipe_gateway_streams_open"), Some(3.0));
    assert_eq!(value("bentpipe_gateway_segments_resent_total"), Some(7.0));
    assert_eq!(samples.len(), readings.list().len());
    let (gateway, mut keys) = (gateway(), BTreeSet::new());
    let split = gateway.readings("a");
    assert_eq!(of(&split).get("bentpipe_gateway_streams_open"), of(&readings).get("bentpipe_gateway_streams_open"));
    assert!(readings.list().iter().all(|reading| keys.insert((reading.table, reading.key))));
}

/// Each peer's values have its name, and those of a metric are adjacent.
#[test]
fn peers_have_labels() {
    let readings = with_peers(&[Some("boat-7"), Some("boat-8")]).readings("hub");
    let samples = strictly(&readings.exposition());
    let of = |metric: &str| -> Vec<_> {
        let all = samples.keys().filter(|(name, _)| name == metric);
        all.map(|(_, labels)| labels.get("peer").map(String::as_str)).collect()
    };
    let both = [Some("boat-7"), Some("boat-8")];
    for metric in ["link_up", "peer_info", "datagrams_sent_total", "streams_open", "rate_told_bytes_per_second"] {
        assert_eq!(of(&format!("bentpipe_gateway_{metric}")), both, "{metric}");
    }
    assert_eq!(of("bentpipe_gateway_peers"), [None]);
    let value =
        |key: &str| readings.list().iter().find(|reading| reading.key == key).map(|reading| reading.value.clone());
    assert_eq!((value("peers"), value("peers_up")), (Some(Value::Level(2)), Some(Value::Level(0))));
}

/// In parts, so that the loop passes packets in between: no peer is left out or there twice.
#[test]
fn peers_are_collected_in_parts() {
    let gateway = with_peers(&[Some("boat-7"), Some("boat-8"), Some("boat-9")]);
    let keys = |readings: &Readings| -> Vec<_> {
        readings.list().iter().map(|reading| (reading.peer.clone(), reading.table, reading.key)).collect()
    };
    let mut collection = gateway.begin_readings("hub");
    assert!(keys(&collection.readings).iter().all(|(peer, ..)| peer.is_none()));
    let calls = (1..).find(|_| gateway.collect(&mut collection, 2));
    assert_eq!((calls, keys(&collection.readings)), (Some(2), keys(&gateway.readings("hub"))));
}
