//! Values over time in a bounded number of columns.
//!
//! A run's length is not known before its end. So columns begin narrow, and when one is needed behind the last, neighbours are
//! merged in pairs: each column is then twice as long. A column keeps the minimum and maximum of its values, or their sum, so
//! that merging hides nothing.

/// The columns' instants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) from: f64,
    /// Length of a column, seconds.
    pub(crate) dt: f64,
    /// Number of columns.
    pub(crate) count: usize,
    /// End of a window, whose columns are never merged: values outside are not drawn.
    end: Option<f64>,
}

/// Where a value belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before or behind the window.
    Outside,
    /// In this column.
    Column(usize),
    /// Behind the last column: merge, and ask again.
    Merge,
}

impl Grid {
    /// The first columns are this long, seconds: a packet of 1500 B takes longer at up to 190 Mbit/s. A power of two, so
    /// that instants of columns are exact.
    const FIRST: f64 = 1.0 / 16384.0;

    /// At least `width` columns, for a run of any length that is long enough for them.
    pub(crate) fn open(width: usize) -> Self {
        Grid { from: 0.0, dt: Grid::FIRST, count: 2 * width, end: None }
    }

    /// `width` columns from `from` to `to`, seconds.
    pub(crate) fn window(width: usize, from: f64, to: f64) -> Self {
        Grid { from, dt: (to - from) / width as f64, count: width, end: Some(to) }
    }

    pub(crate) fn place(&self, at: f64) -> Place {
        let column = ((at - self.from) / self.dt).floor();
        // The window's end belongs to its last column.
        if self.end == Some(at) {
            return Place::Column(self.count - 1);
        }
        match () {
            () if column < 0.0 => Place::Outside,
            () if column < self.count as f64 => Place::Column(column as usize),
            () if self.end.is_some() => Place::Outside,
            () => Place::Merge,
        }
    }

    pub(crate) fn merge(&mut self) {
        self.dt *= 2.0;
    }
}

/// The values of a quantity: min, max and last of each column; NaN where there are none.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub(crate) lo: Vec<f64>,
    pub(crate) hi: Vec<f64>,
    pub(crate) last: Vec<f64>,
}

impl Band {
    pub(crate) fn new(count: usize) -> Self {
        Band { lo: vec![f64::NAN; count], hi: vec![f64::NAN; count], last: vec![f64::NAN; count] }
    }

    pub(crate) fn add(&mut self, column: usize, value: f64) {
        // `min` and `max` return the other one of a NaN.
        self.lo[column] = self.lo[column].min(value);
        self.hi[column] = self.hi[column].max(value);
        self.last[column] = value;
    }

    pub(crate) fn merge(&mut self) {
        pairs(&mut self.lo, f64::NAN, f64::min);
        pairs(&mut self.hi, f64::NAN, f64::max);
        pairs(&mut self.last, f64::NAN, |earlier, later| if later.is_nan() { earlier } else { later });
    }
}

/// Sums.
#[derive(Clone, Debug)]
pub(crate) struct Counts(pub(crate) Vec<f64>);

impl Counts {
    pub(crate) fn new(count: usize) -> Self {
        Counts(vec![0.0; count])
    }

    pub(crate) fn add(&mut self, column: usize, value: f64) {
        self.0[column] += value;
    }

    pub(crate) fn merge(&mut self) {
        pairs(&mut self.0, 0.0, |a, b| a + b);
    }
}

fn pairs(values: &mut [f64], empty: f64, join: impl Fn(f64, f64) -> f64) {
    let half = values.len() / 2;
    for n in 0..half {
        values[n] = join(values[2 * n], values[2 * n + 1]);
    }
    values[half..].fill(empty);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_extremes_and_sums() {
        let (mut grid, mut band, mut counts) = (Grid::open(2), Band::new(4), Counts::new(4));
        for (n, value) in [5.0, 9.0, 1.0, 3.0].into_iter().enumerate() {
            assert_eq!(grid.place((n as f64 + 0.5) * grid.dt), Place::Column(n));
            band.add(n, value);
            counts.add(n, 1.0);
        }
        assert_eq!(grid.place(4.0 * grid.dt), Place::Merge);
        grid.merge();
        band.merge();
        counts.merge();
        assert_eq!(grid.place(2.0 * grid.dt), Place::Column(2), "the second half is free");
        assert_eq!(
            (&band.lo[..2], &band.hi[..2], &band.last[..2]),
            (&[5.0, 1.0][..], &[9.0, 3.0][..], &[9.0, 3.0][..])
        );
        assert!(band.lo[2].is_nan() && band.last[3].is_nan());
        assert_eq!(counts.0, [2.0, 2.0, 0.0, 0.0]);
        band.merge();
        assert_eq!((band.lo[0], band.hi[0], band.last[0]), (1.0, 9.0, 3.0), "columns without values change nothing");
    }

    #[test]
    fn a_window_has_its_ends_and_nothing_outside() {
        let grid = Grid::window(10, 2.0, 3.0);
        assert_eq!(grid.place(1.999), Place::Outside);
        assert_eq!(grid.place(2.0), Place::Column(0));
        assert_eq!(grid.place(3.0), Place::Column(9));
        assert_eq!(grid.place(3.01), Place::Outside, "a tenth of a column behind");
    }
}
