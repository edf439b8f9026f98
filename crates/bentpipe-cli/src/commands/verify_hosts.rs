//! `bentpipe verify-hosts`: the engine's Linux hosts beside the kernel's.

use bentpipe_emulator::EmulateError;
use bentpipe_emulator::grid::{self, Cell};
use bentpipe_emulator::sockets::KernelSettings;
use bentpipe_emulator::transfers;
use bentpipe_study::report::Panel;
use serde::Serialize;

use super::beside;
use super::verify::{aside, kernel, seconds};
use crate::args::VerifyHosts;
use crate::failure::{End, Failure};
use crate::output::{self, Remake};
use crate::{interrupt, progress};

#[derive(Serialize)]
struct Line {
    cell: String,
    /// Medians.
    ours_s: Option<f64>,
    kernel_s: Option<f64>,
    /// All runs of the kernel, in order of time.
    kernel_runs_s: Vec<f64>,
    difference_percent: Option<f64>,
    bar_percent: f64,
    bar_s: f64,
    agrees: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    /// The kernel's release.
    kernel: String,
    cells: Vec<Line>,
    agree: usize,
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
    let print = output::beside(&[args.plot.as_deref()])?;
    if let Some(path) = &args.plot {
        beside::check(
            path,
            cells.len(),
            "cells",
            "`--only` chooses them by their names, such as `GEO, one loss, cubic`",
        )?;
    }
    let bar = progress::steps(cells.len() as u64);
    let (mut lines, mut panels) = (Vec::new(), Vec::new());
    for cell in &cells {
        bar.set_message(cell.name.clone());
        let line = compare(cell, args, &mut panels)?;
        if interrupt::asked() {
            break;
        }
        lines.push(line);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let agree = lines.iter().filter(|line| line.agrees).count();
    let report = Report { remake: &remake, kernel: release, cells: lines, agree };
    if args.json {
        print(&output::json(&report)?)?;
    } else {
        print(&text(&report))?;
    }
    if let Some(path) = args.plot.as_ref().filter(|_| !interrupt::asked()) {
        beside::write(path, panels, &remake)?;
    }
    Ok(match (interrupt::asked(), agree == cells.len()) {
        (true, _) => End::Interrupted,
        (false, true) => End::Done,
        (false, false) => End::Failed,
    })
}

/// Runs a cell; adds the panels of its first run, if there is to be a plot.
fn compare(cell: &Cell, args: &VerifyHosts, panels: &mut Vec<Panel>) -> Result<Line, Failure> {
    let seeds = if cell.is_random { u64::from(args.seeds) } else { 1 };
    let runs = if cell.is_random { 1 } else { args.runs };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for seed in 1..=seeds {
        let scenario = cell.scenario(false, seed, &args.sets).map_err(Failure::Scenario)?;
        let (times, sequence) = beside::simulate(&scenario)?;
        ours.push(times[0].map(|at| at.as_secs_f64()));
        let scenario = cell.scenario(true, seed, &[]).map_err(Failure::Scenario)?;
        let bulks = transfers::bulks(&scenario).map_err(Failure::broken)?;
        for _ in 0..runs {
            if interrupt::asked() {
                break;
            }
            let watch = args.plot.is_some() && theirs.is_empty();
            let mut settings = KernelSettings { watch, ..KernelSettings::with_control(cell.control) };
            settings.sysctls.extend(args.sysctl.iter().cloned());
            let run = aside(|| kernel(&scenario, &bulks, &settings, |_| !interrupt::asked()));
            let (went, _) = run.map_err(|error| match error {
                EmulateError::Lacking { what, help } => Failure::usage(what, Some(help)),
                other => Failure::broken(other),
            })?;
            if watch {
                panels.extend(beside::panels(std::slice::from_ref(&cell.name), &sequence, &went));
            }
            theirs.push(seconds(&bulks[0], went[0].transferred.received_at));
        }
    }
    let (ours, (theirs, kernel_runs_s)) = (sorted(ours).0, sorted(theirs));
    let both = ours.zip(theirs);
    Ok(Line {
        cell: cell.name.clone(),
        ours_s: ours,
        kernel_s: theirs,
        kernel_runs_s,
        difference_percent: both.map(|(ours, theirs)| (ours / theirs - 1.0) * 100.0),
        bar_percent: cell.bar,
        bar_s: cell.bar_s,
        agrees: both.is_some_and(|(ours, theirs)| cell.agrees(ours, theirs)),
    })
}

/// The median of the times of those that ended, and these.
fn sorted(times: Vec<Option<f64>>) -> (Option<f64>, Vec<f64>) {
    let mut done: Vec<f64> = times.into_iter().flatten().collect();
    done.sort_by(f64::total_cmp);
    let middle = done.len() / 2;
    let median = match done.len() % 2 {
        1 => done.get(middle).copied(),
        _ => middle.checked_sub(1).map(|lower| (done[lower] + done[middle]) / 2.0),
    };
    (median, done)
}

fn text(report: &Report<'_>) -> String {
    let rows = report.cells.iter().map(|line| {
        let spread = match &line.kernel_runs_s[..] {
            [] => "–".to_owned(),
            runs => format!("{:.3} .. {:.3}", runs[0], runs[runs.len() - 1]),
        };
        vec![
            line.cell.clone(),
            output::number(line.ours_s, 3),
            output::number(line.kernel_s, 3),
            spread,
            line.difference_percent.map_or("–".to_owned(), |value| format!("{value:+.2} %")),
            if line.agrees { String::new() } else { format!("beyond {} %", line.bar_percent) },
        ]
    });
    let table = output::table(&["cell", "ours (s)", "kernel (s)", "kernel's runs (s)", "difference", "bar"], 1, rows);
    format!(
        "The engine's Linux hosts and those of Linux {}; medians\n\n{table}\n\n{} of {} within the bar\n{}\n",
        report.kernel,
        report.agree,
        report.cells.len(),
        report.remake.line()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_those_that_ended() {
        assert_eq!(sorted(vec![Some(3.0), None, Some(1.0), Some(2.0)]), (Some(2.0), vec![1.0, 2.0, 3.0]));
        assert_eq!(sorted(vec![Some(3.0), Some(1.0)]).0, Some(2.0));
        assert_eq!(sorted(vec![None]).0, None);
    }
}
