//! What the `uplink` shape says of itself.

use bentpipe_engine::units::Rate;

use super::{Readings, Value};
use crate::gateway::uplink::UplinkStats;

macro_rules! total {
    ($what:literal) => {
        concat!("bentpipe_gateway_", $what, "_total")
    };
}

impl Readings {
    /// `refused_by_kernel`: packets; `other_port`: connections that could not have the client's.
    pub(in crate::gateway) fn add_uplink(
        &mut self,
        rate: Rate,
        counted: &UplinkStats,
        refused_by_kernel: u64,
        other_port: u64,
    ) {
        use Value::{Flag, Level, Total};
        let help = "Whether there is a link: with one box there always is.";
        self.add("", "up", "bentpipe_gateway_link_up", help, Flag(true));
        let told = Level(rate.bits_per_second() / 8);
        let help = "The rate that the sender was told.";
        self.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
        for (table, key, metric, help, count) in [
            (
                "satellite",
                "packets",
                total!("segments_sent"),
                "Segments sent to clients, all of them.",
                counted.packets,
            ),
            (
                "satellite",
                "bytes",
                total!("segment_sent_bytes"),
                "Bytes of them, headers of IP included.",
                counted.bytes,
            ),
            (
                "satellite",
                "segments",
                total!("data_segments_sent"),
                "Segments with data, SYN or FIN.",
                counted.segments,
            ),
            ("satellite", "retransmits", total!("segments_resent"), "Those of them sent again.", counted.retransmits),
            ("satellite", "timeouts", total!("timeouts"), "Retransmission timeouts.", counted.timeouts),
            (
                "satellite",
                "refused_by_kernel",
                total!("segments_unsent"),
                "Segments for which the kernel had no room.",
                refused_by_kernel,
            ),
            ("uplink", "total", total!("streams_accepted"), "Connections of clients taken.", counted.total),
            ("uplink", "connected", total!("streams_connected"), "Connections to servers made.", counted.connected),
            ("uplink", "failed", total!("streams_failed"), "Connections to servers that failed.", counted.failed),
            (
                "uplink",
                "refused",
                total!("streams_refused"),
                "Connections refused for want of room or descriptors.",
                counted.refused,
            ),
            ("uplink", "reset", total!("streams_reset"), "Connections reset by one of the two ends.", counted.reset),
            ("uplink", "silent", total!("streams_silent"), "Connections given up in silence.", counted.silent),
            (
                "uplink",
                "other_port",
                total!("streams_other_port"),
                "Connections that could not have the client's port.",
                other_port,
            ),
            ("uplink", "passed", total!("packets_passed"), "Packets of connections that are not ours.", counted.passed),
            ("uplink", "malformed", total!("packets_malformed"), "Packets that could not be read.", counted.malformed),
            ("uplink", "no_room", total!("packets_no_room"), "Packets for which there was no memory.", counted.no_room),
        ] {
            self.add(table, key, metric, help, Total(count));
        }
        let help = "Connections that are open.";
        self.add("uplink", "open", "bentpipe_gateway_streams_open", help, Level(counted.open));
        let help = "Bytes set aside for connections.";
        self.add("uplink", "memory", "bentpipe_gateway_streams_held_bytes", help, Level(counted.memory));
    }
}
