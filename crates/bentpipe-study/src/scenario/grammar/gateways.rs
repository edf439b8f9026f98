//! The keys of `[[gateways]]`. A setting has the name that it has in a gateway's own file.

use bentpipe_language::shape::{Counted, Field, Shape, field};

/// Shapes of a gateway.
pub(crate) const SHAPES: &[&str] = &["split", "link"];
/// Frames that may overtake another.
pub(crate) const REORDERING: Counted = Counted::new("frames", 0, 1000);
/// Open connections.
pub(crate) const STREAMS: Counted = Counted::new("connections", 1, 1_000_000);
/// Keys that only `split` has a use for.
pub(crate) const OF_SPLIT: &[&str] = &["max_streams", "memory"];

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
    field(
        "reordering",
        Shape::Count(REORDERING),
        "Number of later frames that may arrive before a frame counts as lost. Default: 3.",
    ),
    field(
        "shared",
        Shape::Flag,
        "True if others use the link too: the sender then finds its own share, and `rate` is the upper bound. Default: false.",
    ),
    field(
        "mtu",
        Shape::SIZE,
        "Largest MTU that the path between the two boxes may have; a smaller `mtu` of the links is taken as discovered. Default: 1500 B.",
    ),
    field(
        "max_streams",
        Shape::Count(STREAMS),
        "`shape = \"split\"`: maximum number of open connections of each box. Default: 16384.",
    ),
    field(
        "memory",
        Shape::SIZE,
        "`shape = \"split\"`: maximum memory of each box for data that hosts have not accepted yet. Default: 256 MiB.",
    ),
];
