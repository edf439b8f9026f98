//! The readings of the `link` shape.

use crate::readings::{Readings, Value};

impl Readings {
    /// Adds the counters of the `link` device, and the memory of all peers' packets.
    pub(crate) fn add_link(&mut self, refused: u64, unrouted: u64, memory: u64) {
        use Value::{Level, Total};
        let help = "Packets from the peer that the host's stack did not accept.";
        self.add("link", "refused_by_host", "bentpipe_gateway_packets_refused_by_host_total", help, Total(refused));
        let help = "Packets of the host whose destination is in no peer's `prefixes`.";
        self.add("link", "unrouted", "bentpipe_gateway_packets_unrouted_total", help, Total(unrouted));
        let help = "Memory that the packets and contexts of all peers take.";
        self.add("link", "taken_bytes", "bentpipe_gateway_packets_taken_bytes", help, Level(memory));
    }

    /// Adds the counters of the `link` shape for one peer.
    pub(crate) fn add_link_peer(&mut self, too_long: u64, advised: u64, memory: u64) {
        let help = "Packets of the host that are too long for a frame.";
        self.add("link", "too_long", "bentpipe_gateway_packets_too_long_total", help, Value::Total(too_long));
        let help = "Packets of QUIC hosts into which `throughput_advice` was written.";
        self.add("link", "advised", "bentpipe_gateway_packets_advised_total", help, Value::Total(advised));
        let help = "Maximum memory that the packets and contexts of this peer may take now.";
        self.add("link", "memory_bytes", "bentpipe_gateway_packets_memory_bytes", help, Value::Level(memory));
    }
}
