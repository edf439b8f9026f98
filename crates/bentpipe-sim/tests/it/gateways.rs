//! Gateways of two boxes in virtual time: all data arrives, whatever the link does, and the seed determines the run.

use std::sync::Arc;

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::{Bytes, Duration, Time};
use bentpipe_sim::record::Summary;
use bentpipe_sim::{Fingerprint, RunResult, Timers, replicate, run, run_with};
use bentpipe_study::scenario::{FlowKind, Scenario, Workload};

use crate::worlds::parse;

/// A client, a box or none at each end of the satellite link, a server.
const LINES: &str = r#"
[tcp]
profile = "linux"
[[links]]
name = "lan"
between = ["client", "near"]
rate = "1 Gbit/s"
delay = "1 ms"
[[links]]
name = "sat"
between = ["near", "far"]
rate = "10 Mbit/s"
delay = "300 ms"
queue = "500 packets"
LINK
[[links]]
name = "internet"
between = ["far", "server"]
rate = "1 Gbit/s"
delay = "10 ms"
"#;

/// Two boxes; an upload, a download, and requests with answers.
const WORLD: &str = r#"
name = "gateways"
time_limit = "400 s"
LINES
[[gateways]]
name = "box"
shape = "SHAPE"
near = "near"
far = "far"
[[flows]]
name = "upload"
from = "client"
to = "server"
bytes = "2 MB"
[[flows]]
name = "download"
from = "server"
to = "client"
start = "1 s"
bytes = "2 MB"
[[flows]]
name = "web"
from = "client"
to = "server"
start = "500 ms"
request_response = { request = "300 B", response = "40 kB", think = "1 s", count = 3 }
[[flows]]
name = "voice"
from = "client"
to = "server"
type = "udp"
dscp = 46
rate = "80 kbit/s"
packet = "200 B"
stop = "5 s"
"#;

fn world(shape: &str, link: &str) -> Scenario {
    over(&WORLD.replace("SHAPE", shape), link)
}

/// The scenario of a text in which `LINES` stands for a client, a satellite link with these keys, and a server.
pub(crate) fn over(text: &str, link: &str) -> Scenario {
    let text = text.replace("LINES", &LINES.replace("LINK", link));
    parse(&text)
}

pub(crate) fn one(scenario: &Scenario, seed: u64) -> RunResult {
    run(scenario, seed, &mut NoProbe).expect("a path for each flow")
}

pub(crate) fn seconds(result: &RunResult, flow: usize) -> f64 {
    let flow = &result.flows[flow];
    flow.received_at.expect("all has arrived").saturating_since(flow.start).as_secs_f64()
}

pub(crate) const LINKS: [&str; 6] = [
    "",
    "loss = \"1 %\"",
    "loss = \"5 %\"",
    "bursts = { gap = { uniform = [\"1 s\", \"10 s\"] }, length = { uniform = [\"100 ms\", \"500 ms\"] } }",
    "schedule = [{ at = \"2 s\", rate = \"5 Mbit/s\", delay = \"250 ms\" }, { at = \"4 s\", rate = \"10 Mbit/s\", delay = \"300 ms\" }]",
    "jitter = { delay = \"5 ms\" }\nduplicate = \"1 %\"\ncorrupt = \"1 %\"",
];

#[test]
fn all_data_arrives_in_each_shape() {
    for shape in ["split", "link"] {
        for link in LINKS {
            let result = one(&world(shape, link), 1);
            assert!(!result.timed_out, "{shape} {link}");
            let delivered: Vec<_> = result.flows[..3].iter().map(|flow| (flow.delivered, flow.aborted)).collect();
            // Requests are counted at the server.
            assert_eq!(delivered, [(2_000_000, None), (2_000_000, None), (900, None)], "{shape} {link}");
        }
    }
}

/// A stream opens without a round trip: three bytes of a path of 311 ms one way take one way and the hosts' handshakes.
#[test]
fn split_opens_without_a_round_trip() {
    let mut scenario = world("split", "");
    scenario.flows.truncate(1);
    if let FlowKind::Tcp(tcp) = &mut scenario.flows[0].kind {
        Arc::make_mut(tcp).workload = Workload::Bulk(Bytes::new(3));
    }
    // SYN and data over the LAN, 3 ms; the satellite, 300 ms; SYN and data to the server, 30 ms; lines and layers, some
    // 0.1 ms each.
    let took = seconds(&one(&scenario, 1), 0);
    assert!((0.333..0.334).contains(&took), "{took}");
}

/// 2 MB of 10 Mbit/s are 1.6 s of the line; a message of 1405 B has 6 B of its own headers and 73 B around it, and data is 311 ms on its
/// way. A host with CUBIC and an
/// initial window of 10 needs eight round trips of slow start for it.
#[test]
fn split_fills_the_line_from_the_first_round_trip() {
    let mut scenario = world("split", "");
    scenario.flows.truncate(1);
    let took = seconds(&one(&scenario, 1), 0);
    let line = 2e6 * 8.0 / 10e6 * (1405.0 + 6.0 + 73.0) / 1405.0;
    let least = line + 0.311;
    assert!(took >= least && took < least + 0.1, "{took} s, {least} s at least");
    let boxes = "[[gateways]]\nname = \"box\"\nshape = \"SHAPE\"\nnear = \"near\"\nfar = \"far\"\n";
    let mut plain = over(&WORLD.replace(boxes, ""), "");
    plain.flows.truncate(1);
    assert!(seconds(&one(&plain, 1), 0) > 2.0 * took, "slow start over the satellite");
}

/// With one packet in twenty lost, `link` repairs on the link: the hosts hardly notice.
#[test]
fn link_repairs_what_the_hosts_would() {
    let scenario = world("link", "loss = \"5 %\"");
    let result = one(&scenario, 1);
    let summary = Summary::new(&scenario, &result);
    let upload = &result.flows[0].stats;
    let bulk = summary.channels.iter().find(|channel| channel.channel == "bulk" && channel.link == "sat/forward");
    let bulk = bulk.expect("the upload's channel");
    assert!(bulk.lost_frames > 50 && bulk.skipped == 0, "{bulk:?}");
    // The hosts retransmit less than a tenth of what the link lost.
    assert!(upload.retransmits < bulk.lost_frames / 10, "{upload:?} {bulk:?}");
    let lost = |name: &str| result.flows.iter().zip(&scenario.flows).find(|(_, flow)| flow.name == name);
    let (voice, _) = lost("voice").expect("the call");
    // 250 datagrams, unordered, with repair frames: fewer are lost than on the bare link, where 12 would be.
    assert!(voice.receiver_stats.data_segments >= 246, "{voice:?}");
}

/// Headers are compressed: about 14 of the 52 bytes in a full segment with timestamps remain. While the line is full, which it is after the
/// first 10 MB, there are neither copies nor repair frames: the second 10 MB take the time of their bytes.
#[test]
fn link_compresses_headers() {
    let took = |bytes: u64| {
        let mut scenario = world("link", "");
        scenario.flows.truncate(1);
        if let FlowKind::Tcp(tcp) = &mut scenario.flows[0].kind {
            Arc::make_mut(tcp).workload = Workload::Bulk(Bytes::new(bytes));
        }
        seconds(&one(&scenario, 1), 0)
    };
    let on_line = (took(20_000_000) - took(10_000_000)) * 10e6 / 8.0;
    let per_segment = on_line / (10e6 / 1370.0) - 1370.0 - 73.0;
    // 14 of 52 bytes, and up to 1 % of the line, 15 bytes, for bases and for what CoDel drops and the hosts repeat.
    assert!((10.0..29.0).contains(&per_segment), "{per_segment}");
}

#[test]
fn a_run_is_its_seed() {
    for shape in ["split", "link"] {
        let scenario = world(shape, LINKS[3]);
        let serial: Vec<_> = (1..4).map(|seed| one(&scenario, seed)).collect();
        assert_eq!(replicate(&scenario, 1..4, 3, |_| ()).expect("threads"), serial, "{shape}");
        let literal = run_with(&scenario, 1, &mut NoProbe, Timers::Literal, |_| true).expect("paths");
        assert_eq!(literal.flows, serial[0].flows, "{shape}");
        let prints = [1, 1, 2].map(|seed| {
            let mut print = Fingerprint::default();
            run(&scenario, seed, &mut print).expect("paths");
            print.value()
        });
        assert!(prints[0] == prints[1] && prints[0] != prints[2], "{shape}");
        // With an observer links in a row do not share their events: the same run.
        let mut print = Fingerprint::default();
        assert_eq!(run(&scenario, 1, &mut print).expect("paths").flows, serial[0].flows, "{shape}");
    }
}

/// A destination that cannot be reached in time, and full memory: a reset at one box becomes a reset at the other.
#[test]
fn memory_is_bounded() {
    let text = WORLD.replace("SHAPE", "split\"\nmemory = \"4 MiB");
    let text = text.replacen("bytes = \"2 MB\"", "bytes = \"2 kB\"\ncount = 1000", 1);
    let result = one(&over(&text, ""), 1);
    // A thousand connections of 5 kB each do not fit in seven eighths of 4 MiB: some are refused, and their hosts know it.
    assert!(result.flows.iter().any(|flow| flow.aborted.is_some()), "{:?}", result.flows);
    assert!(result.end.saturating_since(Time::ZERO) < Duration::from_secs(400));
}

fn with_memory(shape: &str, memory: &str, link: &str) -> Scenario {
    world(&format!("{shape}\"\nmemory = \"{memory}"), link)
}

/// A box with little memory is slower but loses nothing: frames that it refuses are sent again.
#[test]
fn with_little_memory_all_data_arrives() {
    for shape in ["split", "link"] {
        for link in LINKS {
            let result = one(&with_memory(shape, "4 MiB", link), 1);
            let delivered: Vec<_> = result.flows[..3].iter().map(|flow| (flow.delivered, flow.aborted)).collect();
            assert_eq!(delivered, [(2_000_000, None), (2_000_000, None), (900, None)], "{shape} {link}");
        }
    }
}

/// Packets of a flood have half of the memory of a box of shape `link`; the rest is dropped.
#[test]
fn packets_of_the_link_take_no_more_than_memory() {
    let dropped = |memory: &str| {
        let flood = "[[flows]]\nname = \"flood\"\nfrom = \"client\"\nto = \"server\"\ntype = \"udp\"\nrate = \"40 Mbit/s\"\npacket = \"1000 B\"\nstop = \"2 s\"\n";
        let scenario = over(&(WORLD.replace("SHAPE", &format!("link\"\nmemory = \"{memory}")) + flood), "");
        let summary = Summary::new(&scenario, &one(&scenario, 1));
        let bulk = summary.channels.iter().find(|channel| channel.channel == "bulk" && channel.link == "sat/forward");
        bulk.expect("the flood's channel").dropped_full
    };
    // Half of 4 MiB holds 1600 packets with 256 B each besides their bytes. The queue's own limit is more.
    let (little, plenty) = (dropped("4 MiB"), dropped("256 MiB"));
    assert!(little > plenty, "{little} {plenty}");
}

/// A link that falls from 20 to 2 Mbit/s for 20 s: the hosts have 1.7 Mbit/s after 3 s, and 95 % of their former rate 5 s after
/// its end.
#[test]
fn a_box_follows_the_rate_of_the_link_down_and_up() {
    const UPLOAD: &str = "greedy = true";
    const DATAGRAMS: &str = "type = \"udp\"\nrate = \"24 Mbit/s\"\npacket = \"1000 B\"";
    for (shape, flow) in [("split", UPLOAD), ("link", DATAGRAMS)] {
        let text = format!(
            "name = \"dip\"\ntime_limit = \"LIMIT s\"\nLINES\n[[gateways]]\nname = \"box\"\nshape = \"{shape}\"\nnear = \"near\"\n\
             far = \"far\"\n[[flows]]\nname = \"flow\"\nfrom = \"client\"\nto = \"server\"\n{flow}\n"
        );
        let schedule = "schedule = [{ at = \"20 s\", rate = \"2 Mbit/s\" }, { at = \"40 s\", rate = \"20 Mbit/s\" }]";
        let until = |limit: u64| {
            let lines = LINES.replace("10 Mbit/s", "20 Mbit/s").replace("LINK", schedule);
            let text = text.replace("LIMIT", &limit.to_string()).replace("LINES", &lines);
            one(&parse(&text), 1).flows[0].delivered
        };
        // Mbit/s of data that the receiver has had between two instants.
        let between = |from: u64, to: u64| (until(to) - until(from)) as f64 * 8e-6 / (to - from) as f64;
        let (before, within, after) = (between(15, 20), between(23, 40), between(45, 50));
        assert!(before > 17.0 && within >= 1.7 && after >= 0.95 * before, "{shape}: {before} {within} {after}");
    }
}

/// A box that has delivered what waited behind a gap finds the ACKs of all of it at once, and its filter passes on the last. Measured: of
/// some 11 800 ACKs 1800 to 4900 reach the sender of 30 MB. A box that read each ACK as it came passed 9245 of 12 844.
#[test]
fn a_box_reads_after_it_has_delivered() {
    #[derive(Default)]
    struct Acks([u64; 2]);
    impl bentpipe_engine::Probe for Acks {
        const WATCHES: bool = true;
        fn event(&mut self, _: Time, who: bentpipe_engine::probe::Who, event: &bentpipe_engine::probe::Event) {
            use bentpipe_engine::probe::Event::{Received, Sent};
            match event {
                Sent { .. } if who.0 == 1 => self.0[0] += 1,
                Received { .. } if who.0 == 0 => self.0[1] += 1,
                _ => {}
            }
        }
    }
    impl bentpipe_sim::Observer for Acks {
        fn packet(
            &mut self,
            _: Time,
            _: bentpipe_engine::network::LinkId,
            _: bentpipe_sim::Passage,
            _: &bentpipe_sim::Packet,
        ) {
        }
    }
    let scenario = parse(
        "name = \"acks\"\ntime_limit = \"600 s\"\n[tcp]\nprofile = \"linux\"\n\
         [[links]]\nname = \"lan\"\nbetween = [\"client\", \"near\"]\nrate = \"10 Gbit/s\"\ndelay = \"10 us\"\n\
         [[links]]\nname = \"sat\"\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\ndelay = \"300 ms\"\nqueue = \"500 packets\"\nloss = \"1 %\"\n\
         [[links]]\nname = \"net\"\nbetween = [\"far\", \"server\"]\nrate = \"10 Gbit/s\"\ndelay = \"10 us\"\n\
         [[gateways]]\nname = \"box\"\nshape = \"link\"\nnear = \"near\"\nfar = \"far\"\nrate = \"9.95 Mbit/s\"\n\
         [[flows]]\nfrom = \"client\"\nto = \"server\"\nbytes = \"30 MB\"\n",
    );
    let mut acks = Acks::default();
    run(&scenario, 1, &mut acks).expect("a path");
    let [sent, arrived] = acks.0;
    assert!(sent > 10_000 && arrived * 2 < sent, "{arrived} of {sent}");
}

/// A box is busy for 2.1 us with a packet that it delivers. What arrives meanwhile waits, and a packet that arrives exactly at the end of
/// that time does not overtake it. All times are whole nanoseconds, so that one of the starts leads to such an arrival.
#[test]
fn a_box_reads_in_the_order_of_arrival() {
    use bentpipe_engine::network::LinkId;
    use bentpipe_sim::{Body, Packet, Passage};

    const UP: u32 = 125;
    #[derive(Default)]
    struct Order {
        delivered: Vec<Time>,
        offered: std::collections::BTreeMap<String, Vec<u64>>,
    }
    impl bentpipe_engine::Probe for Order {
        const WATCHES: bool = true;
        fn event(&mut self, _: Time, _: bentpipe_engine::probe::Who, _: &bentpipe_engine::probe::Event) {}
    }
    impl bentpipe_sim::Observer for Order {
        fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
            match (passage, packet.body) {
                (Passage::Offered, Body::Udp(n)) if packet.wire_len == UP => {
                    self.offered.entry(format!("{link:?}")).or_default().push(n);
                }
                (Passage::Delivered, Body::Udp(_)) if packet.wire_len != UP => self.delivered.push(now),
                _ => {}
            }
        }
    }
    let order = |start: u64| {
        let line = |name: &str, between: &str, rate: &str| {
            format!("[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"{rate}\"\ndelay = \"1 ms\"\n")
        };
        let udp = |from: &str, to: &str, start: u64, rate: &str, packet: u32, nanos: u64| {
            let stop = start + nanos;
            format!(
                "[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\ntype = \"udp\"\nrate = \"{rate}\"\npacket = \"{packet} B\"\n\
                 start = \"{start} ns\"\nstop = \"{stop} ns\"\n"
            )
        };
        let links = [
            line("lan", "\"client\", \"near\"", "8 Gbit/s"),
            line("sat", "\"near\", \"far\"", "8 Mbit/s"),
            line("net", "\"far\", \"server\"", "8 Gbit/s"),
        ];
        let gateway = "[[gateways]]\nname = \"box\"\nshape = \"link\"\nnear = \"near\"\nfar = \"far\"\n";
        let down = udp("server", "client", 0, "400 kbit/s", 500, 1_000_000);
        let up = udp("client", "server", start, "5 Gbit/s", UP, 40_000);
        let text = format!("name = \"order\"\ntime_limit = \"1 s\"\n{}{gateway}{down}{up}", links.concat());
        let mut order = Order::default();
        run(&parse(&text), 1, &mut order).expect("a path");
        order
    };
    // The packet from the server leaves three links; the second ends at the box.
    let alone = order(900_000_000);
    let at = alone.delivered[1].as_nanos();
    assert!(alone.delivered.len() == 3 && alone.delivered[1] == Time::from_nanos(at), "{:?}", alone.delivered);
    // A packet takes 200 ns at the source, and 1 ms and 125 ns to the box.
    for start in at - 1_020_000..at - 1_020_000 + 200 {
        for (link, offered) in order(start).offered {
            assert!(offered.len() > 50 && offered.is_sorted(), "{start}, {link}: {offered:?}");
        }
    }
}

/// A connection that ends at a box also crosses a pair of shape `link`, before or behind that box. No segment is too long for the pair.
#[test]
fn a_box_learns_what_another_pair_accepts() {
    let lines = |n: u32, [one, two, three]: [&str; 3]| {
        format!(
            "[[links]]\nname = \"sat{n}\"\nbetween = [\"{one}\", \"{two}\"]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
             [[links]]\nname = \"lan{n}\"\nbetween = [\"{two}\", \"{three}\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    let links = [lines(1, ["a", "b", "c"]), lines(2, ["c", "d", "client"])].concat();
    let pair = |shape: &str, near, far| {
        format!("[[gateways]]\nname = \"{shape}\"\nshape = \"{shape}\"\nnear = \"{near}\"\nfar = \"{far}\"\n")
    };
    let uplink =
        |at, over| format!("[[gateways]]\nname = \"up\"\nshape = \"uplink\"\nat = \"{at}\"\nover = \"{over}\"\n");
    for gateways in [
        pair("split", "b", "a") + &pair("link", "d", "c"),
        pair("link", "b", "a") + &pair("split", "d", "c"),
        uplink("a", "sat1") + &pair("link", "d", "c"),
    ] {
        for (from, to) in [("server", "client"), ("client", "server")] {
            let text = format!(
                "name = \"chain\"\ntime_limit = \"60 s\"\n[tcp]\nprofile = \"linux\"\n[[links]]\nname = \"net\"\n\
                 between = [\"server\", \"a\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n{links}{gateways}\
                 [[flows]]\nname = \"data\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1 MB\"\n"
            );
            let scenario = parse(&text);
            assert_eq!(parse(&scenario.to_toml()), scenario, "{from}: {gateways}");
            let result = run(&scenario, 1, &mut NoProbe).expect("a path");
            let too_long: u64 = result.links.iter().map(|link| link.dropped_too_long).sum();
            assert_eq!((result.flows[0].delivered, too_long), (1_000_000, 0), "{from}: {gateways}");
        }
    }
}

/// The client's network is down from 2.5 to 130 s, when the box has all of a download and has ended its side of the connection. The client
/// has not, so the box repeats data as on an open connection: every 102 s and then every 120 s, though a connection that is closed is given
/// up after eight retries.
#[test]
fn a_half_closed_host_is_not_given_up_early() {
    let lan = "name = \"lan\"";
    let text = WORLD.replace("SHAPE", "split").replace("LINES", &LINES.replace("LINK", ""));
    let text = text.replace(lan, &format!("{lan}\nbursts = {{ schedule = [[\"2.5 s\", \"127.5 s\"]] }}"));
    let mut scenario = parse(&text);
    scenario.flows.retain(|flow| &*flow.name == "download");
    let result = one(&scenario, 1);
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, flow.aborted), (2_000_000, None));
    assert!(flow.received_at.is_some_and(|at| at > Time::ZERO + Duration::from_secs(130)), "{:?}", flow.received_at);
}
