//! Ratios in decibels.

/// A ratio of powers in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Decibels(f64);

impl Decibels {
    /// A ratio of this many decibels; `None` if the number is not finite.
    pub fn new(decibels: f64) -> Option<Self> {
        decibels.is_finite().then_some(Decibels(decibels))
    }

    /// The number of decibels.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The ratio itself.
    pub fn ratio(self) -> f64 {
        libm::pow(10.0, self.0 / 10.0)
    }

    /// The ratio reduced by `loss`.
    #[must_use]
    pub fn less(self, loss: Decibels) -> Decibels {
        Decibels(self.0 - loss.0)
    }
}
