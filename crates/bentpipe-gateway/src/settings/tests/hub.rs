//! `[[peers]]`.

use super::*;
use crate::tunnel::PrivateKey;

/// A hub with two peers; `{a}` and `{b}` are their keys.
const HUB: &str = r#"
name = "hub"

[tunnel]
private_key = "private.key"

[satellite]
rate = "50 Mbit/s"
round_trip = "600 ms"

[split]
capture = ["lan0"]

[link]
addresses = ["10.8.0.1/24"]

[[peers]]
name = "a"
key = "{a}"
prefixes = ["10.1.1.0/24", "fd01:1::/64"]
shape = "split"

[[peers]]
name = "b"
key = "{b}"
preshared_key = "b.psk"
prefixes = ["10.1.2.0/24"]
endpoint = "198.51.100.7:4500"
rate = "2 Mbit/s"
round_trip = "800 ms"
weight = 3
shape = "link"
"#;

fn hub() -> String {
    let [a, b] = [(); 2].map(|()| PrivateKey::generate().public().to_string());
    HUB.replace("{a}", &a).replace("{b}", &b)
}

#[test]
fn a_hub_has_peers() {
    let file = GatewayFile::parse(&hub(), "dir/hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let [a, b] = &file.peers[..] else { panic!("{file:?}") };
    assert!(file.is_hub() && matches!(&file.shape, ShapeTable::Both(split, _) if !split.direct_without_peer));
    assert_eq!((a.name.as_deref(), a.carries, a.weight, a.endpoint), (Some("a"), Carries::Streams, 1, None));
    assert_eq!((a.rate, a.round_trip), (file.satellite.rate, file.satellite.round_trip));
    assert_eq!(a.prefixes.as_ref().map(Vec::len), Some(2));
    assert_eq!((b.carries, b.weight, b.round_trip), (Carries::Packets, 3, Duration::from_millis(800)));
    assert_eq!(b.preshared_key.as_deref(), Some(Path::new("dir/b.psk")));
    assert_eq!(b.endpoint, Some(([198, 51, 100, 7], 4500).into()));
    // With a single shape, peers need not name it.
    let link = hub().replace("[split]\ncapture = [\"lan0\"]\n", "").replace("shape = \"split\"\n", "");
    let file = GatewayFile::parse(&link, "hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.peers[0].carries, Carries::Packets);
    // If destinations do not see clients' addresses, they need no prefixes.
    let replaced = hub().replace("capture", "client_address = \"replace\"\ncapture");
    let replaced = replaced.replace("prefixes = [\"10.1.1.0/24\", \"fd01:1::/64\"]\n", "");
    let file = GatewayFile::parse(&replaced, "hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.peers[0].prefixes, Some(Vec::new()));
}

/// A rate, or the line's: in `[link]` for all peers, in a peer's table for itself.
#[test]
fn advice_is_the_peers_own_or_that_of_link() {
    let advice = |link: &str, peer: &str| {
        let text = hub().replace("[\"10.8.0.1/24\"]", &format!("[\"10.8.0.1/24\"]\n{link}"));
        let text = text.replace("weight = 3", &format!("weight = 3\n{peer}"));
        let file = GatewayFile::parse(&text, "hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let rates = |peer: &PeerTable| peer.advice.map(|advice| advice.rate(peer.rate).bits_per_second());
        [rates(&file.peers[0]), rates(&file.peers[1])]
    };
    const LINE: &str = "throughput_advice = \"line\"";
    const RATE: &str = "throughput_advice = \"3 Mbit/s\"";
    assert_eq!(advice("", ""), [None, None], "by default nothing is written");
    assert_eq!(advice(LINE, ""), [None, Some(2_000_000)], "streams carry no QUIC");
    assert_eq!(advice(RATE, ""), [None, Some(3_000_000)]);
    assert_eq!(advice("", RATE), [None, Some(3_000_000)]);
    assert_eq!(advice(RATE, LINE), [None, Some(2_000_000)]);
    let link =
        SPLIT.split("[split]").next().expect("before it").to_owned() + "[link]\naddresses = [\"10.8.0.1/24\"]\n" + LINE;
    let file = GatewayFile::parse(&link, "gateway.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.peers[0].advice, Some(Advice::Line));
}

/// Each prefix that has to be changed is named once: those within a wide one, or the wide one if it came later.
#[test]
fn all_overlaps_are_named() {
    let text = |prefixes: &[&str]| {
        let peers = prefixes.iter().enumerate().map(|(n, prefix)| {
            let key = PrivateKey::generate().public();
            format!("[[peers]]\nname = \"p{n}\"\nkey = \"{key}\"\nprefixes = [\"{prefix}\"]\nshape = \"link\"\n")
        });
        HUB.split("[[peers]]").next().expect("before it").to_owned() + &peers.collect::<String>()
    };
    let found = |prefixes: &[&str]| {
        let said = errors(&text(prefixes)).into_iter();
        said.map(|(_, key, message, _)| format!("{key}: {message}")).collect::<Vec<_>>()
    };
    assert_eq!(
        found(&["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "11.0.0.0/8", "10.1.1.0/24"]),
        [
            "peers.p1.prefixes.0: 10.1.0.0/16 overlaps 10.0.0.0/8 of peer `p0`",
            "peers.p2.prefixes.0: 10.2.0.0/16 overlaps 10.0.0.0/8 of peer `p0`",
            "peers.p4.prefixes.0: 10.1.1.0/24 overlaps 10.0.0.0/8 of peer `p0`",
        ]
    );
    assert_eq!(
        found(&["10.1.0.0/16", "10.2.0.0/16", "10.0.0.0/8"]),
        ["peers.p2.prefixes.0: 10.0.0.0/8 overlaps 10.1.0.0/16 of peer `p0`"]
    );
    assert_eq!(found(&["10.1.0.0/16"; 3]).len(), 2);
}

/// With a single peer, everything goes to it.
#[test]
fn the_only_peer_has_no_name() {
    let file = GatewayFile::parse(SPLIT, "gateway.toml").expect("it is right");
    let [peer] = &file.peers[..] else { panic!("{file:?}") };
    assert!(!file.is_hub() && peer.name.is_none() && peer.prefixes.is_none());
    assert_eq!((peer.rate, peer.endpoint), (file.satellite.rate, Some(([198, 51, 100, 7], 4500).into())));
}

#[test]
fn mistakes_of_peers_name_the_line_and_the_key() {
    let text = hub();
    let keys: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("key = ")).collect();
    let [a, b] = keys[..] else { panic!("{text}") };
    for (from, to, line, key, message) in [
        ("name = \"b\"", "name = \"a\"", 24, "peers.a.name", "another peer is called `a`"),
        ("name = \"b\"", "", 23, "peers.1.name", "needs `name`"),
        (b, a, 25, "peers.b.key", "peer `a` has this key"),
        (b, &*a.replacen('"', "\" ", 1), 25, "peers.b.key", "peer `a` has this key"),
        (b, "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"", 25, "peers.b.key", "all bytes of this key are zero"),
        (b, "\"no key\"", 25, "peers.b.key", "not a key: base64 of 32 bytes"),
        (
            "\"10.1.2.0/24\"",
            "\"10.1.0.0/16\"",
            27,
            "peers.b.prefixes.0",
            "10.1.0.0/16 overlaps 10.1.1.0/24 of peer `a`",
        ),
        ("\"10.1.2.0/24\"", "\"10.1.1.7\"", 27, "peers.b.prefixes.0", "10.1.1.7/32 overlaps 10.1.1.0/24 of peer `a`"),
        (
            "\"fd01:1::/64\"",
            "\"fd01:1::/64\", \"fd01::/16\"",
            20,
            "peers.a.prefixes.2",
            "overlaps fd01:1::/64 of peer `a`",
        ),
        ("[\"10.1.2.0/24\"]", "[]", 27, "peers.b.prefixes", "no prefix"),
        ("prefixes = [\"10.1.2.0/24\"]", "", 23, "peers.b.prefixes", "needs `prefixes`"),
        (
            "\"10.1.2.0/24\"",
            "\"10.1.2.0/24:443\"",
            27,
            "peers.b.prefixes.0",
            "`24:443` is not a prefix length from 0 to 32",
        ),
        (
            "\"10.1.2.0/24\"",
            "\"10.8.0.0/24\"",
            27,
            "peers.b.prefixes.0",
            "10.8.0.0/24 contains 10.8.0.1, this box's own address",
        ),
        ("\"10.1.2.0/24\"", "\"10.1.2.1/24\"", 27, "peers.b.prefixes.0", "has bits beyond the first 24"),
        ("weight = 3", "weight = 0", 31, "peers.b.weight", "it must be at least 1"),
        ("rate = \"2 Mbit/s\"", "rate = 2", 29, "peers.b.rate", "needs a unit"),
        ("round_trip = \"800 ms\"", "round_trip = \"0 ms\"", 30, "peers.b.round_trip", "cannot be zero"),
        ("endpoint = \"198.51.100.7:4500\"", "endpoint = \"198.51.100.7\"", 28, "peers.b.endpoint", "cannot be"),
        ("shape = \"link\"", "shape = \"lnik\"", 32, "peers.b.shape", "cannot be \"lnik\""),
        ("shape = \"link\"", "", 23, "peers.b.shape", "needs `shape`"),
        (
            "weight = 3",
            "throughput_advice = \"lnie\"",
            31,
            "peers.b.throughput_advice",
            "`peers.b.throughput_advice` cannot be \"lnie\"",
        ),
        ("weight = 3", "throughput_advice = \"2\"", 31, "peers.b.throughput_advice", "has no unit"),
        (
            "shape = \"split\"",
            "shape = \"split\"\nthroughput_advice = \"line\"",
            22,
            "peers.a.throughput_advice",
            "SCONE packets belong to QUIC",
        ),
        ("weight = 3", "wieght = 3", 31, "peers.b.wieght", "has no key `wieght`"),
        ("[split]", "[split]\nwithout_peer = \"direct\"", 12, "split.without_peer", "cannot be bypassed"),
    ] {
        assert!(text.contains(from), "{from}");
        let found = errors(&text.replace(from, to));
        let is_it = |(at, path, said, _): &(usize, String, String, String)| {
            *at == line && path == key && said.contains(message)
        };
        assert!(found.iter().any(is_it), "{message}: {found:?}");
        assert_eq!(found.len(), 1, "{found:?}");
    }
    // Keys for a single peer are errors with several.
    for (key, value) in [
        ("peer_key", a),
        ("peer", "\"192.0.2.1:4500\""),
        ("preshared_key", "\"x\""),
        ("peer_prefixes", "[\"10.9.0.0/16\"]"),
    ] {
        let mixed = text.replace("[tunnel]", &format!("[tunnel]\n{key} = {value}"));
        let found = errors(&mixed);
        let message = format!("`tunnel.{key}` is for a box with one peer, and this one has `[[peers]]`");
        assert_eq!((found.len(), found[0].0, &found[0].2), (1, 5, &message), "{found:?}");
    }
    let one = text.split("[[peers]]").take(2).collect::<Vec<_>>().join("[peers]");
    assert!(
        errors(&one).iter().any(|(line, _, message, _)| *line == 17 && message.contains("`[peers]` is a single table"))
    );
    let none =
        text.split("[[peers]]").next().expect("before it").replace("name = \"hub\"", "name = \"hub\"\npeers = []");
    assert!(errors(&none).iter().any(|(line, _, message, _)| *line == 3 && message.contains("a hub without peers")));
    let both =
        text.split("[[peers]]").next().expect("before it").replace("[tunnel]", &format!("[tunnel]\npeer_key = {a}"));
    assert!(errors(&both).iter().any(|(_, _, message, _)| message.contains("not several")));
    let uplink =
        text.replace("[split]\ncapture", "[uplink]\nsatellite").replace("[link]\naddresses = [\"10.8.0.1/24\"]", "");
    assert!(
        errors(&uplink).iter().any(|(_, _, message, _)| message.contains("`uplink` is one box: there are no peers"))
    );
}
