//! How flows begin over a geostationary link: careful resume (RFC 9959), SEARCH, limited slow start (RFC 3742).

use bentpipe_engine::NoProbe;
use bentpipe_sim::{FlowResult, run};
use bentpipe_study::scenario::Scenario;

/// One flow over a round trip of 600 ms: the link's other settings, the bytes, the flow's settings.
fn play(link: &str, bytes: &str, tcp: &str) -> FlowResult {
    let text = format!(
        "name = \"startup\"\ntime_limit = \"1000 s\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\ndelay = \"300 \
         ms\"\n{link}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"{bytes}\"\ntcp = {{ {tcp} }}\n"
    );
    let scenario =
        Scenario::parse(&text, "startup.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    let mut result = run(&scenario, 1, &mut NoProbe).expect("it runs");
    result.flows.remove(0)
}

fn seconds(flow: &FlowResult) -> f64 {
    flow.received_at.expect("it arrives").saturating_since(flow.start).as_secs_f64()
}

const LINE: &str = "rate = \"20 Mbit/s\"\nforward.queue = \"600 ms\"";

/// Slow start from 10 segments takes five round trips and more to half of 1.5 MB, 513 segments. Careful resume is there after one.
#[test]
fn a_resumed_flow_saves_the_round_trips_of_slow_start() {
    for variant in ["sack", "rack", "cubic", "westwood"] {
        let plain = play(LINE, "4 MB", &format!("variant = \"{variant}\""));
        let resumed = format!("variant = \"{variant}\", resume = {{ cwnd = \"1500 kB\", min_rtt = \"600 ms\" }}");
        let resumed = play(LINE, "4 MB", &resumed);
        assert_eq!((plain.stats.retransmits, resumed.stats.retransmits), (0, 0), "{variant}");
        // Three of them at least: delayed ACKs, and the last round trips of both are at the line's rate.
        let (plain, resumed) = (seconds(&plain), seconds(&resumed));
        assert!(resumed + 3.0 * 0.6 < plain, "{variant}: {resumed} s instead of {plain} s");
    }
}

/// A path that carries less than a tenth of what it did: the flow retreats and still completes.
#[test]
fn a_path_that_has_become_smaller_is_left_in_time() {
    let link = "rate = \"2 Mbit/s\"\nforward.queue = \"100 ms\"";
    let resumed = play(link, "2 MB", "variant = \"rack\", resume = { cwnd = \"3 MB\", min_rtt = \"600 ms\" }");
    assert!(resumed.stats.retransmits > 100 && resumed.delivered == 2_000_000, "{:?}", resumed.stats);
    // At worst it begins again in congestion avoidance with two segments: 2 + 3 + .. + 52 are the 1370 segments, 51 round trips of 0.7 s
    // with a full queue, and three for the jump and its loss.
    assert!(seconds(&resumed) < 54.0 * 0.7, "{}", seconds(&resumed));
    // A saved round trip of another path is no reason to jump.
    let other = play(link, "2 MB", "variant = \"rack\", resume = { cwnd = \"3 MB\", min_rtt = \"1300 ms\" }");
    let plain = play(link, "2 MB", "variant = \"rack\"");
    assert_eq!((other.received_at, other.stats), (plain.received_at, plain.stats));
}

/// An outage of 2.3 s takes what the jump has let out, and a timeout ends it. The connection slow starts as one does that has not jumped,
/// from a threshold that is half of more data. Held at one segment until all of it was acknowledged, it took 319 s.
#[test]
fn a_timeout_after_the_jump_does_not_hold_the_window() {
    let link = "rate = \"20 Mbit/s\"\nqueue = \"600 ms\"\nloss = \"0 %\"\n\
                schedule = [ { at = \"1.9 s\", loss = \"100 %\" }, { at = \"4.2 s\", loss = \"0 %\" } ]";
    for variant in ["sack", "rack", "newreno"] {
        let plain = play(link, "5 MB", &format!("profile = \"rfc\", variant = \"{variant}\""));
        let resumed = "resume = { cwnd = \"3 MB\", min_rtt = \"600 ms\" }";
        let resumed = play(link, "5 MB", &format!("profile = \"rfc\", variant = \"{variant}\", {resumed}"));
        assert!(resumed.stats.timeouts > 0, "{variant}");
        assert!(seconds(&resumed) < seconds(&plain), "{variant}: {} {}", seconds(&resumed), seconds(&plain));
    }
}

/// With a queue that takes everything slow start by losses goes on to the receive window. SEARCH ends it about two round trips after the
/// path is full: at a window of 2 to 2³ products of 1.5 MB.
#[test]
fn search_ends_slow_start_in_a_deep_queue() {
    let link = "rate = \"20 Mbit/s\"\nforward.queue = \"unlimited\"";
    let most = |exit: &str| {
        play(link, "60 MB", &format!("variant = \"rack\", timestamps = true, slow_start_exit = \"{exit}\""))
            .stats
            .max_flight
    };
    let (by_loss, by_search) = (most("loss"), most("search"));
    let product = 1_500_000;
    assert!(by_loss > 8 * product, "{by_loss}");
    assert!((product..8 * product).contains(&by_search), "{by_search}");
}

/// max_ssthresh of 100 segments: from there on about 50 segments more per round trip, not twice as many. Slow start is at 1000 segments
/// after 6.6 round trips, limited slow start after 3.3 and 900 / 50 = 18 more.
#[test]
fn limited_slow_start_takes_its_time() {
    let plain = seconds(&play(LINE, "4 MB", "variant = \"sack\""));
    let limited = seconds(&play(LINE, "4 MB", "variant = \"sack\", limited_slow_start = 100"));
    assert!(limited > plain + 3.0 * 0.6, "{limited} s, {plain} s");
}
