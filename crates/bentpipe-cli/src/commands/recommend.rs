//! `bentpipe recommend`: the best system for a path, its confidence, and where the answer
//! changes.

use bentpipe_sim::recommend::{
    Candidate, Dimension, Flip, Gain, Options, RecommendError, Recommendation, System, Verdict, equipped, recommend,
};
use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::stats::Sample;
use serde::Serialize;

use crate::args::{Recommend, World};
use crate::failure::{End, Failure};
use crate::output::{self, Grid, Remake};
use crate::{interrupt, progress, source};

/// Replications at each point of the search for changes of the answer; the verdict has more.
const FLIP_REPS: u32 = 6;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    seed: u64,
    reps: u32,
    margin: f64,
    #[serde(flatten)]
    recommendation: &'a Recommendation,
    scenario: String,
}

pub(crate) fn run(args: &Recommend) -> Result<End, Failure> {
    let scenario = sized(args)?;
    if let Some(path) = &args.write {
        output::check_writable(path)?;
    }
    let remake = Remake::new(scenario.seed);
    let options = Options {
        reps: args.reps,
        flip_reps: if args.no_flips { 0 } else { FLIP_REPS.min(args.reps) },
        margin: args.margin,
        threads: args.threads,
        stop: interrupt::asked,
    };
    let found = search(&scenario, &options).map_err(|error| match error {
        RecommendError::Unfit(unfit) => Failure::usage(format!("{}: {unfit}", scenario.name), None),
        RecommendError::Run(error) => Failure::broken(error),
    })?;
    let print = output::beside(&[args.write.as_deref()])?;
    if args.json {
        let scenario = scenario.to_toml();
        let (seed, reps, margin) = (remake.seed, args.reps, args.margin);
        print(&output::json(&Json { remake: &remake, seed, reps, margin, recommendation: &found, scenario })?)?;
    } else {
        print(&text(&scenario, &found, args, &remake))?;
    }
    if let (Some(path), Some(verdict)) = (&args.write, &found.verdict) {
        let with = equipped(&scenario, verdict.system).map_err(|unfit| Failure::usage(unfit, None))?;
        let comment = format!("# {}: {}\n# {}\n", scenario.name, verdict.system, remake.line());
        write_whole(path, format!("{comment}{}", with.to_toml()).as_bytes()).map_err(Failure::broken)?;
    }
    if found.interrupted {
        eprintln!("interrupted: the answer uses only the complete runs");
        return Ok(End::Interrupted);
    }
    if found.verdict.is_none() {
        eprintln!("most transfers did not finish within {} s with any system", scenario.time_limit.as_secs_f64());
        return Ok(End::Failed);
    }
    Ok(End::Done)
}

/// Compares the systems, with a progress bar, until Ctrl-C.
pub(super) fn search(scenario: &Scenario, options: &Options) -> Result<Recommendation, RecommendError> {
    let bar = progress::steps(1);
    interrupt::heed();
    let found = recommend(scenario, options, &|what, done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    });
    bar.finish_and_clear();
    found
}

/// The scenario, with its first transfer resized to `--size`.
fn sized(args: &Recommend) -> Result<Scenario, Failure> {
    let scenario = source::load(&args.world)?;
    let Some(size) = &args.size else { return source::with_hosts(scenario, &args.hosts) };
    // A scenario without one is refused with a better message elsewhere.
    let Some(transfer) = source::transfer(&scenario).map(str::to_owned) else {
        return source::with_hosts(scenario, &args.hosts);
    };
    let mut world: World = args.world.clone();
    world.sets.push((format!("flows.{transfer}.bytes"), size.clone()));
    source::with_hosts(source::load(&world)?, &args.hosts)
}

fn text(scenario: &Scenario, found: &Recommendation, args: &Recommend, remake: &Remake) -> String {
    let limit = found.limit_s.map_or(String::new(), |limit| format!("; the links allow {limit:.2} s at best"));
    let hosts = match args.hosts.as_str() {
        source::AS_WRITTEN => String::new(),
        variant => format!("; hosts: {variant}"),
    };
    let bytes = output::bytes(found.bytes);
    let what = format!("{}: {bytes} of `{}` over `{}`{limit}{hosts}", scenario.name, found.flow, found.link);
    let table = grid(found).text();
    let flips = (!args.no_flips).then_some(&found.flips[..]);
    let verdict = found
        .verdict
        .as_ref()
        .map_or(String::new(), |verdict| format!("\n\n{}", sentences(verdict, flips, args.margin)));
    format!("{what}\n\n{table}{verdict}\n\n{}\n", remake.line())
}

/// The systems, their times, and how the chosen one compares.
pub(super) fn grid(found: &Recommendation) -> Grid {
    let header =
        vec!["system", "formulas (s)", "median (s)", "quartiles", "ended", "x limit", "chosen is faster (95 % CI)"];
    Grid { header, numbers: 1, rows: found.candidates.iter().map(|candidate| row(candidate, found)).collect() }
}

fn row(candidate: &Candidate, found: &Recommendation) -> Vec<String> {
    let name = candidate.system.name().to_owned();
    if let Some(why) = &candidate.unfit {
        return vec![name, "–".to_owned(), why.clone()];
    }
    let estimate = output::number(candidate.estimate_s, 1);
    if candidate.hopeless {
        return vec![name, estimate, "hopeless, not simulated".to_owned()];
    }
    let ended: Vec<f64> = candidate.times_s.iter().flatten().copied().collect();
    let five = Sample::new(ended.clone()).ok().map(|sample| sample.five_numbers());
    let gain = found.verdict.as_ref().and_then(|verdict| {
        if verdict.system == candidate.system {
            return Some("← chosen".to_owned());
        }
        verdict.gains.iter().find(|gain| gain.over == candidate.system).map(factor)
    });
    vec![
        name,
        estimate,
        output::number(five.map(|five| five.median), 2),
        five.map_or("–".to_owned(), |five| format!("{:.2} .. {:.2}", five.p25, five.p75)),
        format!("{} of {}", ended.len(), candidate.times_s.len()),
        output::number(five.zip(found.limit_s).map(|(five, limit)| five.median / limit), 2),
        gain.unwrap_or_else(|| "–".to_owned()),
    ]
}

fn factor(gain: &Gain) -> String {
    format!("{:.2} x ({:.2} .. {:.2})", gain.factor, gain.low, gain.high)
}

/// The verdict in words; `flips` if they were searched for.
pub(super) fn sentences(verdict: &Verdict, flips: Option<&[Flip]>, margin: f64) -> String {
    let mut lines = vec![format!("Recommended: {}.", verdict.system)];
    let over_plain = verdict.gains.iter().find(|gain| gain.over == System::Plain);
    if let Some(gain) = over_plain {
        lines.push(format!(
            "  {} times as fast as plain TCP, faster in {} of {} pairs.",
            factor(gain),
            gain.wins,
            gain.pairs
        ));
    }
    if verdict.fastest != verdict.system {
        let share = margin * 100.0;
        lines.push(format!(
            "  {} is the fastest, but by less than {share:.0} % with 95 % confidence, and needs more changes.",
            verdict.fastest
        ));
    }
    if let Some(flips) = flips {
        lines.push(match flips {
            [] => "The answer is the same for all losses, sizes and delays that were tried.".to_owned(),
            _ => "The answer changes:".to_owned(),
        });
        lines.extend(flips.iter().map(flip));
    }
    lines.join("\n")
}

fn flip(flip: &Flip) -> String {
    let show = |value: f64| match flip.dimension {
        Dimension::Loss => format!("{} %", significant(value * 100.0)),
        Dimension::Size => output::bytes(value.round() as u64),
        Dimension::Delay => format!("{} ms", significant(value * 1000.0)),
    };
    let what = match flip.dimension {
        Dimension::Loss => "random loss",
        Dimension::Size => "size of the transfer",
        Dimension::Delay => "one-way delay of the satellite link",
    };
    let side = if flip.there > flip.here { "above" } else { "below" };
    format!("  {what}: {side} {} (not yet at {}) {}", show(flip.there), show(flip.here), flip.system)
}

/// Two significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (1 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}
