use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_sim::{Observer, Packet as Simulated, Passage, Timers, run_with};

use super::*;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

const LINE: &str = r#"
name = "line"
[[links]]
name = "lan"
between = ["A", "R"]
rate = "8 Mbit/s"
delay = "1 ms"
[[links]]
name = "sat"
between = ["R", "B"]
rate = "1 Mbit/s"
delay = "250 ms"
[[flows]]
name = "data"
from = "A"
to = "B"
type = "udp"
rate = "1 Mbit/s"
packet = "1000 B"
"#;

fn hosts(scenario: &Scenario, names: &[&str]) -> Vec<NodeId> {
    names.iter().map(|name| scenario.node(name).expect("a node")).collect()
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

/// Packets that leave until `now`, by their first byte.
fn out(network: &mut Network, now: Time) -> Vec<(Time, u32, u8)> {
    let mut all = Vec::new();
    network.advance(now, |at, exit| {
        if let Exit::Arrived(host, packet) = exit {
            all.push((at, host.0, packet.to_bytes()[0]));
        }
    });
    all
}

fn packet(mark: u8) -> Packet {
    Packet::new(&[mark; 1000])
}

#[test]
fn packets_come_out_when_the_links_say_and_not_when_somebody_looks() {
    let scenario = scenario(LINE);
    let hosts = hosts(&scenario, &["A", "B"]);
    for looks in [vec![600_000], vec![500, 2_200, 100_000, 260_000, 271_000, 600_000]] {
        let mut network = Network::new(&scenario, &hosts).expect("links only");
        network.offer(at(0), HostId(0), HostId(1), packet(1)).expect("a way");
        network.offer(at(0), HostId(0), HostId(1), packet(2)).expect("a way");
        network.offer(at(0), HostId(1), HostId(0), packet(3)).expect("a way");
        assert_eq!(network.in_flight(), 3);
        let all: Vec<_> = looks.iter().flat_map(|look| out(&mut network, at(*look))).collect();
        // 1 ms per packet on the LAN and 1 ms of delay, then 8 ms on the satellite's line and 250 ms. The second
        // packet reaches that line after 3 ms and waits until 10 ms. In the other direction: 8 + 250 + 1 + 1 ms.
        assert_eq!(all, [(at(260_000), 1, 1), (at(260_000), 0, 3), (at(268_000), 1, 2)], "{looks:?}");
        assert_eq!((network.in_flight(), network.next()), (0, None));
    }
}

#[test]
fn a_host_on_the_way_forwards_itself() {
    let scenario = scenario(LINE);
    let hosts = hosts(&scenario, &["A", "R", "B"]);
    let mut network = Network::new(&scenario, &hosts).expect("links only");
    assert_eq!(
        (
            network.next_host(HostId(0), HostId(2)),
            network.next_host(HostId(1), HostId(2)),
            network.next_host(HostId(2), HostId(0))
        ),
        (Some(HostId(1)), Some(HostId(2)), Some(HostId(1)))
    );
    assert_eq!((network.only_neighbour(PortId(0)), network.only_neighbour(PortId(1))), (Some(HostId(1)), None));
    network.offer(at(0), HostId(0), HostId(2), packet(1)).expect("a way");
    assert_eq!(out(&mut network, at(10_000)), [(at(2_000), 1, 1)]);
}

#[test]
fn no_way_no_packet() {
    let scenario = scenario(&LINE.replace("between = [\"A\", \"R\"]", "from = \"A\"\nto = \"R\""));
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("links only");
    assert_eq!(network.offer(at(0), HostId(1), HostId(0), packet(7)), Err(packet(7)));
    assert_eq!(network.only_neighbour(PortId(1)), None);
}

#[test]
fn two_routes_between_the_same_hosts_are_refused() {
    let flow = |name: &str, route: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\ntype = \"udp\"\nrate = \"1 Mbit/s\"\n\
             packet = \"1000 B\"\nroute = [\"{route}\"]\n"
        )
    };
    let link = |name: &str| {
        format!("[[links]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n")
    };
    let links = format!("name = \"two\"\n{}{}", link("low"), link("high"));
    let one = scenario(&format!("{links}{}", flow("first", "high")));
    let both = [NodeId(0), NodeId(1)];
    let error = Network::new(&one, &both).expect_err("nothing takes the other link");
    assert_eq!(
        (error.key.as_str(), error.what.as_str()),
        ("links.low", "all packets take `high`, which joins the same nodes")
    );
    let back = "[[links]]\nname = \"back\"\nfrom = \"B\"\nto = \"A\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let single = scenario(&format!("name = \"two\"\n{}{back}{}", link("high"), flow("first", "high")));
    let mut network = Network::new(&single, &both).expect("one route");
    network.offer(at(0), HostId(0), HostId(1), packet(1)).expect("a way");
    let offered: Vec<u64> = network.counters().iter().map(|link| link.offered).collect();
    assert_eq!(offered, [1, 0], "the flow's route");
    let two = scenario(&format!("{links}{}{}", flow("first", "high"), flow("second", "low")));
    let error = Network::new(&two, &both).expect_err("packets do not identify their flow");
    assert_eq!(error.key, "flows.second");
}

/// When packets were offered to the first link, and which left the last one.
#[derive(Default)]
struct Seen {
    offered: Vec<Time>,
    delivered: Vec<Time>,
    last: Option<LinkId>,
}

impl Probe for Seen {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Seen {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, _: &Simulated) {
        match passage {
            Passage::Offered if link == LinkId(0) => self.offered.push(now),
            Passage::Delivered if Some(link) == self.last => self.delivered.push(now),
            _ => {}
        }
    }
}

/// The same packets at the same instants have the same fate as in virtual time: fades, independent losses, lists,
/// queues and cells, however rarely the network is polled.
#[test]
fn the_simulators_losses_packet_for_packet() {
    let kinds = [
        "forward.bursts = { gap = { uniform = [\"100 ms\", \"1 s\"] }, length = \"50 ms\" }",
        "forward.gilbert_elliott = { good = \"300 ms\", bad = \"30 ms\", loss_good = \"1 %\", loss_bad = \"80 %\" }",
        "forward.loss = \"3 %\"",
        "forward.bit_error_rate = \"1e-5\"",
        "forward.packet_bursts = { start = \"1 %\", length = \"4 packets\" }",
        "forward.drop_list = [0, 3, 4, 117]",
        "forward.queue = { limit = \"20 packets\", discipline = \"red\" }",
        "forward.queue = { limit = \"40 packets\", discipline = \"codel\" }",
        "forward.queue = { limit = \"40 packets\", discipline = \"fq-codel\" }",
        "framing = \"aal5\"",
        "forward.schedule = [{ at = \"2 s\", rate = \"0 bit/s\" }, { at = \"2.4 s\", rate = \"2 Mbit/s\", over = \"1 s\", delay = \"20 ms\" }, { at = \"4 s\", loss = \"20 %\" }]\nforward.schedule_period = \"5 s\"",
        "forward.phases = { length = \"1 s\", outage = \"30 ms\", loss = \"100 %\", rate = [\"0.9 Mbit/s\", \"2 Mbit/s\"], delay = [\"20 ms\", \"300 ms\"] }",
        "forward.jitter = { delay = { exponential = \"30 ms\" }, correlation = \"50 %\", reorder = true }\nforward.loss = \"1 %\"",
        "forward.reorder = { probability = \"5 %\", delay = \"70 ms\" }\nforward.loss_trace = { values = [[\"0 s\", \"0 %\"], [\"1 s\", \"5 %\"]] }",
        "forward.rate_trace = [3, 10, 12, 12, 40]\nforward.queue = \"20 packets\"",
    ];
    for kind in kinds {
        // Twice the line's rate to fill the queue, except if the link has no queue.
        let rate = if kind.contains("queue") { "2 Mbit/s" } else { "0.8 Mbit/s" };
        let text = LINE.replace("delay = \"250 ms\"", &format!("delay = \"250 ms\"\n{kind}"));
        let text = text.replace("rate = \"1 Mbit/s\"\npacket", &format!("rate = \"{rate}\"\npacket"));
        let scenario = scenario(&format!("seed = 9\ntime_limit = \"20 s\"\n{text}"));
        let mut seen = Seen { last: Some(LinkId(2)), ..Seen::default() };
        run_with(&scenario, 9, &mut seen, Timers::Lazy, |_| true).expect("it runs");
        assert!(seen.offered.len() > 1000, "{kind}");

        let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("links only");
        let mut delivered = Vec::new();
        for (n, offered) in seen.offered.iter().enumerate() {
            // Not for each packet: late, and several at once.
            if n % 7 == 0 {
                delivered.extend(out(&mut network, *offered).into_iter().map(|(at, ..)| at));
            }
            network.advance(*offered, |at, exit| {
                if let Exit::Arrived(..) = exit {
                    delivered.push(at);
                }
            });
            network.offer(*offered, HostId(0), HostId(1), packet(0)).expect("a way");
        }
        let limit = Time::ZERO + scenario.time_limit;
        delivered.extend(out(&mut network, limit).into_iter().map(|(at, ..)| at));
        assert_eq!(delivered, seen.delivered, "{kind}");
        let lost: u64 = network.counters().iter().map(LinkCounters::dropped).sum();
        assert_eq!(lost > 0, kind != "framing = \"aal5\"", "{kind}: {lost} lost");
    }
}

/// A change while packets wait: all arrive in order, and the waiting ones leave at the new rate.
#[test]
fn a_link_changes_and_loses_nothing() {
    let text = LINE.split("[[flows]]").next().expect("links");
    let before = scenario(text);
    let after = scenario(&text.replace("rate = \"1 Mbit/s\"", "rate = \"4 Mbit/s\""));
    let mut network = Network::new(&before, &hosts(&before, &["A", "B"])).expect("no flows are needed");
    (0..20).for_each(|n| network.offer(at(0), HostId(0), HostId(1), packet(n)).expect("a way"));
    let sat = before.link("sat/forward").expect("a link");
    let mut all = out(&mut network, at(50_000));
    network.retune(at(50_000), sat, &after[sat]);
    all.extend(out(&mut network, at(5_000_000)));
    // The first reaches the line after 2 ms; each takes 8 ms. At 50 ms six are sent; the rest takes 2 ms each.
    let expected = (0..20u8).map(|n| {
        let sent = if n < 6 { 2 + 8 * (u64::from(n) + 1) } else { 50 + 2 * (u64::from(n) - 5) };
        (at((250 + sent) * 1000), 1, n)
    });
    assert_eq!(all, expected.collect::<Vec<_>>());
}

/// Doubled and corrupt packets: one bit differs, and both copies come.
#[test]
fn packets_are_doubled_and_bits_flipped() {
    let text = LINE.replace(
        "delay = \"250 ms\"",
        "delay = \"250 ms\"\nforward.duplicate = \"100 %\"\nforward.corrupt = \"100 %\"",
    );
    let scenario = scenario(&text);
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("links only");
    network.offer(at(0), HostId(0), HostId(1), packet(0)).expect("a way");
    let mut bits = Vec::new();
    network.advance(at(1_000_000), |_, exit| {
        if let Exit::Arrived(_, packet) = exit {
            bits.push(packet.to_bytes().iter().map(|byte| byte.count_ones()).sum::<u32>());
        }
    });
    assert_eq!(bits, [1, 1]);
}

/// CoDel marks real packets that are ECT, with the header's checksum, at the times at which it would drop; the others it drops.
#[test]
fn a_queue_marks_real_packets() {
    use bentpipe_engine::wire::ip::{self, Addresses};
    let queue = "forward.queue = { limit = \"unlimited\", discipline = \"codel\", marking = true }\n[[flows]]";
    let scenario = scenario(&LINE.replacen("[[flows]]", queue, 1));
    let ends = hosts(&scenario, &["A", "B"]);
    let marks = |ecn: Ecn| {
        let mut network = Network::new(&scenario, &ends).expect("it is supported");
        let parse = |text: &str| text.parse().expect("an address");
        let addresses = Addresses::new(parse("192.0.2.1"), parse("192.0.2.2")).expect("one version");
        let mut bytes = [0; 1000];
        let header = ip::emit(&addresses, ip::UDP, 980, &mut bytes).expect("it fits");
        ecn.put(&mut bytes);
        for _ in 0..100 {
            network.offer(at(0), HostId(0), HostId(1), Packet::new(&bytes)).expect("there is a path");
        }
        let (mut came, mut marked) = (0, 0);
        network.advance(at(5_000_000), |_, exit| {
            if let Exit::Arrived(_, packet) = exit {
                let parsed = ip::parse(&packet.to_bytes()).expect("the checksum is right");
                assert_eq!(parsed.payload.start, header);
                came += 1;
                marked += u64::from(parsed.ecn == Ecn::Ce);
            }
        });
        assert_eq!(network.counters().iter().map(|link| link.marked).sum::<u64>(), marked);
        (came, marked)
    };
    // 100 packets leave in 800 ms: by interval / sqrt(count) one is chosen at about 110, 210, 280, 340, 390, 435, 475 ms and so on.
    let (came, marked) = marks(Ecn::Ect0);
    assert!(came == 100 && (8..=16).contains(&marked), "{came} {marked}");
    let (came, marked) = marks(Ecn::NotEct);
    assert!((84..=92).contains(&came) && marked == 0, "{came} {marked}");
}

/// A packet of `len` bytes between the hosts with these numbers, whose first payload byte is `mark`.
fn ip_packet(from: u8, to: u8, len: usize, mark: u8) -> Packet {
    use bentpipe_engine::wire::ip::{self, Addresses};
    let address = |host: u8| std::net::IpAddr::from([192, 0, 2, host]);
    let addresses = Addresses::new(address(from), address(to)).expect("one version");
    let mut bytes = vec![0; len];
    let payload = ip::emit(&addresses, ip::UDP, len - 20, &mut bytes).expect("it fits");
    bytes[payload] = mark;
    Packet::new(&bytes)
}

/// Packets that leave until `now`: time, host, mark.
fn marks(network: &mut Network, now: Time) -> Vec<(Time, u32, u8)> {
    let mut all = Vec::new();
    network.advance(now, |at, exit| {
        if let Exit::Arrived(host, packet) = exit {
            all.push((at, host.0, packet.to_bytes()[20]));
        }
    });
    all
}

/// A and C behind R, and a layer over the satellite between R and B.
fn layered(layer: &str) -> Scenario {
    let lan = "[[links]]\nname = \"other\"\nbetween = [\"C\", \"R\"]\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\n";
    let layer = format!("[[layers]]\nname = \"arq\"\nover = \"sat\"\n{layer}\n");
    scenario(
        &LINE
            .replacen("[[links]]", &format!("{layer}{lan}[[links]]"), 1)
            .replace("250 ms\"", "250 ms\"\nmtu = \"1000 B\""),
    )
}

/// The layer carries bytes only: which host a packet is for follows from its addresses. On the line below the layer it is 24 bytes longer,
/// which makes 8.192 ms. After the 250 ms, packets for A and C take 1 ms on the line and 1 ms of delay.
#[test]
fn a_layer_delivers_to_several_hosts() {
    let scenario = layered("");
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B", "C"])).expect("it is supported");
    let [a, b, c] = [0, 1, 2].map(HostId);
    for (n, to) in [a, c, a, c].into_iter().enumerate() {
        network.offer(at(0), b, to, ip_packet(1, to.0 as u8, 1000, n as u8)).expect("a way");
    }
    network.offer(at(0), a, b, ip_packet(0, 1, 1000, 9)).expect("a way");
    network.offer(at(1000), c, b, ip_packet(2, 1, 1000, 8)).expect("a way");
    // One of them is in the line, the other five wait above it or are on the way to the layer.
    assert_eq!(network.in_flight(), 6);
    let all = marks(&mut network, at(600_000));
    let line = |n: u64| at(8192 * (n + 1) + 252_000);
    let mut expected: Vec<_> =
        [0, 2, 0, 2].into_iter().enumerate().map(|(n, to)| (line(n as u64), to, n as u8)).collect();
    // The first reaches the layer after 2 ms, the other while it is on the line.
    expected.extend([(line(0), 1, 9), (line(1), 1, 8)]);
    let order = |&(at, _, mark): &(Time, u32, u8)| (at, mark);
    expected.sort_by_key(order);
    let mut found = all.clone();
    found.sort_by_key(order);
    assert_eq!(found, expected);
    assert!(all.is_sorted_by_key(|(at, ..)| *at), "{all:?}");
    // The reports of the arrivals are back by then.
    network.advance(at(2_000_000), |_, _| {});
    assert_eq!(network.in_flight(), 0);
}

/// The MTU below a layer is that of the packets above it.
#[test]
fn a_layer_refuses_what_is_too_long_for_its_link() {
    let scenario = layered("");
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("it is supported");
    for (mark, len) in [(1, 1001), (2, 1000)] {
        network.offer(at(0), HostId(1), HostId(0), ip_packet(1, 0, len, mark)).expect("a way");
    }
    assert_eq!(marks(&mut network, at(600_000)), [(at(8192 + 252_000), 0, 2)]);
    let counters = scenario.links.iter().zip(network.counters());
    let too_long = counters.map(|(link, count)| (link.name.as_str(), count.dropped_too_long)).filter(|(_, n)| *n > 0);
    assert_eq!(too_long.collect::<Vec<_>>(), [("sat/backward", 1)]);
}

#[test]
fn layers_that_have_no_bytes_are_refused() {
    for key in ["weightless", "hears_damage"] {
        let scenario = layered(&format!("{key} = true"));
        let error = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect_err("not in real time");
        assert_eq!(error.key, format!("layers.arq.{key}"));
    }
}

/// Flips fall on any bit: of a hundred packets of 1000 zeros, some have theirs in the last eighth (none by chance with 1e-6).
#[test]
fn any_bit_may_be_flipped() {
    let scenario = scenario(&LINE.replace("delay = \"250 ms\"", "delay = \"250 ms\"\nforward.corrupt = \"100 %\""));
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("links only");
    for _ in 0..100 {
        network.offer(at(0), HostId(0), HostId(1), packet(0)).expect("a way");
    }
    let mut places = Vec::new();
    network.advance(at(5_000_000), |_, exit| {
        if let Exit::Arrived(_, packet) = exit {
            places.push(packet.to_bytes().iter().position(|byte| *byte != 0).expect("a bit"));
        }
    });
    assert!(places.len() == 100 && places.iter().any(|place| *place >= 875), "{places:?}");
}

/// A link that no packet takes is refused only if another one joins the same nodes, and no layer is over it.
#[test]
fn idle_links_without_a_twin_are_no_mistake() {
    let spur = "[[links]]\nname = \"spur\"\nbetween = [\"R\", \"X\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let branch = scenario(&LINE.replacen("[[links]]", &format!("{spur}[[links]]"), 1));
    Network::new(&branch, &hosts(&branch, &["A", "B"])).expect("another node");
    let back = "[[links]]\nname = \"back\"\nfrom = \"B\"\nto = \"R\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let text = LINE.replacen("[[flows]]", &format!("{back}[[flows]]"), 1);
    let idle = scenario(&text);
    let error = Network::new(&idle, &hosts(&idle, &["A", "B"])).expect_err("packets take the faster way back");
    assert_eq!((error.key.as_str(), error.what.contains("`back`")), ("links.sat", true), "{error}");
    let used = scenario(&text.replacen("[[flows]]", "[[layers]]\nname = \"arq\"\nover = \"sat\"\n[[flows]]", 1));
    Network::new(&used, &hosts(&used, &["A", "B"])).expect("reports take it");
}

/// The way back of a flow is the path of packets from its `to` to its `from`, though another one is shorter.
#[test]
fn a_return_route_is_the_way_back() {
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    let links =
        [link("there", "A", "B"), link("back", "B", "A"), link("first", "B", "C"), link("second", "C", "A")].concat();
    let flow = "[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 kB\"\nreturn_route = [\"first\", \"second\"]\n";
    let scenario = scenario(&format!("name = \"t\"\n{links}{flow}"));
    let mut network = Network::new(&scenario, &hosts(&scenario, &["A", "B"])).expect("one route");
    network.offer(at(0), HostId(1), HostId(0), packet(1)).expect("a way");
    // 8 ms on each line and 1 ms of delay.
    assert_eq!(out(&mut network, at(100_000)), [(at(18_000), 0, 1)]);
    let offered: Vec<u64> = network.counters().iter().map(|link| link.offered).collect();
    assert_eq!(offered, [0, 0, 1, 1]);
}
