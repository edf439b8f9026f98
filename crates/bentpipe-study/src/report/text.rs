//! Rows as a table for people and as JSON for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

use super::{Row, Tally};

/// The rows as tables, one for each part of the paper (the ids up to the first `/`; claims and figures together), and
/// a line with the verdict counts. `width`: columns of the terminal; `None` does not wrap.
pub fn render_text(rows: &[Row], width: Option<u16>) -> String {
    let mut out = String::new();
    for group in rows.chunk_by(|a, b| part(&a.id) == part(&b.id)) {
        let title = common_title(group);
        if !title.is_empty() {
            out.push_str(&format!("{}: {title}\n", part(&group[0].id)));
        }
        out.push_str(&table(group, title.len(), width));
        out.push_str("\n\n");
    }
    out.push_str(&format!("{}\n", Tally::of(rows)));
    out
}

/// One part; the first `title` bytes of each item are in the heading.
fn table(group: &[Row], title: usize, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
    if let Some(width) = width {
        table.set_width(width);
    }
    table.set_header(["id", "paper", "ours", "unit", "ratio", "range", "verdict", "item", "why"]);
    for row in group {
        let range = match (row.low, row.high) {
            (None, None) => String::new(),
            (low, high) => format!("{}..{}", number(low), number(high)),
        };
        table.add_row([
            row.id.clone(),
            number(row.paper),
            number(row.ours),
            row.unit.clone(),
            row.ratio.map_or(String::new(), |r| format!("{r:.3}")),
            range,
            row.verdict.name().into(),
            row.item[title..].trim_start_matches("; ").to_owned(),
            row.why.clone(),
        ]);
    }
    for index in [1, 2, 4] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The common prefix of all items of a part, up to a semicolon.
fn common_title(group: &[Row]) -> &str {
    let first = group.first().map_or("", |row| row.item.as_str());
    let title = first.split_once("; ").map_or("", |(title, _)| title);
    let shared =
        group.len() > 1 && group.iter().all(|row| row.item.strip_prefix(title).is_some_and(|r| r.starts_with("; ")));
    if shared { title } else { "" }
}

/// The rows as a JSON array, indented.
pub fn to_json(rows: &[Row]) -> String {
    serde_json::to_string_pretty(rows).expect("rows hold only text and numbers")
}

fn part(id: &str) -> &str {
    let stem = id.split('/').next().unwrap_or(id);
    // Table numbers are part of the stem; the number of a claim or figure is not.
    if stem.contains("-T") && stem.len() > 2 && stem.as_bytes()[2] == b'T' {
        stem
    } else {
        stem.get(..3).unwrap_or(stem)
    }
}

/// Four significant digits, without an exponent for usual magnitudes.
fn number(x: Option<f64>) -> String {
    let Some(x) = x else { return String::new() };
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let magnitude = x.abs().log10().floor() as i32;
    if !(-4..7).contains(&magnitude) {
        return format!("{x:.3e}");
    }
    let decimals = (3 - magnitude).clamp(0, 6) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn numbers_for_people() {
        let shown: Vec<_> = [60.812, 0.8, 14.0, 12345.6, 0.004321, -1.65, 3e-7].map(|x| number(Some(x))).to_vec();
        assert_eq!(shown, ["60.81", "0.8", "14", "12346", "0.004321", "-1.65", "3.000e-7"]);
        assert_eq!(number(None), "");
    }

    #[test]
    fn parts_are_kept_apart_and_counted() {
        let row = |id: &str, verdict| Row::new(id, "", Some(1.0), Some(2.0), "s").judged(verdict, "because");
        let rows = [
            row("T-T01/50-on/Ref", Verdict::Match),
            row("T-T01/50-on/Enh", Verdict::Differs),
            row("T-T02/fastest-on/Ref", Verdict::Match),
            row("T-C01", Verdict::Shape),
            row("T-C02", Verdict::Match),
        ];
        let text = render_text(&rows, Some(120));
        assert_eq!(text.matches("verdict").count(), 3, "{text}");
        assert!(!text.contains("T-T02: "), "one row shares nothing: {text}");
        assert!(text.contains("\n5 rows: 5 compared (3 match, 1 shape, 1 differs), 0 built,"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");
    }

    #[test]
    fn what_all_items_share_is_said_once() {
        let row = |id: &str, item: &str| Row::new(id, item, Some(1.0), None, "s");
        let rows = [row("T-T01/a", "one flow; first"), row("T-T01/b", "one flow; second")];
        let text = render_text(&rows, None);
        assert!(text.starts_with("T-T01: one flow\n"), "{text}");
        assert_eq!(text.matches("one flow").count(), 1, "{text}");
    }

    #[test]
    fn json_comes_back() {
        let rows = vec![Row::new("T-C01", "order", None, Some(0.1), "%").judged(Verdict::Match, "")];
        let back: Vec<Row> = serde_json::from_str(&to_json(&rows)).expect("our own JSON");
        assert_eq!(back, rows);
    }
}
