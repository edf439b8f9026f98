//! What can be asked for, and what can go wrong.

use std::path::PathBuf;

use bentpipe_sim::RunError;
use bentpipe_study::report::WriteError;

use crate::Row;

/// What to reproduce, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this table, from 1.
    pub table: Option<u8>,
    /// Only this figure, from 1.
    pub figure: Option<u8>,
    /// Replications behind each statistic of ours: more make the ranges exact, the paper's 20 are always compared
    /// with samples of 20.
    pub reps: u32,
    /// Seed of the first replication; the others follow it.
    pub seed: u64,
    /// Runs at the same time; the results do not depend on it.
    pub threads: usize,
    /// Where figures go, as SVG and CSV; `None` draws none.
    pub out_dir: Option<PathBuf>,
}

impl Default for Options {
    /// Everything, 200 replications from seed 1, on all processors, without files.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Options { table: None, figure: None, reps: 200, seed: 1, threads, out_dir: None }
    }
}

/// Hears what is being run: what, how many runs of it are done, and how many there are.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Why a paper could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A table or figure that the paper does not have.
    #[error("the paper has no {part} {number}; it has 1 to {last}")]
    NoSuchPart {
        /// "table" or "figure".
        part: &'static str,
        /// What was asked for.
        number: u8,
        /// The last one.
        last: u8,
    },
    /// No replications asked for.
    #[error("at least 2 replications are needed, not {0}")]
    TooFewReplications(u32),
    /// A transfer that did not end.
    #[error("seed {seed}: a transfer of {what} did not end")]
    Unfinished {
        /// The run.
        what: String,
        /// Its seed.
        seed: u64,
    },
    /// The simulator cannot run at all.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file that could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Reproduces the `transat` paper: its tables, figures and claims, as far as `options` asks for them.
///
/// # Errors
/// What the paper does not have, too few replications, a file that cannot be written.
pub fn transat(options: &Options, progress: Progress<'_>) -> Result<Vec<Row>, ReproduceError> {
    crate::transat::reproduce(options, progress)
}
