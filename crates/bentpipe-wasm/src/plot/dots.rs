//! Points that must all be visible: retransmissions and losses.
//!
//! Up to [`EXACT`] points are kept exactly. Of more, only the squares of a raster that contain a point are kept: a plot of that size
//! looks the same. If a value lies above the raster, its rows are merged in pairs, as columns are.

use super::columns::{Grid, Place};

/// Maximum number of points kept exactly: a page draws as many easily.
const EXACT: usize = 8192;

/// Points: seconds, and a segment's number.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    exact: Vec<(f64, f64)>,
    raster: Option<Raster>,
    rows: usize,
    /// Number of points in the window.
    pub(crate) count: u64,
}

#[derive(Clone, Debug)]
struct Raster {
    columns: usize,
    rows: usize,
    /// Segments in a row.
    height: f64,
    filled: Vec<bool>,
}

impl Dots {
    pub(crate) fn new(rows: usize) -> Self {
        Dots { exact: Vec::new(), raster: None, rows, count: 0 }
    }

    /// Adds a point of this column.
    pub(crate) fn add(&mut self, grid: &Grid, column: usize, (at, value): (f64, f64)) {
        self.count += 1;
        if let Some(raster) = &mut self.raster {
            raster.add(column, value);
        } else if self.exact.len() < EXACT {
            self.exact.push((at, value));
        } else {
            let mut raster = Raster::new(grid.count, self.rows);
            for (at, value) in std::mem::take(&mut self.exact) {
                if let Place::Column(column) = grid.place(at) {
                    raster.add(column, value);
                }
            }
            raster.add(column, value);
            self.raster = Some(raster);
        }
    }

    pub(crate) fn merge(&mut self) {
        if let Some(raster) = &mut self.raster {
            raster.merge_columns();
        }
    }

    /// The points, or the middles of the squares: seconds and values in turn.
    pub(crate) fn points(&self, grid: &Grid) -> Vec<f64> {
        let Some(raster) = &self.raster else {
            return self.exact.iter().flat_map(|&(at, value)| [at, value]).collect();
        };
        let filled = raster.filled.iter().enumerate().filter(|(_, filled)| **filled).map(|(n, _)| n);
        let point = |n: usize| {
            let (column, row) = (n / raster.rows, n % raster.rows);
            [grid.from + (column as f64 + 0.5) * grid.dt, (row as f64 + 0.5) * raster.height]
        };
        filled.flat_map(point).collect()
    }
}

impl Raster {
    fn new(columns: usize, rows: usize) -> Self {
        Raster { columns, rows, height: 1.0, filled: vec![false; columns * rows] }
    }

    fn add(&mut self, column: usize, value: f64) {
        while value >= self.height * self.rows as f64 {
            self.merge_rows();
        }
        let row = (value.max(0.0) / self.height) as usize;
        self.filled[column * self.rows + row] = true;
    }

    fn merge_rows(&mut self) {
        self.height *= 2.0;
        for column in self.filled.chunks_mut(self.rows) {
            let joined: Vec<bool> = column.chunks(2).map(|pair| pair.contains(&true)).collect();
            column.fill(false);
            column[..joined.len()].copy_from_slice(&joined);
        }
    }

    fn merge_columns(&mut self) {
        for n in 0..self.columns * self.rows {
            let (column, row) = (n / self.rows, n % self.rows);
            let either = |column: usize| column < self.columns && self.filled[column * self.rows + row];
            let filled = either(2 * column) || either(2 * column + 1);
            self.filled[n] = filled;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds points, merging columns as the plot does.
    fn dots(points: impl Iterator<Item = (f64, f64)>) -> (Dots, Grid) {
        let (mut dots, mut grid) = (Dots::new(64), Grid::open(32));
        for (at, value) in points {
            loop {
                match grid.place(at) {
                    Place::Column(column) => break dots.add(&grid, column, (at, value)),
                    Place::Merge => {
                        grid.merge();
                        dots.merge();
                    }
                    Place::Outside => unreachable!("an open grid has no outside"),
                }
            }
        }
        (dots, grid)
    }

    #[test]
    fn few_points_are_kept_exactly() {
        let (dots, grid) = dots([(0.1, 7.0), (12.3456789, 8.0)].into_iter());
        assert_eq!(dots.points(&grid), [0.1, 7.0, 12.3456789, 8.0]);
    }

    #[test]
    fn a_square_is_filled_if_and_only_if_it_has_a_point() {
        let all: Vec<_> = (0..20_000).map(|n| (f64::from(n) * 1e-3, f64::from(n * 7919 % 30_011))).collect();
        let (dots, grid) = dots(all.iter().copied());
        assert_eq!(dots.count, 20_000);
        let height = dots.raster.as_ref().expect("more than are kept").height;
        let square = |at: f64, value: f64| ((at / grid.dt) as u64, (value / height) as u64);
        let drawn: std::collections::BTreeSet<_> =
            dots.points(&grid).chunks(2).map(|point| square(point[0], point[1])).collect();
        let wanted: std::collections::BTreeSet<_> = all.iter().map(|&(at, value)| square(at, value)).collect();
        assert_eq!(drawn, wanted);
    }
}
