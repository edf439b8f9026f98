//! The options of a request, and its errors.

use std::num::NonZeroU32;
use std::path::PathBuf;

use bentpipe_sim::RunError;
use bentpipe_study::report::WriteError;

use crate::Row;
use crate::published::Paper;

/// What to reproduce, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this table, from 1.
    pub table: Option<u8>,
    /// Only this figure, from 1.
    pub figure: Option<u8>,
    /// Replications per statistic. More replications give more accurate ranges. A paper's statistic of 20 runs is always
    /// compared with samples of 20.
    pub reps: u32,
    /// Divides the simulated time of `hybrid`, and of the trials of `acts`. The expectations need 1; a larger number is for tests that
    /// check only that rows exist.
    pub shortened: NonZeroU32,
    /// Seed of the first replication; the others follow it.
    pub seed: u64,
    /// Number of parallel runs; the results do not depend on it.
    pub threads: usize,
    /// Output folder for figures, as SVG and CSV; `None` draws none.
    pub out_dir: Option<PathBuf>,
    /// Called regularly. If it returns true, the work stops with [`ReproduceError::Cut`], which has the rows so far.
    pub stop: fn() -> bool,
}

impl Default for Options {
    /// The whole paper with 200 replications from seed 1, on all processors, without drawing figures.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            table: None,
            figure: None,
            reps: 200,
            shortened: NonZeroU32::MIN,
            seed: 1,
            threads,
            out_dir: None,
            stop: || false,
        }
    }
}

impl Options {
    /// True if the whole paper is requested, including claims, items and decisions.
    pub(crate) fn everything(&self) -> bool {
        self.table.is_none() && self.figure.is_none()
    }

    /// True if table `number` is requested.
    pub(crate) fn wants_table(&self, number: u8) -> bool {
        self.everything() || self.table == Some(number)
    }

    /// True if figure `number` is requested.
    pub(crate) fn wants_figure(&self, number: u8) -> bool {
        self.everything() || self.figure == Some(number)
    }

    /// Returns an error if the paper has no such table or figure, or if `reps` is below 2.
    pub(crate) fn check(&self, paper: &Paper) -> Result<(), ReproduceError> {
        for (part, number, last) in
            [("table", self.table, paper.last_table()), ("figure", self.figure, paper.last_figure())]
        {
            match number {
                Some(_) if last == 0 => return Err(ReproduceError::NoSuchKind { paper: paper.key.clone(), part }),
                Some(number) if !(1..=last).contains(&number) => {
                    return Err(ReproduceError::NoSuchPart { part, number, last });
                }
                _ => {}
            }
        }
        if self.reps < 2 { Err(ReproduceError::TooFewReplications(self.reps)) } else { Ok(()) }
    }
}

/// Receives progress: what is running, the number of completed runs, and their total.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Why a paper could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A table or figure that the paper does not have.
    #[error("the paper has no {part} {number}; it has 1 to {last}")]
    NoSuchPart {
        /// "table" or "figure".
        part: &'static str,
        /// The requested number.
        number: u8,
        /// The last number.
        last: u8,
    },
    /// A table of a paper without tables, or a figure of a paper without figures.
    #[error("the paper `{paper}` has no numbered {part}s")]
    NoSuchKind {
        /// Its short name.
        paper: String,
        /// "table" or "figure".
        part: &'static str,
    },
    /// A table or figure requested of all papers.
    #[error("each paper has its own {0}s: name a paper, or leave the {0} out")]
    WhosePart(&'static str),
    /// Fewer than two replications.
    #[error("at least 2 replications are needed, not {0}")]
    TooFewReplications(u32),
    /// A transfer did not finish.
    #[error("seed {seed}: a transfer of {what} did not end")]
    Unfinished {
        /// The run.
        what: String,
        /// Its seed.
        seed: u64,
    },
    /// Stopped by [`Options::stop`].
    #[error("stopped after {} rows", rows.len())]
    Cut {
        /// The rows so far.
        rows: Vec<Row>,
    },
    /// The simulator cannot run a scenario.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file that could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl ReproduceError {
    /// A stop by [`Options::stop`], without rows.
    pub(crate) fn cut() -> Self {
        ReproduceError::Cut { rows: Vec::new() }
    }
}

/// Runs work that adds rows part by part. If it stops with [`ReproduceError::Cut`], that error gets all rows so far.
pub(crate) fn in_parts(
    work: impl FnOnce(&mut Vec<Row>) -> Result<(), ReproduceError>,
) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    match work(&mut rows) {
        Ok(()) => Ok(rows),
        Err(ReproduceError::Cut { rows: of_the_last }) => {
            rows.extend(of_the_last);
            Err(ReproduceError::Cut { rows })
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        Row::new(id, "", None, None, "")
    }

    #[test]
    fn what_was_done_before_the_cut_stays() {
        let cut = in_parts(|rows| {
            rows.push(row("a"));
            rows.extend(in_parts(|rows| {
                rows.push(row("b"));
                Err(ReproduceError::cut())
            })?);
            rows.push(row("never"));
            Ok(())
        });
        let Err(ReproduceError::Cut { rows }) = cut else { panic!("{cut:?}") };
        assert_eq!(rows, [row("a"), row("b")]);
    }
}
