//! Output: tables for people, JSON for programs, each with how to reproduce it.

mod files;
mod line;

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Mutex;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, TableComponent, Width as ColumnWidth,
    presets,
};
use serde::Serialize;

use crate::failure::Failure;
pub(crate) use files::{Inputs, Print, beside, check_folder, check_writable, create_folder, not_a_folder};
pub(crate) use line::shell;

/// The arguments of the command, without its name. Not the process's: in Python's process those are Python's.
static ARGUMENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the arguments of the command for [`Remake`].
pub(crate) fn remember(arguments: &[OsString]) {
    let text = arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    *ARGUMENTS.lock().expect("no panic while it is locked") = text.collect();
}

/// How to reproduce an output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Remake {
    /// Version of bentpipe.
    pub(crate) bentpipe: &'static str,
    /// The command line.
    pub(crate) command: String,
    /// The first seed.
    #[serde(skip)]
    pub(crate) seed: u64,
}

impl Remake {
    pub(crate) fn new(seed: u64) -> Self {
        let arguments = ARGUMENTS.lock().expect("no panic while it is locked").clone();
        Remake { bentpipe: env!("CARGO_PKG_VERSION"), command: shell("bentpipe", arguments.into_iter()), seed }
    }

    /// As one line.
    pub(crate) fn line(&self) -> String {
        format!("bentpipe {}, seed {}: {}", self.bentpipe, self.seed, self.command)
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| unprinted(&error))
}

/// What an error of standard output means.
pub(crate) fn unprinted(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::broken(format!("standard output: {error}")),
    }
}

/// Prints as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json(value)?)
}

/// Indented JSON, with a line break at the end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::broken)?;
    Ok(format!("{text}\n"))
}

/// Width of the terminal, or COLUMNS if that is set; `None` if the output goes elsewhere.
pub(crate) fn width() -> Option<u16> {
    let out = std::io::stdout();
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    match out.is_terminal() {
        true => columns().or_else(|| terminal_size::terminal_size_of(out).map(|(width, _)| width.0)),
        false => None,
    }
}

/// A table before it is text or HTML.
pub(crate) struct Grid {
    pub(crate) header: Vec<&'static str>,
    /// Columns from this one on are right-aligned.
    pub(crate) numbers: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// For a terminal.
    pub(crate) fn text(self) -> String {
        table(&self.header, self.numbers, self.rows)
    }
}

/// Rows under a header; columns from `numbers` on are right-aligned.
pub(crate) fn table(header: &[&str], numbers: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(header, rows, |column| column >= numbers)
}

/// Rows under a header; only column `right` is right-aligned.
pub(crate) fn left_and_right(header: &[&str], right: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(header, rows, |column| column == right)
}

/// Rows of words under a header, whose lines are broken to fit the terminal.
pub(crate) fn wrapped(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = plain(header, rows);
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.trim_fmt().replace(FIXED, " ")
}

fn aligned(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: impl Fn(usize) -> bool) -> String {
    in_width(header, &rows.into_iter().collect::<Vec<_>>(), right, width())
}

/// The table, or tables with a part of the columns each if not even the words of all fit beside one another.
fn in_width(header: &[&str], rows: &[Vec<String>], right: impl Fn(usize) -> bool, width: Option<u16>) -> String {
    let of = |columns: &[usize], cell: fn(String) -> String| {
        let names: Vec<_> = columns.iter().map(|&column| header[column]).collect();
        let cells = |row: &Vec<String>| columns.iter().map(|&n| row.get(n).cloned().unwrap_or_default()).collect();
        let mut table = with_cells(&names, rows.iter().map(cells), cell);
        for (column, _) in table.column_iter_mut().zip(columns).filter(|(_, number)| right(**number)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    };
    let all: Vec<_> = (0..header.len()).collect();
    // Columns of words before the numbers say what a row is about: a second table has them, too, if there is room.
    let names = (0..header.len()).take_while(|&column| !right(column)).count().max(1);
    let parts = |cell| {
        let (longest, width) = (longest_words(&of(&all, cell)), usize::from(width?));
        parts(&longest, names, width).or_else(|| parts(&longest, 1, width))
    };
    // Units beneath their numbers are better than a second table.
    let is_one = |parts: &Option<Vec<Vec<usize>>>| parts.as_ref().is_some_and(|parts| parts.len() == 1);
    let cell = if !is_one(&parts(fixed)) && is_one(&parts(indented)) { indented } else { fixed };
    let parts = parts(cell).unwrap_or_else(|| vec![all.clone()]);
    let tables: Vec<_> = parts.iter().map(|columns| fitted(of(columns, cell), width)).collect();
    tables.join("\n\n")
}

/// The columns, divided so that their longest words fit, each part with the first `names` columns. `None` if that is not possible.
fn parts(longest: &[usize], names: usize, width: usize) -> Option<Vec<Vec<usize>>> {
    let (first, others) = longest.split_at_checked(names)?;
    // Two spaces between words, one at the end.
    let start = first.iter().sum::<usize>() + 2 * first.len().saturating_sub(1) + 1;
    let all_names = || (0..names).collect::<Vec<_>>();
    let (mut parts, mut used) = (vec![all_names()], start);
    for (column, word) in others.iter().enumerate() {
        if start + word + 2 > width {
            return None;
        }
        if used + word + 2 > width {
            parts.push(all_names());
            used = start;
        }
        parts.last_mut()?.push(names + column);
        used += word + 2;
    }
    Some(parts)
}

/// The longest word of each column, or line of an indented name.
fn longest_words(table: &Table) -> Vec<usize> {
    let longest = |cell: &Cell| {
        let (text, hung) = (cell.content(), hung(&cell.content()));
        let words = hung.as_deref().map_or(text.split(' ').collect::<Vec<_>>(), |lines| lines.lines().collect());
        words.iter().map(|word| word.chars().count()).max().unwrap_or(0)
    };
    let rows = || table.row_iter().chain(table.header());
    let count = table.header().map_or(0, |row| row.cell_iter().count());
    (0..count)
        .map(|column| rows().filter_map(|row| row.cell_iter().nth(column)).map(longest).max().unwrap_or(0))
        .collect()
}

/// The table's text. If it is wider than the terminal: with less between the columns, and where that is not enough, with cells of several
/// lines.
fn fitted(mut table: Table, width: Option<u16>) -> String {
    let fits = |text: &str, width: u16| text.lines().all(|line| line.chars().count() <= usize::from(width));
    let text = table.trim_fmt();
    let spaced = |text: String| text.replace(FIXED, " ");
    let Some(width) = width.filter(|&width| !fits(&text, width)) else { return spaced(text) };
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    let text = table.trim_fmt();
    if fits(&text, width) {
        return spaced(text);
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    // No column narrower than its longest word, if that is possible.
    let mut whole = table.clone();
    whole.row_iter_mut().for_each(hang_name);
    for (column, longest) in whole.column_iter_mut().zip(longest_words(&table)) {
        column.set_constraint(ColumnConstraint::LowerBoundary(ColumnWidth::Fixed(
            u16::try_from(longest + 1).unwrap_or(u16::MAX),
        )));
    }
    let text = whole.trim_fmt();
    spaced(if fits(&text, width) { text } else { table.trim_fmt() })
}

/// Sentences whose lines are broken between words to fit the terminal, if the output goes to one.
pub(crate) fn prose(text: &str) -> String {
    width().map_or(text.replace(FIXED, " "), |width| filled(text, usize::from(width)))
}

/// Lines of at most `width`. What follows a label and two spaces, or a bullet, stays in its column.
fn filled(text: &str, width: usize) -> String {
    text.split_inclusive('\n')
        .map(|line| broken(line, width, hang(line).min(width / 2)))
        .collect::<String>()
        .replace(FIXED, " ")
}

/// A line, broken between words into lines of at most `width`, all but the first indented.
fn broken(line: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column > indent && column + length > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}

/// The column in which the text of a line begins.
fn hang(line: &str) -> usize {
    let label = line.chars().take_while(|&c| c == ' ').count();
    let rest = &line[label..];
    let text = match (rest.strip_prefix("• ").or(rest.strip_prefix("- ")), rest.split_once("  ")) {
        (Some(text), _) => text,
        (None, Some((_, text))) => text.trim_start(),
        (None, None) => rest,
    };
    line.chars().count() - text.chars().count()
}

/// A space at which no line is broken.
pub(crate) const FIXED: &str = "\u{a0}";

/// The least width in which an indented name is broken.
const MIN_NAME: usize = 12;

/// The cell with fixed spaces where it is indented.
fn indented(cell: String) -> String {
    let text = cell.trim_start_matches(' ');
    format!("{}{text}", FIXED.repeat(cell.len() - text.len()))
}

/// The same, also between a number and its unit.
fn fixed(cell: String) -> String {
    let text = cell.trim_start_matches(' ');
    let mut out = FIXED.repeat(cell.len() - text.len());
    let mut is_number = false;
    for word in text.split_inclusive(' ') {
        let is_unit = UNITS.contains(&word.trim_end().trim_matches(['(', ')']));
        if is_number && is_unit {
            out.truncate(out.len() - 1);
            out.push_str(FIXED);
        }
        out.push_str(word);
        is_number =
            word.trim_start_matches('(').starts_with(|first: char| first.is_ascii_digit()) && word.ends_with(' ');
    }
    out
}

/// Units in tables.
const UNITS: [&str; 14] =
    ["%", "B", "kB", "MB", "GB", "TB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "us", "ms", "s"];

/// An indented name in lines that are all indented; `None` if it is not indented.
fn hung(name: &str) -> Option<String> {
    let indent = name.chars().take_while(|&c| FIXED.starts_with(c)).count();
    let lines = (indent > 0).then(|| broken(&name.replace(FIXED, " "), MIN_NAME, indent))?;
    Some(lines.lines().map(|line| indented(line.to_owned())).collect::<Vec<_>>().join("\n"))
}

/// Breaks the row's name where it is indented.
fn hang_name(row: &mut Row) {
    let cells: Vec<_> = row.cell_iter().map(Cell::content).collect();
    if let Some(name) = cells.first().and_then(|name| hung(name)) {
        *row = Row::from(std::iter::once(name).chain(cells.into_iter().skip(1)).collect::<Vec<_>>());
    }
}

fn plain(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    with_cells(header, rows, fixed)
}

fn with_cells(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    cell: impl Fn(String) -> String + Copy,
) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_header(header.iter().copied());
    rows.into_iter().for_each(|row| {
        table.add_row(row.into_iter().map(cell));
    });
    table
}

/// Prints to standard error, which may be closed.
pub(crate) fn print_aside(text: &str) -> Result<(), Failure> {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    Ok(())
}

/// So many of something, whose plural ends in s.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number with this many decimals, or a dash.
pub(crate) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Bytes in a readable unit.
pub(crate) fn bytes(count: u64) -> String {
    scaled(count as f64, "B")
}

/// A rate in a readable unit.
pub(crate) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, "bit/s")
}

fn scaled(value: f64, unit: &str) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match scales.iter().find(|(scale, _)| value >= *scale) {
        Some((scale, prefix)) => {
            let number = format!("{:.2}", value / scale);
            format!("{} {prefix}{unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        None => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal() {
        let row = ["newreno", "1.605 (1.192 .. 2.203)", "16.75 .. 33.91"];
        let table = || plain(&["variant", "over sack (95 % CI)", "quartiles"], [row.map(str::to_owned).to_vec()]);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().expect("lines");
        let whole = fitted(table(), None);
        assert_eq!(whole, fitted(table(), Some(80)), "it is as wide as it is where there is room");
        // A column less in front of each of three.
        let close = fitted(table(), Some(widest(&whole) as u16 - 1));
        assert_eq!((close.lines().count(), widest(&close)), (whole.lines().count(), widest(&whole) - 3), "{close}");
        let narrow = fitted(table(), Some(40));
        assert!(narrow.lines().count() > whole.lines().count() && widest(&narrow) <= 40, "{narrow}");
        assert!(narrow.contains("(1.192") && narrow.contains("2.203)"), "nothing is left out\n{narrow}");
    }

    #[test]
    fn words_are_whole_and_legs_indented_where_there_is_room() {
        let header = ["flow", "variant", "goodput", "retransmits", "timeouts", "x limit"];
        let cells = |name: &str| [name, "linux-cubic", "12.66 Mbit/s", "1429", "0", "1.52"].map(str::to_owned).to_vec();
        let rows = || [cells("download"), cells("  server → gateway over a link")];
        let narrow = fitted(plain(&header, rows()), Some(75));
        assert!(narrow.lines().all(|line| line.chars().count() <= 75), "{narrow}");
        for word in ["retransmits", "linux-cubic", "timeouts", "12.66 Mbit/s", "\n  server", "\n  gateway", "\n  link"]
        {
            assert!(narrow.contains(word), "{word}\n{narrow}");
        }
        assert_eq!(plain(&header, rows()).column_count(), header.len());
        // Less than the words need: they are broken rather than the lines.
        let least = fitted(plain(&header, rows()), Some(30));
        assert!(least.lines().all(|line| line.chars().count() <= 30), "{least}");
        assert_eq!((rate(1e15), bytes(1_500_000_000_000)), ("1000 Tbit/s".to_owned(), "1.5 TB".to_owned()));
    }

    #[test]
    fn a_table_whose_words_do_not_fit_is_divided() {
        let header = ["channel", "over", "delivered", "retransmits"];
        let rows = [["boxes/streams", "sat/backward", "3586", "12"].map(str::to_owned).to_vec()];
        let text = in_width(&header, &rows, |column| column > 1, Some(42));
        assert!(text.lines().all(|line| line.chars().count() <= 42), "{text}");
        assert_eq!((text.matches("boxes/streams").count(), text.matches("sat/backward").count()), (2, 2), "{text}");
        for word in header.iter().chain(&["sat/backward", "3586", "12"]) {
            assert!(text.contains(word), "{word}\n{text}");
        }
        assert_eq!(in_width(&header, &rows, |column| column > 1, None).matches("boxes/streams").count(), 1);
        // Units go beneath their numbers first.
        let (header, rows) =
            (["flow", "goodput", "x limit"], [["download", "12.66 Mbit/s", "1.52"].map(str::to_owned).to_vec()]);
        let text = in_width(&header, &rows, |column| column > 0, Some(26));
        assert!(text.matches("download").count() == 1 && text.lines().all(|line| line.chars().count() <= 26), "{text}");
        assert!(in_width(&header, &rows, |column| column > 0, Some(32)).contains("12.66 Mbit/s"));
        // Where one column does not fit beside the first, words are broken.
        assert_eq!(parts(&[10, 5, 12], 1, 20), None);
        assert_eq!(parts(&[10, 5, 3, 5], 1, 20), Some(vec![vec![0, 1], vec![0, 2], vec![0, 3]]));
        // 11 + 7 + 5 + 7.
        assert_eq!(parts(&[10, 5, 3, 5], 1, 29), Some(vec![vec![0, 1, 2], vec![0, 3]]));
        // 10 + 2 + 5 + 1 twice, and 3 or 5 with two spaces.
        assert_eq!(parts(&[10, 5, 3, 5], 2, 25), Some(vec![vec![0, 1, 2], vec![0, 1, 3]]));
        assert_eq!(parts(&[10, 5, 3, 5], 1, 30), Some(vec![vec![0, 1, 2, 3]]));
    }

    #[test]
    fn sentences_are_broken_between_words() {
        let text = "one two three\n\n  path    server → client over sat\n  • a queue of one\nshort\n";
        assert_eq!(filled(text, 80), text);
        assert_eq!(
            filled(text, 20),
            "one two three\n\n  path    server →\n          client\n          over sat\n  • a queue of one\nshort\n"
        );
        assert_eq!(
            filled(text, 9),
            "one two\nthree\n\n  path\n    server\n    →\n    client\n    over\n    sat\n  • a\n    queue\n    of\n    one\nshort\n"
        );
        assert_eq!(filled("- a note\n", 6), "- a\n  note\n");
        assert_eq!(filled("a-word-that-is-longer b\n", 5), "a-word-that-is-longer\nb\n", "no word is broken");
    }
}
