//! The study of Charalambos and others: TCP over ATM over the ACTS satellite.
//!
//! Reading order: `worlds`, the scenarios and changes to them; `tables`, the six tables; `sweeps`, the curves over
//! offered load (figure 6), bit error rate and buffer; `causes`, variations for figure 6; `figures`, the drawings;
//! `claims`; `seen`, references for the other items.

mod causes;
mod claims;
mod figures;
mod load;
mod seen;
mod sweeps;
mod tables;
mod worlds;

use std::num::NonZeroU32;

use crate::lab::Lab;
use crate::published::ACTS;
use crate::request::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, inventory};

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&ACTS)?;
    let mut lab = Lab::new(options, progress);
    if options.shortened > NonZeroU32::MIN {
        lab = lab.ending_after(worlds::TRIAL.div_floor(options.shortened.get().into()));
    }
    in_parts(|rows| {
        for table in (1..=ACTS.last_table()).filter(|&n| options.wants_table(n)) {
            rows.extend(tables::rows(&lab, table)?);
        }
        for figure in (1..=ACTS.last_figure()).filter(|&n| options.wants_figure(n)) {
            rows.push(figures::row(&lab, figure)?);
        }
        if options.everything() {
            rows.extend(claims::rows(&lab)?);
            rows.extend(inventory::rows(&ACTS, seen::SEEN, &lab, rows)?);
        }
        Ok(())
    })
}
