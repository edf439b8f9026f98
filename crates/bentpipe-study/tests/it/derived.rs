//! Values that follow from others, worked out by hand.

use bentpipe_engine::link::{Discipline, PacketBursts};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::Release;
use bentpipe_engine::units::{Bytes, Duration, Rate};
use bentpipe_study::scenario::{FlowKind, QuicFlow, Scenario, Workload};

use super::language::{ms, parse};

/// A link from A to B with these lines, and a flow over it with those.
fn text(link: &str, flow: &str) -> String {
    format!(
        "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n\
         [[flows]]\nname = \"f\"\nfrom = \"A\"\nto = \"B\"\n{flow}\n"
    )
}

fn refused(text: &str) -> String {
    Scenario::parse(text, "t.toml", &[]).expect_err("there is a mistake in it").to_string()
}

#[test]
fn queues() {
    let queue = |settings: &str| text(&format!("queue = {{ limit = \"50 packets\", {settings} }}"), "bytes = \"1 MB\"");
    let read = |settings: &str| parse(&queue(settings)).links[0].config.queue;
    // ns-2's default: three times the lower threshold.
    let Discipline::Red(red) = read("discipline = \"red\", min_threshold = \"7 packets\"").discipline else {
        panic!("RED")
    };
    assert_eq!((red.min_threshold, red.max_threshold), (7.0, 21.0));
    let equal = "discipline = \"red\", min_threshold = \"7 packets\", max_threshold = \"7 packets\"";
    assert!(refused(&queue(equal)).contains("`min_threshold` must be less"));
    // L4S marks unless it is told not to (RFC 9332); the others drop.
    assert!(read("discipline = \"dualpi2\"").marking && !read("discipline = \"codel\"").marking);
    assert!(
        refused(&queue("discipline = \"dualpi2\", classic_share = \"100 %\"")).contains("L4S packets need a share too")
    );
}

#[test]
fn losses() {
    let config = |link: &str| parse(&text(link, "bytes = \"1 MB\"")).links[0].config.clone();
    // Bits are wrong in bursts as often as outside, if nothing else is said.
    let bursts = config("bit_error_rate = \"1e-6\"\nbursts = { gap = \"9 s\", length = \"1 s\", loss = \"50 %\" }");
    assert_eq!((bursts.good.bit.get(), bursts.bad.bit.get(), bursts.bad.packet.get()), (1e-6, 1e-6, 0.5));
    let capped = config("packet_bursts = { start = \"1 %\", burstiness = \"90 %\", max = \"50 %\" }").packet_bursts;
    assert!(matches!(capped, Some(PacketBursts::Conditional { again, .. }) if again.get() == 0.5), "{capped:?}");
    // 3 % of 49 cells is one, also when it is written and read again: the double 1 / 49 times 49 is less than 1.
    let atm = "framing = \"aal5\"\natm = { buffer = \"49 cells\", early_packet_discard = \"3 %\" }";
    let cells = parse(&text(atm, "bytes = \"1 MB\""));
    assert_eq!(cells.links[0].config.cells.and_then(|cells| cells.early_discard), Some(1));
    assert_eq!(parse(&cells.to_toml()), cells);
    // 29 % of 100 cells are 29: the double 0.29 times 100 is less.
    let early = |share: &str| {
        let atm = format!("framing = \"aal5\"\natm = {{ buffer = \"100 cells\", early_packet_discard = \"{share}\" }}");
        parse(&text(&atm, "bytes = \"1 MB\"")).links[0].config.cells.and_then(|cells| cells.early_discard)
    };
    assert_eq!(["29 %", "57 %", "28.5 %", "28.999 %"].map(early), [Some(29), Some(57), Some(28), Some(28)]);
}

/// A source that is never on would look for its next sending time for ever.
#[test]
fn a_source_is_on_at_times() {
    let udp = "type = \"udp\"\nrate = \"1 Mbit/s\"\npacket = \"100 B\"\n";
    let flow = |on: &str| text("", &format!("{udp}pattern = {{ on = {on}, off = \"1 s\" }}"));
    for on in
        ["\"0 s\"", "{ uniform = [\"0 s\", \"0 s\"] }", "{ exponential = \"0 s\" }", "{ normal = [\"0 s\", \"0 s\"] }"]
    {
        let said = refused(&flow(on));
        assert!(said.contains("`flows.f.pattern.on` is always 0: nothing would be sent"), "{said}");
    }
    parse(&flow("{ uniform = [\"0 s\", \"1 ms\"] }"));
}

/// Their bytes are counted in 64 bits.
#[test]
fn responses_have_a_bound_together() {
    let asks = |response: &str, count: u32| {
        text("", &format!("request_response = {{ request = \"1 B\", response = \"{response}\", count = {count} }}"))
    };
    parse(&asks("1 GB", 1_000_000));
    for (response, count) in [("1 GB", 1_000_001), ("900 TB", u32::MAX)] {
        let said = refused(&asks(response, count));
        assert!(said.contains("`flows.f.request_response` is more than 1000 TB") && said.contains(".count"), "{said}");
    }
}

/// The buffer of a split is the receive buffer of two ends, with that setting's bounds. What is wrong with it is said at its place.
#[test]
fn the_buffer_of_a_split_has_bounds() {
    let split = |buffer: &str| {
        let flow = format!("{}split = [{{ at = \"near\", buffer = \"{buffer}\" }}]\n", DATA);
        format!("name = \"t\"\n{SAT}{HOSTS}{flow}")
    };
    let most = parse(&split("1048560 KiB"));
    assert_eq!(parse(&most.to_toml()), most);
    for (buffer, why) in [("1048561 KiB", "cannot be"), ("0 B", "cannot be 0 B"), ("1 kB", "cannot hold a segment")] {
        let errors = Scenario::parse(&split(buffer), "t.toml", &[]).expect_err(buffer);
        for error in &errors.0 {
            assert!(error.key.ends_with(".split.0.buffer") && error.message.contains(why), "{error}");
        }
    }
}

/// What the hosts' connections share does not apply to those of a split, so it is not written for them.
#[test]
fn a_split_shares_nothing() {
    let flow = format!("{DATA}split = [{{ at = \"near\" }}]\n");
    for sharing in ["off", "ssthresh", "linux"] {
        let scenario = parse(&format!("name = \"t\"\ntcp.tcb_sharing = \"{sharing}\"\n{SAT}{HOSTS}{flow}"));
        assert_eq!(parse(&scenario.to_toml()), scenario, "{sharing}");
    }
}

/// A key below an alternative replaces the others, too.
#[test]
fn an_override_chooses_what_a_flow_sends() {
    let sends = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let scenario = Scenario::parse(&text("", "bytes = \"1 MB\""), "t.toml", &sets);
        scenario.unwrap_or_else(|errors| panic!("{errors}")).flows[0].kind.workload()
    };
    assert_eq!(sends(&[("flows.f.greedy.duration", "5 s")]), Some(Workload::Greedy { duration: Some(ms(5000)) }));
    let asks = [("flows.f.request_response.request", "1 kB"), ("flows.f.request_response.response", "2 kB")];
    let asked = Workload::RequestResponse {
        request: Bytes::new(1000),
        response: Bytes::new(2000),
        think: Duration::ZERO,
        count: 1,
    };
    assert_eq!(sends(&asks), Some(asked));
    assert_eq!(sends(&[asks[0], asks[1], ("flows.f.bytes", "3 B")]), Some(Workload::Bulk(Bytes::new(3))));
}

/// `duration` is a key of greedy flows; a source of datagrams has `stop`.
#[test]
fn the_duration_of_a_flow_depends_on_its_type() {
    let said = |flow: &str| refused(&text("", &format!("{flow}\nduration = \"5 s\"")));
    let udp = said("type = \"udp\"\nrate = \"1 Mbit/s\"\npacket = \"100 B\"");
    assert!(udp.contains("ends at `stop`") && !udp.contains("greedy"), "{udp}");
    let tcp = said("greedy = true");
    assert!(tcp.contains("did you mean `greedy.duration`?"), "{tcp}");
}

#[test]
fn flows_that_start_one_after_the_other() {
    let scenario = parse(&text("", "bytes = \"1 MB\"\ncount = 3\nstart = \"1 s\"\nstagger = \"2 s\""));
    assert_eq!(scenario.flows.iter().map(|flow| flow.start).collect::<Vec<_>>(), [ms(1000), ms(3000), ms(5000)]);
}

/// Frames of a group of 12, of which each third is predicted from the one before: IBBPBBPBBPBB, and again.
#[test]
fn frames_of_a_video() {
    let mpeg = "type = \"udp\"\nrate = \"1 Mbit/s\"\npacket = \"100 B\"\npattern.mpeg = { interval = \"40 ms\", i = \"9 B\", p = \"3 B\", b = \"1 B\" }";
    let scenario = parse(&text("", mpeg));
    let FlowKind::Udp(udp) = &scenario.flows[0].kind else { panic!("UDP") };
    let bentpipe_study::scenario::UdpPattern::Mpeg(mpeg) = udp.pattern else { panic!("a video") };
    let sizes: Vec<_> = (0..14).map(|n| mpeg.bytes(n)).collect();
    assert_eq!(sizes, [9, 1, 1, 3, 1, 1, 3, 1, 1, 3, 1, 1, 9, 1]);
}

/// Bursts of links that leave or reach one node take turns in frames of one length.
#[test]
fn bursts_of_a_node_take_turns() {
    let link = |name: &str, from: &str, to: &str, tdma: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\ntdma = {tdma}\n"
        )
    };
    let first = "{ frame = \"10 ms\", bursts = [[\"0 ms\", \"5 ms\"]] }";
    let later = "{ frame = \"10 ms\", bursts = [[\"5 ms\", \"5 ms\"]] }";
    let other = "{ frame = \"20 ms\", bursts = [[\"5 ms\", \"5 ms\"]] }";
    for (ends, way) in [([("A", "B"), ("A", "C")], "leaves"), ([("B", "A"), ("C", "A")], "reaches")] {
        let two = |second: &str| {
            let [(from, to), (also_from, also_to)] = ends;
            format!("name = \"t\"\n{}{}", link("one", from, to, first), link("two", also_from, also_to, second))
        };
        parse(&two(later));
        assert!(refused(&two(first)).contains(&format!("a burst {way} `A` while one of `one` does")));
        assert!(refused(&two(other)).contains(&format!("`one` {way} `A` too and has a frame of another length")));
    }
}

/// A window of eight times what the path holds, and at least quinn's for a stream.
#[test]
fn windows_of_quic() {
    let window = |path: u64| QuicFlow::window(Bytes::new(path)).get();
    assert_eq!([window(1_000_000), window(1000), window(u64::MAX)], [8_000_000, QuicFlow::MIN_WINDOW, u64::MAX]);
}

const HOSTS: &str = "[[links]]\nname = \"lan\"\nbetween = [\"client\", \"near\"]\nrate = \"1 Gbit/s\"\ndelay = \"20 ms\"\n\
    [[links]]\nname = \"net\"\nbetween = [\"far\", \"server\"]\nrate = \"1 Gbit/s\"\ndelay = \"50 ms\"\n";
const SAT: &str = "[[links]]\nname = \"sat\"\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\nbackward.rate = \"20 Mbit/s\"\n\
    delay = \"300 ms\"\nmtu = \"1400 B\"\n";
const DATA: &str = "[[flows]]\nname = \"data\"\nfrom = \"client\"\nto = \"server\"\nbytes = \"1 MB\"\n";

fn with_boxes(links: &str, gateway: &str) -> String {
    format!("name = \"t\"\n{links}{HOSTS}[[gateways]]\nname = \"box\"\n{gateway}\n{DATA}")
}

/// The box called near sends on the link that begins there, whatever the order of the link's ends is.
#[test]
fn boxes_know_their_links() {
    for (near, far, over, rates) in [("near", "far", [0, 1], [10, 20]), ("far", "near", [1, 0], [20, 10])] {
        for named in ["", "over = \"sat\""] {
            let scenario =
                parse(&with_boxes(SAT, &format!("shape = \"link\"\nnear = \"{near}\"\nfar = \"{far}\"\n{named}")));
            let pair = &scenario.gateways.pairs[0];
            assert_eq!(pair.over, over.map(LinkId), "{near} {named}");
            assert_eq!(pair.satellite.map(|box_| box_.rate.bits_per_second() / 1_000_000), rates);
            assert_eq!(pair.satellite.map(|box_| (box_.path_mtu, box_.round_trip)), [(1400, ms(600)); 2]);
        }
    }
}

/// A box offers its host twice what the faster direction of the satellite carries in a round trip to that host: 20 Mbit/s for 40 ms are 100
/// kB, for 100 ms 250 kB.
#[test]
fn windows_of_boxes() {
    let scenario = parse(&with_boxes(SAT, "shape = \"split\"\nnear = \"near\"\nfar = \"far\""));
    let FlowKind::Tcp(tcp) = &scenario.flows[0].kind else { panic!("TCP") };
    assert_eq!((tcp.receiver.receive_buffer, tcp.splits[0].sender.receive_buffer), (200_000, 500_000));
}

/// Where the answers take another way, the boxes cannot end connections.
#[test]
fn boxes_need_both_directions() {
    let one_way = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    let links = [SAT.to_owned(), one_way("back", "server", "client")].concat();
    let said = refused(&with_boxes(&links, "shape = \"split\"\nnear = \"near\"\nfar = \"far\""));
    assert!(said.contains("no flow passes `box` in both directions"), "{said}");
}

/// What waited for a repair is released at 1.2 times the rate of the link from which it came.
#[test]
fn a_layer_releases_at_the_rate_that_it_hears() {
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
    let scenario = parse(&format!("name = \"t\"\n{SAT}{HOSTS}{layer}{DATA}"));
    let release = [0, 1].map(|side| scenario.layers[0].end(&scenario.links, side).release);
    let paced = |mbit: u64| Release::Paced(Rate::from_bits_per_second(mbit * 1_000_000).expect("above 0"));
    assert_eq!(release, [paced(24), paced(12)]);
}

/// Flows share the settings that follow from their path only if they take the same one.
#[test]
fn flows_that_are_alike() {
    let flow = &parse(&text("", "bytes = \"1 MB\"")).flows[0];
    assert!(flow.is_alike(&bentpipe_study::scenario::FlowSpec {
        start: Duration::from_secs(9),
        name: "g".to_owned(),
        ..flow.clone()
    }));
    let other = bentpipe_study::scenario::FlowSpec { from: flow.to, to: flow.from, ..flow.clone() };
    let routed = bentpipe_study::scenario::FlowSpec { return_route: Some(vec![LinkId(1)]), ..flow.clone() };
    assert!(!flow.is_alike(&other) && !flow.is_alike(&routed));
}
