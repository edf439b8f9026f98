//! The study of Minei and Cohen: a unidirectional GEO channel with a modem for the way back.

use crate::Row;
use crate::published::MINEI;
use crate::reproduce::{Options, Progress, ReproduceError, in_parts};
use crate::unbuilt;

pub(crate) fn reproduce(options: &Options, _progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&MINEI)?;
    in_parts(|rows| {
        rows.extend(unbuilt::rest(&MINEI, options, rows));
        Ok(())
    })
}
