//! The maximum over the last few rounds.

use alloc::collections::VecDeque;

/// The maximum of values over a number of rounds. With [`core::cmp::Reverse`] it is a minimum.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct MaxFilter<V = f64> {
    span: u64,
    /// Decreasing values: each is the maximum since its round.
    values: VecDeque<(u64, V)>,
}

impl<V: Copy + PartialOrd> MaxFilter<V> {
    /// Covers `span` rounds before the current one.
    pub(in crate::tcp) fn new(span: u64) -> Self {
        MaxFilter { span, values: VecDeque::new() }
    }

    /// Covers `span` rounds before the current one from the next value on.
    pub(in crate::tcp) fn set_span(&mut self, span: u64) {
        self.span = span;
    }

    /// Takes a value of round `round`.
    pub(in crate::tcp) fn update(&mut self, round: u64, value: V) {
        while self.values.back().is_some_and(|&(_, last)| last <= value) {
            self.values.pop_back();
        }
        if self.values.back().is_none_or(|&(last, _)| last < round) {
            self.values.push_back((round, value));
        }
        self.begin(round);
    }

    /// Begins round `round`, which has no value yet.
    pub(in crate::tcp) fn begin(&mut self, round: u64) {
        while self.values.front().is_some_and(|&(first, _)| first + self.span < round) {
            self.values.pop_front();
        }
    }

    /// The maximum; `None` without a value.
    pub(in crate::tcp) fn greatest(&self) -> Option<V> {
        self.values.front().map(|&(_, value)| value)
    }

    /// Bytes of heap memory.
    pub(in crate::tcp) fn memory(&self) -> usize {
        self.values.capacity() * size_of::<(u64, V)>()
    }
}

impl MaxFilter {
    /// The maximum, 0 before the first value.
    pub(in crate::tcp) fn max(&self) -> f64 {
        self.greatest().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_are_forgotten() {
        let mut filter = MaxFilter::new(2);
        let seen: Vec<f64> = [(1, 5.0), (2, 3.0), (2, 4.0), (3, 1.0), (4, 2.0), (5, 1.0)]
            .into_iter()
            .map(|(round, value)| {
                filter.update(round, value);
                filter.max()
            })
            .collect();
        assert_eq!(seen, [5.0, 5.0, 5.0, 5.0, 4.0, 2.0]);
        filter.begin(7);
        assert_eq!(filter.max(), 1.0, "that of round 4 is too old");
        filter.begin(8);
        assert_eq!(filter.greatest(), None);
    }
}
