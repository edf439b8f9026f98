//! A paper's table with our number below each printed one.

use std::fmt::Write;

use bentpipe_study::markup::escaped;

use super::words::{mark, number_or_dash, range};
use crate::published::Table;
use crate::{Row, Verdict};

/// Row and column of a cell: `median` and `Ref` for `T-T03/median/Ref`.
fn place(row: &Row) -> (&str, &str) {
    let mut parts = row.id.splitn(3, '/').skip(1);
    (parts.next().unwrap_or(""), parts.next().unwrap_or(""))
}

/// The distinct values, in order of appearance.
fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The unit of these cells, if they have the same one.
fn common_unit<'a>(mut cells: impl Iterator<Item = &'a &'a Row>) -> Option<&'a str> {
    let first = cells.next()?.unit.as_str();
    (!first.is_empty() && cells.all(|cell| cell.unit == first)).then_some(first)
}

/// Renders the cells as a table, the printed number above ours. `published` is the paper's table: its text is shown for a cell
/// without a printed number.
pub(super) fn to_html(cells: &[&Row], published: Option<&Table>) -> String {
    let rows = distinct(cells.iter().map(|cell| place(cell).0));
    let columns = distinct(cells.iter().map(|cell| place(cell).1));
    let of_row = |row: &str| cells.iter().filter(move |cell| place(cell).0 == row).collect::<Vec<_>>();
    let of_column = |column: &str| cells.iter().filter(move |cell| place(cell).1 == column).collect::<Vec<_>>();
    let by_row = rows.iter().all(|row| common_unit(of_row(row).into_iter()).is_some());
    let by_column = !by_row && columns.iter().all(|column| common_unit(of_column(column).into_iter()).is_some());
    let named = |name: &str, unit: Option<&str>| match unit {
        Some(unit) => format!("{}<br><small>{}</small>", escaped(name), escaped(unit)),
        None => escaped(name),
    };
    let mut out = String::from("<div class=\"wide\"><table class=\"matrix\"><thead><tr><th>paper<br>ours</th>");
    for column in &columns {
        let unit = by_column.then(|| common_unit(of_column(column).into_iter())).flatten();
        let _ = write!(out, "<th class=\"n\">{}</th>", named(column, unit));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &rows {
        let unit = by_row.then(|| common_unit(of_row(row).into_iter())).flatten();
        let _ = write!(out, "<tr><th>{}</th>", named(row, unit));
        for column in &columns {
            match of_row(row).into_iter().find(|cell| place(cell).1 == *column) {
                Some(found) => out.push_str(&cell(found, published, by_row || by_column)),
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>"
}

fn cell(row: &Row, published: Option<&Table>, unit_is_named: bool) -> String {
    let (name, column) = place(row);
    let as_printed = || Some(published?.cell(name, column)?.printed.as_str());
    let paper = match row.paper {
        Some(_) => number_or_dash(row.paper),
        None => as_printed().map_or_else(|| "–".to_owned(), escaped),
    };
    let unit = if unit_is_named || row.ours.is_none() { String::new() } else { format!(" {}", escaped(&row.unit)) };
    let verdict = row.verdict.name();
    format!(
        "<td class=\"n {verdict}\" title=\"{}: {verdict}{}; {}\"><small>{paper}</small><br>{}{unit} {}</td>",
        escaped(&row.id),
        range(row).map_or(String::new(), |range| format!(", {range}")),
        escaped(&row.why),
        number_or_dash(row.ours),
        mark(row.verdict),
    )
}

/// The cells that do not match, grouped by verdict and reason.
pub(super) fn reasons(cells: &[&Row]) -> String {
    let mut found: Vec<(Verdict, &str, Vec<&Row>)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.verdict != Verdict::Match) {
        match found.iter_mut().find(|(verdict, why, _)| *verdict == cell.verdict && *why == cell.why) {
            Some((.., all)) => all.push(cell),
            None => found.push((cell.verdict, &cell.why, vec![cell])),
        }
    }
    let count: usize = found.iter().map(|(.., all)| all.len()).sum();
    if count == 0 {
        return String::new();
    }
    let mut out = format!("<details><summary>Why {count} of {} cells do not match</summary><ul>\n", cells.len());
    for (verdict, why, all) in &found {
        let cells: Vec<_> = all.iter().map(|cell| in_words(cell)).collect();
        let _ = writeln!(out, "<li>{} {}: {}</li>", mark(*verdict), cells.join("; "), escaped(why));
    }
    out + "</ul></details>"
}

/// `median/Ref 65.92, ours 55.71 (46.72..68.03)`.
fn in_words(row: &Row) -> String {
    let place = row.id.split_once('/').map_or("", |(_, place)| place);
    let mut out = escaped(place);
    if row.paper.is_some() {
        let _ = write!(out, " {}", number_or_dash(row.paper));
    }
    if row.ours.is_some() {
        let _ = write!(out, ", ours {}", number_or_dash(row.ours));
    }
    if let Some(range) = range(row) {
        let _ = write!(out, " ({range})");
    }
    out
}
