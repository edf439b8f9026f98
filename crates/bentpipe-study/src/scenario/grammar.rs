//! The keys of the language.

use bentpipe_engine::link::RateTrace;
use bentpipe_engine::slacp::ChannelConfig;

use bentpipe_language::overrides::Rules;
use bentpipe_language::quantity::{CELLS, DECIBELS};
use bentpipe_language::shape::{Counted, Field, Shape, field};
use bentpipe_language::tcp::VARIANT;

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
    field("name", Shape::Text, "Name of the link, for overrides, routes and results."),
    field("between", Shape::Pair(&NODE), "The two nodes of a duplex link; forward is from the first to the second."),
    field("from", NODE, "Where a link in one direction leaves."),
    field("to", NODE, "Where a link in one direction leads."),
    field("forward", Shape::Table(DIRECTION), "What the forward direction has otherwise."),
    field("backward", Shape::Table(DIRECTION), "What the backward direction has otherwise."),
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
        "Rate of the lines over which cells come to the port, one per virtual channel, that is per pair of hosts; \
         unlimited, all cells of a packet at once, if not given.",
    ),
    field("buffer", CELL_BUFFER, "Cells that may wait, the one in transmission not counted; unlimited if not given."),
    field("sharing", Shape::Choice(SHARINGS), "A buffer for each virtual channel, or one for all; \"per-vc\"."),
    field(
        "early_packet_discard",
        Shape::Any(&[Shape::Probability, Shape::Choice(&["off"])]),
        "Fill of the buffer beyond which packets are refused at their first cell; \"off\" if not given.",
    ),
    field(
        "partial_packet_discard",
        Shape::Flag,
        "Of a packet that has lost a cell in the buffer only the last cell is let in; false if not given.",
    ),
];

/// What one direction of a link is made of.
pub(crate) const DIRECTION: &[Field] = &[
    field("rate", Shape::Any(&[Shape::RATE, Shape::Choice(&["unlimited"])]), "Line rate."),
    field(
        "rate_trace",
        RATE_TRACE,
        "Instead of `rate`: a packet-delivery trace of mahimahi, a file beside the scenario whose lines are the milliseconds \
         at which 1500 B pass, or these in a list. It repeats after its last line.",
    ),
    field(
        "tdma",
        Shape::Table(TDMA),
        "The line sends in bursts of a frame that repeats (TDMA, SS-TDMA); `rate` is that of a burst. Of the links that leave a \
         node, or lead to one, no two send at once: the node has one beam each way.",
    ),
    field("delay", Shape::DURATION, "Propagation delay, one way."),
    field(
        "queue",
        Shape::Any(&[QUEUE_LIMIT, Shape::Table(QUEUE)]),
        "What may wait before the line, the packet in transmission not counted: packets, bytes, or the time that the \
         line takes to send them. Unlimited if not given.",
    ),
    field("loss", Shape::Probability, "Probability that a packet is lost, each for itself."),
    field(
        "bit_error_rate",
        Shape::Any(&[Shape::Probability, Shape::Table(BIT_ERRORS)]),
        "Probability that a bit is wrong; a packet with a wrong bit is lost. Or a nominal one, and by how many decibels \
         the receiver falls short of it.",
    ),
    field(
        "header",
        Shape::SIZE,
        "What the link's own header adds to each packet on the line, such as \"8 B\" of a MAC layer; 0 B if not given.",
    ),
    field(
        "mtu",
        Shape::SIZE,
        "Longest packet, its IP header included and `header` not, such as \"1500 B\". Longer packets are dropped without \
         notice, as on a path where ICMP is filtered. Unlimited if not given.",
    ),
    field("bursts", Shape::Table(BURSTS), "Times at which the channel is bad."),
    field("gilbert_elliott", Shape::Table(GILBERT_ELLIOTT), "A channel with two states of exponential lengths."),
    field(
        "packet_bursts",
        Shape::Table(PACKET_BURSTS),
        "Losses by the order of packets instead of by time: a packet is lost because the one before it was.",
    ),
    field(
        "ties",
        Shape::Choice(TIES),
        "What comes first of an arrival and a departure of one instant: \"departure\", or \"begun\", what was begun first, as in \
         ns-2; \"departure\" if not given.",
    ),
    field(
        "drop_list",
        Shape::List(&Shape::Count(Counted::new("", 0, u64::MAX))),
        "Packets lost before the queue: indices from 0 in order of arrival, ascending.",
    ),
    field(
        "framing",
        Shape::Choice(FRAMINGS),
        "In what packets travel: \"packets\", or \"aal5\", cells of 53 B with AAL5 and LLC/SNAP; \"packets\" if not given.",
    ),
    field("atm", Shape::Table(ATM), "AAL5: how virtual channels share the link cell by cell."),
];

/// When a line may send.
pub(crate) const TDMA: &[Field] = &[
    field("frame", Shape::DURATION, "Length of the frame; frames follow one another from the start of the run."),
    field(
        "bursts",
        Shape::List(&Shape::Pair(&Shape::DURATION)),
        "Start in the frame and length of each burst, in order.",
    ),
];

/// Instants of a trace, in milliseconds.
pub(crate) const MILLIS: Counted = Counted::new("", 0, RateTrace::MAX_MILLIS);
pub(crate) const RATE_TRACE: Shape = Shape::Any(&[Shape::Text, Shape::List(&Shape::Count(MILLIS))]);

const QUEUE_LIMIT: Shape = Shape::Any(&[Shape::PACKETS, Shape::SIZE, Shape::DURATION, Shape::Choice(&["unlimited"])]);

/// The disciplines of a queue.
pub(crate) const DISCIPLINES: &[&str] = &["drop-tail", "red"];

/// Orders of an arrival and a departure of one instant.
pub(crate) const TIES: &[&str] = &["departure", "begun"];

/// A queue.
pub(crate) const QUEUE: &[Field] = &[
    field("limit", QUEUE_LIMIT, "What may wait."),
    field("discipline", Shape::Choice(DISCIPLINES), "Which packets are admitted; \"drop-tail\" if not given."),
    field("min_threshold", Shape::PACKETS, "RED: average below which nothing is dropped; 5 packets if not given."),
    field(
        "max_threshold",
        Shape::PACKETS,
        "RED: average at which max_probability is reached; three times min_threshold.",
    ),
    field("max_probability", Shape::Probability, "RED: drop probability at max_threshold; 10 % if not given."),
    field(
        "weight",
        Shape::Any(&[Shape::Weight, Shape::Choice(&["auto"])]),
        "RED: weight of a sample in the average. \"auto\", the default, is 1-exp(-1/C) for C mean packets per second.",
    ),
    field("gentle", Shape::Flag, "RED: probability rises to 1 at twice max_threshold instead of jumping; true."),
    field("wait", Shape::Flag, "RED: at least 1/p packets between two drops; true."),
    field("mean_packet", Shape::SIZE, "RED: length by which idle time is counted; 500 B if not given."),
];

/// Bursts.
pub(crate) const BURSTS: &[Field] = &[
    field("gap", DISTRIBUTION_SHAPE, "Time from the end of a burst, or the start, to the next burst."),
    field("length", DISTRIBUTION_SHAPE, "Length of a burst."),
    field(
        "schedule",
        Shape::List(&Shape::Pair(&Shape::DURATION)),
        "Bursts at known times instead: start and length, in order of time.",
    ),
    field("file", Shape::Text, "Bursts from a CSV file beside the scenario instead: columns start_s and length_s."),
    field("loss", Shape::Probability, "Probability that a packet is lost in a burst; 100 % if not given."),
    field("bit_error_rate", Shape::Probability, "Bit error rate in a burst; the link's if not given."),
    field("extra_delay", Shape::DURATION, "Delay added to packets that start transmission in a burst; order is kept."),
];

/// Bit errors by a budget of decibels.
pub(crate) const BIT_ERRORS: &[Field] = &[
    field("nominal", Shape::Probability, "Bit error rate that the link is built for, of QPSK without coding."),
    field(
        "implementation_loss",
        Shape::Quantity(DECIBELS),
        "How much of its Eb/N0 the receiver loses: the rate is that of the QPSK curve so much to the left.",
    ),
];

/// Gilbert-Elliott.
pub(crate) const GILBERT_ELLIOTT: &[Field] = &[
    field("good", Shape::DURATION, "Mean length of the good state."),
    field("bad", Shape::DURATION, "Mean length of the bad state."),
    field("loss_good", Shape::Probability, "Probability that a packet is lost in the good state; 0 if not given."),
    field("loss_bad", Shape::Probability, "Probability that a packet is lost in the bad state."),
];

/// Losses that follow the packets.
pub(crate) const PACKET_BURSTS: &[Field] = &[
    field("start", Shape::Probability, "Probability that a packet is lost after one that was not."),
    field("burstiness", Shape::Probability, "Probability that a packet is lost after a lost one; not below `start`."),
    field("max", Shape::Probability, "Maximum value of `burstiness`; 100 % if not given.").renamed_from("most"),
    field("length", Shape::PACKETS, "Or: each loss is a run of exactly so many packets."),
];

/// A distribution: a span, or one of these with its parameters.
pub(crate) const DISTRIBUTION_SHAPE: Shape = Shape::Any(&[Shape::DURATION, Shape::Table(DISTRIBUTION)]);

/// A distribution of spans.
pub(crate) const DISTRIBUTION: &[Field] = &[
    field("fixed", Shape::DURATION, "Always the same."),
    field("uniform", Shape::Pair(&Shape::DURATION), "Every span between these alike."),
    field("exponential", Shape::DURATION, "Exponential with this mean."),
    field("clip", Shape::Pair(&Shape::DURATION), "Exponential values beyond these are set to them."),
    field("truncate", Shape::Pair(&Shape::DURATION), "Exponential values beyond these are drawn again."),
];

/// A link layer: S-LACP, or `hybrid`'s plain ARQ as a case of it.
pub(crate) const LAYER: &[Field] = &[
    field("name", Shape::Text, "Name of the layer, for overrides and results."),
    field(
        "over",
        Shape::Any(&[Shape::Text, Shape::Pair(&Shape::Text)]),
        "The duplex link below, or two links that lead to and fro. Its packets wait in the layer, not in the link: \
         what the link's `queue` allows is the room of each channel, and `mtu` the longest packet that the layer takes.",
    ),
    field(
        "report_interval",
        Shape::DURATION,
        "Arrivals are reported at most this long after them; 0 s reports each. 20 ms if not given.",
    ),
    field(
        "reordering",
        Shape::Count(Counted::new("frames", 0, 1000)),
        "So many later frames may overtake one before it counts as lost; 0 if not given.",
    ),
    field(
        "release",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["auto", "unlimited", "grouped"])]),
        "How packets are passed on that waited for a repair: at a rate, or \"unlimited\". \"auto\", the default, is 1.2 times \
         the link's rate. \"grouped\" is unlimited, except that the packets of an outage pass in at most eight groups per \
         round trip.",
    )
    .renamed_from("release_rate"),
    field(
        "window",
        Shape::Count(Counted::new("frames", 1, 65_535)),
        "Most frames of a channel between transmission and acknowledgement; 65535 if not given.",
    ),
    field("weightless", Shape::Flag, "Headers and reports take no time on the line (the hybrid paper); false."),
    field("hears_damage", Shape::Flag, "The receiver can tell which frame came damaged (the hybrid paper); false."),
    field(
        "channels",
        Shape::List(&Shape::Table(CHANNEL)),
        "Logical channels; a packet takes the first that matches, else the last. If not given: `urgent` for expedited \
         forwarding (FEC, no order, first), `acks` for bare acknowledgements (sent once), and `bulk` for all else (ARQ, \
         copies into an idle line, FEC and CoDel, order per flow).",
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
    field("name", Shape::Text, "Name of the channel."),
    field("match", Shape::List(&Shape::Table(MATCH)), "Packets that belong to it: any of these."),
    field(
        "transmissions",
        Shape::Any(&[
            Shape::Count(Counted::new("transmissions", 1, u32::MAX as u64)),
            Shape::Choice(&["off", "unlimited"]),
        ]),
        "ARQ: how often a frame is sent at most, the first time included; \"off\" sends it once and keeps nothing. 8 if \
         not given.",
    ),
    field(
        "copies",
        Shape::Any(&[Shape::Choice(&["off", "auto"]), Shape::Table(COPIES)]),
        "Packets without an answer go out again into an idle line. \"auto\": each quarter of the link's round trip, three \
         times at most. Off if not given.",
    ),
    field("fec", Shape::Any(&[Shape::Choice(OFF), Shape::Table(CHANNEL_FEC)]), "Erasure code; off if not given."),
    field("order", Shape::Choice(ORDERS), "What is kept in order at the receiver; \"flow\" if not given."),
    field("priority", Shape::Count(Counted::new("", 0, 255)), "Lower goes first, always; 0 if not given."),
    field("weight", Shape::Count(Counted::new("", 1, 1000)), "Share among channels of one priority; 1 if not given."),
    field("queue", QUEUE_LIMIT, "What may wait for its first transmission; the link's `queue` if not given."),
    field(
        "ack_filter",
        Shape::Flag,
        "A bare acknowledgement takes the place of one of its flow that waits and acknowledges less (RFC 3449); false.",
    ),
    field("counts_copies", Shape::Flag, "Frames not acknowledged yet take room in the queue as well; false."),
    field(
        "queueing",
        Shape::Choice(QUEUEINGS),
        "How flows wait: \"fifo\" if not given; \"fair\" lets them take turns (deficit round robin), and where \
         there is no room, the flow that takes up most of it loses its newest packet.",
    ),
    field(
        "segments",
        Shape::Count(SEGMENT_COUNT),
        "Frames that a packet is cut into, each lost and repeated by itself; in a weightless layer only (the hybrid \
         paper). 1 if not given.",
    ),
    field(
        "codel",
        Shape::Any(&[Shape::Choice(&["off", "auto"]), Shape::Table(CODEL)]),
        "Active queue management (RFC 8289). \"auto\": a target of one round trip of the link, an interval of two. Off \
         if not given.",
    ),
];

/// Transmissions into an idle line.
pub(crate) const COPIES: &[Field] = &[
    field("interval", Shape::DURATION, "From one transmission of a packet to the next, at least."),
    field("max", Shape::Count(Counted::new("copies", 1, 255)), "Maximum copies of a packet.").renamed_from("most"),
];

/// What a packet must be like.
pub(crate) const MATCH: &[Field] = &[
    field("dscp", Shape::Count(Counted::new("", 0, 63)), "Its code point (RFC 2474): 46 is expedited forwarding."),
    field("protocol", Shape::Choice(&["tcp", "udp"]), "Its transport."),
    field("port", Shape::Count(Counted::new("", 0, 65_535)), "A port, at either end."),
    field("bare_ack", Shape::Flag, "Whether it is an acknowledgement of TCP without data."),
    field("up_to", Shape::SIZE, "Its length, at most."),
];

/// The erasure code of a channel.
pub(crate) const CHANNEL_FEC: &[Field] = &[
    field(
        "block",
        Shape::Count(Counted::new("packets", 1, 128)),
        "Packets protected together, at most; 60 if not given.",
    ),
    field("interval", Shape::DURATION, "A block ends this long after its first packet; 100 ms if not given."),
    field("max_overhead", Shape::Probability, "Maximum repair frames per packet; 50 % if not given.")
        .renamed_from("most_overhead"),
    field(
        "repairs",
        Shape::Choice(REPAIRS),
        "\"prompt\": as soon as their block is complete; \"spare\": only when data leaves the line idle; \"idle\": the same, \
         until a loss is known, which is then sent again; \"short\": prompt while the queue takes less than a quarter of \
         a round trip, else idle. Prompt if not given.",
    ),
];

/// When repair frames may take the line.
pub(crate) const REPAIRS: &[&str] = &["prompt", "spare", "idle", "short"];

/// CoDel.
pub(crate) const CODEL: &[Field] = &[
    field("target", Shape::DURATION, "The standing wait that is accepted."),
    field("interval", Shape::DURATION, "Time in which senders react: a round trip of the path, or more."),
];

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
