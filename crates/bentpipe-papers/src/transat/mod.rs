//! The study of Astuti and Kojo: TCP over a GEO link with error bursts, with and without the S-LACP link protocol.
//!
//! S-LACP is imitated as in the paper: fewer packets are lost in a burst, and the link is slower by one round trip.
//!
//! Reading order: `setting` the worlds; `lab` makes the runs; `single` tables 1 and 2; `replicated` tables 3 to 14;
//! `record` the watcher, `figures` and `drawing`; `claims` the statements; `inventory`
//! what else the paper contains.

mod claims;
mod drawing;
mod figures;
mod inventory;
mod lab;
mod record;
mod replicated;
mod setting;
mod single;

use lab::Lab;

use crate::Row;
use crate::reproduce::{Options, Progress, ReproduceError};

/// How many tables the paper has.
const TABLES: u8 = 14;

fn check(part: &'static str, number: Option<u8>, last: u8) -> Result<(), ReproduceError> {
    match number {
        Some(number) if !(1..=last).contains(&number) => Err(ReproduceError::NoSuchPart { part, number, last }),
        _ => Ok(()),
    }
}

pub(crate) fn reproduce(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    check("table", options.table, TABLES)?;
    check("figure", options.figure, figures::COUNT)?;
    if options.reps < 2 {
        return Err(ReproduceError::TooFewReplications(options.reps));
    }
    let lab = Lab::new(options, progress);
    let everything = options.table.is_none() && options.figure.is_none();
    let mut rows = Vec::new();
    for table in (1..=TABLES).filter(|&n| everything || options.table == Some(n)) {
        rows.extend(if table <= 2 { single::rows(&lab, table)? } else { replicated::rows(&lab, table)? });
    }
    for figure in (1..=figures::COUNT).filter(|&n| everything || options.figure == Some(n)) {
        rows.push(figures::row(&lab, figure, options.out_dir.as_deref())?);
    }
    if everything {
        rows.extend(claims::rows(&lab)?);
        rows.extend(inventory::rows(&lab, &rows)?);
    }
    Ok(rows)
}
