//! Tables as Apache Parquet: columns of whole numbers, real numbers and text, written in groups of rows.
//!
//! Events of a run ([`trace`](crate::trace)) and the runs of a sweep are such tables. Parquet is written without
//! Arrow, because the columns already are the buffers that the format wants.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Number of rows buffered in memory and written together.
pub(crate) const ROW_GROUP: usize = 1 << 16;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// A real number.
    Real,
    /// Text.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Its name in the file.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: Kind,
    /// True if no cell is empty.
    pub required: bool,
    /// Its description, with the unit.
    pub meaning: Cow<'static, str>,
}

/// A value in a row: either empty or of its column's kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A whole number.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// No value.
    Empty,
}

/// An unfinished table.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl<W: Write + Send> std::fmt::Debug for Table<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("columns", &self.buffers.len()).field("rows", &self.rows).finish()
    }
}

impl<W: Write + Send> Table<W> {
    /// Starts a table of these columns. `said` holds keys and values for the file's metadata; they are followed by
    /// the meaning of each column, under `column.NAME`.
    ///
    /// # Errors
    /// Fails if the first bytes cannot be written.
    pub fn new(sink: W, name: &str, columns: &[Heading], said: &[(&str, String)]) -> io::Result<Self> {
        let given = said.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let meanings =
            columns.iter().map(|c| KeyValue::new(format!("column.{}", c.name), c.meaning.clone().into_owned()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("bentpipe ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(given.chain(meanings).collect()))
            .build();
        let writer = SerializedFileWriter::new(sink, schema(name, columns), Arc::new(properties)).map_err(to_io)?;
        Ok(Table { writer, buffers: columns.iter().map(Buffer::of).collect(), rows: 0 })
    }

    /// Adds a row; it has as many cells as there are columns.
    ///
    /// # Errors
    /// Fails if a full group of rows cannot be written, for example if the disk is full.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.buffers.len(), "a cell for each column");
        for (buffer, cell) in self.buffers.iter_mut().zip(cells) {
            buffer.push(cell);
        }
        self.rows += 1;
        if self.rows == ROW_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows and the index, and returns the sink.
    ///
    /// # Errors
    /// Fails if the remaining rows or the file's index cannot be written, for example if the disk is full.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.into_inner().map_err(to_io)
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.rows = 0;
        let mut group = self.writer.next_row_group().map_err(to_io)?;
        for buffer in &mut self.buffers {
            let column = group.next_column().map_err(to_io)?;
            let mut column = column.expect("the schema has as many columns as the table");
            buffer.write(&mut column).and_then(|()| column.close()).map_err(to_io)?;
        }
        group.close().map(drop).map_err(to_io)
    }
}

/// The values of a column since the last group.
struct Buffer {
    values: Values,
    /// For each row whether it has a value (definition level 1 or 0); `None` if the column is required.
    levels: Option<Vec<i16>>,
}

enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Buffer {
    fn of(column: &Heading) -> Self {
        let values = match column.kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        };
        Buffer { values, levels: (!column.required).then(Vec::new) }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        match (&mut self.values, cell) {
            (Values::Integers(values), Cell::Integer(value)) => values.push(*value),
            (Values::Reals(values), Cell::Real(value)) => values.push(*value),
            (Values::Texts(values), Cell::Text(value)) => values.push(ByteArray::from(&**value)),
            (_, cell) => debug_assert_eq!(*cell, Cell::Empty, "a cell has its column's kind"),
        }
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(*cell != Cell::Empty));
        }
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Integers(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Reals(values) => {
                column.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Texts(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

fn schema(name: &str, columns: &[Heading]) -> Arc<Type> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Integer => (PhysicalType::INT64, None),
            Kind::Real => (PhysicalType::DOUBLE, None),
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build();
        Arc::new(field.expect("a plain column"))
    });
    let fields = fields.collect();
    Arc::new(Type::group_type_builder(name).with_fields(fields).build().expect("a flat table"))
}

/// The system's error inside, if there is one.
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
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// Each group is written when it is full, and nothing is left after the last one.
    #[test]
    fn full_groups_leave_nothing() {
        let heading = Heading { name: "n".into(), kind: Kind::Integer, required: true, meaning: "A number.".into() };
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut table = Table::new(file.reopen().expect("it is there"), "numbers", &[heading], &[]).expect("writable");
        for n in 0..3 * ROW_GROUP as i64 {
            table.push(&[Cell::Integer(n)]).expect("writable");
        }
        table.finish().expect("writable");
        let reader = SerializedFileReader::new(file.reopen().expect("it is there")).expect("Parquet");
        let rows: Vec<_> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [ROW_GROUP as i64; 3]);
    }
}
