//! Why no estimates can be made.

use std::path::PathBuf;

/// A mistake at a position in a file.
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

/// Why a file yields no estimates.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The file cannot be opened or read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The capture is damaged.
    #[error("{}: byte {offset}: {message}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The position at which the damaged block starts.
        offset: u64,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// A line in a ping log is not understood.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: u64,
        /// What was expected.
        message: String,
    },
    /// The file is well-formed, but nothing in it can be used.
    #[error("{}: {message}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What was expected.
        message: String,
    },
}
