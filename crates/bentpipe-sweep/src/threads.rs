//! The threads of this machine.

/// The threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {cause}")]
pub struct ThreadsError {
    /// The number.
    threads: usize,
    /// The system's error.
    cause: String,
}

/// `threads` threads; for 0 one per core, which is also the maximum.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, ThreadsError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores } else { threads.min(cores) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|cause| ThreadsError { threads, cause: cause.to_string() })
}
