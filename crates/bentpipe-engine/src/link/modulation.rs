//! Bit error rate over signal-to-noise ratio: uncoded QPSK, coherently detected, in white noise.
//!
//! Gray-coded QPSK is two BPSK carriers in quadrature, so both have Pb = Q(sqrt(2 Eb/N0)) = erfc(sqrt(Eb/N0)) / 2
//! (Proakis and Salehi, "Digital Communications", 5th ed., §4.3). Coding, fading and interference are not modelled.

use crate::units::{Decibels, Probability};

/// The search range of Eb/N0 for [`qpsk_bit_error_rate`]. Below it, every second bit is wrong; above it, none in the
/// lifetime of a satellite.
const RANGE: (f64, f64) = (-100.0, 20.0);

/// The bit error rate at an Eb/N0.
fn qpsk_bit_error_rate(eb_n0: Decibels) -> Probability {
    let rate = libm::erfc(libm::sqrt(eb_n0.ratio())) / 2.0;
    Probability::new(rate).expect("erfc of a non-negative number is in 0..=1")
}

/// The Eb/N0 that gives a bit error rate; `None` if no value in -100 to 20 dB does, as for 0 and 1/2.
fn qpsk_eb_n0(rate: Probability) -> Option<Decibels> {
    let at = |db: f64| qpsk_bit_error_rate(Decibels::new(db).expect("finite")).get();
    let (mut low, mut high) = RANGE;
    if !(at(high)..at(low)).contains(&rate.get()) || rate.get() == 0.0 {
        return None;
    }
    // Sixty bisections of 120 dB reach the resolution of a double.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if at(middle) > rate.get() { low = middle } else { high = middle }
    }
    Decibels::new((low + high) / 2.0)
}

/// The bit error rate of a receiver that needs `loss` more signal than one with the rate `nominal`. A rate of 0 stays
/// 0.
pub fn with_implementation_loss(nominal: Probability, loss: Decibels) -> Probability {
    qpsk_eb_n0(nominal).map_or(nominal, |eb_n0| qpsk_bit_error_rate(eb_n0.less(loss)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db(decibels: f64) -> Decibels {
        Decibels::new(decibels).expect("finite")
    }

    #[test]
    fn the_curve_of_the_textbook() {
        // Proakis and Salehi, figure 4.3-1 and table of Q: Q(sqrt 2) = 0.0786 at 0 dB, 1e-5 at 9.59 dB, 1e-6 at 10.53 dB.
        assert!((qpsk_bit_error_rate(db(0.0)).get() - 0.078_649_6).abs() < 1e-6);
        for (rate, expected) in [(1e-5, 9.588), (1e-6, 10.530), (1e-8, 11.972), (1e-10, 13.061)] {
            let eb_n0 = qpsk_eb_n0(Probability::new(rate).expect("a probability")).expect("it is on the curve");
            assert!((eb_n0.get() - expected).abs() < 1e-3, "{rate}: {eb_n0:?}");
        }
    }

    #[test]
    fn nothing_lost_is_nothing_changed_and_more_lost_is_worse() {
        let nominal = Probability::new(1e-6).expect("a probability");
        assert!((with_implementation_loss(nominal, db(0.0)).get() / 1e-6 - 1.0).abs() < 1e-9);
        assert_eq!(with_implementation_loss(Probability::ZERO, db(3.0)), Probability::ZERO);
        let rates = [0.5, 1.0, 2.0, 10.5].map(|loss| with_implementation_loss(nominal, db(loss)).get());
        assert!(rates.is_sorted() && rates[0] > 1e-6, "{rates:?}");
        // At 10.53 dB less, 0 dB are left.
        assert!((rates[3] - 0.0786).abs() < 1e-3, "{rates:?}");
        let half = Probability::new(0.5).expect("a probability");
        assert_eq!(with_implementation_loss(half, db(1.0)), half);
    }
}
