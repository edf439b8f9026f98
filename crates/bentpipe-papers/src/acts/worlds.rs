//! The paper's scenarios, as shipped, and changes to them.

use bentpipe_engine::units::Duration;
use bentpipe_sim::{FlowResult, RunResult};
use bentpipe_study::scenario::Scenario;

/// Trials of the paper's tables.
pub(super) const TRIALS: u32 = 10;

/// The simulated time of a trial with three sources: the `time_limit` of scenarios 3 and 5.
pub(super) const TRIAL: Duration = Duration::from_secs(160);

/// No bit errors: only packets in a drop list are lost.
pub(super) const CLEAN: [(&str, &str); 2] =
    [("links.sat.forward.bit_error_rate", "0"), ("links.sat.backward.bit_error_rate", "0")];

/// Bytes in a mebibyte, the paper's MB. Its GB is a gibibyte (A-Q01).
pub(super) const MIB: f64 = 1_048_576.0;

const SHIPPED: [&str; 5] = [
    include_str!("../../scenarios/acts-1.toml"),
    include_str!("../../scenarios/acts-2.toml"),
    include_str!("../../scenarios/acts-3.toml"),
    include_str!("../../scenarios/acts-4.toml"),
    include_str!("../../scenarios/acts-5.toml"),
];

/// Scenario `number`, from 1, with these settings on top.
pub(super) fn world(number: usize, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::parse(SHIPPED[number - 1], &format!("acts-{number}.toml"), &sets)
        .unwrap_or_else(|errors| panic!("a shipped scenario: {errors}"))
}

/// The location of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Lan,
    Wan,
    Satellite,
}

impl Place {
    pub(super) const ALL: [Place; 3] = [Place::Lan, Place::Wan, Place::Satellite];

    /// The column heading of the paper's tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Lan => "LAN",
            Place::Wan => "WAN",
            Place::Satellite => "ACTS",
        }
    }
}

/// One transfer without congestion: scenarios 1 and 4.
pub(super) fn alone(place: Place) -> Scenario {
    match place {
        Place::Lan => world(4, &[("links.wan.delay", "50 us")]),
        Place::Wan => world(4, &[]),
        Place::Satellite => world(1, &[]),
    }
}

/// The same with another processing time per segment, written as for `--set`.
pub(super) fn alone_with_processing(place: Place, processing: &str) -> Scenario {
    let (number, hosts) = match place {
        Place::Satellite => (1, ["nodes.wiley.processing", "nodes.mckinley.processing"]),
        Place::Lan | Place::Wan => (4, ["nodes.wiley.processing", "nodes.nrl.processing"]),
    };
    let mut sets: Vec<_> = hosts.into_iter().map(|host| (host, processing)).collect();
    if place == Place::Lan {
        sets.push(("links.wan.delay", "50 us"));
    }
    world(number, &sets)
}

/// How three sources reach an offered load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// They send at the rate of their lines.
    Full,
    /// Each host's card sends cells at a third of this payload rate in Mbit/s: traffic shaping.
    Shaped(f64),
    /// Each application writes at a third of this rate in Mbit/s, independent of delivery.
    Written(f64),
}

/// The switches of the experiments: 8192 cells shared by the channels of a module (§5.1). The paper's simulation of
/// scenario 3 gives 8192 to each channel (§8.2), and so does `acts-3.toml`; scenario 5 was not simulated.
const AS_MEASURED: (&str, &str) = ("links.sat.forward.atm.sharing", "shared");

/// Three sources into one line as in the experiments, scenarios 3 and 5.
pub(super) fn measured(place: Place, load: Load, more: &[(&str, &str)]) -> Scenario {
    congested(place, load, &[&[AS_MEASURED], more].concat())
}

/// Three sources into one line, scenarios 3 and 5 as shipped.
pub(super) fn congested(place: Place, load: Load, more: &[(&str, &str)]) -> Scenario {
    let mut sets = more.to_vec();
    let setting = match load {
        Load::Full => String::new(),
        // A segment of 9140 bytes takes 192 cells of 53 bytes.
        Load::Shaped(load) => format!("{} bit/s", (load / 3.0 * 1e6 * 192.0 * 53.0 / 9140.0).round()),
        Load::Written(load) => format!("{{ rate = \"{} kbit/s\" }}", (load / 3.0 * 1e3).round()),
    };
    match load {
        Load::Full => {}
        Load::Shaped(_) => sets.push(("links.sat.forward.atm.line", &setting)),
        Load::Written(_) => {
            sets.extend(
                ["flows.elmer.paced", "flows.galaga.paced", "flows.wiley.paced"].map(|key| (key, setting.as_str())),
            );
        }
    }
    // A round trip of 0.1 ms: 12.5 us over each access link, twice that between the switches.
    const LAN: [(&str, &str); 5] = [
        ("links.elmer.delay", "12500 ns"),
        ("links.galaga.delay", "12500 ns"),
        ("links.wiley.delay", "12500 ns"),
        ("links.sat.delay", "25 us"),
        ("links.far.delay", "12500 ns"),
    ];
    match place {
        Place::Lan => sets.extend(LAN),
        Place::Wan | Place::Satellite => {}
    }
    world(if place == Place::Satellite { 3 } else { 5 }, &sets)
}

/// Throughput of a flow in Mbit/s: in-order data, from its start to the arrival of its last byte or the end of the run.
pub(super) fn throughput(run: &RunResult, flow: &FlowResult) -> f64 {
    let end = flow.received_at.unwrap_or(run.end);
    flow.delivered as f64 * 8.0 / end.saturating_since(flow.start).as_secs_f64() / 1e6
}

/// Total throughput of all flows in Mbit/s.
pub(super) fn aggregate(run: &RunResult) -> f64 {
    run.flows.iter().map(|flow| throughput(run, flow)).sum()
}

/// Throughput of each run in Mbit/s.
pub(super) fn rates(runs: &[RunResult]) -> Vec<f64> {
    runs.iter().map(aggregate).collect()
}

/// The maximum.
pub(super) fn maximum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_engine::network::LinkId;
    use bentpipe_study::topology;

    #[test]
    fn round_trips_as_the_paper_pings_them() {
        for (place, millis) in [(Place::Lan, 0.1), (Place::Wan, 39.0)] {
            for scenario in [alone(place), congested(place, Load::Full, &[])] {
                let (there, back) = topology::flow_paths(&scenario, &scenario.flows[0]).expect("joined");
                let delay = |path: &[LinkId]| topology::facts(&scenario, path, 9180).delay.as_secs_f64();
                assert!((1e3 * (delay(&there) + delay(&back)) - millis).abs() < 1e-9, "{place:?}");
            }
        }
        // Over the satellite the processors' 4 * 62 us are part of the 534 ms; the switches' 4 * 6 us are in the links.
        for scenario in [alone(Place::Satellite), congested(Place::Satellite, Load::Full, &[])] {
            let (there, back) = topology::flow_paths(&scenario, &scenario.flows[0]).expect("joined");
            let delay = |path: &[LinkId]| topology::facts(&scenario, path, 9180).delay.as_secs_f64();
            assert!((1e3 * (delay(&there) + delay(&back)) + 0.248 - 534.0).abs() < 1e-9);
        }
    }

    /// The channels share the cells of the experiments' switches. In the simulation of scenario 3, each has its own.
    #[test]
    fn the_buffers_are_those_of_the_experiment_or_of_the_simulation() {
        use bentpipe_engine::link::Sharing;
        let sharing = |scenario: &Scenario| {
            let sat = scenario.links.iter().find(|link| link.name == "sat/forward").expect("a link of the world");
            sat.config.cells.as_ref().expect("in cells").sharing
        };
        assert_eq!(sharing(&congested(Place::Satellite, Load::Full, &[])), Sharing::PerChannel);
        for place in Place::ALL {
            assert_eq!(sharing(&measured(place, Load::Full, &[])), Sharing::Shared, "{place:?}");
        }
    }

    #[test]
    fn shaped_sources_share_the_load() {
        let text = congested(Place::Wan, Load::Written(105.0), &[]).to_toml();
        assert_eq!(text.matches("rate = \"35 Mbit/s\"").count(), 3, "{text}");
        // 35 Mbit/s of payload are 35 * 10176 / 9140 Mbit/s of cells.
        let text = congested(Place::Wan, Load::Shaped(105.0), &[]).to_toml();
        assert!(
            text.contains("line = \"38967177 bit/s\"")
                || text.contains("line = \"38967.177 kbit/s\"")
                || text.contains("line = \"38.967177 Mbit/s\""),
            "{text}"
        );
    }
}
