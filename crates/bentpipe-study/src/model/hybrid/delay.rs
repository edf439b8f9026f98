//! The delay of the slowest of k packets over a link with ARQ (§III.A.1, Appendix A).
//!
//! Every transmission is answered after one round trip T2, so a packet takes a geometric number of round trips, and a
//! burst delivered in order takes the maximum of k such numbers. All results are in round trips T2.

/// ν = (1-p)/ln(1/p) (Eq. 4): the increase of a burst's delay when the burst grows by the factor e, in units of the
/// delay 1/(1-p) of one packet. 0 for p = 0.
pub fn nu(p: f64) -> f64 {
    (1.0 - p) / (1.0 / p).ln()
}

/// P(d = i) = p^(i-1) (1-p) (Eq. 2): probability that a packet takes `i` round trips, `i` from 1.
pub fn packet_takes(i: u32, p: f64) -> f64 {
    p.powi(i as i32 - 1) * (1.0 - p)
}

/// P(d̂(k) = i) = (1-p^i)^k - (1-p^(i-1))^k (Eq. 3): probability that a burst of `k` packets takes `i` round trips.
pub fn burst_takes(i: u32, k: f64, p: f64) -> f64 {
    let within = |i: u32| (1.0 - p.powi(i as i32)).powf(k);
    within(i) - if i == 1 { 0.0 } else { within(i - 1) }
}

/// Mean of the maximum of `k` geometric numbers, Σ_{j≥0} [1-(1-p^j)^k] (Eq. 65): exact, as Eq. 62 is, but without its
/// alternating sum, which loses all digits beyond k of about 50.
pub fn exact(k: f64, p: f64) -> f64 {
    let mut sum = 1.0;
    let mut power = p;
    loop {
        let term = -(k * (-power).ln_1p()).exp_m1();
        sum += term;
        // The terms fall geometrically once k p^j < 1, so the omitted terms are below the last bit of the sum.
        if term < 1e-17 * sum {
            return sum;
        }
        power *= p;
    }
}

/// Σ of [`exact`] over bursts of w S packets for all whole w from `first` to `last`; 0 if there are none. Of each term of Eq. 65 the sum
/// over w is that of a geometric series, so it takes as long as one burst.
pub fn exact_of_all(first: f64, last: f64, segments: f64, p: f64) -> f64 {
    let count = last - first + 1.0;
    if count <= 0.0 {
        return 0.0;
    }
    let mean = (first + last) / 2.0;
    let mut sum = count;
    let mut power = p;
    loop {
        // (1-p^j)^(w S) = e^(-rate w).
        let rate = -segments * (-power).ln_1p();
        sum += if rate * last < 1e-3 {
            // The sum over 1 - e^(-rate w) by its series up to w^3: the next term is below 1e-12/24 for each w. Directly, the difference
            // below would lose these digits.
            let spread = (count * count - 1.0) / 12.0;
            let (second, third) = (mean * mean + spread, mean * (mean * mean + 3.0 * spread));
            count * rate * (mean - rate * (second / 2.0 - rate * third / 6.0))
        } else {
            count - (-rate * first).exp() * (-rate * count).exp_m1() / (-rate).exp_m1()
        };
        // As in `exact`; a term is at most this.
        if count * rate * mean < 1e-17 * sum {
            return sum;
        }
        power *= p;
    }
}

/// [`exact`] with at most `transmissions` (J) of each packet, Σ_{j<J} [1-(1-p^j)^k] (Eq. 61): a packet that would need
/// more counts as J round trips.
pub fn limited(k: f64, p: f64, transmissions: u32) -> f64 {
    (0..transmissions).map(|j| 1.0 - (1.0 - p.powi(j as i32)).powf(k)).sum()
}

/// The increase of a burst's delay by one packet more than `k`, Σ_{j≥0} (1-p^j)^k p^j (Eq. 67).
pub fn increment(k: f64, p: f64) -> f64 {
    let mut sum = 0.0;
    let mut power = p;
    while power > 1e-18 {
        sum += (k * (-power).ln_1p()).exp() * power;
        power *= p;
    }
    sum
}

/// The same with the sum replaced by an integral, 1/((k+1) ln(1/p)) (Eq. 68).
pub fn increment_by_integral(k: f64, p: f64) -> f64 {
    1.0 / ((k + 1.0) * (1.0 / p).ln())
}

/// 1 + k p/(1-p) (Eq. 66): for a few packets and rare loss, k p ≪ 1.
pub fn few(k: f64, p: f64) -> f64 {
    1.0 + k * p / (1.0 - p)
}

/// [1 + ν ln((k+1)/2)]/(1-p) (Eq. 4, 72): the increments of Eq. 68 summed up from k = 1, where it is exact.
///
/// For 0.1 ≤ p ≤ 0.5 and k ≥ 10 within 5.6 % of [`exact`]; too high by 28 % at p = 0.01.
pub fn logarithm(k: f64, p: f64) -> f64 {
    (1.0 + nu(p) * ((k + 1.0) / 2.0).ln()) / (1.0 - p)
}

/// [1 + ν ln(k/2)]/(1-p) (Eq. 5): [`logarithm`] for k ≫ 1, the form that the throughput is built on (Eq. 8).
pub fn many(k: f64, p: f64) -> f64 {
    (1.0 + nu(p) * (k / 2.0).ln()) / (1.0 - p)
}

/// 1/2 + H_k/ln(1/p), H_k the k-th harmonic number: not in the paper. The mean of the maximum of k exponential numbers
/// is H_k/ln(1/p), and rounding up to whole round trips adds a half on average. Within 1 % for k ≥ 10 and p ≥ 0.1,
/// within 6 % at p = 0.02; for rarer loss the mean grows in steps and [`few`] is closer.
pub fn harmonic(k: u32, p: f64) -> f64 {
    let sum: f64 = (1..=k).rev().map(|i| 1.0 / f64::from(i)).sum();
    0.5 + sum / (1.0 / p).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
    }

    /// Eq. 62: Σ_{i=1..k} C(k,i) (-1)^(i+1)/(1-p^i). Alternating, so for small k alone.
    fn alternating(k: u32, p: f64) -> f64 {
        let mut choose = 1.0;
        let mut sum = 0.0;
        for i in 1..=k {
            choose *= f64::from(k + 1 - i) / f64::from(i);
            let sign = if i % 2 == 1 { 1.0 } else { -1.0 };
            sum += sign * choose / (1.0 - p.powi(i as i32));
        }
        sum
    }

    #[test]
    fn the_stable_sum_is_the_alternating_one() {
        for p in [0.001, 0.1, 0.3, 0.5, 0.9] {
            for k in 1..=12 {
                // C(12, 6) = 924 times the rounding of a sum of twelve terms.
                close(exact(f64::from(k), p), alternating(k, p), 924.0 * 12.0 * f64::EPSILON);
            }
        }
    }

    #[test]
    fn the_sum_over_bursts_is_the_sum() {
        for (first, last, segments, p) in [
            (1.0, 1.0, 1.0, 0.3),
            (3.0, 7.0, 1.0, 0.1),
            (3.0, 7.0, 8.0, 0.5),
            (40.0, 80.0, 2.0, 0.9),
            (1000.0, 2000.0, 1.0, 0.02),
            (1000.0, 1001.0, 30.0, 0.99),
            (5.0, 9.0, 1.0, 0.0),
        ] {
            let each = (first as u32..=last as u32).map(|w| exact(f64::from(w) * segments, p));
            // Up to 4000 terms (p = 0.99), each rounded like the count of bursts, in a sum that is larger than the count.
            close(exact_of_all(first, last, segments, p), each.sum(), 4000.0 * f64::EPSILON);
        }
        assert_eq!(exact_of_all(5.0, 4.0, 1.0, 0.3), 0.0, "no burst");
    }

    #[test]
    fn the_mean_is_that_of_the_distribution() {
        for (k, p) in [(1.0, 0.1), (7.0, 0.3), (125.0, 0.5)] {
            let chances: Vec<_> = (1..200).map(|i| burst_takes(i, k, p)).collect();
            close(chances.iter().sum(), 1.0, 1e-14);
            let mean: f64 = (1..).zip(&chances).map(|(i, chance)| f64::from(i) * chance).sum();
            close(mean, exact(k, p), 1e-13);
        }
        let single: f64 = (1..200).map(|i| f64::from(i) * packet_takes(i, 0.3)).sum();
        close(single, 1.0 / 0.7, 1e-14);
        close(exact(1.0, 0.3), 1.0 / 0.7, 1e-14);
    }

    #[test]
    fn increments_add_up() {
        for (k, p) in [(1.0, 0.1), (10.0, 0.3), (300.0, 0.5)] {
            close(increment(k, p), exact(k + 1.0, p) - exact(k, p), 1e-11);
        }
        // The sum swings around the integral (its steps are whole round trips); by less than 2 % at p = 0.5.
        close(increment_by_integral(300.0, 0.5), increment(300.0, 0.5), 0.02);
        close(logarithm(1.0, 0.2), exact(1.0, 0.2), 1e-14);
    }

    #[test]
    fn a_limit_of_transmissions_cuts_the_sum() {
        // One transmission takes one round trip, whatever becomes of it; without a limit Eq. 61 is Eq. 65.
        assert_eq!(limited(100.0, 0.1, 1), 1.0);
        close(limited(100.0, 0.1, 2), 2.0 - 0.9f64.powi(100), 1e-14);
        close(limited(100.0, 0.1, 200), exact(100.0, 0.1), 1e-14);
    }

    #[test]
    fn without_loss_every_burst_takes_one_round_trip() {
        assert_eq!((exact(100.0, 0.0), few(100.0, 0.0), many(100.0, 0.0)), (1.0, 1.0, 1.0));
        assert_eq!(nu(0.0), 0.0);
    }
}
