//! The board as tables: one per link, best first.

use super::cell::{Entry, Field};
use super::place::{PLACES, Place};
use super::{Board, Cell};

/// A link's transfers, with their transports, best first.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// The link.
    pub place: &'static Place,
    /// Its transfers, with the minimum time that the links allow TCP from end to end, seconds.
    pub fields: Vec<(Field, Option<f64>)>,
    /// Its rows, best first.
    pub rows: Vec<Row<'a>>,
    /// Missing shapes, each with the reason; QUIC with boxes that terminate connections is not listed.
    pub unfit: Vec<(&'static str, &'a str)>,
}

/// A row: the transports of a link's transfers.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The transports: several if all their results are equal, as with a box that terminates connections.
    pub transports: Vec<&'static str>,
    /// `plain`, or the gateway's shape.
    pub shape: &'static str,
    /// Its cells, in the order of the fields.
    pub cells: Vec<Option<&'a Cell>>,
    /// Geometric mean of its ratios to the limit; `None` if a transfer did not finish.
    pub x_limit: Option<f64>,
    /// The longest p99 of a ping beside its transfers, seconds.
    pub ping_p99_s: Option<f64>,
}

impl Board {
    /// A table for each link.
    pub fn tables(&self) -> Vec<Table<'_>> {
        let has = |place: &&'static Place| self.limits.iter().any(|limit| limit.field.place == place.name);
        PLACES.iter().filter(has).map(|place| self.table(place)).collect()
    }

    fn table(&self, place: &'static Place) -> Table<'_> {
        let limits = self.limits.iter().filter(|limit| limit.field.place == place.name);
        let fields: Vec<_> = limits.map(|limit| (limit.field, limit.limit_s)).collect();
        let cells: Vec<&Cell> = self.cells.iter().filter(|cell| cell.field.place == place.name).collect();
        let mut entries: Vec<Entry> = Vec::new();
        for cell in &cells {
            if !entries.contains(&cell.entry) {
                entries.push(cell.entry);
            }
        }
        let (mut rows, mut unfit): (Vec<Row<'_>>, Vec<_>) = (Vec::new(), Vec::new());
        for entry in entries {
            let own = || cells.iter().copied().filter(|cell| cell.entry == entry);
            match own().find_map(|cell| cell.unfit.as_deref()) {
                Some(super::cell::NOT_ENDED) => {}
                Some(reason) if unfit.contains(&(entry.shape, reason)) => {}
                Some(reason) => unfit.push((entry.shape, reason)),
                None => {
                    let of = |field: Field| own().find(|cell| cell.field == field);
                    let new = row(entry, fields.iter().map(|(field, _)| of(*field)).collect());
                    match rows.iter_mut().find(|row| row.is_equal(&new)) {
                        Some(row) => row.transports.extend(new.transports),
                        None => rows.push(new),
                    }
                }
            }
        }
        // Those with unfinished transfers last; the order of equal ones is the board's.
        rows.sort_by(|a, b| {
            let x = |row: &Row<'_>| row.x_limit.unwrap_or(f64::INFINITY);
            a.missing().cmp(&b.missing()).then(x(a).total_cmp(&x(b)))
        });
        Table { place, fields, rows, unfit }
    }
}

impl Row<'_> {
    /// Transfers without a time.
    fn missing(&self) -> usize {
        self.cells.iter().filter(|cell| cell.is_none_or(|cell| cell.x_limit.is_none())).count()
    }

    /// True if both have the same shape and the same results.
    fn is_equal(&self, other: &Row<'_>) -> bool {
        let results = |row: &Row<'_>| -> Vec<_> {
            let of = |cell: &Cell| (cell.time_s, cell.unfinished, cell.ping_p99_s);
            row.cells.iter().map(|cell| cell.map(of)).collect()
        };
        self.shape == other.shape && results(self) == results(other)
    }
}

fn row(entry: Entry, cells: Vec<Option<&Cell>>) -> Row<'_> {
    let ratios: Option<Vec<f64>> = cells.iter().map(|cell| (*cell)?.x_limit).collect();
    // A portable logarithm: the same order on every machine.
    let mean = |ratios: Vec<f64>| {
        let sum: f64 = ratios.iter().map(|ratio| libm::log(*ratio)).sum();
        libm::exp(sum / ratios.len() as f64)
    };
    let pings = cells.iter().flatten().filter_map(|cell| cell.ping_p99_s);
    Row {
        transports: vec![entry.transport],
        shape: entry.shape,
        x_limit: ratios.filter(|ratios| !ratios.is_empty()).map(mean),
        ping_p99_s: pings.max_by(f64::total_cmp),
        cells,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Limit;
    use super::*;
    use crate::ranks::Median;

    fn cell(transport: &'static str, size: &'static str, x_limit: Option<f64>) -> Cell {
        let time_s = x_limit.map(|x| Median { median: x, low: None, high: None });
        let field = Field { place: "meo", loss: "own", size };
        let entry = Entry { transport, shape: "plain" };
        let unfinished = usize::from(x_limit.is_none());
        Cell { field, entry, unfit: None, runs: 1, unfinished, time_s, x_limit, ping_p99_s: x_limit }
    }

    #[test]
    fn the_best_is_first_and_the_unfinished_last() {
        let sizes = ["2 MB", "10 MB"];
        let limits = sizes.map(|size| Limit { field: Field { place: "meo", loss: "own", size }, limit_s: Some(1.0) });
        let boxes = |size, x_limit| {
            let cell = cell("cubic", size, Some(x_limit));
            Cell { entry: Entry { shape: "split", ..cell.entry }, ..cell }
        };
        let cells = vec![
            cell("reno", "2 MB", None),
            cell("reno", "10 MB", None),
            cell("hybla", "2 MB", Some(1.0)),
            cell("hybla", "10 MB", None),
            cell("vegas", "2 MB", Some(2.0)),
            cell("vegas", "10 MB", Some(8.0)),
            cell("bbr3", "2 MB", Some(1.0)),
            cell("bbr3", "10 MB", Some(9.0)),
            cell("cubic", "2 MB", Some(1.0)),
            cell("cubic", "10 MB", Some(9.0)),
            boxes("2 MB", 1.0),
            boxes("10 MB", 9.0),
        ];
        let board = Board { seed: 1, limits: limits.to_vec(), cells, conduct: Vec::new(), interrupted: false };
        let tables = board.tables();
        let rows: Vec<_> = tables[0].rows.iter().map(|row| (row.transports.join("+"), row.x_limit)).collect();
        let names: Vec<_> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["bbr3+cubic", "cubic", "vegas", "hybla", "reno"], "equal ones of one shape are one row");
        // The roots of 1 x 9 and 2 x 8.
        assert!((rows[0].1.expect("a mean") - 3.0).abs() < 1e-9 && (rows[2].1.expect("a mean") - 4.0).abs() < 1e-9);
        assert_eq!((rows[3].1, tables[0].rows[2].ping_p99_s), (None, Some(8.0)));
    }
}
