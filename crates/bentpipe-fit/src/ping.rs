//! A path from a ping log: round trips, their distribution over time, and losses.
//!
//! Lines are those of `ping -D` (with or without `-O`), or three columns: seconds, number, round trip in milliseconds.
//! Pings do not fill the link, so they say nothing about its rate or the length of its queue.

mod lines;
mod steps;

use std::io::BufReader;
use std::path::Path;

use bentpipe_study::stats::{Sample, mean_interval};
use serde::Serialize;

use crate::Bytes;
use crate::error::FitError;
use crate::estimate::{CONFIDENCE, Estimate};
use crate::losses::{Losses, losses};
use crate::round_trip::lower_end;
use lines::{Answer, Lines};

pub use steps::Steps;

/// Number of parts of the log whose quantiles give the intervals.
const BATCHES: usize = 20;

/// Bounds of the median interval between pings, in seconds. `ping -f` sends a hundred or more a second; less than one an hour is no
/// measurement.
const MIN_SPACING: f64 = 1e-5;
const MAX_SPACING: f64 = 3600.0;

/// What a ping log says about a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pings {
    /// Seconds from the first to the last answer.
    pub seconds: f64,
    /// Median interval between pings, in seconds.
    pub spacing: f64,
    /// Size of a ping on the line in bytes, if the log gives it.
    pub packet: Option<u32>,
    /// Round trip of the empty path, seconds.
    pub base_round_trip: Estimate,
    /// Median of the round trips, seconds.
    pub median: Estimate,
    /// Their 95 % quantile, seconds.
    pub p95: Estimate,
    /// Their 99 % quantile, seconds.
    pub p99: Estimate,
    /// Losses of pings or of their answers.
    pub losses: Losses,
    /// Steps of the delay at a fixed period, if there are any.
    pub steps: Option<Steps>,
    /// Rate of the bottleneck: always unknown.
    pub rate: Estimate,
    /// Queue of the bottleneck: always unknown.
    pub queue_time: Estimate,
    /// Pairs of seconds since the start and round trip in seconds.
    pub round_trips: Vec<(f64, f64)>,
    /// The limitations of these figures.
    pub notes: Vec<String>,
}

/// Estimates the path from a log.
pub(crate) fn fit(path: &Path, source: Bytes) -> Result<Pings, FitError> {
    let Lines { answers, packet, copies } = lines::read(BufReader::new(source), path)?;
    let short = |message: &str| FitError::Nothing { path: path.to_owned(), message: message.to_owned() };
    let [first, .., last] = answers[..] else {
        return Err(short("expected a capture (pcap, pcapng), or two answers or more of `ping -D`"));
    };
    let start = first.at;
    let round_trips: Vec<(f64, f64)> = answers.iter().map(|answer| (answer.at - start, answer.took)).collect();
    let times: Vec<f64> = answers.iter().map(|answer| answer.took).collect();
    let gaps: Vec<f64> =
        answers.windows(2).map(|pair| (pair[1].at - pair[0].at) / (pair[1].number - pair[0].number) as f64).collect();
    let grows = || short("expected times that grow from answer to answer");
    let spacing = Sample::new(gaps).map_err(|_| grows())?.median();
    if spacing <= 0.0 {
        return Err(grows());
    }
    if !(MIN_SPACING..=MAX_SPACING).contains(&spacing) {
        return Err(short("expected times in seconds, and pings between 10 us and an hour apart"));
    }
    let sample = Sample::new(times.clone()).map_err(|_| short("expected round trips"))?;
    let shortest = sample.sorted();
    let quantile = |p| rounded(quantile(&sample, &times, p), &answers);
    let base = Estimate::measured(shortest[0], lower_end(shortest[0], shortest[1]), shortest[0]);
    let mut notes = vec![
        "how the round trip divides between the two directions is unknown".to_owned(),
        "a lost ping and a lost answer look the same".to_owned(),
    ];
    if copies > 0 {
        notes.push(format!("{copies} answer{} came twice", if copies == 1 { "" } else { "s" }));
    }
    let unknown = || Estimate::unknown("pings do not fill the link");
    Ok(Pings {
        seconds: last.at - start,
        spacing,
        packet,
        base_round_trip: rounded(base, &answers),
        median: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        losses: losses(fates(&answers)),
        // A mean below what the log rounds away is no measurement.
        steps: steps::find(&answers.iter().map(|answer| (answer.at, answer.took)).collect::<Vec<_>>())
            .filter(|steps| steps.size >= last_digit(sample.median(), &answers)),
        rate: unknown(),
        queue_time: unknown(),
        round_trips,
        notes,
    })
}

/// Widens an interval by half of the last digit that the log gives: its round trips are rounded.
fn rounded(estimate: Estimate, answers: &[Answer]) -> Estimate {
    let Estimate::Measured { value, low, high } = estimate else { return estimate };
    let half = last_digit(value, answers) / 2.0;
    Estimate::measured(value, (low - half).max(0.0), high + half)
}

/// Value of the last digit of round trips of that length, seconds. `ping` gives more digits of short ones, so what counts are answers that
/// took as long or longer.
fn last_digit(took: f64, answers: &[Answer]) -> f64 {
    answers.iter().filter(|answer| answer.took >= took).map(|answer| answer.digit).min_by(f64::total_cmp).unwrap_or(0.0)
}

/// For each ping number from the first to the last answer, true if it is missing.
fn fates(answers: &[Answer]) -> impl Iterator<Item = bool> {
    let missing = answers.windows(2).map(|pair| pair[1].number - pair[0].number - 1);
    std::iter::once(0).chain(missing).flat_map(|missing| std::iter::repeat_n(true, missing as usize).chain([false]))
}

/// A quantile. Neighbouring round trips are similar, so the interval is Student's over the quantiles of parts of the
/// log.
fn quantile(sample: &Sample, times: &[f64], p: f64) -> Estimate {
    let value = sample.quantile(p);
    let of = |times: &[f64]| Sample::new(times.to_vec()).map(|sample| sample.quantile(p));
    let size = times.len() / BATCHES;
    // A part must have values on both sides of the quantile.
    if (size as f64) * (1.0 - p) < 1.0 {
        let needed = (BATCHES as f64 / (1.0 - p)).ceil();
        return Estimate::unknown(format!("{} answers are too few for this quantile: it takes {needed}", times.len()));
    }
    let parts: Vec<f64> = times.chunks_exact(size).filter_map(|part| of(part).ok()).collect();
    match mean_interval(&parts, CONFIDENCE) {
        Ok(interval) => {
            let half = (interval.high - interval.low) / 2.0;
            let sorted = sample.sorted();
            // A stall in one part widens the interval to either side, but no round trip is shorter than that of the empty path.
            let least = lower_end(sorted[0], sorted[1]);
            Estimate::measured(value, (value - half).max(least), value + half)
        }
        Err(_) => Estimate::unknown("too few answers"),
    }
}

#[cfg(test)]
mod tests;
