//! Corners of the scenario language, each of which once stalled a transfer, kept a line idle or gave a wrong number.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Time;
use bentpipe_sim::{RunResult, run};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::Scenario;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "corners.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)))
}

fn play(scenario: &Scenario) -> RunResult {
    run(scenario, 1, &mut NoProbe).expect("it runs")
}

/// The time of the first flow over the minimum that the links allow.
fn x_limit(scenario: &Scenario) -> f64 {
    let result = play(scenario);
    let flow = &result.flows[0];
    assert_eq!(flow.aborted, None, "{flow:?}");
    let time = flow.received_at.unwrap_or_else(|| panic!("{flow:?}")).saturating_since(Time::ZERO).as_secs_f64();
    let limit = flow_limit(scenario, &scenario.flows[0]).expect("joined").and_then(|limit| limit.time);
    time / limit.expect("it has an end").as_secs_f64()
}

/// A server, a link `sat` with these settings between two boxes, and a client. `rest` is appended to the text.
fn path(sat: &str, rest: &str) -> String {
    let end = |name: &str, from: &str, to: &str| {
        format!(
            "[[links]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    format!(
        "name = \"corner\"\ntime_limit = \"2000 s\"\n{}{}[[links]]\nname = \"sat\"\nbetween = [\"far\", \"near\"]\n{sat}\n{rest}",
        end("internet", "server", "far"),
        end("lan", "near", "client")
    )
}

fn transfer(bytes: &str, more: &str) -> String {
    format!("[[flows]]\nfrom = \"server\"\nto = \"client\"\nbytes = \"{bytes}\"\n{more}\n")
}

/// A line of 20 kbit/s sends a short frame in a few milliseconds and a long one in 0.6 s. S-LACP once took the difference for a queue and
/// reduced its rate to a fifth of the line's.
#[test]
fn gateways_fill_slow_lines() {
    for rate in [10, 20, 40, 80] {
        for shape in ["split", "link"] {
            let sat = format!("rate = \"{rate} kbit/s\"\ndelay = \"279 ms\"\nqueue = \"20 packets\"");
            let boxes =
                format!("[[gateways]]\nname = \"boxes\"\nshape = \"{shape}\"\nnear = \"near\"\nfar = \"far\"\n");
            let flow = transfer(&format!("{} B", rate * 2500), "tcp.profile = \"linux\"");
            let factor = x_limit(&parse(&path(&sat, &format!("{boxes}{flow}"))));
            // The header of the tunnel takes 5 % of a full packet, and the first round trips some seconds of 20.
            assert!(factor < 1.5, "{shape} at {rate} kbit/s: {factor:.2}");
        }
    }
}

/// A queue's limit does not count the packet in transmission. A line with CoDel, FQ-CoDel or DualPI2 once dropped every packet longer than
/// the limit, and so did the channels of a layer.
#[test]
fn a_queue_without_room_lets_packets_pass_an_idle_line() {
    for discipline in ["drop-tail", "red", "codel", "fq-codel", "dualpi2"] {
        for limit in ["0 packets", "10 B", "1 ms"] {
            let sat = format!(
                "rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = {{ limit = \"{limit}\", discipline = \"{discipline}\" }}"
            );
            let result = play(&parse(&path(&sat, &transfer("20 kB", ""))));
            assert_eq!(result.flows[0].delivered, 20_000, "{discipline} {limit}");
        }
    }
    for limit in ["0 packets", "10 B", "1 ms"] {
        for queueing in ["fifo", "fair"] {
            let sat = format!("rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"{limit}\"");
            let layer = format!(
                "[[layers]]\nname = \"layer\"\nover = \"sat\"\nchannels = [{{ name = \"all\", queueing = \"{queueing}\" }}]\n"
            );
            let result = play(&parse(&path(&sat, &format!("{layer}{}", transfer("20 kB", "")))));
            assert_eq!(result.flows[0].delivered, 20_000, "layer, {queueing} {limit}");
        }
    }
}

/// A flow of requests and responses ends with the last response. If none came, it once ended with the last request.
#[test]
fn lost_responses_are_no_end() {
    let sat = "rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nbackward.mtu = \"200 B\"";
    let flow = "[[flows]]\nfrom = \"server\"\nto = \"client\"\n\
                request_response = { request = \"400 B\", response = \"1 kB\" }\n";
    let result = play(&parse(&path(sat, flow)));
    assert_eq!(result.flows[0].received_at, None);
}

/// The first round trip is that of the handshake, in which a box at the uplink waits for the client: 560 ms. The round trips of data take 2
/// ms. Prague once kept pacing by the first one, so the window was never full and no other was measured.
#[test]
fn a_paced_sender_follows_a_shorter_round_trip() {
    let sat = "rate = \"200 Mbit/s\"\ndelay = \"279 ms\"\nqueue = \"10000 packets\"";
    let boxes = "[[gateways]]\nname = \"box\"\nshape = \"uplink\"\nat = \"far\"\n";
    let factor = x_limit(&parse(&path(sat, &format!("{boxes}{}", transfer("5 MB", "tcp.variant = \"prague\"")))));
    assert!(factor < 3.0, "{factor:.2}");
}

/// A clock of 500 ms measures a round trip of 44 ms as zero or one tick. Paced by ticks, the window was never full.
#[test]
fn a_coarse_clock_does_not_slow_pacing() {
    let sat = "rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"200 packets\"";
    for tcp in
        ["variant = \"prague\"", "variant = \"reno\"\npacing.gain = 120", "variant = \"cubic\"\npacing.gain = 120"]
    {
        let factor =
            x_limit(&parse(&path(sat, &transfer("2 MB", &format!("[flows.tcp]\nprofile = \"bsd-reno\"\n{tcp}")))));
        // ACKs also come every 200 ms, so a sample may be five times the path's round trip.
        assert!(factor < 5.0, "{tcp}: {factor:.2}");
    }
}

/// With long segments, a Linux receiver once never saw a round larger than its first window, so the window did not grow. With the longest
/// segments it closed for ever.
#[test]
fn windows_grow_with_long_segments() {
    for mss in [8960, 16_000, 30_000, 65_495] {
        let sat = "rate = \"10 Mbit/s\"\ndelay = \"279 ms\"\nqueue = \"2 MB\"";
        let tcp = format!("[flows.tcp]\nprofile = \"linux\"\nmss = \"{mss} B\"");
        let factor = x_limit(&parse(&path(sat, &transfer("3 MB", &tcp))));
        assert!(factor < 4.0, "{mss}: {factor:.2}");
    }
}

/// A receiver that sends few ACKs from the start once asked to be polled every microsecond after it had everything.
#[cfg(feature = "quic")]
#[test]
fn a_quic_receiver_that_is_done_rests() {
    let sat = "rate = \"10 Mbit/s\"\ndelay = \"279 ms\"\nqueue = \"100 packets\"";
    let quic = "ack_frequency = { every = 10, delay = \"25 ms\", at_once = true }";
    let flow = |name: &str, bytes: &str| {
        format!("{}name = \"{name}\"\ntype = \"quic\"\n[flows.quic]\nencryption = false\n{quic}\n", transfer(bytes, ""))
    };
    let result = play(&parse(&path(sat, &format!("{}{}", flow("short", "100 kB"), flow("long", "5 MB")))));
    assert!(result.events < 200_000, "{}", result.events);
}

/// An aborted flow waits for nothing, although its other end does not know of the abort. The time limit once did not end the run.
#[test]
fn an_aborted_flow_does_not_time_out() {
    let sat = "rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nforward.mtu = \"200 B\"";
    let result = play(&parse(&path(sat, &transfer("20 kB", "tcp = { variant = \"sack\", rto.max_retries = 3 }"))));
    assert!(result.flows[0].aborted.is_some() && !result.timed_out, "{:?}", result.flows[0].aborted);
}

/// A tunnel joins short segments in its messages, whose headers are shorter than those of the segments; ns-2's lengths do not count
/// timestamps. Both were once faster than the limit.
#[test]
fn short_headers_are_in_the_limit() {
    let sat = "rate = \"500 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"100 packets\"";
    let boxes = "[[gateways]]\nname = \"boxes\"\nshape = \"split\"\nnear = \"near\"\nfar = \"far\"\n";
    for (boxes, tcp) in [
        (boxes, "profile = \"linux\"\nmss = \"200 B\""),
        (boxes, "profile = \"rfc\"\nmss = \"536 B\""),
        ("", "profile = \"ns2\"\ntimestamps = true"),
    ] {
        let flow = transfer("500 kB", &format!("[flows.tcp]\n{tcp}"));
        let factor = x_limit(&parse(&path(sat, &format!("{boxes}{flow}"))));
        // Slow start takes part of eight seconds.
        assert!((1.0 - 1e-9..1.3).contains(&factor), "{tcp}: {factor:.4}");
    }
}

/// On a line whose rate repeats, the limit of a flow once counted a whole period's capacity at once. That left no time for a short flow: an
/// x limit of 10^5, or below 1 against the mean rate.
#[test]
fn a_line_that_repeats_has_a_limit() {
    let sat = "rate = \"5 Mbit/s\"\ndelay = \"50 ms\"\nqueue = \"100 packets\"\n\
               schedule = [{ at = \"2 s\", rate = \"500 kbit/s\" }]\nschedule_period = \"10 s\"";
    for (flow, max) in [
        ("request_response = { request = \"400 B\", response = \"1 B\", count = 3 }", 1.1),
        ("paced = { rate = \"4 Mbit/s\", bytes = \"500 kB\" }", 2.0),
    ] {
        let flow = format!("[[flows]]\nfrom = \"server\"\nto = \"client\"\n{flow}\n");
        let factor = x_limit(&parse(&path(sat, &flow)));
        assert!((1.0 - 1e-9..max).contains(&factor), "{flow}: {factor:.4}");
    }
}

/// Such a flow sends window after window at the same instant, so the time limit was never reached.
#[test]
fn a_flow_without_end_over_a_path_without_time_is_refused() {
    let text = |bytes: &str, delay: &str| {
        format!(
            "name = \"corner\"\ntime_limit = \"1 s\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\n\
             rate = \"unlimited\"\ndelay = \"{delay}\"\n[[flows]]\nname = \"greedy\"\nfrom = \"a\"\nto = \"b\"\n{bytes}"
        )
    };
    let error =
        run(&parse(&text("greedy = true", "0 s")), 1, &mut NoProbe).expect_err("its clock stands still").to_string();
    assert!(error.starts_with("the clock stands still at 0 s: flow `greedy` sends without end"), "{error}");
    play(&parse(&text("bytes = \"100 MB\"", "0 s")));
    play(&parse(&text("greedy = true", "100 ms")));
}
