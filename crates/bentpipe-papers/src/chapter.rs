//! The rows of each paper, for documents.

use crate::published::{PAPERS, Paper};
use crate::{Row, Tally};

/// A paper and its rows, in order.
pub(crate) struct Chapter<'a> {
    pub(crate) paper: &'static Paper,
    rows: Vec<&'a Row>,
}

/// A chapter for each paper that has rows.
pub(crate) fn chapters(rows: &[Row]) -> Vec<Chapter<'_>> {
    let of = |paper: &'static Paper| {
        let start = format!("{}-", paper.letter);
        Chapter { paper, rows: rows.iter().filter(|row| row.id.starts_with(&start)).collect() }
    };
    PAPERS.iter().map(|paper| of(paper)).filter(|chapter| !chapter.rows.is_empty()).collect()
}

impl<'a> Chapter<'a> {
    /// The rows of the paper's items: those whose id has no slash.
    pub(crate) fn items(&self) -> impl Iterator<Item = &'a Row> + '_ {
        self.rows.iter().copied().filter(|row| !is_cell(row))
    }

    /// The rows of parts of an item: cells of a table, or one of several measurements.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &'a Row> + '_ {
        self.rows.iter().copied().filter(|row| is_cell(row))
    }

    /// The row at the top of the chapter, if the paper names one and it is among the rows.
    pub(crate) fn lead(&self) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| Some(&row.id) == self.paper.lead.as_ref())
    }
}

/// True if a row is a part of an item.
fn is_cell(row: &Row) -> bool {
    row.id.contains('/')
}

/// The verdicts of each paper's items, or of its cells with `of_cells`. Papers without any are left out. The last entry,
/// `all`, is the sum.
pub(crate) fn tallies(chapters: &[Chapter<'_>], of_cells: bool) -> Vec<(&'static str, Tally)> {
    let chosen = |chapter: &Chapter<'_>| match of_cells {
        true => Tally::of(chapter.cells()),
        false => Tally::of(chapter.items()),
    };
    let mut found: Vec<_> = chapters.iter().map(|chapter| (chapter.paper.key.as_str(), chosen(chapter))).collect();
    found.retain(|(_, tally)| tally.total() > 0);
    let all = chapters.iter().flat_map(|chapter| chapter.rows.iter().copied());
    found.push(("all", Tally::of(all.filter(|row| is_cell(row) == of_cells))));
    found
}

/// Five significant digits, or all digits before the point if these are more; trailing zeros after it removed.
pub(crate) fn number(value: f64) -> String {
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

    #[test]
    fn numbers_keep_five_digits() {
        let shown = [847034.34, 663.47, 1.0, 0.0081, 2.63e-5, -0.0, 119.0, 3.0e-12].map(number);
        assert_eq!(shown, ["847034", "663.47", "1", "0.0081", "0.0000263", "0", "119", "3.0000e-12"]);
    }
}
