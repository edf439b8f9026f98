//! Every event of a run as a row of a table: CSV or Parquet.
//!
//! [`Names`] gives the names of ends and links, and [`bentpipe_study::trace::COLUMNS`] describes the columns.

use std::io;
use std::path::Path;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::trace::{self, Format};

use super::Names;
use crate::observe::{Observer, Passage};
use crate::packet::Packet;

/// A table of events that is being written. An error during a run is kept for [`Columns::finish`].
#[derive(Debug)]
pub struct Columns {
    table: trace::Columns,
    names: Names,
}

impl Columns {
    /// Starts the table `path` for runs of `scenario`. `comment` says how to reproduce it.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created.
    pub fn create(path: &Path, format: Format, scenario: &Scenario, comment: &str) -> io::Result<Self> {
        let names = Names::of(scenario);
        let table = trace::Columns::create(path, format, names.all().to_vec(), comment)?;
        Ok(Columns { table, names })
    }

    /// The first error, after which nothing more is written.
    pub fn error(&self) -> Option<&io::Error> {
        self.table.error()
    }

    /// Writes the remaining rows and renames the table to its final name.
    ///
    /// # Errors
    /// Returns the first error since the start, with the path.
    pub fn finish(self) -> io::Result<()> {
        self.table.finish()
    }
}

impl Probe for Columns {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        self.table.event(now, self.names.index(who), event);
    }
}

impl Observer for Columns {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &Packet) {}
}
