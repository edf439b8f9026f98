//! The keys of `[[layers]]`.

use bentpipe_engine::slacp::ChannelConfig;
use bentpipe_language::shape::{Counted, Field, Shape, field};

use super::links::QUEUE_LIMIT;

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
