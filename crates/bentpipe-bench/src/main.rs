//! `make bench`: compares our cases with the peers' on one core, as ratios measured in one run. Writes `bench.json`.

mod cases;
mod measure;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunResult, replicate, run};
use bentpipe_study::scenario::Scenario;
use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::measure::{Paired, instructions, paired, stay_on_one_core};

/// A row of `bench.json`. `ratio` is above 1 where `ours` is better than `peer`.
#[derive(Clone, Debug, Serialize)]
struct Entry {
    name: String,
    ours: f64,
    peer: Option<f64>,
    ratio: Option<f64>,
    unit: &'static str,
}

#[derive(Parser)]
#[command(about = "Times the simulator beside its peers; without a command: everything, into bench.json")]
struct Arguments {
    /// Output file
    #[arg(long, default_value = "bench.json")]
    out: PathBuf,
    /// Pairs of runs per comparison
    #[arg(long, default_value_t = 11)]
    pairs: usize,
    /// The peers' Tcl script
    #[arg(long, default_value = "crates/bentpipe-bench/peers/ns2_geo.tcl")]
    script: PathBuf,
    #[command(subcommand)]
    command: Option<Case>,
}

#[derive(Clone, Subcommand)]
enum Case {
    /// One flow of 1 GB over 100 Mbit/s of GEO
    FatFlow,
    /// 100 flows over 155 Mbit/s of GEO for 60 s
    HundredFlows,
    /// One of these two with another row of the table of variants
    Row {
        /// The row
        variant: String,
        /// The 100 flows, not the one
        #[arg(long)]
        hundred: bool,
    },
    /// 2 GB over 155 Mbit/s of GEO by this many flows
    Flows {
        /// Number of flows
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        /// Seconds within which they start
        #[arg(long, default_value_t = 120)]
        within: u32,
    },
    /// The cost per packet with 50 000 flows over that with 100
    ManyFlows,
    /// Three full OC-3c lines into one, cell by cell, for 60 s
    Cells,
    /// S-LACP at 1 % loss, with this many packets in flight
    Layer {
        /// Packets in flight
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        packets: u32,
        /// Datagrams to send
        datagrams: u64,
    },
    /// The burst-loss sender with this window
    Burst {
        /// Packets in flight
        packets: u32,
        /// Segments to send
        segments: u64,
    },
    /// A flow with this window
    Window {
        /// Packets in flight
        packets: u32,
        /// Segments to send
        segments: u64,
    },
}

fn scenario(case: Case) -> Scenario {
    match case {
        Case::FatFlow => cases::one_fat_flow(),
        Case::HundredFlows => cases::hundred_flows(),
        Case::Row { variant, hundred } => cases::row(&variant, hundred),
        Case::ManyFlows => cases::many_flows(50_000, 120),
        Case::Flows { count, within } => cases::many_flows(count, within),
        Case::Cells => cases::three_lines_of_cells(),
        Case::Layer { packets, datagrams } => cases::layer_with(packets, datagrams),
        Case::Burst { packets, segments } => cases::burst_window_of(packets, segments),
        Case::Window { packets, segments } => cases::window_of(packets, segments),
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Case::ManyFlows) => flows(&mut Vec::new())?,
        Some(case) => report(&run(&scenario(case), 1, &mut NoProbe)?),
        None => everything(&arguments)?,
    }
    Ok(())
}

/// One line on the work of a run, so that times of equal work are compared.
fn report(result: &RunResult) {
    let sent: u64 = result.flows.iter().map(|f| f.stats.data_segments).sum();
    let resent: u64 = result.flows.iter().map(|f| f.stats.retransmits).sum();
    let delivered: u64 = result.flows.iter().map(|f| f.delivered).sum();
    let seconds = result.end.as_secs_f64();
    println!(
        "sim={seconds:.3} sent_pk={sent} rexmit={resent} goodput={:.2} Mbit/s events={}",
        delivered as f64 * 8.0 / seconds / 1e6,
        result.events
    );
}

fn everything(arguments: &Arguments) -> Result<()> {
    stay_on_one_core();
    let me = std::env::current_exe().context("cannot find this program")?;
    let ours = |words: &[&str]| {
        let mut command = Command::new(&me);
        command.args(words);
        command
    };
    let ns2 = |words: &str| {
        let mut command = Command::new("ns");
        command.arg(&arguments.script).args(words.split(' '));
        command
    };
    let mut entries = Vec::new();
    let versus = |name: &str, ours: Command, peer: Command, entries: &mut Vec<Entry>| -> Result<()> {
        let Paired { ours, peer, ratio } = paired(ours, peer, arguments.pairs).with_context(|| name.to_owned())?;
        println!("{name:<24} ours {ours:.3} s, ns-2 {peer:.3} s of CPU: {ratio:.2} x");
        entries.push(Entry { name: name.to_owned(), ours, peer: Some(peer), ratio: Some(ratio), unit: "s of CPU" });
        Ok(())
    };
    versus("geo-1gb-vs-ns2", ours(&["fat-flow"]), ns2("100 100000 1 684932 0 sack1 5480"), &mut entries)?;
    versus("geo-100flows-vs-ns2", ours(&["hundred-flows"]), ns2("155 6600 100 0 60 sack1 2740"), &mut entries)?;
    throughput(&mut entries)?;
    rows(&ours, arguments.pairs, &mut entries)?;
    windows(&ours, arguments.pairs, &mut entries)?;
    flows(&mut entries)?;
    cells(&mut entries)?;
    table_3(&mut entries)?;
    counts(&ours, &mut entries)?;
    write(&arguments.out, &entries)
}

/// Data packets per CPU-second over the three hops, for the two cases.
fn throughput(entries: &mut Vec<Entry>) -> Result<()> {
    for (name, case) in [("geo-1gb-packets", Case::FatFlow), ("geo-100flows-packets", Case::HundredFlows)] {
        let scenario = scenario(case);
        let mut best = 0.0f64;
        for _ in 0..5 {
            let before = measure::cpu_seconds_of_self()?;
            let result = run(&scenario, 1, &mut NoProbe)?;
            let seconds = measure::cpu_seconds_of_self()? - before;
            let packets: u64 = result.flows.iter().map(|f| f.stats.data_segments).sum();
            best = best.max(packets as f64 / seconds / 1e6);
        }
        println!("{name:<24} {best:.2} million data packets per CPU-second");
        entries.push(Entry {
            name: name.to_owned(),
            ours: best,
            peer: None,
            ratio: None,
            unit: "million packets per CPU-second",
        });
    }
    Ok(())
}

/// Packets per CPU-second of the rows with RACK, PRR and CUBIC, as a fraction of those of `sack`: 1 GB without a loss, for which all rows
/// send the same packets.
fn rows(ours: &impl Fn(&[&str]) -> Command, pairs: usize, entries: &mut Vec<Entry>) -> Result<()> {
    for variant in ["rack", "cubic", "linux-cubic"] {
        let name = format!("{variant}-vs-sack");
        let Paired { ours, peer, ratio } =
            paired(ours(&["row", variant]), ours(&["row", "sack"]), pairs).with_context(|| name.clone())?;
        println!("{name:<24} {ours:.3} s of CPU, {peer:.3} s with `sack`: {ratio:.2} of its packets per CPU-second");
        entries.push(Entry { name, ours, peer: Some(peer), ratio: Some(ratio), unit: "s of CPU" });
    }
    Ok(())
}

/// Cost per packet with many packets in flight over that with 100: 1 is flat.
fn windows(ours: &impl Fn(&[&str]) -> Command, pairs: usize, entries: &mut Vec<Entry>) -> Result<()> {
    // S-LACP's window ends at 65 535 frames.
    for (name, case, max) in [
        ("window-100k-vs-100", "window", "100000"),
        ("burst-window-50k-vs-100", "burst", "50000"),
        ("slacp-window-50k-vs-100", "layer", "50000"),
    ] {
        let packets = "3000000";
        let small = ours(&[case, "100", packets]);
        let large = ours(&[case, max, packets]);
        let Paired { ours, peer, ratio } = paired(large, small, pairs).with_context(|| name.to_owned())?;
        let cost = 1.0 / ratio;
        println!("{name:<24} {ours:.3} s with {max} packets in flight, {peer:.3} s with 100: {cost:.2} x");
        entries.push(Entry { name: name.to_owned(), ours, peer: Some(peer), ratio: Some(ratio), unit: "s of CPU" });
    }
    Ok(())
}

/// Cost per packet with 50 000 flows over that with 100, for all packets sent, including those that open and close
/// connections: 1 is flat.
fn flows(entries: &mut Vec<Entry>) -> Result<()> {
    let per_packet = |count: u32| -> Result<f64> {
        let scenario = scenario(Case::Flows { count, within: 120 });
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let before = measure::cpu_seconds_of_self()?;
            let result = run(&scenario, 1, &mut NoProbe)?;
            let seconds = measure::cpu_seconds_of_self()? - before;
            // Packets that enter the network, at the first link of either direction.
            best = best.min(seconds / (result.links[0].offered + result.links[5].offered) as f64 * 1e9);
        }
        Ok(best)
    };
    let (few, many) = (per_packet(100)?, per_packet(50_000)?);
    let cost = many / few;
    println!("{:<24} {many:.0} ns a packet with 50 000 flows, {few:.0} with 100: {cost:.2} x", "flows-50k-vs-100");
    entries.push(Entry {
        name: "flows-50k-vs-100".to_owned(),
        ours: many,
        peer: Some(few),
        ratio: Some(few / many),
        unit: "ns of CPU per packet",
    });
    Ok(())
}

/// A minute of three OC-3c lines into one, cell by cell.
fn cells(entries: &mut Vec<Entry>) -> Result<()> {
    let scenario = scenario(Case::Cells);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let before = measure::cpu_seconds_of_self()?;
        run(&scenario, 1, &mut NoProbe)?;
        best = best.min(measure::cpu_seconds_of_self()? - before);
    }
    println!("{:<24} {best:.3} s of CPU for a minute of three full OC-3c lines into one", "atm-minute");
    entries.push(Entry { name: "atm-minute".to_owned(), ours: best, peer: None, ratio: None, unit: "s of CPU" });
    Ok(())
}

/// As many runs as the transat paper's table 3 has: 8 variants, 20 replications. The two with RED are run without it.
fn table_3(entries: &mut Vec<Entry>) -> Result<()> {
    let text = include_str!("../../../scenarios/transat-bursts.toml");
    let base = Scenario::parse(text, "transat-bursts.toml", &[]).map_err(|e| anyhow::anyhow!(e.render(false)))?;
    let start = std::time::Instant::now();
    let mut runs = 0;
    for variant in ["ref", "ref-iw4", "ref-daass", "sack", "sack-lt", "enh", "ref", "enh"] {
        runs += replicate(&base.with_variant(variant)?, 1..21, 1, |_| ())?.len();
    }
    if runs != 160 {
        bail!("{runs} runs instead of 160");
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:<24} {seconds:.3} s for 160 runs on one core", "transat-table-3");
    entries.push(Entry { name: "transat-table-3".to_owned(), ours: seconds, peer: None, ratio: None, unit: "s" });
    Ok(())
}

/// Instructions per data packet: the same on every run, so that commits can be compared.
fn counts(ours: &impl Fn(&[&str]) -> Command, entries: &mut Vec<Entry>) -> Result<()> {
    // The difference of two lengths excludes the start of the program and of the transfer.
    for window in ["100", "10000"] {
        let of = |segments: &str| instructions(ours(&["window", window, segments]));
        let (short, long) = match (of("100000"), of("300000")) {
            (Ok(short), Ok(long)) => (short, long),
            (Err(error), _) | (_, Err(error)) => {
                println!("instructions-per-packet  not counted: {error:#}");
                return Ok(());
            }
        };
        let per_packet = (long - short) as f64 / 200_000.0;
        println!("{:<24} {per_packet:.1} instructions per data packet, window {window}", "instructions-per-packet");
        entries.push(Entry {
            name: format!("instructions-window-{window}"),
            ours: per_packet,
            peer: None,
            ratio: None,
            unit: "instructions per packet",
        });
    }
    Ok(())
}

fn write(path: &std::path::Path, entries: &[Entry]) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    let mut file =
        tempfile::NamedTempFile::new_in(folder).with_context(|| format!("cannot write in {}", folder.display()))?;
    serde_json::to_writer_pretty(&mut file, entries)?;
    writeln!(file)?;
    file.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written to {}", path.display());
    Ok(())
}
