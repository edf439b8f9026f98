//! Values that several tables have.

use bentpipe_language::shape::{Field, Shape, field};

/// A node, by its name.
pub(super) const NODE: Shape = Shape::Text;

/// The limit of a queue.
pub(super) const QUEUE_LIMIT: Shape =
    Shape::Any(&[Shape::PACKETS, Shape::SIZE, Shape::DURATION, Shape::Choice(&["unlimited"])]);

/// A distribution: a duration, or one of these with its parameters.
pub(crate) const DISTRIBUTION_SHAPE: Shape = Shape::Any(&[Shape::DURATION, Shape::Table(DISTRIBUTION)]);

/// A distribution of durations.
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
    field(
        "normal",
        Shape::Pair(&Shape::DURATION),
        "Normally distributed with this mean and standard deviation; negative values become 0.",
    ),
    field(
        "pareto",
        Shape::Pair(&Shape::DURATION),
        "Pareto distributed with this minimum and mean: most values are below the mean, a few far above it.",
    ),
];
