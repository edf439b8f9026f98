//! The keys of what changes with time on a link: `schedule`, traces, `phases`, `jitter` and `reorder`.

use bentpipe_language::shape::{Field, Shape, field};

use super::common::{DISTRIBUTION_SHAPE, QUEUE_LIMIT};

/// A change of a link.
pub(crate) const SCHEDULE: &[Field] = &[
    field("at", Shape::DURATION, "When the change begins, after the start of the run or of the period. Required."),
    field(
        "over",
        Shape::DURATION,
        "Time in which `rate`, `delay` and `loss` change linearly to their new values. Default: 0 s, a step.",
    ),
    field("rate", Shape::RATE, "New line rate; \"0 bit/s\" stops the line. A packet may be sent at several rates."),
    field("delay", Shape::DURATION, "New propagation delay, for packets that leave the line from then on."),
    field("loss", Shape::Probability, "New probability of loss, for packets that arrive from then on."),
    field("queue", QUEUE_LIMIT, "New maximum queue. Packets that wait stay. A time counts with the link's `rate`."),
];

/// The keys of a recorded series: what is said of its file and of its values differs.
const fn series(file: &'static str, values: Shape, of_values: &'static str) -> [Field; 5] {
    [
        field("file", Shape::Text, file),
        field(
            "interval",
            Shape::DURATION,
            "Time between the values of `file` or `text`, which then contains only values, separated by spaces or line ends.",
        ),
        field("text", Shape::Text, "Instead of `file`: the content of the file."),
        field("values", values, of_values),
        field(
            "period",
            Shape::DURATION,
            "After this time the trace starts again. Default: the last value lasts as long as the previous one.",
        ),
    ]
}

/// Recorded delays.
pub(crate) const DELAY_TRACE: &[Field] = &series(
    "A CSV file; with `interval`, a file with one value per line, in milliseconds.",
    Shape::List(&Shape::Pair(&Shape::DURATION)),
    "Instead of `file`: time and delay of each change.",
);

/// Recorded rates.
pub(crate) const RATE_SERIES: &[Field] = &series(
    "A CSV file with the columns `time_s` and `rate_mbps`; with `interval`, one rate per line, in Mbit/s.",
    Shape::List(&TIMED_RATE),
    "Instead of `file`: time and rate of each change.",
);

/// A time and a rate.
pub(crate) const TIMED_RATE: Shape = Shape::Pair(&TIME_OR_RATE);
const TIME_OR_RATE: Shape = Shape::Any(&[Shape::DURATION, Shape::RATE]);

/// Recorded losses.
pub(crate) const LOSS_TRACE: &[Field] = &series(
    "A CSV file; with `interval`, a file with one probability per line.",
    Shape::List(&TIMED_LOSS),
    "Instead of `file`: time and probability of each change.",
);

/// A time and a probability.
pub(crate) const TIMED_LOSS: Shape = Shape::Pair(&TIME_OR_LOSS);
const TIME_OR_LOSS: Shape = Shape::Any(&[Shape::DURATION, Shape::Probability]);

/// Phases.
pub(crate) const PHASES: &[Field] = &[
    field("length", Shape::DURATION, "Length of a phase, such as \"15 s\". Required."),
    field("first", Shape::DURATION, "Time of the first change; at most `length`. Default: `length`."),
    field("outage", Shape::DURATION, "Time for which the line stops at each change. Default: none."),
    field(
        "loss",
        Shape::Probability,
        "Probability that a packet that would arrive in an outage is lost. Default: 0; packets only wait.",
    ),
    field("rate", Shape::Pair(&Shape::RATE), "The rate of each phase, uniform between these. Default: the link's."),
    field(
        "delay",
        Shape::Pair(&Shape::DURATION),
        "The delay of each phase, uniform between these. Default: the link's.",
    ),
];

/// Jitter.
pub(crate) const JITTER: &[Field] = &[
    field("delay", DISTRIBUTION_SHAPE, "The added delay. Required."),
    field(
        "every",
        Shape::DURATION,
        "Length of a time slot, at least 1 us. A new delay is drawn in each slot, independent of the traffic. Default: 1 ms.",
    ),
    field(
        "correlation",
        Shape::Probability,
        "Correlation of neighbouring slots, less than 1. It is the correlation of normal values, which are then mapped to the distribution by rank. Default: 0.",
    ),
    field("reorder", Shape::Flag, "True: packets may overtake each other. Default: false."),
];

/// Late packets.
pub(crate) const REORDER: &[Field] = &[
    field("probability", Shape::Probability, "Probability that a packet is late. Required."),
    field("delay", Shape::DURATION, "Extra delay of a late packet. Required."),
];
