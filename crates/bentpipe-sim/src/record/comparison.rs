//! Compares variants with the same seeds: in each replication, all of them meet the same fades.
//!
//! The compared quantity is the time of a run's slowest transfer or, if all flows are endless, the total goodput. The
//! ratio to the first variant is the geometric mean over the pairs. Its interval is a paired bootstrap (pairs are
//! drawn, not runs).
//!
//! A run in which some transfer did not finish counts as slower than all runs in which all did. Quantiles rank it last,
//! and have no value if they fall on it; a mean or a ratio has none if any run did not finish. If such runs were left
//! out, a variant that stalls in its worst fades would look better than one that survives them.

use std::collections::BTreeMap;

use bentpipe_engine::stream::Stream;
use bentpipe_study::scenario::{FlowKind, Scenario, Workload};
use bentpipe_study::stats::{Sample, bootstrap_interval, mean, mean_interval};
use serde::Serialize;

use super::{FlowSummary, Summary};
use crate::run::RunResult;

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;
/// Number of bootstrap draws.
const DRAWS: usize = 4000;

/// The compared quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Time of the slowest transfer of a run, in seconds: less is better.
    SlowestTimeS,
    /// Goodput of all connections together, bits per second: more is better.
    GoodputBitS,
}

impl Measure {
    /// The quantity by which the runs of a scenario are compared.
    pub fn of(scenario: &Scenario) -> Self {
        let ends = |kind: &FlowKind| kind.workload().is_some_and(Workload::ends);
        if scenario.flows.iter().any(|flow| ends(&flow.kind)) { Measure::SlowestTimeS } else { Measure::GoodputBitS }
    }

    /// The run's value, and its ratio to the limit (`None` if nothing arrived); `None` if a transfer did not finish.
    pub fn take(self, summary: &Summary) -> Option<(f64, Option<f64>)> {
        let tcp = || summary.flows.iter().filter(|flow| flow.variant.is_some());
        match self {
            Measure::SlowestTimeS => {
                let finite = tcp().filter(|flow| flow.limit_time_s.is_some());
                let times: Option<Vec<_>> = finite.map(|flow| Some((flow.time_s?, flow.x_limit))).collect();
                times?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
            }
            Measure::GoodputBitS => {
                let goodput = tcp().filter_map(|flow| flow.goodput_bit_s).sum();
                let limit = limit_together(&tcp().collect::<Vec<_>>());
                Some((goodput, limit.filter(|_| goodput > 0.0).map(|limit| limit / goodput)))
            }
        }
    }
}

/// The maximum of the sum of goodputs; `None` if a flow has no limit. Flows with the same narrowest link share it: at most
/// its rate arrives at any time, and counts most for the flow with the shortest time.
fn limit_together(flows: &[&FlowSummary]) -> Option<f64> {
    let mut by_link: BTreeMap<_, Vec<&FlowSummary>> = BTreeMap::new();
    let mut sum = 0.0;
    for flow in flows {
        let limit = flow.limit_goodput_bit_s?;
        match flow.share {
            (Some(link), lasted) if lasted > 0.0 => by_link.entry(link.index()).or_default().push(flow),
            _ => sum += limit,
        }
    }
    let end = |flow: &FlowSummary| flow.start_s + flow.share.1;
    for group in by_link.values() {
        let limits = || group.iter().filter_map(|flow| flow.limit_goodput_bit_s);
        let mut times: Vec<f64> = group.iter().flat_map(|flow| [flow.start_s, end(flow)]).collect();
        times.sort_unstable_by(f64::total_cmp);
        let shares = times.windows(2).map(|span| {
            let runs = group.iter().filter(|flow| flow.start_s <= span[0] && end(flow) >= span[1]);
            (span[1] - span[0]) * runs.map(|flow| 1.0 / flow.share.1).fold(0.0, f64::max)
        });
        sum += (shares.sum::<f64>() * limits().fold(0.0, f64::max)).min(limits().sum());
    }
    Some(sum)
}

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean over the pairs.
    pub estimate: f64,
    /// Lower end; `None` for fewer than two pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantRow {
    /// Its name.
    pub variant: String,
    /// Replications whose transfers all finished.
    pub finished: usize,
    /// Replications with an unfinished transfer, which rank last.
    pub unfinished: usize,
    /// How many of those had an aborted flow, by the reason ([`FlowSummary::aborted`](super::FlowSummary::aborted)) of
    /// the first one. The others reached the time limit.
    pub aborted: BTreeMap<&'static str, usize>,
    /// First quartile. Like the other two, it is `None` if it falls on an unfinished replication.
    pub p25: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Third quartile.
    pub p75: Option<f64>,
    /// Mean; `None` if a replication did not finish.
    pub mean: Option<f64>,
    /// Lower end of its 95 % confidence interval (Student's t); `None` with fewer than two replications.
    pub mean_low: Option<f64>,
    /// Upper end.
    pub mean_high: Option<f64>,
    /// Ratio to the first variant, pair by pair; `None` for the first itself, and if a replication of either did not
    /// finish.
    pub ratio_to_first: Option<Ratio>,
    /// Median ratio to the physical limit; `None` if it falls on an unfinished replication.
    pub x_limit: Option<f64>,
}

/// All variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The compared quantity.
    pub measure: Measure,
    /// Replications.
    pub reps: usize,
    /// The variants, in the requested order.
    pub variants: Vec<VariantRow>,
}

impl Comparison {
    /// Compares `scenarios`, one per variant. `runs[r][v]` is replication `r` of variant `v`. `seed` determines the
    /// bootstrap's draws.
    pub fn new(scenarios: &[(String, Scenario)], runs: &[Vec<RunResult>], seed: u64) -> Comparison {
        let measure = scenarios.first().map_or(Measure::SlowestTimeS, |(_, scenario)| Measure::of(scenario));
        let mut columns: Vec<Column> = Vec::new();
        let mut variants: Vec<VariantRow> = Vec::new();
        for (v, (name, scenario)) in scenarios.iter().enumerate() {
            let summaries = runs.iter().map(|rep| Summary::new(scenario, &rep[v]));
            let mut aborted = BTreeMap::new();
            let column = summaries.map(|summary| {
                let taken = measure.take(&summary);
                let reason = summary.flows.iter().find_map(|flow| flow.aborted).filter(|_| taken.is_none());
                reason.into_iter().for_each(|reason| *aborted.entry(reason).or_insert(0) += 1);
                taken
            });
            columns.push(column.collect());
            variants.push(VariantRow { aborted, ..row(name, &columns[v], (v > 0).then(|| &columns[0]), seed) });
        }
        Comparison { measure, reps: runs.len(), variants }
    }
}

/// The result of [`Measure::take`].
type Taken = Option<(f64, Option<f64>)>;

type Column = Vec<Taken>;

fn row(name: &str, column: &Column, first: Option<&Column>, seed: u64) -> VariantRow {
    let values = || column.iter().map(|taken| taken.map(|(value, _)| value));
    let finished = column.iter().flatten().count();
    let interval = values().collect::<Option<Vec<f64>>>().and_then(|values| mean_interval(&values, CONFIDENCE).ok());
    let sample = Sample::with_unfinished(values()).ok();
    let quantile = |p| sample.as_ref().and_then(|sample| sample.finite_quantile(p));
    let x_limits = Sample::with_unfinished(column.iter().map(|taken| taken.and_then(|(_, x_limit)| x_limit))).ok();
    VariantRow {
        variant: name.to_owned(),
        finished,
        unfinished: column.len() - finished,
        aborted: BTreeMap::new(),
        p25: quantile(0.25),
        median: quantile(0.5),
        p75: quantile(0.75),
        mean: sample.as_ref().and_then(Sample::finite_mean),
        // Student's t extends below zero if few runs differ widely, where there are no times or rates.
        mean_low: interval.map(|interval| interval.low.max(0.0)),
        mean_high: interval.map(|interval| interval.high),
        ratio_to_first: first.and_then(|first| ratio(name, first, column, seed)),
        x_limit: x_limits.and_then(|sample| sample.finite_quantile(0.5)),
    }
}

/// The ratio; `None` if in some replication one of the two did not finish or delivered nothing.
fn ratio(name: &str, first: &Column, column: &Column, seed: u64) -> Option<Ratio> {
    let log = |(a, b): (&Taken, &Taken)| Some(((*b)?.0 / (*a)?.0).ln()).filter(|log| log.is_finite());
    let logs: Vec<f64> = first.iter().zip(column).map(log).collect::<Option<_>>()?;
    if logs.is_empty() {
        return None;
    }
    let mut stream = Stream::named(seed, format_args!("compare/{name}"));
    let interval = bootstrap_interval(&logs, CONFIDENCE, DRAWS, &mut stream, mean).ok();
    Some(Ratio {
        estimate: mean(&logs).exp(),
        low: interval.map(|interval| interval.low.exp()),
        high: interval.map(|interval| interval.high.exp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Column {
        values.iter().map(|&value| (value > 0.0).then_some((value, Some(value / 2.0)))).collect()
    }

    #[test]
    fn pairs_by_hand() {
        // Twice and eight times: the geometric mean of 2 and 8 is 4.
        let (first, second) = (column(&[1.0, 10.0]), column(&[2.0, 80.0]));
        let row = row("b", &second, Some(&first), 1);
        assert_eq!((row.finished, row.unfinished, row.median, row.x_limit), (2, 0, Some(41.0), Some(20.5)));
        let ratio = row.ratio_to_first.expect("two pairs");
        assert!((ratio.estimate - 4.0).abs() < 1e-12, "{ratio:?}");
        // Two pairs drawn twice give the first pair twice, the second twice, or one of each.
        assert!((ratio.low.expect("two pairs") - 2.0).abs() < 1e-12 && (ratio.high.expect("two") - 8.0).abs() < 1e-12);
    }

    #[test]
    fn what_did_not_finish_is_the_slowest() {
        let first = column(&[1.0, 2.0, 3.0, 4.0]);
        let stalls = column(&[1.0, 2.0, 0.0, 4.0]);
        let row_of = |column, first| row("b", column, first, 1);
        let row = row_of(&stalls, Some(&first));
        assert_eq!((row.finished, row.unfinished, row.median, row.p75), (3, 1, Some(3.0), None));
        assert_eq!((row.x_limit, row.mean, row.mean_low, row.ratio_to_first), (Some(1.5), None, None, None));
        assert_eq!(row_of(&first, Some(&stalls)).ratio_to_first, None, "the first variant stalls");
        let row = row_of(&column(&[1.0, 0.0, 0.0, 4.0]), None);
        assert_eq!((row.p25, row.median, row.x_limit), (Some(3.25), None, None));
    }

    /// A second of endless flows from one host, each over links of its own to another host if `apart`, or one after the other.
    fn endless(rate: &str, apart: bool, more: [&str; 2]) -> Option<f64> {
        let link = |to: &str| {
            format!(
                "[[links]]\nname = \"{to}\"\nbetween = [\"a\", \"{to}\"]\nrate = \"{rate}\"\ndelay = \"1 ms\"\nforward.queue = \"50 ms\"\n"
            )
        };
        let flow = |to: &str, more: &str| format!("[[flows]]\nfrom = \"a\"\nto = \"{to}\"\n{more}\n");
        let other = if apart { "c" } else { "b" };
        let links = if apart { link("b") + &link("c") } else { link("b") };
        let text = format!("name = \"t\"\ntime_limit = \"4 s\"\n{links}{}{}", flow("b", more[0]), flow(other, more[1]));
        let text = if rate == "unlimited" {
            text.replace("4 s", "20 ms").replace("forward.queue = \"50 ms\"\n", "")
        } else {
            text
        };
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let result = crate::run::run(&scenario, 1, &mut bentpipe_engine::NoProbe).expect("it runs");
        Measure::GoodputBitS.take(&Summary::new(&scenario, &result)).expect("a goodput").1
    }

    /// Two flows over two links may have both rates, over one link the one rate. One after the other, each may have all of it. Without a
    /// rate there is no limit.
    #[test]
    fn the_limit_of_several_flows() {
        let greedy = ["greedy = true"; 2];
        for (apart, more) in [
            (true, greedy),
            (false, greedy),
            (false, ["greedy = { duration = \"2 s\" }", "greedy = true\nstart = \"2 s\""]),
        ] {
            let x_limit = endless("5 Mbit/s", apart, more).expect("a limit");
            assert!((1.0..1.2).contains(&x_limit), "{apart} {more:?}: {x_limit}");
        }
        assert_eq!(endless("unlimited", true, greedy), None);
    }

    #[test]
    fn no_interval_reaches_below_zero() {
        // Mean 50.5, s = 70.0: t(1, 97.5 %) = 12.7, so the interval of the mean would begin at -578.
        let row = row("a", &column(&[1.0, 100.0]), None, 1);
        assert_eq!(row.mean_low, Some(0.0));
        assert!(row.mean_high.expect("two runs") > 600.0);
    }

    #[test]
    fn nothing_finished_says_so() {
        let row = row("a", &column(&[0.0, 0.0]), None, 1);
        assert_eq!((row.finished, row.unfinished, row.median, row.mean_low), (0, 2, None, None));
        assert_eq!(row.ratio_to_first, None);
    }
}
