//! `bentpipe report`: one page.

use super::{folder, ok, run};

/// The page and the exit code say so, as `run` does.
#[test]
fn a_report_of_a_run_that_failed_fails() {
    let folder = folder();
    for (set, why) in
        [("links.sat.forward.loss=100 %", "was aborted: retries exhausted"), ("time_limit=1 s", "time limit of 1 s")]
    {
        let output = run(folder.path(), &["report", "small.toml", "--no-recommend", "--out=page.html", "--set", set]);
        assert_eq!(output.status.code(), Some(1), "{set}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{set}");
        assert!(std::fs::read_to_string(folder.path().join("page.html")).expect("written").contains(why), "{set}");
    }
}

#[test]
fn a_report_is_one_page_that_needs_nothing() {
    let folder = folder();
    ok(folder.path(), &["report", "small.toml", "--reps", "2", "--out", "page.html"]);
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    for part in ["<svg", "x limit", "What would help", "hosts as they are", "Over time", "rate = "] {
        assert!(page.contains(part), "{part} is missing");
    }
    for outside in ["<script", "src=", "href=", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
