//! The study of Zhu, Roy and Kim: TCP splitting against end-to-end TCP over a repairing link layer.

use crate::Row;
use crate::published::HYBRID;
use crate::reproduce::{Options, Progress, ReproduceError, in_parts};
use crate::unbuilt;

pub(crate) fn reproduce(options: &Options, _progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    options.check(&HYBRID)?;
    in_parts(|rows| {
        rows.extend(unbuilt::rest(&HYBRID, options, rows));
        Ok(())
    })
}
