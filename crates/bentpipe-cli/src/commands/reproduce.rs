//! `bentpipe reproduce`: a paper's tables and figures beside ours.

use bentpipe_papers::reproduce::{Options, ReproduceError, transat};
use bentpipe_papers::{Row, render_text};
use serde::Serialize;

use crate::args::{Paper, Reproduce};
use crate::failure::{End, Failure};
use crate::output::{self, Remake};
use crate::progress;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: Remake,
    seed: u64,
    reps: u32,
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
    };
    if let Some(folder) = &args.out {
        output::check_writable(&folder.join("figure.svg"))?;
    }
    let bar = progress::spinner();
    let hears = |what: &str, done: usize, of: usize| bar.set_message(format!("{what}: {done} of {of}"));
    let rows = match args.paper {
        Paper::Transat | Paper::All => transat(&options, &hears),
    };
    bar.finish_and_clear();
    let rows = rows.map_err(|error| match &error {
        ReproduceError::NoSuchPart { .. } | ReproduceError::TooFewReplications(_) => Failure::usage(&error, None),
        _ => Failure::broken(&error),
    })?;
    let remake = Remake::new(args.seed);
    if args.json {
        output::print_json(&Json { remake, seed: args.seed, reps: args.reps, rows: &rows })?;
    } else {
        let text = render_text(&rows, output::width());
        output::print(&format!("{text}{}\n", remake.line()))?;
    }
    if let Some(folder) = &args.out {
        eprintln!("figures are in {}", folder.display());
    }
    Ok(End::Done)
}
