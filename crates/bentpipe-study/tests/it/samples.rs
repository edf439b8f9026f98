//! Settings that have no effect without RACK, or without timestamps.

use bentpipe_study::scenario::Scenario;

const TEXT: &str = r#"
name = "t"
[[links]]
name = "sat"
between = ["A", "B"]
rate = "1 Mbit/s"
delay = "1 ms"
[[flows]]
name = "data"
from = "A"
to = "B"
bytes = "1 MB"
"#;

/// What is said about this setting in this variant, with another setting beside it.
fn said(key: &str, value: &str, variant: &str, beside: [&str; 2]) -> Result<(), String> {
    let sets = [[key, value], beside].map(|[key, value]| (format!("tcp.{key}"), value.to_owned()));
    let scenario = Scenario::parse(TEXT, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.with_variant(variant).expect("a row").check_samples().map_err(|lacking| lacking.to_string())
}

#[test]
fn a_control_without_samples_is_refused() {
    const NOTHING: [&str; 2] = ["timestamps", "false"];
    let control = |word: &str| format!("flow `data`: the congestion control `{word}` needs `recovery = \"rack\"`");
    for word in ["bbr", "bbr3", "westwood"] {
        assert_eq!(said("congestion_control", word, "sack", ["timestamps", "true"]), Err(control(word)));
        assert_eq!(said("congestion_control", word, "rack", NOTHING), Ok(()), "{word}");
    }
    assert_eq!(said("congestion_control", "cubic", "sack", NOTHING), Ok(()));
    for (word, needs, with_timestamps) in [
        ("hystart", "`recovery = \"rack\"`", false),
        ("hystart++", "`timestamps = true` or `recovery = \"rack\"`", true),
        ("search", "`timestamps = true` or `recovery = \"rack\"`", true),
    ] {
        let message = format!("flow `data`: `slow_start_exit = \"{word}\"` needs {needs}");
        assert_eq!(said("slow_start_exit", word, "sack", NOTHING), Err(message), "{word}");
        assert_eq!(said("slow_start_exit", word, "linux-cubic", NOTHING), Ok(()), "another variant has RACK");
        assert_eq!(said("slow_start_exit", word, "sack", ["timestamps", "true"]).is_ok(), with_timestamps, "{word}");
    }
    // A fixed window has no slow start.
    assert_eq!(said("slow_start_exit", "search", "constant-window", NOTHING), Ok(()));
}
