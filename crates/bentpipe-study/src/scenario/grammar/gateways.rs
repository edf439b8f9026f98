//! The keys of `[[gateways]]`. A setting has the name that it has in a gateway's own file.

use bentpipe_language::gateway::{REORDERING, SHARED, max_streams_field};
use bentpipe_language::shape::{Field, Shape, field};

/// Shapes of a gateway.
pub(crate) const SHAPES: &[&str] = &["split", "link"];
/// Keys that only `split` has a use for.
pub(crate) const OF_SPLIT: &[&str] = &["max_streams"];

/// A gateway.
pub(crate) const GATEWAY: &[Field] = &[
    field("name", Shape::Text, "Name of the gateway in overrides and results. Required."),
    field(
        "shape",
        Shape::Choice(SHAPES),
        "What it does. \"split\": TCP connections end at the near box and continue from the far one; between them their bytes are streams over S-LACP. \"link\": packets of any kind go over S-LACP, and nothing is terminated. Required.",
    ),
    field("near", Shape::Text, "Node of the near box, which opens the tunnel. Required."),
    field("far", Shape::Text, "Node of the far box. Required."),
    field(
        "over",
        Shape::Any(&[Shape::Text, Shape::Pair(&Shape::Text)]),
        "The duplex link between the boxes, or two one-way links, one for each direction. Default: the first links between the two nodes.",
    ),
    field(
        "rate",
        Shape::Any(&[Shape::RATE, Shape::Pair(&Shape::RATE)]),
        "Rate at which the near box and the far box may send, headers included; one for both, or a list of two. Default: the rate of the link that each sends on.",
    ),
    field("round_trip", Shape::DURATION, "Round-trip time of the empty link. Default: the sum of the links' delays."),
    REORDERING,
    SHARED,
    field(
        "mtu",
        Shape::SIZE,
        "Largest MTU that the path between the two boxes may have; a smaller `mtu` of the links is taken as discovered. Default: 1500 B.",
    ),
    max_streams_field("`shape = \"split\"`: maximum number of open connections of each box. Default: 16384."),
    field(
        "memory",
        Shape::SIZE,
        "Maximum memory of each box for connections, their data, and packets that wait for the link, are on their way, or wait for others. Default: 256 MiB.",
    ),
];
