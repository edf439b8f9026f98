//! The traces of a run: packets for packet tools, rows for table tools.
//!
//! Reading order: [`PcapWriter`] packets as pcapng; [`Columns`] events as CSV or Parquet, [`COLUMNS`] says what each
//! column means, and [`row`] is an event as one. Both write an [`OutputFile`](crate::output::OutputFile).

mod columns;
mod pcapng;
mod row;

pub use crate::table::{Cell, Kind};
pub use columns::{Columns, Format};
pub use pcapng::PcapWriter;
pub use row::{COLUMNS, Column, Row, row};
