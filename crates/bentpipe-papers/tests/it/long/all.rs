//! Tests over all papers: rows, figures, the book and the committed document.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use bentpipe_papers::book::{self, Made};
use bentpipe_papers::published::PAPERS;
use bentpipe_papers::reproduce::{Options, Progress, ReproduceError, acts, all, hybrid, minei, stp, transat};
use bentpipe_papers::{Row, Verdict, to_json};
use tempfile::TempDir;

/// A row without a comparison has no bounds. A claim is compared, and if it matches, our number is inside its bounds.
fn verdict_follows_from_numbers(id: &str, row: &serde_json::Value) {
    let [ours, low, high] = ["ours", "low", "high"].map(|key| row[key].as_f64());
    let verdict = Verdict::ALL.into_iter().find(|verdict| row["verdict"] == verdict.name()).expect("one of six");
    let bounded = low.is_some() || high.is_some();
    assert!(verdict.is_compared() || !bounded, "{id}: bounds without a comparison: {row}");
    if id[1..].starts_with("-C") {
        let inside = |ours: f64| low.is_none_or(|low| low <= ours) && high.is_none_or(|high| ours <= high);
        assert!(bounded && verdict.is_compared(), "{id}: {row}");
        assert!(verdict != Verdict::Match || ours.is_some_and(inside), "{id}: {row}");
    }
    let kind = id.as_bytes()[2];
    assert!((kind == b'Q') == (verdict == Verdict::Decision), "{id}: {row}");
}

type Study = fn(&Options, Progress<'_>) -> Result<Vec<Row>, ReproduceError>;

/// The min number of replications, and a tenth of the time. These tests check that rows exist, not their numbers.
fn few() -> Options {
    Options { reps: 2, shortened: NonZeroU32::new(10).expect("not zero"), ..Options::default() }
}

/// The rows of all papers, reproduced once, and the folder with their figures.
pub(super) static REPRODUCED: LazyLock<(Vec<Row>, TempDir)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { out_dir: Some(folder.path().into()), ..few() };
    (all(&options, &|_, _, _| ()).expect("nothing asks to stop"), folder)
});

#[test]
fn every_id_of_the_five_papers_has_one_row() {
    let rows = &REPRODUCED.0;
    let json: serde_json::Value = serde_json::from_str(&to_json(rows)).expect("JSON");
    let mut found = BTreeMap::<_, usize>::new();
    for row in json.as_array().expect("rows") {
        let id = row["id"].as_str().expect("a text");
        verdict_follows_from_numbers(id, row);
        // An id with a slash is a part of an item.
        if !id.contains('/') {
            *found.entry(id.to_owned()).or_default() += 1;
        }
        let why = row["why"].as_str().expect("a text");
        assert!(!why.is_empty(), "{id}: each verdict has its reason");
        let known = |shown: &str| rows.iter().any(|row| row.id == shown);
        if let Some(shown) = why.strip_prefix("shown by ").filter(|shown| !shown.starts_with("the rows ")) {
            // An id may have a comma.
            assert!(
                known(shown) || shown.split(", ").all(known),
                "{id} is shown by {shown}, of which not all are rows"
            );
        }
    }
    let expected: BTreeMap<_, _> = PAPERS.iter().flat_map(|paper| paper.contents()).map(|(id, _)| (id, 1)).collect();
    assert_eq!(expected.len(), PAPERS.iter().map(|paper| paper.counts.total()).sum::<usize>());
    assert_eq!(found, expected);
}

#[test]
fn a_table_or_figure_is_that_alone() {
    let studies: [(&str, Study); 5] = [("T", transat), ("M", minei), ("A", acts), ("H", hybrid), ("S", stp)];
    for (letter, study) in studies {
        let rows = study(&Options { figure: Some(1), ..few() }, &|_, _, _| ()).expect("each has a figure 1");
        let start = format!("{letter}-F01");
        assert!(!rows.is_empty() && rows.iter().all(|row| row.id.starts_with(&start)), "{rows:#?}");
    }
}

#[test]
fn each_figure_is_drawn() {
    let folder = REPRODUCED.1.path();
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for paper in PAPERS {
        assert!(paper.counts.figure > 0, "{}", paper.key);
        for number in 1..=paper.counts.figure {
            let id = format!("{}-F{number:02}", paper.letter);
            let (svg, csv) = (read(&format!("{id}.svg")), read(&format!("{id}.csv")));
            // The drawing has a title and further text, and the table more than a heading.
            assert!(svg.contains(&id) && svg.trim_end().ends_with("</svg>"), "{id}.svg");
            assert!(svg.matches("<text").count() > 5 && csv.lines().count() > 2, "{id}: it is empty");
        }
    }
}

#[test]
fn the_book_has_every_row_and_figure() {
    let (rows, folder) = &*REPRODUCED;
    let made = Made { by: "bentpipe reproduce all", options: "" };
    let html = book::to_html(rows, folder.path(), made).expect("every figure is drawn");
    for row in rows {
        let (id, verdict) = (&row.id, row.verdict.name());
        // A line or a heading, or a cell of a table.
        let forms = [format!("id=\"{id}\" data-verdict=\"{verdict}\""), format!("title=\"{id}: {verdict}")];
        assert!(forms.iter().any(|form| html.contains(form)), "{id} ({verdict}) is not in the book");
    }
    let figures: usize = PAPERS.iter().map(|paper| paper.counts.figure).sum();
    assert!(html.matches("<svg").count() >= figures);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    // It loads nothing from the network.
    assert!(!html.contains(" src=") && !html.contains("<link") && !html.contains("<script") && !html.contains("url("));
    let empty = tempfile::tempdir().expect("a folder");
    let error = book::to_html(rows, empty.path(), made).expect_err("no figure is there").to_string();
    assert!(error.starts_with("figure T-F01: "), "{error}");
}

#[test]
fn what_is_not_there_is_an_error() {
    let ask = |study: Study, options: Options| study(&options, &|_, _, _| ()).expect_err("there is none").to_string();
    let table = |number| Options { table: Some(number), ..few() };
    let figure = |number| Options { figure: Some(number), ..few() };
    assert_eq!(ask(acts, table(7)), "the paper has no table 7; it has 1 to 6");
    assert_eq!(ask(minei, table(1)), "the paper `minei` has no numbered tables");
    assert_eq!(ask(stp, figure(4)), "the paper has no figure 4; it has 1 to 3");
    assert_eq!(ask(all, table(1)), "each paper has its own tables: name a paper, or leave the table out");
}

#[test]
fn a_stop_keeps_what_is_done() {
    let cut = all(&Options { stop: || true, ..few() }, &|_, _, _| ());
    assert!(matches!(cut, Err(ReproduceError::Cut { .. })), "{cut:?}");
}

#[test]
fn the_committed_document_has_every_id_once() {
    let document = include_str!("../../../../../docs/REPRODUCTION.md");
    let mut listed = BTreeMap::<_, usize>::new();
    for line in document.lines() {
        let Some((id, rest)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | ")) else { continue };
        if id.chars().nth(1) == Some('-') && !id.contains('/') {
            *listed.entry(id.to_owned()).or_default() += 1;
            let cells: Vec<_> = rest.trim_end_matches(" |").split(" | ").collect();
            assert!(Verdict::ALL.iter().any(|verdict| verdict.name() == cells[cells.len() - 2]), "{line}");
        }
    }
    let expected: BTreeMap<_, _> = PAPERS.iter().flat_map(|paper| paper.contents()).map(|(id, _)| (id, 1)).collect();
    assert_eq!(listed, expected, "`make proof` rewrites it");
}
