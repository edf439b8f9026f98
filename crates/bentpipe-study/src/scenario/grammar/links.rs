//! The keys of `[[links]]`.

use bentpipe_engine::link::RateTrace;
use bentpipe_language::quantity::{CELLS, DECIBELS};
use bentpipe_language::shape::{Counted, Field, Shape, field};

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

pub(super) const QUEUE_LIMIT: Shape =
    Shape::Any(&[Shape::PACKETS, Shape::SIZE, Shape::DURATION, Shape::Choice(&["unlimited"])]);

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

pub(super) const NODE: Shape = Shape::Text;
