//! `bentpipe compare`: variants under the same fades.

use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_engine::NoProbe;
use bentpipe_io::note;
use bentpipe_sim::record::{Comparison, Measure, Ratio, Sequence, VariantRow};
use bentpipe_sim::{RunResult, Timers, in_parallel, run_with};
use bentpipe_study::report::Figure;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::junit::{self, Case};
use super::plots;
use crate::args::{Compare, Kind};
use crate::fail_if::{self, Bound, Reading};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::{interrupt, progress, source};

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    seed: u64,
    interrupted: bool,
    reps_asked: u32,
    #[serde(flatten)]
    comparison: &'a Comparison,
    scenario: String,
}

pub(crate) fn compare(args: &Compare) -> Result<End, Failure> {
    let mut inputs = Inputs::default();
    let base = source::load(&args.world, &mut inputs)?;
    fail_if::check_names(&args.fail_if, args.variants.iter().map(String::as_str))?;
    fail_if::check(&args.fail_if, &readings(Measure::of(&base), &args.variants, None))?;
    if let Some(path) = &args.junit {
        output::check_writable(path)?;
    }
    if let Some(path) = &args.plot {
        plots::check(path)?;
    }
    let print = output::beside(&inputs, &[args.plot.as_deref(), args.junit.as_deref()])?;
    let named = |name: &String| Ok((name.clone(), source::with_variant(&base, name)?));
    let scenarios = args.variants.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
    let remake = Remake::new(base.seed);
    let is_random = scenarios.iter().any(|(_, scenario)| !scenario.random_parts().is_empty());
    let reps = if is_random { args.reps } else { 1 };
    let runs = replications(reps, args.threads, &scenarios, base.seed)?;
    let comparison = Comparison::new(&scenarios, &runs, base.seed);
    let interrupted = interrupt::asked();
    if args.json {
        let scenario = base.to_toml();
        let (reps_asked, seed) = (args.reps, base.seed);
        let json = Json { remake: &remake, seed, interrupted, reps_asked, comparison: &comparison, scenario };
        print(&output::json(&json)?)?;
    } else {
        let explain = ["explain", "--resolved"].map(str::to_owned).into_iter();
        let resolve = output::shell("bentpipe", explain.chain(source::arguments(&args.world, None, base.seed)));
        print(&text(&base, &comparison, is_random, &remake, &resolve))?;
    }
    if let Some(path) = args.plot.as_ref().filter(|_| !interrupted) {
        let figure = figure(args.kind, &scenarios, &runs)?;
        if interrupt::asked() {
            note!("interrupted: no plot was written");
            return Ok(End::Interrupted);
        }
        plots::write(path, &figure, &remake)?;
    }
    if interrupted {
        note!("interrupted: {} of {} replications are complete", runs.len(), reps);
        return Ok(End::Interrupted);
    }
    for row in comparison.variants.iter().filter(|row| row.unfinished > 0) {
        note!("{}: {}", row.variant, unfinished(row, comparison.reps, base.time_limit.as_secs_f64()));
    }
    let readings = readings(comparison.measure, &args.variants, Some(&comparison));
    let kept = fail_if::kept(&args.fail_if, &readings)?;
    if let Some(path) = &args.junit {
        let cases = cases(&comparison, base.time_limit.as_secs_f64(), &args.fail_if, &readings);
        junit::write(path, &base.name, &cases, &remake)?;
    }
    Ok(if !kept || comparison.variants.iter().any(|row| row.unfinished > 0) { End::Failed } else { End::Done })
}

/// How many replications did not finish, and why.
fn unfinished(row: &VariantRow, reps: usize, time_limit_s: f64) -> String {
    let mut why: Vec<_> = row.aborted.iter().map(|(reason, count)| format!("{count} aborted ({reason})")).collect();
    let late = row.unfinished - row.aborted.values().sum::<usize>();
    why.extend((late > 0).then(|| format!("{late} at the time limit of {time_limit_s} s")));
    format!("{} of {} did not finish: {}", row.unfinished, output::counted(reps as u64, "replication"), why.join(", "))
}

/// A distribution over the replications, or a quantity over the time of the first one, which is run again for it.
fn figure(kind: Kind, scenarios: &[(String, Scenario)], runs: &[Vec<RunResult>]) -> Result<Figure, Failure> {
    let Some(plot) = kind.plot() else { return Ok(plots::replications(scenarios, runs)) };
    let observed = scenarios.iter().map(|(_, scenario)| {
        let mut sequence = Sequence::at_bottleneck(scenario);
        let goes_on = |_| !interrupt::asked();
        run_with(scenario, scenario.seed, &mut sequence, Timers::Lazy, goes_on).map_err(Failure::broken)?;
        Ok(sequence)
    });
    Ok(plots::compared(scenarios, &observed.collect::<Result<Vec<_>, Failure>>()?, plot))
}

/// What `--fail-if` can be about; before the runs without values.
fn readings<'a>(measure: Measure, variants: &'a [String], comparison: Option<&Comparison>) -> Vec<Reading<'a>> {
    let median = match measure {
        Measure::SlowestTimeS => "time",
        Measure::GoodputBitS => "goodput",
    };
    let of = |(n, scope): (usize, &'a String)| {
        let row = comparison.map(|comparison| &comparison.variants[n]);
        let value = |pick: fn(&VariantRow) -> Option<f64>| row.and_then(pick);
        let all = [
            (median, value(|row| row.median)),
            ("x_limit", value(|row| row.x_limit)),
            ("unfinished", value(|row| Some(row.unfinished as f64))),
            ("ratio", value(|row| row.ratio_to_first.map(|ratio| ratio.estimate))),
        ];
        // The first variant has no ratio to itself.
        let known = all.into_iter().filter(move |(figure, _)| *figure != "ratio" || n > 0);
        known.map(move |(figure, value)| Reading { scope, figure, value })
    };
    variants.iter().enumerate().flat_map(of).collect()
}

/// Each variant as tests: that its transfers finish, and each condition that is about it.
fn cases(comparison: &Comparison, time_limit_s: f64, bounds: &[Bound], readings: &[Reading<'_>]) -> Vec<Case> {
    let of = |row: &VariantRow| {
        let time_s = row.median.filter(|_| comparison.measure == Measure::SlowestTimeS);
        let case = |name: &str, failure| Case { class: row.variant.clone(), name: name.to_owned(), time_s, failure };
        let unfinished = (row.unfinished > 0).then(|| unfinished(row, comparison.reps, time_limit_s));
        let mut cases = vec![case("finishes", unfinished)];
        let own = || readings.iter().filter(|reading| reading.scope == row.variant);
        for bound in bounds.iter().filter(|bound| own().any(|reading| bound.is_about(reading))) {
            cases.push(case(bound.text(), own().find_map(|reading| bound.failure(reading))));
        }
        cases
    };
    comparison.variants.iter().flat_map(of).collect()
}

/// The complete replications, in the order of their seeds.
fn replications(
    reps: u32,
    threads: usize,
    scenarios: &[(String, Scenario)],
    first: u64,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let bar = progress::steps(u64::from(reps));
    bar.set_message("replications");
    interrupt::heed();
    let seeds = (0..u64::from(reps)).map(|n| first.wrapping_add(n)).collect();
    let done = AtomicUsize::new(0);
    let runs = in_parallel(seeds, threads, |seed| {
        let mut results = Vec::with_capacity(scenarios.len());
        for (_, scenario) in scenarios {
            if interrupt::asked() {
                return Ok(None);
            }
            results.push(run_with(scenario, seed, &mut NoProbe, Timers::Lazy, |_| !interrupt::asked())?);
        }
        // An aborted run ends like any other.
        if interrupt::asked() {
            return Ok(None);
        }
        bar.set_position(done.fetch_add(1, Ordering::Relaxed) as u64 + 1);
        Ok(Some(results))
    });
    bar.finish_and_clear();
    Ok(runs.map_err(Failure::broken)?.into_iter().flatten().collect())
}

const UNFINISHED: &str =
    "A run that did not finish counts as the slowest. A dash stands where too many did not finish for a figure.";

fn text(scenario: &Scenario, comparison: &Comparison, is_random: bool, remake: &Remake, resolve: &str) -> String {
    // Rates are shown in Mbit/s.
    let (what, scale) = match comparison.measure {
        Measure::SlowestTimeS => ("time of the slowest transfer (s)", 1.0),
        Measure::GoodputBitS => ("goodput of all flows (Mbit/s)", 1e-6),
    };
    let show = |value: Option<f64>| output::number(value.map(|value| value * scale), 2);
    let range = |low: Option<f64>, high: Option<f64>| match (low, high) {
        (None, None) => show(None),
        _ => format!("{} .. {}", show(low), show(high)),
    };
    let rows = comparison.variants.iter().map(|row: &VariantRow| {
        vec![
            row.variant.clone(),
            match row.unfinished {
                0 => row.finished.to_string(),
                unfinished => format!("{} ({unfinished} unfinished)", row.finished),
            },
            show(row.median),
            range(row.p25, row.p75),
            show(row.mean),
            range(row.mean_low, row.mean_high),
            row.ratio_to_first.as_ref().map_or("–".to_owned(), ratio),
            output::number(row.x_limit, 2),
        ]
    });
    let first = comparison.variants.first().map_or("", |row| &row.variant);
    let over = format!("over {first} (95 % CI)");
    let header = ["variant", "runs", "median", "quartiles", "mean", "95 % CI", &over, "x limit"];
    let table = output::table(&header, 1, rows);
    let pairs = match is_random {
        true => "In each replication all variants meet the same fades.",
        false => "Nothing here is random: every seed gives the same run, so only one is made.",
    };
    let unfinished = comparison.variants.iter().any(|row| row.unfinished > 0);
    let unfinished = if unfinished { format!("{UNFINISHED}\n") } else { String::new() };
    format!(
        "{}: {what}\n\n{table}\n\n{unfinished}{pairs}\n{}\nscenario in full: \
         {resolve}\n",
        scenario.name,
        remake.line()
    )
}

fn ratio(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3} .. {high:.3})", ratio.estimate),
        _ => format!("{:.3}", ratio.estimate),
    }
}
