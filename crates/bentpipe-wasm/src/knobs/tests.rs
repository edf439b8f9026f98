use serde_json::{Value, json};

use crate::answer;

const TEXT: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
    delay = \"250 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"100 kB\"\n";

/// The JSON of the answer to a look at the scenario with these knobs.
fn look(knobs: &Value) -> Value {
    look_at(TEXT, knobs)
}

fn look_at(text: &str, knobs: &Value) -> Value {
    let request = json!({ "op": "look", "text": text, "name": "t.toml", "knobs": knobs });
    let block = answer::block(request.to_string().as_bytes());
    let len = u32::from_le_bytes(block[4..8].try_into().expect("four bytes")) as usize;
    serde_json::from_slice(&block[8..8 + len]).expect("JSON")
}

fn refused(knobs: &Value) -> String {
    let answer = look(knobs);
    answer["error"].as_str().unwrap_or_else(|| panic!("{knobs} is accepted")).to_owned()
}

#[test]
fn a_seed_keeps_its_digits() {
    for seed in ["0", "9007199254740993", "18446744073709551615"] {
        let answer = look(&json!({ "seed": seed }));
        assert_eq!(answer["ok"]["settings"]["seed"], json!(seed), "{answer}");
        let text = answer["ok"]["toml"].as_str().expect("a text");
        assert!(text.contains(&format!("seed = {seed}\n")) || text.contains(&format!("seed = \"{seed}\"\n")), "{text}");
    }
    assert_eq!(look(&json!({ "seed": 7 }))["ok"]["settings"]["seed"], json!("7"), "a number, too");
    assert_eq!(look(&json!({ "seed": null }))["ok"]["settings"]["seed"], json!("1"), "the scenario's");
    for seed in [json!("-1"), json!("1.5"), json!("18446744073709551616"), json!(-1), json!(1.5), json!([1])] {
        let error = refused(&json!({ "seed": seed }));
        assert!(error.contains("a seed") && error.contains("from 0 to 18446744073709551615"), "{seed}: {error}");
    }
}

#[test]
fn a_value_above_the_maximum_of_its_setting_is_refused_by_name() {
    // The maxima themselves are taken.
    for knobs in [
        json!({ "rate_bit_s": 1_000_000_000_000_000_u64 }),
        json!({ "bytes": 1_000_000_000_000_000_u64 }),
        json!({ "delay_s": 31_536_000.0 }),
        json!({ "loss": 1.0 }),
        // 2 Mbit/s for a year.
        json!({ "queue_s": 31_536_000.0 }),
    ] {
        let answer = look(&knobs);
        assert!(answer["ok"].is_object(), "{knobs}: {answer}");
    }
    for (knobs, expected) in [
        (
            json!({ "rate_bit_s": 1_000_000_000_000_001_u64 }),
            "rate: `1000000000000001 bit/s` is more than 1000 Tbit/s, the maximum",
        ),
        (json!({ "rate_bit_s": u64::MAX }), "rate: `18446744073709551615 bit/s` is more than 1000 Tbit/s, the maximum"),
        (json!({ "rate_bit_s": 0 }), "a rate of 0 bit/s"),
        (json!({ "bytes": 1_000_000_000_000_001_u64 }), "size: `1000000000000001 B` is more than 1000 TB, the maximum"),
        (json!({ "bytes": 0 }), "a transfer of 0 bytes"),
        (
            json!({ "rate_bit_s": 1_000_000_000_000_000_u64, "queue_s": 8.5 }),
            "queue: `1062500000000000 B` is more than 1000 TB, the maximum",
        ),
        (json!({ "queue_s": 31_536_001.0 }), "a queue of 31536001 s: expected 0 s to a year"),
        (json!({ "queue_s": -1.0 }), "a queue of -1 s: expected 0 s to a year"),
        (json!({ "delay_s": 1e300 }), "a delay of 1e300 s: expected 0 s to a year"),
        (json!({ "loss": 1.5 }), "a loss of 1.5: expected 0 to 1"),
        (json!({ "fades": [[1e300, 1.0]] }), "a start of 1e300 s: expected 0 s to a year"),
    ] {
        let error = refused(&knobs);
        // One line about the knob, none about a text that the page made.
        assert_eq!(error, expected, "{knobs}");
    }
}

#[test]
fn the_queue_of_a_link_in_cells_is_not_a_time() {
    let text = TEXT.replace("delay =", "framing = \"aal5\"\ndelay =");
    let answer = look_at(&text, &json!({ "queue_s": 0.5 }));
    let error = answer["error"].as_str().expect("refused");
    assert_eq!(error, "the queue of a link in cells has a number of cells, not a length in time");
    assert!(look_at(&text, &json!({ "delay_s": 0.5 }))["ok"].is_object(), "the other values can change");
}

/// Phases draw delays at random. The knob's value takes their place; what else they change stays.
#[test]
fn a_delay_takes_the_place_of_drawn_ones() {
    for (outage, stays) in [("", false), ("outage = \"80 ms\", ", true)] {
        let phases = format!("phases = {{ length = \"15 s\", {outage}delay = [\"21 ms\", \"40 ms\"] }}\ndelay =");
        let toml = |knobs: Value| {
            let answer = look_at(&TEXT.replace("delay =", &phases), &knobs);
            answer["ok"]["toml"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
        };
        assert!(toml(json!({})).contains("21 ms"));
        let changed = toml(json!({ "delay_s": 0.5 }));
        assert_eq!((changed.contains("21 ms"), changed.contains("phases")), (false, stays), "{changed}");
        assert!(changed.contains("delay = \"500 ms\""), "{changed}");
    }
}
