//! The keys of `[[links]]`.

use bentpipe_engine::link::RateTrace;
use bentpipe_language::quantity::{CELLS, DECIBELS};
use bentpipe_language::shape::{Counted, Field, Shape, field};

use super::common::{DISTRIBUTION_SHAPE, NODE, QUEUE_LIMIT};
use super::moves::{DELAY_TRACE, JITTER, LOSS_TRACE, PHASES, RATE_SERIES, REORDER, SCHEDULE};

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

/// The keys of a link besides the settings of its directions.
const OF_BOTH_DIRECTIONS: &[Field] = &[
    field("name", Shape::Text, "Name of the link in overrides, routes and results. Required."),
    field("between", Shape::Pair(&NODE), "The two nodes of a duplex link. Forward is from the first to the second."),
    field("from", NODE, "First node of a one-way link; used with `to` instead of `between`."),
    field("to", NODE, "Second node of a one-way link."),
    field("forward", Shape::Table(DIRECTION), "Settings of the forward direction; they replace the link's."),
    field("backward", Shape::Table(DIRECTION), "Settings of the backward direction; they replace the link's."),
];

/// Framings.
pub(crate) const FRAMINGS: &[&str] = &["packets", "aal5"];

/// Owners of a cell buffer.
pub(crate) const SHARINGS: &[&str] = &["per-vc", "shared"];

/// Sizes of a cell buffer.
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

/// The settings of one direction of a link.
pub(crate) const DIRECTION: &[Field] = &[
    field(
        "rate",
        Shape::Any(&[Shape::RATE, Shape::Choice(&["unlimited"])]),
        "Line rate. Required, unless `rate_trace` is given.",
    ),
    field(
        "rate_trace",
        RATE_TRACE,
        "Instead of `rate`: a packet-delivery trace in mahimahi's format. Either a file, relative to the scenario, or a list. Each line is a time in milliseconds at which 1500 B can leave. The trace repeats after its last line. A table gives rates over time instead: a line of constant rate between two times.",
    ),
    field(
        "tdma",
        Shape::Table(TDMA),
        "The line sends in the bursts of a repeating frame (TDMA, SS-TDMA), at `rate` within a burst. A node has one beam each way: no two links from the same node, or to the same node, may send at once.",
    ),
    field("delay", Shape::DURATION, "Propagation delay, one way. Required."),
    field(
        "schedule",
        Shape::List(&Shape::Table(SCHEDULE)),
        "Changes of `rate`, `delay`, `loss` and `queue` at known times, in order. Before the first change the link has its own values. Packets stay in order, and none is dropped by a change.",
    ),
    field(
        "schedule_period",
        Shape::DURATION,
        "After this time the schedule starts again, with the link's own values; at least 1 ms. Default: it does not repeat.",
    ),
    field(
        "delay_trace",
        Shape::Any(&[Shape::Text, Shape::Table(DELAY_TRACE)]),
        "Recorded delays; they replace `delay`, which still chooses paths. A CSV file, relative to the scenario, with the columns `time_s` and `delay_ms`: each delay holds until the next time, and the first one also before its time. The trace repeats; its last value lasts as long as the previous one.",
    ),
    field(
        "loss_trace",
        Shape::Any(&[Shape::Text, Shape::Table(LOSS_TRACE)]),
        "Recorded loss probabilities, in the format of `delay_trace` with the columns `time_s` and `loss`. They replace `loss`.",
    ),
    field(
        "phases",
        Shape::Table(PHASES),
        "Phases of equal length, each with its own rate and delay and preceded by an outage, as in a network that reassigns its satellites at fixed times.",
    ),
    field("jitter", Shape::Table(JITTER), "Random delay that varies over time, added to the propagation delay."),
    field("reorder", Shape::Table(REORDER), "Packets that arrive late, so that later ones overtake them."),
    field("duplicate", Shape::Probability, "Probability that a packet arrives twice. Default: 0."),
    field(
        "corrupt",
        Shape::Probability,
        "Probability that a bit of a packet is flipped. The packet still arrives, and its destination drops it because of the checksum. In real time a real bit is flipped. Default: 0.",
    ),
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
    field(
        "throughput_advice",
        Shape::RATE,
        "Rate that the network element before the link writes into SCONE packets (draft-ietf-scone-protocol) if they carry none or a higher one. Flows with `quic.scone` send such packets. Default: it writes nothing.",
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
pub(crate) const MILLIS: Counted = Counted::new("", 0, RateTrace::MAX_MILLIS);

pub(crate) const RATE_TRACE: Shape =
    Shape::Any(&[Shape::Text, Shape::List(&Shape::Count(MILLIS)), Shape::Table(RATE_SERIES)]);

/// The disciplines of a queue.
pub(crate) const DISCIPLINES: &[&str] = &["drop-tail", "red", "codel", "fq-codel", "dualpi2"];

/// The coupling of DualPI2.
pub(crate) const COUPLING: Counted = Counted::new("", 1, 16);

/// Orders of a simultaneous arrival and departure.
pub(crate) const TIES: &[&str] = &["departure", "begun"];

/// A queue.
pub(crate) const QUEUE: &[Field] = &[
    field("limit", QUEUE_LIMIT, "Maximum queue, not counting the packet in transmission. Required."),
    field(
        "discipline",
        Shape::Choice(DISCIPLINES),
        "Queue discipline: \"drop-tail\", \"red\" (Floyd and Jacobson 1993), \"codel\" (RFC 8289), \"fq-codel\" (RFC 8290, a queue for each flow), or \"dualpi2\" (RFC 9332, one queue for L4S and one for all other packets; marks packets that understand ECN). Default: \"drop-tail\".",
    ),
    field(
        "target",
        Shape::DURATION,
        "CoDel, FQ-CoDel: acceptable wait in a standing queue. Default: 5 ms. DualPI2: target delay of the classic queue, at most `max_rtt`. Default: 15 ms.",
    ),
    field(
        "interval",
        Shape::DURATION,
        "CoDel, FQ-CoDel: time in which senders react, a round trip or more; at least `target`. Default: 100 ms.",
    ),
    field(
        "max_rtt",
        Shape::DURATION,
        "DualPI2: maximum expected round trip, at least 1 ms. The controller's gains follow from it: 0.1 / `max_rtt`² and 0.3 / `max_rtt` (RFC 9332 §A.1). Default: 100 ms.",
    ),
    field(
        "coupling",
        Shape::Count(COUPLING),
        "DualPI2: coupling factor k. The marking probability of L4S packets is k times the square root of the classic probability. Default: 2.",
    ),
    field(
        "l4s_threshold",
        Shape::DURATION,
        "DualPI2: wait above which the L4S queue marks its packets. Default: 800 us.",
    ),
    field(
        "l4s_range",
        Shape::DURATION,
        "DualPI2: the L4S queue's own marking probability rises from 0 to 1 over this range of waits above `l4s_threshold`; 0 makes it a step. Default: 400 us.",
    ),
    field(
        "classic_share",
        Shape::Probability,
        "DualPI2: guaranteed share of the line for waiting classic packets, below 100 %. Default: 10 % (Linux).",
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
    field(
        "marking",
        Shape::Flag,
        "RED, CoDel, FQ-CoDel: mark packets that understand ECN (RFC 3168) instead of dropping them early. Packets are still dropped if there is no room. Default: false.",
    ),
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

/// Bit errors from a link budget.
pub(crate) const BIT_ERRORS: &[Field] = &[
    field("nominal", Shape::Probability, "Bit error rate that the link is designed for, with uncoded QPSK. Required."),
    field(
        "implementation_loss",
        Shape::Quantity(DECIBELS),
        "Implementation loss of the receiver. The bit error rate follows from the uncoded QPSK curve at an Eb/N0 reduced by this value. Required.",
    ),
];

/// Gilbert-Elliott.
pub(crate) const GILBERT_ELLIOTT: &[Field] = &[
    field("good", Shape::DURATION, "Mean length of the good state. Required."),
    field("bad", Shape::DURATION, "Mean length of the bad state. Required."),
    field("loss_good", Shape::Probability, "Probability that a packet is lost in the good state. Default: 0."),
    field("loss_bad", Shape::Probability, "Probability that a packet is lost in the bad state. Required."),
];

/// Losses by packet number.
pub(crate) const PACKET_BURSTS: &[Field] = &[
    field("start", Shape::Probability, "Probability that a packet is lost if the previous one was not. Required."),
    field(
        "burstiness",
        Shape::Probability,
        "Probability that a packet is lost if the previous one was; at least `start`.",
    ),
    field("max", Shape::Probability, "Maximum value of `burstiness`. Default: 100 %.").renamed_from("most"),
    field("length", Shape::PACKETS, "Instead of `burstiness`: each loss takes exactly this many packets in a row."),
];
