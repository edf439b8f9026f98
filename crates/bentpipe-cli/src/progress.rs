//! Progress on standard error; silent if that is not a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// A bar with an estimate of the time that is left.
pub(crate) const ESTIMATED: &str = "{bar:32} {pos}/{len} {msg}{left}";

/// A bar whose message has an estimate.
pub(crate) const PLAIN: &str = "{bar:32} {pos}/{len} {msg}";

/// Progress of unknown length; the message shows the position.
pub(crate) fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a plain template");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Progress over a number of steps.
pub(crate) fn steps(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count).with_style(bar(ESTIMATED));
    bar.enable_steady_tick(TICK);
    bar
}

/// Progress over a number of steps that [`advance`] says: nothing is shown until then. `template` is [`ESTIMATED`] or [`PLAIN`].
pub(crate) fn steps_to_be_counted(template: &str) -> ProgressBar {
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()).with_style(bar(template))
}

/// So much is done of so much.
pub(crate) fn advance(bar: &ProgressBar, done: u64, of: u64) {
    let is_first = bar.length() == Some(0) && of > 0;
    bar.set_length(of);
    bar.set_position(done);
    if is_first {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(TICK);
    }
}

/// The look of a bar.
pub(crate) fn bar(template: &str) -> ProgressStyle {
    // Before the first step is done there is no estimate.
    let left = |state: &ProgressState, text: &mut dyn Write| {
        if state.pos() > 0 {
            let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    let style = ProgressStyle::with_template(template).expect("a plain template");
    style.with_key("left", left).progress_chars("━╸ ")
}
