//! The paper's two scenarios, as shipped, and the measurement of a transfer.

use bentpipe_sim::RunResult;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::stats::{mean, mean_interval};

use crate::lab::Lab;
use crate::request::ReproduceError;

const DIRECT: &str = include_str!("../../scenarios/minei-direct.toml");
const SPLIT: &str = include_str!("../../scenarios/minei-split.toml");

/// Runs per point of a curve with losses, or fewer if requested. The paper prints no number of runs.
pub(super) const RUNS: u32 = 20;
/// Bits of a full packet. The paper's throughput counts all of them (M-Q01).
const PACKET_BITS: f64 = 512.0 * 8.0;
/// Packets of 5 MB (M-Q02).
pub(super) const FILE: u64 = 10_240;
/// Time limit, longer than the slowest transfer.
const LIMIT: &str = "200000 s";

/// A scenario under construction.
#[derive(Clone, Debug)]
pub(super) struct World {
    text: &'static str,
    sets: Vec<(String, String)>,
    packets: u64,
}

impl World {
    pub(super) fn direct() -> World {
        World { text: DIRECT, sets: Vec::new(), packets: FILE }.with("time_limit", LIMIT)
    }

    pub(super) fn split() -> World {
        World { text: SPLIT, sets: Vec::new(), packets: FILE }.with("time_limit", LIMIT)
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<String>) -> World {
        self.sets.push((key.to_owned(), value.into()));
        self
    }

    /// Sets TCP on the satellite's leg, or on the whole connection if it is not split.
    pub(super) fn leg(self, key: &str, value: impl Into<String>) -> World {
        let place = if self.text == SPLIT { "flows.file.split.0.tcp." } else { "flows.file.tcp." };
        self.with(&format!("{place}{key}"), value)
    }

    /// A clock of 100 ms instead of 500 ms on the satellite's leg, and timeouts of at least two ticks.
    pub(super) fn fine_clock(self) -> World {
        self.leg("rto.tick", "100 ms").leg("rto.min", "200 ms")
    }

    /// The sender on the satellite's leg.
    pub(super) fn sender(self, variant: &str) -> World {
        self.leg("variant", variant)
    }

    /// A constant window, the capacity of the leg (M-M09).
    pub(super) fn constant(self) -> World {
        self.leg("fixed_window", "32 segments")
    }

    /// Independent losses on the satellite, percent.
    pub(super) fn sat_loss(self, percent: f64) -> World {
        self.with("links.sat.loss", format!("{percent} %"))
    }

    /// Correlated losses (M-Q10), with a base rate in percent.
    pub(super) fn bursty(self, percent: f64, factor: f64) -> World {
        self.with(
            "links.sat.packet_bursts",
            format!("{{ start = \"{percent} %\", burstiness = {factor:.2}, max = 0.9 }}"),
        )
    }

    /// Runs of losses (M-Q11), with a start probability in percent.
    pub(super) fn runs_of(self, length: u32, percent: f64) -> World {
        let length = format!("\"{length} packet{}\"", if length == 1 { "" } else { "s" });
        self.with("links.sat.packet_bursts", format!("{{ start = \"{percent} %\", length = {length} }}"))
    }

    pub(super) fn packets(mut self, packets: u64) -> World {
        self.packets = packets;
        self.with("flows.file.bytes", format!("{packets} segments"))
    }

    pub(super) fn scenario(&self) -> Scenario {
        Scenario::parse(self.text, "minei.toml", &self.sets).unwrap_or_else(|errors| panic!("{errors}"))
    }
}

/// Mean and 95 % interval over the runs; for a deterministic run the interval is the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Mean {
    pub(super) fn of(values: &[f64]) -> Mean {
        let mean = mean(values);
        match mean_interval(values, 0.95) {
            Ok(interval) => Mean { mean, low: interval.low, high: interval.high },
            Err(_) => Mean { mean, low: mean, high: mean },
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:.1} ({:.1}..{:.1})", self.mean, self.low, self.high)
    }
}

/// Throughput of a transfer as the paper counts it, kbit/s.
fn kbit_s(result: &RunResult, packets: u64) -> f64 {
    let flow = &result.flows[0];
    let seconds = flow.received_at.map_or(f64::INFINITY, |end| (end - flow.start).as_secs_f64());
    packets as f64 * PACKET_BITS / 1000.0 / seconds
}

/// Throughput of each scenario, kbit/s.
pub(super) fn throughputs(lab: &Lab<'_>, what: &str, worlds: &[World], runs: u32) -> Result<Vec<Mean>, ReproduceError> {
    let scenarios: Vec<_> = worlds.iter().map(World::scenario).collect();
    let results = lab.sweep(what, &scenarios, runs.min(lab.options().reps))?;
    let one = |(world, runs): (&World, &crate::lab::Runs)| {
        Mean::of(&runs.iter().map(|run| kbit_s(run, world.packets)).collect::<Vec<_>>())
    };
    Ok(worlds.iter().zip(&results).map(one).collect())
}

/// Number of data packets sent on the satellite's leg, including retransmissions.
pub(super) fn packets_sent(lab: &Lab<'_>, what: &str, worlds: &[World]) -> Result<Vec<Mean>, ReproduceError> {
    let scenarios: Vec<_> = worlds.iter().map(World::scenario).collect();
    let results = lab.sweep(what, &scenarios, RUNS.min(lab.options().reps))?;
    let sent = |run: &RunResult| {
        let flow = &run.flows[0];
        flow.legs.last().map_or(flow.stats.data_segments, |leg| leg[0].data_segments) as f64
    };
    Ok(results.iter().map(|runs| Mean::of(&runs.iter().map(sent).collect::<Vec<_>>())).collect())
}
