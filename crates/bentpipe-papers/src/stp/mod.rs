//! The study of Canhoto and Anzaloni: ESA's Satellite Transport Protocol against TCP over a GEO link with bit errors.
//!
//! The printed bit error rates cannot have produced the printed goodputs; `effective` searches for rates that would.
//!
//! Reading order: `setting` the scenarios; `measure` goodput; `study` the runs; `effective`; `tables`, `claims`,
//! `figures`; `seen` references for the other items.

mod claims;
mod effective;
mod figures;
mod measure;
mod seen;
mod setting;
mod study;
mod tables;

use crate::lab::Lab;
use crate::published::STP;
use crate::request::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, inventory};

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&STP)?;
    let lab = Lab::new(options, progress);
    let study = study::Study::new(&lab);
    in_parts(|rows| {
        if options.wants_table(1) {
            rows.extend(tables::goodput(&study)?);
        }
        if options.wants_table(2) {
            rows.extend(tables::ratios(&study)?);
        }
        for figure in (1..=figures::COUNT).filter(|&n| options.wants_figure(n)) {
            rows.push(figures::row(&study, figure, options.out_dir.as_deref())?);
        }
        if options.everything() {
            rows.extend(claims::rows(&study)?);
            rows.extend(inventory::rows(&STP, seen::SEEN, &lab, rows)?);
        }
        Ok(())
    })
}
