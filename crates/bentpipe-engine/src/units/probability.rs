//! Probabilities.

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// Always.
    pub const ONE: Probability = Probability(1.0);

    /// A probability, or `None` where `p` is not in 0..=1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// The number itself.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether a draw `u`, uniform in 0..1, falls inside.
    pub fn hit(self, u: f64) -> bool {
        u < self.0
    }

    /// The probability that at least one of `bits` independent bits is hit, each with `self`: 1-(1-p)^bits.
    pub fn any_of_bits(self, bits: u64) -> Probability {
        // expm1/log1p keep the digits that 1-(1-p)^n loses for p near 1e-10.
        Probability((-libm::expm1(bits as f64 * libm::log1p(-self.0))).clamp(0.0, 1.0))
    }
}
