//! Mechanisms of one paper on the links of another, each against a number worked out beside it.

use bentpipe_engine::NoProbe;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::{RunResult, run};
use bentpipe_study::scenario::{FlowKind, Scenario, TcpFlow};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "mechanisms.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)))
}

fn refused(text: &str) -> String {
    Scenario::parse(text, "mechanisms.toml", &[]).expect_err("it is wrong").render(false)
}

fn play(scenario: &Scenario) -> RunResult {
    run(scenario, 1, &mut NoProbe).expect("it runs")
}

fn tcp(scenario: &Scenario, flow: usize) -> &TcpFlow {
    match &scenario.flows[flow].kind {
        FlowKind::Tcp(tcp) => tcp,
        other => panic!("not of TCP: {other:?}"),
    }
}

fn seconds(flow: &bentpipe_sim::FlowResult) -> f64 {
    flow.received_at.expect("received").saturating_since(Time::ZERO).as_secs_f64()
}

/// A terrestrial link, a satellite link with these settings, and a tail. `rest` is appended to the text.
fn world(sat: &str, rest: &str) -> String {
    let end = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n"
        )
    };
    format!(
        "name = \"world\"\ntime_limit = \"300 s\"\n{}{}{}[[links]]\nname = \"sat\"\nbetween = [\"G1\", \"G2\"]\ndelay = \"250 \
         ms\"\n{sat}\n{rest}\n",
        end("access", "A", "G0"),
        end("ground", "G0", "G1"),
        end("tail", "G2", "B")
    )
}

/// A layer that retransmits until everything has arrived, and a queue without a limit.
const ARQ: &str = "[[layers]]\nname = \"arq\"\nover = \"sat\"\nchannels = [{ name = \"all\", transmissions = \"unlimited\", \
                   queue = \"unlimited\" }]\n";

#[test]
fn stp_repairs_the_satellite_leg_of_a_split_connection() {
    let rest = "[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"2 MB\"\nsplit = [{ at = \"G1\", buffer = \"4 MB\", stp \
                = { rate = \"2 Mbit/s\", rtt = \"500 ms\" } }, { at = \"G2\", buffer = \"4 MB\" }]";
    let scenario = parse(&world("rate = \"2 Mbit/s\"\nloss = \"1 %\"", rest));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    let flow = &play(&scenario).flows[0];
    assert_eq!((flow.delivered, flow.aborted, flow.legs.len()), (2_000_000, None, 3));
    let resent: Vec<_> = flow.legs.iter().map(|[sender, _]| sender.retransmits).collect();
    assert!(resent[0] == 0 && resent[1] > 10 && resent[2] == 0, "{resent:?}");
    // 2 MB in segments of 1000 B and headers of 40 B at 2 Mbit/s are 8.32 s. The window is one pipe, so that it stands still
    // until a hole is repaired: a round trip for each at most, and some for the opening and the last one.
    let ours = seconds(flow);
    assert!(ours < 8.32 + (resent[1] as f64 + 3.0) * 0.51, "{ours} s");
    // TCP halves its window at each loss.
    let tcp = rest.replace("stp = { rate = \"2 Mbit/s\", rtt = \"500 ms\" }", "tcp = { variant = \"newreno\" }");
    let theirs = seconds(&play(&parse(&world("rate = \"2 Mbit/s\"\nloss = \"1 %\"", &tcp))).flows[0]);
    assert!(theirs > 2.0 * ours, "{theirs} s against {ours} s");
}

#[test]
fn a_leg_is_of_one_protocol() {
    let flow = |keys: &str| {
        world("rate = \"2 Mbit/s\"", &format!("[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n{keys}"))
    };
    const STP: &str = "stp = { rate = \"2 Mbit/s\", rtt = \"500 ms\" }";
    let both = flow(&format!("split = [{{ at = \"G1\", {STP}, tcp = {{ variant = \"reno\" }} }}]"));
    assert!(refused(&both).contains("exclude each other"));
    assert!(refused(&flow(STP)).contains("applies to stp flows"));
    let first = parse(&flow(&format!("{STP}\nsplit = [{{ at = \"G1\", buffer = \"100 kB\" }}]")));
    assert_eq!(tcp(&first, 0).stp.map(|stp| stp.receive_buffer), Some(100_000), "the gateway's buffer is the leg's");
    assert_eq!(play(&first).flows[0].delivered, 1_000_000);
    let spoofed = format!(
        "{ARQ}{}",
        "[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\nsplit = [{ at = \"G0\", STP }]\nspoof = { at = \
                                      \"G1\", buffer = \"50 packets\" }"
            .replace("STP", STP)
    );
    assert!(refused(&world("rate = \"2 Mbit/s\"", &spoofed)).contains("a gateway acknowledges TCP"));
}

/// Flows that are split come after all others where connections are numbered: each still has its own far end.
#[test]
fn a_split_connection_ends_at_a_gateway_that_spoofs() {
    let flow = |name: &str, bytes: u32, split: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"{bytes} B\"\n{split}\nspoof = {{ at = \"G1\", buffer = \
             \"120 packets\", sharing = \"equal\" }}\n"
        )
    };
    let split = "split = [{ at = \"G0\", buffer = \"1 MB\" }]";
    let flows = flow("one", 300_000, split) + &flow("two", 100_000, "") + &flow("three", 200_000, split);
    let scenario = parse(&world("rate = \"2 Mbit/s\"\nloss = \"5 %\"", &format!("{ARQ}{flows}")));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    let result = play(&scenario);
    let got: Vec<_> = result.flows.iter().map(|flow| (flow.delivered, flow.legs.len())).collect();
    assert_eq!(got, [(300_000, 2), (100_000, 0), (200_000, 2)]);
    for flow in &result.flows {
        let (acked, received) = (flow.acked_at.expect("acknowledged"), flow.received_at.expect("received"));
        assert!(acked < received, "the gateway acknowledges what is still to cross");
        assert!(flow.stats.retransmits == 0 && flow.aborted.is_none(), "{:?}", flow.stats);
    }
}

/// The layer sends as fast as the port takes its cells and no faster: of a buffer of two frames' cells nothing runs over,
/// and the line is never idle for long. A frame of 1524 B and LLC/SNAP are 32 cells, 1696 B.
#[test]
fn a_layer_paces_its_frames_by_their_cells() {
    let flow = "[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";
    let cells = "rate = \"2 Mbit/s\"\nframing = \"aal5\"\natm = { buffer = \"64 cells\" }";
    let result = play(&parse(&world(cells, &format!("{ARQ}{flow}"))));
    let sat = &result.links[6];
    assert_eq!((result.flows[0].delivered, sat.dropped()), (1_000_000, 0), "{sat:?}");
    // 685 segments of 1460 B; slow start takes six round trips.
    let min = 685.0 * 1696.0 * 8.0 / 2e6;
    let taken = seconds(&result.flows[0]);
    assert!((min..min + 6.0 * 0.53).contains(&taken), "{taken} s of {min}");
    let lossy = play(&parse(&world(&format!("{cells}\nloss = \"5 %\""), &format!("{ARQ}{flow}"))));
    // 5 % of 685 frames are 34, with a deviation of 5.7: four of them.
    let (dropped, delivered) = (lossy.links[6].dropped_channel, lossy.flows[0].delivered);
    assert!(dropped > 11 && delivered == 1_000_000, "{dropped} {delivered}");
    assert_eq!(lossy.flows[0].stats.retransmits, 0, "the layer repairs it all");
    let weightless = ARQ.replace("over", "weightless = true\nover");
    assert!(refused(&world(cells, &format!("{weightless}{flow}"))).contains("a cell has a weight"));
}

/// A layer takes packets up to the link's MTU, whatever the length of its frames.
#[test]
fn the_mtu_under_a_layer_is_that_of_packets() {
    let flow = "[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"100 kB\"\n";
    let with =
        |mtu: u32| play(&parse(&world(&format!("rate = \"2 Mbit/s\"\nmtu = \"{mtu} B\""), &format!("{ARQ}{flow}"))));
    assert_eq!(with(1500).flows[0].delivered, 100_000);
    let short = with(1499);
    assert_eq!(short.flows[0].delivered, 0);
    assert!(short.links[6].dropped_too_long > 0, "{:?}", short.links[6]);
}

/// If a switch needs 10 ms for each packet, a hundred pass per second, however fast the lines are.
#[test]
fn a_switch_passes_packets_on_one_after_the_other() {
    let flow = "[[flows]]\nname = \"data\"\ntype = \"udp\"\nfrom = \"A\"\nto = \"B\"\nrate = \"8 Mbit/s\"\npacket = \"1000 B\"\nstop = \"100 ms\"\n";
    let node = "[nodes.G1]\nforwarding = \"10 ms\"\n";
    let plain = play(&parse(&world("rate = \"unlimited\"", flow)));
    let switched = parse(&world("rate = \"unlimited\"", &format!("{node}{flow}")));
    assert_eq!(Scenario::parse(&switched.to_toml(), "again", &[]).as_ref(), Ok(&switched));
    let switched = play(&switched);
    let mean =
        |result: &RunResult| result.flows[0].delays.as_ref().and_then(|delays| delays.mean()).expect("datagrams");
    // A packet per millisecond, 100 of them: the n-th, from 0, waits for 9 n ms and takes 10 ms: 455.5 ms on average.
    let more = mean(&switched).as_millis_f64() - mean(&plain).as_millis_f64();
    assert!((more - 455.5).abs() < 0.5, "{more} ms");
    // `forwarding` of an end node delays nothing.
    let ends = parse(&world("rate = \"unlimited\"", &format!("{}{flow}", node.replace("G1", "B"))));
    assert_eq!(mean(&play(&ends)), mean(&plain));
}

/// ACTS' uplink beam of one station, SS-TDMA: three bursts of a third of a 1 ms frame each, to three downlinks.
#[test]
fn beams_take_turns_in_a_frame() {
    let beam = |name: &str, start: u32, length: u32| {
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"up\"\nto = \"{name}\"\nrate = \"622.08 Mbit/s\"\ndelay = \"120 ms\"\ntdma = {{ frame = \
             \"1 ms\", bursts = [[\"{start} us\", \"{length} us\"]] }}\n[[flows]]\nname = \"to-{name}\"\ntype = \"udp\"\nfrom = \"up\"\nto = \
             \"{name}\"\nrate = \"300 Mbit/s\"\npacket = \"9180 B\"\nstop = \"1 s\"\n"
        )
    };
    let text = |beams: &str| format!("name = \"beams\"\ntime_limit = \"1 s\"\n{beams}");
    let scenario = parse(&text(&(beam("a", 0, 333) + &beam("b", 333, 333) + &beam("c", 666, 333))));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    for flow in &play(&scenario).flows {
        // 622.08 Mbit/s for 333 of 1000 us in the 880 ms that arrive: 182.3 Mbit, less a packet and a frame at most.
        let bits = flow.delivered as f64 * 8.0;
        let whole = 622.08e6 * 0.333 * 0.88;
        assert!(bits <= whole && bits > whole - 73_440.0 - 622_080.0, "{bits} of {whole}");
    }
    let at_once = refused(&text(&(beam("a", 0, 334) + &beam("b", 333, 333))));
    assert!(at_once.contains("a burst leaves `up` while one of `a` does"), "{at_once}");
    let frames = refused(&text(&(beam("a", 0, 334) + &beam("b", 400, 333).replace("1 ms", "2 ms"))));
    assert!(frames.contains("a frame of another length"), "{frames}");
    let order = refused(&text(&beam("a", 0, 334).replace("\"334 us\"]]", "\"334 us\"], [\"333 us\", \"1 us\"]]")));
    assert!(order.contains("before the previous burst has ended"), "{order}");
    let cells = refused(&text(&beam("a", 0, 334).replace("tdma", "framing = \"aal5\"\ntdma")));
    assert!(cells.contains("cells follow no schedule"), "{cells}");
    let rate = refused(&text(&beam("a", 0, 334).replace("\"622.08 Mbit/s\"", "\"unlimited\"")));
    assert!(rate.contains("bursts need a line rate"), "{rate}");
}

/// A group of IBBPBB with a frame each 40 ms: 30 + 10 + 4 * 5 kB in 240 ms.
#[test]
fn video_comes_in_frames() {
    let flow = "[[flows]]\nname = \"film\"\ntype = \"udp\"\nfrom = \"A\"\nto = \"B\"\nrate = \"20 Mbit/s\"\npacket = \"1000 B\"\nstop = \"2400 \
                ms\"\npattern = { mpeg = { interval = \"40 ms\", group = 6, distance = 3, i = \"30 kB\", p = \"10 kB\", b = \"5 kB\" } }\n";
    let scenario = parse(&world("rate = \"unlimited\"", flow));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    // Ten groups.
    assert_eq!(play(&scenario).flows[0].delivered, 10 * 60_000);
    let paced = "[[flows]]\nname = \"film\"\nfrom = \"A\"\nto = \"B\"\npaced = { rate = \"20 Mbit/s\", write = \"1000 B\", bytes = \"6 MB\", \
                 pattern = { mpeg = { interval = \"40 ms\", group = 6, distance = 3, i = \"30 kB\", p = \"10 kB\", b = \"5 kB\" } } }\n";
    let result = play(&parse(&world("rate = \"unlimited\"", paced)));
    // The last frame of 100 groups begins after 599 intervals; 5 kB at 20 Mbit/s are 2 ms, the last of them written after 1.6
    // ms. The way is 265 ms and a segment's time on three lines; by then no window is in the way.
    let (taken, min) = (seconds(&result.flows[0]), 599.0 * 0.04 + 0.0016 + 0.265);
    assert!((min..min + 0.002).contains(&taken), "{taken} s of {min}");
}

/// Outside of `minei`, a fixed window equals the path's capacity.
#[test]
fn a_fixed_window_follows_the_path() {
    let acts = include_str!("../../../../scenarios/acts-1.toml");
    let acts = Scenario::parse(acts, "acts-1.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    for variant in ["burst", "constant-window"] {
        let changed = acts.with_variant(variant).expect("a variant");
        assert!(changed.window_follows_path(variant, &tcp(&changed, 0).explicit));
        assert_eq!(Scenario::parse(&changed.to_toml(), "again", &[]).as_ref(), Ok(&changed));
        // A value derived from the path is not inherited as if it had been set.
        let back = changed.with_variant(&tcp(&acts, 0).variant_name).expect("a variant");
        assert_eq!(tcp(&back, 0).sender, tcp(&acts, 0).sender);
        let mut short = changed.clone();
        short.time_limit = Duration::from_secs(20);
        let result = play(&short);
        // The window of a SYN is not scaled (RFC 7323 §2.2): 64 KB go in the first round trip of 534 ms, 0.02 % of all.
        let begun =
            result.flows[0].connected_at.expect("opened").saturating_since(Time::ZERO).as_secs_f64() + 0.267 + 0.534;
        let rate = result.flows[0].delivered as f64 * 8.0 / (20.0 - begun) / 1e6;
        // 135.1 Mbit/s carry 9140 B of 9180 with timestamps or without: 134.5. A window short of a segment in 900 would show.
        assert!((133.5..134.6).contains(&rate), "{variant}: {rate} Mbit/s");
    }
    let fixed = |scenario: &Scenario| tcp(scenario, 0).sender.variant.startup;
    let flow = |tcp: &str| {
        parse(&world("rate = \"2 Mbit/s\"", &format!("[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n{tcp}")))
    };
    // 530 ms, 1500 B at 2 Mbit/s (6 ms) and three times at 100 (0.36 ms), 40 B back (0.1696 ms): 536.5 ms of 6 ms each are
    // 89.4 segments, and an ACK may wait for another one.
    assert_eq!(fixed(&flow("tcp = { variant = \"burst\" }")), Startup::FixedWindow(91));
    assert_eq!(fixed(&flow("tcp = { variant = \"burst\", fixed_window = \"32 segments\" }")), Startup::FixedWindow(32));
    let minei = include_str!("../../../../scenarios/minei-split.toml");
    let minei = Scenario::parse(minei, "minei-split.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(fixed(&minei.with_variant("burst").expect("a variant")), Startup::FixedWindow(32));
}

/// STP's timer includes the time of a layer's repairs; otherwise each repair would be a timeout.
#[test]
fn stp_waits_for_the_repairs_of_a_layer() {
    let flow = |rto: &str| {
        let flow = format!(
            "[[flows]]\nname = \"data\"\ntype = \"stp\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"2 MB\"\nstp = {{ rate = \"2 Mbit/s\", rtt = \"530 ms\"{rto} }}\n"
        );
        parse(&world(
            "rate = \"2 Mbit/s\"\nloss = \"2 %\"",
            &format!("[[layers]]\nname = \"s-lacp\"\nover = \"sat\"\n{flow}"),
        ))
    };
    let derived = flow("");
    let FlowKind::Stp(stp) = &derived.flows[0].kind else { panic!("it is STP") };
    // Data and ACKs may each be sent eight times: 2 * 7 * (500 + 20 + 6) ms, 550 ms, and a round trip in the layer's queue.
    assert_eq!(stp.config.rto, Duration::from_millis(2 * 7 * 526 + 550 + 530));
    assert_eq!(Scenario::parse(&derived.to_toml(), "again", &[]).as_ref(), Ok(&derived));
    let result = play(&derived);
    assert_eq!((result.flows[0].delivered, result.flows[0].stats.timeouts), (2_000_000, 0));
    let given = play(&flow(", rto = \"550 ms\""));
    assert!(given.flows[0].stats.timeouts > 500, "{:?}", given.flows[0].stats);
}

/// Polls instead of timers for data: a poll at an interval, and an answer to each poll and each gap.
#[test]
fn polls_take_the_place_of_timers() {
    let flow = |loss: &str, more: &str| {
        let flow = format!(
            "[[flows]]\nname = \"data\"\ntype = \"stp\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"2 MB\"\nstp = {{ rate = \"2 Mbit/s\", rtt = \"530 ms\"{more} }}\n"
        );
        parse(&world(&format!("rate = \"2 Mbit/s\"\nloss = \"{loss}\""), &flow))
    };
    const POLLS: &str = ", poll_interval = \"100 ms\"";
    let scenario = flow("0 %", POLLS);
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    let clear = play(&scenario);
    let flow_of = |result: &RunResult| result.flows[0].clone();
    let (clear, esa) = (flow_of(&clear), flow_of(&play(&flow("0 %", ""))));
    assert_eq!((clear.delivered, clear.stats.retransmits, clear.stats.timeouts), (2_000_000, 0, 0));
    // An answer each 100 ms of some 9 s, instead of one for each of 2000 segments.
    assert!((80..120).contains(&clear.receiver_stats.pure_acks), "{:?}", clear.receiver_stats);
    assert!(esa.receiver_stats.pure_acks >= 2000);
    for loss in ["1 %", "10 %", "30 %"] {
        let lossy = flow_of(&play(&flow(loss, POLLS)));
        assert_eq!((lossy.delivered, lossy.aborted), (2_000_000, None), "{loss}: {:?}", lossy.stats);
        // Opening and closing the connection use timers.
        assert!(lossy.stats.timeouts <= 5 && lossy.stats.retransmits > 10, "{loss}: {:?}", lossy.stats);
    }
    // The peer is gone. Without timers for data, the sender gives up after the silence.
    let dead = play(&flow("0 %\"\nbursts = { schedule = [[\"3 s\", \"200 s\"]] }\nheader = \"0 B", POLLS));
    assert!(dead.flows[0].aborted.is_some(), "{:?}", dead.flows[0]);
}
