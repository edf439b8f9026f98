//! `bentpipe model`.

use serde_json::Value;

use super::{folder, json, ok, refused};

#[test]
fn rates_of_layers_are_calculated() {
    let folder = folder();
    let arguments = ["model", "rates", "--line", "OC-3c", "--mtu", "1500 B", "--json"];
    let lines: Value = serde_json::from_str(&ok(folder.path(), &arguments)).expect("JSON");
    // 1500 + 8 + 8 bytes in 32 cells of 48; 48/53 of 260/270 of 155.52 Mbit/s.
    let expected = 155.52e6 * 260.0 / 270.0 * 48.0 / 53.0 * 1460.0 / (32.0 * 48.0);
    assert_eq!(lines[0]["cells_per_datagram"], 32);
    assert!((lines[0]["application_bits_per_second"].as_f64().expect("a number") - expected).abs() < 1e-3);
    assert!(ok(folder.path(), &["model", "rates", "--line", "oc-12"]).contains("OC-12c"));
    let error = refused(folder.path(), 2, &["model", "rates", "--line", "OC-4", "--mtu", "9180 B"]);
    assert!(error.contains("OC-3c"), "{error}");
    let error = refused(folder.path(), 2, &["model", "rates", "--line", "OC-3", "--mtu", "9180"]);
    assert!(error.contains("64 kB"), "{error}");
}

/// The paper's own family of paths: 1 Mbit/s, packets of 500 B.
const HYBRID: [&str; 8] = ["model", "hybrid", "--t1", "100 ms", "--t2", "100 ms", "--loss", "10 %"];

#[test]
fn the_hybrid_model_shows_its_working() {
    let folder = folder();
    let one = [&HYBRID[..], &["--buffer", "20 packets"]].concat();
    let text = ok(folder.path(), &one);
    let quote = if cfg!(windows) { '"' } else { '\'' };
    for word in ["Upsilon", "w_max", "A3", "39", "53", &format!("bentpipe model hybrid --t1 {quote}100 ms{quote}")] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let model = json(&ok(folder.path(), &[&one[..], &["--json"]].concat()));
    let point = &model["points"][0];
    // A row of validation/hybrid/model_values.csv.
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!((number(&point["end_to_end"]["per_mu"]) / 0.2170091786 - 1.0).abs() < 1e-9, "{point}");
    assert!((number(&point["split"]["per_mu"]) / 0.2571428571 - 1.0).abs() < 1e-9, "{point}");
    assert_eq!(point["end_to_end"]["case"], 3);
}

#[test]
fn the_hybrid_model_sweeps() {
    let folder = folder();
    let sweep = [&HYBRID[..6], &["--buffer", "50 packets", "--sweep", "loss=0.1..0.5:0.05"]].concat();
    let swept = json(&ok(folder.path(), &[&sweep[..], &["--json"]].concat()));
    let points = swept["points"].as_array().expect("a list");
    let values: Vec<_> = points.iter().map(|point| point["value"].as_str().expect("text")).collect();
    assert_eq!(values, ["0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"]);
    let through = |point: &Value| point["end_to_end"]["per_mu"].as_f64().expect("a number");
    assert!(points.windows(2).all(|pair| through(&pair[0]) > through(&pair[1])), "more loss, less throughput");
    assert_eq!(ok(folder.path(), &sweep).lines().filter(|line| line.trim_start().starts_with("0.")).count(), 9);
}

#[test]
fn the_hybrid_model_wants_units() {
    let folder = folder();
    let with = |arguments: &[&str]| refused(folder.path(), 2, &[&HYBRID[..], arguments].concat());
    let error = with(&["--buffer", "50"]);
    assert!(error.contains("--buffer: `50` has no unit") && error.contains("\"50 packets\""), "{error}");
    assert!(with(&[]).contains("--buffer is missing"));
    assert!(with(&["--buffer", "0 packets"]).contains("at least 1"));
    assert!(with(&["--buffer", "9 packets", "--rate", "1 kbit/s"]).contains("Eq. 5"));
    assert!(with(&["--sweep", "bufer=1 packet..2 packets:1 packet"]).contains("did you mean `buffer`?"));
    assert!(with(&["--buffer", "9 packets", "--sweep", "t2=1..2:1"]).contains("--sweep t2: `1` has no unit"));
}
