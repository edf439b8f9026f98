//! The traces of a run: packets for packet tools, rows for table tools.
//!
//! Reading order: [`PcapWriter`] writes packets as pcapng; [`Columns`] writes events as CSV or Parquet. [`COLUMNS`]
//! says what each column means, and [`row`] turns an event into a row. Both writers write an
//! [`OutputFile`](crate::output::OutputFile).

mod columns;
mod pcapng;
mod row;

pub use crate::table::{Cell, Kind};
pub use columns::{Columns, Format};
pub use pcapng::PcapWriter;
pub use row::{COLUMNS, Column, Row, row};
