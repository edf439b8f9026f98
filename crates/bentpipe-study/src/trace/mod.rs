//! The traces of a run: packets for packet tools, rows for table tools.
//!
//! Reading order: [`PcapWriter`] packets as pcapng; [`Columns`] events as CSV or Parquet, [`COLUMNS`] says what each
//! column means. Both write under a temporary name in the same folder and rename at the end: a reader never sees half
//! a file, and an aborted run leaves none.

mod columns;
mod part;
mod pcapng;
mod row;

pub use columns::{Columns, Format};
pub use pcapng::PcapWriter;
pub use row::{COLUMNS, Column, Kind};
