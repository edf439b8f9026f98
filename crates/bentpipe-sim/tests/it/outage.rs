//! Every row of the table under every profile, over a link that is silent once.

use bentpipe_engine::NoProbe;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_sim::run;
use bentpipe_study::scenario::Scenario;

const PROFILES: [&str; 7] = ["rfc", "ns2", "ns2-2003", "bsd-reno", "linux", "macos", "windows"];

fn scenario(profile: &str, row: &str, outage: &str) -> Scenario {
    // Prague needs it; the others are not marked here.
    let ecn = if row == "prague" { "ecn = \"accurate\"" } else { "" };
    let text = format!(
        r#"
name = "outage"
time_limit = "1000 s"
tcp = {{ profile = "{profile}", variant = "{row}", {ecn} }}
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
bytes = "300 kB"
"#
    );
    Scenario::parse(&text, "outage.toml", &[]).unwrap_or_else(|errors| panic!("{profile}, {row}: {errors}"))
}

/// An outage that is shorter than the first backed-off timeout costs two timeouts at most: that of the window that was lost, and that of
/// its first retransmission. Whatever else was lost is found by the ACKs that follow. A sender that stalls needs a timeout for each
/// segment.
#[test]
fn an_outage_costs_two_timeouts_at_most() {
    for outage in ["[\"1.5 s\", \"300 ms\"]", "[\"2 s\", \"500 ms\"]", "[\"2.2 s\", \"900 ms\"]"] {
        for profile in PROFILES {
            for (row, ..) in VARIANTS {
                let result = run(&scenario(profile, row, outage), 1, &mut NoProbe).expect("reachable");
                let flow = &result.flows[0];
                let name = format!("{profile}, {row}, {outage}");
                assert_eq!((flow.delivered, flow.aborted), (300_000, None), "{name}");
                assert!(flow.stats.timeouts <= 2, "{name}: {} timeouts", flow.stats.timeouts);
            }
        }
    }
}
