//! The keys of JSON results, and the page that describes them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{folder, json, ok};

/// Adds the keys of an object and of everything in it.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// The result of a run with legs and channels, of one with marks, and of one with UDP.
#[test]
fn each_key_of_a_result_is_in_the_page() {
    let page = include_str!("../../../../../docs/howto/inspect.md");
    let folder = folder();
    let mut found = BTreeSet::new();
    for scenario in ["geo-gateway", "l4s", "transat-four-flows"] {
        keys(&json(&ok(folder.path(), &["run", scenario, "--json"])), &mut found);
    }
    let compare = ["compare", "small.toml", "--variants", "sack,newreno", "--reps", "2", "--json"];
    keys(&json(&ok(folder.path(), &compare)), &mut found);
    assert!(found.contains("legs") && found.contains("marked_packets") && found.contains("p99_s"), "{found:?}");
    let missing: Vec<_> = found.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/howto/inspect.md lacks {missing:?}");
}
