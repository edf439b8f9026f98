//! Progress on standard error; silent if that is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Progress of unknown length; the message shows the position.
pub(crate) fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a plain template");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Progress over a number of steps.
pub(crate) fn steps(count: u64) -> ProgressBar {
    let template = "{bar:32} {pos}/{len} {msg} {eta} left";
    let style = ProgressStyle::with_template(template).expect("a plain template").progress_chars("━╸ ");
    let bar = ProgressBar::new(count).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}
