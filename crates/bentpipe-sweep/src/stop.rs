//! The stopping rule of a point.

use bentpipe_language::quantity::{DURATION, RATE, parse_probability};

use crate::ranks::Ranks;

/// Half the length of a sufficiently short interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Seconds.
    Time(f64),
    /// Bits per second.
    Rate(f64),
    /// A share of the baseline's median: 0.02 is 2 %.
    Share(f64),
}

impl Tolerance {
    /// From "50 ms", "100 kbit/s" or "2 %"; `None` for anything else, and for zero.
    pub fn parse(text: &str) -> Option<Tolerance> {
        let read = match text.trim().strip_suffix('%') {
            Some(_) => Tolerance::Share(parse_probability(text).ok()?),
            None => match DURATION.parse(text) {
                Ok(nanos) => Tolerance::Time(nanos as f64 / 1e9),
                Err(_) => Tolerance::Rate(RATE.parse(text).ok()? as f64),
            },
        };
        let (Tolerance::Time(value) | Tolerance::Rate(value) | Tolerance::Share(value)) = read;
        (value > 0.0).then_some(read)
    }
}

/// The rule of a sweep.
///
/// The interval is one of order statistics, so it assumes no distribution. It is checked several times, and a point is done at the
/// first time that it is short enough; so the interval of a finished point covers the median somewhat less often than 95 % of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// Half the length at which the interval is short enough.
    pub tolerance: Tolerance,
    /// Repetitions before the first look.
    pub min: u32,
}

impl Stop {
    /// Repetitions at the next look after `done`: half as many again.
    pub(crate) fn next_look(&self, done: u32) -> u32 {
        if done < self.min { self.min } else { done + done.div_ceil(2) }
    }

    /// True if all candidates are known well enough. `values[c][r]` is the value of candidate `c` in repetition `r`; `None`
    /// if a transfer did not finish, which ranks last.
    pub(crate) fn is_enough(&self, values: &[Vec<Option<f64>>], baseline: usize) -> bool {
        let Some(base) = values.get(baseline) else { return true };
        let allowed = match self.tolerance {
            Tolerance::Time(value) | Tolerance::Rate(value) => value,
            Tolerance::Share(share) => match Ranks::of(base).median() {
                Some(median) => share * median.median,
                None => return false,
            },
        };
        let is_known = |ranks: &Ranks| {
            let ends = ranks.median().and_then(|median| median.low.zip(median.high));
            ends.is_some_and(|(low, high)| (high - low) / 2.0 <= allowed)
        };
        if values.len() == 1 {
            return is_known(&Ranks::of(base));
        }
        let others = values.iter().enumerate().filter(|(index, _)| *index != baseline);
        others.into_iter().all(|(_, other)| is_known(&Ranks::of_differences(base, other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances() {
        assert_eq!(Tolerance::parse("50 ms"), Some(Tolerance::Time(0.05)));
        assert_eq!(Tolerance::parse("100 kbit/s"), Some(Tolerance::Rate(1e5)));
        assert_eq!(Tolerance::parse("2 %"), Some(Tolerance::Share(0.02)));
        assert_eq!((Tolerance::parse("0 s"), Tolerance::parse("0.02"), Tolerance::parse("x")), (None, None, None));
    }

    #[test]
    fn looks_grow_by_half() {
        let stop = Stop { tolerance: Tolerance::Share(0.01), min: 10 };
        assert_eq!([0, 9, 10, 15, 23].map(|done| stop.next_look(done)), [10, 10, 15, 23, 35]);
    }

    #[test]
    fn pairs_decide_and_not_the_spread_that_they_share() {
        // Times from 100 s to 109 s, the other always 1 s and 0 ms to 9 ms longer: ranks 2 and 9 of ten are 1.001 s and
        // 1.008 s (P(B <= 1) = 11/1024 = 1.07 % below each end), half of the length 3.5 ms.
        let base: Vec<_> = (0..10).map(|n| Some(100.0 + f64::from(n))).collect();
        let other: Vec<_> = (0..10).map(|n| Some(101.0 + f64::from(n) * 1.001)).collect();
        let median = Ranks::of_differences(&base, &other).median().expect("ten pairs");
        let low = median.low.expect("ten pairs");
        assert!((median.median - 1.0045).abs() < 1e-9 && (low - 1.001).abs() < 1e-9, "{median:?}");
        let values = [base, other];
        let enough = |tolerance| Stop { tolerance, min: 6 }.is_enough(&values, 0);
        assert!(enough(Tolerance::Time(0.003_6)) && !enough(Tolerance::Time(0.003_4)));
        // The baseline's median is 104.5 s.
        assert!(enough(Tolerance::Share(0.003_6 / 104.5)) && !enough(Tolerance::Share(0.003_4 / 104.5)));
        // The same with the baseline in the second place.
        let turned = [values[1].clone(), values[0].clone()];
        let enough = |tolerance| Stop { tolerance, min: 6 }.is_enough(&turned, 1);
        assert!(enough(Tolerance::Time(0.003_6)) && !enough(Tolerance::Time(0.003_4)));
        // The other's median is 105.5045 s: as a share of it, 0.00357 s would be enough.
        assert!(enough(Tolerance::Share(0.003_6 / 104.5)) && !enough(Tolerance::Share(0.003_48 / 104.5)));
        // Five pairs have no interval.
        let few = values.clone().map(|values| values[..5].to_vec());
        assert!(!Stop { tolerance: Tolerance::Time(1e9), min: 6 }.is_enough(&few, 0));
    }

    #[test]
    fn without_finished_pairs_it_is_never_enough() {
        let stop = Stop { tolerance: Tolerance::Time(1.0), min: 6 };
        assert!(!stop.is_enough(&[vec![Some(1.0); 20], vec![None; 20]], 0));
        assert!(stop.is_enough(&[vec![Some(1.0); 20]], 0), "one candidate: its own median");
    }
}
