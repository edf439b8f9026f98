//! A sorted sample and its quantiles (Hyndman and Fan 1996, type 7).
//!
//! Type 7 puts the quantile p of n values at rank 1 + (n-1)p and interpolates between neighbours: the median is
//! the usual one, 0 and 1 are the minimum and the maximum. It is the default of spreadsheets, R and NumPy. The
//! `transat` paper does not name its rule; its labels ("25% Perc.", "Average") are those of a spreadsheet, so type
//! 7 is the likely one. Another type moves a quartile of 20 values by at most half the distance between two
//! neighbours.

use super::{StatsError, check_values};

/// Values, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

/// Minimum, quartiles, maximum and mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiveNumbers {
    /// Minimum.
    pub min: f64,
    /// First quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub p75: f64,
    /// Maximum.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

impl Sample {
    /// Sorts the values.
    ///
    /// # Errors
    /// Returns [`StatsError::TooFew`] without values, [`StatsError::BadValue`] for one that is not finite.
    pub fn new(mut values: Vec<f64>) -> Result<Self, StatsError> {
        check_values(&values, 1)?;
        values.sort_unstable_by(f64::total_cmp);
        Ok(Sample(values))
    }

    /// Sorts values of which some may be infinite: a transfer that did not finish is slower than all that did. Quantiles
    /// that fall on such a value are infinite, and so is the mean of all.
    ///
    /// # Errors
    /// Returns [`StatsError::TooFew`] without values, [`StatsError::BadValue`] for NaN.
    pub fn with_infinite(mut values: Vec<f64>) -> Result<Self, StatsError> {
        match values.iter().position(|value| value.is_nan()) {
            Some(index) => Err(StatsError::BadValue { index, value: f64::NAN }),
            None if values.is_empty() => Err(StatsError::TooFew { have: 0, need: 1 }),
            None => {
                values.sort_unstable_by(f64::total_cmp);
                Ok(Sample(values))
            }
        }
    }

    /// Sorts results of which `None` is a transfer that did not finish: it ranks after all others, as an infinite value.
    ///
    /// # Errors
    /// Returns [`StatsError::TooFew`] without results, [`StatsError::BadValue`] for NaN.
    pub fn with_unfinished(results: impl IntoIterator<Item = Option<f64>>) -> Result<Self, StatsError> {
        Sample::with_infinite(results.into_iter().map(|result| result.unwrap_or(f64::INFINITY)).collect())
    }

    /// The values, in order.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }

    /// The quantile `p`, type 7; `p` is clamped to 0..1.
    pub fn quantile(&self, p: f64) -> f64 {
        quantile_of_sorted(&self.0, p)
    }

    /// The quantile `p`, type 7; `None` if it falls on an infinite value.
    pub fn finite_quantile(&self, p: f64) -> Option<f64> {
        Some(self.quantile(p)).filter(|value| value.is_finite())
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The arithmetic mean; `None` if a value is infinite.
    pub fn finite_mean(&self) -> Option<f64> {
        Some(super::mean(&self.0)).filter(|value| value.is_finite())
    }

    /// The summary.
    pub fn five_numbers(&self) -> FiveNumbers {
        FiveNumbers {
            min: self.0[0],
            p25: self.quantile(0.25),
            median: self.median(),
            p75: self.quantile(0.75),
            max: self.0[self.0.len() - 1],
            mean: super::mean(&self.0),
        }
    }
}

/// The quantile `p`, type 7, of sorted, non-empty values.
pub(super) fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let rank = (sorted.len() - 1) as f64 * p.clamp(0.0, 1.0);
    let below = rank as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = rank - below as f64;
    let (low, high) = (sorted[below], sorted[above]);
    // An infinite neighbour leaves nothing to interpolate.
    if share == 0.0 || low.is_infinite() { low } else { low + share * (high - low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).expect("good values")
    }

    #[test]
    fn quantiles_by_hand() {
        // Ranks from 0: 0.25 * 4 = 1, 0.5 * 4 = 2, 0.9 * 4 = 3.6.
        let s = sample(&[50.0, 10.0, 40.0, 20.0, 30.0]);
        assert_eq!((s.quantile(0.25), s.median(), s.quantile(0.9)), (20.0, 30.0, 46.0));
        assert_eq!((s.quantile(0.0), s.quantile(1.0), s.quantile(7.0)), (10.0, 50.0, 50.0));
        // Twenty values 1..=20: 0.25 * 19 = 4.75, so 5.75; the median lies between 10 and 11.
        let five = sample(&(1..=20).map(f64::from).collect::<Vec<_>>()).five_numbers();
        assert_eq!(five, FiveNumbers { min: 1.0, p25: 5.75, median: 10.5, p75: 15.25, max: 20.0, mean: 10.5 });
    }

    #[test]
    fn what_did_not_finish_is_last() {
        let of = |values: &[f64]| Sample::with_infinite(values.to_vec()).expect("no NaN");
        let five = of(&[f64::INFINITY, 1.0, 3.0, f64::INFINITY, 2.0]).five_numbers();
        assert_eq!((five.p25, five.median, five.p75, five.mean), (2.0, 3.0, f64::INFINITY, f64::INFINITY));
        // Nothing can be interpolated between a finite and an infinite value.
        assert_eq!(of(&[1.0, f64::INFINITY]).median(), f64::INFINITY);
        assert_eq!(of(&[f64::NEG_INFINITY, 1.0]).median(), f64::NEG_INFINITY);
        // The same by results: ranks from 0 are 0.5 and 1.5 of 1, 2 and one that did not finish.
        let results = Sample::with_unfinished([Some(2.0), None, Some(1.0)]).expect("no NaN");
        assert_eq!([0.25, 0.75].map(|p| results.finite_quantile(p)), [Some(1.5), None]);
        assert_eq!((results.median(), results.finite_mean()), (2.0, None));
        assert_eq!(sample(&[1.0, 2.0]).finite_mean(), Some(1.5));
        assert!(matches!(Sample::with_infinite(vec![f64::NAN]), Err(StatsError::BadValue { index: 0, .. })));
    }

    #[test]
    fn what_has_no_order_is_refused() {
        assert_eq!(Sample::new(vec![]), Err(StatsError::TooFew { have: 0, need: 1 }));
        assert!(matches!(Sample::new(vec![1.0, f64::NAN]), Err(StatsError::BadValue { index: 1, .. })));
    }
}
