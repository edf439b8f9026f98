//! Work without Python's lock that Ctrl-C can end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Interval at which Python's signals are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Set by Ctrl-C, which stops all work. There is one flag for the process, since the crates below take a plain
/// function.
static STOP: AtomicBool = AtomicBool::new(false);
/// Number of pieces of work in progress; the first one clears the flag.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// True if the work should stop.
pub(crate) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

struct UnderWay;

impl UnderWay {
    fn begin() -> Self {
        if UNDER_WAY.fetch_add(1, Ordering::SeqCst) == 0 {
            STOP.store(false, Ordering::SeqCst);
        }
        UnderWay
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Does the work on another thread while this one checks Python's signals, which only the main thread may do.
///
/// # Errors
/// Returns the exception that a signal's handler raises, such as `KeyboardInterrupt`, once the work has stopped; on another thread,
/// whose work has stopped too, `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| {
        let _under_way = UnderWay::begin();
        std::thread::scope(|scope| {
            let (done, waits) = sync_channel(1);
            let worker = scope.spawn(move || {
                // The receiver lives until the thread has ended.
                let _ = done.send(work());
            });
            let mut interrupted = None;
            loop {
                match waits.recv_timeout(LOOK) {
                    Ok(_) if stopped() => {
                        return Err(interrupted.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())));
                    }
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            STOP.store(true, Ordering::SeqCst);
                            interrupted.get_or_insert(raised);
                        }
                    }
                    // The work has panicked, so this panics too.
                    Err(RecvTimeoutError::Disconnected) => {
                        std::panic::resume_unwind(worker.join().expect_err("it sends unless it panics"))
                    }
                }
            }
        })
    })
}
