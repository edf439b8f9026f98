//! Shared by `verify` and `verify-hosts`: times of transfers, and how they differ.

use bentpipe_emulator::sockets::KernelSettings;
use bentpipe_emulator::transfers::Bulk;
use bentpipe_engine::units::Time;
use bentpipe_io::Lateness;

use super::realtime::{overrun, span_of, stall};
use crate::args::Verify;

/// Runs in a thread of its own, whose priority later work need not have.
pub(super) fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// The settings of the kernel's TCP.
pub(super) fn settings(args: &Verify) -> KernelSettings {
    let mut settings = KernelSettings::with_control(&args.control);
    settings.route.extend(args.route.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned));
    KernelSettings { sysctls: args.sysctl.clone(), watch: args.plot.is_some(), ..settings }
}

/// The duration of a flow that ended at this time.
pub(super) fn seconds(bulk: &Bulk<'_>, at: Option<Time>) -> Option<f64> {
    at.map(|at| at.saturating_since(bulk.start).as_secs_f64())
}

/// By how many percent a time is longer than the predicted one.
pub(super) fn difference(real: Option<f64>, predicted: Option<f64>) -> Option<f64> {
    Some((real? / predicted? - 1.0) * 100.0)
}

/// Whether a time is as predicted, within a tolerance in percent. A transfer that never ends in one must not end in the other.
pub(super) fn agrees(real: Option<f64>, predicted: Option<f64>, tolerance: f64) -> bool {
    difference(real, predicted).map_or(predicted == real, |difference| difference.abs() <= tolerance)
}

/// The titles of the flows in a plot.
pub(super) fn titles(args: &Verify, bulks: &[Bulk<'_>]) -> Vec<String> {
    bulks.iter().map(|bulk| format!("{}, {}", bulk.name, args.control)).collect()
}

/// The warning about what was dropped at full devices, as a line, if any.
pub(super) fn overruns(count: Option<u64>) -> String {
    let warning = count.and_then(|count| overrun(Some(count)));
    warning.map_or(String::new(), |warning| format!("{warning}\n"))
}

/// A difference as text.
pub(super) fn percent(difference: Option<f64>) -> String {
    difference.map_or("–".to_owned(), |value| format!("{value:+.2} %"))
}

/// How late the wake-ups were, as lines.
pub(super) fn late(lateness: &Lateness) -> String {
    let late = format!(
        "{} wake-ups, late by {} (median), {} (99 %), {} (worst)\n",
        lateness.count(),
        span_of(lateness.median()),
        span_of(lateness.p99()),
        span_of(lateness.max())
    );
    late + &lateness.stall().map_or(String::new(), |worst| format!("{}\n", stall(&span_of(worst))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_ends_in_one_alone_is_a_difference() {
        let agree = |predicted, real| agrees(real, predicted, 2.0);
        assert!(agree(Some(10.0), Some(10.1)) && agree(None, None));
        assert!(agree(Some(10.0), Some(9.9)));
        assert!(!agree(Some(10.0), Some(10.3)) && !agree(Some(10.0), Some(9.7)));
        assert!(!agree(Some(10.0), None) && !agree(None, Some(10.0)));
    }
}
