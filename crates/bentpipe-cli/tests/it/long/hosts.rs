//! The engine's Linux hosts against times measured with the kernel (`validation/linux`).

use crate::command::{folder, json, refused, run};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/linux/kernel-6.18.json");

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
