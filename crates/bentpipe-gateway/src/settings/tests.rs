use super::*;

mod hub;

const SPLIT: &str = r#"
name = "terminal"

[tunnel]
private_key = "private.key"
peer_key = "CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
peer = "198.51.100.7:4500"

[satellite]
rate = "10 Mbit/s"
round_trip = "600 ms"

[split]
capture = ["lan0"]
ports = [80, 443]
"#;

fn errors(text: &str) -> Vec<(usize, String, String, String)> {
    let errors = GatewayFile::parse(text, "gateway.toml").expect_err("it is wrong");
    let all = errors.0.into_iter();
    all.map(|e| (e.line, e.key, e.message, e.expected.or(e.help).unwrap_or_default())).collect()
}

#[test]
fn defaults_and_what_is_given() {
    let file = GatewayFile::parse(SPLIT, "dir/gateway.toml").expect("it is right");
    let tunnel = file.tunnel.as_ref().expect("it is given");
    assert_eq!(tunnel.private_key, Path::new("dir/private.key"));
    assert_eq!(tunnel.listen, ([0, 0, 0, 0], 4500).into());
    assert_eq!((tunnel.mtu, tunnel.dead_after), (1500, Duration::from_secs(15)));
    assert_eq!(file.control, Path::new("/run/bentpipe/terminal/control.sock"));
    assert_eq!(
        (&file.peers[0].preshared_key, &*tunnel.state),
        (&None, Path::new("/run/bentpipe/terminal/peers.state"))
    );
    let given = SPLIT.replace("peer = ", "preshared_key = \"shared.key\"\nstate = \"peers\"\npeer = ");
    let given = GatewayFile::parse(&given, "dir/gateway.toml").expect("it is right");
    assert_eq!(given.peers[0].preshared_key.as_deref(), Some(Path::new("dir/shared.key")));
    assert_eq!(given.tunnel.expect("it is given").state, Path::new("dir/peers"));
    assert_eq!((file.satellite.reordering, file.satellite.shared, file.metrics), (3, false, None));
    let shared = SPLIT.replace("round_trip", "shared = true\nround_trip");
    assert!(GatewayFile::parse(&shared, "gateway.toml").expect("it is right").satellite.shared);
    let ShapeTable::Split(split) = file.shape else { panic!("{file:?}") };
    assert_eq!((split.taken.interfaces, split.taken.ports, split.port), (vec!["lan0".to_owned()], vec![80, 443], 4000));
    assert!(split.taken.keep_client_address && split.direct_without_peer);
    let link = SPLIT.split("[split]").next().expect("before it").to_owned()
        + "[link]\naddresses = [\"10.8.0.1/24\", \"fd08::1/64\"]\n";
    let link = link.replace("[tunnel]", "metrics = \"127.0.0.1:9179\"\n[tunnel]");
    let file = GatewayFile::parse(&link, "gateway.toml").expect("it is right");
    assert_eq!(file.metrics, Some(([127, 0, 0, 1], 9179).into()));
    let ShapeTable::Link(link) = file.shape else { panic!("{file:?}") };
    assert_eq!(link.addresses, [([10, 8, 0, 1].into(), 24), ([0xfd08, 0, 0, 0, 0, 0, 0, 1].into(), 64)]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let change = |from, to| errors(&SPLIT.replace(from, to));
    let one = |from, to| {
        let found = change(from, to);
        assert_eq!(found.len(), 1, "{found:?}");
        let (line, key, message, hint) = found[0].clone();
        format!("{line} {key}: {message} / {hint}")
    };
    assert_eq!(
        one("\"10 Mbit/s\"", "10"),
        "10 satellite.rate: `satellite.rate` needs a unit / a rate such as \"2 Mbit/s\""
    );
    let found = change("round_trip", "roundtrip");
    let messages: Vec<_> = found.iter().map(|(_, _, message, _)| message.as_str()).collect();
    assert_eq!(messages, ["`satellite` needs `round_trip`", "`satellite` has no key `roundtrip`"]);
}

/// The gateway replaces its file of addresses: a private key of that name would be lost.
#[test]
fn what_is_read_is_not_overwritten() {
    for file in ["private.key", "shared.key", "gateway.toml"] {
        let keys = format!("preshared_key = \"shared.key\"\nstate = \"{file}\"\npeer = ");
        let [(line, key, message, hint)] = &errors(&SPLIT.replace("peer = ", &keys))[..] else { panic!("{file}") };
        assert_eq!((*line, key.as_str(), hint.as_str()), (8, "tunnel.state", "a file of its own"));
        assert_eq!(*message, format!("{file} is read by the gateway, which would overwrite it"));
    }
}

#[test]
fn mistakes_of_each_kind() {
    for (from, to, expected) in [
        ("\"600 ms\"", "\"0 ms\"", "cannot be zero"),
        ("\"198.51.100.7:4500\"", "\"[2001:db8::7]:4500\"", "cannot send to [2001:db8::7]:4500 from 0.0.0.0:"),
        ("peer = ", "listen = \"[2001:db8::1]:4500\"\npeer = ", "cannot send to 198.51.100.7:4500 from [2001:db8::1]:"),
        ("\"198.51.100.7:4500\"", "\"198.51.100.7\"", "cannot be \"198.51.100.7\""),
        ("AAAA=\"", "AAAA\"", "not a key: base64 of 32 bytes"),
        ("\"CQAA", "\"AAAA", "all bytes of this key are zero"),
        ("[80, 443]", "[80, 0]", "it must be at least 1"),
        ("[\"lan0\"]", "[\"lan\\\" accept\"]", "cannot be the name of an interface"),
        ("[\"lan0\"]", "[\"\"]", "cannot be the name of an interface"),
        ("[\"lan0\"]", "[\"..\"]", "cannot be the name of an interface"),
        ("[\"lan0\"]", "[\"enp129s0f10.4094\"]", "cannot be the name of an interface"),
        ("\"198.51.100.7:4500\"", "\"198.51.100.7:0\"", "198.51.100.7:0 is nobody's address"),
        ("\"198.51.100.7:4500\"", "\"0.0.0.0:4500\"", "0.0.0.0:4500 is nobody's address"),
        ("\"198.51.100.7:4500\"", "\"224.0.0.1:4500\"", "224.0.0.1:4500 is nobody's address"),
        ("name = \"terminal\"", "name = \"../terminal\"", "a name cannot contain"),
        ("[split]", "[link]\naddresses = [\"10.8.0.1/40\"]\n[split]", "not several"),
        ("peer = ", "dead_after = \"6 s\"\npeer = ", "an idle peer would count as down"),
        ("peer = ", "peer_prefixes = [\"10.1.0.7/24\"]\npeer = ", "10.1.0.7 has bits beyond the first 24"),
        ("ports = ", "allow = [\"10.0.0.0/8:0\"]\nports = ", "`0` is not a port"),
        ("ports = ", "deny = [\"example.org\"]\nports = ", "`example.org` is not an IP address"),
        ("peer = ", "mtu = \"900 B\"\npeer = ", "`tunnel.mtu` must be from 1280 B to 65535 B"),
        ("ports = ", "memory = \"1 MB\"\nports = ", "less than one connection needs"),
        ("ports = ", "client_address = \"keeep\"\nports = ", "cannot be \"keeep\""),
        ("[tunnel]", "metrics = \"localhost\"\n[tunnel]", "`metrics` cannot be \"localhost\""),
        ("[split]", "[slpit]", "has no key `slpit`"),
        ("round_trip", "shared = \"yes\"\nround_trip", "`satellite.shared` "),
    ] {
        assert!(SPLIT.contains(from), "{from}");
        let found = errors(&SPLIT.replace(from, to));
        assert!(found.iter().any(|(_, _, message, _)| message.contains(expected)), "{expected}: {found:?}");
        assert!(found.iter().all(|&(line, ..)| line > 0));
    }
}

/// A mistake does not hide those behind it.
#[test]
fn all_mistakes_are_said_at_once() {
    let text = r#"name = "terminal"
control = 1
metrics = "localhost"
user = "../root"

[tunnel]
private_key = 6
state = 7
listen = "here"
mtu = "9 B"
keepalive = 5
dead_after = 15
peer_key = "key"
preshared_key = 13
peer = "there"
peer_prefixes = ["10.1.0.7/24"]

[satellite]
rate = 10
round_trip = 600

[link]
device = "tun 0"
addresses = ["10.8.0.1/40", "10.9.0.1/+24"]
memory = 24
throughput_advice = "much"
"#;
    let lines = |text: &str| errors(text).iter().map(|(line, ..)| *line).collect::<Vec<_>>();
    assert_eq!(lines(text), [2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 23, 24, 24, 25, 26]);
    let split = SPLIT.replace("\"lan0\"", "\"lan 0\", \"lan 1\"").replace("80, 443", "0, 70000");
    assert_eq!(lines(&split), [14, 14, 15, 15]);
}

/// The interface of a VLAN has a dot in its name.
#[test]
fn a_vlan_is_an_interface() {
    let file = GatewayFile::parse(&SPLIT.replace("lan0", "lan0.100"), "gateway.toml").expect("it is right");
    let ShapeTable::Split(split) = file.shape else { panic!("{file:?}") };
    assert_eq!(split.taken.interfaces, ["lan0.100"]);
    assert_eq!(uplink(&UPLINK.replace("sat0", "sat0.4094")).taken.interfaces, ["sat0.4094"]);
}

/// A socket for both versions of IP reaches every peer.
#[test]
fn a_tunnel_reaches_its_peer() {
    for (listen, peer) in [
        ("[::]:4500", "[2001:db8::7]:4500"),
        ("[::]:4500", "198.51.100.7:4500"),
        ("[2001:db8::1]:1", "[2001:db8::7]:1"),
    ] {
        let text = SPLIT.replace("\"198.51.100.7:4500\"", &format!("\"{peer}\"\nlisten = \"{listen}\""));
        assert!(GatewayFile::parse(&text, "gateway.toml").is_ok(), "{listen} {peer}");
    }
}

const UPLINK: &str = r#"
name = "hub"

[satellite]
rate = "10 Mbit/s"
round_trip = "600 ms"

[uplink]
satellite = ["sat0"]
"#;

fn uplink(text: &str) -> UplinkTable {
    let file = GatewayFile::parse(text, "gateway.toml").expect("it is right");
    assert_eq!(file.tunnel, None);
    let ShapeTable::Uplink(table) = file.shape else { panic!("{file:?}") };
    *table
}

#[test]
fn an_uplink_needs_little() {
    let table = uplink(UPLINK);
    assert_eq!((&table.variant[..], &table.device[..], table.mtu), ("constant-rack", "bentpipe0", 1500));
    assert_eq!(table.taken.interfaces, ["sat0"]);
    assert!(table.taken.keep_client_address && !table.early_accept && table.taken.ports.is_empty());
    // 10 Mbit/s for 600 ms.
    assert_eq!(table.window, Some(Bytes::new(750_000)));
    let row = bentpipe_engine::tcp::Variant::named("constant-rack").expect("a row");
    assert_eq!(table.tcp.variant, bentpipe_engine::tcp::Variant { sack: true, ..row });
    assert_eq!((table.tcp.mss, table.tcp.timestamps, table.tcp.window_scaling), (1460, true, true));
}

#[test]
fn any_cell_of_an_uplink_can_be_set() {
    let table = uplink(&format!("{UPLINK}variant = \"sack\"\nmtu = \"1400 B\"\n"));
    assert_eq!((table.window, table.tcp.mss), (None, 1360), "slow start finds its window");
    let table = uplink(&format!("{UPLINK}variant = \"sack\"\nwindow = \"1 MB\"\n"));
    assert_eq!(table.window, Some(Bytes::new(1_000_000)));
    let table = uplink(&format!("{UPLINK}variant = \"sack\"\n[uplink.tcp]\nfixed_window = 400\nmss = \"536 B\"\n"));
    assert_eq!((table.window, table.tcp.mss), (None, 536));
    assert_eq!(table.tcp.variant.startup, bentpipe_engine::tcp::variant::Startup::FixedWindow(400));
}

#[test]
fn mistakes_of_an_uplink() {
    let tunnel = "[tunnel]\nprivate_key = \"private.key\"\npeer_key = \"\"\n[uplink]";
    for (from, to, expected) in [
        ("[uplink]", tunnel, "`uplink` is one box: there is no tunnel"),
        ("[uplink]", "[link]\n[uplink]", "not several"),
        ("round_trip", "shared = true\nround_trip", "`satellite.shared` is for two boxes"),
        ("[\"sat0\"]", "[]", "no connections would be accelerated"),
        ("[\"sat0\"]", "[\"bentpipe0\"]", "packets from it would be routed into it again"),
        ("satellite = [", "variant = \"brust\"\nsatellite = [", "there is no variant `brust`"),
        ("satellite = [", "window = \"100 B\"\nsatellite = [", "a window cannot be 100 B"),
        ("satellite = [", "tcp.fixed_window = 9\nwindow = \"1 MB\"\nsatellite = [", "say the same thing twice"),
        ("satellite = [", "tcp.shortcuts.ns2_recovery = true\nsatellite = [", "ns-2's forms of TCP"),
        ("satellite = [", "tcp.recovery = \"pipe-ns2\"\nsatellite = [", "ns-2's forms of TCP"),
        ("satellite = [", "variant = \"sack-ns2\"\nsatellite = [", "ns-2's forms of TCP"),
        ("satellite = [", "tcp.tcb_sharing = \"resume\"\nsatellite = [", "the connections of a box share nothing"),
        ("satellite = [", "early_accept = \"yes\"\nsatellite = [", "cannot be text"),
        ("satellite = [\"sat0\"]", "", "`uplink` needs `satellite`"),
        ("[uplink]", "[uplnk]", "has no key `uplnk`"),
    ] {
        assert!(UPLINK.contains(from), "{from}");
        let found = errors(&UPLINK.replace(from, to));
        assert!(found.iter().any(|(_, _, message, _)| message.contains(expected)), "{expected}: {found:?}");
        assert!(found.iter().all(|&(line, ..)| line > 0));
    }
    // The other shapes require it.
    let found = errors(&UPLINK.replace("[uplink]\nsatellite = [\"sat0\"]", "[link]\naddresses = []"));
    assert_eq!(found[0].2, "the gateway file needs `tunnel`");
}

fn relay(text: &str) -> RelayTable {
    let file = GatewayFile::parse(text, "gateway.toml").expect("it is right");
    let ShapeTable::Relay(table) = file.shape else { panic!("{file:?}") };
    table
}

#[test]
fn an_uplink_with_the_kernels_sender() {
    let text = format!("{UPLINK}sender = \"kernel\"\n");
    let table = relay(&text);
    assert_eq!((&table.congestion[..], table.port, table.taken.max_streams), ("bbr", 4000, 16_384));
    let taken = &table.taken;
    assert!(taken.keep_client_address && taken.ports.is_empty() && taken.interfaces == ["sat0"]);
    let table = relay(&format!("{text}congestion = \"cubic\"\nport = 4001\nclient_address = \"replace\"\n"));
    assert_eq!((&table.congestion[..], table.port, table.taken.keep_client_address), ("cubic", 4001, false));
    assert_eq!(uplink(&format!("{UPLINK}sender = \"engine\"\n")), uplink(UPLINK));
}

#[test]
fn each_sender_has_its_keys() {
    let kernel = format!("{UPLINK}sender = \"kernel\"\n");
    for key in [
        "variant = \"sack\"",
        "window = \"1 MB\"",
        "device = \"tun0\"",
        "mtu = \"1400 B\"",
        "early_accept = true",
        "tcp.fixed_window = 9",
    ] {
        let found = errors(&format!("{kernel}{key}\n"));
        let (line, path, message, _) = &found[0];
        let name = key.split([' ', '.']).next().expect("a key");
        assert_eq!((found.len(), *line, path), (1, 11, &format!("uplink.{name}")), "{found:?}");
        assert_eq!(message, &format!("`uplink.{name}` is for `sender = \"engine\"`"));
    }
    for key in ["congestion = \"bbr\"", "port = 4000"] {
        let found = errors(&format!("{UPLINK}{key}\n"));
        assert!(found.len() == 1 && found[0].2.contains("is for `sender = \"kernel\"`"), "{found:?}");
    }
    for (text, expected) in [
        ("sender = \"kernal\"", "cannot be \"kernal\""),
        ("sender = \"kernel\"\ncongestion = \"b b\"", "cannot be a name here"),
        ("sender = \"kernel\"\nport = 0", "it must be at least 1"),
    ] {
        let found = errors(&format!("{UPLINK}{text}\n"));
        assert!(found.iter().any(|(_, _, message, _)| message.contains(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn who_may_be_reached_and_who_may_speak() {
    let text = SPLIT
        .replace("peer = ", "peer_prefixes = [\"10.1.0.0/24\", \"fd01::/64\"]\npeer = ")
        .replace("ports = ", "allow = [\"10.0.0.0/8\", \"[2001:db8::/32]:443\"]\ndeny = [\"*:25\"]\nports = ");
    let file = GatewayFile::parse(&text, "gateway.toml").expect("it is right");
    assert_eq!(file.peers[0].prefixes.as_ref().map(Vec::len), Some(2));
    let ShapeTable::Split(split) = file.shape else { panic!("not split") };
    assert_eq!(
        split.taken.allow,
        ["10.0.0.0/8", "[2001:db8::/32]:443"].map(|text| text.parse().expect("a destination"))
    );
    assert_eq!(split.taken.deny, ["*:25".parse().expect("a destination")]);
}

/// Without sources no packet of the peer would be accepted. Where connections are carried, the peer then opens none.
#[test]
fn a_link_needs_a_source() {
    let none = SPLIT.replace("peer = ", "peer_prefixes = []\npeer = ");
    assert!(GatewayFile::parse(&none, "gateway.toml").is_ok());
    let start = none.find("[split]").expect("a shape");
    let link = format!("{}[link]\naddresses = [\"10.8.0.1/24\"]\n", &none[..start]);
    let found = errors(&link);
    let [(_, key, message, _)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (key.as_str(), message.as_str()),
        ("tunnel.peer_prefixes", "no prefix: no packet of the peer would be accepted")
    );
}

/// An error found later has the same place as one found while reading.
#[test]
fn a_mistake_that_the_machine_finds() {
    let text = format!("{UPLINK}sender = \"kernel\"\ncongestion = \"bbq\"\n");
    let place = |text: &str| {
        let found = GatewayFile::mistake(text, "gateway.toml", "uplink.congestion", "no".into(), "yes".into());
        (found.0[0].source.clone(), found.0[0].line, found.0[0].key.clone())
    };
    let at = |line| ("gateway.toml".to_owned(), line, "uplink.congestion".to_owned());
    assert_eq!(place(&text), at(11));
    assert_eq!(place(UPLINK), at(8), "its table");
}

#[test]
fn the_old_name_of_a_key_works_with_a_warning() {
    let read = |key: &str| {
        let text = format!("{SPLIT}{key} = 7\n");
        GatewayFile::parse_with_warnings(&text, "gateway.toml").unwrap_or_else(|errors| panic!("{errors}"))
    };
    let ((new, none), (old, warnings)) = (read("max_streams"), read("most_streams"));
    assert_eq!((&new, none.0.len()), (&old, 0));
    let [warning] = &warnings.0[..] else { panic!("{warnings}") };
    assert_eq!((warning.line, warning.key.as_str(), warning.is_warning), (16, "split.most_streams", true));
    assert!(warning.render(false).starts_with("warning: `most_streams` is now called `max_streams`"), "{warning}");
}
