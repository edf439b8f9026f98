//! The study of Astuti and Kojo: TCP over a GEO link with error bursts, with and without the S-LACP link protocol.
//!
//! S-LACP is imitated as in the paper: in a burst, fewer packets are lost and all are delayed by one round trip of the
//! link. Additional runs use S-LACP itself, which the paper did not have.
//!
//! Reading order: `setting` the scenarios; `lab` makes the runs; `single` tables 1 and 2; `replicated` tables 3 to 14
//! and `counted` their confirmed statistics; `layer` and `layered` S-LACP itself; `forced` single bursts; `record` the
//! observer; `figures`; `claims`; `seen` references for the other items.

mod claims;
mod counted;
#[cfg(test)]
mod experiments;
mod figures;
mod forced;
mod lab;
mod layer;
mod layered;
mod record;
mod replicated;
mod seen;
mod setting;
mod single;
mod variant;

use lab::Lab;

use crate::published::TRANSAT;
use crate::request::{Options, Progress, ReproduceError, in_parts};
use crate::{Row, inventory};

/// Number of tables in the paper.
const TABLES: u8 = 14;

/// The row that counts over tables 3 to 14; it is at the top of the chapter (`lead` in the expectations).
const ALL_REPLICATED: &str = "T-M28/tables-3-to-14";

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&TRANSAT)?;
    let general = crate::lab::Lab::new(options, progress);
    let lab = Lab::new(&general);
    in_parts(|rows| {
        let mut counted = counted::Counted::default();
        for table in (1..=TABLES).filter(|&n| options.wants_table(n)) {
            if table <= 2 {
                rows.extend(single::rows(&lab, table)?);
            } else {
                let (of_table, count) = replicated::rows(&lab, table)?;
                counted.merge(&count);
                rows.extend(of_table);
            }
        }
        for figure in (1..=figures::COUNT).filter(|&n| options.wants_figure(n)) {
            rows.push(figures::row(&lab, figure, options.out_dir.as_deref())?);
        }
        if options.everything() {
            rows.push(counted.row(ALL_REPLICATED, "tables 3 to 14", "studies/transat/README.md says what was varied"));
            rows.extend(claims::rows(&lab)?);
            rows.extend(layered::rows(&lab)?);
            rows.extend(inventory::rows(&TRANSAT, seen::SEEN, &general, rows)?);
        }
        Ok(())
    })
}
