//! One box in virtual time: TCP ends at it, the server is asked before the client is answered, and the data of all connections is paced.

use bentpipe_engine::NoProbe;
use bentpipe_sim::record::Summary;
use bentpipe_sim::{Fingerprint, Timers, replicate, run, run_with};
use bentpipe_study::scenario::Scenario;

use crate::gateways::{LINKS, one, over, seconds};

/// A box at the far end, and flows.
const WORLD: &str = r#"
name = "uplinks"
time_limit = "2000 s"
LINES
[[gateways]]
name = "box"
shape = "uplink"
at = "far"
SENDER
[[flows]]
from = "server"
to = "client"
FLOW
"#;

const SENDERS: [&str; 4] = [
    "variant = \"sack\"\ntcp.fixed_window = 520\nrate = \"9.9 Mbit/s\"",
    "rate = \"9.9 Mbit/s\"",
    "variant = \"bbr\"\nearly_accept = true",
    "sender = \"kernel\"",
];

fn world(sender: &str, link: &str, flow: &str) -> Scenario {
    over(&WORLD.replace("SENDER", sender).replace("FLOW", flow), link)
}

#[test]
fn all_data_arrives_from_each_sender() {
    let upload = "bytes = \"1 MB\"\n[[flows]]\nname = \"upload\"\nfrom = \"client\"\nto = \"server\"\nstart = \"1 s\"\nbytes = \"300 kB\"";
    for sender in SENDERS {
        for link in LINKS {
            let result = one(&world(sender, link, upload), 1);
            assert!(!result.timed_out, "{sender} {link}");
            let delivered: Vec<_> = result.flows.iter().map(|flow| (flow.delivered, flow.aborted)).collect();
            assert_eq!(delivered, [(1_000_000, None), (300_000, None)], "{sender} {link}");
        }
    }
}

/// The client is 301 ms from the box and the server 10 ms. Three bytes from the client take its handshake plus one way. Its handshake waits
/// for the server's, 20 ms, unless the box accepts early.
#[test]
fn the_server_is_asked_before_the_client_is_answered() {
    let flow = "bytes = \"1 B\"\n[[flows]]\nname = \"up\"\nfrom = \"client\"\nto = \"server\"\nbytes = \"3 B\"";
    let took = |sender| seconds(&one(&world(sender, "", flow), 1), 1);
    // Lines add 0.1 ms for each packet of the three.
    let (asked, early) = (2.0 * 0.301 + 0.020 + 0.311, 2.0 * 0.301 + 0.311);
    for (sender, expected) in [(SENDERS[0], asked), (SENDERS[2], early), (SENDERS[3], early)] {
        assert!((expected..expected + 0.001).contains(&took(sender)), "{sender}: {} {expected}", took(sender));
    }
}

/// Four downloads take as long together as one of their total size, each gets a fourth of the line, and no queue builds up in it: the pacer
/// lets 5 ms through at once, which is four packets of 1.2 ms, with one before and one behind.
#[test]
fn all_connections_are_paced_together() {
    let flows = "bytes = \"1 MB\"\ncount = 4\ntcp.receiver.first_window = \"off\"";
    let scenario = world(SENDERS[0], "", flows);
    let result = one(&scenario, 1);
    let times: Vec<_> = (0..4).map(|flow| seconds(&result, flow)).collect();
    // 4 MB at 9.9 Mbit/s, 1448 of 1500 B; half a round trip, the handshakes' two, and half a one of the last turns.
    let line = 4e6 * 8.0 / 9.9e6 * 1500.0 / 1448.0;
    let (least, most) = times.iter().fold((f64::MAX, 0f64), |(least, most), &time| (least.min(time), most.max(time)));
    assert!(most > line && most < line + 1.5, "{times:?} {line}");
    // The downloads take turns. One whose data reaches the box earlier has more turns until the other servers are out of slow start, five
    // round trips of 20 ms. One after the other, they would end a second apart.
    assert!(most - least < 0.1, "{times:?}");
    let queue = |scenario: &Scenario, result| {
        let links = Summary::new(scenario, result).links;
        links.iter().find(|link| link.name == "sat/backward").expect("the download's link").max_queue_packets
    };
    assert!(queue(&scenario, &result) <= 6, "{}", queue(&scenario, &result));
    // The kernel's connections do not share information.
    let kernel = world("sender = \"kernel\"\ncongestion = \"cubic\"", "", "bytes = \"1 MB\"\ncount = 4");
    assert!(queue(&kernel, &one(&kernel, 1)) > 50);
}

/// The purpose of the box: with 1 % loss the host's own TCP takes many times as long. A single run may lose a retransmission and wait for a
/// timeout.
#[test]
fn a_box_with_a_fixed_window_does_not_slow_down_for_losses() {
    let text = WORLD.replace("SENDER", "").replace("FLOW", "bytes = \"5 MB\"");
    let text = text.replace("[[gateways]]\nname = \"box\"\nshape = \"uplink\"\nat = \"far\"\n", "");
    let plain = over(&text, "loss = \"1 %\"");
    let boxed = world(SENDERS[0], "loss = \"1 %\"", "bytes = \"5 MB\"");
    let total = |scenario: &Scenario| (1..=5).map(|seed| seconds(&one(scenario, seed), 0)).sum::<f64>();
    let (with, without) = (total(&boxed), total(&plain));
    assert!(5.0 * with < without, "{with} {without}");
}

/// Timeouts towards the clients take at most 5 s, with the kernel's sender, too, so data passes that soon after an outage of 30 s. Doubled
/// without a limit, one of about a second would end 31, 63 or 127 s after the first loss.
#[test]
fn an_outage_costs_little_more_than_its_time() {
    let outage = "schedule = [{ at = \"3 s\", loss = \"100 %\" }, { at = \"33 s\", loss = \"0 %\" }]";
    for sender in SENDERS {
        let [alone, with] = ["", outage].map(|link| seconds(&one(&world(sender, link, "bytes = \"4 MB\""), 1), 0));
        // After its end and a timeout a sender may have to begin anew, and slowly: BBR has forgotten the rate.
        assert!(with < 33.0 + 5.0 + 2.0 * alone, "{sender}: {with} {alone}");
    }
}

#[test]
fn a_run_is_its_seed() {
    for sender in [SENDERS[0], SENDERS[3]] {
        let scenario = world(sender, LINKS[3], "bytes = \"1 MB\"\ncount = 5");
        let serial: Vec<_> = (1..4).map(|seed| one(&scenario, seed)).collect();
        assert_eq!(replicate(&scenario, 1..4, 3, |_| ()).expect("threads"), serial, "{sender}");
        let literal = run_with(&scenario, 1, &mut NoProbe, Timers::Literal, |_| true).expect("paths");
        assert_eq!(literal.flows, serial[0].flows, "{sender}");
        let mut print = Fingerprint::default();
        assert_eq!(run(&scenario, 1, &mut print).expect("paths").flows, serial[0].flows, "{sender}");
    }
}

/// The text of the resolved scenario, and the sender that it names, are the same when read again.
#[test]
fn what_is_written_reads_back() {
    for sender in SENDERS {
        let scenario = world(sender, "", "bytes = \"1 MB\"");
        let again = Scenario::parse(&scenario.to_toml(), "again.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(again, scenario, "{sender}");
    }
}
