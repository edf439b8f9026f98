//! `bentpipe verify`: virtual time predicts real time, where our engine is at both ends.

use serde_json::Value;

use crate::support::{file, output};

/// A transfer that takes seconds over a link with losses of this kind.
fn scenario(delay: &str, rate: &str, bytes: &str, losses: &str) -> String {
    format!(
        "name = \"test\"\nseed = 3\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"{rate}\"\n\
         delay = \"{delay}\"\n{losses}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"{bytes}\"\n"
    )
}

/// Lateness is some 20 us per round trip and endpoint, less than a thousandth of a round trip of 30 ms. The fades are put
/// between the bursts of packets: where one packet on their edge decides about a timeout, virtual time differs from itself.
#[test]
fn the_engine_takes_as_long_as_was_predicted() {
    let cases = [
        ("geo", "270 ms", "10 Mbit/s", "300 kB", "forward.drop_list = [12, 40, 41]"),
        (
            "geo",
            "270 ms",
            "10 Mbit/s",
            "400 kB",
            "forward.bursts.schedule = [[\"1.5 s\", \"100 ms\"], [\"4 s\", \"300 ms\"]]",
        ),
        ("meo", "70 ms", "20 Mbit/s", "1 MB", "forward.drop_list = [12, 40, 41, 42, 100, 350]"),
        (
            "meo",
            "70 ms",
            "20 Mbit/s",
            "1 MB",
            "forward.bursts.schedule = [[\"550 ms\", \"50 ms\"], [\"1.2 s\", \"100 ms\"]]",
        ),
        ("leo", "15 ms", "50 Mbit/s", "8 MB", "forward.drop_list = [12, 40, 41, 42, 100, 350]"),
        (
            "leo",
            "15 ms",
            "50 Mbit/s",
            "8 MB",
            "forward.bursts = { gap = { uniform = [\"500 ms\", \"1 s\"] }, length = \"40 ms\" }",
        ),
    ];
    for (orbit, delay, rate, bytes, losses) in cases {
        let (_folder, path) = file(&scenario(delay, rate, bytes, losses));
        let output = output(&["verify", &path, "--no-kernel", "--json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let agrees = output.status.code() == Some(0) && report["agrees"] == true;
        assert!(agrees, "{orbit} {losses}: {report}");
        let flow = &report["flows"][0];
        let span = |key: &str| flow[key].as_f64().unwrap_or_else(|| panic!("{report}"));
        let difference = (span("engine_s") / span("simulated_s") - 1.0) * 100.0;
        assert!((difference - span("engine_difference_percent")).abs() < 1e-9 && difference.abs() <= 2.0, "{report}");
    }
}

#[test]
fn a_difference_beyond_the_tolerance_is_a_failure() {
    let (_folder, path) = file(&scenario("50 ms", "10 Mbit/s", "100 kB", ""));
    // Real time is always a little later than it should be.
    let output = output(&["verify", &path, "--no-kernel", "--tolerance", "0.0000001"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(1) && text.contains("differ by more than"), "{text}");
}
