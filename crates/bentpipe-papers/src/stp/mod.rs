//! The study of Canhoto and Anzaloni: ESA's Satellite Transport Protocol against TCP.

use crate::Row;
use crate::published::STP;
use crate::reproduce::{Options, Progress, ReproduceError, in_parts};
use crate::unbuilt;

pub(crate) fn reproduce(options: &Options, _progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&STP)?;
    in_parts(|rows| {
        rows.extend(unbuilt::rest(&STP, options, rows));
        Ok(())
    })
}
