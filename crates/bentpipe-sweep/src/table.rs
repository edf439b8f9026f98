//! The table of a finished sweep: a line for each flow of each run, in the order of the plan, with the values set.
//!
//! It is written from the rows of the plan, so its bytes do not depend on the number of threads, on interruptions of the sweep, or on
//! other runs in the folder.

use std::io;
use std::path::Path;

use bentpipe_study::output::OutputFile;
use bentpipe_study::table::{Cell, Heading, Kind, Table};

use crate::key::ENGINE;
use crate::plan::Plan;
use crate::store::{Store, cells, headings};
use crate::summary::numeric;

fn heading(name: &str, kind: Kind, required: bool, meaning: &str) -> Heading {
    Heading { name: name.to_owned().into(), kind, required, meaning: meaning.to_owned().into() }
}

/// The values of an axis at all points, as numbers in a base unit if all are numbers.
enum Column {
    Numbers(&'static str, Vec<f64>),
    Words,
}

/// The lines of the table of a plan: a heading for each column, and a cell for each of them.
pub struct Lines {
    headings: Vec<Heading>,
    axes: Vec<Column>,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("headings", &self.headings).finish_non_exhaustive()
    }
}

impl Lines {
    /// The columns of this plan.
    pub fn of(plan: &Plan) -> Lines {
        let spec = plan.spec();
        let axis = |n: usize| match numeric((0..plan.points()).map(|point| plan.values(point)[n].as_str())) {
            Some((unit, numbers)) => Column::Numbers(unit, numbers),
            None => Column::Words,
        };
        let axes: Vec<Column> = (0..spec.axes.len()).map(axis).collect();
        let mut columns = vec![
            heading("point", Kind::Integer, true, "Number of the point, from 0."),
            heading("candidate", Kind::Text, true, "Variant and gateway."),
            heading("repetition", Kind::Integer, true, "Number of the repetition, from 0."),
        ];
        columns.extend(spec.axes.iter().zip(&axes).map(|(axis, column)| match column {
            Column::Numbers(unit, _) => {
                heading(&axis.key, Kind::Real, true, &format!("Value of this key of the scenario, {unit}."))
            }
            Column::Words => heading(&axis.key, Kind::Text, true, "Value of this key of the scenario."),
        }));
        columns.extend(headings());
        Lines { headings: columns, axes }
    }

    /// The columns.
    pub fn headings(&self) -> &[Heading] {
        &self.headings
    }

    /// Passes each line of the completed points to `take`, and stops at its first error.
    ///
    /// # Errors
    /// Returns the first error of `take`.
    pub fn each<E>(
        &self,
        plan: &Plan,
        store: &Store,
        mut take: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        for point in 0..plan.points() {
            for repetition in 0..plan.repetitions(point).unwrap_or(0) {
                for (index, candidate) in plan.spec().candidates.iter().enumerate() {
                    let Some(row) = plan.key(point, index, repetition).and_then(|key| store.get(&key)) else {
                        continue;
                    };
                    for flow in &row.flows {
                        let mut line = vec![
                            Cell::Integer(point as i64),
                            Cell::Text(candidate.name.as_str().into()),
                            Cell::Integer(i64::from(repetition)),
                        ];
                        line.extend(self.axes.iter().enumerate().map(|(n, column)| match column {
                            Column::Numbers(_, numbers) => Cell::Real(numbers[point]),
                            Column::Words => Cell::Text(plan.values(point)[n].as_str().into()),
                        }));
                        line.extend(cells(row, flow));
                        take(&line)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes the runs of a finished plan to `path` as Parquet, with the text of the sweep file in the metadata.
///
/// # Errors
/// Fails if the file cannot be written. The message has the path.
pub fn write_table(path: &Path, plan: &Plan, store: &Store) -> io::Result<()> {
    let lines = Lines::of(plan);
    let said = [
        ("engine", ENGINE.to_owned()),
        ("sweep", plan.spec().text.clone()),
        ("scenario", plan.spec().scenario.clone()),
    ];
    let mut table = Table::new(OutputFile::create(path)?, "sweep", &lines.headings, &said)?;
    lines.each(plan, store, |cells| table.push(cells))?;
    table.finish()?.finish_on_disk()
}
