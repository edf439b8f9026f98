//! The readings of the `uplink` shape.

use bentpipe_engine::units::Rate;

use super::UplinkStats;
use crate::readings::{Readings, Value, total};

impl Readings {
    /// `refused_by_kernel`: number of packets. `other_port`: number of connections that use another port because the
    /// client's was taken.
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
        let help = "Excess of all round trips of a minute over `round_trip`, if a queue that the gateway built caused it; 0 after five minutes without such a queue.";
        let queue = Value::Millis(Some(counted.standing_queue));
        self.add("satellite", "standing_queue_ms", "bentpipe_gateway_standing_queue_seconds", help, queue);
        let help = "Memory allocated to connections.";
        self.add("uplink", "memory", "bentpipe_gateway_streams_held_bytes", help, Level(counted.memory));
    }
}
