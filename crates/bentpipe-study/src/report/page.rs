//! A report as HTML: a single file without scripts or network access, readable on paper.

use std::fmt::Write;

use crate::markup::escaped;

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid #8884}
.source,.note,figcaption{color:light-dark(#555,#aaa);font-size:.9rem}
.note{white-space:pre-line}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;margin:.5rem 0}
th,td{padding:.2rem .8rem .2rem 0;text-align:left;white-space:pre;border-bottom:1px solid #8883}
th{font-weight:600}.n{text-align:right}
figure{margin:1rem 0;break-inside:avoid}
svg{max-width:100%;height:auto;background:#fff}
pre{font:13px/1.4 ui-monospace,monospace;background:#8881;padding:.8rem;overflow-x:auto;white-space:pre-wrap}
@media print{body{margin:0;max-width:none;font-size:10pt}.wide{overflow-x:visible}table{font-size:.75rem;width:100%}
th,td{white-space:pre-wrap;padding-right:.5rem}h2{break-after:avoid}tr{break-inside:avoid}
figure.plot{display:inline-block;width:49%;margin:.3rem 0}pre{font-size:9px;overflow-x:visible}}";

/// A page being written.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    style: String,
    body: String,
}

impl Page {
    /// A page that begins with a title, a description, and their source.
    pub fn new(title: &str, description: &str, source: Option<&str>) -> Self {
        let (title, description) = (escaped(title), escaped(description));
        let body = format!("<h1>{title}</h1>\n<p>{description}</p>\n");
        let mut page = Page { title, style: STYLE.to_owned(), body };
        if let Some(source) = source {
            page.source(&format!("Source: {source}"));
        }
        page
    }

    /// Adds rules to the page's style sheet.
    pub fn style(&mut self, rules: &str) {
        self.style.push('\n');
        self.style.push_str(rules);
    }

    /// A heading of the second level.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(text));
    }

    /// Adds a small line that gives a source.
    pub fn source(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"source\">{}</p>", escaped(text));
    }

    /// Adds a remark; its line breaks are kept.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"note\">{}</p>", escaped(text));
    }

    /// Adds text as a terminal shows it.
    pub fn listing(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre>{}</pre>", escaped(text));
    }

    /// Adds collapsed text as a terminal shows it.
    pub fn details(&mut self, summary: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escaped(summary),
            escaped(text)
        );
    }

    /// Adds rows under a header. Columns from `numbers` on are right-aligned.
    pub fn table(&mut self, header: &[&str], numbers: usize, rows: &[Vec<String>]) {
        let class = |column: usize| if column >= numbers { " class=\"n\"" } else { "" };
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.enumerate().map(|(n, cell)| format!("<{tag}{}>{}</{tag}>", class(n), escaped(cell)));
            cells.collect::<String>()
        };
        let head = cells("th", &mut header.iter().copied());
        let rows = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str))));
        let rows: String = rows.collect();
        let _ = writeln!(
            self.body,
            "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
        );
    }

    /// Adds an SVG document.
    pub fn drawing(&mut self, svg: &str) {
        let _ = writeln!(self.body, "<figure class=\"wide\">{}</figure>", without_prologue(svg));
    }

    /// Adds an SVG document with a caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        let (svg, caption) = (without_prologue(svg), escaped(caption));
        let _ = writeln!(self.body, "<figure class=\"plot\"><figcaption>{caption}</figcaption>{svg}</figure>");
    }

    /// Adds markup of the caller, who has [`escaped`] all text in it.
    pub fn markup(&mut self, html: &str) {
        self.body.push_str(html);
        self.body.push('\n');
    }

    /// The document.
    pub fn finish(self) -> String {
        let Page { title, style, body } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} · bentpipe</title>\n\
             <style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
        )
    }
}

/// The SVG from its element on: in HTML, nothing may precede it.
fn without_prologue(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |at| &svg[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_scenario_becomes_markup() {
        let mut page = Page::new("<script>", "a & b", Some("\"q\""));
        page.table(&["x"], 1, &[vec!["<b>".into(), "1".into()]]);
        page.details("<i>", "</pre>");
        let html = page.finish();
        for bad in ["<script>", "<b>", "<i>", "a & b", "\"q\""] {
            assert!(!html.contains(bad), "{bad} in {html}");
        }
        assert!(html.contains("<td>&lt;b&gt;</td><td class=\"n\">1</td>"), "{html}");
    }
}
