//! What a run leaves behind: packets for tools that know packets, rows for tools that know tables.
//!
//! Reading order: [`PcapWriter`] packets as pcapng; [`Columns`] events as CSV or Parquet, [`COLUMNS`] says what each
//! column means. Both write under a temporary name in the same folder and rename at the end: a reader never meets half
//! a file, and a run that is broken off leaves none.

mod columns;
mod part;
mod pcapng;
mod row;

pub use columns::{Columns, Format};
pub use pcapng::PcapWriter;
pub use row::{COLUMNS, Column, Kind};
