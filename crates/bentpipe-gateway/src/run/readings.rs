//! The readings of the loop.

use super::GatewayStats;
use crate::readings::{Readings, Value};

impl Readings {
    /// Adds the counters of the loop.
    pub(crate) fn add_loop(&mut self, stats: &GatewayStats) {
        use Value::{Flag, Micros, Text, Total};
        let version = Text(Some(env!("CARGO_PKG_VERSION").to_owned()));
        self.add("", "version", "bentpipe_gateway_build_info", "Version of bentpipe, as a label; always 1.", version);
        let draining = Flag(stats.draining_since.is_some());
        self.add("", "draining", "bentpipe_gateway_draining", "1 while the gateway drains.", draining);
        let late = &stats.lateness;
        let help = "Timer wake-ups of the event loop.";
        self.add("timers", "wakeups", "bentpipe_gateway_wakeups_total", help, Total(late.count()));
        for (key, metric, help, span) in [
            (
                "median_late_us",
                "bentpipe_gateway_late_median_seconds",
                "Median lateness of timer wake-ups.",
                late.median(),
            ),
            (
                "p99_late_us",
                "bentpipe_gateway_late_p99_seconds",
                "99th percentile of the lateness of timer wake-ups.",
                late.p99(),
            ),
            ("max_late_us", "bentpipe_gateway_late_max_seconds", "Maximum lateness of timer wake-ups.", late.max()),
            (
                "most_late_us",
                "bentpipe_gateway_late_most_seconds",
                "The old name of `bentpipe_gateway_late_max_seconds`; only in this version.",
                late.max(),
            ),
        ] {
            self.add("timers", key, metric, help, Micros(span));
        }
    }
}
