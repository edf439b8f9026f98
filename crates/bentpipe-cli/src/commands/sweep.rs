//! `bentpipe sweep`: a scenario over many values of its keys, every run kept.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bentpipe_io::note;
use bentpipe_sim::record::Measure;
use bentpipe_sweep::{
    CandidateSummary, Holdings, Median, Plan, Progress, Spec, Store, Summary, sweep as work, write_table,
};
use serde::Serialize;

use crate::args::Sweep;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake, counted};
use crate::{interrupt, progress, shipped};

/// The table of all runs, in the folder of the results.
const TABLE: &str = "table.parquet";

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    engine: &'static str,
    seed: u64,
    folder: String,
    #[serde(flatten)]
    state: &'a State,
    #[serde(flatten)]
    summary: Option<&'a Summary>,
}

/// The progress of a sweep.
#[derive(Serialize)]
struct State {
    /// True if all runs are done.
    finished: bool,
    /// True if Ctrl-C or SIGTERM ended this call.
    interrupted: bool,
    /// Runs that are done.
    runs: u64,
    /// Maximum number of runs.
    runs_at_most: u64,
    /// Points that have all their runs.
    points_done: usize,
    /// Points.
    points: usize,
    /// Runs in the folder, whether this sweep wants them or not.
    kept_runs: usize,
    /// Runs of other engines in the folder, which count as not done.
    of_other_engines: usize,
    /// Parquet files of them.
    parts: usize,
    /// Of these runs, those in the journal.
    in_journal: usize,
    /// Bytes at the end of the journal that were cut off or will be.
    torn_bytes: u64,
}

impl State {
    fn new(progress: Progress, holdings: Holdings, finished: bool) -> Self {
        State {
            finished,
            interrupted: interrupt::asked(),
            runs: progress.done,
            runs_at_most: progress.at_most,
            points_done: progress.points_done,
            points: progress.points,
            kept_runs: holdings.runs,
            of_other_engines: holdings.of_other_engines,
            parts: holdings.parts,
            in_journal: holdings.in_journal,
            torn_bytes: holdings.torn_bytes,
        }
    }
}

pub(crate) fn sweep(args: &Sweep) -> Result<End, Failure> {
    if !args.file.exists() {
        let help = "a sweep file names a scenario, and values for its keys: bentpipe sweep --help".to_owned();
        return Err(Failure::usage(format!("there is no sweep file `{}`", args.file.display()), Some(help)));
    }
    let spec = Spec::load(&args.file, &shipped::text).map_err(Failure::Scenario)?;
    let folder = folder(args, &spec);
    let remake = Remake::new(spec.seed);
    let mut plan = Plan::new(spec);
    if args.status {
        return status(args, plan, &folder, &remake);
    }
    Inputs::of(&args.file).refuse(&folder.join(TABLE))?;
    let mut store = Store::open(&folder).map_err(Failure::broken)?;
    let found = store.holdings();
    if found.torn_bytes > 0 {
        note!(
            "{}: cut off {} B at the end of the journal, a run that was being written",
            folder.display(),
            found.torn_bytes
        );
    }
    let bar = progress::steps_to_be_counted(progress::PLAIN);
    let show = |now: Progress, left: Option<Duration>| {
        progress::advance(&bar, now.done, now.at_most);
        bar.set_message(left.map_or("runs".to_owned(), |left| format!("runs, at most {} left", short(left))));
    };
    interrupt::heed();
    let done = work(&mut plan, &mut store, args.threads, &interrupt::asked, &show);
    // From here on, Ctrl-C may end the process: the next call continues from any state of the folder.
    interrupt::heed_no_more();
    bar.finish_and_clear();
    let finished = done.map_err(|error| Failure::broken(kept(&error, &store, &folder)))?;
    // All runs are in the journal: a disk that is too full for the table takes nothing from the report.
    let written = match finished {
        true => tidy(&mut store, &plan, &folder),
        false => Ok(()),
    };
    let state = State::new(plan.progress(), store.holdings(), finished);
    let summary = Summary::new(&plan, &store);
    if args.json {
        let (seed, folder) = (plan.spec().seed, folder.display().to_string());
        let json = Json {
            remake: &remake,
            engine: bentpipe_sweep::ENGINE,
            seed,
            folder,
            state: &state,
            summary: Some(&summary),
        };
        output::print_json(&json)?;
    } else {
        let table = (finished && written.is_ok()).then(|| folder.join(TABLE));
        output::print(&report(&plan, &summary, &folder, &state, table.as_deref(), &remake))?;
    }
    written?;
    if finished {
        return Ok(End::Done);
    }
    note!(
        "interrupted: {} of at most {} are done; the same command continues",
        state.runs,
        counted(state.runs_at_most, "run")
    );
    Ok(End::Interrupted)
}

/// An error, and what it does not change.
fn kept(error: &dyn Display, store: &Store, folder: &Path) -> String {
    let runs = counted(store.holdings().runs as u64, "run");
    format!("{error}\n{runs} kept in {}; the same command continues", folder.display())
}

/// Brings the folder of a finished sweep into its last form.
fn tidy(store: &mut Store, plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let compacted = store.compact();
    compacted.map_err(|error| Failure::broken(kept(&error, store, folder)))?;
    let written = write_table(&folder.join(TABLE), plan, store);
    written.map_err(|error| Failure::broken(kept(&error, store, folder)))
}

/// The folder of the results.
fn folder(args: &Sweep, spec: &Spec) -> PathBuf {
    let beside = args.file.parent().unwrap_or(Path::new(""));
    args.out.clone().unwrap_or_else(|| match &spec.output {
        Some(output) => beside.join(output),
        None => beside.join(format!("{}.sweep", spec.name)),
    })
}

/// What is done, without running anything.
fn status(args: &Sweep, plan: Plan, folder: &Path, remake: &Remake) -> Result<End, Failure> {
    let store = Store::read(folder).map_err(Failure::broken)?;
    let (seed, points) = (plan.spec().seed, plan.points());
    let bar = progress::steps_to_be_counted(progress::ESTIMATED);
    bar.set_message("points");
    let show = |planned: usize| progress::advance(&bar, planned as u64, points as u64);
    let progress = plan.survey(args.threads, |key| store.get(key).map(|row| row.value), &show);
    bar.finish_and_clear();
    let progress = progress.map_err(Failure::broken)?;
    let state = State::new(progress, store.holdings(), progress.points_done == points);
    if args.json {
        let folder = folder.display().to_string();
        let json = Json { remake, engine: bentpipe_sweep::ENGINE, seed, folder, state: &state, summary: None };
        output::print_json(&json)?;
    } else {
        output::print(&format!("{}\n", words(&state, folder)))?;
    }
    Ok(End::Done)
}

fn words(state: &State, folder: &Path) -> String {
    let bound = if state.finished { "" } else { "at most " };
    let mut text = format!(
        "{} of {bound}{} and {} of {} are done\n{}: {} in {} and a journal of {}",
        state.runs,
        counted(state.runs_at_most, "run"),
        state.points_done,
        counted(state.points as u64, "point"),
        folder.display(),
        counted(state.kept_runs as u64, "run"),
        counted(state.parts as u64, "part"),
        state.in_journal,
    );
    if state.of_other_engines > 0 {
        text.push_str(&format!("; {} more are of other versions of bentpipe and do not count", state.of_other_engines));
    }
    text
}

/// The report; `file` is the table of all runs, if it was written.
fn report(
    plan: &Plan,
    summary: &Summary,
    folder: &Path,
    state: &State,
    file: Option<&Path>,
    remake: &Remake,
) -> String {
    let (what, scale) = match summary.measure {
        Measure::SlowestTimeS => ("time of the slowest transfer (s)", 1.0),
        Measure::GoodputBitS => ("goodput of all flows (Mbit/s)", 1e-6),
    };
    let axes: Vec<&str> = plan.spec().axes.iter().map(|axis| axis.key.as_str()).collect();
    let has_others = plan.spec().candidates.len() > 1;
    let difference = format!("minus {}", summary.baseline);
    let mut header = axes.clone();
    header.extend(["candidate", "runs", "median", "95 % CI", "x limit"]);
    if has_others {
        header.extend([difference.as_str(), "95 % CI"]);
    }
    let rows = summary.points.iter().flat_map(|point| {
        point.candidates.iter().map(|candidate| {
            let mut cells: Vec<String> = point.axes.iter().map(|(_, value)| value.clone()).collect();
            cells.extend([candidate.name.clone(), runs(candidate)]);
            cells.extend(median(candidate.value, scale));
            cells.push(output::number(candidate.x_limit, 2));
            if has_others {
                cells.extend(median(candidate.difference, scale));
            }
            cells
        })
    });
    let table = output::table(&header, axes.len() + 1, rows);
    let mut notes =
        vec!["In each repetition all candidates meet the same fades. Intervals are of order statistics.".to_owned()];
    let all = || summary.points.iter().flat_map(|point| &point.candidates);
    let once = summary.points.iter().filter(|point| point.repetitions == Some(1)).count();
    if plan.spec().repetitions > 1 && once > 0 {
        let which = if once == summary.points.len() {
            "here".to_owned()
        } else {
            format!("at {}", counted(once as u64, "point"))
        };
        notes.push(format!("Nothing is random {which}: every seed gives the same run, so only one is made."));
    }
    let unfinished: usize = all().map(|candidate| candidate.unfinished).sum();
    if unfinished > 0 {
        let (runs, count) =
            (counted(unfinished as u64, "run"), if unfinished == 1 { "it counts" } else { "they count" });
        notes.push(format!(
            "{runs} did not finish; {count} as the slowest. A dash stands where too many did not finish for a figure."
        ));
    }
    let table_file = file.map_or(String::new(), |file| format!("all runs: {}\n", file.display()));
    format!(
        "{}: {what}\n\n{table}\n\n{}\n{}\n{table_file}{}\n",
        plan.spec().name,
        output::prose(&notes.join("\n")),
        words(state, folder),
        remake.line()
    )
}

fn runs(candidate: &CandidateSummary) -> String {
    match candidate.unfinished {
        0 => candidate.finished.to_string(),
        unfinished => format!("{} ({unfinished} unfinished)", candidate.finished),
    }
}

/// A median and its interval.
fn median(value: Option<Median>, scale: f64) -> [String; 2] {
    let show = |value: Option<f64>| {
        let text = output::number(value.map(|value| value * scale), 3);
        if text == "-0.000" { "0.000".to_owned() } else { text }
    };
    let interval = value.filter(|value| value.low.is_some() || value.high.is_some());
    [
        show(value.map(|value| value.median)),
        interval.map_or("–".to_owned(), |value| format!("{} .. {}", show(value.low), show(value.high))),
    ]
}

/// A time in the unit that fits.
fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
