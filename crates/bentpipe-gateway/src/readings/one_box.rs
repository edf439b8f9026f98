//! The readings of a single box at the uplink, with either TCP.

use bentpipe_engine::units::Rate;

use super::{Readings, Value, total};

impl Readings {
    pub(crate) fn add_one_box(&mut self, rate: Rate) {
        let help = "Always 1: with one box there is no tunnel.";
        self.add("", "link_up", "bentpipe_gateway_link_up", help, Value::Flag(true));
        let told = Value::Level(rate.bits_per_second() / 8);
        let help = "Configured rate of the sender.";
        self.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
    }

    /// `totals`: taken, connected, failed, refused, reset, and connections with another port.
    pub(crate) fn add_streams(&mut self, open: u64, totals: [u64; 6]) {
        let help = "Open connections.";
        self.add("uplink", "open", "bentpipe_gateway_streams_open", help, Value::Level(open));
        let texts = [
            ("total", total!("streams_accepted"), "Connections of clients accepted."),
            ("connected", total!("streams_connected"), "Connections to servers opened."),
            ("failed", total!("streams_failed"), "Connections to servers that failed."),
            (
                "refused",
                total!("streams_refused"),
                "Connections refused because of the limits of memory, connections or descriptors.",
            ),
            ("reset", total!("streams_reset"), "Connections reset by either end."),
            ("other_port", total!("streams_other_port"), "Connections that could not use the client's port."),
        ];
        for ((key, metric, help), count) in texts.into_iter().zip(totals) {
            self.add("uplink", key, metric, help, Value::Total(count));
        }
    }
}
