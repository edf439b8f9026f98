//! The keys of the language, and what stands behind each.

use bentpipe_language::overrides::Rules;
use bentpipe_language::shape::{Counted, Field, Shape, field};
use bentpipe_language::tcp::VARIANT;

mod flows;
mod layers;
mod links;

pub(crate) use flows::{
    AMOUNT, BUFFER_SHARINGS, CONNECTION_ONLY, FLOW, FLOW_TYPES, GREEDY, MPEG, ON_OFF, PACED, PATTERNS,
    REQUEST_RESPONSE, SPLIT, SPOOF, STP, STP_ONLY, TCP_ONLY, TIMERS, UDP_ONLY, VIDEO,
};
pub(crate) use layers::{
    CHANNEL, CHANNEL_FEC, CODEL, COPIES, LAYER, MATCH, OFF, ORDERS, QUEUEINGS, REPAIRS, SEGMENT_COUNT,
};
pub(crate) use links::{
    ATM, BIT_ERRORS, BURSTS, CELL_BUFFER, DIRECTION, DISCIPLINES, DISTRIBUTION, DISTRIBUTION_SHAPE, FRAMINGS,
    GILBERT_ELLIOTT, LINK, MILLIS, PACKET_BURSTS, QUEUE, RATE_TRACE, SHARINGS, TDMA, TIES,
};

/// What `--set` has to know of the keys.
pub(crate) const OVERRIDES: Rules = Rules {
    alternatives: &[&["bytes", "greedy", "paced", "request_response"], &["bursts", "gilbert_elliott"]],
    texts: &[("queue", "limit")],
};

/// A scenario.
pub(crate) const SCENARIO: &[Field] = &[
    field("name", Shape::Text, "Name of the experiment."),
    field("description", Shape::Text, "What it is, for people."),
    field("source", Shape::Text, "Where its numbers come from."),
    field("seed", Shape::Count(Counted::new("", 0, u64::MAX)), "Seed of all random draws; 1 if not given."),
    field(
        "time_limit",
        Shape::DURATION,
        "When the run stops at the latest; earlier when all finite flows are done. 3600 s if not given.",
    ),
    field("tcp", Shape::TcpSettings { head: true, base: false }, "What all TCP connections have in common."),
    field("variants", Shape::Named(VARIANT), "Rows of the scenario's own for the table of variants."),
    field("nodes", Shape::Named(HOST), "What nodes are besides the ends of links, under their names."),
    field("links", Shape::List(&Shape::Table(LINK)), "The links; nodes are named by them."),
    field("layers", Shape::List(&Shape::Table(LAYER)), "Link layers between IP and some of the links."),
    field("flows", Shape::List(&Shape::Table(FLOW)), "The flows."),
];

/// A node.
pub(crate) const HOST: &[Field] = &[
    field(
        "processing",
        DISTRIBUTION_SHAPE,
        "Time of the host's processor for each packet that a flow sends or receives there, one after the other.",
    ),
    field(
        "forwarding",
        DISTRIBUTION_SHAPE,
        "Time of the node for each packet that it passes on from one link to another, one after the other: a switch or router.",
    ),
];
