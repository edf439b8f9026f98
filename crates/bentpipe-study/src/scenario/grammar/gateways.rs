//! The keys of `[[gateways]]`. A setting has the name that it has in a gateway's own file.

use bentpipe_language::gateway::{ADVICE, REORDERING, SHARED, max_streams_field, uplink};
use bentpipe_language::shape::{Field, Shape, field};

/// Shapes of a gateway.
pub(crate) const SHAPES: &[&str] = &["split", "link", "uplink"];
/// Keys that not all shapes have a use for, with those that have.
pub(crate) const OF_SHAPES: &[(&[&str], &[&str])] = &[
    (&["max_streams"], &["split"]),
    (&["throughput_advice"], &["link"]),
    (&["near", "far", "reordering", "shared", "memory"], &["split", "link"]),
    (&["at", "sender", "congestion", "variant", "window", "early_accept", "tcp"], &["uplink"]),
];
/// Keys of `uplink` that only the engine's sender has a use for, and only the kernel's.
pub(crate) const ENGINES: &[&str] = &["variant", "window", "mtu", "early_accept", "tcp"];
pub(crate) const KERNELS: &[&str] = &["congestion"];
/// The kernel's congestion controls that have a row.
pub(crate) const CONGESTION: &[&str] = &["bbr", "cubic", "reno"];

/// A gateway.
pub(crate) const GATEWAY: &[Field] = &[
    field("name", Shape::Text, "Name of the gateway in overrides and results. Required."),
    field(
        "shape",
        Shape::Choice(SHAPES),
        "What it does. \"split\": TCP connections end at the near box and continue from the far one; between them their bytes are streams over S-LACP. \"link\": packets of any kind go over S-LACP, and nothing is terminated. \"uplink\": one box before the satellite link, at which TCP connections end. Required.",
    ),
    field(
        "near",
        Shape::Text,
        "`shape = \"split\"` and `\"link\"`: node of the near box, which opens the tunnel. Required.",
    ),
    field("far", Shape::Text, "`shape = \"split\"` and `\"link\"`: node of the far box. Required."),
    field(
        "at",
        Shape::Text,
        "`shape = \"uplink\"`: node of the box, at the end of the satellite link that is away from the clients. Required.",
    ),
    field(
        "over",
        Shape::Any(&[Shape::Text, Shape::Pair(&Shape::Text)]),
        "The duplex link between the boxes, or two one-way links, one for each direction; for `uplink`, the link between the box and the clients. Default: the first links between the two nodes; for `uplink`, the link with the longest delay at its node.",
    ),
    field(
        "rate",
        Shape::Any(&[Shape::RATE, Shape::Pair(&Shape::RATE)]),
        "Rate at which the near box and the far box may send, headers included; one for both, or a list of two. For `uplink`: rate towards the clients, IP headers included. Default: the rate of the link that each sends on.",
    ),
    field("round_trip", Shape::DURATION, "Round-trip time of the empty link. Default: the sum of the links' delays."),
    REORDERING,
    SHARED,
    field(
        "mtu",
        Shape::SIZE,
        "Largest MTU that the path between the two boxes may have; a smaller `mtu` of the links counts as discovered. For `uplink`: MTU of the path to the clients. Default: 1500 B.",
    ),
    max_streams_field("`shape = \"split\"`: maximum number of open connections of each box. Default: 16384."),
    field(
        "memory",
        Shape::SIZE,
        "Maximum memory of each box for connections, their data, and packets that are queued for the link, in flight, or held until earlier ones arrive. Default: 256 MiB.",
    ),
    field(
        "throughput_advice",
        Shape::Any(&[ADVICE, Shape::Pair(&ADVICE)]),
        "`shape = \"link\"`: rate that the near box and the far box write into SCONE packets that they forward (draft-ietf-scone-protocol) if these carry none or a higher one; one for both, or a list of two. \"line\": the box's own `rate`. Flows with `quic.scone` send such packets. Default: they write nothing.",
    ),
    field(
        "sender",
        Shape::Choice(uplink::SENDER),
        "`shape = \"uplink\"`: TCP that sends to the clients. \"engine\": bentpipe's own, with a variant from `bentpipe variants`, paced over all connections. \"kernel\": Linux's, which answers a client at once. Default: \"engine\".",
    ),
    field("congestion", Shape::Choice(CONGESTION), "`sender = \"kernel\"`: congestion control. Default: bbr."),
    uplink::VARIANT,
    uplink::WINDOW,
    uplink::EARLY_ACCEPT,
    uplink::TCP,
];
