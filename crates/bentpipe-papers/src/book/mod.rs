//! The papers' book: one HTML file with every item of the papers, our number beside the printed one.
//!
//! It consists of the rows and drawings of [`reproduce`](crate::reproduce) and computes nothing itself. `matrix` renders a paper's
//! table, `prose` the text of a study, `words` verdicts and numbers.

mod matrix;
mod prose;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use bentpipe_study::markup::escaped;
use bentpipe_study::report::Page;

use crate::chapter::{Chapter, chapters, tallies};
use crate::{Row, Verdict};
use words::{chip, number_or_dash, range};

/// Letter and heading of each kind of item, in the order of a chapter.
const KINDS: [(char, &str); 7] = [
    ('T', "Tables"),
    ('F', "Figures"),
    ('C', "Claims"),
    ('E', "Experiments"),
    ('M', "Mechanisms"),
    ('N', "Topologies"),
    ('Q', "Decisions"),
];

const TITLE: &str = "Five papers on TCP over satellites, reproduced";
const OPENING: &str = "Every table, figure and claim of the papers, with bentpipe's own number beside the printed one, the verdict, \
                       its reason, and the command that reproduces it. No number is set to a paper's result: the published \
                       numbers are in expectation files, which no code that computes a result can read.";

/// Colours as in the figures. Colour-blind readers can tell them apart, on light and on dark backgrounds.
const STYLE: &str = "\
body{max-width:66rem}
h2.chapter{font-size:1.4rem;margin-top:4rem}h3{margin:2.5rem 0 .5rem;font-size:1.15rem}h4{margin:1.8rem 0 .3rem;font-size:1rem}
.match{color:light-dark(#0060a0,#6cb8ee)}.shape{color:light-dark(#7a5c00,#e6b800)}.differs{color:light-dark(#b84a00,#ff9a57)}
.built,.decision{color:light-dark(#555,#aaa)}.missing{color:light-dark(#a0307a,#e79ac9)}
.chip{border:1px solid;border-radius:1em;padding:0 .5em;font-size:.8rem;font-weight:600;white-space:nowrap}
.sign{font-weight:700}
.why{font-size:.9rem;margin:.3rem 0}
td small,th small,li small{color:light-dark(#555,#aaa);font-weight:400}
.matrix td,.matrix th{line-height:1.25;padding:.25rem .9rem .25rem 0}
.list{width:100%}.list p{margin:.1rem 0}.source code{white-space:nowrap}.list td{white-space:normal;vertical-align:top;overflow-wrap:anywhere}.list td.n,.list td:first-child{white-space:nowrap}
.list .part td:first-child{padding-left:1rem;white-space:normal;font-size:.8rem}
.prose td{white-space:normal}
nav ul{columns:2;padding-left:1.2rem}
li{margin:.2rem 0}
summary{cursor:pointer;font-size:.9rem}
@page{margin:14mm}
@media print{:root{color-scheme:light}body{font-size:10pt}h2.chapter{break-before:page;margin-top:0}h3,h4{break-after:avoid}
tr{break-inside:avoid}.wide{overflow:visible}.matrix{font-size:8pt}.matrix td,.matrix th{padding-right:.5rem}
details::details-content{content-visibility:visible;height:auto;opacity:1}a{color:inherit;text-decoration:none}}";

/// How the rows were made, and how to reproduce them.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// Version, seed and command.
    pub by: &'a str,
    /// Options of every command after the paper and its part: ` --reps 20`, or empty.
    pub options: &'a str,
}

/// Why the book could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The drawing of a figure does not exist or cannot be read.
    #[error("figure {id}: {}: {source}", path.display())]
    Figure {
        /// The figure.
        id: String,
        /// The path of its drawing.
        path: PathBuf,
        /// Why it could not be read.
        source: io::Error,
    },
}

/// Returns the rows as HTML. `figures` is the folder with their drawings. Papers without rows are left out.
///
/// # Errors
/// Fails if the drawing of a figure cannot be read from `figures`.
pub fn to_html(rows: &[Row], figures: &Path, made: Made<'_>) -> Result<String, BookError> {
    let chapters = chapters(rows);
    let mut page = Page::new(TITLE, OPENING, None);
    page.style(STYLE);
    page.source(&format!("Made by {}", made.by));
    contents(&mut page, &chapters);
    legend(&mut page);
    for chapter in &chapters {
        Writer { page: &mut page, chapter, figures, made }.chapter()?;
    }
    Ok(page.finish())
}

/// Verdicts per paper, each with a link to its chapter.
fn contents(page: &mut Page, chapters: &[Chapter<'_>]) {
    for (what, of_cells) in [("Items of the papers", false), ("Numbers in their tables, one by one", true)] {
        let tallies = tallies(chapters, of_cells);
        // Only the sum: no paper has such rows.
        if tallies.len() == 1 {
            continue;
        }
        let head: String =
            Verdict::ALL.iter().map(|verdict| format!("<th class=\"n\">{}</th>", chip(*verdict))).collect();
        let mut out = format!(
            "<h2>{what}</h2><div class=\"wide\"><table><thead><tr><th>paper</th><th class=\"n\">all</th>{head}</tr></thead><tbody>\n"
        );
        for (name, tally) in tallies {
            let name = if name == "all" { name.to_owned() } else { format!("<a href=\"#{name}\">{name}</a>") };
            let counts = tally.counts().map(|count| format!("<td class=\"n\">{count}</td>")).concat();
            let _ = writeln!(out, "<tr><td>{name}</td><td class=\"n\">{}</td>{counts}</tr>", tally.total());
        }
        page.markup(&(out + "</tbody></table></div>"));
    }
}

fn legend(page: &mut Page) {
    let lines = Verdict::ALL.map(|verdict| format!("<li>{}: {}</li>", chip(verdict), escaped(verdict.meaning())));
    page.markup(&format!(
        "<h2>How to read it</h2><ul>{}</ul><p>An id names the paper, the kind and the number: T-F02 is figure 2 of transat, S-C01 the \
         first claim of stp. An item that refers to others (shown by) has the worst of their verdicts. A statistic of many runs is \
         compared with its 90 % range, which one in ten statistics of a true replication would miss.</p>",
        lines.concat()
    ));
}

struct Writer<'a> {
    page: &'a mut Page,
    chapter: &'a Chapter<'a>,
    figures: &'a Path,
    made: Made<'a>,
}

impl Writer<'_> {
    fn chapter(&mut self) -> Result<(), BookError> {
        let paper = self.chapter.paper;
        self.page.markup(&format!("<h2 class=\"chapter\" id=\"{0}\">{0}: {1}</h2>", paper.key, escaped(&paper.title)));
        self.links();
        if let Some(lead) = self.chapter.lead() {
            self.page.markup(&format!("<p>{} {}</p>", chip(lead.verdict), escaped(&lead.why)));
        }
        // The paper's question comes before its items; assumptions and variations come after them.
        let (asks, varied) = paper.study().split_once("\n## ").unwrap_or((paper.study(), ""));
        self.prose(asks);
        for (letter, title) in KINDS {
            let items: Vec<_> = self.chapter.items().filter(|row| kind(row) == Some(letter)).collect();
            if items.is_empty() {
                continue;
            }
            self.page.markup(&format!("<h3 id=\"{}-{letter}\">{}: {title}</h3>", paper.key, paper.key));
            match letter {
                'T' => items.iter().for_each(|row| self.table(row)),
                'F' => items.iter().try_for_each(|row| self.figure(row))?,
                _ => self.list(&items)?,
            }
        }
        if !varied.is_empty() {
            self.page.markup(&format!("<h3>{}: what was assumed and varied</h3>", paper.key));
            self.prose(&format!("## {varied}"));
        }
        Ok(())
    }

    fn prose(&mut self, markdown: &str) {
        self.page.markup(&format!("<div class=\"prose\">{}</div>", prose::to_html(markdown)));
    }

    /// Links to the parts of the chapter.
    fn links(&mut self) {
        let kinds: BTreeSet<_> = self.chapter.items().filter_map(kind).collect();
        let links = KINDS.iter().filter(|(letter, _)| kinds.contains(letter));
        let links: Vec<_> = links
            .map(|(letter, title)| format!("<a href=\"#{}-{letter}\">{title}</a>", self.chapter.paper.key))
            .collect();
        self.page.markup(&format!("<p>{}</p>", links.join(" · ")));
    }

    fn heading(&mut self, row: &Row) {
        let verdict = row.verdict.name();
        self.page.markup(&format!(
            "<h4 id=\"{0}\" data-verdict=\"{verdict}\">{0} {1} {2}</h4>",
            row.id,
            escaped(&row.item),
            chip(row.verdict)
        ));
    }

    /// The command that reproduces a part of the paper.
    fn remade(&self, part: &str) -> String {
        format!(
            "Reproduce: <code>bentpipe reproduce {}{part}{}</code>",
            self.chapter.paper.key,
            escaped(self.made.options)
        )
    }

    fn cells_of(&self, id: &str) -> Vec<&Row> {
        self.chapter.cells().filter(|row| row.id.split_once('/').is_some_and(|(stem, _)| stem == id)).collect()
    }

    fn table(&mut self, row: &Row) {
        let paper = self.chapter.paper;
        self.heading(row);
        let number = number_of(row);
        let published = number.and_then(|number| paper.table(number));
        let cells = self.cells_of(&row.id);
        let numbers = numbers(row);
        let matrix = if cells.is_empty() { String::new() } else { matrix::to_html(&cells, published) };
        let reasons = matrix::reasons(&cells);
        let again = number.map_or(String::new(), |number| self.remade(&format!(" --table {number}")));
        self.page.markup(&format!(
            "<p class=\"why\">{numbers}{}</p>\n{matrix}\n{reasons}\n<p class=\"source\">Expected: the paper's table, in \
             studies/{}/expected.toml. {again}</p>",
            escaped(&row.why),
            paper.key
        ));
    }

    fn figure(&mut self, row: &Row) -> Result<(), BookError> {
        self.heading(row);
        let paper = self.chapter.paper;
        let path = self.drawing(&row.id);
        let svg =
            std::fs::read_to_string(&path).map_err(|source| BookError::Figure { id: row.id.clone(), path, source })?;
        self.page.drawing(&svg);
        let points = paper.figure(&row.id).map_or(0, |figure| figure.points.len());
        let expected = format!("studies/{}/expected.toml", paper.key);
        let source = match points {
            0 if row.verdict.is_compared() => {
                format!("Expected: the statements and numbers that the reason names, in {expected}")
            }
            0 => "A drawing of the simulated scenario".to_owned(),
            points => format!("Expected: {points} points that the paper prints, in {expected}"),
        };
        let again =
            number_of(row).map_or(String::new(), |number| self.remade(&format!(" --figure {number} --out figures")));
        self.page.markup(&format!(
            "<p class=\"why\">{}{}</p>\n<p class=\"source\">{source}. {again}</p>",
            numbers(row),
            escaped(&row.why)
        ));
        Ok(())
    }

    fn drawing(&self, id: &str) -> PathBuf {
        self.figures.join(format!("{id}.svg"))
    }

    /// A table of items, each followed by its parts, and then the drawings of those items that have one.
    fn list(&mut self, items: &[&Row]) -> Result<(), BookError> {
        let mut out = String::from(
            "<table class=\"list\"><thead><tr><th>id</th><th>what, and the reason for the verdict</th><th class=\"n\">paper</th>\
             <th class=\"n\">ours</th><th>unit</th></tr></thead><tbody>\n",
        );
        let mut drawn = Vec::new();
        for row in items {
            out.push_str(&self.line(row, "item"));
            for cell in self.cells_of(&row.id) {
                out.push_str(&self.line(cell, "part"));
            }
            let path = self.drawing(&row.id);
            match std::fs::read_to_string(&path) {
                Ok(svg) => drawn.push((&row.id, svg)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (),
                Err(source) => return Err(BookError::Figure { id: row.id.clone(), path, source }),
            }
        }
        let again = self.remade("");
        self.page.markup(&format!("{out}</tbody></table>\n<p class=\"source\">{again}</p>"));
        for (id, svg) in drawn {
            self.page.figure(&svg, id);
        }
        Ok(())
    }

    fn line(&self, row: &Row, class: &str) -> String {
        let source = match self.chapter.paper.claim(&row.id) {
            Some(claim) => {
                let printed = [claim.metric.as_str(), &claim.conditions, &claim.printed].into_iter();
                let printed: Vec<_> = printed.filter(|words| !words.is_empty()).collect();
                format!("<p class=\"source\">Paper ({}): {}</p>", escaped(&claim.source), escaped(&printed.join("; ")))
            }
            None => String::new(),
        };
        let bounds = range(row).map_or(String::new(), |range| format!("<br><small>{range}</small>"));
        format!(
            "<tr class=\"{class}\" id=\"{0}\" data-verdict=\"{1}\"><td>{0}<br>{2}</td><td>{3}{source}<p class=\"why\">{4}</p></td>\
             <td class=\"n\">{5}</td><td class=\"n\">{6}{bounds}</td><td>{7}</td></tr>\n",
            escaped(&row.id),
            row.verdict.name(),
            chip(row.verdict),
            escaped(&row.item),
            escaped(&row.why),
            number_or_dash(row.paper),
            number_or_dash(row.ours),
            escaped(&row.unit),
        )
    }
}

/// `Printed 63 segments, ours 63.` for an item with a number of its own; empty without one.
fn numbers(row: &Row) -> String {
    let unit = escaped(&row.unit);
    match (row.paper, row.ours) {
        (None, None) => String::new(),
        (None, ours) => format!("<b>Ours {} {unit}.</b> ", number_or_dash(ours)),
        (paper, None) => format!("<b>Printed {} {unit}.</b> ", number_or_dash(paper)),
        (paper, ours) => format!("<b>Printed {} {unit}, ours {}.</b> ", number_or_dash(paper), number_or_dash(ours)),
    }
}

/// The letter of an item's kind: `F` of `T-F02`.
fn kind(row: &Row) -> Option<char> {
    row.id.chars().nth(2)
}

/// The number of a table or a figure: 2 of `T-F02`.
fn number_of(row: &Row) -> Option<u8> {
    row.id.get(3..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Made<'_> = Made { by: "bentpipe 0, seed 1: bentpipe reproduce stp", options: " --reps 3" };

    fn row(id: &str, verdict: Verdict) -> Row {
        Row::new(id, "what <it> is", Some(2.0), Some(3.0), "s").within(Some(1.0), None).judged(verdict, "so & so")
    }

    #[test]
    fn a_table_has_ours_beside_the_printed_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = [row("S-T01", Verdict::Match), row("S-T01/TCP/0", Verdict::Differs), row("S-C02", Verdict::Shape)];
        let html = to_html(&rows, folder.path(), MADE).expect("no figure is among them");
        for part in [
            "id=\"S-T01\" data-verdict=\"match\"",
            "title=\"S-T01/TCP/0: differs, at least 1; so &amp; so\"><small>2</small><br>3 <span class=\"sign differs\">✗",
            "TCP/0 2, ours 3 (at least 1): so &amp; so",
            "id=\"S-C02\" data-verdict=\"shape\"",
            "bentpipe reproduce stp --table 1 --reps 3",
            "The paper compares ESA",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert!(!html.contains("<it>") && !html.contains("id=\"acts\""), "{html}");
    }

    #[test]
    fn a_figure_that_was_not_drawn_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = [row("S-F03", Verdict::Match)];
        let error = to_html(&rows, folder.path(), MADE).expect_err("there is no drawing").to_string();
        assert!(error.starts_with("figure S-F03: ") && error.contains("S-F03.svg"), "{error}");
        std::fs::write(folder.path().join("S-F03.svg"), "<svg>drawn</svg>").expect("writable");
        let html = to_html(&rows, folder.path(), MADE).expect("now there is");
        assert!(html.contains("<svg>drawn</svg>") && html.contains("--figure 3"), "{html}");
    }
}
