//! The entry point: runs the study of a paper and returns its rows.

use crate::Row;
use crate::request::in_parts;
pub use crate::request::{Options, Progress, ReproduceError};

/// A function that reproduces a paper.
type Study = fn(&Options, Progress<'_>) -> Result<Vec<Row>, ReproduceError>;

const STUDIES: [Study; 5] = [transat, minei, acts, hybrid, stp];

/// Reproduces the `transat` paper (Astuti and Kojo): its tables, figures, claims, items and decisions, as
/// selected by `options`.
///
/// # Errors
/// Fails if the paper has no such table or figure, if `options.reps` is below 2, if a scenario cannot run, if a transfer
/// does not finish, if a figure cannot be written to `options.out_dir`, or if `options.stop` returns true.
pub fn transat(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::transat::reproduce(options, progress)
}

/// Reproduces the `minei` paper (Minei and Cohen).
///
/// # Errors
/// Fails for the reasons of [`transat`].
pub fn minei(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::minei::reproduce(options, progress)
}

/// Reproduces the `acts` paper (Charalambos and others).
///
/// # Errors
/// Fails for the reasons of [`transat`].
pub fn acts(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::acts::reproduce(options, progress)
}

/// Reproduces the `hybrid` paper (Zhu, Roy and Kim).
///
/// # Errors
/// Fails for the reasons of [`transat`].
pub fn hybrid(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::hybrid::reproduce(options, progress)
}

/// Reproduces the `stp` paper (Canhoto and Anzaloni).
///
/// # Errors
/// Fails for the reasons of [`transat`].
pub fn stp(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::stp::reproduce(options, progress)
}

/// Reproduces all papers, one after the other.
///
/// # Errors
/// As [`transat`]; also fails if a table or figure is selected, because each paper has its own.
pub fn all(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    if options.table.is_some() || options.figure.is_some() {
        return Err(ReproduceError::WhosePart(if options.table.is_some() { "table" } else { "figure" }));
    }
    in_parts(|rows| {
        for study in STUDIES {
            rows.extend(study(options, progress)?);
        }
        Ok(())
    })
}
