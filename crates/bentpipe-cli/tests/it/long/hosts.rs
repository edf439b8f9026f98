//! The engine's Linux hosts against times measured with the kernel (`validation/linux`).

use crate::command::{folder, json, refused, run};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/linux/kernel-6.18.json");
/// Has the times in a table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/virtual-and-real-time.md");

#[test]
fn they_agree_with_the_recorded_kernel() {
    let folder = folder();
    let output = run(folder.path(), &["verify-hosts", "--kernel", RECORDED, "--json"]);
    let report = json(&String::from_utf8(output.stdout).expect("text"));
    let cells = report["cells"].as_array().expect("a list");
    assert_eq!(cells.len(), 108);
    let others: Vec<_> = cells.iter().filter(|cell| cell["verdict"] != "agrees").collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(output.status.code(), Some(0));
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let rows = rows(cells);
    let name = |row: &str| row.split(" | ").next().map(str::to_owned);
    let renewed =
        |line: &str| rows.iter().find(|row| name(row) == name(line)).map_or(line, String::as_str).to_owned() + "\n";
    let new: String = page.lines().map(renewed).collect();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(PAGE, &new).expect("a writable file");
    } else {
        let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
        assert!(
            missing.is_empty(),
            "results have moved; `UPDATE_GOLDENS=1 cargo test -p bentpipe-cli --test it hosts` writes {missing:#?}"
        );
    }
    assert!(rows.iter().all(|row| new.contains(row)), "the page has a row for each link and pattern of losses");
}

/// The rows of the page's table: a link and a pattern of losses, with the three controls.
fn rows(cells: &[serde_json::Value]) -> Vec<String> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for cell in cells {
        let (name, _) =
            cell["cell"].as_str().and_then(|cell| cell.rsplit_once(", ")).expect("a link, losses, a control");
        let number = |key: &str| cell[key].as_f64().expect("it ended");
        let (ours, kernel, difference) = (number("ours_s"), number("kernel_s"), number("difference_percent"));
        let columns = format!(" {ours:.3} / {kernel:.3} | {difference:+.2} % |");
        match rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => row.1 += &columns,
            None => rows.push((name, format!("| {name} |{columns}"))),
        }
    }
    rows.into_iter().map(|row| row.1).collect()
}

#[test]
fn a_file_without_the_cell_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("k.json"), r#"{"kernel": "6.18", "cells": []}"#).expect("writable");
    let error = refused(folder.path(), 2, &["verify-hosts", "--kernel", "k.json"]);
    assert!(error.contains("k.json: no runs of the cell `GEO, no loss, reno`"), "{error}");
    let error = refused(folder.path(), 2, &["verify-hosts", "--kernel", "absent.json"]);
    assert!(error.contains("absent.json: No such file"), "{error}");
    std::fs::write(folder.path().join("k.json"), "[]").expect("writable");
    let error = refused(folder.path(), 2, &["verify-hosts", "--kernel", "k.json"]);
    assert!(error.contains("k.json") && error.contains("bentpipe verify-hosts --json"), "{error}");
}
