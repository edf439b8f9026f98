//! `recommend`, followed by a run of what it recommends.

use crate::command::{SMALL, folder, json, ok, refused};

#[test]
fn a_recommendation_can_be_run() {
    let folder = folder();
    let wide = SMALL.replace("between = [\"A\", \"B\"]", "between = [\"G\", \"B\"]");
    let lan = "[[links]]\nname = \"lan\"\nbetween = [\"A\", \"G\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n[[flows]]";
    std::fs::write(folder.path().join("wide.toml"), wide.replace("[[flows]]", lan)).expect("writable");
    let arguments = ["recommend", "wide.toml", "--reps", "6", "--size", "500 kB", "--write", "with.toml"];
    let text = ok(folder.path(), &arguments);
    for word in ["500 kB", "Recommended: ", "chosen", "The answer changes", "bentpipe recommend wide.toml"] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    let advice = json(&ok(folder.path(), &["recommend", "wide.toml", "--reps", "20", "--no-flips", "--json"]));
    let chosen = advice["verdict"]["system"].as_str().expect("a system");
    assert_ne!(chosen, "plain", "2 % are lost");
    assert_eq!(advice["candidates"].as_array().map(Vec::len), Some(5));
    // The written scenario runs, and takes about the promised time.
    let run = json(&ok(folder.path(), &["run", "with.toml", "--json"]));
    assert_eq!(run["flows"][0]["bytes"], 500_000);
    let error = refused(folder.path(), 2, &["recommend", "wide.toml", "--margin", "0.05"]);
    assert!(error.contains("'5 %'"), "{error}");
    let error = refused(folder.path(), 2, &["recommend", "slacp-geo"]);
    assert!(error.contains("s-lacp") && error.contains("the path without it"), "{error}");
    let error = refused(folder.path(), 2, &["recommend", "wide.toml", "--size", "3"]);
    assert!(error.contains("--size: `3` has no unit"), "{error}");
}
