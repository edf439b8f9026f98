//! What the `uplink` shape says of itself.

use bentpipe_engine::units::Rate;

use super::{Readings, Value};
use crate::relay::RelayStats;
use crate::uplink::UplinkStats;

macro_rules! total {
    ($what:literal) => {
        concat!("bentpipe_gateway_", $what, "_total")
    };
}

impl Readings {
    /// `refused_by_kernel`: packets; `other_port`: connections that could not have the client's.
    pub(crate) fn add_uplink(&mut self, rate: Rate, counted: &UplinkStats, refused_by_kernel: u64, other_port: u64) {
        use Value::{Level, Total};
        self.add_one_box(rate);
        for (table, key, metric, help, count) in [
            ("satellite", "packets", total!("segments_sent"), "Segments sent to clients.", counted.packets),
            (
                "satellite",
                "bytes",
                total!("segment_sent_bytes"),
                "Bytes of segments sent to clients, with IP headers.",
                counted.bytes,
            ),
            (
                "satellite",
                "segments",
                total!("data_segments_sent"),
                "Segments sent to clients with data, SYN or FIN.",
                counted.segments,
            ),
            (
                "satellite",
                "retransmits",
                total!("segments_resent"),
                "Segments with data, SYN or FIN retransmitted.",
                counted.retransmits,
            ),
            ("satellite", "timeouts", total!("timeouts"), "Retransmission timeouts.", counted.timeouts),
            (
                "satellite",
                "refused_by_kernel",
                total!("segments_unsent"),
                "Segments that the kernel did not accept for sending.",
                refused_by_kernel,
            ),
            (
                "uplink",
                "silent",
                total!("streams_silent"),
                "Connections that ended because the client was silent.",
                counted.silent,
            ),
            (
                "uplink",
                "passed",
                total!("packets_passed"),
                "Packets of other connections, passed on unchanged.",
                counted.passed,
            ),
            ("uplink", "malformed", total!("packets_malformed"), "Malformed packets.", counted.malformed),
            (
                "uplink",
                "no_room",
                total!("packets_no_room"),
                "Packets dropped because memory was full.",
                counted.no_room,
            ),
        ] {
            self.add(table, key, metric, help, Total(count));
        }
        let UplinkStats { open, total, connected, failed, refused, reset, .. } = *counted;
        self.add_streams(open, [total, connected, failed, refused, reset, other_port]);
        let help = "Memory allocated to connections.";
        self.add("uplink", "memory", "bentpipe_gateway_streams_held_bytes", help, Level(counted.memory));
    }

    /// The kernel's sender; `memory`: bytes that may wait.
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
        let help = "Maximum of bytes waiting for hosts.";
        self.add("uplink", "memory_bytes", "bentpipe_gateway_streams_memory_bytes", help, Level(memory));
    }

    fn add_one_box(&mut self, rate: Rate) {
        let help = "Always 1: with one box there is no tunnel.";
        self.add("", "up", "bentpipe_gateway_link_up", help, Value::Flag(true));
        let told = Value::Level(rate.bits_per_second() / 8);
        let help = "Configured rate of the sender.";
        self.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
    }

    /// `totals`: taken, connected, failed, refused, reset, with another port.
    fn add_streams(&mut self, open: u64, totals: [u64; 6]) {
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
