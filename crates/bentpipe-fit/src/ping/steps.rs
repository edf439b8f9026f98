//! Steps of the delay at fixed instants, as in a network that reassigns its satellites every 15 s.
//!
//! At each candidate instant, the median of the seconds after it is compared with the median of the seconds before it.
//! The score of a period and a phase is the mean size of this difference, without the largest: a stall or a new path is
//! at some phase of every period. If the delay moves only at fixed instants, the score stands out at their phase. It is
//! compared with the scores of all phases of the same period.

use bentpipe_study::stats::Sample;
use serde::Serialize;

/// Seconds considered on each side of an instant.
const SIDE: f64 = 2.0;
/// Candidate periods in seconds. Shorter ones have too few phases to compare with, longer ones too few instants.
const PERIODS: std::ops::RangeInclusive<usize> = 10..=60;
/// Step between candidate phases in seconds.
const PHASE: f64 = 0.5;
/// Minimum number of instants with data on both sides that a phase needs.
const MIN_INSTANTS: usize = 20;
/// One of this many differences is left out of a score: of the fewest instants both ends of a stall.
const ONE_OF: usize = 10;
/// How many standard deviations the best score must stand out of a period's scores, and how many times their mean it
/// must be. Among the 3570 phases of all periods, independent normal scores reach 5 with probability 0.001.
/// Neighbouring phases are similar, so the second bound is also needed.
const DEVIATIONS: f64 = 5.0;
const TIMES: f64 = 2.0;
/// Periods up to so many times as long are looked for in the instants of a phase.
const ONE_IN: std::ops::RangeInclusive<usize> = 2..=6;

/// Steps of the delay with a fixed period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steps {
    /// Seconds between steps.
    pub period: f64,
    /// Phase of the steps: seconds of the clock's minute, modulo the period.
    pub phase: f64,
    /// Mean size of a step, seconds.
    pub size: f64,
    /// Mean difference at other instants in seconds, which noise alone causes.
    pub elsewhere: f64,
}

/// Finds the period whose best phase stands out most. Each sample is a pair of seconds and round trip.
pub(super) fn find(samples: &[(f64, f64)]) -> Option<Steps> {
    let (start, end) = (samples.first()?.0, samples.last()?.0);
    // The difference at each instant of the grid, computed once for all periods.
    let origin = (start / 60.0).floor() * 60.0;
    let count = ((end - origin) / PHASE) as usize;
    if end - start < *PERIODS.start() as f64 * MIN_INSTANTS as f64 || count > 10_000_000 {
        return None;
    }
    let differences: Vec<Option<f64>> = (0..count).map(|n| difference(samples, origin + n as f64 * PHASE)).collect();
    let mut best: Option<(f64, Steps)> = None;
    for period in PERIODS {
        let per = (period as f64 / PHASE) as usize;
        let found: Vec<(f64, f64)> = (0..per).map_while(|phase| score(&differences, phase, per)).collect();
        if found.len() < per {
            continue;
        }
        let (scores, sizes): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
        let (top, size) = scores.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        // Instants closer to the steps than one side's length see them in part.
        let far = |phase: &usize| phase.abs_diff(top).min(per - phase.abs_diff(top)) as f64 * PHASE >= SIDE;
        let at_others = |of: &[f64]| (0..per).filter(far).map(|phase| of[phase]).collect::<Vec<_>>();
        let others = at_others(&scores);
        let (mean, deviation) =
            (bentpipe_study::stats::mean(&others), bentpipe_study::stats::standard_deviation(&others));
        let stands_out = (size - mean) / deviation;
        let beats = || best.as_ref().is_none_or(|(other, _)| stands_out > *other);
        if stands_out > DEVIATIONS
            && size > TIMES * mean
            && !is_of_another_period(&differences, top, per, (size + mean) / 2.0)
            && beats()
        {
            let elsewhere = bentpipe_study::stats::mean(&at_others(&sizes));
            let steps = Steps { period: period as f64, phase: top as f64 * PHASE, size: sizes[top], elsewhere };
            best = Some((stands_out, steps));
        }
    }
    best.map(|(_, steps)| steps)
}

/// The score of a phase, and the mean of all its differences.
fn score(differences: &[Option<f64>], phase: usize, per: usize) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = differences.iter().skip(phase).step_by(per).flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let kept = &all[..all.len() - all.len() / ONE_OF];
    let mean = bentpipe_study::stats::mean;
    (all.len() >= MIN_INSTANTS).then(|| (mean(kept), mean(&all)))
}

/// True if only one of a few instants of a phase has steps, and the rest have noise. This is so if the true period shares a multiple
/// with this one, such as 20 s with 10 or 12 s, and has too few instants in the log to be found itself. `between` is halfway from noise
/// to the mean of all.
fn is_of_another_period(differences: &[Option<f64>], phase: usize, per: usize, between: f64) -> bool {
    let instants: Vec<Option<f64>> = differences.iter().skip(phase).step_by(per).copied().collect();
    let rest = |one_of: usize, left_out: usize| {
        let others = instants.iter().enumerate().filter(|(n, _)| n % one_of != left_out);
        bentpipe_study::stats::mean(&others.filter_map(|(_, difference)| *difference).collect::<Vec<_>>())
    };
    ONE_IN.into_iter().any(|one_of| (0..one_of).any(|left_out| rest(one_of, left_out) < between))
}

/// Size of the change of the median at an instant.
fn difference(samples: &[(f64, f64)], at: f64) -> Option<f64> {
    let place = |time: f64| samples.partition_point(|sample| sample.0 < time);
    let median = |from: f64, to: f64| {
        let part = samples[place(from)..place(to)].iter().map(|sample| sample.1).collect::<Vec<_>>();
        (part.len() >= 5).then(|| Sample::new(part).ok()).flatten().map(|sample| sample.median())
    };
    Some((median(at, at + SIDE)? - median(at - SIDE, at)?).abs())
}
