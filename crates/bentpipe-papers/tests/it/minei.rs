//! The `minei` paper: every item has a row, and deterministic results are as printed.

use std::collections::BTreeSet;

use bentpipe_papers::reproduce::{Options, minei};
use bentpipe_papers::{Row, Verdict};

#[test]
fn every_item_has_a_row_and_what_is_exact_is_exact() {
    let rows = minei(&Options::default(), &|_, _, _| ()).expect("what is asked for exists");
    let ids: BTreeSet<_> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!((rows.len(), ids.len()), (121, 121));
    for row in &rows {
        assert!(!row.why.is_empty(), "{}", row.id);
    }
    let row = |id: &str| -> &Row { rows.iter().find(|row| row.id == id).expect("it is there") };
    for id in ["M-C01", "M-C03", "M-C12", "M-C13", "M-C28", "M-C29", "M-C30", "M-C32", "M-C33", "M-C34", "M-C49"] {
        assert_eq!(row(id).verdict, Verdict::Match, "{:?}", row(id));
    }
}
