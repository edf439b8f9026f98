//! The quantity that ns-2 halved before 2006.

use super::Window;

/// Half of the window in force, in whole segments.
pub(super) fn half_of_whole_window(window: &Window) -> f64 {
    (window.usable() / window.mss() / 2) as f64 * window.mss() as f64
}
