//! Drawings of a scenario: its nodes and links, the protocols of its nodes, the blocks that a packet passes.
//! Everything is drawn from the scenario, so a drawing shows what is run.

mod blocks;
mod canvas;
mod queues;
mod stack;
mod topology;
mod words;

#[cfg(feature = "files")]
use {
    crate::report::{WriteError, write_in},
    std::path::Path,
};

pub use blocks::blocks;
pub use queues::{Shape, Station, queues};
pub use stack::stack;
pub use topology::topology;

/// A drawing, and its content as a table.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The picture.
    pub svg: String,
    /// The table.
    pub csv: String,
}

#[cfg(feature = "files")]
impl Drawing {
    /// Writes `ID.svg` and `ID.csv` to `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, folder: &Path, id: &str) -> Result<(), WriteError> {
        write_in(folder, &format!("{id}.svg"), self.svg.as_bytes())?;
        write_in(folder, &format!("{id}.csv"), self.csv.as_bytes())
    }
}

/// A row of a CSV file.
fn csv_row(cells: &[&str]) -> String {
    cells.iter().map(|cell| crate::csv::field(cell)).collect::<Vec<_>>().join(",") + "\n"
}
