//! Bounds for a channel with memory (§V.C).
//!
//! Two states with exponential lengths: a bad one that loses every packet and a good one that loses none. Packets in
//! flight together share their fate, so fewer wait for others.

use bentpipe_engine::units::{Duration, Probability};

use super::splitting::Split;
use super::throughput::EndToEnd;
use super::{OutOfRange, Path};

/// The two-state channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// X: share of time in the bad state.
    pub share: Probability,
    /// m: mean length of a bad state.
    pub mean_bad: Duration,
}

impl Fading {
    /// The channel with a fading rate f (per second): m = X/f (Eq. 57). `None` if the share is 0 or 1 or the rate is
    /// not above zero: nothing would fade.
    pub fn with_rate(share: Probability, per_second: f64) -> Option<Fading> {
        let fades = share.get() > 0.0 && share.get() < 1.0 && per_second.is_finite() && per_second > 0.0;
        let mean_bad = Duration::from_secs_f64_rounded(share.get() / per_second);
        fades.then_some(Fading { share, mean_bad })
    }

    /// f = X/m, per second (Eq. 57).
    pub fn rate(&self) -> f64 {
        self.share.get() / self.mean_bad.as_secs_f64()
    }

    /// Mean length of a good state, m (1-X)/X.
    pub fn mean_good(&self) -> Duration {
        let share = self.share.get();
        Duration::from_secs_f64_rounded(self.mean_bad.as_secs_f64() * (1.0 - share) / share)
    }
}

/// The model's results for a path whose loss p is the share X of the bad state. A packet is lost at least that
/// often, p ≥ X, and takes at least T2/(1-X) (Eq. 58, 59).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Upper bound of λ/μ end to end: Eq. 39 with ν = 0, also in Υ. TCP timeouts are ignored, so it is too high.
    pub end_to_end_upper: f64,
    /// λ/μ end to end for fast fading, where losses are independent: Eq. 39 unchanged.
    pub end_to_end_independent: f64,
    /// Upper bound of λ/μ with splitting: Eq. 52.
    pub split_upper: f64,
}

impl Bounds {
    /// The bounds; the path's loss probability is X.
    ///
    /// # Errors
    /// Fails for fewer than two packets in flight, see [`OutOfRange::InFlight`].
    pub fn new(path: &Path) -> Result<Bounds, OutOfRange> {
        Ok(Bounds {
            end_to_end_upper: EndToEnd::with_nu(path, 0.0).per_mu,
            end_to_end_independent: EndToEnd::new(path)?.per_mu,
            split_upper: Split::new(path).per_mu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hybrid::tests::path;

    #[test]
    fn rate_and_lengths_of_the_states() {
        let fading = Fading::with_rate(Probability::new(0.1).expect("in range"), 0.5).expect("it fades");
        assert_eq!((fading.mean_bad, fading.mean_good()), (Duration::from_millis(200), Duration::from_millis(1800)));
        assert!((fading.rate() - 0.5).abs() < 1e-12);
        assert_eq!(Fading::with_rate(Probability::ZERO, 0.5), None);
        assert_eq!(Fading::with_rate(fading.share, 0.0), None);
    }

    #[test]
    fn without_waiting_for_others_more_goes_through() {
        for (b, t1, t2, p) in [(20.0, 100, 250, 0.1), (100.0, 100, 250, 0.3), (300.0, 20, 100, 0.5)] {
            let bounds = Bounds::new(&path(b, t1, t2, p, 1)).expect("in range");
            assert!(bounds.end_to_end_upper > bounds.end_to_end_independent, "{bounds:?}");
            assert!(bounds.end_to_end_upper < 1.0 - p, "{bounds:?}");
        }
    }

    /// By hand: B = 100, T1 = T2 = 100 ms, μ T2 = 25, X = 0.1. Υ = 4/0.9 + 1/4, ρ = Υ/(1+Υ), case 1.
    #[test]
    fn the_upper_bound_by_hand() {
        let upsilon: f64 = 4.0 / 0.9 + 0.25;
        let rho = upsilon / (1.0 + upsilon);
        let a3 = 4.0 * (1.0 + rho - rho * rho / 2.0) / (1.0 + rho);
        let by_hand = 1.5 * 4.0 * 0.9 / (1.0 + rho) / (0.9 + 0.225 + a3);
        let bounds = Bounds::new(&path(100.0, 100, 100, 0.1, 1)).expect("in range");
        assert!((bounds.end_to_end_upper / by_hand - 1.0).abs() < 1e-12, "{bounds:?}");
    }
}
