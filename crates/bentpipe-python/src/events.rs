//! Every event as a row: the columns of `bentpipe run --trace`.

use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, Float64Builder, Int64Builder};
use bentpipe_engine::probe::Event;
use bentpipe_engine::units::Time;
use bentpipe_study::trace::{COLUMNS, Cell, Kind, row};

use crate::table::{Table, Words, table};

/// A column of a table that is filled row by row.
pub(crate) enum Column {
    Integers(Int64Builder),
    Reals(Float64Builder),
    Words(Words),
}

impl Column {
    pub(crate) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Column::Integers(Int64Builder::new()),
            Kind::Real => Column::Reals(Float64Builder::new()),
            Kind::Text => Column::Words(Words::new()),
        }
    }

    pub(crate) fn push(&mut self, cell: &Cell<'_>) {
        match (self, cell) {
            (Column::Integers(values), Cell::Integer(value)) => values.append_value(*value),
            (Column::Reals(values), Cell::Real(value)) => values.append_value(*value),
            (Column::Words(values), Cell::Text(value)) => {
                values.append_value(value);
            }
            (Column::Integers(values), _) => values.append_null(),
            (Column::Reals(values), _) => values.append_null(),
            (Column::Words(values), _) => values.append_null(),
        }
    }

    pub(crate) fn finish(self) -> ArrayRef {
        match self {
            Column::Integers(mut values) => ArrayBuilder::finish(&mut values),
            Column::Reals(mut values) => ArrayBuilder::finish(&mut values),
            Column::Words(mut values) => ArrayBuilder::finish(&mut values),
        }
    }
}

/// All events so far.
pub(crate) struct Events(Vec<Column>);

impl Default for Events {
    fn default() -> Self {
        Events(COLUMNS.iter().map(|of| Column::of(of.kind)).collect())
    }
}

impl Events {
    pub(crate) fn push(&mut self, now: Time, who: &str, event: &Event) {
        for (column, cell) in self.0.iter_mut().zip(&row(now, who, event)) {
            column.push(cell);
        }
    }

    pub(crate) fn finish(self) -> Table {
        let columns = COLUMNS.iter().zip(self.0);
        table(columns.map(|(of, values)| (of.name, of.meaning, values.finish())))
    }
}
