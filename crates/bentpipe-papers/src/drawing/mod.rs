//! Drawings of a scenario: its nodes and links, the protocols of its nodes, the blocks that a packet passes.
//! Everything is drawn from the scenario, so a drawing shows what is run.

mod blocks;
mod canvas;
mod queues;
mod stack;
mod topology;
mod words;

use std::path::Path;

use bentpipe_study::report::{WriteError, write_whole};

pub(crate) use blocks::blocks;
pub(crate) use queues::{Shape, Station, queues};
pub(crate) use stack::stack;
pub(crate) use topology::topology;

/// A drawing, and its content as a table.
pub(crate) struct Drawing {
    svg: String,
    csv: String,
}

impl Drawing {
    /// Writes `ID.svg` and `ID.csv` to `folder`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn write(&self, folder: &Path, id: &str) -> Result<(), WriteError> {
        write_whole(&folder.join(format!("{id}.svg")), self.svg.as_bytes())?;
        write_whole(&folder.join(format!("{id}.csv")), self.csv.as_bytes())
    }
}

/// A row of a CSV file; a cell with a comma is quoted (RFC 4180).
fn csv_row(cells: &[&str]) -> String {
    let quoted = |cell: &&str| {
        if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { (*cell).to_owned() }
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
