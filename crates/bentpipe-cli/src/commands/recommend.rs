//! `bentpipe recommend`: the best system for a path, its confidence, and where the answer
//! changes.

mod files;

use std::sync::{Mutex, PoisonError};

use bentpipe_engine::slacp::DATA_HEADER;
use bentpipe_engine::units::Duration;
use bentpipe_engine::{gateway, wire};
use bentpipe_io::note;
use bentpipe_sim::recommend::{
    Candidate, Dimension, Flip, Gain, Options, RecommendError, Recommendation, Stage, System, Verdict, equipped,
    recommend,
};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use crate::args::{Recommend, World};
use crate::failure::{End, Failure, longer_limit};
use crate::output::{self, Grid, Inputs, Remake};
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
    let mut inputs = Inputs::default();
    let scenario = sized(args, &mut inputs)?;
    args.write.as_deref().map_or(Ok(()), |path| files::check(path, &inputs))?;
    let file = args.write.as_deref().filter(|path| files::is_file(path));
    let print = output::beside(&inputs, &[file])?;
    let remake = Remake::new(scenario.seed);
    let options = Options {
        reps: args.reps,
        flip_reps: if args.no_flips { 0 } else { FLIP_REPS.min(args.reps) },
        margin: args.margin,
        threads: args.threads,
        stop: interrupt::asked,
    };
    long_enough(&scenario)?;
    let found = search(&scenario, &options).map_err(|error| match error {
        RecommendError::Unfit(unfit) => Failure::usage(format!("{}: {unfit}", scenario.name), None),
        RecommendError::Run(error) => Failure::broken(error),
    })?;
    if args.json {
        let scenario = scenario.to_toml();
        let (seed, reps, margin) = (remake.seed, args.reps, args.margin);
        print(&output::json(&Json { remake: &remake, seed, reps, margin, recommendation: &found, scenario })?)?;
    } else {
        print(&text(&scenario, &found, args, &remake))?;
    }
    if let (Some(path), Some(verdict), false) = (&args.write, &found.verdict, found.interrupted) {
        let with = equipped(&scenario, verdict.system).map_err(|unfit| Failure::usage(unfit, None))?;
        let comment = format!("# {}: {}\n# {}\n", scenario.name, verdict.system, remake.line());
        let text = format!("{comment}{}", with.to_toml());
        if files::is_file(path) {
            write_whole(path, text.as_bytes()).map_err(Failure::unwritten)?;
        } else {
            for old in files::write(path, &text, &with, &comment)? {
                note!("{} is from an earlier answer and not part of this one", path.join(old).display());
            }
        }
    }
    if found.interrupted {
        // Of two runs it may be another system.
        let unwritten = args.write.as_ref().map(|path| format!("; {} was not written", path.display()));
        note!("interrupted: the answer uses only the complete runs{}", unwritten.unwrap_or_default());
        return Ok(End::Interrupted);
    }
    if found.verdict.is_none() {
        let limit = scenario.time_limit.as_secs_f64();
        let longer = longer_limit(10.0 * limit, limit).map_or(String::new(), |help| format!("; if not: {help}"));
        note!(
            "most transfers did not finish within {limit} s with any system\n  help: `bentpipe run` says whether they were \
             aborted{longer}"
        );
        return Ok(End::Failed);
    }
    Ok(End::Done)
}

/// Refuses a transfer that no system can finish within the time limit.
fn long_enough(scenario: &Scenario) -> Result<(), Failure> {
    let Some(flow) = source::transfer(scenario).and_then(|name| scenario.flows.iter().find(|flow| flow.name == name))
    else {
        return Ok(());
    };
    let (start, limit) = (flow.start.as_secs_f64(), scenario.time_limit.as_secs_f64());
    let Some(time) = flow_limit(scenario, flow).ok().flatten().and_then(|limit| limit.time).map(Duration::as_secs_f64)
    else {
        return Ok(());
    };
    if start + time <= limit {
        return Ok(());
    }
    let message = format!(
        "the links allow `{}` to end after {:.2} s at best: the time limit is {limit} s",
        flow.name,
        start + time
    );
    Err(Failure::usage(message, longer_limit(3.0 * (start + time), start + time)))
}

/// Compares the systems, with a progress bar, until Ctrl-C.
pub(super) fn search(scenario: &Scenario, options: &Options) -> Result<Recommendation, RecommendError> {
    let bar = progress::steps_to_be_counted(progress::ESTIMATED);
    bar.set_message("runs");
    interrupt::heed();
    let shown = Mutex::new(Stage::Choice);
    let found = recommend(scenario, options, &|stage, done, of| {
        let before = std::mem::replace(&mut *shown.lock().unwrap_or_else(PoisonError::into_inner), stage);
        if let Stage::Changes { search, of } = stage
            && before != stage
        {
            // An estimate for one of several paths would be taken for that of all.
            bar.set_style(progress::bar(progress::PLAIN));
            bar.set_message(format!("runs, where it changes: search {search} of {of}"));
        }
        progress::advance(&bar, done as u64, of as u64);
    });
    bar.finish_and_clear();
    found
}

/// The scenario, with its first transfer resized to `--size`.
fn sized(args: &Recommend, inputs: &mut Inputs) -> Result<Scenario, Failure> {
    let scenario = source::load(&args.world, inputs)?;
    let Some(size) = &args.size else { return source::with_hosts(scenario, &args.hosts) };
    bentpipe_study::scenario::size(size).map_err(|error| Failure::usage(format!("--size: {error}"), None))?;
    // A scenario without one is refused with a better message elsewhere.
    let Some(transfer) = source::transfer(&scenario).map(str::to_owned) else {
        return source::with_hosts(scenario, &args.hosts);
    };
    let mut world: World = args.world.clone();
    world.sets.push((format!("flows.{transfer}.bytes"), size.clone()));
    source::with_hosts(source::load(&world, inputs)?, &args.hosts)
}

fn text(scenario: &Scenario, found: &Recommendation, args: &Recommend, remake: &Remake) -> String {
    let limit = match (limit(found), found.limit_s) {
        (Some(plain), Some(min)) if min < plain => {
            format!("; the links allow {plain:.2} s at best, and {min:.2} s where a gateway saves a handshake")
        }
        (_, Some(limit)) => format!("; the links allow {limit:.2} s at best"),
        (_, None) => String::new(),
    };
    let hosts = match args.hosts.as_str() {
        source::AS_WRITTEN => String::new(),
        variant => format!("; hosts: {variant}"),
    };
    let bytes = output::bytes(found.bytes);
    let what = format!("{}: {bytes} of `{}` over `{}`{limit}{hosts}", scenario.name, found.flow, found.link);
    let table = grid(found).text();
    let verdict = found
        .verdict
        .as_ref()
        .map_or(String::new(), |verdict| format!("\n\n{}", sentences(found, verdict, !args.no_flips, args.margin)));
    let notes = notes(found);
    let (what, notes) = (output::prose(&what), output::prose(&format!("{notes}{verdict}")));
    format!("{what}\n\n{table}\n{notes}\n\n{}\n", remake.line())
}

/// The minimum time that the links allow the hosts, seconds: the measure of all systems, so that a faster one has less.
fn limit(found: &Recommendation) -> Option<f64> {
    found.candidates.iter().find(|one| one.system == System::Plain).and_then(|plain| plain.limit_s).or(found.limit_s)
}

/// The systems, their times, and how the chosen one compares.
pub(super) fn grid(found: &Recommendation) -> Grid {
    let faster = if found.deterministic { "chosen is faster" } else { "chosen is faster (95 % CI)" };
    let header = vec!["system", "formulas (s)", "median (s)", "quartiles", "ended", "x limit", faster];
    Grid { header, numbers: 1, rows: found.candidates.iter().map(|candidate| row(candidate, found)).collect() }
}

fn row(candidate: &Candidate, found: &Recommendation) -> Vec<String> {
    let name = candidate.system.name().to_owned();
    if candidate.unfit.is_some() {
        return vec![name, "does not fit".to_owned()];
    }
    if candidate.hopeless {
        return vec![name, output::number(candidate.estimate_s, 1), "not run".to_owned()];
    }
    let [p25, median, p75] = [0.25, 0.5, 0.75].map(|p| candidate.quantile_s(p));
    let ended = candidate.times_s.iter().flatten().count();
    let gain = found.verdict.as_ref().and_then(|verdict| {
        if verdict.system == candidate.system {
            return Some("← chosen".to_owned());
        }
        let gain = verdict.gains.iter().find(|gain| gain.over == candidate.system);
        gain.map(|gain| if found.deterministic { format!("{:.2} x", gain.factor) } else { factor(gain) })
    });
    vec![
        name,
        output::number(candidate.sound_estimate_s(), 1),
        output::number(median, 2),
        format!("{} .. {}", output::number(p25, 2), output::number(p75, 2)),
        format!("{ended} of {}", candidate.times_s.len()),
        output::number(median.zip(limit(found)).map(|(median, limit)| median / limit), 2),
        gain.unwrap_or_else(|| "–".to_owned()),
    ]
}

/// Bytes on the satellite line per byte of data with `split`, over those of the hosts' own segments of 1500 bytes with
/// timestamps.
fn split_headers() -> f64 {
    let payload = f64::from(gateway::max_payload(gateway::max_packet(1500, false)));
    let frame = payload + wire::mux::MAX_DATA_HEADER as f64 + f64::from(DATA_HEADER + gateway::line_overhead(false));
    frame / payload / (1500.0 / 1448.0)
}

fn factor(gain: &Gain) -> String {
    format!("{:.2} x ({:.2} .. {:.2})", gain.factor, gain.low, gain.high)
}

/// What the table does not say.
pub(super) fn notes(found: &Recommendation) -> String {
    let mut lines = Vec::new();
    if let Some(plain) = limit(found) {
        let less = if found.limit_s.is_some_and(|min| min < plain) {
            "; a gateway that saves a handshake may need less"
        } else {
            ""
        };
        lines.push(format!("x limit: median over the minimum time that the links allow the hosts as they are{less}."));
    }
    for candidate in &found.candidates {
        lines.extend(candidate.unfit.as_ref().map(|why| format!("{} does not fit: {why}.", candidate.system)));
        if candidate.hopeless {
            lines.push(format!("{} was not run: the formulas exclude it.", candidate.system));
        }
    }
    if found.deterministic {
        lines.push("Nothing on this path is random: each system was run once.".to_owned());
    }
    let off = |one: &Candidate| !one.hopeless && one.estimate_s.is_some() && one.sound_estimate_s().is_none();
    if found.candidates.iter().any(|one| off(one) && !one.times_s.is_empty()) {
        lines.push("Formulas more than 30 % from the runs are left out: they say nothing about this path.".to_owned());
    }
    lines.iter().map(|line| format!("\n{line}")).collect()
}

/// Why `split` is slower than the hosts as they are, if it is.
fn slower(found: &Recommendation) -> Option<String> {
    let median = |system: System| found.candidates.iter().find(|one| one.system == system)?.median_s();
    let factor = median(System::Split)? / median(System::Plain)?;
    if factor <= 1.0 {
        return None;
    }
    let headers = split_headers();
    let why = match factor <= headers {
        true => format!(
            "its headers take {:.1} % more of the line, and there is less to gain than that",
            (headers - 1.0) * 100.0
        ),
        false => "its headers explain only a part of that; the rest is not explained".to_owned(),
    };
    Some(format!("  split is {factor:.3} times as slow as the hosts as they are: {why}."))
}

/// The verdict in words; `asked`: where the answer changes was to be looked for.
pub(super) fn sentences(found: &Recommendation, verdict: &Verdict, asked: bool, margin: f64) -> String {
    let mut lines = vec![format!("Recommended: {}.", verdict.system)];
    let over_plain = verdict.gains.iter().find(|gain| gain.over == System::Plain);
    if let Some(gain) = over_plain {
        lines.push(match found.deterministic {
            true => format!("  {:.2} times as fast as the hosts as they are.", gain.factor),
            false => format!(
                "  {:.2} times ({:.2} .. {:.2}) as fast as the hosts as they are, faster in {} of {} pairs.",
                gain.factor, gain.low, gain.high, gain.wins, gain.pairs
            ),
        });
    }
    if verdict.fastest != verdict.system {
        let share = margin * 100.0;
        let fastest = verdict.fastest;
        let over = verdict.gains.iter().find(|gain| gain.over == fastest);
        let ended = |system: System| {
            let times = found.candidates.iter().filter(|one| one.system == system).flat_map(|one| &one.times_s);
            times.flatten().count()
        };
        let [few, more] = [fastest, verdict.system].map(ended);
        lines.push(if few < more {
            format!("  {fastest} has the smallest median, but finishes {few} transfers, and {} {more}.", verdict.system)
        } else if found.deterministic {
            format!("  {fastest} is faster, but by less than {share:.0} %, and needs more changes.")
        } else if over.is_none_or(|gain| gain.high < 1.0) {
            format!(
                "  {fastest} is the fastest, but by less than {share:.0} % with 95 % confidence, and needs more changes."
            )
        } else {
            format!(
                "  {fastest} has the smallest median, but these runs do not show that it is faster (95 % confidence); more \
                 runs may (`--reps`). It needs more changes."
            )
        });
    }
    lines.extend(slower(found));
    if asked && !found.searched && found.flips.is_empty() {
        lines.push("The search for path changes that would change the answer was interrupted.".to_owned());
    } else if asked {
        lines.push(match found.flips[..] {
            [] => format!("The answer is the same for all {} that were tried.", varied(&found.held)),
            _ => "The answer changes:".to_owned(),
        });
        lines.extend(found.flips.iter().map(flip));
        for held in &found.held {
            let what = dimension(*held);
            lines
                .push(format!("  Other values of {what} were not tried: the link's schedule, trace or phases set it."));
        }
        if !found.searched {
            lines.push("  The search was interrupted: there may be more.".to_owned());
        }
    }
    lines.join("\n")
}

/// The dimensions that are not `held`, in words.
fn varied(held: &[Dimension]) -> &'static str {
    match (held.contains(&Dimension::Loss), held.contains(&Dimension::Delay)) {
        (false, false) => "losses, sizes and delays",
        (true, false) => "sizes and delays",
        (false, true) => "losses and sizes",
        (true, true) => "sizes",
    }
}

fn dimension(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Loss => "random loss",
        Dimension::Size => "size of the transfer",
        Dimension::Delay => "one-way delay of the satellite link",
    }
}

fn flip(flip: &Flip) -> String {
    let show = |value: f64| match flip.dimension {
        Dimension::Loss => format!("{} %", significant(value * 100.0)),
        Dimension::Size => output::bytes(value.round() as u64),
        Dimension::Delay => format!("{} ms", significant(value * 1000.0)),
    };
    let what = dimension(flip.dimension);
    let side = if flip.there > flip.here { "above" } else { "below" };
    let system = flip.system.map_or("no system finishes most transfers".to_owned(), |system| system.to_string());
    format!("  {what}: {side} {} (not yet at {}) {system}", show(flip.there), show(flip.here))
}

/// Two significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (1 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finishes_fewer_transfers_does_not_need_more_changes() {
        let candidate = |system, times_s: [Option<f64>; 4]| {
            let times_s = times_s.to_vec();
            Candidate { system, unfit: None, estimate_s: None, limit_s: None, hopeless: false, times_s }
        };
        let plain = candidate(System::Plain, [Some(12.0), Some(13.0), Some(11.0), None]);
        let bbr = candidate(System::Bbr, [12.1, 13.1, 11.1, 12.1].map(Some));
        let verdict = Verdict { system: System::Bbr, median_s: 12.1, fastest: System::Plain, gains: Vec::new() };
        let found = Recommendation {
            flow: "download".to_owned(),
            bytes: 1,
            link: "sat".to_owned(),
            limit_s: None,
            candidates: vec![plain, bbr],
            verdict: None,
            deterministic: false,
            flips: Vec::new(),
            held: Vec::new(),
            searched: true,
            interrupted: false,
        };
        let said = sentences(&found, &verdict, false, 0.05);
        let expected =
            format!("  {} has the smallest median, but finishes 3 transfers, and {} 4.", System::Plain, System::Bbr);
        assert_eq!(said.lines().nth(1), Some(&*expected), "{said}");
    }
}
