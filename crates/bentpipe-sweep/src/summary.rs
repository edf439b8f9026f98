//! The results of a sweep in short: medians of each candidate at each point, and of its differences to the baseline.

use bentpipe_sim::record::Measure;
use bentpipe_study::stats::Sample;
use serde::Serialize;

use crate::plan::Plan;
use crate::spec::number;
use crate::stop::{differences, interval};
use crate::store::Store;

/// A median with its 95 % interval, of order statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// The median.
    pub median: f64,
    /// Lower end; `None` if there are too few values to bound it (fewer than six).
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A candidate at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateSummary {
    /// Its name.
    pub name: String,
    /// Runs in which all transfers finished, on which the statistics are based.
    pub finished: usize,
    /// Runs with an unfinished transfer.
    pub unfinished: usize,
    /// What is compared; `None` if no run finished.
    pub value: Option<Median>,
    /// Median ratio to the physical limit.
    pub x_limit: Option<f64>,
    /// The candidate less the baseline, pair by pair, over the pairs that both finished; `None` for the baseline.
    pub difference: Option<Median>,
    /// True if all its runs gave the same number, though there were several.
    pub constant: bool,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// Keys and values of its axes.
    pub axes: Vec<(String, String)>,
    /// Repetitions that it got; `None` if it is not done, and then the statistics are of what is there.
    pub repetitions: Option<u32>,
    /// Its candidates, in order.
    pub candidates: Vec<CandidateSummary>,
}

/// All points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What is compared.
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

/// What is known of a run: nothing, or its value and its ratio to the limit.
type Known = Option<(Option<f64>, Option<f64>)>;

fn candidates(plan: &Plan, store: &Store, point: usize) -> Vec<CandidateSummary> {
    let spec = plan.spec();
    let repetitions = plan.repetitions(point).unwrap_or(spec.repetitions);
    let column = |candidate: usize| -> Vec<Known> {
        let row = |repetition| store.get(&plan.key(point, candidate, repetition)?);
        (0..repetitions).map(|repetition| row(repetition).map(|row| (row.value, row.x_limit))).collect()
    };
    let columns: Vec<Vec<Known>> = (0..spec.candidates.len()).map(column).collect();
    if columns.iter().flatten().all(Option::is_none) {
        return Vec::new();
    }
    let values =
        |column: &[Known]| -> Vec<Option<f64>> { column.iter().map(|known| known.and_then(|k| k.0)).collect() };
    let base = values(&columns[spec.baseline]);
    let summary = |(index, column): (usize, &Vec<Known>)| {
        let known: Vec<_> = column.iter().flatten().collect();
        let own = values(column);
        let finished: Vec<f64> = own.iter().copied().flatten().collect();
        let x_limits = Sample::new(known.iter().filter_map(|(_, x_limit)| *x_limit).collect());
        CandidateSummary {
            name: spec.candidates[index].name.clone(),
            finished: finished.len(),
            unfinished: known.len() - finished.len(),
            x_limit: x_limits.ok().map(|sample| sample.median()),
            difference: (index != spec.baseline).then(|| median(differences(&base, &own))).flatten(),
            constant: finished.len() > 1 && finished.windows(2).all(|pair| pair[0] == pair[1]),
            value: median(finished),
        }
    };
    columns.iter().enumerate().map(summary).collect()
}

/// The median of these values and its interval; `None` without values.
pub(crate) fn median(values: Vec<f64>) -> Option<Median> {
    let (median, interval) = interval(values)?;
    let end = |end: f64| end.is_finite().then_some(end);
    Some(Median { median, low: end(interval.low), high: end(interval.high) })
}

/// The unit of an axis if all its values are numbers of one, and the values in it.
pub(crate) fn numeric<'a>(values: impl Iterator<Item = &'a str>) -> Option<(&'static str, Vec<f64>)> {
    let read: Option<Vec<_>> = values.map(number).collect();
    let read = read?;
    let unit = read.first()?.1;
    read.iter().all(|(_, other)| *other == unit).then(|| (unit, read.into_iter().map(|(number, _)| number).collect()))
}
