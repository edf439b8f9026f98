//! The readings of the `split` shape.

use super::{SplitStats, Waiting};
use crate::readings::{Readings, Value};

macro_rules! total {
    ($what:literal) => {
        concat!("bentpipe_gateway_streams_", $what, "_total")
    };
}

impl Readings {
    pub(crate) fn add_split(&mut self, stats: &SplitStats, waiting: &Waiting) {
        let SplitStats { accepted, connected, failed, refused, throttled, lost_with_link, .. } = *stats;
        let SplitStats { other_port, malformed, open, mux, .. } = *stats;
        let mut level = |key, metric, help, value| self.add("split", key, metric, help, Value::Level(value));
        level("open", "bentpipe_gateway_streams_open", "Open connections.", open as u64);
        let help = "Bytes from hosts waiting for the link.";
        level("unsent_bytes", "bentpipe_gateway_streams_unsent_bytes", help, waiting.unsent);
        let help = "Bytes from the peer waiting for hosts.";
        level("held_bytes", "bentpipe_gateway_streams_held_bytes", help, waiting.held);
        let help = "Maximum allowed number of bytes waiting for hosts.";
        level("memory_bytes", "bentpipe_gateway_streams_memory_bytes", help, waiting.memory);
        for (key, metric, help, count) in [
            ("accepted", total!("accepted"), "Connections of hosts accepted.", accepted),
            ("connected", total!("connected"), "Connections to destinations opened for the peer.", connected),
            ("failed", total!("failed"), "Connections to destinations that failed.", failed),
            (
                "refused",
                total!("refused"),
                "Connections refused because of the limits of memory, streams or descriptors, or because the link was down.",
                refused,
            ),
            (
                "throttled",
                total!("throttled"),
                "Connections refused because the peer, one of several, opened more than 1000 at once and 500 per second.",
                throttled,
            ),
            (
                "lost_with_link",
                total!("lost_with_link"),
                "Connections reset because the link was lost.",
                lost_with_link,
            ),
            ("other_port", total!("other_port"), "Connections that could not use the client's port.", other_port),
            ("malformed", total!("malformed"), "Malformed messages from the peer.", malformed),
            ("closed", total!("closed"), "Connections closed in both directions.", mux.closed),
            ("reset_by_peer", total!("reset_by_peer"), "Connections reset by the peer.", mux.reset_by_peer),
            (
                "cancelled",
                total!("cancelled"),
                "Connections reset by their host before they were announced to the peer.",
                mux.cancelled,
            ),
            ("reset_here", total!("reset_here"), "Connections reset by this gateway.", mux.reset_here),
            ("out_of_memory", total!("out_of_memory"), "Connections reset because memory was full.", mux.out_of_memory),
            ("stray", total!("stray"), "Messages for connections that had ended.", mux.stray),
            ("bytes_sent", total!("sent_bytes"), "Bytes from hosts sent to the peer.", mux.bytes_sent),
            ("bytes_received", total!("received_bytes"), "Bytes from the peer for hosts.", mux.bytes_received),
        ] {
            self.add("split", key, metric, help, Value::Total(count));
        }
    }

    /// Adds values that belong to no peer: connections refused before their peer was known, and the memory of all
    /// peers.
    pub(crate) fn add_split_common(&mut self, turned_away: u64, memory: u64) {
        let help =
            "Connections of hosts reset because their destination is behind no peer, or for lack of descriptors.";
        self.add("split", "turned_away", total!("turned_away"), help, Value::Total(turned_away));
        let help = "Memory that the connections of all peers take.";
        self.add("split", "taken_bytes", "bentpipe_gateway_streams_taken_bytes", help, Value::Level(memory));
    }
}
