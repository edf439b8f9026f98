//! The keys of `[[layers]]`.

use bentpipe_engine::slacp::ChannelConfig;
use bentpipe_language::shape::{Counted, Field, Shape, field};

use super::common::QUEUE_LIMIT;

/// A link layer: S-LACP, or `hybrid`'s plain ARQ as a case of it.
pub(crate) const LAYER: &[Field] = &[
    field("name", Shape::Text, "Name of the layer in overrides and results. Required."),
    field(
        "over",
        Shape::Any(&[Shape::Text, Shape::Pair(&Shape::Text)]),
        "The duplex link below, or two one-way links, one for each direction. Packets wait in the layer, not in the link: the link's `queue` limits each channel of the layer, and its `mtu` the packets that the layer accepts. Required.",
    ),
    field(
        "report_interval",
        Shape::DURATION,
        "Maximum delay of the receiver's report on a frame; 0 s sends a report for each frame. Default: 20 ms.",
    ),
    field(
        "reordering",
        Shape::Count(Counted::new("frames", 0, 1000)),
        "A frame counts as lost once another arrives that was sent this many frames later, or more than a quarter of a round trip later. 0 is as 1. Default: 0.",
    ),
    field(
        "release",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["auto", "unlimited", "grouped"])]),
        "Release of packets that waited for a repair: at a rate, or \"unlimited\". \"auto\": at 1.2 times the link's rate. \"grouped\": unlimited, except that the packets of an outage pass in at most eight groups per round trip. Default: \"auto\".",
    )
    .renamed_from("release_rate"),
    field(
        "window",
        Shape::Count(Counted::new("frames", 1, 65_535)),
        "Maximum number of unacknowledged frames of a channel. Default: 65535.",
    ),
    field(
        "weightless",
        Shape::Flag,
        "Headers and reports take no time on the line, as the hybrid paper assumes. Default: false.",
    ),
    field(
        "hears_damage",
        Shape::Flag,
        "The receiver can identify a damaged frame, as the hybrid paper assumes. Default: false.",
    ),
    field(
        "channels",
        Shape::List(&Shape::Table(CHANNEL)),
        "Logical channels. A packet takes the first channel that matches it, or else the last. Default: `urgent` for expedited forwarding (FEC, unordered, highest priority), `acks` for bare TCP ACKs (sent once), `bulk` for the rest (ARQ, copies into an idle line, FEC, CoDel, ordered per flow).",
    ),
];

/// Scopes of ordering.
pub(crate) const ORDERS: &[&str] = &["flow", "channel", "none"];

/// The word for a disabled feature.
pub(crate) const OFF: &[&str] = &["off"];

/// Schedulers of a channel's flows.
pub(crate) const QUEUEINGS: &[&str] = &["fifo", "fair"];

/// Frames of a packet.
pub(crate) const SEGMENT_COUNT: Counted = Counted::new("frames", 1, ChannelConfig::MAX_SEGMENTS as u64);

/// A logical channel of a layer.
pub(crate) const CHANNEL: &[Field] = &[
    field("name", Shape::Text, "Name of the channel in results. Required."),
    field(
        "match",
        Shape::List(&Shape::Table(MATCH)),
        "Rules; a packet belongs to the channel if any of them matches. Default: none; the last channel takes what no rule matches.",
    ),
    field(
        "transmissions",
        Shape::Any(&[
            Shape::Count(Counted::new("transmissions", 1, u32::MAX as u64)),
            Shape::Choice(&["off", "unlimited"]),
        ]),
        "ARQ: maximum number of transmissions of a frame, the first included. \"off\" sends each frame once and stores nothing. Default: 8.",
    ),
    field(
        "copies",
        Shape::Any(&[Shape::Choice(&["off", "auto"]), Shape::Table(COPIES)]),
        "While the line is idle, unacknowledged packets are sent again. \"auto\": every quarter of the link's round trip, at most three times. Default: \"off\".",
    ),
    field("fec", Shape::Any(&[Shape::Choice(OFF), Shape::Table(CHANNEL_FEC)]), "Erasure code (FEC). Default: \"off\"."),
    field("order", Shape::Choice(ORDERS), "Scope within which the receiver restores order. Default: \"flow\"."),
    field(
        "priority",
        Shape::Count(Counted::new("", 0, 255)),
        "Strict priority; the lower number goes first. Default: 0.",
    ),
    field(
        "weight",
        Shape::Count(Counted::new("", 1, 1000)),
        "Share of the line among channels of the same priority. Default: 1.",
    ),
    field(
        "queue",
        QUEUE_LIMIT,
        "Maximum queue of packets before their first transmission; a packet that is alone always has room. Default: the link's `queue`.",
    ),
    field(
        "ack_filter",
        Shape::Flag,
        "A bare ACK replaces a waiting ACK of its flow that acknowledges less (RFC 3449 §5.2.1). Default: false.",
    ),
    field("counts_copies", Shape::Flag, "Unacknowledged frames count against `queue` too. Default: false."),
    field(
        "queueing",
        Shape::Choice(QUEUEINGS),
        "Scheduling of flows. \"fifo\": in order of arrival. \"fair\": deficit round robin; if the queue is full, the longest flow loses its newest packet. Default: \"fifo\".",
    ),
    field(
        "segments",
        Shape::Count(SEGMENT_COUNT),
        "Number of frames that a packet is split into, each lost and repeated independently. Needs `weightless` (the hybrid paper). Default: 1.",
    ),
    field(
        "codel",
        Shape::Any(&[Shape::Choice(&["off", "auto"]), Shape::Table(CODEL)]),
        "CoDel (RFC 8289). \"auto\": a target of one round trip of the link, at least 5 ms, and an interval of two targets. Default: \"off\".",
    ),
];

/// Transmissions into an idle line.
pub(crate) const COPIES: &[Field] = &[
    field("interval", Shape::DURATION, "Minimum time between two transmissions of a packet. Required."),
    field("max", Shape::Count(Counted::new("copies", 1, 255)), "Maximum number of copies of a packet. Required.")
        .renamed_from("most"),
];

/// Conditions on a packet.
pub(crate) const MATCH: &[Field] = &[
    field("dscp", Shape::Count(Counted::new("", 0, 63)), "DSCP (RFC 2474); 46 is expedited forwarding."),
    field("protocol", Shape::Choice(&["tcp", "udp"]), "Transport protocol."),
    field("port", Shape::Count(Counted::new("", 0, 65_535)), "Source or destination port."),
    field("bare_ack", Shape::Flag, "True: matches TCP ACKs without data."),
    field("up_to", Shape::SIZE, "Maximum length of the IP packet."),
];

/// The erasure code of a channel.
pub(crate) const CHANNEL_FEC: &[Field] = &[
    field("block", Shape::Count(Counted::new("packets", 1, 128)), "Maximum number of packets in a block. Default: 60."),
    field("interval", Shape::DURATION, "Maximum time from a block's first packet to its end. Default: 100 ms."),
    field("max_overhead", Shape::Probability, "Maximum number of repair frames per packet. Default: 50 %.")
        .renamed_from("most_overhead"),
    field(
        "repairs",
        Shape::Choice(REPAIRS),
        "When repair frames are sent. \"prompt\": as soon as their block is complete. \"spare\": when the line would be idle. \"idle\": like \"spare\", until a loss of the block is known; the lost packet is then sent again instead. \"short\": \"prompt\" while the queue takes less than a quarter of a round trip, otherwise \"idle\". Default: \"prompt\".",
    ),
];

/// When repair frames may be sent.
pub(crate) const REPAIRS: &[&str] = &["prompt", "spare", "idle", "short"];

/// CoDel.
pub(crate) const CODEL: &[Field] = &[
    field("target", Shape::DURATION, "Acceptable standing queue delay. Required."),
    field(
        "interval",
        Shape::DURATION,
        "Time that senders need to react: at least one round trip of the path. Required.",
    ),
];
