//! Variations that test why published statistics of tables 3 to 14 are outside our ranges: each changes one setting and
//! counts the statistics inside. The tables of `studies/transat/README.md` come from
//!
//!     cargo test -p bentpipe-papers --lib transat::experiments -- --ignored --nocapture
//!
//! They take some 15 minutes on one core. The count is made as in `replicated`, from 200 runs per column.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_engine::NoProbe;
use bentpipe_engine::link::{ChannelConfig, Distribution, ExtraDelay};
use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::Daass as Quick;
use bentpipe_engine::units::Duration;
use bentpipe_sim::{RunResult, Timers, in_parallel, run_with};
use bentpipe_study::scenario::{FlowKind, Scenario};
use bentpipe_study::stats::{Interval, Sample, Subsets};

use super::counted::{LEVEL, Side};
use super::replicated::{Pick, STATISTICS, picked, plan, side, statistics};
use super::setting::{Setting, bottleneck};
use super::variant::Variant;
use crate::published::TRANSAT_TABLES;

/// Replications per statistic.
const RUNS: u64 = 200;

/// The change of an experiment.
enum Change {
    /// As `--set`, in each column.
    Set(&'static [(&'static str, &'static str)]),
    /// As `--set`, if DAASS is on.
    Daass(&'static str),
    /// As `--set` below the queue of the satellite link, if RED is on.
    Red(&'static [(&'static str, &'static str)]),
    /// Seconds between bursts.
    Gap(Distribution),
    /// Length of bursts.
    Burst(Distribution),
    /// Extra delay in bursts with imitated S-LACP, milliseconds.
    Extra(u64),
    /// Four flows start within this time in milliseconds.
    Starts(u16),
}

use Change::{Burst, Daass, Extra, Gap, Red, Set, Starts};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Exponential with this mean, clipped to these bounds, milliseconds.
const fn clipped(mean: u64, min: u64, max: u64) -> Distribution {
    Distribution::ExponentialClipped { mean: ms(mean), min: ms(min), max: ms(max) }
}

const fn truncated(mean: u64, min: u64, max: u64) -> Distribution {
    Distribution::ExponentialTruncated { mean: ms(mean), min: ms(min), max: ms(max) }
}

const fn access(delay: &'static str) -> [(&'static str, &'static str); 2] {
    [("links.access.delay", delay), ("links.far-access.delay", delay)]
}

const QUEUE: &str = "links.sat.forward.queue.limit";
const AT_8_MS: [(&str, &str); 2] = access("8 ms");
const AT_12_MS: [(&str, &str); 2] = access("12 ms");

const EXPERIMENTS: &[(&str, Change)] = &[
    ("as shipped", Set(&[])),
    ("bursts: 0.1 s each", Burst(Distribution::Fixed(ms(100)))),
    ("bursts: mean 0.1 s before clipping", Burst(clipped(100, 100, 500))),
    ("bursts: mean 0.25 s before clipping", Burst(clipped(250, 100, 500))),
    ("bursts: mean 0.25 s, truncated", Burst(truncated(250, 100, 500))),
    ("bursts: uniform, 0.1 to 0.5 s", Burst(Distribution::Uniform(ms(100), ms(500)))),
    ("gaps: uniform, 1 to 20 s", Gap(Distribution::Uniform(ms(1000), ms(20_000)))),
    ("gaps: uniform, 1 to 30 s", Gap(Distribution::Uniform(ms(1000), ms(30_000)))),
    ("gaps: uniform, 5 to 10 s", Gap(Distribution::Uniform(ms(5000), ms(10_000)))),
    ("gaps: exponential, mean 5.5 s, clipped to 1 to 10 s", Gap(clipped(5500, 1000, 10_000))),
    ("gaps: exponential, mean 10 s, clipped to 1 to 10 s", Gap(clipped(10_000, 1000, 10_000))),
    ("extra delay 0 ms", Extra(0)),
    ("extra delay 275 ms", Extra(275)),
    ("RTO: tick 0.1 s", Set(&[("tcp.rto.tick", "100 ms")])),
    ("RTO: min 0.2 s", Set(&[("tcp.rto.min", "200 ms")])),
    ("RTO: min 2 s", Set(&[("tcp.rto.min", "2 s")])),
    ("RTO: first 3 s", Set(&[("tcp.rto.initial", "3 s")])),
    ("queue: 45 wait", Set(&[(QUEUE, "45 packets")])),
    ("queue: 48 wait", Set(&[(QUEUE, "48 packets")])),
    ("queue: 50 wait", Set(&[(QUEUE, "50 packets")])),
    ("access links: 8 ms", Set(&AT_8_MS)),
    ("access links: 12 ms", Set(&AT_12_MS)),
    ("four flows start within 0.1 s", Starts(100)),
    ("four flows start within 1 s", Starts(1000)),
    ("DAASS: 9 segments, or 10 with the SYN", Daass("9 segments")),
    ("DAASS: 11 segments", Daass("11 segments")),
    ("DAASS: 12 segments", Daass("12 segments")),
    ("DAASS: 20 segments", Daass("20 segments")),
    ("DAASS: until the first gap", Daass("slow-start")),
];

/// Settings of RED: thresholds, weight and max probability. The first is the shipped one, ns-2's default.
const RED: &[(&str, Change)] = &[
    ("5/15, weight 2.6e-4", Red(&[])),
    ("5/15, 0.002", Red(&[("weight", "0.002")])),
    ("5/15, 0.02", Red(&[("weight", "0.02")])),
    ("5/15, 0.002, 2 % at most", Red(&[("weight", "0.002"), ("max_probability", "2 %")])),
    ("5/40, 0.01", Red(&[("weight", "0.01"), ("max_threshold", "40 packets")])),
    ("10/30, 0.002", Red(&[("weight", "0.002"), ("min_threshold", "10 packets"), ("max_threshold", "30 packets")])),
    ("12/37, 0.002", Red(&[("weight", "0.002"), ("min_threshold", "12 packets"), ("max_threshold", "37 packets")])),
    ("12/37, 0.05", Red(&[("weight", "0.05"), ("min_threshold", "12 packets"), ("max_threshold", "37 packets")])),
    ("25/50, 0.05", Red(&[("weight", "0.05"), ("min_threshold", "25 packets"), ("max_threshold", "50 packets")])),
];

fn scenario(setting: Setting, variant: Variant, change: &Change) -> Scenario {
    let own = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect::<Vec<_>>();
    let quick = matches!(variant, Variant::RefDaass | Variant::Enh | Variant::EnhRed);
    let with_red = matches!(variant, Variant::RefRed | Variant::EnhRed);
    let set = match change {
        Set(pairs) => own(pairs),
        Daass(segments) if quick => own(&[("tcp.ack.daass", segments)]),
        Red(pairs) if with_red => {
            pairs.iter().map(|(k, v)| (format!("links.sat.forward.queue.{k}"), (*v).to_owned())).collect()
        }
        _ => Vec::new(),
    };
    let setting = if let Starts(within) = change { setting.with_starts_within(*within) } else { setting };
    let mut scenario = setting.with_variant(variant).scenario_with(&set);
    let link = &mut bottleneck(&mut scenario).config;
    match (change, &mut link.channel) {
        (Gap(wanted), ChannelConfig::OnOff { gap, .. }) => *gap = *wanted,
        (Burst(wanted), ChannelConfig::OnOff { burst, .. }) => *burst = *wanted,
        (Extra(wanted), _) if link.extra_delay.0 > Duration::ZERO => link.extra_delay = ExtraDelay(ms(*wanted)),
        _ => {}
    }
    scenario
}

fn runs(scenario: &Scenario, count: u64) -> Vec<RunResult> {
    let run = |seed| run_with(&scenario.with_seed(seed), seed, &mut NoProbe, Timers::Lazy, |_| true);
    in_parallel((1..=count).collect(), 0, run).expect("the settings can be run")
}

fn median(times: Vec<f64>) -> f64 {
    Sample::new(times).expect("transfers that end").median()
}

/// The counts inside, slower and faster for each table, and the medians of Ref_DAASS.
fn count(change: &Change) -> (Vec<[usize; 3]>, Vec<f64>) {
    let (mut sides, mut daass) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<(String, Variant), Vec<RunResult>> = BTreeMap::new();
    for table in 3..=14 {
        let (plan, pick) = plan(table);
        let mut of_table = [0; 3];
        for variant in Variant::ALL {
            let made = || runs(&scenario(plan.clone(), variant, change), RUNS);
            let results = known.entry((plan.to_string(), variant)).or_insert_with(made);
            let units: Vec<Vec<f64>> = results.iter().map(|run| picked(run, pick)).collect();
            if variant == Variant::RefDaass {
                daass.push(median(units.concat()));
            }
            let subsets = Subsets { population: units.len(), size: TRANSAT_TABLES.replications, draws: 500 };
            let of = |drawn: &[usize]| drawn.iter().flat_map(|&n| units[n].iter().copied()).collect();
            let ranges: [Interval; 7] = subsets
                .ranges(LEVEL, &mut Stream::named(1, "transat/samples"), |drawn| {
                    statistics(of(drawn), plan.kilobytes_per_flow())
                })
                .expect("units");
            for (n, statistic) in STATISTICS.iter().enumerate() {
                let paper = TRANSAT_TABLES.cell(table, statistic, variant.key()).expect("a full table");
                of_table[side(paper, ranges[n], n) as usize] += 1;
            }
        }
        sides.push(of_table);
    }
    (sides, daass)
}

#[test]
#[ignore = "takes minutes; prints the README's table"]
fn counts() {
    println!(
        "| varied | inside | slower | faster | per table, 3 to 14 | medians of DAASS |\n|---|---:|---:|---:|---|---|"
    );
    for (name, change) in EXPERIMENTS {
        let (sides, daass) = count(change);
        let sum = |side: Side| sides.iter().map(|of| of[side as usize]).sum::<usize>();
        let inside: Vec<_> = sides.iter().map(|of| of[0].to_string()).collect();
        let daass: Vec<_> = daass.iter().map(|m| format!("{m:.1}")).collect();
        let [inside_all, slower, faster] = [Side::Inside, Side::Slower, Side::Faster].map(sum);
        println!("| {name} | {inside_all} | {slower} | {faster} | {} | {} |", inside.join(" "), daass.join(" "));
    }
}

#[test]
#[ignore = "takes minutes; prints the README's table"]
fn settings_of_red() {
    println!("| RED | table 2, slowest | table 6, all | table 8, slowest | table 12, all |\n|---|---:|---:|---:|---:|");
    for (name, change) in RED {
        let gain = |setting: Setting, pick, count| {
            let of = |variant| {
                let runs = runs(&scenario(setting.clone(), variant, change), count);
                median(runs.iter().flat_map(|run| picked(run, pick)).collect())
            };
            of(Variant::EnhRed) - of(Variant::Enh)
        };
        let single = gain(Setting::four_flows().with_cbr(800), Pick::Slowest, 20);
        let tables = [6, 8, 12].map(|table| {
            let (setting, pick) = plan(table);
            format!("{:+.2}", gain(setting, pick, RUNS))
        });
        println!("| {name} | {single:+.2} | {} |", tables.join(" | "));
    }
}

#[test]
#[ignore = "takes a minute; prints the README's table"]
fn ten_megabytes() {
    for (name, change) in EXPERIMENTS.iter().filter(|(_, change)| matches!(change, Burst(_) | Gap(_) | Set([]))) {
        let medians = Variant::WITHOUT_RED.iter().map(|&variant| {
            let setting = Setting::one_flow().with_segments(10_417).with_bursts(100, 0);
            let runs = runs(&scenario(setting, variant, change), 20);
            format!("{:.0}", median(runs.iter().flat_map(|run| picked(run, Pick::All)).collect()))
        });
        println!("| {name} | {} |", medians.collect::<Vec<_>>().join(" | "));
    }
}

/// Start-up settings that the paper leaves open, drawn for each scenario.
struct StartUp {
    set: Vec<(String, String)>,
    daass: u32,
    starts: [Duration; 4],
    cbr: Duration,
    syn_ack_waits: bool,
}

impl StartUp {
    fn drawn(world: u64, table: u8, variant: Variant) -> StartUp {
        let mut stream = Stream::named(world, "world");
        let mut pick = |of: &[f64]| of[((stream.uniform() * of.len() as f64) as usize).min(of.len() - 1)];
        let (access, queue, daass) =
            (pick(&[8.0, 9.0, 10.0, 11.0, 12.0]), pick(&[48.0, 49.0, 50.0]), pick(&[9.0, 10.0, 11.0]));
        // The CBR up to 5 s before the transfers, or 1 s after them.
        let cbr = pick(&[-5.0, -2.0, -1.0, -0.5, -0.1, -0.003, 0.0, 0.003, 0.1, 0.5, 1.0]);
        let (packet, from, syn) = (pick(&[1000.0, 1000.0, 500.0]), pick(&[0.0, 1.0]), pick(&[0.0, 1.0]));
        let within = pick(&[0.0, 0.01, 0.1, 0.5]);
        let earliest = if table > 5 { f64::max(0.0, -cbr) } else { 0.0 };
        let within = if table > 5 { within } else { 0.0 };
        let red = matches!(variant, Variant::RefRed | Variant::EnhRed);
        let mut set = vec![
            ("links.access.delay".to_owned(), format!("{access} ms")),
            ("links.far-access.delay".to_owned(), format!("{access} ms")),
            (QUEUE.to_owned(), format!("{} packets", queue + f64::from(u8::from(red)))),
        ];
        if table > 5 {
            set.push(("flows.cbr.packet".to_owned(), format!("{packet} B")));
            set.push(("flows.cbr.from".to_owned(), if from > 0.5 { "SN1" } else { "H1" }.to_owned()));
        }
        StartUp {
            set,
            daass: daass as u32,
            starts: std::array::from_fn(|_| seconds(earliest + within * stream.uniform())),
            cbr: seconds(earliest + cbr.max(-earliest)),
            syn_ack_waits: syn > 0.5,
        }
    }

    fn scenario(&self, setting: &Setting, variant: Variant, extra: Option<u64>) -> Scenario {
        let mut scenario = setting.clone().with_variant(variant).scenario_with(&self.set);
        let mut starts = self.starts.iter();
        for flow in &mut scenario.flows {
            let FlowKind::Tcp(tcp) = &mut flow.kind else {
                flow.start = self.cbr;
                continue;
            };
            let tcp = Arc::make_mut(tcp);
            flow.start = *starts.next().expect("four flows at most");
            tcp.receiver.shortcuts.ns2_delayed_syn_ack = self.syn_ack_waits;
            if tcp.receiver.ack.daass != Quick::Off {
                tcp.receiver.ack.daass = Quick::FirstSegments(self.daass);
            }
        }
        let link = &mut bottleneck(&mut scenario).config;
        if let Some(extra) = extra.filter(|_| link.extra_delay.0 > Duration::ZERO) {
            link.extra_delay = ExtraDelay(ms(extra));
        }
        scenario
    }
}

fn seconds(of: f64) -> Duration {
    Duration::from_micros((of * 1e6).round() as u64)
}

/// Counts the published statistics inside the middle 90 % of those of sixty scenarios with different start-ups, 20 runs
/// each.
#[test]
#[ignore = "takes minutes; prints the README's line"]
fn start_ups() {
    for (name, extra) in [("550 ms", None), ("275 ms", Some(275))] {
        let mut values: BTreeMap<(u8, Variant), Vec<[f64; 7]>> = BTreeMap::new();
        for world in 0..60 {
            let mut known: BTreeMap<(String, Variant), Vec<RunResult>> = BTreeMap::new();
            for (table, variant) in (3..=14).flat_map(|table| Variant::ALL.map(|variant| (table, variant))) {
                let (plan, pick) = plan(table);
                let results = known.entry((plan.to_string(), variant)).or_insert_with(|| {
                    let scenario = StartUp::drawn(world, table, variant).scenario(&plan, variant, extra);
                    let run = |seed| run_with(&scenario.with_seed(seed), seed, &mut NoProbe, Timers::Lazy, |_| true);
                    in_parallel((1 + world * 20..=20 + world * 20).collect(), 0, run).expect("the worlds can be run")
                });
                let times = results.iter().flat_map(|run| picked(run, pick)).collect();
                values.entry((table, variant)).or_default().push(statistics(times, plan.kilobytes_per_flow()));
            }
        }
        let mut sides = [0; 3];
        for ((table, variant), worlds) in &values {
            for (n, statistic) in STATISTICS.iter().enumerate() {
                let of = Sample::new(worlds.iter().map(|world| world[n]).collect()).expect("sixty worlds");
                let range = Interval { low: of.quantile(0.05), high: of.quantile(0.95), confidence: LEVEL };
                let paper = TRANSAT_TABLES.cell(*table, statistic, variant.key()).expect("a full table");
                sides[side(paper, range, n) as usize] += 1;
            }
        }
        println!("start-ups drawn, extra delay {name}: {} inside, {} slower, {} faster", sides[0], sides[1], sides[2]);
    }
}

#[test]
fn each_experiment_changes_something() {
    let (setting, _) = plan(9);
    let made = |change: &Change| [Variant::Enh, Variant::EnhRed].map(|of| scenario(setting.clone(), of, change));
    let base = made(&Set(&[]));
    for (name, change) in EXPERIMENTS.iter().chain(RED) {
        let shipped = matches!(change, Set([]) | Red([]));
        assert_eq!(made(change) == base, shipped, "{name}");
        for scenario in made(change) {
            assert_eq!(scenario.flows.iter().filter(|flow| matches!(flow.kind, FlowKind::Tcp(_))).count(), 4, "{name}");
        }
    }
}
