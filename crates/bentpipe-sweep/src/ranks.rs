//! Medians of runs of which some did not finish.
//!
//! An unfinished run takes longer than any finished one, so a median is known unless it falls on one. If such runs were left out, a
//! candidate that stalls in its worst fades would look better than one that survives them.

use bentpipe_study::stats::{Sample, median_interval};
use serde::Serialize;

/// Confidence of all intervals of a sweep.
const CONFIDENCE: f64 = 0.95;

/// A median with its 95 % interval, of order statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// The median.
    pub median: f64,
    /// Lower end; `None` if there are too few values to bound it (fewer than six), or too few that finished.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Values that are known to be between two bounds.
pub(crate) struct Ranks {
    bounds: Option<[Sample; 2]>,
}

impl Ranks {
    /// Runs; `None` did not finish.
    pub(crate) fn of(values: &[Option<f64>]) -> Ranks {
        Ranks::known(Sample::with_unfinished(values.iter().copied()).ok())
    }

    /// `other - base`, pair by pair. If neither of a pair finished, nothing is known of their difference.
    pub(crate) fn of_differences(base: &[Option<f64>], other: &[Option<f64>]) -> Ranks {
        let bounds = |(base, other): (&Option<f64>, &Option<f64>)| match (base, other) {
            (Some(base), Some(other)) => (other - base, other - base),
            (Some(_), None) => (f64::INFINITY, f64::INFINITY),
            (None, Some(_)) => (f64::NEG_INFINITY, f64::NEG_INFINITY),
            (None, None) => (f64::NEG_INFINITY, f64::INFINITY),
        };
        let (low, high): (Vec<f64>, Vec<f64>) = base.iter().zip(other).map(bounds).unzip();
        Ranks { bounds: Sample::with_infinite(low).ok().zip(Sample::with_infinite(high).ok()).map(<[Sample; 2]>::from) }
    }

    fn known(sample: Option<Sample>) -> Ranks {
        Ranks { bounds: sample.map(|sample| [sample.clone(), sample]) }
    }

    /// The median and its interval; `None` without values, or if too few runs finished.
    pub(crate) fn median(&self) -> Option<Median> {
        let [low, high] = self.bounds.as_ref()?;
        let median = low.finite_quantile(0.5).filter(|&median| median == high.median())?;
        let finite = |value: f64| value.is_finite().then_some(value);
        let end = |sample| median_interval(sample, CONFIDENCE).ok();
        Some(Median { median, low: end(low).and_then(|i| finite(i.low)), high: end(high).and_then(|i| finite(i.high)) })
    }
}

/// The median of known values, and its interval; `None` without values.
pub(crate) fn median(values: Vec<f64>) -> Option<Median> {
    Ranks::known(Sample::with_infinite(values).ok()).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten runs of 1 s to 10 s, of which the slowest `unfinished` did not finish.
    fn runs(unfinished: usize) -> Vec<Option<f64>> {
        (1..=10).map(|n| (n <= 10 - unfinished).then_some(n as f64)).collect()
    }

    #[test]
    fn what_did_not_finish_ranks_last() {
        // Ranks 2 and 9 of ten bound the median by 97.9 %.
        let all = Median { median: 5.5, low: Some(2.0), high: Some(9.0) };
        assert_eq!(Ranks::of(&runs(0)).median(), Some(all));
        assert_eq!(Ranks::of(&runs(1)).median(), Some(all), "the slowest one decides nothing");
        assert_eq!(Ranks::of(&runs(2)).median(), Some(Median { high: None, ..all }));
        assert_eq!(Ranks::of(&runs(5)).median(), None);
        assert_eq!(Ranks::of(&[]).median(), None);
    }

    #[test]
    fn pairs_with_one_that_did_not_finish_are_differences_too() {
        let double: Vec<_> = runs(0).iter().map(|run| run.map(|time| 2.0 * time)).collect();
        let all = Median { median: 5.5, low: Some(2.0), high: Some(9.0) };
        assert_eq!(Ranks::of_differences(&runs(0), &double).median(), Some(all));
        // In two pairs the base is infinitely slower: the other differences are 1 s to 8 s.
        let moved = Median { median: 3.5, low: None, high: Some(7.0) };
        assert_eq!(Ranks::of_differences(&runs(2), &double).median(), Some(moved));
        // And in two the other is.
        let moved = Median { median: -3.5, low: Some(-7.0), high: None };
        assert_eq!(Ranks::of_differences(&double, &runs(2)).median(), Some(moved));
        // Four unknown differences may be on either side of the median.
        let neither: Vec<_> = double.iter().zip(runs(4)).map(|(time, base)| base.and(*time)).collect();
        assert_eq!(Ranks::of_differences(&runs(4), &neither).median(), None);
    }
}
