//! The readings of the socket, and of all peers together.

use bentpipe_engine::units::Duration;

use super::Hub;
use crate::carrier::Carrier;
use crate::readings::{Readings, Value};
use crate::trouble::Refusals;

impl Readings {
    /// Adds values that belong to no single peer.
    pub(crate) fn add_hub(&mut self, hub: &Hub, refused: &Refusals) {
        use Value::{Level, Total};
        let (peers, up) =
            hub.carriers().fold((0, 0), |(all, up), (_, carrier)| (all + 1, up + u64::from(Carrier::is_up(carrier))));
        self.add("tunnel", "peers", "bentpipe_gateway_peers", "Peers in the settings.", Level(peers));
        self.add("tunnel", "peers_up", "bentpipe_gateway_peers_up", "Peers whose link is up.", Level(up));
        let help = "Received datagrams that belong to no peer.";
        self.add("tunnel", "stray", "bentpipe_gateway_datagrams_stray_total", help, Total(hub.garbage()));
        let (metric, help) =
            ("bentpipe_gateway_datagrams_unsent_total", "Datagrams that the kernel did not accept for sending.");
        let Refusals { too_long, no_room, unreachable } = refused;
        for (reason, &count) in [("too long", too_long), ("no room", no_room), ("unreachable", unreachable)] {
            self.add_labelled("tunnel", ("refused_by_kernel", metric, help), ("reason", reason), Total(count));
        }
    }

    /// Adds the CPU time of a peer's datagrams.
    pub(crate) fn add_spent(&mut self, spent: Option<Duration>) {
        let Some(spent) = spent else { return };
        let (metric, help) = (
            "bentpipe_gateway_peer_cpu_seconds_total",
            "CPU time spent on datagrams received from the peer, as measured for fair turns between several peers. Sending is not included, nor are turns with fewer than four datagrams.",
        );
        self.add("tunnel", "cpu_ms", metric, help, Value::Spent(spent));
    }

    /// Adds a peer's datagrams that were dropped.
    pub(crate) fn add_dropped(&mut self, count: u64) {
        let (metric, help) = (
            "bentpipe_gateway_datagrams_dropped_total",
            "Received datagrams dropped because the peer's earlier ones took more than its share of the CPU time.",
        );
        self.add("tunnel", "dropped", metric, help, Value::Total(count));
    }
}
