//! The readings of a box with the kernel's TCP on both sides.

use bentpipe_engine::units::Rate;

use super::RelayStats;
use crate::readings::{Readings, Value, total};

impl Readings {
    /// Adds the values of the kernel's sender. `memory`: maximum bytes that may wait.
    pub(crate) fn add_relay(&mut self, rate: Rate, memory: u64, counted: &RelayStats) {
        use Value::{Level, Total};
        let RelayStats { open, total, connected, failed, refused, reset, other_port, to_clients, to_servers, held } =
            *counted;
        self.add_one_box(rate);
        self.add_streams(open, [total, connected, failed, refused, reset, other_port]);
        for (key, metric, help, count) in [
            ("bytes_sent", total!("streams_sent_bytes"), "Bytes from servers sent to clients.", to_clients),
            ("bytes_received", total!("streams_received_bytes"), "Bytes from clients sent to servers.", to_servers),
        ] {
            self.add("uplink", key, metric, help, Total(count));
        }
        let help = "Bytes waiting for hosts.";
        self.add("uplink", "held_bytes", "bentpipe_gateway_streams_held_bytes", help, Level(held));
        let help = "Maximum allowed number of bytes waiting for hosts.";
        self.add("uplink", "memory_bytes", "bentpipe_gateway_streams_memory_bytes", help, Level(memory));
    }
}
