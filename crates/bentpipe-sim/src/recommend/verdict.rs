//! The choice among systems that were simulated under the same seeds.

use bentpipe_study::stats::{Sample, paired_ratio};
use serde::Serialize;

use super::{Candidate, System};

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// The speed-up of one system over another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The other one.
    pub over: System,
    /// Geometric mean of the ratio of the times, pair by pair; above 1 if the choice is faster.
    pub factor: f64,
    /// Its 95 % confidence interval (Student's t on logarithms).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs in which the choice was faster.
    pub wins: usize,
    /// Pairs in which both transfers finished.
    pub pairs: usize,
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The recommended system.
    pub system: System,
    /// Median time with it, seconds.
    pub median_s: f64,
    /// The system with the smallest median; the choice is simpler and as good.
    pub fastest: System,
    /// Its gain over each of the other simulated systems.
    pub gains: Vec<Gain>,
}

/// The median, with unfinished transfers as infinite.
fn median(candidate: &Candidate) -> Option<f64> {
    let finished: Vec<f64> = candidate.times_s.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    if finished.is_empty() || 2 * finished.iter().filter(|time| time.is_infinite()).count() >= finished.len() {
        return None;
    }
    // Unfinished ones are above the median: any larger number gives the same result.
    let top = finished.iter().copied().filter(|time| time.is_finite()).fold(0.0, f64::max);
    Some(Sample::new(finished.into_iter().map(|time| time.min(top)).collect()).ok()?.median())
}

/// The gain of one over another; `exact` if one pair says all.
fn gain(choice: &Candidate, other: &Candidate, exact: bool) -> Option<Gain> {
    let pairs = choice.times_s.iter().zip(&other.times_s).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let (ours, others): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if let ([a], [b], true) = (&ours[..], &others[..], exact) {
        let (factor, wins) = (b / a, usize::from(a < b));
        return Some(Gain { over: other.system, factor, low: factor, high: factor, wins, pairs: 1 });
    }
    let ratio = paired_ratio(&ours, &others, CONFIDENCE).ok()?;
    let wins = ours.iter().zip(&others).filter(|(a, b)| a < b).count();
    let (low, high) = (ratio.interval.low, ratio.interval.high);
    Some(Gain { over: other.system, factor: ratio.estimate, low, high, wins, pairs: ours.len() })
}

/// The simplest system that is as good as the fastest: not slower by more than `margin`, with confidence, and with as
/// many finished transfers. `exact`: nothing is drawn, and each was run once.
pub(super) fn choose(candidates: &[Candidate], margin: f64, exact: bool) -> Option<Verdict> {
    let medians: Vec<_> = candidates.iter().map(median).collect();
    let known = || (0..candidates.len()).filter_map(|n| Some((n, medians[n]?)));
    let (fastest, _) = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ended = |n: usize| candidates[n].times_s.iter().flatten().count();
    let as_good = |n: usize| {
        n == fastest
            || ended(n) >= ended(fastest)
                && gain(&candidates[fastest], &candidates[n], exact).is_some_and(|gain| gain.high <= 1.0 + margin)
    };
    let (chosen, median_s) = known().find(|&(n, _)| as_good(n))?;
    let others = (0..candidates.len()).filter(|&n| n != chosen);
    Some(Verdict {
        system: candidates[chosen].system,
        median_s,
        fastest: candidates[fastest].system,
        gains: others.filter_map(|n| gain(&candidates[chosen], &candidates[n], exact)).collect(),
    })
}
