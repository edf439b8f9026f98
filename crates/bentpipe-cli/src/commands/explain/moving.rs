//! Links whose settings change while they run, in words.

use std::fmt::Write;

use bentpipe_engine::link::{Distribution, LinkConfig, Phases, Track};
use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::Scenario;

use super::{short, span};
use crate::output;

/// The links of which something changes, and what; empty if there are none.
pub(super) fn moving_text(scenario: &Scenario) -> String {
    let links = scenario.links.iter().map(|link| (&link.name, changes(&link.config)));
    let links: Vec<_> = links.filter(|(_, changes)| !changes.is_empty()).collect();
    let Some(width) = links.iter().map(|(name, _)| name.len()).max() else { return String::new() };
    let mut out = "Links that change\n".to_owned();
    for (name, changes) in links {
        let _ = writeln!(out, "  {name:<width$} {}", changes.join("; "));
    }
    out
}

fn changes(link: &LinkConfig) -> Vec<String> {
    let rate = |bits: u64| if bits == 0 { "0".to_owned() } else { output::rate(bits as f64) };
    let ms = |ticks: u64| format!("{} ms", short(Duration::from_ticks(ticks).as_millis_f64()));
    let percent = |value: u64| format!("{} %", short(Track::probability(value).get() * 100.0));
    let mut all = Vec::new();
    if let Some(trace) = &link.rate_trace {
        let length = Duration::from_millis(trace.millis().last().copied().unwrap_or(0));
        let mean = output::rate(trace.mean().bits_per_second() as f64);
        all.push(format!("rate by a trace of opportunities, mean {mean}, again after {}", span(length)));
    }
    if let Some(moves) = &link.moves {
        all.extend(moves.rate.as_ref().map(|track| between("rate", track, &rate)));
        all.extend(moves.delay.as_ref().map(|track| between("delay", track, &ms)));
        all.extend(moves.loss.as_ref().map(|track| between("loss", track, &percent)));
        all.extend(moves.queue.as_ref().map(|_| "queue limit by a schedule".to_owned()));
    }
    if let Some(Phases { length, outage, rate: rates, delay, .. }) = &link.phases {
        let mut drawn = Vec::new();
        drawn.extend(
            rates.map(|(min, max)| format!("rate {} to {}", rate(min.bits_per_second()), rate(max.bits_per_second()))),
        );
        drawn.extend(delay.map(|(min, max)| format!("delay {} to {}", ms(min.as_ticks()), ms(max.as_ticks()))));
        if *outage > Duration::ZERO {
            drawn.push(format!("an outage of {} at its start", span(*outage)));
        }
        all.push(format!("a phase each {}: {}", span(*length), drawn.join(", ")));
    }
    all.extend(link.jitter.as_ref().map(|jitter| format!("jitter adds {} to the delay", drawn_from(&jitter.delay))));
    all
}

/// The range of a drawn time, or its mean if it has no bounds.
fn drawn_from(times: &Distribution) -> String {
    let ms = |time: &Duration| format!("{} ms", short(time.as_millis_f64()));
    match times {
        Distribution::Fixed(time) => ms(time),
        Distribution::Uniform(low, high) => format!("{} to {}", ms(low), ms(high)),
        Distribution::ExponentialClipped { min, max, .. } | Distribution::ExponentialTruncated { min, max, .. } => {
            format!("{} to {}", ms(min), ms(max))
        }
        Distribution::Exponential { mean } | Distribution::Normal { mean, .. } | Distribution::Pareto { mean, .. } => {
            format!("{} on average", ms(mean))
        }
    }
}

/// The extremes and the mean of a track, and when it starts again.
fn between(what: &str, track: &Track, show: &dyn Fn(u64) -> String) -> String {
    let (min, max) = (track.values().min().unwrap_or(0), track.values().max().unwrap_or(0));
    // What does not repeat has no mean.
    let mean = |period| format!(", mean {}, again after {}", show(track.mean()), span(period));
    format!("{what} {} to {}{}", show(min), show(max), track.period().map_or(String::new(), mean))
}
