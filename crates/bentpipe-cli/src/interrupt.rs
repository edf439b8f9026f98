//! Ctrl-C: the first stops the run and shows its results so far, the second ends
//! at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);
/// True while [`asked`] is being polled.
static HEARD: AtomicBool = AtomicBool::new(false);

const INTERRUPTED: i32 = 130;

/// Starts listening.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) || !HEARD.load(Ordering::SeqCst) {
            eprintln!("interrupted");
            std::process::exit(INTERRUPTED);
        }
    })
    .map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}

/// From now on the command stops by itself when asked.
pub(crate) fn heed() {
    HEARD.store(true, Ordering::SeqCst);
}

/// True if Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
