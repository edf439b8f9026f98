//! What a mistake looks like to the one who made it. One snapshot per mistake, whole.

use bentpipe_study::scenario::{Scenario, ScenarioErrors};

pub(crate) const SOUND: &str = r#"name = "mistakes"

[tcp]
profile = "rfc"

[[links]]
name = "sat"
between = ["SN1", "SN2"]
rate = "2 Mbit/s"
delay = "255 ms"
queue = "50 packets"

[[flows]]
name = "data"
from = "SN1"
to = "SN2"
bytes = "1 MB"
"#;

pub(crate) fn errors(text: &str, sets: &[(&str, &str)]) -> ScenarioErrors {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::parse(text, "scenarios/mistakes.toml", &sets).expect_err("there is a mistake in it")
}

/// The sound scenario with one line changed.
fn changed(from: &str, to: &str) -> ScenarioErrors {
    assert!(SOUND.contains(from));
    errors(&SOUND.replacen(from, to, 1), &[])
}

fn set(key: &str, value: &str) -> ScenarioErrors {
    errors(SOUND, &[(key, value)])
}

/// The system has its own words for a file or a folder that is not there.
fn in_words_of_unix(text: String) -> String {
    if cfg!(unix) {
        return text;
    }
    let text = text.replace('\\', "/");
    ["scenarios/no-such-trace.csv", "no/such/file.toml"].iter().fold(text, |text, missing| {
        let words = std::fs::read(missing).expect_err("it is not there").to_string();
        text.replace(&words, "No such file or directory (os error 2)")
    })
}

#[test]
fn the_sound_one_is_sound() {
    Scenario::parse(SOUND, "scenarios/mistakes.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
}

/// Names are in pictures and in the XML of JUnit, which forbids these.
#[test]
fn characters_that_xml_forbids() {
    for escape in ["\\u0007", "\\n", "\\uFFFE", "\\uFFFF"] {
        let told = changed("\"sat\"", &format!("\"a{escape}b\"")).to_string();
        assert!(told.contains("a name cannot contain '\\"), "{escape}: {told}");
    }
}

#[test]
fn misspelt_key() {
    insta::assert_snapshot!(changed("delay =", "dealy ="));
}

#[test]
fn key_of_a_table_below() {
    insta::assert_snapshot!(changed("bytes =", "variant = \"cubic\"\nbytes ="));
    // Of several tables, each is named.
    let text = set("flows.data.initial_window", "4 segments").to_string();
    assert!(text.contains("did you mean `tcp.initial_window` or"), "{text}");
    // Of a list, too.
    let text = set("loss", "1 %").to_string();
    assert!(text.contains("did you mean `links.NAME.loss`?"), "{text}");
}

#[test]
fn bare_number() {
    insta::assert_snapshot!(changed("\"255 ms\"", "255"));
}

#[test]
fn unknown_unit() {
    insta::assert_snapshot!(changed("\"2 Mbit/s\"", "\"2 mbit/s\""));
}

#[test]
fn unknown_node() {
    insta::assert_snapshot!(changed("to = \"SN2\"", "to = \"SM2\""));
}

#[test]
fn syntax() {
    insta::assert_snapshot!(changed("[[flows]]", "[[flows]"));
}

#[test]
fn override_of_a_link_that_is_not_there() {
    insta::assert_snapshot!(set("links.satt.delay", "300 ms"));
}

#[test]
fn override_without_unit() {
    insta::assert_snapshot!(set("links.sat.delay", "300"));
}

#[test]
fn several_at_once() {
    let text = SOUND.replace("\"50 packets\"", "\"50 pakets\"").replace("\"1 MB\"", "\"1 KB\"").replace("rfc", "ns3");
    insta::assert_snapshot!(errors(&text, &[("tcp.variant", "illinois"), ("tcp.mss", "70000 B")]));
}

#[test]
fn red_thresholds_inverted() {
    let queue = "queue = { limit = \"50 packets\", discipline = \"red\", min_threshold = \"15 packets\", max_threshold = \"5 packets\" }";
    insta::assert_snapshot!(changed("queue = \"50 packets\"", queue));
}

#[test]
fn unreachable_both_ways() {
    let text = SOUND.replace("to = \"SN2\"", "to = \"H2\"")
        + "[[links]]\nname = \"x\"\nfrom = \"H2\"\nto = \"H3\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    insta::assert_snapshot!(errors(&text, &[]));
}

#[test]
fn missing_file() {
    let errors = Scenario::load("no/such/file.toml", &[]).expect_err("it is not there");
    insta::assert_snapshot!(in_words_of_unix(errors.to_string()));
}

/// The first line of each message, its key and its place: one row per rule.
#[test]
fn every_rule_refuses() {
    let rows: &[(&str, &str)] = &[
        ("links.sat.loss", "101 %"),
        ("links.sat.loss", "1"),
        ("links.sat.loss", "-0.1"),
        ("links.sat.delay", "-1 ms"),
        ("links.sat.delay", "0.5 ns"),
        ("links.sat.rate", "0 bit/s"),
        ("links.sat.rate", "fast"),
        ("links.sat.rate_trace", "[5]"),
        ("links.sat.rate_trace", "true"),
        ("links.sat.name", ""),
        ("links.sat.name", "a.b"),
        ("links.sat.between", "[\"A\", \"A\"]"),
        ("links.sat.between", "[\"A\"]"),
        ("links.sat.from", "A"),
        ("links.sat.queue", "50"),
        ("links.sat.queue", "true"),
        ("links.sat.queue.min_threshold", "5 packets"),
        ("links.sat.queue.discipline", "rde"),
        ("links.sat.queue", "{ limit = \"9 packets\", discipline = \"red\", weight = 2.0 }"),
        ("links.sat.schedule", "[{ delay = \"1 ms\" }]"),
        ("links.sat.schedule", "[{ at = \"1 s\" }]"),
        ("links.sat.schedule", "[{ at = \"1 s\", queue = \"9 packets\", over = \"1 s\" }]"),
        ("links.sat.schedule", "[{ at = \"2 s\", delay = \"1 ms\" }, { at = \"1 s\", delay = \"2 ms\" }]"),
        (
            "links.sat.schedule",
            "[{ at = \"1 s\", rate = \"1 Mbit/s\", over = \"2 s\" }, { at = \"2 s\", rate = \"2 Mbit/s\" }]",
        ),
        ("links.sat.schedule", "[{ at = \"1 s\", rate = \"0 bit/s\" }]"),
        ("links.sat.schedule", "[{ at = \"1 s\", loss = \"101 %\" }]"),
        ("links.sat.schedule_period", "10 s"),
        ("links.sat.phases", "{ outage = \"1 s\" }"),
        ("links.sat.phases", "{ length = \"10 us\" }"),
        ("links.sat.phases", "{ length = \"1 s\", outage = \"1 s\" }"),
        ("links.sat.phases", "{ length = \"1 s\", first = \"2 s\" }"),
        ("links.sat.phases", "{ length = \"1 s\", loss = \"5 %\" }"),
        ("links.sat.phases", "{ length = \"1 s\", rate = [\"2 Mbit/s\", \"1 Mbit/s\"] }"),
        ("links.sat.delay_trace", "{ values = [[\"1 s\", \"1 ms\"], [\"0 s\", \"1 ms\"]] }"),
        ("links.sat.delay_trace", "{ values = [[\"0 s\", \"1 ms\"]], interval = \"1 s\" }"),
        ("links.sat.delay_trace", "{ text = \"1\", interval = \"10 us\" }"),
        ("links.sat.delay_trace", "{ text = \"1 fast\", interval = \"1 s\" }"),
        ("links.sat.loss_trace", "{ text = \"1 % 2 %\", interval = \"1 s\" }"),
        ("links.sat.loss_trace", "{ text = \"\", interval = \"1 s\" }"),
        ("links.sat.delay_trace", "{}"),
        ("links.sat.delay_trace", "no-such-trace.csv"),
        ("links.sat.loss_trace", "{ values = [[\"0 s\", \"200 %\"]] }"),
        ("links.sat.jitter", "{ correlation = \"50 %\" }"),
        ("links.sat.jitter", "{ delay = \"1 ms\", correlation = \"100 %\" }"),
        ("links.sat.jitter", "{ delay = \"1 ms\", every = \"1 ns\" }"),
        ("links.sat.jitter", "{ delay = { pareto = [\"3 ms\", \"3 ms\"] } }"),
        ("links.sat.jitter", "{ delay = { normal = [\"3 ms\", \"1 ms\"], clip = [\"1 ms\", \"2 ms\"] } }"),
        ("links.sat.jitter", "5 ms"),
        ("links.sat.reorder", "{ probability = \"1 %\" }"),
        ("links.sat.duplicate", "2"),
        ("links.sat.corrupt", "-1"),
        ("links.sat.queue", "{ limit = \"9 packets\", discipline = \"codel\", gentle = true }"),
        ("links.sat.queue", "{ limit = \"9 packets\", discipline = \"red\", target = \"5 ms\" }"),
        ("links.sat.queue", "{ limit = \"9 packets\", discipline = \"fq-codel\", target = \"200 ms\" }"),
        ("links.sat.queue", "{ limit = \"9 packets\", discipline = \"dualpi2\", target = \"999 ns\" }"),
        ("links.sat.bursts", "{ gap = \"1 s\" }"),
        ("links.sat.bursts", "{}"),
        ("links.sat.bursts", "{ gap = \"0 s\", length = \"0 s\" }"),
        ("links.sat.bursts", "{ gap = \"1 s\", length = { uniform = [\"2 s\", \"1 s\"] } }"),
        ("links.sat.bursts", "{ gap = \"1 s\", length = { exponential = \"1 ms\", truncate = [\"1 s\", \"2 s\"] } }"),
        ("links.sat.bursts", "{ gap = \"1 s\", length = { uniform = [\"1 s\", \"2 s\"], clip = [\"1 s\", \"2 s\"] } }"),
        ("links.sat.bursts.schedule", "[[\"2 s\", \"1 s\"], [\"2.5 s\", \"1 s\"]]"),
        ("links.sat.bursts.file", "no-such-trace.csv"),
        ("links.sat.gilbert_elliott", "{ good = \"1 s\", bad = \"1 s\" }"),
        ("links.sat.packet_bursts", "{ start = \"1 %\" }"),
        ("links.sat.packet_bursts", "{ burstiness = \"50 %\" }"),
        ("links.sat.packet_bursts", "{ start = \"1 %\", length = \"0 packets\" }"),
        ("links.sat.packet_bursts", "{ start = \"1 %\", length = \"5 ms\" }"),
        ("links.sat.packet_bursts", "{ start = \"1 %\", length = \"5 packets\", max = \"90 %\" }"),
        ("links.sat.packet_bursts", "{ start = \"1 %\", burstiness = 1.5 }"),
        ("links.sat.drop_list", "[3, 3]"),
        ("flows.data.bytes", "0 B"),
        ("flows.data.bytes", "1 packet"),
        ("flows.data.rate", "1 Mbit/s"),
        ("flows.data.type", "sctp"),
        ("flows.data.quic", "{ streams = 2 }"),
        ("flows.data.count", "0"),
        ("flows.data.stagger", "1 s"),
        ("flows.data.to", "SN1"),
        ("flows.data.greedy", "false"),
        ("flows.data.request_response", "{ request = \"1 B\" }"),
        ("flows.data.route", "[\"sta\"]"),
        ("flows.data.return_route", "[]"),
        ("flows.data.split", "[]"),
        ("flows.data.split", "[{ at = \"SN3\" }]"),
        ("flows.data.split", "[{ at = \"SN2\" }]"),
        ("flows.data.split", "[{ buffer = \"1 MB\" }]"),
        ("flows.data.start", "2 h 3 min"),
        ("flows.data.tcp.variant", "newrino"),
        ("flows.data.tcp.rto.min", "100 s"),
        ("flows.data.tcp.rto.mim", "1 s"),
        ("flows.data.tcp.rto", "1 s"),
        ("flows.data.tcp.mss", "65496 B"),
        ("flows.data.tcp.mss", "1460"),
        ("flows.data.tcp.sack", "false"),
        ("flows.data.tcp.inflate.deflate", "false"),
        ("flows.data.tcp.rto.phase", "1 ms"),
        ("flows.data.tcp.rto.jiffy", "0 s"),
        ("flows.data.tcp.rto", "{ tick = \"500 ms\", jiffy = \"4 ms\" }"),
        ("flows.data.tcp.burst.guard", "credit"),
        ("flows.data.tcp.timeout_repair", "newest"),
        ("flows.data.tcp.initial_window", "0"),
        ("flows.data.tcp.initial_window", "4 packets"),
        ("flows.data.tcp.window_clamp", "on"),
        ("flows.data.tcp.receiver.receive_buffer", "1 kB"),
        ("flows.data.tcp.receiver.variant", "sack"),
        ("flows.1.bytes", "1 MB"),
        ("flows.data.bytes.x", "1"),
        ("variants.x.base", "x"),
        ("variants", "{ x = { base = \"y\" }, y = { base = \"x\" } }"),
        ("variants.x.initial_window", "3"),
        ("seed", "-1"),
        ("time_limit", "0 s"),
        ("name", "\" \""),
        ("", "1"),
        ("links", "[]"),
    ];
    let mut table = String::new();
    for (key, value) in rows {
        table.push_str(&format!("{key}={value}\n"));
        let sets = [((*key).to_owned(), (*value).to_owned())];
        let Err(errors) = Scenario::parse(SOUND, "scenarios/mistakes.toml", &sets) else {
            panic!("accepted: {key}={value}")
        };
        for error in errors.0 {
            let expected = error.expected.map(|expected| format!(" | expected {expected}")).unwrap_or_default();
            let help = error.help.map(|help| format!(" | {help}")).unwrap_or_default();
            let place = format!("{}:{}:{}", error.source, error.line, error.column);
            table.push_str(&format!("    {place} {}: {}{expected}{help}\n", error.key, error.message));
        }
    }
    insta::assert_snapshot!(in_words_of_unix(table));
}

#[test]
fn names_are_given_once() {
    let again = "[[links]]\nname = \"sat\"\nbetween = [\"SN2\", \"SN3\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    assert!(errors(&(SOUND.to_owned() + again), &[]).to_string().contains("two links are called `sat`"));
    let again = "[[flows]]\nname = \"data\"\nfrom = \"SN1\"\nto = \"SN2\"\nbytes = \"1 MB\"\n";
    assert!(errors(&(SOUND.to_owned() + again), &[]).to_string().contains("two flows are called `data`"));
}

#[test]
fn cells_nodes_and_paces_are_checked() {
    let text = |link: &str, rest: &str| {
        format!(
            "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{link}\n\
             [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{rest}"
        )
    };
    let bulk = "bytes = \"1 MB\"\n";
    let layer = |keys: &str, channel: &str| {
        format!("{bulk}[[layers]]\nname = \"x\"\nover = \"l\"\n{keys}\nchannels = [{{ name = \"c\", {channel} }}]\n")
    };
    for (link, rest, expected) in [
        ("atm.buffer = \"10 cells\"", bulk, "applies only to cells"),
        ("framing = \"aal5\"\nqueue = \"5 packets\"", bulk, "is set in `atm`"),
        ("framing = \"aal6\"", bulk, "\"packets\", \"aal5\""),
        ("framing = \"aal5\"\natm.buffer = \"10 packets\"", bulk, "8192 cells"),
        ("framing = \"aal5\"\natm.buffer = \"0 cells\"", bulk, "at least one cell"),
        ("framing = \"aal5\"\natm.early_packet_discard = \"80 %\"", bulk, "only to a limited buffer"),
        (
            "framing = \"aal5\"",
            "bytes = \"1 MB\"\n[[layers]]\nname = \"x\"\nover = \"l\"\nweightless = true\n",
            "a cell has a weight",
        ),
        ("tdma = { frame = \"1 ms\", bursts = [] }", bulk, "the frame has no bursts"),
        ("tdma = { frame = \"1 ms\", bursts = [[\"0 s\", \"2 ms\"]] }", bulk, "ends after the frame"),
        ("tdma = { frame = \"1 ms\", bursts = [[\"0 s\", \"0 s\"]] }", bulk, "cannot have zero length"),
        (
            "framing = \"aal5\"\ntdma = { frame = \"1 ms\", bursts = [[\"0 s\", \"1 us\"]] }",
            bulk,
            "cells follow no schedule",
        ),
        ("framing = \"aal5\"\natm.sharing = \"fair\"", bulk, "\"per-vc\", \"shared\""),
        ("", &layer("", "segments = 2"), "a frame on the wire carries a whole packet"),
        (
            "",
            &layer("weightless = true", "segments = 2, codel = \"auto\""),
            "packets in several frames need all of them",
        ),
        ("", &layer("weightless = true", "segments = 65"), "from 1 to 64"),
        ("", &layer("", "queueing = \"fair\", ack_filter = true"), "fair scheduling excludes `codel` and `ack_filter`"),
        ("", &layer("", "queueing = \"shared\""), "\"fifo\", \"fair\""),
        ("", "bytes = \"1 MB\"\n[nodes.c]\nprocessing = \"1 ms\"\n", "no link leads to a node `c`"),
        (
            "[[links]]\nname = \"m\"\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n",
            "bytes = \"1 MB\"\n[nodes.c]\nprocessing = \"1 ms\"\n",
            "no flow starts or ends at `c`",
        ),
        ("", "bytes = \"1 MB\"\n[nodes.a]\nprocessing = 62\n", "62"),
        ("", "bytes = \"1 MB\"\nroute = [\"l\", \"l\", \"l\"]\n", "the route passes `l/forward` twice"),
        ("", "paced = { write = \"1 kB\" }\n", "`flows.f.paced` needs `rate`"),
        ("", "paced = { rate = \"1 Mbit/s\" }\nbytes = \"1 MB\"\n", "exactly one of bytes, greedy, paced"),
    ] {
        let errors = Scenario::parse(&text(link, rest), "t.toml", &[]).expect_err(expected).to_string();
        assert!(errors.contains(expected), "{link} {rest}\n{errors}");
    }
}

/// Settings of a link that moves which exclude each other.
#[test]
fn what_moves_is_set_once() {
    let said = |line: &str| changed("queue = \"50 packets\"", line).to_string();
    let rows = [
        "schedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]\nphases = { length = \"1 s\", outage = \"1 ms\" }",
        "schedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]\ntdma = { frame = \"1 s\", bursts = [[\"0 s\", \"1 ms\"]] }",
        "schedule = [{ at = \"1 s\", delay = \"1 ms\" }]\ndelay_trace = { values = [[\"0 s\", \"1 ms\"]] }",
        "schedule = [{ at = \"1 s\", delay = \"1 ms\" }]\nphases = { length = \"1 s\", delay = [\"1 ms\", \"2 ms\"] }",
        "loss_trace = { values = [[\"0 s\", 0]] }\nphases = { length = \"1 s\", outage = \"1 ms\", loss = \"5 %\" }",
        "loss_trace = { values = [[\"0 s\", 0]] }\ngilbert_elliott = { good = \"1 s\", bad = \"1 s\", loss_bad = \"9 %\" }",
        "schedule = [{ at = \"1 s\", delay = \"1 ms\" }, { at = \"3 s\", delay = \"2 ms\" }]\nschedule_period = \"2 s\"",
        "schedule = [{ at = \"0 s\", delay = \"1 ms\" }]\nschedule_period = \"500 us\"",
        "schedule = [{ at = \"1 s\", delay = \"1 ms\" }]\nframing = \"aal5\"",
        "jitter = { delay = \"1 ms\" }\nframing = \"aal5\"",
        "corrupt = \"1 %\"\nframing = \"aal5\"",
    ];
    let mut all: Vec<String> = rows.iter().map(|row| said(row)).collect();
    let unlimited = "rate = \"unlimited\"\nschedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]";
    all.push(changed("rate = \"2 Mbit/s\"", unlimited).to_string());
    let managed = "queue = { limit = \"9 packets\", discipline = \"codel\" }\nschedule = [{ at = \"1 s\", queue = \"5 packets\" }]";
    all.push(said(managed));
    for traced in [
        "rate_trace = { values = [[\"0 s\", \"0 bit/s\"]] }",
        "rate_trace = { values = [[\"0 s\", \"1 Mbit/s\"]] }\nschedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]",
        "rate_trace = { values = [[\"0 s\", \"1 Mbit/s\"]] }\nphases = { length = \"1 s\", outage = \"1 ms\" }",
        "rate_trace = { values = [[\"0 s\", \"1 Mbit/s\"]] }\nrate = \"1 Mbit/s\"",
    ] {
        all.push(changed("rate = \"2 Mbit/s\"", traced).to_string());
    }
    insta::assert_snapshot!(all.join("\n"));
}

/// A gateway between hosts, with one thing wrong.
#[test]
fn gateways_refuse_what_they_cannot_carry() {
    const WORLD: &str = "name = \"boxes\"\n\
        [[links]]\nname = \"lan\"\nbetween = [\"client\", \"near\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
        [[links]]\nname = \"sat\"\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\ndelay = \"300 ms\"\n\
        [[links]]\nname = \"net\"\nbetween = [\"far\", \"server\"]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
        [[gateways]]\nname = \"box\"\nshape = \"split\"\nnear = \"near\"\nfar = \"far\"\n\
        [[flows]]\nname = \"data\"\nfrom = \"client\"\nto = \"server\"\nbytes = \"1 MB\"\n";
    Scenario::parse(WORLD, "boxes.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n[[gateways]]";
    let again = "[[gateways]]\nname = \"box\"\nshape = \"link\"\nnear = \"near\"\nfar = \"far\"\n[[flows]]";
    let rows: &[(&str, &str)] = &[
        ("shape = \"split\"", "shape = \"uplnk\""),
        ("shape = \"split\"", "shape = \"link\"\nmax_streams = 100"),
        ("near = \"near\"", "near = \"naer\""),
        ("near = \"near\"", "near = \"far\""),
        ("near = \"near\"", "near = \"client\""),
        ("near = \"near\"\n", ""),
        ("far = \"far\"\n", "far = \"far\"\nover = \"lan\"\n"),
        ("far = \"far\"\n", "far = \"far\"\nover = [\"sat/forward\", \"lan/backward\"]\n"),
        ("far = \"far\"\n", "far = \"far\"\nrate = \"fast\"\n"),
        ("far = \"far\"\n", "far = \"far\"\nrate = [\"1 Mbit/s\"]\n"),
        ("far = \"far\"\n", "far = \"far\"\nround_trip = \"0 s\"\n"),
        ("far = \"far\"\n", "far = \"far\"\nmtu = \"1000 B\"\n"),
        ("far = \"far\"\n", "far = \"far\"\ncapture = [\"lan0\"]\n"),
        ("delay = \"300 ms\"", "delay = \"300 ms\"\nframing = \"aal5\""),
        ("rate = \"10 Mbit/s\"", "rate = \"unlimited\""),
        ("delay = \"300 ms\"", "delay = \"300 ms\"\nmtu = \"576 B\""),
        ("[[gateways]]", layer),
        ("[[flows]]", again),
        ("to = \"server\"", "to = \"far\""),
        ("to = \"server\"", "to = \"near\""),
        ("bytes = \"1 MB\"", "bytes = \"1 MB\"\nsplit = [{ at = \"far\" }]"),
        ("bytes = \"1 MB\"", "bytes = \"1 MB\"\nspoof = { at = \"far\", buffer = \"10 packets\" }"),
        ("bytes = \"1 MB\"", "bytes = \"1 MB\"\ntcp.profile = \"ns2\""),
    ];
    insta::assert_snapshot!(refusals(WORLD, rows));
}

/// One box between hosts, with one thing wrong.
#[test]
fn uplinks_refuse_what_they_cannot_carry() {
    const WORLD: &str = "name = \"box\"\n\
        [[links]]\nname = \"sat\"\nbetween = [\"client\", \"hub\"]\nrate = \"10 Mbit/s\"\ndelay = \"300 ms\"\n\
        [[links]]\nname = \"net\"\nbetween = [\"hub\", \"server\"]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
        [[gateways]]\nname = \"box\"\nshape = \"uplink\"\nat = \"hub\"\n\
        [[flows]]\nname = \"data\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"1 MB\"\n";
    Scenario::parse(WORLD, "box.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let add = |line: &'static str| ("at = \"hub\"\n", line);
    let again = "[[gateways]]\nname = \"two\"\nshape = \"uplink\"\nat = \"hub\"\nover = \"net\"\n[[flows]]";
    let rows: &[(&str, &str)] = &[
        add(""),
        add("at = \"hut\"\n"),
        add("at = \"client\"\n"),
        add("at = \"hub\"\nnear = \"hub\"\nmemory = \"8 MiB\"\n"),
        add("at = \"server\"\nover = \"sat\"\n"),
        add("at = \"hub\"\nrate = [\"1 Mbit/s\", \"1 Mbit/s\"]\n"),
        add("at = \"hub\"\nround_trip = \"0 s\"\n"),
        add("at = \"hub\"\nvariant = \"sacc\"\n"),
        add("at = \"hub\"\nwindow = \"100 B\"\n"),
        add("at = \"hub\"\nwindow = \"1 MB\"\ntcp.fixed_window = 9\n"),
        add("at = \"hub\"\ntcp.tcb_sharing = \"linux\"\n"),
        add("at = \"hub\"\ncongestion = \"bbr\"\n"),
        add("at = \"hub\"\nsender = \"kernel\"\nvariant = \"sack\"\n"),
        add("at = \"hub\"\nsender = \"kernel\"\ncongestion = \"vegas\"\n"),
        ("rate = \"10 Mbit/s\"", "rate = \"unlimited\""),
        ("shape = \"uplink\"\nat", "shape = \"split\"\nat"),
        ("from = \"server\"", "from = \"hub\""),
        ("[[flows]]", again),
        ("bytes = \"1 MB\"", "bytes = \"1 MB\"\nsplit = [{ at = \"hub\" }]"),
    ];
    insta::assert_snapshot!(refusals(WORLD, rows));
}

/// The message for each change of `world`.
fn refusals(world: &str, rows: &[(&str, &str)]) -> String {
    let mut table = String::new();
    for (from, to) in rows {
        assert!(world.contains(from), "{from}");
        let text = world.replacen(from, to, 1);
        let Err(errors) = Scenario::parse(&text, "boxes.toml", &[]) else { panic!("accepted: {to}") };
        table.push_str(&format!("{} -> {}\n", from.escape_debug(), to.escape_debug()));
        for error in errors.0 {
            let expected = error.expected.map(|expected| format!(" | expected {expected}")).unwrap_or_default();
            table
                .push_str(&format!("    {}:{} {}: {}{expected}\n", error.line, error.column, error.key, error.message));
        }
    }
    table
}
