//! The keys of a sweep file, and their values.

use bentpipe_language::reference::{Table, tables};
use bentpipe_language::shape::{Counted, Field, Shape, field};
use bentpipe_language::{Schema, schema as schema_of};

use crate::candidate::GATEWAYS;

/// Max number of points, after which planning would take minutes.
pub(super) const MAX_POINTS: u64 = 100_000;
/// Max number of runs. A run takes about 300 bytes of memory while the sweep goes on.
pub(super) const MAX_RUNS: u64 = 1_000_000;
/// Max number of axes. The scenario is read with the value of each axis for each value that is tried, so the time grows with the square of
/// their number: thousands would take minutes.
pub(super) const MAX_AXES: usize = 64;
/// Max number of keys in `set`, which are all set each time, too.
pub(super) const MAX_SETTINGS: usize = 256;
/// Fewer values give no 95 % interval of a median: with 5 the probability that all are on one side of it is 2/32 = 6.25 %.
pub(super) const MIN_FOR_INTERVAL: u64 = 6;

/// A value of any key of a scenario.
const VALUE: Shape = Shape::Any(&[Shape::Text, Shape::Probability, COUNT, Shape::Flag]);
const COUNT: Shape = Shape::Count(Counted::new("", 0, u64::MAX));

pub(super) const DESIGNS: &[&str] = &["grid", "list", "latin-hypercube"];
pub(super) const SCALES: &[&str] = &["linear", "log"];

pub(super) const POINTS: Counted = Counted::new("points", 1, MAX_POINTS);
pub(super) const REPETITIONS: Counted = Counted::new("repetitions", 1, MAX_RUNS);
pub(super) const SEED: Counted = Counted::new("", 0, u64::MAX);
pub(super) const STEPS: Counted = Counted::new("values", 2, MAX_POINTS);
pub(super) const MIN: Counted = Counted::new("repetitions", MIN_FOR_INTERVAL, MAX_RUNS);

/// A sweep file.
pub(super) const SWEEP: &[Field] = &[
    field(
        "scenario",
        Shape::Text,
        "Scenario file, relative to this file, or the name of a shipped scenario. Required.",
    ),
    field(
        "set",
        Shape::Named(&VALUE),
        "Values of the scenario in all runs, by path as for `--set`: `\"links.sat.delay\" = \"40 ms\"`. At most 256. Default: none.",
    ),
    field(
        "variants",
        Shape::List(&Shape::Text),
        "Transports that are compared at each point, as in `bentpipe compare`: TCP variants, QUIC variants (`quic-cubic`), and the scenario's own. Default: the flows' own transports.",
    ),
    field(
        "gateways",
        Shape::List(&Shape::Choice(GATEWAYS)),
        "Gateways to place on the path at each point, as in `bentpipe recommend`: none, or one of that shape. Each variant is run with each gateway. Default: the scenario's path.",
    ),
    field(
        "baseline",
        Shape::Text,
        "The candidate with which the others are compared: a variant, a gateway, or with both lists \"VARIANT, GATEWAY\" (\"VARIANT\" if the gateway \
         is `none`). Default: the first.",
    ),
    field(
        "design",
        Shape::Choice(DESIGNS),
        "How axes form points. `grid`: all combinations of values. `list`: the n-th values of all axes together. `latin-hypercube`: `points` points, with one in each of `points` equal parts of every axis. Default: grid.",
    ),
    field("points", Shape::Count(POINTS), "latin-hypercube: number of points. Required there."),
    field("axes", Shape::List(&Shape::Table(AXIS)), "The keys that change, at most 64. Default: none, one point."),
    field(
        "repetitions",
        Shape::Count(REPETITIONS),
        "Runs of each candidate at each point; with `stop`, the maximum. Repetition n has the seed `seed` + n - 1 at all points. Default: 20.",
    ),
    field(
        "seed",
        Shape::Count(SEED),
        "Seed of the first repetition, and of the latin hypercube. Default: the scenario's.",
    ),
    field(
        "stop",
        Shape::Table(STOP),
        "Rule that ends the repetitions of a point. Default: each point gets all `repetitions`.",
    ),
    field(
        "output",
        Shape::Text,
        "Folder of the results, relative to this file. Default: the file's name with `.sweep`.",
    ),
];

/// One key that changes.
pub(super) const AXIS: &[Field] = &[
    field("key", Shape::Text, "Path of the key as for `--set`: \"links.sat.loss\". Required."),
    field("values", Shape::List(&VALUE), "Its values. Required without `from` and `to`."),
    field("from", VALUE, "First value of a range. Needs `to`."),
    field("to", VALUE, "Last value of a range, of the kind of `from`."),
    field(
        "count",
        Shape::Count(STEPS),
        "Values of the range, both ends included. Required in a grid or list; not allowed in a latin hypercube, which draws from the range. \
         In a grid, values that are equal after rounding, such as whole numbers, appear once.",
    ),
    field(
        "scale",
        Shape::Choice(SCALES),
        "Steps of the range: `linear`, equal differences; `log`, equal ratios, both ends above zero. Default: linear.",
    ),
];

/// When to stop.
pub(super) const STOP: &[Field] = &[
    field(
        "tolerance",
        Shape::Text,
        "A point is done once the half-width of the 95 % interval is at most this, for each candidate's median of paired differences to \
         the baseline; with a single candidate, for its median. A time (\"50 ms\"), a rate (\"100 kbit/s\"), or a share of the baseline's \
         median (\"2 %\"). Required.",
    ),
    field(
        "min",
        Shape::Count(MIN),
        "Repetitions before the first check; further checks each time their number has grown by half. Default: 10.",
    ),
];

/// The tables of a sweep file with their keys.
pub fn reference() -> Vec<Table> {
    tables("Top level", SWEEP, &[])
}

/// A JSON schema (draft 2020-12) of sweep files.
pub fn schema() -> Schema {
    schema_of("bentpipe sweep", SWEEP, &["scenario"])
}
