//! What the loop says of itself.

use super::GatewayStats;
use crate::readings::{Readings, Value};

impl Readings {
    /// Adds what any gateway's loop counted.
    pub(crate) fn add_loop(&mut self, stats: &GatewayStats) {
        use Value::{Flag, Micros, Text, Total};
        let version = Text(Some(env!("CARGO_PKG_VERSION").to_owned()));
        self.add("", "version", "bentpipe_gateway_build_info", "Which bentpipe this is.", version);
        let draining = Flag(stats.draining_since.is_some());
        self.add("", "draining", "bentpipe_gateway_draining", "Whether it only waits for its work to end.", draining);
        let late = &stats.lateness;
        let help = "Times that the loop was woken by its timer.";
        self.add("timers", "wakeups", "bentpipe_gateway_wakeups_total", help, Total(late.count()));
        for (key, metric, help, span) in [
            (
                "median_late_us",
                "bentpipe_gateway_late_median_seconds",
                "Half of the timers were not later.",
                late.median(),
            ),
            ("p99_late_us", "bentpipe_gateway_late_p99_seconds", "99 of 100 timers were not later.", late.p99()),
            ("most_late_us", "bentpipe_gateway_late_most_seconds", "No timer was later.", late.max()),
        ] {
            self.add("timers", key, metric, help, Micros(span));
        }
    }
}
