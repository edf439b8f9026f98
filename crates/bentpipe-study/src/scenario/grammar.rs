//! The keys of the language.

use bentpipe_engine::link::RateTrace;
use bentpipe_engine::slacp::ChannelConfig;

use super::quantity::{CELLS, DECIBELS};
use super::shape::{Counted, Field, Shape};

pub(crate) const fn field(key: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { key, shape, doc }
}

/// A scenario.
pub(crate) const SCENARIO: &[Field] = &[
    field("name", Shape::Text, "Name of the experiment. Required."),
    field("description", Shape::Text, "One line that says what it is, for people."),
    field("source", Shape::Text, "Where the numbers come from: document, table, page."),
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
        "TCP variants of the scenario's own, under their names.",
    ),
    field("nodes", Shape::Named(&Shape::Table(HOST)), "Processing times of nodes, under the nodes' names."),
    field("links", Shape::List(&Shape::Table(LINK)), "The links. A node exists if a link names it. Required."),
    field("layers", Shape::List(&Shape::Table(LAYER)), "Link layers (S-LACP) between IP and a link."),
    field("flows", Shape::List(&Shape::Table(FLOW)), "The flows. Required."),
];

/// The head of a row of variants; its cells are TCP settings.
pub(crate) const VARIANT: &[Field] = &[
    field(
        "base",
        Shape::Text,
        "The variant that this one starts from. A variant that names itself starts from the built-in one of that name. Required.",
    ),
    field("description", Shape::Text, "One line that says what it is, for people."),
];

/// The head of a table of TCP settings.
pub(crate) const TCP_HEAD: &[Field] = &[
    field("profile", Shape::Text, "Set of defaults: \"rfc\", \"bsd-reno\", \"ns2\" or \"ns2-2003\". Default: \"rfc\"."),
    field("variant", Shape::Text, "TCP variant, from `bentpipe variants` or `[variants]`. Default: the profile's."),
];

const NODE: Shape = Shape::Text;

/// A link.
pub(crate) const LINK: &[Field] = &{
    let mut all = [OF_BOTH_DIRECTIONS[0]; OF_BOTH_DIRECTIONS.len() + DIRECTION.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at.checked_sub(OF_BOTH_DIRECTIONS.len()) {
            None => OF_BOTH_DIRECTIONS[at],
            Some(at) => DIRECTION[at],
        };
        at += 1;
    }
    all
};

/// What a link has beside the settings of its directions.
const OF_BOTH_DIRECTIONS: &[Field] = &[
    field("name", Shape::Text, "Name of the link in overrides, routes and results. Required."),
    field("between", Shape::Pair(&NODE), "The two nodes of a duplex link. Forward is from the first to the second."),
    field("from", NODE, "First node of a one-way link; used with `to` instead of `between`."),
    field("to", NODE, "Second node of a one-way link."),
    field("forward", Shape::Table(DIRECTION), "Settings of the forward direction; they replace the link's."),
    field("backward", Shape::Table(DIRECTION), "Settings of the backward direction; they replace the link's."),
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

/// In what packets travel.
pub(crate) const FRAMINGS: &[&str] = &["packets", "aal5"];

/// Whose a buffer of cells is.
pub(crate) const SHARINGS: &[&str] = &["per-vc", "shared"];

/// Room for cells.
pub(crate) const CELL_BUFFER: Shape = Shape::Any(&[Shape::Quantity(CELLS), Shape::Choice(&["unlimited"])]);

/// A port for cells.
pub(crate) const ATM: &[Field] = &[
    field(
        "line",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["unlimited"])]),
        "Rate of the lines over which cells reach the port, one line per virtual channel (pair of hosts). Default: unlimited, which means all cells of a packet arrive at once.",
    ),
    field(
        "buffer",
        CELL_BUFFER,
        "Maximum number of waiting cells, not counting the one in transmission. Default: unlimited.",
    ),
    field(
        "sharing",
        Shape::Choice(SHARINGS),
        "\"per-vc\": one buffer for each virtual channel. \"shared\": one for all. Default: \"per-vc\".",
    ),
    field(
        "early_packet_discard",
        Shape::Any(&[Shape::Probability, Shape::Choice(&["off"])]),
        "Fill level of the buffer above which whole packets are dropped at their first cell. Default: \"off\".",
    ),
    field(
        "partial_packet_discard",
        Shape::Flag,
        "True: after a packet loses a cell at the buffer, its other cells are dropped too, except the last. Default: false.",
    ),
];

/// What one direction of a link is made of.
pub(crate) const DIRECTION: &[Field] = &[
    field(
        "rate",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["unlimited"])]),
        "Line rate. Required, unless `rate_trace` is given.",
    ),
    field(
        "rate_trace",
        RATE_TRACE,
        "Instead of `rate`: a packet-delivery trace in mahimahi's format. Either a file, relative to the scenario, or a list. Each line is a time in milliseconds at which 1500 B can leave. The trace repeats after its last line.",
    ),
    field(
        "tdma",
        Shape::Table(TDMA),
        "The line sends in the bursts of a repeating frame (TDMA, SS-TDMA), at `rate` within a burst. A node has one beam each way: no two links from the same node, or to the same node, may send at once.",
    ),
    field("delay", Shape::DURATION, "Propagation delay, one way. Required."),
    field(
        "queue",
        Shape::Any(&[QUEUE_LIMIT, Shape::Table(QUEUE)]),
        "Maximum queue, not counting the packet in transmission: packets, bytes, or the time that the line needs to send it. Default: unlimited.",
    ),
    field("loss", Shape::Probability, "Probability that a packet is lost, independently of the others. Default: 0."),
    field(
        "bit_error_rate",
        Shape::Any(&[Shape::Probability, Shape::Table(BIT_ERRORS)]),
        "Bit error rate; a packet with a bit error is lost. A table gives a nominal rate and the implementation loss of the receiver in decibels. Default: 0.",
    ),
    field(
        "header",
        Shape::SIZE,
        "Size of the link's own header, added to each packet on the line, such as \"8 B\" of a MAC layer. Default: 0 B.",
    ),
    field(
        "mtu",
        Shape::SIZE,
        "Maximum packet size, with the IP header, without `header`, such as \"1500 B\". Longer packets are dropped silently, as on a path that filters ICMP. Default: unlimited.",
    ),
    field("bursts", Shape::Table(BURSTS), "Fades and outages: intervals in which the channel is bad."),
    field(
        "gilbert_elliott",
        Shape::Table(GILBERT_ELLIOTT),
        "Gilbert-Elliott channel: two states with exponentially distributed lengths.",
    ),
    field(
        "packet_bursts",
        Shape::Table(PACKET_BURSTS),
        "Bursts of losses by packet order instead of by time: a loss makes the loss of the next packet more likely.",
    ),
    field(
        "ties",
        Shape::Choice(TIES),
        "Order of an arrival and a departure at the same instant. \"departure\": the departure is first. \"begun\": the event that was scheduled first, as in ns-2. Default: \"departure\".",
    ),
    field(
        "drop_list",
        Shape::List(&Shape::Count(Counted::new("", 0, u64::MAX))),
        "Packets to drop before the queue, by order of arrival: ascending indices, counted from 0.",
    ),
    field(
        "framing",
        Shape::Choice(FRAMINGS),
        "\"packets\", or \"aal5\": ATM cells of 53 B with AAL5 and LLC/SNAP. Default: \"packets\".",
    ),
    field("atm", Shape::Table(ATM), "With `framing = \"aal5\"`: how virtual channels share the link cell by cell."),
];

/// When a line may send.
pub(crate) const TDMA: &[Field] = &[
    field(
        "frame",
        Shape::DURATION,
        "Length of the frame. Frames follow one another from the start of the run. Required.",
    ),
    field(
        "bursts",
        Shape::List(&Shape::Pair(&Shape::DURATION)),
        "Start (relative to the frame) and length of each burst, in order. Required.",
    ),
];

/// Instants of a trace, in milliseconds.
pub(crate) const MILLIS: Counted = Counted::new("", 0, RateTrace::MOST_MILLIS);
pub(crate) const RATE_TRACE: Shape = Shape::Any(&[Shape::Text, Shape::List(&Shape::Count(MILLIS))]);

const QUEUE_LIMIT: Shape = Shape::Any(&[Shape::PACKETS, Shape::SIZE, Shape::DURATION, Shape::Choice(&["unlimited"])]);

/// The disciplines of a queue.
pub(crate) const DISCIPLINES: &[&str] = &["drop-tail", "red"];

/// Orders of an arrival and a departure of one instant.
pub(crate) const TIES: &[&str] = &["departure", "begun"];

/// A queue.
pub(crate) const QUEUE: &[Field] = &[
    field("limit", QUEUE_LIMIT, "Maximum queue, not counting the packet in transmission. Required."),
    field(
        "discipline",
        Shape::Choice(DISCIPLINES),
        "Queue discipline: \"drop-tail\", or \"red\" (Floyd and Jacobson 1993). Default: \"drop-tail\".",
    ),
    field("min_threshold", Shape::PACKETS, "RED: average queue below which nothing is dropped. Default: 5 packets."),
    field(
        "max_threshold",
        Shape::PACKETS,
        "RED: average queue at which the drop probability reaches `max_probability`. Default: three times `min_threshold`.",
    ),
    field("max_probability", Shape::Probability, "RED: drop probability at `max_threshold`. Default: 10 %."),
    field(
        "weight",
        Shape::Any(&[Shape::Weight, Shape::Choice(&["auto"])]),
        "RED: weight of a sample in the moving average. \"auto\" is 1-exp(-1/C), where C is the line's rate in mean packets per second. Default: \"auto\".",
    ),
    field(
        "gentle",
        Shape::Flag,
        "RED: above `max_threshold`, raise the drop probability gradually to 1 at twice `max_threshold`, instead of at once. Default: true.",
    ),
    field("wait", Shape::Flag, "RED: leave at least 1/p packets between two drops. Default: true."),
    field("mean_packet", Shape::SIZE, "RED: packet size used to convert idle time into packets. Default: 500 B."),
];

/// Bursts.
pub(crate) const BURSTS: &[Field] = &[
    field("gap", DISTRIBUTION_SHAPE, "Time from the start of the run, or the end of a burst, to the next burst."),
    field("length", DISTRIBUTION_SHAPE, "Length of a burst."),
    field(
        "schedule",
        Shape::List(&Shape::Pair(&Shape::DURATION)),
        "Instead of `gap` and `length`: start and length of each burst, in order of time.",
    ),
    field(
        "file",
        Shape::Text,
        "Instead of `gap` and `length`: a CSV file, relative to the scenario, with the columns `start_s` and `length_s` (seconds).",
    ),
    field("loss", Shape::Probability, "Probability that a packet is lost in a burst. Default: 100 %."),
    field("bit_error_rate", Shape::Probability, "Bit error rate in a burst. Default: the link's."),
    field(
        "extra_delay",
        Shape::DURATION,
        "Extra delay for packets whose transmission starts in a burst. Packets stay in order. Default: none.",
    ),
];

/// Bit errors by a budget of decibels.
pub(crate) const BIT_ERRORS: &[Field] = &[
    field("nominal", Shape::Probability, "Bit error rate that the link is designed for, with uncoded QPSK. Required."),
    field(
        "implementation_loss",
        Shape::Quantity(DECIBELS),
        "Implementation loss of the receiver. The bit error rate is the one of the uncoded QPSK curve at an Eb/N0 reduced by this. Required.",
    ),
];

/// Gilbert-Elliott.
pub(crate) const GILBERT_ELLIOTT: &[Field] = &[
    field("good", Shape::DURATION, "Mean length of the good state. Required."),
    field("bad", Shape::DURATION, "Mean length of the bad state. Required."),
    field("loss_good", Shape::Probability, "Probability that a packet is lost in the good state. Default: 0."),
    field("loss_bad", Shape::Probability, "Probability that a packet is lost in the bad state. Required."),
];

/// Losses that follow the packets.
pub(crate) const PACKET_BURSTS: &[Field] = &[
    field("start", Shape::Probability, "Probability that a packet is lost if the previous one was not. Required."),
    field(
        "burstiness",
        Shape::Probability,
        "Probability that a packet is lost if the previous one was; at least `start`.",
    ),
    field("most", Shape::Probability, "Greatest value that `burstiness` can have; 100 % if not given."),
    field("length", Shape::PACKETS, "Instead of `burstiness`: each loss takes exactly this many packets in a row."),
];

/// A distribution: a span, or one of these with its parameters.
pub(crate) const DISTRIBUTION_SHAPE: Shape = Shape::Any(&[Shape::DURATION, Shape::Table(DISTRIBUTION)]);

/// A distribution of spans.
pub(crate) const DISTRIBUTION: &[Field] = &[
    field("fixed", Shape::DURATION, "A constant."),
    field("uniform", Shape::Pair(&Shape::DURATION), "Uniformly distributed between these two."),
    field("exponential", Shape::DURATION, "Exponentially distributed with this mean."),
    field(
        "clip",
        Shape::Pair(&Shape::DURATION),
        "With `exponential`: draws outside these bounds are set to the nearer bound.",
    ),
    field("truncate", Shape::Pair(&Shape::DURATION), "With `exponential`: draws outside these bounds are drawn again."),
];

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
        "Number of later frames that may arrive before a frame counts as lost. Default: 0.",
    ),
    field(
        "release_rate",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["auto", "unlimited", "gathered"])]),
        "Rate at which packets that had waited for a repair are passed on; \"auto\", the default, is 1.2 of the link's. \"gathered\" is unlimited, and what comes again after an outage passes as eight groups in a round trip at most.",
    ),
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

/// What is kept in order.
pub(crate) const ORDERS: &[&str] = &["flow", "channel", "none"];

/// Words for what can be switched off.
pub(crate) const OFF: &[&str] = &["off"];

/// How the flows of a channel wait.
pub(crate) const QUEUEINGS: &[&str] = &["fifo", "fair"];

/// Frames of a packet.
pub(crate) const SEGMENT_COUNT: Counted = Counted::new("frames", 1, ChannelConfig::MAX_SEGMENTS as u64);

/// How flows share the buffer of a gateway.
pub(crate) const BUFFER_SHARINGS: &[&str] = &["common", "equal"];

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
        "Maximum queue of packets before their first transmission. Default: the link's `queue`.",
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
        "Number of frames that a packet is split into, each lost and repeated on its own. Needs `weightless` (the hybrid paper). Default: 1.",
    ),
    field(
        "codel",
        Shape::Any(&[Shape::Choice(&["off", "auto"]), Shape::Table(CODEL)]),
        "CoDel (RFC 8289). \"auto\": a target of one round trip of the link and an interval of two. Default: \"off\".",
    ),
];

/// Transmissions into an idle line.
pub(crate) const COPIES: &[Field] = &[
    field("interval", Shape::DURATION, "Minimum time between two transmissions of a packet. Required."),
    field("most", Shape::Count(Counted::new("copies", 1, 255)), "Copies of a packet, at most."),
];

/// What a packet must be like.
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
    field("most_overhead", Shape::Probability, "Most repair frames per packet; 50 % if not given."),
    field(
        "repairs",
        Shape::Choice(REPAIRS),
        "When repair frames are sent. \"prompt\": as soon as their block is complete. \"spare\": when the line would be idle. \"idle\": like \"spare\", until a loss of the block is known; the lost packet is then sent again instead. \"short\": \"prompt\" while the queue takes less than a quarter of a round trip, otherwise \"idle\". Default: \"prompt\".",
    ),
];

/// When repair frames may take the line.
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

/// The types of a flow.
pub(crate) const FLOW_TYPES: &[&str] = &["tcp", "stp", "udp"];

/// An amount that a connection carries.
pub(crate) const AMOUNT: Shape = Shape::Any(&[Shape::SIZE, Shape::SEGMENTS]);

/// A flow.
pub(crate) const FLOW: &[Field] = &[
    field("name", Shape::Text, "Name of the flow. Default: \"flow-1\" for the first, and so on."),
    field("type", Shape::Choice(FLOW_TYPES), "Transport protocol. Default: \"tcp\"."),
    field("from", NODE, "Node that sends; with `request_response`, the node that asks. Required."),
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
    field("bytes", AMOUNT, "TCP, STP: amount of data to transfer."),
    field(
        "greedy",
        Shape::Any(&[Shape::Flag, Shape::Table(GREEDY)]),
        "TCP, STP: transfers as much as possible, instead of `bytes`.",
    ),
    field("paced", Shape::Table(PACED), "TCP, STP: the application writes at a given rate, instead of `bytes`."),
    field(
        "request_response",
        Shape::Table(REQUEST_RESPONSE),
        "TCP, STP: requests, each answered before the next one, instead of `bytes`.",
    ),
    field(
        "spoof",
        Shape::Table(SPOOF),
        "TCP: the connection ends at a gateway that acknowledges in the destination's name. Data continues without TCP, over a link with a layer. With `split`, the last leg ends there. Default: end to end.",
    ),
    field(
        "tcp",
        Shape::TcpSettings { head: true, base: false },
        "TCP: settings of this flow, up to its first split. They replace those of `[tcp]`.",
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
        "Instead of `rto`: interval at which the sender polls the receiver's state. The receiver answers only polls and gaps, as in the SSCOP-based protocol of the same name (Henderson and Katz).",
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

/// A flow whose application keeps to a rate.
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

/// A UDP flow that sends in turns.
pub(crate) const ON_OFF: &[Field] = &[
    field("on", DISTRIBUTION_SHAPE, "Length of a sending period. Required."),
    field("off", DISTRIBUTION_SHAPE, "Length of a pause. Required."),
];
