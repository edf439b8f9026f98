//! Why nothing can be estimated.

use std::path::PathBuf;

/// A mistake at a position of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) offset: u64,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn at(offset: u64, message: String) -> Self {
        Problem { offset, message }
    }
}

/// Why a file gives no estimates.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The file cannot be opened or read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The capture is damaged.
    #[error("{}: byte {offset}: {message}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Where the block starts.
        offset: u64,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// A line of a log of pings is not understood.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What was expected.
        message: String,
    },
    /// The file is well-formed, and nothing in it can be used.
    #[error("{}: {message}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What was expected.
        message: String,
    },
}
