//! The reference of the keys of a scenario.

use bentpipe_language::reference::{Shared, Table, tables, tcp_settings};

use super::grammar::{DISTRIBUTION, MPEG, PATTERN, SCENARIO, STP};

const SHARED: &Shared = &[
    ("Distributions of time", DISTRIBUTION),
    ("Sending patterns", PATTERN),
    ("Frames of video", MPEG),
    ("STP settings", STP),
];

/// The tables of a scenario with their keys.
pub fn reference() -> Vec<Table> {
    let mut all = tables("Top level", SCENARIO, SHARED);
    all.push(tcp_settings());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_a_table_that_is_there() {
        let all = reference();
        for table in &all {
            assert!(!table.keys.is_empty() || table.also.is_some(), "{}", table.title);
            let named = table.keys.iter().filter_map(|key| key.table.as_ref());
            for title in named.chain(table.also.iter().map(|(title, _)| title)) {
                assert!(all.iter().any(|table| table.title == *title), "{}: no table {title}", table.title);
            }
        }
    }

    #[test]
    fn directions_are_described_once() {
        let all = reference();
        let forward = all.iter().find(|table| table.title == "[links.forward]").expect("a table");
        let except = ["name", "between", "from", "to", "forward", "backward"].map(str::to_owned).to_vec();
        assert_eq!((forward.keys.len(), &forward.also), (0, &Some(("[[links]]".to_owned(), except))));
    }
}
