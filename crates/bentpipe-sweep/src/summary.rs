//! A summary of a sweep: medians of each candidate at each point, and of its differences to the baseline.

use bentpipe_sim::record::Measure;
use serde::Serialize;

use crate::plan::Plan;
use crate::ranks::{Median, Ranks};
use crate::spec::number;
use crate::store::Store;

/// A candidate at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateSummary {
    /// Its name.
    pub name: String,
    /// Runs in which all transfers finished.
    pub finished: usize,
    /// Runs with an unfinished transfer, which rank last.
    pub unfinished: usize,
    /// The median; `None` if it falls on an unfinished run.
    pub value: Option<Median>,
    /// Median ratio to the physical limit; `None` likewise.
    pub x_limit: Option<f64>,
    /// The candidate minus the baseline, pair by pair; `None` for the baseline, or if too few runs finished.
    pub difference: Option<Median>,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// Keys and values of its axes.
    pub axes: Vec<(String, String)>,
    /// Its repetitions; `None` if it is not done, and the statistics are then those of the runs so far.
    pub repetitions: Option<u32>,
    /// Its candidates, in order.
    pub candidates: Vec<CandidateSummary>,
}

/// All points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The compared quantity.
    pub measure: Measure,
    /// The candidate with which the others are compared.
    pub baseline: String,
    /// The points, in order.
    pub points: Vec<PointSummary>,
}

impl Summary {
    /// The results of the plan's points so far. Points that have not been planned yet have no candidates.
    pub fn new(plan: &Plan, store: &Store, measure: Measure) -> Summary {
        let spec = plan.spec();
        let point = |n: usize| PointSummary {
            axes: spec.axes.iter().map(|axis| axis.key.clone()).zip(plan.values(n).iter().cloned()).collect(),
            repetitions: plan.repetitions(n),
            candidates: candidates(plan, store, n),
        };
        Summary {
            measure,
            baseline: spec.candidates[spec.baseline].name.clone(),
            points: (0..plan.points()).map(point).collect(),
        }
    }
}

/// The value of a run and its ratio to the limit, both `None` if a transfer did not finish.
type Known = (Option<f64>, Option<f64>);

fn candidates(plan: &Plan, store: &Store, point: usize) -> Vec<CandidateSummary> {
    let spec = plan.spec();
    let repetitions = plan.repetitions(point).unwrap_or(spec.repetitions);
    let column = |candidate: usize| -> Vec<Option<Known>> {
        let row = |repetition| store.get(&plan.key(point, candidate, repetition)?);
        (0..repetitions).map(|repetition| row(repetition).map(|row| (row.value, row.x_limit))).collect()
    };
    let columns: Vec<Vec<Option<Known>>> = (0..spec.candidates.len()).map(column).collect();
    if columns.iter().flatten().all(Option::is_none) {
        return Vec::new();
    }
    let base = &columns[spec.baseline];
    let summary = |(index, column): (usize, &Vec<Option<Known>>)| {
        let (values, x_limits): (Vec<_>, Vec<_>) = column.iter().flatten().copied().unzip();
        let pairs = base.iter().zip(column).filter_map(|(base, own)| Some(((*base)?.0, (*own)?.0)));
        let (bases, own): (Vec<_>, Vec<_>) = pairs.unzip();
        let finished = values.iter().flatten().count();
        CandidateSummary {
            name: spec.candidates[index].name.clone(),
            finished,
            unfinished: values.len() - finished,
            value: Ranks::of(&values).median(),
            x_limit: Ranks::of(&x_limits).median().map(|median| median.median),
            difference: (index != spec.baseline).then(|| Ranks::of_differences(&bases, &own).median()).flatten(),
        }
    };
    columns.iter().enumerate().map(summary).collect()
}

/// The unit of an axis if all its values are numbers with one unit, and the values in it.
pub(crate) fn numeric<'a>(values: impl Iterator<Item = &'a str>) -> Option<(&'static str, Vec<f64>)> {
    let read: Option<Vec<_>> = values.map(number).collect();
    let read = read?;
    let unit = read.first()?.1;
    read.iter().all(|(_, other)| *other == unit).then(|| (unit, read.into_iter().map(|(number, _)| number).collect()))
}
