//! `bentpipe reproduce`: a paper's tables and figures compared with ours.

use std::path::Path;
use std::time::Instant;

use bentpipe_io::note;
use bentpipe_papers::book::{self, Made};
use bentpipe_papers::reproduce::{Options, ReproduceError, acts, all, hybrid, minei, stp, transat};
use bentpipe_papers::{Row, Tally, render_text, to_markdown};
use bentpipe_study::report::write_whole;
use serde::Serialize;

use crate::args::{Paper, Reproduce};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, progress};

/// Columns of a file: reasons are sentences, too long for lines. Programs read `--json`.
const PAGE: u16 = 120;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: Remake,
    seed: u64,
    reps: u32,
    interrupted: bool,
    counts: Tally,
    rows: &'a [Row],
}

pub(crate) fn reproduce(args: &Reproduce) -> Result<End, Failure> {
    let began = Instant::now();
    if let Some(folder) = &args.out {
        output::check_folder(folder)?;
    }
    let print = output::beside(&Inputs::default(), &[args.markdown.as_deref(), args.report.as_deref()])?;
    for file in args.markdown.iter().chain(&args.report) {
        output::check_writable(file)?;
    }
    // A report shows the figures; without --out they are kept only for it.
    let scratch = args.report.as_ref().map(|_| tempfile::tempdir()).transpose().map_err(Failure::broken)?;
    let figures = args.out.as_deref().or(scratch.as_ref().map(|folder| folder.path()));
    let defaults = Options::default();
    let options = Options {
        table: args.table,
        figure: args.figure,
        reps: args.reps,
        seed: args.seed,
        threads: if args.threads == 0 { defaults.threads } else { args.threads },
        out_dir: figures.map(Path::to_owned),
        stop: interrupt::asked,
        ..defaults
    };
    let bar = progress::spinner();
    let hears = |what: &str, done: usize, of: usize| bar.set_message(format!("{what}: {done} of {of}"));
    let study = match args.paper {
        Paper::Transat => transat,
        Paper::Minei => minei,
        Paper::Acts => acts,
        Paper::Hybrid => hybrid,
        Paper::Stp => stp,
        Paper::All => all,
    };
    interrupt::heed();
    let rows = study(&options, &hears);
    bar.finish_and_clear();
    let (rows, interrupted) = match rows {
        Ok(rows) => (rows, false),
        Err(ReproduceError::Cut { rows }) => (rows, true),
        Err(error) => return Err(failure(&error)),
    };
    show(args, &rows, figures, interrupted, print)?;
    if let Some(folder) = &args.out {
        note!("figures are in {}", folder.display());
    }
    if interrupted {
        note!("interrupted after {} rows; the rest is missing", rows.len());
        return Ok(End::Interrupted);
    }
    if let Some(file) = &args.report {
        note!("the report is in {}, after {} s", file.display(), began.elapsed().as_secs());
    }
    Ok(End::Done)
}

/// Writes the rows where they were asked for. Half a document could be mistaken for a whole one, so there is none.
fn show(
    args: &Reproduce,
    rows: &[Row],
    figures: Option<&Path>,
    interrupted: bool,
    print: output::Print,
) -> Result<(), Failure> {
    let remake = Remake::new(args.seed);
    if args.json {
        let counts = Tally::of(rows);
        return output::print_json(&Json { remake, seed: args.seed, reps: args.reps, interrupted, counts, rows });
    }
    if let Some(file) = args.markdown.as_ref().filter(|_| !interrupted) {
        write_whole(file, to_markdown(rows, &remake.command).as_bytes()).map_err(Failure::unwritten)?;
    }
    if let Some((file, figures)) = args.report.as_ref().zip(figures).filter(|_| !interrupted) {
        let made = Made { by: &remake.line(), options: &settings(args) };
        let html = book::to_html(rows, figures, made).map_err(Failure::broken)?;
        write_whole(file, html.as_bytes()).map_err(Failure::unwritten)?;
    }
    if args.markdown.is_some() || args.report.is_some() {
        return print(&format!("{}\n{}\n", Tally::of(rows), remake.line()));
    }
    let width = output::width().unwrap_or(PAGE);
    output::print(&format!("{}{}\n", render_text(rows, Some(width)), remake.line()))
}

/// The options that change numbers, where they are not the defaults.
fn settings(args: &Reproduce) -> String {
    let defaults = Options::default();
    let reps = (args.reps != defaults.reps).then(|| format!(" --reps {}", args.reps));
    let seed = (args.seed != defaults.seed).then(|| format!(" --seed {}", args.seed));
    [reps, seed].into_iter().flatten().collect()
}

fn failure(error: &ReproduceError) -> Failure {
    match error {
        ReproduceError::NoSuchPart { .. }
        | ReproduceError::NoSuchKind { .. }
        | ReproduceError::WhosePart(_)
        | ReproduceError::TooFewReplications(_) => Failure::usage(error, None),
        _ => Failure::broken(error),
    }
}
