//! The study of Charalambos and others: TCP over ATM over the ACTS satellite.

use crate::Row;
use crate::published::ACTS;
use crate::reproduce::{Options, Progress, ReproduceError, in_parts};
use crate::unbuilt;

pub(crate) fn reproduce(options: &Options, _progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&ACTS)?;
    in_parts(|rows| {
        rows.extend(unbuilt::rest(&ACTS, options, rows));
        Ok(())
    })
}
