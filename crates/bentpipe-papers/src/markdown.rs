//! All rows as one document: verdict counts per paper, then each id with its verdict and reason.

use std::fmt::Write;

use crate::published::{PAPERS, Paper};
use crate::{Row, Tally};

/// The legend: kinds of rows and verdicts.
const HEAD: &str = "# Published results and ours

Each item of the five papers (topologies N, mechanisms M, experiments E, tables T, figures F, claims C,
decisions Q) has a row with the published value, ours, the verdict, and the reason.

- `match`, `shape`, `differs`: a number or an ordering of ours was compared with the paper's in this run. `match`: within bounds
  that the reason derives. `shape`: out of bounds, but the ordering or the approximate size is right. `differs`: neither; the
  reason gives the cause, or says that it is not explained.
- `built`: a mechanism, a topology or a drawing; nothing is compared. The reason names the test or the scenario that uses it,
  and a test checks that these exist.
- `decision`: our choice where the paper is silent or contradicts itself.
- `missing`: absent or incomplete.

An item that refers to other rows (\"shown by\") has the worst of their verdicts. `studies/README.md` names the source of
the published values.

";

/// The rows as Markdown; `remake` is the command that reproduces them. Papers without rows are omitted.
pub fn to_markdown(rows: &[Row], remake: &str) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "Made by: `{remake}`\n");
    let papers: Vec<_> = PAPERS.iter().map(|paper| (&***paper, of(paper, rows))).collect();
    out.push_str(&summary(&papers));
    for (paper, rows) in papers.iter().filter(|(_, rows)| !rows.is_empty()) {
        let (cells, things): (Vec<_>, Vec<_>) = rows.iter().partition(|row| is_cell(row));
        let _ = writeln!(out, "\n## {}\n\n{}: {}.\n", paper.key, paper.authors, paper.title);
        if let Some(row) = rows.iter().find(|row| Some(&row.id) == paper.lead.as_ref()) {
            let _ = writeln!(out, "{} ({}): {}.\n", row.id, row.verdict.name(), field(&row.why));
        }
        table(&mut out, &things);
        if !cells.is_empty() {
            let _ = writeln!(out, "\n<details><summary>{} cells of its tables and figures</summary>\n", cells.len());
            table(&mut out, &cells);
            out.push_str("\n</details>\n");
        }
    }
    out
}

fn of<'a>(paper: &Paper, rows: &'a [Row]) -> Vec<&'a Row> {
    let start = format!("{}-", paper.letter);
    rows.iter().filter(|row| row.id.starts_with(&start)).collect()
}

/// True if a row is a part of an id.
fn is_cell(row: &Row) -> bool {
    row.id.contains('/')
}

/// A line per paper and a total: verdicts of its items, and of the cells of its tables and figures.
fn summary(papers: &[(&Paper, Vec<&Row>)]) -> String {
    let mut out = String::new();
    for (what, cells) in [("items", false), ("cells of tables and figures", true)] {
        let _ = writeln!(out, "| paper | {what} | match | shape | differs | built | decision | missing |");
        out.push_str("|---|---:|---:|---:|---:|---:|---:|---:|\n");
        let chosen = |rows: &[&Row]| Tally::of(rows.iter().copied().filter(|row| is_cell(row) == cells));
        let line = |out: &mut String, name: &str, tally: Tally| {
            let counts = tally.counts().map(|count| count.to_string()).join(" | ");
            let _ = writeln!(out, "| {name} | {} | {counts} |", tally.total());
        };
        for (paper, rows) in papers {
            let tally = chosen(rows);
            if tally.total() > 0 {
                line(&mut out, &paper.key, tally);
            }
        }
        let all: Vec<_> = papers.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
        line(&mut out, "all", chosen(&all));
        out.push('\n');
    }
    // The next text starts on a new line.
    out.pop();
    out
}

fn table(out: &mut String, rows: &[&Row]) {
    out.push_str("| id | what | paper | ours | unit | ours/paper | verdict | why, or where it is shown |\n");
    out.push_str("|---|---|---:|---:|---|---:|---|---|\n");
    for row in rows {
        let [item, unit, why] = [&row.item, &row.unit, &row.why].map(|text| field(text));
        let [paper, ours, ratio] = [row.paper, row.ours, row.ratio].map(|value| value.map_or(String::new(), number));
        let verdict = row.verdict.name();
        let _ = writeln!(out, "| {} | {item} | {paper} | {ours} | {unit} | {ratio} | {verdict} | {why} |", row.id);
    }
}

/// Text for a cell: one line, with bars escaped.
fn field(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// At most five significant digits, trailing zeros removed.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    if digits > 9 {
        return format!("{value:.4e}");
    }
    let shown = format!("{value:.*}", digits.max(0) as usize);
    if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.').to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn the_lead_heads_its_chapter() {
        let row = |id: &str, why: &str| Row::new(id, "what", None, Some(3.0), "of 4").judged(Verdict::Shape, why);
        let text = to_markdown(&[row("T-T03", "other"), row("T-M28/tables-3-to-14", "3 of 4 inside")], "make proof");
        let chapter = text.split("## transat").nth(1).expect("its chapter");
        let lead = chapter.find("T-M28/tables-3-to-14 (shape): 3 of 4 inside.").expect("the lead");
        assert!(lead < chapter.find("| id |").expect("the table"), "{chapter}");
        assert!(!to_markdown(&[row("T-T03", "other")], "make proof").contains("(shape)"), "no lead without its row");
    }

    #[test]
    fn things_and_cells_are_counted_apart() {
        let row = |id: &str, verdict| Row::new(id, "a | b\nc", Some(2.0), Some(3.0), "s").judged(verdict, "so");
        let rows = [
            row("S-T01", Verdict::Match),
            row("S-T01/TCP/0", Verdict::Differs),
            row("S-C02", Verdict::Shape),
            row("S-N01", Verdict::Built),
        ];
        let text = to_markdown(&rows, "bentpipe reproduce stp");
        assert!(text.contains("| paper | items |"), "{text}");
        let first = &text[text.find("| paper |").expect("a table")..];
        let line = "| stp | 3 | 1 | 1 | 0 | 1 | 0 | 0 |\n| all | 3 |";
        assert!(first.lines().skip(2).take(2).collect::<Vec<_>>().join("\n").starts_with(line), "{text}");
        assert!(text.contains("| stp | 1 | 0 | 0 | 1 | 0 | 0 | 0 |"), "{text}");
        assert!(text.contains("| S-T01 | a \\| b c | 2 | 3 | s | 1.5 | match | so |"), "{text}");
        assert!(!text.contains("## acts"), "a paper without rows is left out");
    }

    #[test]
    fn numbers_keep_five_digits() {
        let shown = [847034.34, 663.47, 1.0, 0.0081, 2.63e-5, -0.0, 119.0, 3.0e-12].map(number);
        assert_eq!(shown, ["847034", "663.47", "1", "0.0081", "0.0000263", "0", "119", "3.0000e-12"]);
    }
}
