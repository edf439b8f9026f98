//! A box that does not run for a while.

use std::time::Duration;

use super::clocks;
use crate::Measured;
use crate::away::{Slept, slept};
use crate::pair::{Line, NAMES};

/// What was found, of the box near the clients and of the far one.
fn judged(found: &[Slept; 2], has_lines: impl Fn(&Slept) -> bool) -> Measured {
    let worst = |of: fn(&Slept) -> f64| found.iter().map(of).fold(0.0, f64::max);
    let (serves, told) = (worst(|slept| slept.serves_after), worst(|slept| slept.told_after));
    let wrong: usize = found.iter().map(|slept| slept.wrong).sum();
    let silent = found.iter().filter(|slept| !has_lines(slept)).count();
    let text =
        format!("serves after {serves:.1} s, old connections end after {told:.1} s; {wrong} wrong, {silent} silent");
    Measured { text, is_met: serves < 20.0 && told < 20.0 && wrong == 0 && silent == 0 }
}

/// The other box gives it up, and both say so when it is back.
fn are_told(slept: &Slept) -> bool {
    let [own, others] = &slept.said;
    others.contains("s (`dead_after`): the link is down") && [own, others].iter().all(|said| said.contains("is up"))
}

/// SIGSTOP of either box.
pub(super) fn stopped(is_short: bool) -> Measured {
    let span = Duration::from_secs(if is_short { 8 } else { 30 });
    judged(&both(|line, end| slept(line, |name| line.start(name, 1024), end, span, || ())), are_told)
}

/// As a machine that is suspended: its process stops, and afterwards the time of day is ahead of the clock that does not count sleep. To a
/// stopped process all clocks go on, so the time of day is set ahead by as much once more.
pub(super) fn suspended(is_short: bool) -> Measured {
    let seconds = if is_short { 8 } else { 600 };
    let Some(library) = clocks::library() else {
        return Measured { text: "libfaketime is not installed".to_owned(), is_met: false };
    };
    let found = both(|line, end| {
        NAMES.iter().for_each(|name| clocks::set(line, name, "+0"));
        let on_return = || clocks::set(line, NAMES[end], &format!("+{seconds}"));
        slept(line, |name| clocks::start(line, name, &library), end, Duration::from_secs(seconds), on_return)
    });
    judged(&found, |slept| are_told(slept) && slept.said[0].contains("this machine has slept"))
}

/// Each box of a pair of its own, at the same time.
fn both(sleep: impl Fn(&Line, usize) -> Slept + Sync) -> [Slept; 2] {
    std::thread::scope(|scope| {
        let sleep = &sleep;
        [0, 1]
            .map(|end| scope.spawn(move || sleep(&Line::new("20 Mbit/s"), end)))
            .map(|thread| thread.join().expect("no panic"))
    })
}
