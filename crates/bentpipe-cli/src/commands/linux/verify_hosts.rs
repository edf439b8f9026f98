//! `bentpipe verify-hosts`: the engine's Linux hosts beside the kernel's.

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_emulator::EmulateError;
use bentpipe_emulator::grid::{self, Cell};
use bentpipe_emulator::sockets::{KernelSettings, Went};
use bentpipe_emulator::transfers;
use bentpipe_engine::NoProbe;
use bentpipe_engine::stream::Stream;
use bentpipe_sim::record::Sequence;
use bentpipe_study::report::{Panel, write_whole};
use bentpipe_study::stats::{Sample, median_ratio_interval};
use serde::{Deserialize, Serialize};

use super::beside;
use super::compared::{aside, seconds};
use super::verify::kernel;
use crate::args::VerifyHosts;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, progress};

/// How often ours runs where no random loss decides, each time with other draws of the jitter. Where the times differ, the order of two
/// packets decides, and in the kernel's runs the machine chooses it.
const JITTERS: u64 = 11;
/// Fewest runs of each side for an interval of the difference.
const FEWEST: usize = 5;
const CONFIDENCE: f64 = 0.95;
const DRAWS: usize = 2000;

/// What the times say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The difference of the medians is within the bar.
    Agrees,
    /// It is not, but its interval reaches the bar.
    Undecided,
    /// All of its interval is beyond the bar, or there are too few runs for one.
    Differs,
}

#[derive(Serialize)]
struct Line {
    cell: String,
    /// Medians.
    ours_s: Option<f64>,
    kernel_s: Option<f64>,
    /// All runs; `null` for one that did not end. If losses are random, those with the same number have the same seed, from 1 on.
    ours_runs_s: Vec<Option<f64>>,
    kernel_runs_s: Vec<Option<f64>>,
    difference_percent: Option<f64>,
    /// 95 %, by the bootstrap; of pairs with the same seed, if losses are random.
    difference_interval_percent: Option<(f64, f64)>,
    bar_percent: f64,
    bar_s: f64,
    verdict: Verdict,
}

/// The kernel's times from an earlier run, as printed by `--json`.
#[derive(Deserialize)]
struct Recorded {
    kernel: String,
    cells: Vec<RecordedCell>,
}

#[derive(Deserialize)]
struct RecordedCell {
    cell: String,
    kernel_runs_s: Vec<Option<f64>>,
}

impl Recorded {
    fn read(path: &Path) -> Result<Self, Failure> {
        let refuse = |error: &dyn Display, help| Failure::usage(format!("{}: {error}", path.display()), help);
        let text = std::fs::read_to_string(path).map_err(|error| refuse(&error, None))?;
        let help = "a file that `bentpipe verify-hosts --json` printed".to_owned();
        serde_json::from_str(&text).map_err(|error| refuse(&error, Some(help)))
    }

    fn runs(&self, cell: &Cell, path: &Path) -> Result<&[Option<f64>], Failure> {
        let found = self.cells.iter().find(|recorded| recorded.cell == cell.name);
        let runs = found.map(|recorded| recorded.kernel_runs_s.as_slice()).filter(|runs| !runs.is_empty());
        runs.ok_or_else(|| Failure::usage(format!("{}: no runs of the cell `{}`", path.display(), cell.name), None))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    /// The kernel's release.
    kernel: String,
    cells: Vec<Line>,
    agree: usize,
    undecided: usize,
}

pub(crate) fn verify_hosts(args: &VerifyHosts) -> Result<End, Failure> {
    let remake = Remake::new(1);
    interrupt::heed();
    let chosen = |cell: &Cell| args.only.iter().all(|text| cell.name.contains(text.as_str()));
    let cells: Vec<Cell> = grid::cells().into_iter().filter(chosen).collect();
    if cells.is_empty() {
        let help = "names are such as `GEO, one loss, cubic`".to_owned();
        return Err(Failure::usage(format!("no cell contains {}", args.only.join(" and ")), Some(help)));
    }
    let inputs = args.kernel.as_deref().map(Inputs::of).unwrap_or_default();
    let print = output::beside(&inputs, &[args.plot.as_deref()])?;
    if let Some(path) = &args.plot {
        beside::check(
            path,
            cells.len(),
            "cells",
            "`--only` chooses them by their names, such as `GEO, one loss, cubic`",
        )?;
    }
    args.captures.as_deref().map_or(Ok(()), output::check_folder)?;
    let recorded = match &args.kernel {
        Some(path) => Some((path, Recorded::read(path)?)),
        None => None,
    };
    let bar = progress::steps(cells.len() as u64);
    let (mut lines, mut panels) = (Vec::new(), Vec::new());
    if let Some((path, recorded)) = &recorded {
        // Nothing is timed, so each processor takes a cell.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        lines = at_once(processors, &cells, |cell| {
            bar.set_message(cell.name.clone());
            let line = beside_recorded(cell, args, recorded.runs(cell, path)?)?;
            bar.inc(1);
            Ok(line)
        })?;
    } else {
        for cell in &cells {
            bar.set_message(cell.name.clone());
            let line = compare(cell, args, &remake, &mut panels)?;
            if interrupt::asked() {
                break;
            }
            lines.push(line);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let release = match recorded {
        Some((_, recorded)) => recorded.kernel,
        None => beside::release(),
    };
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let (agree, undecided) = (count(Verdict::Agrees), count(Verdict::Undecided));
    let report = Report { remake: &remake, kernel: release, cells: lines, agree, undecided };
    if args.json {
        print(&output::json(&report)?)?;
    } else {
        print(&text(&report))?;
    }
    if let Some(path) = args.plot.as_ref().filter(|_| !interrupt::asked()) {
        beside::write(path, panels, &remake)?;
    }
    Ok(match (interrupt::asked(), agree + undecided == cells.len()) {
        (true, _) => End::Interrupted,
        (false, true) => End::Done,
        (false, false) => End::Failed,
    })
}

/// Runs a cell on our side: with each of the `seeds` if losses are random, otherwise with several seeds, of which only the jitter depends.
/// Returns the times.
fn simulate(cell: &Cell, args: &VerifyHosts, seeds: u64) -> Result<Vec<Option<f64>>, Failure> {
    let seeds = if cell.is_random { seeds } else { JITTERS };
    let run = |seed| {
        let scenario = cell.of_engine(seed, &args.sets).map_err(Failure::Scenario)?;
        Ok(beside::simulate(&scenario, &mut NoProbe)?[0].map(|at| at.as_secs_f64()))
    };
    (1..=seeds).map(run).collect()
}

/// What the sender of the cell's first run does on our side.
fn watched(cell: &Cell, args: &VerifyHosts) -> Result<Sequence, Failure> {
    let scenario = cell.of_engine(1, &args.sets).map_err(Failure::Scenario)?;
    let mut sequence = Sequence::new(&scenario, None);
    beside::simulate(&scenario, &mut sequence)?;
    Ok(sequence)
}

/// Runs a cell on our side; the kernel's runs are known.
fn beside_recorded(cell: &Cell, args: &VerifyHosts, theirs: &[Option<f64>]) -> Result<Line, Failure> {
    Ok(line(cell, simulate(cell, args, theirs.len() as u64)?, theirs.to_vec()))
}

/// Runs a cell on both sides; adds the panels of its first run, if there is to be a plot.
fn compare(cell: &Cell, args: &VerifyHosts, remake: &Remake, panels: &mut Vec<Panel>) -> Result<Line, Failure> {
    let (seeds, runs) = if cell.is_random { (u64::from(args.seeds), 1) } else { (1, args.runs) };
    let ours = simulate(cell, args, seeds)?;
    let jobs = if cell.is_random { args.jobs } else { 1 };
    let list: Vec<(u64, u32)> = (1..=seeds).flat_map(|seed| (1..=runs).map(move |run| (seed, run))).collect();
    let mut theirs = Vec::new();
    for (at, went) in
        at_once(jobs as usize, &list, |&(seed, run)| on_kernel(cell, args, remake, seed, run))?.iter().enumerate()
    {
        if at == 0 && args.plot.is_some() {
            panels.extend(beside::panels(std::slice::from_ref(&cell.name), &watched(cell, args)?, &went.0));
        }
        theirs.push(went.1);
    }
    Ok(line(cell, ours, theirs))
}

/// Does the work of a list, `jobs` at a time, until all is done, one fails, or an interrupt is asked for. Returns the results in the
/// list's order. Where the work is to wait for the kernel, there may be more jobs than processors.
fn at_once<T: Sync, R: Send>(
    jobs: usize,
    list: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while !interrupt::asked() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = list.get(at) else { break };
            done.push((at, work(item).inspect_err(|_| next.store(list.len(), Ordering::Relaxed))));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(list.len())).map(|_| scope.spawn(worker)).collect();
        let joined =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs a cell on the kernel's hosts once. Returns what went, and the time of the transfer in seconds.
fn on_kernel(
    cell: &Cell,
    args: &VerifyHosts,
    remake: &Remake,
    seed: u64,
    run: u32,
) -> Result<(Vec<Went>, Option<f64>), Failure> {
    let scenario = cell.of_kernel(seed).map_err(Failure::Scenario)?;
    let bulks = transfers::bulks(&scenario).map_err(Failure::broken)?;
    let captures = args.captures.as_ref().map(|folder| Captures::of(cell, seed, folder));
    if let Some(captures) = captures.as_ref().filter(|_| run == 1) {
        let ours = cell.of_engine(seed, &args.sets).map_err(Failure::Scenario)?;
        write_whole(&captures.file(".toml"), ours.to_toml().as_bytes()).map_err(Failure::unwritten)?;
    }
    let watch = args.plot.is_some() && (seed, run) == (1, 1);
    let mut settings = KernelSettings { watch, ..KernelSettings::with_control(cell.control) };
    settings.sysctls.extend(args.sysctl.iter().cloned());
    let capture = captures.as_ref().map(|captures| captures.file(&format!("-kernel-{run}.pcapng")));
    let capture = capture.as_deref().map(|path| (path, remake));
    let ran = aside(|| kernel(&scenario, &bulks, &settings, capture, |_| !interrupt::asked()));
    let (went, _) = ran.map_err(|error| match error {
        EmulateError::Lacking { what, help } => Failure::usage(what, Some(help)),
        other => Failure::broken(other),
    })?;
    let time = seconds(&bulks[0], went[0].transferred.received_at);
    Ok((went, time))
}

fn line(cell: &Cell, ours_runs_s: Vec<Option<f64>>, kernel_runs_s: Vec<Option<f64>>) -> Line {
    let interval = interval(&ours_runs_s, &kernel_runs_s, cell.is_random);
    let [ours, theirs] = [&ours_runs_s, &kernel_runs_s].map(|runs| ended(runs).map(|runs| runs.median()));
    let both = ours.zip(theirs);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Line {
        cell: cell.name.clone(),
        ours_s: ours,
        kernel_s: theirs,
        ours_runs_s,
        kernel_runs_s,
        difference_percent: both.map(|(ours, theirs)| percent(ours / theirs)),
        difference_interval_percent: interval.map(|(low, high)| (percent(low), percent(high))),
        bar_percent: cell.bar,
        bar_s: cell.bar_s,
        verdict: both.map_or(Verdict::Differs, |(ours, theirs)| verdict(cell, ours, theirs, interval)),
    }
}

/// The files of a cell: `LEO-tail-cubic.toml` or, with random losses, `LEO-1-random-cubic-seed-7.toml`.
struct Captures {
    start: PathBuf,
}

impl Captures {
    fn of(cell: &Cell, seed: u64, folder: &Path) -> Self {
        let words = cell.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut name = words.collect::<Vec<_>>().join("-");
        if cell.is_random {
            let _ = write!(name, "-seed-{seed}");
        }
        Captures { start: folder.join(name) }
    }

    fn file(&self, end: &str) -> PathBuf {
        let mut path = self.start.clone().into_os_string();
        path.push(end);
        path.into()
    }
}

fn verdict(cell: &Cell, ours: f64, theirs: f64, interval: Option<(f64, f64)>) -> Verdict {
    if cell.agrees(ours, theirs) {
        Verdict::Agrees
    } else if interval.is_some_and(|ratios| cell.may_agree(ratios, theirs)) {
        Verdict::Undecided
    } else {
        Verdict::Differs
    }
}

/// The interval of the ratio of the medians, if there are enough runs.
fn interval(ours: &[Option<f64>], theirs: &[Option<f64>], paired: bool) -> Option<(f64, f64)> {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = if paired {
        ours.iter().zip(theirs).filter_map(|(ours, theirs)| ours.zip(*theirs)).unzip()
    } else {
        (ours.iter().flatten().copied().collect(), theirs.iter().flatten().copied().collect())
    };
    if ours.len().min(theirs.len()) < FEWEST {
        return None;
    }
    let mut stream = Stream::named(1, "verify-hosts");
    let ratio = median_ratio_interval([&ours, &theirs], paired, CONFIDENCE, DRAWS, &mut stream);
    ratio.ok().map(|interval| (interval.low, interval.high))
}

/// The times of those that ended.
fn ended(times: &[Option<f64>]) -> Option<Sample> {
    Sample::new(times.iter().flatten().copied().collect()).ok()
}

fn text(report: &Report<'_>) -> String {
    let rows = report.cells.iter().map(|line| {
        let spread = |runs: &[Option<f64>]| match ended(runs).as_ref().map(Sample::sorted) {
            None | Some([]) => "–".to_owned(),
            Some([only]) => format!("{only:.3}"),
            Some([first, .., last]) => format!("{first:.3} .. {last:.3}"),
        };
        let interval = line.difference_interval_percent;
        vec![
            line.cell.clone(),
            output::number(line.ours_s, 3),
            output::number(line.kernel_s, 3),
            spread(&line.ours_runs_s),
            spread(&line.kernel_runs_s),
            line.difference_percent.map_or("–".to_owned(), |value| format!("{value:+.2} %")),
            interval.map_or("–".to_owned(), |(low, high)| format!("{low:+.1} .. {high:+.1}")),
            match line.verdict {
                Verdict::Agrees => String::new(),
                Verdict::Undecided => format!("undecided at {} %", line.bar_percent),
                Verdict::Differs => format!("beyond {} %", line.bar_percent),
            },
        ]
    });
    let header = ["cell", "ours (s)", "kernel (s)", "our runs", "kernel's runs", "difference", "95 %", "bar"];
    let table = output::table(&header, 1, rows);
    let more = if report.undecided > 0 {
        format!("; {} undecided, which more --seeds or --runs may decide", report.undecided)
    } else {
        String::new()
    };
    format!(
        "The engine's Linux hosts and those of Linux {}; medians\n\n{table}\n\n{} of {} within the bar{more}\n{}\n",
        report.kernel,
        report.agree,
        report.cells.len(),
        report.remake.line()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 % random, bar 3 %: a difference of 6 % is undecided while the times of seeds differ by more, and beyond the bar once they do not.
    #[test]
    fn an_interval_decides_beyond_the_bar() {
        let cell = grid::cells().into_iter().find(|cell| cell.name == "GEO, 1 % random, cubic").expect("a cell");
        let said = |spread: f64| {
            // Pairs with the difference of -6 % and a noise that no median of them is free of.
            let noise = |seed: u64| 1.0 + spread * ((seed * 7 % 20) as f64 / 10.0 - 0.95);
            let theirs: Vec<_> = (0..20).map(|seed| Some(10.0 + 0.01 * seed as f64)).collect();
            let ours: Vec<_> = (0..20).map(|seed| Some(9.4 * noise(seed))).collect();
            let middle = |values: &[Option<f64>]| ended(values).expect("values").median();
            verdict(&cell, middle(&ours), middle(&theirs), interval(&ours, &theirs, true))
        };
        assert_eq!((said(0.3), said(0.01)), (Verdict::Undecided, Verdict::Differs));
        assert_eq!(verdict(&cell, 9.9, 10.0, None), Verdict::Agrees);
        assert_eq!(verdict(&cell, 9.4, 10.0, None), Verdict::Differs, "too few runs");
    }

    #[test]
    fn the_median_is_of_those_that_ended() {
        let median = |times: &[Option<f64>]| ended(times).map(|times| times.median());
        assert_eq!(median(&[Some(3.0), None, Some(1.0), Some(2.0)]), Some(2.0));
        assert_eq!(ended(&[Some(3.0), None, Some(1.0)]).expect("two").sorted(), [1.0, 3.0]);
        assert_eq!(median(&[Some(3.0), Some(1.0)]), Some(2.0));
        assert_eq!(median(&[None]), None);
    }

    #[test]
    fn there_may_be_more_jobs_than_processors() {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from) + 6;
        let running = AtomicUsize::new(0);
        let list: Vec<usize> = (0..jobs).collect();
        let all_run = at_once(jobs, &list, |_| {
            running.fetch_add(1, Ordering::Relaxed);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while running.load(Ordering::Relaxed) < jobs && std::time::Instant::now() < until {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Ok(running.load(Ordering::Relaxed) == jobs)
        });
        assert_eq!(all_run.expect("no failure"), vec![true; jobs]);
    }
}
