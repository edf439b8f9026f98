//! `bentpipe scoreboard`: every transport over every link, with and without gateways.

use std::fmt::Write;

use bentpipe_io::note;
use bentpipe_papers::scoreboard::{Beside, beside, to_markdown};
use bentpipe_study::csv;
use bentpipe_study::report::write_whole;
use bentpipe_sweep::Median;
use bentpipe_sweep::board::{
    Board, BoardError, Cell, Conduct, OWN_LOSS, Options, PLACES, SHAPES, Selection, TRANSPORTS, Table, board,
};
use serde::Serialize;

use crate::args::Scoreboard;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, progress, shipped};

/// Bytes of one step of the progress bar.
const STEP: u64 = 1_000_000;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    runs: u32,
    #[serde(flatten)]
    board: &'a Board,
    others: Vec<Beside>,
}

pub(crate) fn scoreboard(args: &Scoreboard) -> Result<End, Failure> {
    if args.list {
        output::print(&list())?;
        return Ok(End::Done);
    }
    let selection = Selection::parse(args.only.iter().map(String::as_str))
        .map_err(|unknown| Failure::usage(&unknown, Some(unknown.help.clone())))?;
    let files = [args.markdown.as_deref(), args.csv.as_deref()];
    let print = output::beside(&Inputs::default(), &files)?;
    files.iter().flatten().try_for_each(|file| output::check_writable(file))?;
    let options = Options { selection, conduct: args.conduct, runs: args.runs, threads: args.threads };
    let bar = progress::steps_to_be_counted(progress::ESTIMATED);
    bar.set_message("MB simulated");
    interrupt::heed();
    let found = board(&options, &shipped::text, &interrupt::asked, &|done, of| {
        progress::advance(&bar, done / STEP, of / STEP);
    });
    bar.finish_and_clear();
    let found = found.map_err(|error| match error {
        BoardError::Scenario(errors) => Failure::Scenario(errors),
        BoardError::Run(error) => Failure::broken(error),
    })?;
    let remake = Remake::new(found.seed);
    // Half a document could be mistaken for a whole one.
    if !found.interrupted {
        if let Some(file) = &args.markdown {
            write_whole(file, to_markdown(&found, &remake.command).as_bytes()).map_err(Failure::unwritten)?;
        }
        if let Some(file) = &args.csv {
            write_whole(file, lines(&found).as_bytes()).map_err(Failure::unwritten)?;
        }
    }
    if args.json {
        let others = beside(&found);
        print(&output::json(&Json { remake: &remake, runs: args.runs, board: &found, others })?)?;
    } else {
        print(&format!("{}{}\n", text(&found), remake.line()))?;
    }
    if found.interrupted {
        note!("interrupted: only complete cells are shown, and no file is written");
        return Ok(End::Interrupted);
    }
    Ok(End::Done)
}

fn list() -> String {
    let places = PLACES.iter().map(|place| {
        let losses = place.losses.iter().filter(|loss| **loss != OWN_LOSS).copied().collect::<Vec<_>>();
        vec![place.name.to_owned(), losses.join(", "), place.sizes.join(", "), place.what.to_owned()]
    });
    let transports = TRANSPORTS.iter().map(|transport| vec![transport.name.to_owned(), transport.what.to_owned()]);
    format!(
        "{}\n\n{}\n\nBoxes: {}.\n",
        output::wrapped(&["link", "losses", "sizes", "what"], places),
        output::wrapped(&["transport", "what"], transports),
        SHAPES.join(", ")
    )
}

fn text(board: &Board) -> String {
    let mut text = String::new();
    for table in board.tables() {
        let _ = writeln!(text, "{}\n", grid(&table));
    }
    let others = beside(board);
    if !others.is_empty() {
        let _ = writeln!(text, "{}\n", others_grid(&others));
    }
    if !board.conduct.is_empty() {
        let _ = writeln!(text, "{}\n", conduct_grid(&board.conduct));
    }
    text.push_str(&output::prose(
        "Seconds, medians. x limit: over the minimum time that the links allow TCP end to end, geometric mean.\n\
         ping: p99 of a ping beside the transfer, there and back, the worst of the columns.\n",
    ));
    text
}

fn grid(table: &Table<'_>) -> String {
    let heads: Vec<String> = table
        .fields
        .iter()
        .map(|(field, _)| {
            let loss = if field.loss == OWN_LOSS { String::new() } else { format!("\n{}", field.loss) };
            format!("{}{loss}", field.size)
        })
        .collect();
    let mut header = vec![table.place.name, "box"];
    header.extend(heads.iter().map(String::as_str));
    header.extend(["x limit", "ping"]);
    let limits = table.fields.iter().map(|(_, limit)| output::number(*limit, 2));
    let limits: Vec<String> = ["limit".to_owned(), String::new()]
        .into_iter()
        .chain(limits)
        .chain(["1.00".to_owned(), String::new()])
        .collect();
    let rows = table.rows.iter().map(|row| {
        let mut line = vec![carriers(&row.transports), row.shape.to_owned()];
        line.extend(row.cells.iter().map(|cell| seconds(*cell)));
        line.push(output::number(row.x_limit, 2));
        line.push(output::number(row.ping_p99_s, 2));
        line
    });
    output::table(&header, 2, std::iter::once(limits).chain(rows))
}

fn seconds(cell: Option<&Cell>) -> String {
    output::number(cell.and_then(|cell| cell.time_s).map(|time| time.median), 2)
}

fn others_grid(all: &[Beside]) -> String {
    let rows = all.iter().map(|result| {
        let best = result.end_to_end.as_ref();
        vec![
            result.field.join(", "),
            result.who.to_owned(),
            output::number(Some(result.time_s), 2),
            output::number(best.map(|best| best.time_s.median), 2),
            best.map_or(String::new(), |best| best.name.clone()),
        ]
    });
    output::table(&["transfer", "result of others", "theirs", "ours, end to end", "by"], 2, rows)
}

fn conduct_grid(all: &[Conduct]) -> String {
    let median = |of: Option<Median>| output::number(of.map(|of| of.median), 2);
    let percent = |of: Option<Median>| output::number(of.map(|of| 100.0 * of.median), 2);
    let rows = all.iter().map(|one| {
        vec![
            one.transport.to_owned(),
            median(one.share_of_cubic),
            median(one.jain),
            median(one.share_of_later),
            median(one.ping_p99_s),
            percent(one.dropped),
            percent(one.dropped_of_many),
            median(one.kept_under_loss),
            median(one.short_beside_s),
            median(one.kept_under_fq_codel),
            median(one.kept_over_longer_path),
            median(one.kept_in_outage),
            median(one.kept_under_reordering),
        ]
    });
    let header = [
        "RFC 9743",
        "left to\nCUBIC",
        "Jain\nof two",
        "later\none",
        "ping (s)",
        "dropped\n(%)",
        "of eight\n(%)",
        "kept at\n1 %",
        "2 MB\nbeside (s)",
        "kept by\nFQ-CoDel",
        "kept if\nlonger",
        "kept in\noutage",
        "kept, re-\nordered",
    ];
    output::table(&header, 1, rows)
}

/// The transports of a row: no more than fit a terminal.
fn carriers(transports: &[&str]) -> String {
    match transports {
        [first, _, _, ..] => format!("{first} and {} more", transports.len() - 1),
        _ => transports.join(", "),
    }
}

/// A line for each cell.
fn lines(board: &Board) -> String {
    let mut out =
        "link,loss,size,transport,box,runs,unfinished,time_s,low_s,high_s,x_limit,ping_p99_s,not_there\n".to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for cell in &board.cells {
        let Cell { field, entry, .. } = cell;
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            field.place,
            field.loss,
            field.size,
            entry.transport,
            entry.shape,
            cell.runs,
            cell.unfinished,
            number(cell.time_s.map(|time| time.median)),
            number(cell.time_s.and_then(|time| time.low)),
            number(cell.time_s.and_then(|time| time.high)),
            number(cell.x_limit),
            number(cell.ping_p99_s),
            csv::field(cell.unfit.as_deref().unwrap_or("")),
        );
    }
    out
}
