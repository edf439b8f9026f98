//! The keys of `[[flows]]`.

use bentpipe_language::shape::{Counted, Field, Shape, field};

use super::common::{DISTRIBUTION_SHAPE, NODE};
use super::quic::QUIC;

/// How flows share the buffer of a gateway.
pub(crate) const BUFFER_SHARINGS: &[&str] = &["common", "equal"];

/// The types of a flow.
pub(crate) const FLOW_TYPES: &[&str] = &["tcp", "stp", "quic", "udp"];

/// An amount that a connection carries.
pub(crate) const AMOUNT: Shape = Shape::Any(&[Shape::SIZE, Shape::SEGMENTS]);

/// A flow.
pub(crate) const FLOW: &[Field] = &[
    field("name", Shape::Text, "Name of the flow. Default: \"flow-1\" for the first, and so on."),
    field("type", Shape::Choice(FLOW_TYPES), "Transport protocol. Default: \"tcp\"."),
    field("from", NODE, "Node that sends; with `request_response`, the client. Required."),
    field("to", NODE, "Node that receives. Required."),
    field("start", Shape::DURATION, "Start of the flow. Default: 0 s."),
    field(
        "count",
        Shape::Count(Counted::new("flows", 1, 100_000)),
        "Number of flows like this one, named NAME-1, NAME-2, and so on. Default: one flow, named NAME.",
    ),
    field("stagger", Shape::DURATION, "With `count`: time between the starts of successive flows. Default: 0 s."),
    field(
        "spread",
        Shape::DURATION,
        "Upper bound of a random delay, drawn uniformly from 0 s for each start. Default: 0 s.",
    ),
    field("dscp", Shape::Count(Counted::new("", 0, 63)), "DSCP of the flow's packets (RFC 2474). Default: 0."),
    field("route", Shape::List(&Shape::Text), "Names of the links from `from` to `to`. Default: the shortest path."),
    field("return_route", Shape::List(&Shape::Text), "Names of the links back. Default: the shortest path."),
    field("bytes", AMOUNT, "TCP, STP, QUIC: amount of data to transfer."),
    field(
        "greedy",
        Shape::Any(&[Shape::Flag, Shape::Table(GREEDY)]),
        "TCP, STP, QUIC: transfers as much as possible, instead of `bytes`.",
    ),
    field("paced", Shape::Table(PACED), "TCP, STP, QUIC: the application writes at a given rate, instead of `bytes`."),
    field(
        "request_response",
        Shape::Table(REQUEST_RESPONSE),
        "TCP, STP, QUIC: requests, each answered before the next one, instead of `bytes`.",
    ),
    field(
        "spoof",
        Shape::Table(SPOOF),
        "TCP: the connection ends at a gateway that acknowledges for the destination. Data continues without TCP, over a link with a layer. With `split`, the last leg ends there. Default: end to end.",
    ),
    field(
        "tcp",
        Shape::TcpSettings { head: true, base: false },
        "TCP: settings of this flow, up to its first split. They replace those of `[tcp]`.",
    ),
    field(
        "path_change",
        Shape::DURATION,
        "TCP: time, from the start of the run, at which the stacks of `from` and `to` learn that the path has changed since earlier connections measured it. Careful resume ends, and the measurement is forgotten (RFC 9959 §3.2). Default: never.",
    ),
    field(
        "split",
        Shape::List(&Shape::Table(SPLIT)),
        "TCP: nodes at which the connection is split, in order from `from`.",
    ),
    field(
        "stp",
        Shape::Table(STP),
        "STP: settings of both ends. TCP with `split`: the first leg uses STP with these settings.",
    ),
    field("quic", Shape::Table(QUIC), "QUIC: settings of both ends."),
    field("rate", Shape::RATE, "UDP: rate on the wire while the flow sends. Required for UDP."),
    field(
        "packet",
        Shape::SIZE,
        "UDP: packet size on the wire, including 28 B of IPv4 and UDP headers. Required for UDP.",
    ),
    field(
        "pattern",
        Shape::Any(&[Shape::Choice(PATTERNS), Shape::Table(PATTERN)]),
        "UDP: when the flow sends: always (\"cbr\"), on and off, or frames of video. Default: \"cbr\".",
    ),
    field(
        "stop",
        Shape::DURATION,
        "UDP: when the flow stops, from the start of the run. Default: at the end of the run.",
    ),
];

/// A split of a connection, and the leg that leaves it.
pub(crate) const SPLIT: &[Field] = &[
    field("at", NODE, "The node. Required."),
    field(
        "buffer",
        Shape::SIZE,
        "Buffer for each direction. It is the receive buffer of the connection's end on either leg.",
    ),
    field(
        "tcp",
        Shape::TcpSettings { head: true, base: false },
        "TCP settings of the leg from this node to the next split or to the end. Default: those of `[tcp]`.",
    ),
    field(
        "stp",
        Shape::Table(STP),
        "The leg uses STP with these settings instead of TCP. Its receive buffer is the `buffer` at its end.",
    ),
    field(
        "route",
        Shape::List(&Shape::Text),
        "Names of the leg's links. The flow's `route` leads to the first split. Default: the shortest path.",
    ),
    field("return_route", Shape::List(&Shape::Text), "Names of the links back. Default: the shortest path."),
];

/// Keys of TCP flows only.
pub(crate) const TCP_ONLY: &[&str] = &["tcp", "split", "spoof", "path_change"];

/// Keys of flows with a connection only.
pub(crate) const CONNECTION_ONLY: &[&str] = &["bytes", "greedy", "paced", "request_response", "return_route"];

/// Keys of UDP flows only.
pub(crate) const UDP_ONLY: &[&str] = &["rate", "packet", "pattern", "stop"];

/// Keys of STP flows only.
pub(crate) const STP_ONLY: &[&str] = &["stp"];

/// Keys of QUIC flows only.
pub(crate) const QUIC_ONLY: &[&str] = &["quic"];

/// Starting points of STP's timers.
pub(crate) const TIMERS: &[&str] = &["departure", "hand-over"];

/// The settings of an STP connection.
pub(crate) const STP: &[Field] = &[
    field("rate", Shape::RATE, "Capacity provisioned for the connection. Required."),
    field("rtt", Shape::DURATION, "Round trip of the path. `rate` times `rtt` is the path's capacity. Required."),
    field("mss", Shape::SIZE, "Maximum payload of a segment. Default: 1000 B."),
    field("overhead", Shape::SIZE, "Bytes that the layers below STP (IP, framing) add to a segment. Default: 28 B."),
    field(
        "window",
        AMOUNT,
        "The constant window. Default: the number of whole segments, with headers, that fit into the path's capacity.",
    ),
    field(
        "rto",
        Shape::DURATION,
        "Retransmission timeout, the same for all segments. Default: 550 ms, plus the time that repairs of a link layer may take.",
    ),
    field(
        "timer",
        Shape::Choice(TIMERS),
        "When the retransmission timer starts: at the segment's \"departure\" from the line, or at its \"hand-over\" to the line's queue. Default: \"departure\".",
    ),
    field(
        "max_retransmissions",
        Shape::Count(Counted::new("retransmissions", 0, 255)),
        "Maximum number of retransmissions of a segment before the connection is aborted. Default: 6.",
    ),
    field(
        "poll_interval",
        Shape::DURATION,
        "Instead of `rto`: interval at which the sender polls the receiver's state. The receiver answers only polls and gaps, as in the SSCOP-based protocol of the same name (Henderson and Katz). At least 1 ms, and a thousandth of `rtt`.",
    ),
    field("receive_buffer", Shape::SIZE, "Receive buffer, at most 1 GiB. Default: 1 GiB."),
];

/// Patterns of a UDP flow that need no parameters.
pub(crate) const PATTERNS: &[&str] = &["cbr"];

/// A greedy flow.
pub(crate) const GREEDY: &[Field] =
    &[field("duration", Shape::DURATION, "How long the flow sends. Default: to the end of the run.")];

/// A gateway in which a connection ends.
pub(crate) const SPOOF: &[Field] = &[
    field("at", NODE, "The node. Required."),
    field(
        "buffer",
        Shape::PACKETS,
        "Number of full segments that the gateway stores for all flows that end there, both waiting and unacknowledged. It advertises the free space as its window. Required.",
    ),
    field(
        "sharing",
        Shape::Choice(BUFFER_SHARINGS),
        "\"common\": each flow is offered all free space. \"equal\": each flow has an equal part of the buffer. Default: \"common\".",
    ),
    field(
        "reopens",
        Shape::Flag,
        "True: the gateway sends a window update when a closed window opens (RFC 9293). False: windows are sent only in ACKs of data, so a stopped source waits for its persist timer. Default: true.",
    ),
];

/// A flow whose application writes at a rate.
pub(crate) const PACED: &[Field] = &[
    field("rate", Shape::RATE, "Payload rate while the application writes. Required."),
    field("write", AMOUNT, "Size of a write. Default: one segment."),
    field(
        "pattern",
        Shape::Any(&[Shape::Choice(PATTERNS), Shape::Table(PATTERN)]),
        "When the application writes: always (\"cbr\"), on and off, or frames of video. Default: \"cbr\".",
    ),
    field("bytes", AMOUNT, "Total amount of data. Default: unlimited."),
];

/// Requests and responses.
pub(crate) const REQUEST_RESPONSE: &[Field] = &[
    field("request", AMOUNT, "Size of a request. Required."),
    field("response", AMOUNT, "Size of a response. Required."),
    field("think", Shape::DURATION, "Pause between a response and the next request. Default: 0 s."),
    field("count", Shape::Count(Counted::new("requests", 1, u32::MAX as u64)), "Number of requests. Default: 1."),
];

/// A pattern that has parameters.
pub(crate) const PATTERN: &[Field] = &[ON_OFF[0], ON_OFF[1], VIDEO[0]];

/// A source of video.
pub(crate) const VIDEO: &[Field] =
    &[field("mpeg", Shape::Table(MPEG), "Frames of video, each sent at `rate` when it is due.")];

/// Groups of pictures.
pub(crate) const MPEG: &[Field] = &[
    field(
        "interval",
        Shape::DURATION,
        "Time from the start of a frame to the start of the next: \"40 ms\" for 25 frames per second. Required.",
    ),
    field(
        "group",
        Shape::Count(Counted::new("frames", 1, 255)),
        "Number of frames from one I frame to the next. Default: 12.",
    ),
    field(
        "distance",
        Shape::Count(Counted::new("frames", 1, 255)),
        "Number of frames from one I or P frame to the next. Default: 3.",
    ),
    field("i", Shape::SIZE, "Size of an I frame, rounded up to whole packets or writes. Required."),
    field("p", Shape::SIZE, "Size of a P frame. Required."),
    field("b", Shape::SIZE, "Size of a B frame. Required."),
];

/// A flow that alternates between sending and pausing.
pub(crate) const ON_OFF: &[Field] = &[
    field(
        "on",
        DISTRIBUTION_SHAPE,
        "Length of a sending period. Even the shortest period sends a packet or writes once. Required.",
    ),
    field("off", DISTRIBUTION_SHAPE, "Length of a pause. Required."),
];
