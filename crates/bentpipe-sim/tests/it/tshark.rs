//! Captures as tshark reads them: sound in every header, and with the retransmissions that we counted.
//!
//! How tshark (epan/dissectors/packet-tcp.c) names a segment that begins below the highest sequence number it has seen
//! from that side: *fast retransmission* if it begins at the number of two or more duplicate ACKs and comes within
//! 20 ms of the last; else *out-of-order* if the highest number was reached less than the first round trip (or 3 ms)
//! ago; else *retransmission* (fast and spurious ones are marked so as well). The three are guesses at the cause; that
//! the segment does not advance is none. So:
//!
//! - At the sender's own tap nothing overtakes anything, and what does not advance is sent again: retransmission and
//!   out-of-order together are our `retransmits`, exactly. The repair of the second and later holes of a window, while
//!   new data is sent between, is what tshark calls out-of-order here.
//! - At the receiver's tap the same two together are the arrivals below the highest number, and *previous segment not
//!   captured* are those beyond it.
//!
//! Without tshark the tests are skipped with a message, but not in CI.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::record::{Pcap, Snap, Tap};
use bentpipe_sim::{Both, Observer, Packet, Passage, RunResult, run};
use bentpipe_study::scenario::Scenario;

/// 5 MB over GEO with a queue that slow start overflows and a channel that loses one packet in 500.
const LOSSY: &str = r#"
name = "lossy"
time_limit = "1000 s"
[tcp]
profile = "rfc"
variant = "VARIANT"
[[links]]
name = "sat"
between = ["H1", "H2"]
rate = "10 Mbit/s"
delay = "250 ms"
forward.queue = "150 packets"
forward.loss = "0.2 %"
[[flows]]
name = "data"
from = "H1"
to = "H2"
bytes = "5 MB"
[[flows]]
name = "noise"
type = "udp"
from = "H1"
to = "H2"
rate = "100 kbit/s"
packet = "200 B"
"#;

fn scenario(variant: &str) -> Scenario {
    Scenario::parse(&LOSSY.replace("VARIANT", variant), "lossy.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The packets that our receiver saw of the first flow.
#[derive(Debug, Default)]
struct Arrivals {
    next: u64,
    below: u64,
    beyond: u64,
}

impl Probe for Arrivals {
    fn event(&mut self, _: Time, who: Who, event: &Event) {
        if let Event::Received { segment } = event
            && who == Who(1)
            && segment.sequence_len() > 0
        {
            // The SYN is the first packet in the capture.
            self.below += u64::from(segment.seq < self.next);
            self.beyond += u64::from(segment.seq > self.next);
            self.next = self.next.max(segment.end());
        }
    }
}

impl Observer for Arrivals {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &Packet) {}
}

fn capture(scenario: &Scenario, tap: Tap, snap: Snap, path: &Path) -> (RunResult, Arrivals) {
    let mut pcap = Pcap::create(path, scenario, &[tap], snap, "test").expect("writable");
    let mut arrivals = Arrivals::default();
    let result = run(scenario, 7, &mut Both(&mut pcap, &mut arrivals)).expect("reachable");
    pcap.finish().expect("writable");
    (result, arrivals)
}

/// tshark's findings, counted by name. `None` without tshark.
fn tshark(path: &Path) -> Option<BTreeMap<&'static str, u64>> {
    const FIELDS: [&str; 10] = [
        "ip.src",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.lost_segment",
        "tcp.checksum.status",
        "udp.checksum.status",
        "ip.checksum.status",
        "_ws.malformed",
        "_ws.expert.severity",
        "frame.protocols",
    ];
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o"]);
    command.args(["udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-r"]).arg(path);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("tshark: {error}; skipped");
            return None;
        }
        Err(error) => panic!("tshark: {error}; CI needs it"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeMap::new();
    let mut count = |name, yes: bool| *found.entry(name).or_insert(0) += u64::from(yes);
    let has = |cell: &str, value: &str| cell.split(',').any(|part| part == value);
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let cells: Vec<_> = line.split('|').collect();
        let [source, again, order, lost, tcp, udp, ip, malformed, severity, protocols] = cells[..] else {
            panic!("{line}")
        };
        let from_sender = source == "10.0.1.1";
        count("packets", true);
        count("udp", protocols.contains("udp"));
        count("not advancing", from_sender && (!again.is_empty() || !order.is_empty()));
        count("not advancing, from the receiver", !from_sender && (!again.is_empty() || !order.is_empty()));
        count("beyond a gap", from_sender && !lost.is_empty());
        // 1: good; 2: not all of the packet is there.
        count("good checksum", (has(tcp, "1") || has(udp, "1")) && has(ip, "1"));
        count("bad checksum", [tcp, udp, ip].iter().any(|cell| has(cell, "0")));
        count("malformed", !malformed.is_empty());
        // PI_ERROR.
        count("errors", severity.split(',').any(|part| part == "8388608"));
        let plain = ["raw:ip:tcp", "raw:ip:udp", "raw:ip:tcp:data", "raw:ip:udp:data"];
        count("taken for something else", !plain.contains(&protocols));
    }
    Some(found)
}

#[test]
fn at_the_sender_every_retransmission_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for variant in ["sack", "newreno-sbs", "tahoe"] {
        let scenario = scenario(variant);
        let path = folder.path().join(format!("{variant}.pcapng"));
        let tap = Tap::find(&scenario, "H1").expect("a host")[0];
        let (result, _) = capture(&scenario, tap, Snap::Whole, &path);
        let Some(found) = tshark(&path) else { return };
        let stats = result.flows[0].stats;
        assert!(stats.retransmits > 100, "{variant}: {stats:?}");
        assert_eq!(found["not advancing"], stats.retransmits, "{variant}: {found:?}");
        assert_eq!(found["not advancing, from the receiver"], 0, "{variant}: {found:?}");
        // Everything that both flows sent, and what came back.
        let back = result.links[1].delivered;
        let sent = stats.data_segments + stats.pure_acks + result.flows[1].stats.data_segments;
        assert_eq!((found["packets"], found["good checksum"]), (sent + back, sent + back), "{variant}: {found:?}");
        assert!(found["udp"] > 0, "{found:?}");
        for name in ["bad checksum", "malformed", "errors", "taken for something else"] {
            assert_eq!(found[name], 0, "{variant}, {name}: {found:?}");
        }
    }
}

#[test]
fn at_the_receiver_gaps_and_their_repairs_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("receiver.pcapng");
    for variant in ["sack", "newreno-sbs", "tahoe"] {
        let scenario = scenario(variant);
        let tap = Tap::find(&scenario, "H2").expect("a host")[0];
        // Headers alone: lengths and sequence numbers are read as with all bytes.
        let (_, arrivals) = capture(&scenario, tap, Snap::Headers, &path);
        let Some(found) = tshark(&path) else { return };
        assert!(arrivals.below > 100 && arrivals.beyond > 10, "{variant}: {arrivals:?}");
        assert_eq!(found["not advancing"], arrivals.below, "{variant}: {found:?}");
        assert_eq!(found["beyond a gap"], arrivals.beyond, "{variant}: {found:?}");
        for name in ["bad checksum", "malformed", "errors"] {
            assert_eq!(found[name], 0, "{variant}, {name}: {found:?}");
        }
    }
}

#[test]
fn a_capture_of_the_papers_world_says_what_its_lengths_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("transat.pcapng");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/transat.toml");
    let set = [("tcp.variant".to_owned(), "sack".to_owned())];
    let scenario = Scenario::load(file, &set).unwrap_or_else(|errors| panic!("{errors}"));
    let tap = Tap::find(&scenario, "H1").expect("a host")[0];
    let (result, _) = capture(&scenario, tap, Snap::Whole, &path);
    let bytes = std::fs::read(&path).expect("readable");
    let words = b"counted lengths as ns-2 does";
    assert!(bytes.windows(words.len()).any(|at| at == words), "the comment names the shortcut");
    let Some(found) = tshark(&path) else { return };
    assert_eq!(found["not advancing"], result.flows[0].stats.retransmits, "{found:?}");
    assert_eq!((found["bad checksum"], found["malformed"], found["errors"]), (0, 0, 0), "{found:?}");
}

/// tshark does not know STP: it shows IP with a protocol number for experiments, and data.
#[test]
fn stp_is_sound_ip_of_an_unknown_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stp.pcapng");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/stp.toml");
    let scenario = Scenario::load(file, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let tap = Tap::find(&scenario, "A").expect("a host")[0];
    let (result, _) = capture(&scenario, tap, Snap::Whole, &path);
    let stats = result.flows[0].stats;
    let Some(found) = tshark(&path) else { return };
    let seen = stats.data_segments + stats.pure_acks + result.links[1].delivered;
    assert_eq!((found["packets"], found["taken for something else"]), (seen, seen), "{found:?}");
    assert_eq!((found["bad checksum"], found["malformed"], found["errors"]), (0, 0, 0), "{found:?}");
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-e", "frame.protocols", "-e", "ip.proto", "-r"]).arg(&path);
    let output = String::from_utf8(command.output().expect("it ran before").stdout).expect("text");
    assert!(output.lines().all(|line| line == "raw:ip:data\t253"), "{:?}", output.lines().next());
}
