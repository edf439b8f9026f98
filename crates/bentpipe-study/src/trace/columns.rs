//! Events as columns: CSV for reading and spreadsheets, Parquet for large tables.

use std::io;
use std::path::Path;

use bentpipe_engine::Probe;
use bentpipe_engine::probe::{Event, Who};
use bentpipe_engine::units::Time;

use super::row::{COLUMNS, Column, row};
use crate::output::OutputFile;
use crate::table::{Cell, Heading, Table};

/// The first columns are never empty.
const REQUIRED: usize = 3;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a header line; empty cells are empty.
    Csv,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
}

impl Format {
    /// From the file extension: `.csv`, `.parquet`.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }
}

/// An unfinished event table. It is a [`Probe`], which cannot fail during a run, so the first error is kept for
/// [`Columns::finish`].
#[derive(Debug)]
pub struct Columns {
    names: Vec<String>,
    sink: Sink,
    error: Option<io::Error>,
}

enum Sink {
    Csv(Box<csv::Writer<OutputFile>>),
    Parquet(Box<Table<OutputFile>>),
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Sink::Csv(_)) { "Csv" } else { "Parquet" })
    }
}

impl Columns {
    /// Starts the table `path`. `names` are the machines, by the number in [`Who`]; `comment` says what was run, and
    /// goes into the metadata of a Parquet file (CSV has none).
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created.
    pub fn create(path: &Path, format: Format, names: Vec<String>, comment: &str) -> io::Result<Self> {
        let file = OutputFile::create(path)?;
        let sink = match format {
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(file);
                writer.write_record(COLUMNS.iter().map(|column| column.name)).map_err(to_io)?;
                Sink::Csv(Box::new(writer))
            }
            Format::Parquet => {
                let table = Table::new(file, "events", &headings(), &[("run", comment.to_owned())])?;
                Sink::Parquet(Box::new(table))
            }
        };
        Ok(Columns { names, sink, error: None })
    }

    /// Writes one row.
    ///
    /// # Errors
    /// Fails if the file cannot be written, for example if the disk is full.
    pub fn push(&mut self, now: Time, who: Who, event: &Event) -> io::Result<()> {
        let unknown;
        let who = match self.names.get(who.0 as usize) {
            Some(name) => name,
            None => {
                unknown = format!("#{}", who.0);
                &unknown
            }
        };
        let cells = row(now, who, event);
        match &mut self.sink {
            Sink::Csv(writer) => {
                for cell in &cells {
                    let written = match cell {
                        Cell::Integer(value) => writer.write_field(value.to_string()),
                        Cell::Real(value) => writer.write_field(value.to_string()),
                        Cell::Text(value) => writer.write_field(value.as_bytes()),
                        Cell::Empty => writer.write_field(""),
                    };
                    written.map_err(to_io)?;
                }
                writer.write_record(None::<&[u8]>).map_err(to_io)?;
            }
            Sink::Parquet(table) => table.push(&cells)?,
        }
        Ok(())
    }

    /// The first error, after which nothing more is written.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Writes the remaining rows and renames the file.
    ///
    /// # Errors
    /// Returns the first error since the start.
    pub fn finish(self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let file = match self.sink {
            Sink::Csv(writer) => writer.into_inner().map_err(csv::IntoInnerError::into_error)?,
            Sink::Parquet(table) => table.finish()?,
        };
        file.finish().map(drop)
    }
}

impl Probe for Columns {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if self.error.is_none() {
            self.error = self.push(now, who, event).err();
        }
    }
}

/// The system's error inside; `From` would hide its kind.
fn to_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The columns as a table has them.
fn headings() -> Vec<Heading> {
    let heading = |(index, column): (usize, &Column)| Heading {
        name: column.name.into(),
        kind: column.kind,
        required: index < REQUIRED,
        meaning: column.meaning.into(),
    };
    COLUMNS.iter().enumerate().map(heading).collect()
}

#[cfg(test)]
mod tests;
