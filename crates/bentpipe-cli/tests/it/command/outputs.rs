//! Where outputs go: files, standard output, FIFOs and devices.

use super::{folder, ok, refused, run};

#[test]
fn a_dash_is_standard_output_and_the_report_moves_aside() {
    let folder = folder();
    let output = run(folder.path(), &["run", "small.toml", "--trace", "-"]);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}");
    assert!(out.starts_with("time") || out.lines().next().is_some_and(|head| head.contains(',')), "{out}");
    assert!(!out.contains("x limit") && error.contains("x limit"), "{error}");
    let svg = ok(folder.path(), &["run", "small.toml", "--plot", "/dev/stdout"]);
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--trace", "-", "--plot", "-"]);
    assert!(error.contains("only one output can go to standard output"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let folder = folder();
    ok(folder.path(), &["run", "small.toml", "--pcap", "/dev/null"]);
    let null = std::fs::metadata("/dev/null").expect("it is there");
    assert!(null.file_type().is_char_device());
    // A folder is refused before anything runs.
    std::fs::create_dir(folder.path().join("folder.svg")).expect("writable");
    let error = refused(folder.path(), 1, &["run", "small.toml", "--plot", "folder.svg"]);
    assert!(error.contains("folder.svg could not be written: it is a folder"), "{error}");
}

#[test]
fn threads_are_bounded_by_the_cores() {
    let folder = folder();
    let many = ["compare", "small.toml", "--variants", "sack", "--reps", "2", "--json", "--threads"];
    let rows = |text: String| super::json(&text)["variants"].clone();
    let few = rows(ok(folder.path(), &[&many[..], &["1"]].concat()));
    assert_eq!(rows(ok(folder.path(), &[&many[..], &["1000000"]].concat())), few);
}

#[test]
fn help_is_a_command_too() {
    let folder = folder();
    assert!(ok(folder.path(), &["help", "run"]).contains("Run a scenario once"));
}

#[test]
fn a_variant_that_never_finishes_is_marked() {
    let folder = folder();
    let arguments = ["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "2", "--set", "time_limit=1 s"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("0 (2 unfinished)"), "{table}");
}

#[test]
fn a_report_is_one_page_that_needs_nothing() {
    let folder = folder();
    ok(folder.path(), &["report", "small.toml", "--reps", "2", "--out", "page.html"]);
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    for part in ["<svg", "x limit", "What would help", "split + S-LACP", "Over time", "rate = "] {
        assert!(page.contains(part), "{part} is missing");
    }
    for outside in ["<script", "src=", "href=", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
