//! The keys of `[[flows]]`.

use bentpipe_language::shape::{Counted, Field, Shape, field};

use super::links::{DISTRIBUTION_SHAPE, NODE};

/// How flows share the buffer of a gateway.
pub(crate) const BUFFER_SHARINGS: &[&str] = &["common", "equal"];

/// The types of a flow.
pub(crate) const FLOW_TYPES: &[&str] = &["tcp", "stp", "udp"];

/// An amount that a connection carries.
pub(crate) const AMOUNT: Shape = Shape::Any(&[Shape::SIZE, Shape::SEGMENTS]);

/// A flow.
pub(crate) const FLOW: &[Field] = &[
    field("name", Shape::Text, "Name of the flow; \"flow-1\" for the first if not given."),
    field("type", Shape::Choice(FLOW_TYPES), "Transport; \"tcp\" if not given."),
    field("from", NODE, "Node that sends; with request_response the one that asks."),
    field("to", NODE, "Node that receives."),
    field("start", Shape::DURATION, "When it starts; 0 s if not given."),
    field("count", Shape::Count(Counted::new("flows", 1, 100_000)), "So many flows of the kind: NAME-1, NAME-2, ..."),
    field("stagger", Shape::DURATION, "Each of them starts so much later than the one before."),
    field("spread", Shape::DURATION, "Each start is delayed by a draw between zero and this."),
    field("dscp", Shape::Count(Counted::new("", 0, 63)), "Code point of its packets (RFC 2474); 0 if not given."),
    field(
        "route",
        Shape::List(&Shape::Text),
        "Names of the links from `from` to `to`; the shortest path if not given.",
    ),
    field("return_route", Shape::List(&Shape::Text), "Names of the links back."),
    field("bytes", AMOUNT, "TCP, STP: carries so much, then ends."),
    field("greedy", Shape::Any(&[Shape::Flag, Shape::Table(GREEDY)]), "TCP, STP: carries as much as goes through."),
    field("paced", Shape::Table(PACED), "TCP, STP: the application writes at a rate, whatever becomes of it."),
    field("request_response", Shape::Table(REQUEST_RESPONSE), "TCP, STP: requests, each answered before the next."),
    field(
        "spoof",
        Shape::Table(SPOOF),
        "TCP: the connection ends at a gateway, which acknowledges in the destination's name; its data goes on without \
         TCP, over a link under a layer. With `split`, the last leg ends there. If not given it goes through.",
    ),
    field("tcp", Shape::TcpSettings { head: true, base: false }, "TCP: settings of this flow, up to its first split."),
    field("split", Shape::List(&Shape::Table(SPLIT)), "TCP: nodes at which the connection is split, from `from` on."),
    field("stp", Shape::Table(STP), "STP: settings of both ends. TCP with `split`: the first leg is STP with these."),
    field("rate", Shape::RATE, "UDP: rate on the wire while it sends."),
    field("packet", Shape::SIZE, "UDP: length of a packet on the wire, the 28 B of IPv4 and UDP headers included."),
    field("pattern", Shape::Any(&[Shape::Choice(PATTERNS), Shape::Table(PATTERN)]), "UDP: when it sends; \"cbr\"."),
    field("stop", Shape::DURATION, "UDP: when it stops, from the start of the run."),
];

/// A split of a connection, and the leg that leaves it.
pub(crate) const SPLIT: &[Field] = &[
    field("at", NODE, "The node."),
    field("buffer", Shape::SIZE, "Its buffer in each direction, which is the receive buffer of its ends on both legs."),
    field(
        "tcp",
        Shape::TcpSettings { head: true, base: false },
        "Settings of the leg from this node to the next split, or to the end; those of [tcp] where nothing is said.",
    ),
    field(
        "stp",
        Shape::Table(STP),
        "The leg is STP with these settings, not TCP; `buffer` of its end is its receive buffer.",
    ),
    field("route", Shape::List(&Shape::Text), "Names of the leg's links; the flow's `route` leads to the first split."),
    field("return_route", Shape::List(&Shape::Text), "Names of the links back."),
];

/// Keys that only TCP flows have.
pub(crate) const TCP_ONLY: &[&str] = &["tcp", "split", "spoof"];

/// Keys that only flows with a connection have.
pub(crate) const CONNECTION_ONLY: &[&str] = &["bytes", "greedy", "paced", "request_response", "return_route"];

/// Keys that only UDP flows have.
pub(crate) const UDP_ONLY: &[&str] = &["rate", "packet", "pattern", "stop"];

/// Keys that only STP flows have.
pub(crate) const STP_ONLY: &[&str] = &["stp"];

/// From when STP's timers run.
pub(crate) const TIMERS: &[&str] = &["departure", "hand-over"];

/// The settings of an STP connection.
pub(crate) const STP: &[Field] = &[
    field("rate", Shape::RATE, "Capacity provisioned for the connection."),
    field("rtt", Shape::DURATION, "Round trip of the path; with the rate it makes the pipe."),
    field("mss", Shape::SIZE, "Most payload of a segment; 1000 B if not given."),
    field("overhead", Shape::SIZE, "Bytes per segment on the line below STP: IP, framing; 28 B if not given."),
    field(
        "window",
        AMOUNT,
        "The constant window; if not given, as many whole segments as the pipe holds with their headers.",
    ),
    field(
        "rto",
        Shape::DURATION,
        "Retransmission timeout of a segment, the same for all. If not given 550 ms, and over a link layer what its repairs \
         may take besides.",
    ),
    field("timer", Shape::Choice(TIMERS), "From when it runs; \"departure\" from the line if not given."),
    field(
        "max_retransmissions",
        Shape::Count(Counted::new("retransmissions", 0, 255)),
        "Retransmissions of a segment before the connection is given up; 6 if not given.",
    ),
    field(
        "poll_interval",
        Shape::DURATION,
        "Instead of timers for data: the sender polls for what has arrived at this interval, and the receiver answers polls and \
         gaps alone, as in the SSCOP-based protocol of the same name (Henderson and Katz).",
    ),
    field("receive_buffer", Shape::SIZE, "What the receiver takes beyond what is read; 1 GiB, the most, if not given."),
];

/// Patterns of a UDP flow that need no parameters.
pub(crate) const PATTERNS: &[&str] = &["cbr"];

/// A greedy flow.
pub(crate) const GREEDY: &[Field] = &[field("duration", Shape::DURATION, "For so long; to the end if not given.")];

/// A gateway in which a connection ends.
pub(crate) const SPOOF: &[Field] = &[
    field("at", NODE, "The node."),
    field(
        "buffer",
        Shape::PACKETS,
        "Full segments that it holds, waiting or sent on and not acknowledged, of all flows that end there; what is free \
         is the window that it advertises.",
    ),
    field(
        "sharing",
        Shape::Choice(BUFFER_SHARINGS),
        "\"common\", if not given: each flow is offered what is free of the whole buffer. \"equal\": each has an equal part.",
    ),
    field(
        "reopens",
        Shape::Flag,
        "A window that was closed is told when it opens (RFC 9293); true. Off: windows go out in ACKs of data only, and a \
         source that was closed waits for its persist timer.",
    ),
];

/// A flow whose application keeps to a rate.
pub(crate) const PACED: &[Field] = &[
    field("rate", Shape::RATE, "Rate of the payload while it writes."),
    field("write", AMOUNT, "Length of a write; one segment if not given."),
    field(
        "pattern",
        Shape::Any(&[Shape::Choice(PATTERNS), Shape::Table(PATTERN)]),
        "When it writes: \"cbr\", always, if not given, in turns, or frames of video.",
    ),
    field("bytes", AMOUNT, "So much in all, then the end; without an end if not given."),
];

/// Requests and responses.
pub(crate) const REQUEST_RESPONSE: &[Field] = &[
    field("request", AMOUNT, "Length of a request."),
    field("response", AMOUNT, "Length of a response."),
    field("think", Shape::DURATION, "Pause between a response and the next request; 0 s if not given."),
    field("count", Shape::Count(Counted::new("requests", 1, u32::MAX as u64)), "Number of requests; 1 if not given."),
];

/// A pattern that has parameters.
pub(crate) const PATTERN: &[Field] = &[ON_OFF[0], ON_OFF[1], VIDEO[0]];

/// A source of video.
pub(crate) const VIDEO: &[Field] =
    &[field("mpeg", Shape::Table(MPEG), "Frames of video, each sent at `rate` when its time has come.")];

/// Groups of pictures.
pub(crate) const MPEG: &[Field] = &[
    field(
        "interval",
        Shape::DURATION,
        "From the start of a frame to that of the next: \"40 ms\" are 25 frames a second.",
    ),
    field(
        "group",
        Shape::Count(Counted::new("frames", 1, 255)),
        "Frames from one I frame to the next; 12 if not given.",
    ),
    field(
        "distance",
        Shape::Count(Counted::new("frames", 1, 255)),
        "Frames from one I or P to the next; 3 if not given.",
    ),
    field("i", Shape::SIZE, "Bytes of an I frame, sent as whole packets or writes."),
    field("p", Shape::SIZE, "Bytes of a P frame."),
    field("b", Shape::SIZE, "Bytes of a B frame."),
];

/// A UDP flow that sends in turns.
pub(crate) const ON_OFF: &[Field] = &[
    field("on", DISTRIBUTION_SHAPE, "Lengths of the times it sends."),
    field("off", DISTRIBUTION_SHAPE, "Lengths of the times it does not."),
];
