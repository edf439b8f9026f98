//! STP in virtual time: against numbers worked by hand, under lazy and literal timers, in captures.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunResult, Timers, run, run_with};
use bentpipe_study::scenario::Scenario;

const SHIPPED: &str = include_str!("../../../../scenarios/stp.toml");

fn scenario(sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::parse(SHIPPED, "stp.toml", &sets).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

const CLEAR: [(&str, &str); 2] = [("links.up.bit_error_rate", "0"), ("links.down.bit_error_rate", "0")];

fn play(scenario: &Scenario, seed: u64) -> RunResult {
    run(scenario, seed, &mut NoProbe).expect("it runs")
}

/// 1000 frames of 8.384 ms, 63 of them per cycle. A segment's ACK comes back after its frame on two lines, 2 x 8.384 ms,
/// an ACK of 48 bytes on two, 2 x 0.384 ms, and 530 ms: 547.536 ms, in which the line is idle for 547.536 - 63 x 8.384
/// ms. 15 full cycles and the 55 segments left, of which the last is acknowledged a frame time each after the first: 15
/// cycles + 54 frames + one round trip.
#[test]
fn a_transfer_without_loss_by_hand() {
    let result = play(&scenario(&CLEAR), 1);
    let flow = &result.flows[0];
    let (begun, ended) = (flow.connected_at.expect("opened"), flow.acked_at.expect("acknowledged"));
    let round_trip = 530_000_000 + 2 * 8_384_000 + 2 * 384_000;
    // The ACK of the handshake goes first and takes 0.384 ms of the line, once.
    let expected = 384_000 + 15 * round_trip + 54 * 8_384_000 + round_trip;
    let taken = ended.saturating_since(begun).as_nanos();
    // Cycles after the first begin with an ACK, not with the line free: the ACK of the handshake is made up for.
    assert!(expected - taken <= 384_000, "{taken} instead of {expected}");
    assert_eq!((flow.delivered, flow.stats.retransmits, flow.stats.timeouts), (1_000_000, 0, 0));
}

#[test]
fn bit_errors_cost_repetitions_and_no_bytes() {
    for seed in 0..20 {
        let result = play(&scenario(&[]), seed);
        let flow = &result.flows[0];
        assert_eq!((flow.delivered, flow.aborted), (1_000_000, None), "seed {seed}");
        let lost: u64 = result.links.iter().map(|link| link.dropped_channel).sum();
        assert!(lost > 0 && flow.stats.retransmits > 0, "seed {seed}: 1.7 % of 1000 frames");
    }
}

#[test]
fn a_sky_without_hope_ends_in_an_abort() {
    let hopeless = [("links.up.bit_error_rate", "1e-4"), ("links.down.bit_error_rate", "1e-4")];
    let result = play(&scenario(&hopeless), 1);
    assert_eq!(result.flows[0].aborted, Some(bentpipe_engine::tcp::Abort::RetriesExhausted));
}

#[test]
fn lazy_timers_are_literal_ones() {
    for timer in ["departure", "hand-over"] {
        let scenario = scenario(&[("flows.data.stp.timer", timer)]);
        let both = [Timers::Lazy, Timers::Literal]
            .map(|timers| run_with(&scenario, 7, &mut NoProbe, timers, |_| true).expect("it runs"));
        assert_eq!(both[0], both[1], "{timer}");
    }
}

#[test]
fn the_scenario_is_written_and_read_again() {
    let sets = [
        ("flows.data.stp.window", "20 segments"),
        ("flows.data.stp.timer", "hand-over"),
        ("links.up.bit_error_rate", "{ nominal = \"1e-6\", implementation_loss = \"0.7 dB\" }"),
    ];
    let scenario = scenario(&sets);
    let again = Scenario::parse(&scenario.to_toml(), "again", &[]).expect("what was written can be read");
    assert_eq!(again, scenario);
    // Q(sqrt(2 Eb/N0)) at 10.530 - 0.7 dB.
    let rate = scenario.links.iter().find(|link| link.name == "up/forward").expect("a link").config.good.bit.get();
    assert!((5.5e-6..6.5e-6).contains(&rate), "{rate:e}");
}

#[test]
fn mistakes_are_named() {
    let message = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::parse(SHIPPED, "stp.toml", &sets).expect_err("must be refused").render(false)
    };
    assert!(message("flows.data.stp.rtt", "530").contains("needs a unit"));
    assert!(message("flows.data.stp.rto", "0 s").contains("cannot be 0 s"));
    assert!(message("flows.data.stp.mss", "10 B").contains("from 28 B"));
    assert!(message("flows.data.tcp.variant", "sack").contains("this flow is stp"));
    assert!(message("links.up.mtu", "20 B").contains("68 B to 65535 B"));
    assert!(message("links.up.header", "100 kB").contains("longer than any packet"));
    let loss = "{ nominal = \"1e-6\", implementation_loss = \"0.7\" }";
    assert!(message("links.up.bit_error_rate", loss).contains("no unit"));
}
