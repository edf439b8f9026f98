//! Rows as a table for people and as JSON for programs.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, presets};

use super::{Row, Tally};

/// Columns of the numbers, before those of words.
const NUMBERS: usize = 7;

/// Min width of a column of words beside the numbers.
const WORDS: usize = 30;

/// The rows as tables, one for each part of the paper (the ids up to the first `/`; claims and figures together), and a
/// line with the verdict counts. `width` is the number of columns of the terminal; `None` does not wrap. If words do
/// not fit beside the numbers, they are put beneath them.
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

/// Names of flows in a line; of five or more, the first two and the last, and how many.
pub fn listed(names: &[&str]) -> String {
    match names {
        [first, second, _, _, .., last] => format!("{first}, {second}, .. {last} ({} flows)", names.len()),
        _ => names.join(", "),
    }
}

/// The table of one part. The first `title` bytes of each item are in the heading.
fn table(group: &[Row], title: usize, width: Option<u16>) -> String {
    const HEADER: [&str; NUMBERS + 2] = ["id", "paper", "ours", "unit", "ratio", "range", "verdict", "item", "why"];
    let cells: Vec<_> = group.iter().map(|row| cells(row, title)).collect();
    let numbers = || cells.iter().map(|cells| cells[..NUMBERS].to_vec());
    let widest =
        arranged(&HEADER[..NUMBERS], numbers(), None).lines().map(|line| line.chars().count()).max().unwrap_or(0);
    if width.is_none_or(|width| widest + 2 * WORDS <= usize::from(width)) {
        return arranged(&HEADER, cells.into_iter().map(Vec::from), width);
    }
    let words = cells.iter().map(|[id, .., item, why]| {
        let texts: Vec<_> = [item, why].into_iter().filter(|text| !text.is_empty()).map(String::as_str).collect();
        vec![id.clone(), texts.join(": ")]
    });
    let words = arranged(&["id", "item: why"], words, width);
    format!("{}\n\n{words}", arranged(&HEADER[..NUMBERS], numbers(), width))
}

/// The cells of a row, words last.
fn cells(row: &Row, title: usize) -> [String; NUMBERS + 2] {
    let range = match (row.low, row.high) {
        (None, None) => String::new(),
        (low, high) => format!("{}..{}", number(low), number(high)),
    };
    [
        row.id.clone(),
        number(row.paper),
        number(row.ours),
        row.unit.clone(),
        row.ratio.map_or(String::new(), |r| format!("{r:.3}")),
        range,
        row.verdict.name().into(),
        row.item[title..].trim_start_matches("; ").to_owned(),
        row.why.clone(),
    ]
}

fn arranged(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
    if let Some(width) = width {
        table.set_width(width);
    }
    table.set_header(header);
    table.add_rows(rows);
    // People search for ids, so they are not wrapped.
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    for name in ["paper", "ours", "ratio"] {
        let column = header.iter().position(|&head| head == name).and_then(|index| table.column_mut(index));
        column.into_iter().for_each(|column| {
            column.set_cell_alignment(CellAlignment::Right);
        });
    }
    table.trim_fmt()
}

/// The common prefix of all items in a part, up to a semicolon.
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

/// A number with four significant digits, without an exponent for usual magnitudes.
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
    fn words_stand_beneath_the_numbers_where_there_is_no_room() {
        let why = "at face value hardly a transfer of the paper's would lose a segment; with the losses of table 1 the ratio is 1.45";
        let row = |id: &str| {
            Row::new(id, "STP's goodput over TCP's", Some(1.45), Some(1.27), "ratio").judged(Verdict::Shape, why)
        };
        let rows = [row("S-T02/1e-10"), row("S-T02/1e-8")];
        let lines = |width| render_text(&rows, width).lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines(None)[2].contains("1.27") && lines(None)[2].ends_with(why), "beside them in a file");
        assert!(lines(Some(160))[2].contains("goodput"), "and where there is room");
        for width in [80, 120] {
            let lines = lines(Some(width));
            assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width)), "{width}: {lines:#?}");
            // Two tables with a header and a rule, in lines that are well filled.
            assert!(lines.len() <= 9 + 2 * (200 / (usize::from(width) - 20) + 1), "{width}: {lines:#?}");
            assert!(lines[2].starts_with(" S-T02/1e-10 ") && lines[2].ends_with("shape"), "{width}: {lines:#?}");
        }
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
