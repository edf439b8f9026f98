//! Probabilities.

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// Always.
    pub const ONE: Probability = Probability(1.0);

    /// A probability, or `None` if `p` is not in 0..=1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// The number itself.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// True if a draw `u`, uniform in 0..1, is below the probability.
    pub fn hit(self, u: f64) -> bool {
        u < self.0
    }

    /// The probability that at least one of `bits` independent bits is hit, if each is hit with probability `self`:
    /// 1-(1-p)^bits.
    pub fn any_of_bits(self, bits: u64) -> Probability {
        // expm1/log1p keep the digits that 1-(1-p)^n loses for p near 1e-10.
        Probability((-libm::expm1(bits as f64 * libm::log1p(-self.0))).clamp(0.0, 1.0))
    }

    /// The inverse of [`Probability::any_of_bits`]: the probability of each of `bits` independent bits for which this
    /// is the probability that any is hit, 1-(1-p)^(1/bits).
    pub fn of_each_bit(self, bits: u64) -> Probability {
        Probability((-libm::expm1(libm::log1p(-self.0) / bits as f64)).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_packets_are_inverse() {
        for p in [1e-9, 0.1, 0.5, 1.0] {
            let packet = Probability::new(p).expect("in range");
            let again = packet.of_each_bit(4000).any_of_bits(4000).get();
            assert!((again / p - 1.0).abs() < 1e-12, "{p}: {again}");
        }
        // One bit in a packet of 4000 bits with 10 % loss: -ln(0.9)/4000 = 2.634e-5.
        assert!((Probability::new(0.1).expect("in range").of_each_bit(4000).get() - 2.634e-5).abs() < 1e-8);
    }
}
