//! `bentpipe reproduce`: a paper's tables and figures compared with ours.

use bentpipe_papers::reproduce::{Options, ReproduceError, acts, all, hybrid, minei, stp, transat};
use bentpipe_papers::{Row, Tally, render_text, to_markdown};
use bentpipe_study::report::write_whole;
use serde::Serialize;

use crate::args::{Paper, Reproduce};
use crate::failure::{End, Failure};
use crate::output::{self, Remake};
use crate::{interrupt, progress};

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
    let defaults = Options::default();
    let options = Options {
        table: args.table,
        figure: args.figure,
        reps: args.reps,
        seed: args.seed,
        threads: if args.threads == 0 { defaults.threads } else { args.threads },
        out_dir: args.out.clone(),
        stop: interrupt::asked,
    };
    if let Some(folder) = &args.out {
        output::check_writable(&folder.join("figure.svg"))?;
    }
    if let Some(file) = &args.markdown {
        output::check_writable(file)?;
    }
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
    let remake = Remake::new(args.seed);
    if args.json {
        let counts = Tally::of(&rows);
        output::print_json(&Json { remake, seed: args.seed, reps: args.reps, interrupted, counts, rows: &rows })?;
    } else if let Some(file) = &args.markdown {
        // Half a document could be mistaken for a whole one.
        if !interrupted {
            write_whole(file, to_markdown(&rows, &remake.command).as_bytes()).map_err(Failure::broken)?;
        }
        output::print(&format!("{}\n{}\n", Tally::of(&rows), remake.line()))?;
    } else {
        let text = render_text(&rows, output::width());
        output::print(&format!("{text}{}\n", remake.line()))?;
    }
    if let Some(folder) = &args.out {
        eprintln!("figures are in {}", folder.display());
    }
    if interrupted {
        eprintln!("interrupted after {} rows; the rest is missing", rows.len());
        return Ok(End::Interrupted);
    }
    Ok(End::Done)
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
