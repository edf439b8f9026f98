//! QUIC whose ends know the path: rare ACKs, repair symbols, data that is written where it belongs.

use bentpipe_study::scenario::Scenario;

use super::{bulk, geo, result, results, seconds};

/// With ACKs asked for every 20 packets far fewer come back.
#[test]
fn acks_are_as_rare_as_asked() {
    let acks = |settings| results(&geo("", &bulk("2 MB", settings))).links[1].offered;
    let (usual, rare) = (acks(""), acks("ack_frequency = { every = \"20 packets\", delay = \"100 ms\" }"));
    assert!(usual > 4 * rare, "{usual} packets, {rare} with fewer ACKs");
}

/// With 0-RTT a frame that asks for rare ACKs comes after a round trip, when all of the data has left. A receiver that knows sends as
/// few from the start: an ACK for 50 packets, or after the 25 ms in which 20 Mbit/s bring as many.
#[test]
fn a_receiver_that_knows_acknowledges_rarely_at_once() {
    let acks = |at_once: bool| {
        let asked = format!("ack_frequency = {{ every = 50, at_once = {at_once} }}");
        let run = results(&geo("", &bulk("1 MB", &format!("zero_rtt = true, initial_window = \"2 MB\", {asked}"))));
        assert_eq!(run.flows[0].delivered, 1_000_000);
        run.links[1].offered
    };
    let (asked, known) = (acks(false), acks(true));
    assert!(asked > 5 * known, "{asked} packets, {known} if it is known");
}

/// What is lost is repaired half a round trip after it was sent, not one and a half: before any packet could be sent again. With more
/// losses than repair symbols the data comes as without them.
#[test]
fn repair_symbols_take_the_place_of_lost_packets() {
    let known = "zero_rtt = true, initial_window = \"2 MB\", unordered = true";
    let took = |seed, loss: &str, repair: &str| {
        let flows = bulk("1 MB", &format!("{known}{repair}"));
        let flow = result(&geo(&format!("loss = \"{loss}\""), &flows).with_seed(seed));
        assert_eq!((flow.delivered, flow.aborted), (1_000_000, None), "seed {seed}, {loss}{repair}");
        assert!(flow.acked_at.is_some(), "the sender learns that it is over");
        seconds(&flow)
    };
    for seed in 1..=3 {
        let [plain, coded] = ["", ", repair = \"5 %\""].map(|repair| took(seed, "1 %", repair));
        assert!(coded < 0.9 && plain > 0.9, "seed {seed}: {coded} s, {plain} s without repair symbols");
        took(seed, "10 %", ", repair = \"1 %\"");
    }
}

/// quinn gives up a stream of which more than 1024 pieces wait for lost ones. BBR with a known window overshoots a path of 250 Mbit/s
/// and 650 ms, whose queue then drops every few packets: read in order, the stream ends the connection at both ends. Data that is taken
/// in any order does not wait.
#[test]
fn many_gaps_end_a_stream_that_is_read_in_order() {
    let path = format!("{}/../../scenarios/geo-board.toml", env!("CARGO_MANIFEST_DIR"));
    let run = |unordered: &str| {
        let quic = [
            ("congestion_control", "bbr"),
            ("zero_rtt", "true"),
            ("initial_window", "19.6 MB"),
            ("encryption", "false"),
            ("unordered", unordered),
        ];
        let mut sets = vec![
            ("flows.download.type".to_owned(), "quic".to_owned()),
            ("flows.download.bytes".to_owned(), "100 MB".to_owned()),
            ("links.sat.backward.rate".to_owned(), "30 Mbit/s".to_owned()),
        ];
        sets.extend(quic.map(|(key, value)| (format!("flows.download.quic.{key}"), value.to_owned())));
        result(&Scenario::load(&path, &sets).unwrap_or_else(|errors| panic!("{errors}")))
    };
    let (in_order, any_order) = (run("false"), run("true"));
    assert!(in_order.aborted.is_some() && in_order.delivered < 100_000_000, "{in_order:?}");
    assert_eq!((any_order.delivered, any_order.aborted), (100_000_000, None));
}
