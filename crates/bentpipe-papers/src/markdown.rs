//! All rows as one document: verdict counts per paper, then each id with its verdict and reason.

use std::fmt::Write;

use crate::chapter::{Chapter, chapters, number, tallies};
use crate::{Row, Verdict};

/// The introduction, up to the meanings of the verdicts.
const HEAD: &str = "# Published results and ours

Each item of the five papers (topologies N, mechanisms M, experiments E, tables T, figures F, claims C,
decisions Q) has a row with the published value, ours, the verdict, and the reason.

";

/// The text after the meanings of the verdicts.
const AFTER: &str = "
An item that refers to other rows (\"shown by\") has the worst of their verdicts. `studies/README.md` names the source of
the published values.

";

/// The rows as Markdown; `remake` is the command that reproduces them. Papers without rows are omitted.
pub fn to_markdown(rows: &[Row], remake: &str) -> String {
    let mut out = String::from(HEAD);
    for verdict in Verdict::ALL {
        let _ = writeln!(out, "- `{}`: {}.", verdict.name(), verdict.meaning());
    }
    out.push_str(AFTER);
    let _ = writeln!(out, "Made by: `{remake}`\n");
    let chapters = chapters(rows);
    out.push_str(&summary(&chapters));
    for chapter in &chapters {
        let paper = chapter.paper;
        let _ = writeln!(out, "\n## {}\n\n{}: {}.\n", paper.key, paper.authors, paper.title);
        if let Some(row) = chapter.lead() {
            let _ = writeln!(out, "{} ({}): {}.\n", row.id, row.verdict.name(), field(&row.why));
        }
        table(&mut out, chapter.items());
        let cells = chapter.cells().count();
        if cells > 0 {
            let _ = writeln!(out, "\n<details><summary>{cells} cells of its tables and figures</summary>\n");
            table(&mut out, chapter.cells());
            out.push_str("\n</details>\n");
        }
    }
    out
}

/// Two tables with a line per paper and a total: the verdicts of items, and those of cells of tables and figures.
fn summary(chapters: &[Chapter<'_>]) -> String {
    let mut out = String::new();
    for (what, is_cells) in [("items", false), ("cells of tables and figures", true)] {
        let _ = writeln!(out, "| paper | {what} | match | shape | differs | built | decision | missing |");
        out.push_str("|---|---:|---:|---:|---:|---:|---:|---:|\n");
        for (name, tally) in tallies(chapters, is_cells) {
            let counts = tally.counts().map(|count| count.to_string()).join(" | ");
            let _ = writeln!(out, "| {name} | {} | {counts} |", tally.total());
        }
        out.push('\n');
    }
    // The next heading begins with its own empty line.
    out.pop();
    out
}

fn table<'a>(out: &mut String, rows: impl Iterator<Item = &'a Row>) {
    out.push_str("| id | what | paper | ours | unit | ours/paper | verdict | why, or where it is shown |\n");
    out.push_str("|---|---|---:|---:|---|---:|---|---|\n");
    for row in rows {
        let [item, unit, why] = [&row.item, &row.unit, &row.why].map(|text| field(text));
        let [paper, ours, ratio] = [row.paper, row.ours, row.ratio].map(|value| value.map_or(String::new(), number));
        let verdict = row.verdict.name();
        let _ = writeln!(out, "| {} | {item} | {paper} | {ours} | {unit} | {ratio} | {verdict} | {why} |", row.id);
    }
}

/// Text for a cell: a single line, with `|` escaped.
fn field(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_heads_its_chapter() {
        let row = |id: &str, why: &str| Row::new(id, "what", None, Some(3.0), "of 4").judged(Verdict::Shape, why);
        let text = to_markdown(&[row("T-T03", "other"), row("T-M28/tables-3-to-14", "3 of 4 inside")], "make proof");
        let chapter = text.split("## transat").nth(1).expect("its chapter");
        let lead = chapter.find("T-M28/tables-3-to-14 (shape): 3 of 4 inside.").expect("the lead");
        assert!(lead < chapter.find("| id |").expect("the table"), "{chapter}");
        assert!(
            !to_markdown(&[row("T-T03", "other")], "make proof").contains("(shape)"),
            "without the row there is no lead"
        );
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
}
