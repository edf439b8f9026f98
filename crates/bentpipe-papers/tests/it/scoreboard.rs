//! Compares the committed scoreboard with new runs of parts of it.

use bentpipe_papers::scoreboard::to_markdown;
use bentpipe_sweep::board::{Options, Selection, TRANSPORTS, board};

const DOCUMENT: &str = include_str!("../../../../docs/SCOREBOARD.md");

fn shipped(name: &str) -> Option<&'static str> {
    match name {
        "geo-board" => Some(include_str!("../../../../scenarios/geo-board.toml")),
        "meo" => Some(include_str!("../../../../scenarios/meo.toml")),
        _ => None,
    }
}

/// Rows of the table under a heading: (transport, box, column) and the cell. A row of several
/// transports gives the cells of each.
fn cells(document: &str, heading: &str) -> Vec<([String; 3], String)> {
    let part = document.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no `{heading}`"));
    let part = part.split("\n## ").next().expect("a text");
    let split = |line: &str| -> Vec<String> {
        line.trim_matches(['|', ' ']).split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = part.lines().filter(|line| line.starts_with('|'));
    let header = split(lines.next().expect("a header"));
    let mut found = Vec::new();
    for row in lines.skip(1).map(split) {
        let names: Vec<&str> = match row[0].as_str() {
            "all TCP" => TRANSPORTS.iter().filter(|one| !one.is_quic()).map(|one| one.name).collect(),
            names => names.split(", ").collect(),
        };
        for transport in names {
            for (column, cell) in header.iter().zip(&row).skip(2).filter(|(column, _)| column.contains("MB")) {
                found.push(([transport.to_owned(), row[1].clone(), column.clone()], cell.clone()));
            }
        }
    }
    found
}

/// The committed line of a transport in the last table is that of new runs.
#[test]
fn the_committed_conduct_is_what_comes_out() {
    const CHECKED: &str = "hybla";
    let line = |document: &str| {
        let part = document.split("\n## How they behave\n").nth(1).expect("the table").to_owned();
        part.lines().find(|line| line.starts_with(&format!("| {CHECKED} |"))).expect("its line").to_owned()
    };
    let selection = Selection::parse(["meo", "2 MB", "plain", CHECKED]).expect("words of the board");
    let options = Options { selection, conduct: true, runs: 6, threads: 0 };
    let part = board(&options, &shipped, &|| false, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(line(&to_markdown(&part, "")), line(DOCUMENT));
}

/// `bentpipe scoreboard --conduct --markdown docs/SCOREBOARD.md` rewrites the document. `CHANGELOG.md` lists changed numbers with
/// their reasons.
#[test]
fn the_committed_board_is_what_comes_out() {
    for (heading, words) in [("10/2", ["10/2", "2 MB"]), ("meo", ["meo", "2 MB"])] {
        let selection = Selection::parse(words).expect("words of the board");
        let options = Options { selection, conduct: false, runs: 6, threads: 0 };
        let part = board(&options, &shipped, &|| false, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
        let committed = cells(DOCUMENT, heading);
        let ours = cells(&to_markdown(&part, ""), heading);
        assert!(ours.len() > 40, "{heading}: {}", ours.len());
        for (which, cell) in &ours {
            let theirs = committed.iter().find(|(known, _)| known == which).map(|(_, cell)| cell.as_str());
            assert_eq!(theirs, Some(cell.as_str()), "{heading}: {which:?}");
        }
    }
}
