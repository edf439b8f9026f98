//! The `minei` paper: every item has a row, and deterministic results are as printed.

use std::collections::BTreeMap;

use bentpipe_papers::{Row, Verdict};

use super::all::REPRODUCED;

#[test]
fn every_item_has_a_row_and_what_is_exact_is_exact() {
    let all: Vec<&Row> = REPRODUCED.0.iter().filter(|row| row.id.starts_with("M-")).collect();
    let rows: BTreeMap<&str, &Row> = all.iter().map(|row| (row.id.as_str(), *row)).collect();
    assert_eq!((all.len(), rows.len()), (121, 121));
    for (id, row) in &rows {
        assert!(!row.why.is_empty(), "{id}");
    }
    for id in ["M-C01", "M-C03", "M-C12", "M-C13", "M-C28", "M-C29", "M-C30", "M-C32", "M-C33", "M-C34", "M-C49"] {
        assert_eq!(rows[id].verdict, Verdict::Match, "{:?}", rows[id]);
    }
}
