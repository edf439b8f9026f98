//! Events as columns: CSV for reading and spreadsheets, Parquet for large tables.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bentpipe_engine::Probe;
use bentpipe_engine::probe::{Event, Who};
use bentpipe_engine::units::Time;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::row::{COLUMNS, Cell, Column, Kind, row};
use crate::output::OutputFile;

/// Number of rows buffered in memory and written together.
const ROW_GROUP: usize = 1 << 16;

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
        match path.extension()?.to_str()? {
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
    Parquet { writer: Box<SerializedFileWriter<OutputFile>>, buffers: Vec<Buffer>, rows: usize },
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
                writer.write_record(COLUMNS.iter().map(|column| column.name))?;
                Sink::Csv(Box::new(writer))
            }
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_created_by(concat!("bentpipe ", env!("CARGO_PKG_VERSION")).into())
                    .set_key_value_metadata(Some(metadata(comment)))
                    .build();
                let writer = SerializedFileWriter::new(file, schema(), Arc::new(properties)).map_err(to_io)?;
                let buffers = COLUMNS.iter().map(Buffer::of).collect();
                Sink::Parquet { writer: Box::new(writer), buffers, rows: 0 }
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
                    match cell {
                        Cell::Integer(value) => writer.write_field(value.to_string())?,
                        Cell::Real(value) => writer.write_field(value.to_string())?,
                        Cell::Text(value) => writer.write_field(value.as_bytes())?,
                        Cell::Empty => writer.write_field("")?,
                    }
                }
                writer.write_record(None::<&[u8]>)?;
            }
            Sink::Parquet { writer, buffers, rows } => {
                for (buffer, cell) in buffers.iter_mut().zip(&cells) {
                    buffer.push(cell);
                }
                *rows += 1;
                if *rows == ROW_GROUP {
                    write_group(writer, buffers).map_err(to_io)?;
                    *rows = 0;
                }
            }
        }
        Ok(())
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
            Sink::Parquet { mut writer, mut buffers, rows } => {
                if rows > 0 {
                    write_group(&mut writer, &mut buffers).map_err(to_io)?;
                }
                writer.into_inner().map_err(to_io)?
            }
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

/// The values of a column since the last row group, and for each row whether it has one (definition level 1 or 0).
enum Buffer {
    Integers(Vec<i64>, Vec<i16>),
    Reals(Vec<f64>, Vec<i16>),
    Texts(Vec<ByteArray>, Vec<i16>),
}

impl Buffer {
    fn of(column: &Column) -> Self {
        match column.kind {
            Kind::Integer => Buffer::Integers(Vec::new(), Vec::new()),
            Kind::Real => Buffer::Reals(Vec::new(), Vec::new()),
            Kind::Text => Buffer::Texts(Vec::new(), Vec::new()),
        }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        let levels = match (self, cell) {
            (Buffer::Integers(values, levels), Cell::Integer(value)) => {
                values.push(*value);
                levels.push(1);
                return;
            }
            (Buffer::Reals(values, levels), Cell::Real(value)) => {
                values.push(*value);
                levels.push(1);
                return;
            }
            (Buffer::Texts(values, levels), Cell::Text(value)) => {
                values.push(ByteArray::from(&**value));
                levels.push(1);
                return;
            }
            (Buffer::Integers(_, levels) | Buffer::Reals(_, levels) | Buffer::Texts(_, levels), cell) => {
                debug_assert_eq!(*cell, Cell::Empty, "a cell has its column's kind");
                levels
            }
        };
        levels.push(0);
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>, required: bool) -> Result<(), ParquetError> {
        let levels = |levels: &Vec<i16>| (!required).then(|| levels.clone());
        match self {
            Buffer::Integers(values, l) => {
                column.typed::<Int64Type>().write_batch(values, levels(l).as_deref(), None)?;
                values.clear();
                l.clear();
            }
            Buffer::Reals(values, l) => {
                column.typed::<DoubleType>().write_batch(values, levels(l).as_deref(), None)?;
                values.clear();
                l.clear();
            }
            Buffer::Texts(values, l) => {
                column.typed::<ByteArrayType>().write_batch(values, levels(l).as_deref(), None)?;
                values.clear();
                l.clear();
            }
        }
        Ok(())
    }
}

fn write_group(writer: &mut SerializedFileWriter<OutputFile>, buffers: &mut [Buffer]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (index, buffer) in buffers.iter_mut().enumerate() {
        let mut column = group.next_column()?.expect("the schema has as many columns as the table");
        buffer.write(&mut column, index < REQUIRED)?;
        column.close()?;
    }
    group.close().map(drop)
}

fn schema() -> Arc<Type> {
    let fields = COLUMNS.iter().enumerate().map(|(index, column)| {
        let (physical, logical) = match column.kind {
            Kind::Integer => (PhysicalType::INT64, None),
            Kind::Real => (PhysicalType::DOUBLE, None),
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if index < REQUIRED { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let field = Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build();
        Arc::new(field.expect("a plain column"))
    });
    let fields = fields.collect();
    Arc::new(Type::group_type_builder("events").with_fields(fields).build().expect("a flat table"))
}

/// The comment and the meaning of each column.
fn metadata(comment: &str) -> Vec<KeyValue> {
    let meanings = COLUMNS.iter().map(|c| KeyValue::new(format!("column.{}", c.name), c.meaning.to_owned()));
    std::iter::once(KeyValue::new("run".into(), comment.to_owned())).chain(meanings).collect()
}

fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
