//! The numbers of an answer.

use serde::Serialize;

/// Numbers of the block, by their position behind the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Numbers {
    /// Index of the first one.
    pub(crate) at: usize,
    /// How many.
    pub(crate) len: usize,
}

/// The numbers of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrays(Vec<f64>);

impl Arrays {
    /// Appends numbers.
    pub(crate) fn put(&mut self, numbers: &[f64]) -> Numbers {
        let at = self.0.len();
        self.0.extend_from_slice(numbers);
        Numbers { at, len: numbers.len() }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[f64] {
        &self.0
    }
}
