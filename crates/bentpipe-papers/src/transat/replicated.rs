//! Tables 3 to 14: statistics of many replications under burst errors.
//!
//! The paper has 20 replications, we have more. A published statistic is borne out where it lies in the range that
//! holds 90 % of the same statistic over random samples of 20 of ours. One in ten should miss even if both simulators
//! were the same.

use bentpipe_engine::stream::Stream;
use bentpipe_sim::RunResult;
use bentpipe_study::stats::{Interval, Sample, Subsets};

use super::lab::{Lab, elapsed};
use super::setting::{Setting, Variant};
use super::single;
use crate::published::{OtherCell, TRANSAT_NS2, TRANSAT_TABLES};
use crate::reproduce::ReproduceError;
use crate::{Row, Verdict};

/// Statistics of a table, in its order.
const STATISTICS: [&str; 7] = ["min", "p25", "median", "p75", "max", "mean", "throughput"];

/// Where the median stands among them.
const MEDIAN: usize = 2;

/// Samples drawn for a range: its ends then move by about 1 % of probability from one seed to the next.
pub(super) const DRAWS: usize = 2000;

/// Share of the samples that a range holds.
pub(super) const LEVEL: f64 = 0.9;

/// A published value that misses the range still has the size of ours up to this factor; the quartiles of our own
/// times are further apart than that in most columns.
const SAME_SIZE: f64 = 1.5;

/// Which of the flows of a replication a table counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// Each.
    All,
    /// The first to finish.
    Fastest,
    /// The last.
    Slowest,
}

/// What a table from 3 to 14 is about: its flows, its bursts, and which flows it counts.
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

/// The seven statistics of times, where each flow carried `kilobytes`.
fn statistics(times: Vec<f64>, kilobytes: f64) -> [f64; 7] {
    let throughput = times.iter().map(|t| kilobytes / t).sum::<f64>() / times.len() as f64;
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

/// All rows of one table.
pub(super) fn rows(lab: &Lab<'_>, table: u8) -> Result<Vec<Row>, ReproduceError> {
    let (plan, pick) = plan(table);
    let kilobytes = plan.kilobytes_per_flow();
    let mut by_variant = Vec::new();
    for variant in Variant::ALL {
        let runs = lab.replications(&plan.clone().with_variant(variant))?;
        let units: Vec<Vec<f64>> = runs.iter().map(|run| picked(run, pick)).collect();
        let ours = statistics(units.concat(), kilobytes);
        let name = format!("transat/T{table:02}/{}", variant.key());
        let subsets = Subsets { population: units.len(), size: TRANSAT_TABLES.replications, draws: DRAWS };
        let ranges = subsets
            .ranges(LEVEL, &mut Stream::named(lab.seed(), &name), |drawn| {
                statistics(drawn.iter().flat_map(|&i| units[i].iter().copied()).collect(), kilobytes)
            })
            .expect("replications were checked to be there");
        by_variant.push((variant, ours, ranges));
    }
    let title = &TRANSAT_TABLES.table(table).expect("tables 1 to 14").title;
    let medians = by_variant.iter().map(|(variant, ours, _)| {
        let paper = TRANSAT_TABLES.cell(table, "median", variant.key()).expect("a full table");
        let ns2 = TRANSAT_NS2.cell(table, "median", variant.key()).expect("ns-2 has every cell").value;
        (ours[MEDIAN], paper, ns2)
    });
    let medians: Vec<_> = medians.collect();
    let ours = single::mean_distance(medians.iter().map(|m| (m.0, m.1)));
    let ns2 = single::mean_distance(medians.iter().map(|m| (m.2, m.1)));
    let mut rows = vec![single::distance_row(table, "medians", ours, ns2)];
    for (column, statistic) in STATISTICS.iter().enumerate() {
        for (variant, ours, ranges) in &by_variant {
            let Some(paper) = TRANSAT_TABLES.cell(table, statistic, variant.key()) else { continue };
            let ns2 = TRANSAT_NS2.cell(table, statistic, variant.key()).expect("ns-2 has every cell");
            let unit = if *statistic == "throughput" { "KB/s" } else { "s" };
            let range = ranges[column];
            let (verdict, why) = judge(paper, ours[column], range, ns2);
            rows.push(
                Row::new(
                    format!("T-T{table:02}/{statistic}/{}", variant.key()),
                    format!("{title}; {statistic}, {}", variant.name()),
                    Some(paper),
                    Some(ours[column]),
                    unit,
                )
                .within(Some(range.low), Some(range.high))
                .judged(verdict, why),
            );
        }
    }
    Ok(rows)
}

fn judge(paper: f64, ours: f64, range: Interval, ns2: OtherCell) -> (Verdict, String) {
    let ns2_says = match ns2.range {
        Some((low, high)) if low <= paper && paper <= high => {
            format!("ns-2 gives {:.2} and its range {low:.2}..{high:.2} holds the published value", ns2.value)
        }
        Some((low, high)) => format!("ns-2 gives {:.2} and its range {low:.2}..{high:.2} misses it too", ns2.value),
        None => format!("ns-2 gives {:.2}", ns2.value),
    };
    if range.contains(paper) {
        return (Verdict::Match, format!("inside the 90 % range for samples of {}", TRANSAT_TABLES.replications));
    }
    let ratio = ours / paper;
    let verdict = if (1.0 / SAME_SIZE..=SAME_SIZE).contains(&ratio) { Verdict::Shape } else { Verdict::Differs };
    (verdict, format!("outside the 90 % range for samples of {}; {ns2_says}", TRANSAT_TABLES.replications))
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
        assert_eq!(judge(9.5, 10.0, range, ns2).0, Verdict::Match);
        assert_eq!(judge(12.0, 10.0, range, ns2).0, Verdict::Shape);
        let (verdict, why) = judge(30.0, 10.0, range, ns2);
        assert_eq!(verdict, Verdict::Differs);
        assert!(why.contains("misses it too"), "{why}");
    }
}
