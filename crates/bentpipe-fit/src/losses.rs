//! How losses follow one another: independently or in bursts.
//!
//! There are two models of a sequence of segments. In the first, each is lost with the same probability. In the second,
//! Gilbert's two-state chain (Gilbert 1960; Elliott 1963 with certain loss in the bad state), the probability depends
//! on whether the previous segment was lost. The likelihood of both follows from the counts of neighbouring pairs.
//!
//! Given the numbers of segments and losses, independent losses make every arrangement equally likely, so the number of
//! loss runs has a known distribution (Wald and Wolfowitz 1940): with n losses among N, r runs have probability C(n-1,
//! r-1) C(N-n+1, r) / C(N, n). The probability of this many runs or fewer is exact: it needs neither asymptotics nor
//! resampling.

use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};
use statrs::function::gamma::ln_gamma;

use crate::estimate::{CONFIDENCE, Estimate};

/// If the probability of so few runs is below this, the losses are not independent.
const LEVEL: f64 = 0.01;
/// Quantile of the normal distribution for a two-sided 95 % interval.
const NORMAL: f64 = 1.959_964;

/// The model that the data prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefers {
    /// No preference: at most one segment was lost, or losses of a full queue are among the losses.
    Neither,
    /// Independent losses explain the runs.
    Independent,
    /// Losses come in bursts.
    Bursts,
}

/// The losses of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Number of segments whose fate is known.
    pub segments: u64,
    /// Number of lost segments.
    pub lost: u64,
    /// Number of runs of losses with no arriving segment in between.
    pub runs: u64,
    /// Probability of loss.
    pub probability: Estimate,
    /// Which model is preferred.
    pub prefers: Prefers,
    /// Natural logarithm of the likelihood of bursts over that of independent losses.
    pub log_likelihood_ratio: f64,
    /// Probability that independent losses make this few runs.
    pub chance: f64,
    /// Mean number of segments lost in a row.
    pub burst_segments: Estimate,
    /// Probability that a segment is lost after one that arrived.
    pub start: Estimate,
}

impl Losses {
    /// The same if a full queue may have caused some of them: `without` is the estimate from the others.
    pub(crate) fn or(mut self, without: &Losses) -> Self {
        self.probability = both(&self.probability, &without.probability);
        self.burst_segments = both(&self.burst_segments, &without.burst_segments);
        self.start = both(&self.start, &without.start);
        if self.prefers != without.prefers {
            self.prefers = Prefers::Neither;
        }
        self
    }

    /// The same if a full queue may have caused any of them: their number is then an upper bound, and their arrangement
    /// says nothing about the link.
    pub(crate) fn with_those_of_a_queue(mut self, why: &str) -> Self {
        if let Estimate::Measured { high, .. } = self.probability {
            self.probability = Estimate::at_most(high, why);
            self.burst_segments = Estimate::unknown(why);
            self.start = Estimate::unknown(why);
            self.prefers = Prefers::Neither;
        }
        self
    }
}

/// The smallest estimate that covers both.
fn both(a: &Estimate, b: &Estimate) -> Estimate {
    match (a, b) {
        (&Estimate::Measured { value, low, high }, &Estimate::Measured { low: other, high: more, .. }) => {
            Estimate::measured(value, low.min(other), high.max(more))
        }
        (&Estimate::Measured { value, high, .. }, &Estimate::AtMost { value: more, .. }) => {
            Estimate::measured(value, 0.0, high.max(more))
        }
        _ => a.clone(),
    }
}

/// Exact interval of a probability, from `hits` of `tries` (Clopper and Pearson 1934). Without hits the lower end is 0, and the upper end
/// is one-sided: 3 / n for large n.
pub fn proportion(hits: u64, tries: u64) -> Estimate {
    if tries == 0 {
        return Estimate::unknown("nothing was tried");
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (h, n) = (hits as f64, tries as f64);
    let beta = |a: f64, b: f64, p: f64| Beta::new(a, b).expect("shapes above 0").inverse_cdf(p);
    if hits == 0 {
        let upper = 1.0 - (1.0 - CONFIDENCE).powf(1.0 / n);
        return Estimate::at_most(
            upper,
            format!("nothing was lost of {tries} packets, and 3 / n is the limit of that"),
        );
    }
    let high = if hits == tries { 1.0 } else { beta(h + 1.0, n - h, 1.0 - tail) };
    Estimate::measured(h / n, beta(h, n - h + 1.0, tail), high)
}

/// Logarithm of the binomial coefficient.
fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let factorial = |n: u64| ln_gamma(n as f64 + 1.0);
    factorial(n) - factorial(k) - factorial(n - k)
}

/// Probability that `lost` losses at random places among `all` segments make at most `runs` runs.
fn few_runs(all: u64, lost: u64, runs: u64) -> f64 {
    let whole = ln_choose(all, lost);
    let of = |r: u64| (ln_choose(lost - 1, r - 1) + ln_choose(all - lost + 1, r) - whole).exp();
    // These are the terms of a distribution, so summing the shorter end loses no accuracy.
    let below: f64 = (1..=runs).map(of).sum();
    below.min(1.0)
}

fn ln_likelihood(hits: u64, tries: u64) -> f64 {
    let part = |count: u64| if count == 0 { 0.0 } else { count as f64 * (count as f64 / tries as f64).ln() };
    part(hits) + part(tries - hits)
}

/// Fits both models to the fates of segments in order; true means lost.
pub fn losses(fates: impl Iterator<Item = bool>) -> Losses {
    let (mut segments, mut lost, mut runs) = (0_u64, 0_u64, 0_u64);
    // Counts of neighbouring pairs after an arrival and after a loss: all pairs, and those that end with a loss.
    let mut after = [[0_u64; 2]; 2];
    let mut before: Option<bool> = None;
    for fate in fates {
        segments += 1;
        lost += u64::from(fate);
        runs += u64::from(fate && before != Some(true));
        if let Some(before) = before {
            after[usize::from(before)][usize::from(fate)] += 1;
        }
        before = Some(fate);
    }
    let [good, bad] = after.map(|[arrived, lost]| (lost, arrived + lost));
    let pairs = (good.0 + bad.0, good.1 + bad.1);
    let ratio = [good, bad].map(|(hits, tries)| ln_likelihood(hits, tries)).iter().sum::<f64>()
        - ln_likelihood(pairs.0, pairs.1);
    let chance = if lost < 2 { 1.0 } else { few_runs(segments, lost, runs) };
    let prefers = match lost {
        0 | 1 => Prefers::Neither,
        _ if chance < LEVEL => Prefers::Bursts,
        _ => Prefers::Independent,
    };
    let probability = match (prefers, proportion(lost, segments)) {
        (Prefers::Bursts, Estimate::Measured { value, .. }) => in_bursts(value, lost, runs),
        (_, independent) => independent,
    };
    Losses {
        segments,
        lost,
        runs,
        probability,
        prefers,
        log_likelihood_ratio: ratio,
        chance,
        burst_segments: burst_segments(lost, runs),
        // Of the pairs that begin with an arrival: a run at the beginning follows none.
        start: proportion(good.0, good.1),
    }
}

/// The interval of the loss probability with bursts. The number of bursts is nearly Poisson and their length geometric,
/// so the variance of the losses is that of a compound sum. Relative to the square of their number it is (1 + v) /
/// runs, where v = 1 - 1/m is the squared coefficient of variation of a geometric length with mean m. The logarithm is
/// taken as normal.
fn in_bursts(value: f64, lost: u64, runs: u64) -> Estimate {
    let variation = 1.0 - runs as f64 / lost as f64;
    let factor = (NORMAL * ((1.0 + variation) / runs as f64).sqrt()).exp();
    Estimate::measured(value, value / factor, (value * factor).min(1.0))
}

/// The mean length of a run. After each loss, a geometric run ends with probability runs / lost; the interval of that
/// probability is inverted.
fn burst_segments(lost: u64, runs: u64) -> Estimate {
    match proportion(runs, lost) {
        Estimate::Measured { value, low, high } => Estimate::measured(1.0 / value, 1.0 / high, 1.0 / low),
        _ => Estimate::unknown("nothing was lost"),
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::stream::Stream;

    use super::*;

    #[test]
    fn runs_by_counting() {
        // Two losses among four: six arrangements, three of them with both side by side.
        assert!((few_runs(4, 2, 1) - 0.5).abs() < 1e-12);
        assert!((few_runs(4, 2, 2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_exact_interval_as_tabled() {
        // Clopper and Pearson, 5 of 20: 8.66 % to 49.10 %.
        let Estimate::Measured { low, high, .. } = proportion(5, 20) else { panic!("an interval") };
        assert!((low - 0.0866).abs() < 5e-5 && (high - 0.4910).abs() < 5e-5, "{low} {high}");
        // None of 1000: 1 - 0.05^(1/1000) = 0.0029912.
        assert!((proportion(0, 1000).value().expect("a bound") - 0.002_991_2).abs() < 1e-7);
    }

    /// A chain that stays lossy with probability `stay`.
    fn chain(seed: u64, count: usize, start: f64, stay: f64) -> Losses {
        let mut stream = Stream::named(seed, "test/losses");
        let mut last = false;
        losses((0..count).map(|_| {
            last = stream.uniform() < if last { stay } else { start };
            last
        }))
    }

    #[test]
    fn independent_losses_are_rarely_called_bursts() {
        // At a level of 1 %, at most 4 of 400 sequences are expected (the count is discrete); more than 13 have
        // probability 1e-4.
        let wrong = (0..400).filter(|&seed| chain(seed, 3000, 0.01, 0.01).prefers == Prefers::Bursts).count();
        assert!(wrong <= 13, "{wrong}");
    }

    #[test]
    fn intervals_of_bursts_hold_the_truth() {
        // Mean length 3; probability of loss 0.002 / (0.002 + 1/3). 400 sequences, 95 %: 20 misses, deviation 4.4; 4.5 deviations.
        let (stay, start) = (2.0 / 3.0, 0.002);
        let truth = start / (start + 1.0 - stay);
        let mut missed = [0; 3];
        for seed in 0..400 {
            let fit = chain(seed, 20_000, start, stay);
            assert_eq!(fit.prefers, Prefers::Bursts);
            missed[0] += u32::from(!fit.burst_segments.allows(3.0));
            missed[1] += u32::from(!fit.probability.allows(truth));
            missed[2] += u32::from(!fit.start.allows(start));
        }
        assert!(missed.iter().all(|&missed| missed <= 40), "{missed:?}");
    }

    /// Two runs and one arrival: of the one pair that begins with an arrival, the second is a loss.
    #[test]
    fn a_loss_may_be_first_and_last() {
        let fit = losses([true, false, true].into_iter());
        assert_eq!((fit.runs, fit.start.value()), (2, Some(1.0)));
        assert_eq!(losses([true].into_iter()).start, Estimate::unknown("nothing was tried"));
    }

    /// Without the doubtful ones nothing is lost: the interval begins at 0, and nothing is said about bursts.
    #[test]
    fn an_estimate_that_covers_both() {
        let with = losses((0..400).map(|n| n % 8 < 4));
        assert_eq!(with.prefers, Prefers::Bursts);
        let without = losses(std::iter::repeat_n(false, 300));
        let both = with.clone().or(&without);
        let Estimate::Measured { value, high, .. } = with.probability else { panic!("{with:?}") };
        assert_eq!((both.probability, both.prefers), (Estimate::measured(value, 0.0, high), Prefers::Neither));
        assert_eq!(with.clone().or(&with).prefers, Prefers::Bursts);
    }

    #[test]
    fn nothing_lost_is_an_upper_bound() {
        let fit = losses(std::iter::repeat_n(false, 300));
        assert_eq!((fit.prefers, fit.lost), (Prefers::Neither, 0));
        assert!(matches!(fit.probability, Estimate::AtMost { value, .. } if (value - 0.009_936).abs() < 1e-5));
        assert!(matches!(fit.burst_segments, Estimate::Unknown { .. }));
        assert_eq!(losses(std::iter::empty()).segments, 0);
    }
}
