//! How a gateway is, as JSON.

use bentpipe_io::Lateness;
use bentpipe_io::gateway::{CarrierStats, Gateway, LinkShape, Shape, SplitShape, UplinkGateway};
use serde_json::{Value, json};

fn common<S: Shape>(name: &str, gateway: &Gateway<S>) -> Value {
    let tunnel = gateway.carrier().tunnel();
    let counted = tunnel.stats();
    let CarrierStats { layer, frames, frame_bytes, srtt, no_link, refused } = gateway.carrier().stats();
    let stats = gateway.stats();
    json!({
        "name": name,
        "up": gateway.carrier().is_up(),
        "draining": stats.draining_since.is_some(),
        "tunnel": {
            "peer": tunnel.endpoint().map(|at| at.to_string()),
            "heard_ms_ago": gateway.now().saturating_since(tunnel.heard_at()).as_nanos() / 1_000_000,
            "sent": counted.sent, "received": counted.received, "handshakes": counted.handshakes,
            "garbage": counted.garbage, "refused": counted.refused, "unknown": counted.unknown,
            "throttled": counted.throttled, "refused_by_kernel": stats.refused_by_kernel,
        },
        "satellite": {
            "round_trip_ms": srtt.map(|srtt| srtt.as_nanos() / 1_000_000),
            "frames": frames, "frame_bytes": frame_bytes,
            "packets_sent": layer.sent, "packets_delivered": layer.delivered,
            "lost": layer.lost, "resent": layer.resent, "repairs": layer.repairs, "repaired": layer.repaired,
            "recovered": layer.recovered, "abandoned": layer.abandoned,
            "dropped": layer.dropped_full + layer.dropped_early, "without_link": no_link, "refused": refused,
        },
        "timers": timers(&stats.lateness),
    })
}

fn timers(lateness: &Lateness) -> Value {
    json!({
        "wakeups": lateness.count(),
        "median_late_us": lateness.median().as_nanos() / 1000,
        "p99_late_us": lateness.p99().as_nanos() / 1000,
        "most_late_us": lateness.max().as_nanos() / 1000,
    })
}

fn with(mut status: Value, key: &str, more: Value) -> String {
    status[key] = more;
    format!("{status:#}\n")
}

pub(super) fn split(name: &str, gateway: &Gateway<SplitShape>) -> String {
    let stats = gateway.shape().stats();
    let more = json!({
        "open": stats.open, "accepted": stats.accepted, "connected": stats.connected,
        "failed": stats.failed, "refused": stats.refused, "lost_with_link": stats.lost_with_link,
        "other_port": stats.other_port, "malformed": stats.malformed,
        "closed": stats.mux.closed, "reset_by_peer": stats.mux.reset_by_peer, "reset_here": stats.mux.reset_here,
        "out_of_memory": stats.mux.out_of_memory, "stray": stats.mux.stray,
        "bytes_sent": stats.mux.bytes_sent, "bytes_received": stats.mux.bytes_received,
    });
    with(common(name, gateway), "split", more)
}

pub(super) fn link(name: &str, gateway: &Gateway<LinkShape>) -> String {
    let shape = gateway.shape();
    let more = json!({ "refused_by_host": shape.refused_by_host(), "too_long": shape.too_long() });
    with(common(name, gateway), "link", more)
}

pub(super) fn uplink(name: &str, gateway: &UplinkGateway) -> String {
    let (stats, counted) = (gateway.stats(), gateway.counted());
    let status = json!({
        "name": name,
        "up": true,
        "draining": stats.draining_since.is_some(),
        "satellite": {
            "paced_to_bits_per_second": gateway.machine().config().rate.bits_per_second(),
            "packets": counted.packets, "bytes": counted.bytes, "segments": counted.segments,
            "retransmits": counted.retransmits, "timeouts": counted.timeouts,
            "refused_by_kernel": stats.refused_by_kernel,
        },
        "timers": timers(&stats.lateness),
        "uplink": {
            "open": counted.open, "total": counted.total, "connected": counted.connected, "failed": counted.failed,
            "refused": counted.refused, "reset": counted.reset, "silent": counted.silent,
            "other_port": gateway.other_port(), "passed": counted.passed, "malformed": counted.malformed,
            "no_room": counted.no_room, "memory": counted.memory,
        },
    });
    format!("{status:#}\n")
}
