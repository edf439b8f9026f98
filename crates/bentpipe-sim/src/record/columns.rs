//! Every event of a run as a row of a table: CSV or Parquet.
//!
//! Ends of flows are called `FLOW/sender` (the end at `from`) and `FLOW/receiver`, those of the legs of a split flow
//! `FLOW/leg-1/sender` and so on, links by their names. [`bentpipe_study::trace::COLUMNS`] describes the columns.

use std::io;
use std::path::Path;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::topology::{Connection, connections, legs};
use bentpipe_study::trace::{self, Format};

use crate::observe::{LINK_BASE, Observer, Passage};
use crate::packet::Packet;

/// An unfinished table of events. An error during a run is kept for [`Columns::finish`].
#[derive(Debug)]
pub struct Columns {
    table: trace::Columns,
    /// Number of ends of connections; links are numbered after them.
    ends: u32,
}

impl Columns {
    /// Starts the table `path` for runs of `scenario`; `comment` says how to reproduce it.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created.
    pub fn create(path: &Path, format: Format, scenario: &Scenario, comment: &str) -> io::Result<Self> {
        let connections = connections(scenario);
        let ends = connections.iter().flat_map(|&Connection { flow, number, .. }| {
            let flow = &scenario[flow];
            let leg = || format!("{}/leg-{}", flow.name, number + 1);
            let name = if legs(flow).len() == 1 { flow.name.clone() } else { leg() };
            [format!("{name}/sender"), format!("{name}/receiver")]
        });
        let names: Vec<_> = ends.chain(scenario.links.iter().map(|link| link.name.clone())).collect();
        let table = trace::Columns::create(path, format, names, comment)?;
        Ok(Columns { table, ends: 2 * connections.len() as u32 })
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
        let row = if who.0 >= LINK_BASE { Who(self.ends + (who.0 - LINK_BASE)) } else { who };
        self.table.event(now, row, event);
    }
}

impl Observer for Columns {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &Packet) {}
}
