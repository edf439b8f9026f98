//! Every row of the table under every profile, over a link with one outage.

use bentpipe_engine::NoProbe;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::{FlowResult, run};
use bentpipe_study::scenario::Scenario;

const PROFILES: [&str; 7] = ["rfc", "ns2", "ns2-2003", "bsd-reno", "linux", "macos", "windows"];

/// A transfer of 1 MB with these settings over 2 Mbit/s and 600 ms.
fn transfer(profile: &str, row: &str, more: &str, outage: &str) -> FlowResult {
    // Prague needs ECN. For the others nothing is marked here.
    let ecn = if row == "prague" { "ecn = \"accurate\"" } else { "" };
    let text = format!(
        r#"
name = "outage"
time_limit = "1000 s"
[tcp]
profile = "{profile}"
variant = "{row}"
{ecn}
{more}
[[links]]
name = "sat"
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "300 ms"
bursts = {{ schedule = [{outage}] }}
[[flows]]
name = "data"
from = "A"
to = "B"
bytes = "1 MB"
"#
    );
    let scenario = Scenario::parse(&text, "outage.toml", &[]);
    let scenario = scenario.unwrap_or_else(|errors| panic!("{profile}, {row}, {more}: {errors}"));
    let mut result = run(&scenario, 1, &mut NoProbe).expect("reachable");
    let flow = result.flows.swap_remove(0);
    assert_eq!((flow.delivered, flow.aborted), (1_000_000, None), "{profile}, {row}, {more}, {outage}");
    flow
}

/// An outage that is shorter than the first backed-off timeout costs two timeouts at most: that of the window that was lost, and that of
/// its first retransmission. Whatever else was lost is found by the ACKs that follow. A sender that stalls needs a timeout for each
/// segment.
#[test]
fn an_outage_costs_two_timeouts_at_most() {
    for outage in ["[\"1.5 s\", \"300 ms\"]", "[\"2 s\", \"500 ms\"]", "[\"2.2 s\", \"900 ms\"]"] {
        for profile in PROFILES {
            for (row, ..) in VARIANTS {
                let timeouts = transfer(profile, row, "", outage).stats.timeouts;
                assert!(timeouts <= 2, "{profile}, {row}, {outage}: {timeouts} timeouts");
            }
        }
    }
}

/// A fixed window is as large after a timeout as before, also after one that interrupts a recovery. With 60 segments 1 MB takes 7 s at
/// most without losses. The outages add two timeouts, of 6 and 12 s in the slowest profile, everything sent again, and at worst a round
/// trip for each of 60 lost segments: 68 s. With a window that stays at one segment it would be some 400 s.
#[test]
fn an_outage_leaves_a_fixed_window_alone() {
    let limit = Time::ZERO + Duration::from_secs(68);
    for outages in ["[\"2 s\", \"2 s\"]", "[\"2.2 s\", \"4 s\"]", "[\"2 s\", \"300 ms\"], [\"2.9 s\", \"1 s\"]"] {
        for profile in PROFILES {
            for (row, ..) in VARIANTS {
                let end = transfer(profile, row, "fixed_window = 60", outages).received_at;
                assert!(end.is_some_and(|end| end <= limit), "{profile}, {row}, {outages}: {end:?}");
            }
        }
    }
}
