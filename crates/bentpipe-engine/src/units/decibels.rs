//! Ratios in decibels.

/// A ratio of powers in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Decibels(f64);

impl Decibels {
    /// So many decibels, or `None` where that is not a finite number.
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

    /// So much less.
    #[must_use]
    pub fn less(self, loss: Decibels) -> Decibels {
        Decibels(self.0 - loss.0)
    }
}
