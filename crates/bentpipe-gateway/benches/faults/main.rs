//! Gateways under faults: each demand with its bar, measured on the command between namespaces. `make bench-gateway-faults`.
//!
//! Options: `--only older,policy` runs some rows, `--short yes` the short forms of all, `--out FILE` writes JSON. Each row makes
//! its own world and needs no other. It exits with 1 if a bar is missed.
#![cfg(target_os = "linux")]
#![allow(dead_code)] // What the tests use and this does not.

#[path = "../../tests/it/real_time/command/away.rs"]
mod away;
#[path = "../../tests/it/real_time/command/memory.rs"]
mod flooded;
#[path = "../../tests/it/hosts.rs"]
mod hosts;
#[path = "../../tests/it/real_time/command/hub.rs"]
mod hub;
#[path = "../../../bentpipe-io/tests/it/real_time/namespace.rs"]
mod namespace;
#[path = "../../tests/it/real_time/command/older.rs"]
mod older;
#[path = "../../tests/it/real_time/command/pair.rs"]
mod pair;
mod rows;
#[path = "../../tests/it/sky.rs"]
mod sky;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

/// What a row found.
pub(crate) struct Measured {
    /// For people: the figures beside the bar.
    pub(crate) text: String,
    /// Whether the bar is met.
    pub(crate) is_met: bool,
}

/// A demand.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) demand: &'static str,
    pub(crate) bar: &'static str,
    /// Measures it, in its short form or the full one.
    pub(crate) measure: fn(is_short: bool) -> Measured,
}

fn main() -> ExitCode {
    let (mut only, mut is_short, mut out) = (None::<Vec<String>>, false, None);
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--only" => only = Some(value.split(',').map(str::to_owned).collect()),
            "--short" => is_short = value == "yes",
            "--out" => out = Some(value),
            _ => panic!("{word} is no option: --only, --short, --out"),
        }
    }
    let rows: Vec<_> = rows::ROWS
        .iter()
        .filter(|row| only.as_ref().is_none_or(|only| only.iter().any(|name| name == row.name)))
        .collect();
    assert!(
        !rows.is_empty(),
        "no row of that name: {}",
        rows::ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
    );
    let mut found = Vec::new();
    for row in rows {
        let start = Instant::now();
        // A world that falls apart fails its own row.
        let measured = catch_unwind(AssertUnwindSafe(|| (row.measure)(is_short)))
            .unwrap_or_else(|_| Measured { text: "it broke off, see above".to_owned(), is_met: false });
        let seconds = start.elapsed().as_secs_f64();
        println!("{}: {} ({seconds:.0} s)", row.name, measured.text);
        found.push((row, measured, seconds));
    }
    println!("\n{:<10} {:<66} {:<42} {:<64} verdict", "row", "demand", "bar", "measured");
    for (row, measured, _) in &found {
        let verdict = if measured.is_met { "met" } else { "MISSED" };
        println!("{:<10} {:<66} {:<42} {:<64} {verdict}", row.name, row.demand, row.bar, measured.text);
    }
    if let Some(path) = out {
        let rows: Vec<_> = found
            .iter()
            .map(|(row, measured, seconds)| {
                json!({
                    "row": row.name, "demand": row.demand, "bar": row.bar, "measured": measured.text,
                    "met": measured.is_met, "seconds": seconds.round(),
                })
            })
            .collect();
        let text = format!("{:#}\n", json!({ "version": env!("CARGO_PKG_VERSION"), "short": is_short, "rows": rows }));
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    if found.iter().all(|(_, measured, _)| measured.is_met) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
