//! `bentpipe fit`: the path behind a capture or a log of pings.

use std::path::Path;

use bentpipe_fit::losses::{Losses, Prefers};
use bentpipe_fit::{Estimate, FitError, Pings, Transfer};
use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use crate::args::Fit;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};

#[derive(Serialize)]
struct Json<'a> {
    bentpipe: &'static str,
    command: &'a str,
    #[serde(flatten)]
    fit: &'a bentpipe_fit::Fit,
    scenario: &'a str,
}

pub(crate) fn fit(args: &Fit) -> Result<End, Failure> {
    if let Some(path) = &args.write {
        output::check_writable(path)?;
    }
    let print = output::beside(&Inputs::of(&args.capture), &[args.write.as_deref()])?;
    let remake = Remake::new(1);
    let (found, text) = measured(&args.capture, &remake.command, || false)?;
    if let Some(path) = &args.write {
        // What is written can be read.
        Scenario::parse(&text, &path.display().to_string(), &[]).map_err(Failure::Scenario)?;
        write_whole(path, text.as_bytes()).map_err(Failure::unwritten)?;
    }
    if args.json {
        let json = Json { bentpipe: remake.bentpipe, command: &remake.command, fit: &found, scenario: &text };
        print(&output::json(&json)?)?;
    } else {
        print(&match &found {
            bentpipe_fit::Fit::Transfer(transfer) => of_transfer(transfer, &args.capture),
            bentpipe_fit::Fit::Pings(pings) => of_pings(pings, &args.capture),
        })?;
    }
    Ok(End::Done)
}

/// The estimates from a file, and the text of a scenario that behaves so. `command` is how it is made again. The file is read no further
/// once `stop` returns true.
///
/// # Errors
/// Fails if the file cannot be read, has nothing that can be used, or if it was stopped.
pub fn measured(path: &Path, command: &str, stop: fn() -> bool) -> Result<(bentpipe_fit::Fit, String), Failure> {
    if path == Path::new("-") {
        let help = "give its name: a file can be read twice, which is needed".to_owned();
        return Err(Failure::usage("the capture cannot come from standard input", Some(help)));
    }
    let found = bentpipe_fit::fit_until(path, stop).map_err(|error| match error {
        FitError::Io { error: ref cause, .. } if cause.kind() != std::io::ErrorKind::NotFound => Failure::broken(error),
        _ => Failure::usage(error, None),
    })?;
    let name = path.file_stem().map_or("measured".into(), |stem| stem.to_string_lossy());
    let text = bentpipe_fit::scenario(&found, &name, &format!("measured: {command}"));
    Ok((found, text))
}

/// A row: name, value, and interval or reason.
fn row(name: &str, estimate: &Estimate, show: impl Fn(f64) -> String) -> Vec<String> {
    let (value, rest) = match estimate {
        Estimate::Measured { value, low, high } => (show(*value), format!("{} to {}", show(*low), show(*high))),
        Estimate::AtLeast { value, why } => (format!("≥ {}", show(*value)), why.clone()),
        Estimate::AtMost { value, why } => (format!("≤ {}", show(*value)), why.clone()),
        Estimate::Unknown { why } => ("–".to_owned(), format!("cannot be estimated: {why}")),
    };
    vec![name.to_owned(), value, rest]
}

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

fn bytes(count: f64) -> String {
    output::bytes(count.max(0.0).round() as u64)
}

/// Three significant digits, in percent.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = if value > 0.0 { (2 - value.log10().floor() as i32).clamp(0, 6) as usize } else { 0 };
    format!("{value:.decimals$} %")
}

fn losses(losses: &Losses) -> Vec<Vec<String>> {
    let mut rows = vec![row("loss", &losses.probability, percent)];
    if losses.prefers == Prefers::Bursts {
        rows.push(row("  burst", &losses.burst_segments, |length| format!("{length:.2} packets")));
    }
    let Losses { lost, segments, runs, log_likelihood_ratio: ratio, chance, .. } = losses;
    let verdict = match losses.prefers {
        Prefers::Neither if *lost < 2 => {
            format!("{lost} of {segments} packets: too few to tell single losses from bursts")
        }
        Prefers::Neither => format!("{lost} of {segments} packets: single losses cannot be told from bursts"),
        Prefers::Independent => format!(
            "independent: with independent losses, {lost} losses form {runs} runs or fewer with probability {chance:.2}"
        ),
        Prefers::Bursts => {
            let word = if *runs == 1 { "run" } else { "runs" };
            format!(
                "in bursts: {lost} losses in {runs} {word}, a log-likelihood {ratio:.1} above that of independent losses, which form so few runs with probability {chance:.0e}"
            )
        }
    };
    rows.push(vec!["  process".to_owned(), String::new(), verdict]);
    rows
}

fn page(head: &str, rows: Vec<Vec<String>>, notes: &[String]) -> String {
    let table = output::wrapped(&["", "estimate", "95 % interval, or why there is none"], rows);
    let notes: Vec<String> = notes.iter().map(|note| format!("- {note}\n")).collect();
    format!("{}\n\n{table}\n\n{}", output::prose(head), output::prose(&notes.concat()))
}

fn of_transfer(transfer: &Transfer, capture: &Path) -> String {
    let Transfer { from, to, near, seconds, .. } = transfer;
    let head = format!(
        "{}: {from} to {to}, {} in {seconds:.3} s, captured near the {near}",
        capture.display(),
        output::bytes(transfer.bytes)
    );
    let mut rows = vec![
        row("rate", &transfer.rate, output::rate),
        row("base round trip", &transfer.base_round_trip, ms),
        row("longest wait in the queue", &transfer.queue_time, ms),
        row("queue", &transfer.queue_bytes, bytes),
    ];
    if transfer.queue_losses > 0 {
        let what = "lost while the queue was full; not counted below".to_owned();
        rows.push(vec!["  overflow".to_owned(), format!("{} packets", transfer.queue_losses), what]);
    }
    rows.extend(losses(&transfer.losses));
    page(&head, rows, &transfer.notes)
}

fn of_pings(pings: &Pings, capture: &Path) -> String {
    let answers = pings.round_trips.len();
    let head = format!(
        "{}: {answers} answers in {:.1} s, one ping in {}",
        capture.display(),
        pings.seconds,
        ms(pings.spacing)
    );
    let mut rows = vec![
        row("rate", &pings.rate, output::rate),
        row("base round trip", &pings.base_round_trip, ms),
        row("  median", &pings.median, ms),
        row("  95 %", &pings.p95, ms),
        row("  99 %", &pings.p99, ms),
        row("queue", &pings.queue_time, ms),
    ];
    rows.extend(losses(&pings.losses));
    if let Some(steps) = pings.steps {
        let what = format!(
            "mean {}, {:.1} s after each full minute and so on; at other times {}",
            ms(steps.size),
            steps.phase,
            ms(steps.elsewhere)
        );
        rows.push(vec!["steps".to_owned(), format!("every {:.0} s", steps.period), what]);
    }
    page(&head, rows, &pings.notes)
}
