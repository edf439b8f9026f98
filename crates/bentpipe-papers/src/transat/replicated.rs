//! Tables 3 to 14: statistics of many replications under burst errors.
//!
//! The paper has 20 replications, we have more. A published statistic is confirmed if it lies in the range that holds
//! 90 % of the same statistic over random samples of 20 of ours. One in ten would lie outside even if both simulators
//! were the same.
//!
//! A table's verdict depends on the number of confirmed statistics: `counted`. The replications of a column are not 20
//! independent draws. Until the first burst they are identical to the run without errors (tables 1 and 2). If that run
//! takes a different time in the paper, so do they. The reason of a cell outside its range says how much this explains.

use bentpipe_engine::stream::Stream;
use bentpipe_sim::RunResult;
use bentpipe_study::stats::{Interval, Sample, Subsets};

use super::counted::{Counted, LEVEL, Side};
use super::lab::{Lab, elapsed};
use super::setting::Setting;
use super::single;
use super::variant::Variant;
use crate::published::{OtherCell, TRANSAT_NS2, TRANSAT_TABLES};
use crate::request::ReproduceError;
use crate::{Row, Verdict};

/// Statistics of a table, in its order.
pub(super) const STATISTICS: [&str; 7] = ["min", "p25", "median", "p75", "max", "mean", "throughput"];

/// Indices into [`STATISTICS`].
const MIN: usize = 0;
const MEDIAN: usize = 2;
const MAX: usize = 4;
const THROUGHPUT: usize = 6;
/// Index after the statistics: the throughput with all times shifted.
const ELSEWHERE: usize = 7;

/// Number of samples for a range. With it, the ends of a range vary by about 1 % of probability between seeds.
pub(super) const DRAWS: usize = 2000;

/// Up to this factor from ours, a published value outside the range has the verdict `shape`. In most columns the quartiles
/// of our own times are farther apart.
const SAME_SIZE: f64 = 1.5;

/// The flows of a replication that a table counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// Each.
    All,
    /// The first to finish.
    Fastest,
    /// The last.
    Slowest,
}

/// The content of a table from 3 to 14: its flows, its bursts, and the counted flows.
pub(super) fn plan(table: u8) -> (Setting, Pick) {
    let (per_percent, delay_ms) = match table {
        3 | 6..=8 => (100, 0),
        4 | 9..=11 => (25, 550),
        _ => (1, 550),
    };
    let base = if table <= 5 { Setting::one_flow() } else { Setting::four_flows().with_cbr(800) };
    let pick = match table {
        7 | 10 | 13 => Pick::Fastest,
        8 | 11 | 14 => Pick::Slowest,
        _ => Pick::All,
    };
    (base.with_bursts(per_percent, delay_ms), pick)
}

/// The times of a replication that a table counts, seconds.
pub(super) fn picked(run: &RunResult, pick: Pick) -> Vec<f64> {
    let times: Vec<f64> = run.flows.iter().filter_map(elapsed).collect();
    match pick {
        Pick::All => times,
        Pick::Fastest => times.into_iter().reduce(f64::min).into_iter().collect(),
        Pick::Slowest => times.into_iter().reduce(f64::max).into_iter().collect(),
    }
}

/// The seven statistics of times, for flows of `kilobytes`.
pub(super) fn statistics(times: Vec<f64>, kilobytes: f64) -> [f64; 7] {
    let throughput = mean(times.iter().map(|t| kilobytes / t));
    let five = Sample::new(times).expect("transfers last a finite time").five_numbers();
    [five.min, five.p25, five.median, five.p75, five.max, five.mean, throughput]
}

/// The median of one column of a table, from our replications.
pub(super) fn median(lab: &Lab<'_>, table: u8, variant: Variant) -> Result<f64, ReproduceError> {
    let (setting, pick) = plan(table);
    let runs = lab.replications(&setting.with_variant(variant))?;
    let times = runs.iter().flat_map(|run| picked(run, pick)).collect();
    Ok(Sample::new(times).expect("at least two replications").median())
}

/// The error-free run with which each replication begins, until its first burst: the table and row with its printed
/// time. The four flows together have none.
fn without_errors(table: u8, pick: Pick) -> Option<(u8, &'static str)> {
    match (table, pick) {
        (..=5, _) => Some((1, "50-on")),
        (_, Pick::Fastest) => Some((2, "fastest-cbr0.8-on")),
        (_, Pick::Slowest) => Some((2, "slowest-cbr0.8-on")),
        (_, Pick::All) => None,
    }
}

/// Our time without errors and the printed one, seconds.
fn clean(lab: &Lab<'_>, table: u8, variant: Variant) -> Result<Option<(f64, f64)>, ReproduceError> {
    let (plan, pick) = plan(table);
    let Some((of, row)) = without_errors(table, pick) else { return Ok(None) };
    // Table 1 has no columns with RED. Without CBR, RED drops nothing early (T-C15).
    let column = match (of, variant) {
        (1, Variant::RefRed) => Variant::Ref,
        (1, Variant::EnhRed) => Variant::Enh,
        (_, variant) => variant,
    };
    let run = lab.single(&plan.with_variant(variant).without_bursts())?;
    let ours = picked(&run, pick).into_iter().next();
    Ok(ours.zip(TRANSAT_TABLES.cell(of, row, column.key())))
}

/// One column of a table: our statistics, and those of many samples of the paper's size.
struct Column {
    variant: Variant,
    ours: [f64; 7],
    /// Each sample's statistics, and its throughput with all times shifted by the difference of the error-free runs.
    samples: Vec<[f64; 8]>,
    ranges: [Interval; 8],
    clean: Option<(f64, f64)>,
}

fn column(lab: &Lab<'_>, table: u8, variant: Variant) -> Result<Column, ReproduceError> {
    let (plan, pick) = plan(table);
    let kilobytes = plan.kilobytes_per_flow();
    let runs = lab.replications(&plan.with_variant(variant))?;
    let units: Vec<Vec<f64>> = runs.iter().map(|run| picked(run, pick)).collect();
    let clean = clean(lab, table, variant)?;
    let moved = clean.map_or(0.0, |(ours, paper)| paper - ours);
    let mut samples = Vec::with_capacity(DRAWS);
    let subsets = Subsets { population: units.len(), size: TRANSAT_TABLES.replications, draws: DRAWS };
    // All columns use the same draws, so that a draw corresponds to one paper: its columns have the same bursts.
    let ranges = subsets
        .ranges(LEVEL, &mut Stream::named(lab.seed(), "transat/samples"), |drawn| {
            let times: Vec<f64> = drawn.iter().flat_map(|&i| units[i].iter().copied()).collect();
            let elsewhere = mean(times.iter().map(|t| kilobytes / (t + moved)));
            let [a, b, c, d, e, f, g] = statistics(times, kilobytes);
            let all = [a, b, c, d, e, f, g, elsewhere];
            samples.push(all);
            all
        })
        .expect("replications were checked to be there");
    let mut ours = statistics(units.concat(), kilobytes);
    // The extremes of 200 runs do not compare with those of 20, so take the median over the samples.
    for extreme in [MIN, MAX] {
        let drawn = samples.iter().map(|sample| sample[extreme]).collect();
        ours[extreme] = Sample::new(drawn).expect("draws").median();
    }
    Ok(Column { variant, ours, samples, ranges, clean })
}

pub(super) fn side(paper: f64, range: Interval, statistic: usize) -> Side {
    match (range.contains(paper), (paper < range.low) != (statistic == THROUGHPUT)) {
        (true, _) => Side::Inside,
        (_, true) => Side::Slower,
        (_, false) => Side::Faster,
    }
}

impl Column {
    /// The range of a statistic with all times shifted by the difference of the error-free runs.
    fn moved(&self, statistic: usize) -> Option<Interval> {
        let (ours, paper) = self.clean?;
        if statistic == THROUGHPUT {
            return Some(self.ranges[ELSEWHERE]);
        }
        let range = self.ranges[statistic];
        Some(Interval { low: range.low + paper - ours, high: range.high + paper - ours, ..range })
    }

    /// Number of statistics of one of our samples inside their ranges.
    fn inside(&self, sample: usize) -> usize {
        let values = &self.samples[sample][..STATISTICS.len()];
        values.iter().zip(&self.ranges).filter(|(value, range)| range.contains(**value)).count()
    }
}

/// All rows of one table, and their counts.
pub(super) fn rows(lab: &Lab<'_>, table: u8) -> Result<(Vec<Row>, Counted), ReproduceError> {
    let columns =
        Variant::ALL.iter().map(|&variant| column(lab, table, variant)).collect::<Result<Vec<_>, ReproduceError>>()?;
    let title = &TRANSAT_TABLES.table(table).expect("tables 1 to 14").title;
    let drawn = (0..DRAWS).map(|n| columns.iter().map(|column| column.inside(n)).sum()).collect();
    let mut counted = Counted::new(drawn);
    let mut rows = Vec::new();
    for (n, statistic) in STATISTICS.iter().enumerate() {
        for column in &columns {
            let variant = column.variant;
            let Some(paper) = TRANSAT_TABLES.cell(table, statistic, variant.key()) else { continue };
            let ns2 = TRANSAT_NS2.cell(table, statistic, variant.key()).expect("ns-2 has every cell");
            let unit = if n == THROUGHPUT { "KB/s" } else { "s" };
            let range = column.ranges[n];
            let moved = column.moved(n).map(|range| side(paper, range, n));
            let (verdict, mut why) = judge(paper, column.ours[n], side(paper, range, n), moved.zip(column.clean), ns2);
            if variant == Variant::RefDaass && verdict != Verdict::Match {
                why += "; no reading of DAASS comes closer: studies/transat/README.md";
            }
            counted.add(side(paper, range, n), verdict, moved, (paper, ns2));
            rows.push(
                Row::new(
                    format!("T-T{table:02}/{statistic}/{}", variant.key()),
                    format!("{title}; {statistic}, {}", variant.name()),
                    Some(paper),
                    Some(column.ours[n]),
                    unit,
                )
                .within(Some(range.low), Some(range.high))
                .judged(verdict, why),
            );
        }
    }
    let medians = |of: &dyn Fn(&Column) -> f64| {
        single::mean_distance(columns.iter().map(|column| {
            (of(column), TRANSAT_TABLES.cell(table, "median", column.variant.key()).expect("a full table"))
        }))
    };
    let ours = medians(&|column| column.ours[MEDIAN]);
    let ns2 =
        medians(&|column| TRANSAT_NS2.cell(table, "median", column.variant.key()).expect("ns-2 has every cell").value);
    let distance = format!("mean |ln(ours/paper)| of the medians {ours:.3}, ns-2's {ns2:.3}");
    rows.insert(0, counted.row(&format!("T-T{table:02}"), title, &distance));
    Ok((rows, counted))
}

/// Verdict and reason of a cell: the position of the published value, unchanged and shifted by the difference of the
/// error-free runs.
fn judge(paper: f64, ours: f64, as_is: Side, moved: Option<(Side, (f64, f64))>, ns2: OtherCell) -> (Verdict, String) {
    let size = TRANSAT_TABLES.replications;
    if as_is == Side::Inside {
        return (Verdict::Match, format!("inside the 90 % range for samples of {size}"));
    }
    let ns2_says = match ns2.range {
        Some((low, high)) if low <= paper && paper <= high => {
            format!("ns-2 gives {:.2} and its range {low:.2}..{high:.2} holds the published value", ns2.value)
        }
        Some((low, high)) => format!("ns-2 gives {:.2} and its range {low:.2}..{high:.2} misses it too", ns2.value),
        None => format!("ns-2 gives {:.2}", ns2.value),
    };
    let cause = match moved {
        None => "not explained".to_owned(),
        Some((side, (clean, printed))) => {
            let start = format!("the run without errors takes {clean:.2} s here, {printed:.2} s in the paper");
            if side == Side::Inside {
                format!("{start}; shifted by the difference, the range holds the value")
            } else {
                format!("{start}; shifted by the difference, the range still misses it: not explained")
            }
        }
    };
    let verdict =
        if (1.0 / SAME_SIZE..=SAME_SIZE).contains(&(ours / paper)) { Verdict::Shape } else { Verdict::Differs };
    (verdict, format!("outside the 90 % range for samples of {size}; {cause}; {ns2_says}"))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_the_mean_of_the_flows() {
        // 1000 KB in 10 and 40 s: 100 and 25 KB/s, their mean 62.5, not 1000 / 25.
        let [min, .., max, mean, throughput] = statistics(vec![40.0, 10.0], 1000.0);
        assert_eq!((min, max, mean, throughput), (10.0, 40.0, 25.0, 62.5));
    }

    #[test]
    fn each_table_has_its_own_plan() {
        let plans: Vec<_> = (3..=14).map(plan).collect();
        for (i, a) in plans.iter().enumerate() {
            assert!(plans[..i].iter().all(|b| a != b), "table {}", i + 3);
        }
        assert_eq!(plans[0].0.kilobytes_per_flow(), 1000.0);
        assert_eq!(plans[5].0.kilobytes_per_flow(), 250.0);
    }

    #[test]
    fn a_value_outside_is_told_from_one_far_outside() {
        let range = Interval { low: 9.0, high: 11.0, confidence: 0.9 };
        let ns2 = OtherCell { value: 10.0, range: Some((9.5, 10.5)) };
        let judged = |paper| judge(paper, 10.0, side(paper, range, MEDIAN), None, ns2);
        assert_eq!(judged(9.5).0, Verdict::Match);
        assert_eq!(judged(12.0).0, Verdict::Shape);
        let (verdict, why) = judged(30.0);
        assert_eq!(verdict, Verdict::Differs);
        assert!(why.contains("not explained; ns-2 gives 10.00") && why.contains("misses it too"), "{why}");
    }

    #[test]
    fn the_run_without_errors_explains_what_it_moves() {
        // Here 16 s without errors and 17 to 18 s with, in the paper 9 s and 10.5 s.
        let column = Column {
            variant: Variant::RefDaass,
            ours: [17.5; 7],
            samples: vec![[17.5; 8]],
            ranges: [Interval { low: 17.0, high: 18.0, confidence: 0.9 }; 8],
            clean: Some((16.0, 9.0)),
        };
        let moved = column.moved(MEDIAN).expect("a run without errors");
        assert_eq!((moved.low, moved.high), (10.0, 11.0));
        let ns2 = OtherCell { value: 16.0, range: None };
        let why = |side| judge(10.5, 17.5, Side::Slower, Some((side, (16.0, 9.0))), ns2).1;
        assert!(
            why(Side::Inside)
                .contains("takes 16.00 s here, 9.00 s in the paper; shifted by the difference, the range holds")
        );
        assert!(why(Side::Slower).contains("not explained"));
        assert_eq!(column.inside(0), STATISTICS.len());
    }

    #[test]
    fn a_smaller_throughput_is_slower() {
        let range = Interval { low: 9.0, high: 11.0, confidence: 0.9 };
        assert_eq!(
            [8.0, 10.0, 12.0].map(|paper| side(paper, range, MEDIAN)),
            [Side::Slower, Side::Inside, Side::Faster]
        );
        assert_eq!([8.0, 12.0].map(|paper| side(paper, range, THROUGHPUT)), [Side::Faster, Side::Slower]);
    }
}
