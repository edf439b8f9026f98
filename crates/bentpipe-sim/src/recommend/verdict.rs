//! The choice among systems that were simulated with the same seeds.

use bentpipe_study::stats::paired_ratio;
use serde::Serialize;

use super::{Candidate, System};

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// The speed-up of one system over another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The other system.
    pub over: System,
    /// Geometric mean of the pairwise ratios of the times; above 1 if the choice is faster.
    pub factor: f64,
    /// Lower end of its 95 % confidence interval (Student's t on logarithms).
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of pairs in which the choice was faster.
    pub wins: usize,
    /// Number of pairs in which both transfers finished.
    pub pairs: usize,
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The recommended system.
    pub system: System,
    /// Median time with it, seconds.
    pub median_s: f64,
    /// The system with the smallest median. If it is not the choice, the choice is simpler and as good.
    pub fastest: System,
    /// Its gain over each of the other simulated systems.
    pub gains: Vec<Gain>,
}

/// The gain of one system over another. `exact`: a single pair is sufficient.
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

/// The simplest system that is as good as the fastest, of those that finish the most transfers. It is as good unless it is
/// shown to be slower, or if it is shown with confidence to be slower by at most `margin`. `exact`: nothing is random,
/// and each was run once.
pub(super) fn choose(candidates: &[Candidate], margin: f64, exact: bool) -> Option<Verdict> {
    let medians: Vec<_> = candidates.iter().map(Candidate::median_s).collect();
    let known = || (0..candidates.len()).filter_map(|n| Some((n, medians[n]?)));
    let (fastest, _) = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ended = |n: usize| candidates[n].times_s.iter().flatten().count();
    let as_good = |n: usize| {
        n == fastest
            || gain(&candidates[fastest], &candidates[n], exact)
                .is_some_and(|gain| (gain.low <= 1.0 && !exact) || gain.high <= 1.0 + margin)
    };
    let good: Vec<_> = known().filter(|&(n, _)| as_good(n)).collect();
    let most = good.iter().map(|&(n, _)| ended(n)).max()?;
    let (chosen, median_s) = good.into_iter().find(|&(n, _)| ended(n) == most)?;
    let others = (0..candidates.len()).filter(|&n| n != chosen);
    Some(Verdict {
        system: candidates[chosen].system,
        median_s,
        fastest: candidates[fastest].system,
        gains: others.filter_map(|n| gain(&candidates[chosen], &candidates[n], exact)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(system: System, times: &[f64]) -> Candidate {
        let times_s = times.iter().map(|&time| (time > 0.0).then_some(time)).collect();
        Candidate { system, unfit: None, estimate_s: None, limit_s: None, hopeless: false, times_s }
    }

    fn chosen(plain: &[f64], bbr: &[f64], exact: bool) -> (System, System) {
        let candidates = [candidate(System::Plain, plain), candidate(System::Bbr, bbr)];
        let verdict = choose(&candidates, 0.05, exact).expect("they finish");
        (verdict.system, verdict.fastest)
    }

    #[test]
    fn what_needs_changes_must_be_shown_to_be_faster() {
        // Always slower by a factor of 1.2.
        let plain = [12.0, 13.2, 10.8, 12.0];
        let faster = plain.map(|time| time / 1.2);
        assert_eq!(chosen(&plain, &faster, false), (System::Bbr, System::Bbr));
        // Faster in the median and in three of four pairs, but the interval of the ratio extends below 1.
        assert_eq!(chosen(&plain, &[9.0, 12.0, 10.0, 20.0], false), (System::Plain, System::Bbr));
        let candidates = [candidate(System::Plain, &plain), candidate(System::Bbr, &[9.0, 12.0, 10.0, 20.0])];
        let gains = choose(&candidates, 0.05, false).expect("they finish").gains;
        let [gain] = gains[..] else { panic!("one other system: {gains:?}") };
        // Only the last pair is won.
        assert_eq!((gain.over, gain.wins, gain.pairs), (System::Bbr, 1, 4));
        // Shown to be faster, but by less than the margin.
        assert_eq!(chosen(&plain, &plain.map(|time| time / 1.02), false), (System::Plain, System::Bbr));
        // Without random draws, one run is sufficient.
        assert_eq!(chosen(&[12.0], &[11.0], true), (System::Bbr, System::Bbr));
        assert_eq!(chosen(&[12.0], &[11.9], true), (System::Plain, System::Bbr));
        // A system that does not always finish is not as good.
        assert_eq!(chosen(&[12.0, 13.0, 11.0, 0.0], &[12.0, 12.5, 11.0, 12.0], false).0, System::Bbr);
        // Nor is it if it is the fastest, by less than the margin.
        let (plain, bbr) = ([12.0, 13.0, 11.0, 12.0, 0.0], [12.1, 13.1, 11.1, 12.1, 12.1]);
        assert_eq!(chosen(&plain, &bbr, false), (System::Bbr, System::Plain));
        // Where the other is far slower, the fastest remains.
        assert_eq!(chosen(&plain, &bbr.map(|time| 3.0 * time), false), (System::Plain, System::Plain));
    }
}
