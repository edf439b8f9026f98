//! The choice among systems that were simulated under the same seeds.

use bentpipe_study::stats::{Sample, paired_ratio};
use serde::Serialize;

use super::{Candidate, System};

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// What one system gains over another: how many times faster it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The other one.
    pub over: System,
    /// Geometric mean of the ratio of the times, pair by pair; above 1 where the choice is faster.
    pub factor: f64,
    /// Its 95 % confidence interval (Student's t on logarithms).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs in which the choice was faster.
    pub wins: usize,
    /// Pairs in which both transfers ended.
    pub pairs: usize,
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What to put on the path.
    pub system: System,
    /// Median time with it, seconds.
    pub median_s: f64,
    /// The system with the least median; the choice changes less, and is as good.
    pub fastest: System,
    /// What it gains over each of the others that was simulated.
    pub gains: Vec<Gain>,
}

/// The median, where a transfer that did not end took for ever.
fn median(candidate: &Candidate) -> Option<f64> {
    let finished: Vec<f64> = candidate.times_s.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    if finished.is_empty() || 2 * finished.iter().filter(|time| time.is_infinite()).count() >= finished.len() {
        return None;
    }
    // Those that did not end lie above the middle: any number above the others says the same.
    let top = finished.iter().copied().filter(|time| time.is_finite()).fold(0.0, f64::max);
    Some(Sample::new(finished.into_iter().map(|time| time.min(top)).collect()).ok()?.median())
}

fn gain(choice: &Candidate, other: &Candidate) -> Option<Gain> {
    let pairs = choice.times_s.iter().zip(&other.times_s).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let (ours, others): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let ratio = paired_ratio(&ours, &others, CONFIDENCE).ok()?;
    let wins = ours.iter().zip(&others).filter(|(a, b)| a < b).count();
    let (low, high) = (ratio.interval.low, ratio.interval.high);
    Some(Gain { over: other.system, factor: ratio.estimate, low, high, wins, pairs: ours.len() })
}

/// The simplest system that is as good as the fastest: not slower by more than `margin`, with confidence, and with as
/// many transfers that ended.
pub(super) fn choose(candidates: &[Candidate], margin: f64) -> Option<Verdict> {
    let medians: Vec<_> = candidates.iter().map(median).collect();
    let known = || (0..candidates.len()).filter_map(|n| Some((n, medians[n]?)));
    let (fastest, _) = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ended = |n: usize| candidates[n].times_s.iter().flatten().count();
    let as_good = |n: usize| {
        n == fastest
            || ended(n) >= ended(fastest)
                && gain(&candidates[fastest], &candidates[n]).is_some_and(|gain| gain.high <= 1.0 + margin)
    };
    let (chosen, median_s) = known().find(|&(n, _)| as_good(n))?;
    let others = (0..candidates.len()).filter(|&n| n != chosen);
    Some(Verdict {
        system: candidates[chosen].system,
        median_s,
        fastest: candidates[fastest].system,
        gains: others.filter_map(|n| gain(&candidates[chosen], &candidates[n])).collect(),
    })
}
