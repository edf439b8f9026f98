//! Ctrl-C: once asks what runs to stop and show what there is, twice ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);
/// Whether somebody looks at [`asked`] now.
static HEARD: AtomicBool = AtomicBool::new(false);

const INTERRUPTED: i32 = 130;

/// Begins to listen.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) || !HEARD.load(Ordering::SeqCst) {
            eprintln!("interrupted");
            std::process::exit(INTERRUPTED);
        }
    })
    .map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}

/// From now on the command itself stops when it is asked to.
pub(crate) fn heed() {
    HEARD.store(true, Ordering::SeqCst);
}

/// Whether it was.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
