//! Statistics of samples drawn from our runs: the bootstrap, and the range for samples of a paper's size.
//!
//! A paper prints a statistic of, say, 20 runs; we have 200. The printed value is confirmed if a sample of 20 of ours
//! could plausibly give it: the statistic is computed for many random subsets of 20 runs, and the middle 90 % or 95 %
//! of the results is the range. Runs are drawn, not flows: four flows that shared a link belong together.

use bentpipe_engine::stream::Stream;

use super::sample::quantile_of_sorted;
use super::{Interval, StatsError, check_level, check_values};

/// How samples are drawn from a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subsets {
    /// Units in the population.
    pub population: usize,
    /// Units in a sample: the paper's number of runs.
    pub size: usize,
    /// Number of samples.
    pub draws: usize,
}

impl Subsets {
    /// The range that holds the middle `level` (0..1) of each of `K` statistics. `statistics` receives the indices of
    /// the drawn units.
    ///
    /// Units are drawn without replacement if the population is at least twice the sample, otherwise with replacement
    /// (the bootstrap): subsets that share most of their units would be too similar.
    ///
    /// # Errors
    /// Fails for an empty population, no draws, a level outside 0..1, or a statistic that is not finite.
    pub fn ranges<const K: usize>(
        self,
        level: f64,
        stream: &mut Stream,
        mut statistics: impl FnMut(&[usize]) -> [f64; K],
    ) -> Result<[Interval; K], StatsError> {
        check_level(level)?;
        let min = self.population.min(self.size).min(self.draws);
        if min == 0 {
            return Err(StatsError::TooFew { have: min, need: 1 });
        }
        let mut order: Vec<usize> = (0..self.population).collect();
        let mut drawn: [Vec<f64>; K] = std::array::from_fn(|_| Vec::with_capacity(self.draws));
        let mut picked = vec![0; self.size];
        for _ in 0..self.draws {
            if self.population >= 2 * self.size {
                // The first `size` steps of Fisher and Yates's shuffle.
                for i in 0..self.size {
                    order.swap(i, i + below(stream, self.population - i));
                }
                picked.copy_from_slice(&order[..self.size]);
            } else {
                picked.fill_with(|| below(stream, self.population));
            }
            for (values, value) in drawn.iter_mut().zip(statistics(&picked)) {
                values.push(value);
            }
        }
        for values in &mut drawn {
            check_values(values, 1)?;
            values.sort_unstable_by(f64::total_cmp);
        }
        Ok(drawn.map(|values| middle(&values, level)))
    }
}

/// Percentile bootstrap: the confidence interval of a statistic of independent values (Efron 1979).
///
/// # Errors
/// Fails for fewer than two values, one that is not finite, a confidence outside 0..1, or a statistic that is not
/// finite.
pub fn bootstrap_interval(
    values: &[f64],
    confidence: f64,
    draws: usize,
    stream: &mut Stream,
    statistic: impl Fn(&[f64]) -> f64,
) -> Result<Interval, StatsError> {
    check_values(values, 2)?;
    let n = values.len();
    let mut drawn = Vec::with_capacity(n);
    let [interval] = Subsets { population: n, size: n, draws }.ranges(confidence, stream, |picked| {
        drawn.clear();
        drawn.extend(picked.iter().map(|&i| values[i]));
        [statistic(&drawn)]
    })?;
    Ok(interval)
}

/// Percentile bootstrap: the confidence interval of the median of `a` over that of `b`. `paired`: values at the
/// same position were measured under the same seed, and are drawn together.
///
/// # Errors
/// As [`bootstrap_interval`], for either; also for pairs of different number, and values not above zero.
pub fn median_ratio_interval(
    [a, b]: [&[f64]; 2],
    paired: bool,
    confidence: f64,
    draws: usize,
    stream: &mut Stream,
) -> Result<Interval, StatsError> {
    for values in [a, b] {
        check_values(values, 2)?;
        if let Some(index) = values.iter().position(|&value| value <= 0.0) {
            return Err(StatsError::BadValue { index, value: values[index] });
        }
    }
    if paired && a.len() != b.len() {
        return Err(StatsError::Unpaired { left: a.len(), right: b.len() });
    }
    let pick = |n: usize, stream: &mut Stream| (0..n).map(|_| below(stream, n)).collect::<Vec<_>>();
    let median = |values: &[f64], picked: &[usize]| {
        let mut drawn: Vec<f64> = picked.iter().map(|&i| values[i]).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        quantile_of_sorted(&drawn, 0.5)
    };
    let mut ratios: Vec<f64> = (0..draws)
        .map(|_| {
            let first = pick(a.len(), stream);
            let second = if paired { first.clone() } else { pick(b.len(), stream) };
            median(a, &first) / median(b, &second)
        })
        .collect();
    check_values(&ratios, 1)?;
    check_level(confidence)?;
    ratios.sort_unstable_by(f64::total_cmp);
    Ok(middle(&ratios, confidence))
}

/// A whole number in 0..n. The bias of scaling 53 random bits is below n / 2^53.
fn below(stream: &mut Stream, n: usize) -> usize {
    ((stream.uniform() * n as f64) as usize).min(n - 1)
}

fn middle(sorted: &[f64], level: f64) -> Interval {
    let tail = (1.0 - level) / 2.0;
    Interval { low: quantile_of_sorted(sorted, tail), high: quantile_of_sorted(sorted, 1.0 - tail), confidence: level }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Sample, mean, mean_interval};

    fn stream() -> Stream {
        Stream::named(1, "test/resample")
    }

    #[test]
    fn a_subset_holds_no_unit_twice() {
        let subsets = Subsets { population: 10, size: 5, draws: 200 };
        let mut seen = [false; 10];
        let ranges = subsets.ranges(0.9, &mut stream(), |picked| {
            let mut sorted = picked.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 5);
            sorted.iter().for_each(|&i| seen[i] = true);
            [0.0]
        });
        assert!(ranges.is_ok() && seen.iter().all(|&s| s));
    }

    /// Pairs that differ by 2 % each always have that ratio, however they are drawn; the same values unpaired do
    /// not.
    #[test]
    fn medians_of_pairs_are_drawn_together() {
        let a: Vec<f64> = (1..=15).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|value| value * 1.02).collect();
        let both = |paired| median_ratio_interval([&b, &a], paired, 0.95, 500, &mut stream()).expect("values");
        let (pairs, others) = (both(true), both(false));
        assert!((pairs.low - 1.02).abs() < 1e-12 && (pairs.high - 1.02).abs() < 1e-12, "{pairs:?}");
        assert!(others.low < 0.8 && others.high > 1.25, "{others:?}");
        let refused = median_ratio_interval([&b, &a[1..]], true, 0.95, 10, &mut stream());
        assert_eq!(refused, Err(StatsError::Unpaired { left: 15, right: 14 }));
        let refused = median_ratio_interval([&a, &[1.0, 0.0]], false, 0.95, 10, &mut stream());
        assert_eq!(refused, Err(StatsError::BadValue { index: 1, value: 0.0 }));
        let refused = median_ratio_interval([&b, &a], true, 1.0, 10, &mut stream());
        assert_eq!(refused, Err(StatsError::BadLevel(1.0)));
    }

    #[test]
    fn the_middle_leaves_as_much_on_either_side() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(middle(&values, 0.5), Interval { low: 25.0, high: 75.0, confidence: 0.5 });
    }

    #[test]
    fn the_least_of_a_subset_as_combinatorics_has_it() {
        // Of 1..=100, 20 drawn: P(min > m) = C(100-m, 20) / C(100, 20) = prod (80-i)/(100-i) over i < m. It passes
        // below 5 % from m = 12 (0.0557) to m = 13 (0.0431), and above 95 % never: P(min = 1) = 20 %. So 1 to 13.
        let subsets = Subsets { population: 100, size: 20, draws: 20_000 };
        let [range] = subsets
            .ranges(0.9, &mut stream(), |picked| [*picked.iter().min().expect("twenty") as f64 + 1.0])
            .expect("units to draw");
        assert_eq!(range.low, 1.0);
        assert!((12.0..=14.0).contains(&range.high), "{range:?}");
    }

    #[test]
    fn the_bootstrap_of_a_mean_is_near_students_t() {
        let mut source = Stream::named(2, "test/values");
        let values: Vec<f64> = (0..200).map(|_| source.exponential(10.0)).collect();
        let t = mean_interval(&values, 0.95).expect("values");
        let b = bootstrap_interval(&values, 0.95, 4000, &mut stream(), mean).expect("values");
        // Skewness 2 and n = 200 move the ends by under a tenth of the interval's length.
        let tenth = (t.high - t.low) / 10.0;
        assert!((t.low - b.low).abs() < tenth && (t.high - b.high).abs() < tenth, "{t:?} {b:?}");
    }

    #[test]
    fn the_same_stream_gives_the_same_interval() {
        let values: Vec<f64> = (0..50).map(|i| ((i * 37) % 50) as f64).collect();
        let median = |v: &[f64]| Sample::new(v.to_vec()).expect("values").median();
        let run = || bootstrap_interval(&values, 0.9, 500, &mut stream(), median).expect("values");
        assert_eq!(run(), run());
        assert!(run().contains(24.5));
    }
}
