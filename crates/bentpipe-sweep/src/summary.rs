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
    pub fn new(plan: &Plan, store: &Store) -> Summary {
        let spec = plan.spec();
        let point = |n: usize| PointSummary {
            axes: spec.axes.iter().map(|axis| axis.key.clone()).zip(plan.values(n).iter().cloned()).collect(),
            repetitions: plan.repetitions(n),
            candidates: candidates(plan, store, n),
        };
        Summary {
            measure: spec.measure,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Job;
    use crate::row::Row;
    use crate::row::tests::row;
    use crate::spec::{Base, Spec};
    use crate::table::Lines;

    const SCENARIO: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"250 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"100 kB\"\n";

    fn plan(rest: &str) -> Plan {
        let base = Base { text: SCENARIO.to_owned(), name: "t.toml".to_owned(), settings: Vec::new() };
        let text = format!("scenario = \"t\"\nvariants = [\"sack\", \"newreno\"]\n{rest}");
        Plan::new(Spec::parse(&text, "s.toml", &|_| Ok(base.clone())).unwrap_or_else(|errors| panic!("{errors}")))
    }

    fn keep(store: &mut Store, job: &Job, value: Option<f64>) {
        store.append(Row { key: job.key, value, x_limit: value, ..row(1) }).expect("it is kept");
    }

    /// Ten repetitions, of which the first eight are done: the baseline, second in the file, takes 1 s to 8 s, the other 10 s longer, and
    /// its last one does not finish. Of eight the median is between the 4th and the 5th.
    #[test]
    fn differences_are_to_the_baseline() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("it opens");
        let mut plan = plan("baseline = \"newreno\"\nrepetitions = 10\n[set]\nlinks.sat.loss = \"1 %\"\n");
        while let Some(job) = plan.next(|_| None).expect("the point fits") {
            let base = f64::from(job.repetition + 1);
            match (job.repetition, job.candidate) {
                (8.., _) => {}
                (_, 1) => keep(&mut store, &job, Some(base)),
                (7, _) => keep(&mut store, &job, None),
                _ => keep(&mut store, &job, Some(base + 10.0)),
            }
        }
        let summary = Summary::new(&plan, &store);
        assert_eq!(summary.baseline, "newreno");
        let point = &summary.points[0];
        assert_eq!((point.repetitions, point.candidates.len()), (None, 2));
        let [sack, newreno] = &point.candidates[..] else { panic!("two") };
        assert_eq!((newreno.finished, newreno.unfinished, newreno.difference), (8, 0, None));
        assert_eq!((newreno.value.map(|value| value.median), newreno.x_limit), (Some(4.5), Some(4.5)));
        assert_eq!((sack.finished, sack.unfinished), (7, 1));
        assert_eq!(
            (sack.value.map(|value| value.median), sack.difference.map(|pairs| pairs.median)),
            (Some(14.5), Some(10.0))
        );
    }

    /// The table has the value of each point's axis with the point's runs.
    #[test]
    fn lines_have_the_values_of_their_points() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("it opens");
        let axes = "[[axes]]\nkey = \"links.sat.delay\"\nvalues = [\"40 ms\", \"0.25 s\"]\n";
        let mut plan = plan(&format!("repetitions = 1\n{axes}"));
        while let Some(job) = plan.next(|_| None).expect("the points fit") {
            keep(&mut store, &job, Some(1.0));
            plan.completed(&job, store.get(&job.key).expect("kept"), |_| None);
        }
        let lines = Lines::of(&plan);
        let column = lines.headings().iter().position(|heading| heading.name == "links.sat.delay").expect("a column");
        let mut seen = Vec::new();
        let each = lines.each(&plan, &store, |cells| {
            seen.push((format!("{:?} {:?}", cells[0], cells[1]), format!("{:?}", cells[column])));
            Ok::<(), ()>(())
        });
        each.expect("nothing fails");
        seen.dedup();
        let line = |point: u32, name: &str, value: &str| {
            (format!("Integer({point}) Text({name:?})"), format!("Real({value})"))
        };
        let expected =
            [line(0, "sack", "0.04"), line(0, "newreno", "0.04"), line(1, "sack", "0.25"), line(1, "newreno", "0.25")];
        assert_eq!(seen, expected);
    }

    #[test]
    fn numbers_of_one_unit() {
        assert_eq!(numeric(["1 s", "20 ms"].into_iter()), Some(("seconds", vec![1.0, 0.02])));
        assert_eq!(numeric(["1 s", "1 MB"].into_iter()), None);
        assert_eq!(numeric(["1 s", "soon"].into_iter()), None);
    }
}
