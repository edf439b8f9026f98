//! Shared by `verify` and `verify-hosts`: times of transfers, and how they differ.

use bentpipe_emulator::sockets::KernelSettings;
use bentpipe_emulator::transfers::Bulk;
use bentpipe_engine::units::Time;
use bentpipe_io::Lateness;

use super::realtime::{span_of, stall};
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
