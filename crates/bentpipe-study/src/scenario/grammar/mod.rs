//! The keys of the language, and their values.

use bentpipe_language::overrides::Rules;
use bentpipe_language::shape::{Counted, Field, Shape, field};

mod common;
mod flows;
mod gateways;
mod layers;
mod links;
mod moves;
mod quic;

pub(crate) use common::{DISTRIBUTION, DISTRIBUTION_SHAPE};
pub(crate) use flows::{
    AMOUNT, BUFFER_SHARINGS, CONNECTION_ONLY, FLOW, FLOW_TYPES, GREEDY, MPEG, ON_OFF, PACED, PATTERN, PATTERNS,
    QUIC_ONLY, REQUEST_RESPONSE, SPLIT, SPOOF, STP, STP_ONLY, TCP_ONLY, TIMERS, UDP_ONLY, VIDEO,
};
pub(crate) use gateways::{CONGESTION, ENGINES, GATEWAY, KERNELS, OF_SHAPES, SHAPES};
pub(crate) use layers::{
    CHANNEL, CHANNEL_FEC, CODEL, COPIES, LAYER, MATCH, OFF, ORDERS, QUEUEINGS, REPAIRS, SEGMENT_COUNT,
};
pub(crate) use links::{
    ATM, BIT_ERRORS, BURSTS, CELL_BUFFER, COUPLING, DIRECTION, DISCIPLINES, FRAMINGS, GILBERT_ELLIOTT, LINK, MILLIS,
    PACKET_BURSTS, QUEUE, RATE_TRACE, SHARINGS, TDMA, TIES,
};

pub(crate) use moves::{
    DELAY_TRACE, JITTER, LOSS_TRACE, PHASES, RATE_SERIES, REORDER, SCHEDULE, TIMED_LOSS, TIMED_RATE,
};
pub(crate) use quic::{ACK_FREQUENCY, ACKED_TOGETHER, QUIC, QUIC_STREAMS};

/// What `--set` needs to know of the keys.
pub(crate) const OVERRIDES: Rules = Rules {
    alternatives: &[&["bytes", "greedy", "paced", "request_response"], &["bursts", "gilbert_elliott"]],
    texts: &[("queue", "limit")],
    prefixes: &[("flows", FLOW_PREFIX)],
};

/// An unnamed flow is called so, with its position from 1.
pub(crate) const FLOW_PREFIX: &str = "flow-";

/// A scenario.
pub(crate) const SCENARIO: &[Field] = &[
    field("name", Shape::Text, "Name of the experiment. Required."),
    field("description", Shape::Text, "Description, one line."),
    field("source", Shape::Text, "Sources of the numbers: document, table, page."),
    field("seed", Shape::Count(Counted::new("", 0, u64::MAX)), "Seed of all random draws. Default: 1."),
    field(
        "time_limit",
        Shape::DURATION,
        "Virtual time at which the run stops. It stops earlier when all finite flows are done. Default: 3600 s.",
    ),
    field("tcp", Shape::TcpSettings { head: true, base: false }, "Settings of all TCP connections."),
    field(
        "variants",
        Shape::Named(&Shape::TcpSettings { head: false, base: true }),
        "The scenario's own TCP variants, by name.",
    ),
    field("nodes", Shape::Named(&Shape::Table(HOST)), "Processing times of nodes, under the nodes' names."),
    field("links", Shape::List(&Shape::Table(LINK)), "The links. A node exists if a link names it. Required."),
    field("layers", Shape::List(&Shape::Table(LAYER)), "Link layers (S-LACP) between IP and a link."),
    field(
        "gateways",
        Shape::List(&Shape::Table(GATEWAY)),
        "Gateways at the ends of a satellite link. Settings have the same names as in the gateway's own file.",
    ),
    field("flows", Shape::List(&Shape::Table(FLOW)), "The flows. Required, except for `emulate` and `shell`."),
];

/// A node.
pub(crate) const HOST: &[Field] = &[
    field(
        "processing",
        DISTRIBUTION_SHAPE,
        "CPU time for each packet that a flow sends or receives at this host. Packets are processed one at a time. Default: none.",
    ),
    field(
        "forwarding",
        DISTRIBUTION_SHAPE,
        "CPU time for each packet that this node forwards from one link to another, as a switch or router. Packets are processed one at a time. Default: none.",
    ),
];
