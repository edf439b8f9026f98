//! Compares with ns-2: completion times within 0.001 %, counts of retransmissions and timeouts exact.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use bentpipe_engine::NoProbe;
use bentpipe_engine::stream::Stream;
use bentpipe_engine::units::Time;
use bentpipe_sim::{FlowResult, run};

use crate::reference::{self, Row};
use crate::show::Show;

/// Only constants are rounded differently: delays to 2^-43 s there, to 1/64 ns here, and each transmission up to 1/64
/// ns. A packet has at most 12 of them per round trip of 20 ms or more: one part in 10^7. A delayed ACK too early or
/// too late moves a time by 0.1 s, a thousandth of the longest runs.
const TOLERANCE: f64 = 0.00001;

/// The start time of scenarios in `ns`. Its clock is a double: from 512 s to 1024 s the last digit has a constant
/// weight, 2^-43 s. So a delay is always rounded to the same amount, and ties in real numbers are ties in `ns`. From 0
/// on, the weight doubles at 1, 2, 4, 8 s and so on, and rounding breaks ties across such an instant.
pub(crate) const EPOCH: f64 = 512.0;

/// The share of random flows that must agree.
const SHARE: f64 = 0.97;
/// Reruns of `ns` if a flow differs.
const MOVES: u32 = 20;

/// The numbers that are compared.
#[derive(Clone, Copy, Debug)]
struct Figures {
    t_ack: f64,
    t_rx: f64,
    sent: u64,
    retransmits: u64,
    timeouts: u64,
    cuts: u64,
}

impl Figures {
    fn of_row(row: &Row) -> Self {
        Figures {
            t_ack: row.t_ack_s,
            t_rx: row.t_rx_s,
            sent: row.data_pkts_sent,
            retransmits: row.retransmits,
            timeouts: row.timeouts,
            cuts: row.window_cuts,
        }
    }

    fn of_run(flow: &FlowResult) -> Self {
        let since = |at: Option<Time>| at.map_or(f64::NAN, |at| (at - flow.start).as_secs_f64());
        Figures {
            t_ack: since(flow.acked_at),
            t_rx: since(flow.received_at),
            sent: flow.stats.data_segments,
            retransmits: flow.stats.retransmits,
            timeouts: flow.stats.timeouts,
            cuts: flow.stats.timeouts + flow.stats.fast_retransmits,
        }
    }

    /// True if they agree: times within the tolerance, counts exactly.
    fn agrees(&self, other: &Figures) -> bool {
        let close = |a: f64, b: f64| (a / b - 1.0).abs() <= TOLERANCE;
        close(self.t_ack, other.t_ack)
            && close(self.t_rx, other.t_rx)
            && self.sent == other.sent
            && self.retransmits == other.retransmits
            && self.timeouts == other.timeouts
    }
}

/// Compares every row, then the real `ns` on a sample. Returns true if all agree.
pub(crate) fn validate(table: &Path, rerun: usize, script: &Path) -> Result<bool> {
    let scenarios = reference::read(table)?;
    println!(
        "{:<18} {:>4}  {:>10} {:>10} {:>8} {:>8}  {:>11} {:>8} {:>6} {:>6}",
        "scenario", "flow", "ns-2 t_rx", "ours", "rx %", "ack %", "retransmits", "timeouts", "cuts", "drops"
    );
    let (mut good, mut total, mut worst) = (0, 0, 0.0f64);
    for rows in &scenarios {
        let scenario = reference::scenario(rows)?;
        let result = run(&scenario, 1, &mut NoProbe)?;
        for (row, flow) in rows.iter().zip(&result.flows) {
            let (theirs, ours) = (Figures::of_row(row), Figures::of_run(flow));
            let agrees = ours.agrees(&theirs);
            let drops = result.links[1].dropped_full;
            print_row(row, &theirs, &ours, drops, agrees);
            good += agrees as usize;
            total += 1;
            worst = worst.max((ours.t_ack / theirs.t_ack - 1.0).abs()).max((ours.t_rx / theirs.t_rx - 1.0).abs());
        }
    }
    let rerun_agrees = if rerun > 0 { rerun_sample(&scenarios, rerun, script)? } else { true };
    println!(
        "{good} of {total} rows agree (times within {} %, retransmissions and timeouts exact); worst time {:.3} % off",
        TOLERANCE * 100.0,
        worst * 100.0
    );
    Ok(good == total && rerun_agrees)
}

fn print_row(row: &Row, theirs: &Figures, ours: &Figures, drops: u64, agrees: bool) {
    let pair = |a: u64, b: u64| if a == b { format!("{a}") } else { format!("{a}/{b}") };
    println!(
        "{:<18} {:>4}  {:>10.4} {:>10.4} {:>+8.3} {:>+8.3}  {:>11} {:>8} {:>6} {:>6}{}",
        row.id,
        row.flow,
        theirs.t_rx,
        ours.t_rx,
        (ours.t_rx / theirs.t_rx - 1.0) * 100.0,
        (ours.t_ack / theirs.t_ack - 1.0) * 100.0,
        pair(theirs.retransmits, ours.retransmits),
        pair(theirs.timeouts, ours.timeouts),
        pair(theirs.cuts, ours.cuts),
        pair(row.queue_overflow_drops, drops),
        if agrees { "" } else { "  DIFFERS" }
    );
}

/// Prints the events of one scenario of the table.
pub(crate) fn show(table: &Path, id: &str) -> Result<bool> {
    let scenarios = reference::read(table)?;
    let rows = scenarios.iter().find(|rows| rows[0].id == id);
    let rows = rows.with_context(|| format!("{}: no scenario \"{id}\"", table.display()))?;
    let mut show = Show { payload: rows[0].payload as u64, syn: rows[0].syn_exchange != 0 };
    run(&reference::scenario(rows)?, 1, &mut show)?;
    Ok(true)
}

/// Counts of the comparison so far.
#[derive(Default)]
struct Tally {
    flows: usize,
    agree: usize,
    /// How many of the others equal ours in `ns` when start times are moved slightly.
    edges: usize,
}

/// Runs `ns` and bentpipe on the scenarios of round numbers and on `count` random ones, which start at `epoch` in `ns`.
/// Returns true if enough flows agree, and each of the others is sensitive to tiny shifts in `ns` itself.
pub(crate) fn explore(count: u64, seed: u64, epoch: f64, script: &Path) -> Result<bool> {
    let (mut round, mut drawn) = (Tally::default(), Tally::default());
    for rows in crate::draw::round() {
        compare(&rows, epoch, script, &mut round)?;
    }
    println!("{} of {} flows of round numbers agree with ns itself", round.agree, round.flows);
    for n in 0..count {
        compare(&crate::draw::scenario(seed, n), epoch, script, &mut drawn)?;
    }
    let others = drawn.flows - drawn.agree;
    println!(
        "{} of {} flows of {count} drawn scenarios agree with ns itself ({:.1} %, seed {seed}), {} of the other {others} with ns \
         after its start times were moved by 1 ns to 1 us (times within {} %, counts exact)",
        drawn.agree,
        drawn.flows,
        drawn.agree as f64 / drawn.flows.max(1) as f64 * 100.0,
        drawn.edges,
        TOLERANCE * 100.0,
    );
    let enough = drawn.agree as f64 >= SHARE * drawn.flows as f64;
    Ok(round.agree == round.flows && enough && drawn.edges == others)
}

fn compare(rows: &[Row], epoch: f64, script: &Path, tally: &mut Tally) -> Result<()> {
    let theirs = run_ns(rows, epoch, script)?;
    let result = run(&reference::scenario(rows)?, 1, &mut NoProbe)?;
    let ours: Vec<_> = result.flows.iter().take(rows.len()).map(Figures::of_run).collect();
    let differ: Vec<_> = (0..rows.len()).filter(|&flow| !ours[flow].agrees(&theirs[flow])).collect();
    tally.flows += rows.len();
    tally.agree += rows.len() - differ.len();
    let moved = if differ.is_empty() { Vec::new() } else { moved(rows, epoch, script)? };
    for flow in differ {
        let edge = moved.iter().find(|(_, figures)| ours[flow].agrees(&figures[flow]));
        tally.edges += edge.is_some() as usize;
        println!(
            "{} flow {flow} of {}: {}\n  {:?}\n  ns-2 {:?}\n  ours {:?}",
            rows[0].id,
            rows.len(),
            edge.map_or("DIFFERS".to_owned(), |(by, _)| format!("as ns-2 with starts moved by {by}")),
            rows[flow],
            theirs[flow],
            ours[flow]
        );
    }
    Ok(())
}

/// The results of `ns` when start times are moved by 1 ns to 1 us: all flows together, then each flow by its own
/// amount.
fn moved(rows: &[Row], epoch: f64, script: &Path) -> Result<Vec<(String, Vec<Figures>)>> {
    let stream = &mut Stream::named(1, &rows[0].id);
    let mut results = Vec::new();
    for attempt in 0..MOVES {
        let mut moved = rows.to_vec();
        // Amounts from 1 ns to 1 us, each decade equally likely.
        let mut amount = || 1e-9 * 1000f64.powf(stream.uniform());
        let together = amount();
        for row in &mut moved {
            row.start_s += if attempt % 2 == 0 { together } else { amount() };
        }
        let by: Vec<_> =
            moved.iter().zip(rows).map(|(m, r)| format!("{:.1} ns", (m.start_s - r.start_s) * 1e9)).collect();
        results.push((by.join(", "), run_ns(&moved, epoch, script)?));
    }
    Ok(results)
}

/// Runs `ns` itself on a sample spread over the table, to check that the table is ns-2's and that ns-2 has not changed.
fn rerun_sample(scenarios: &[Vec<Row>], count: usize, script: &Path) -> Result<bool> {
    let step = scenarios.len().div_ceil(count.min(scenarios.len()));
    let (mut good, mut total) = (0, 0);
    for rows in scenarios.iter().step_by(step) {
        for (row, figures) in rows.iter().zip(run_ns(rows, 0.0, script)?) {
            let agrees = figures.agrees(&Figures::of_row(row));
            total += 1;
            good += agrees as usize;
            println!(
                "ns itself: {:<18} {:>4}  t_rx {:.4} s, {} retransmissions, {} timeouts{}",
                row.id,
                row.flow,
                figures.t_rx,
                figures.retransmits,
                figures.timeouts,
                if agrees { "" } else { "  DIFFERS from the table" }
            );
        }
    }
    println!("ns itself: {good} of {total} rows of the sample equal the table");
    Ok(good == total)
}

/// Prints the events of one random scenario, and the command that runs it in `ns`.
pub(crate) fn show_drawn(seed: u64, n: u64, epoch: f64, script: &Path) -> Result<bool> {
    let rows = crate::draw::scenario(seed, n);
    println!("# {}", command(&rows, epoch, script)?);
    let mut show = Show { payload: rows[0].payload as u64, syn: rows[0].syn_exchange != 0 };
    run(&reference::scenario(&rows)?, 1, &mut show)?;
    Ok(true)
}

/// The command that runs a scenario in `ns`, for a shell.
fn command(rows: &[Row], epoch: f64, script: &Path) -> Result<String> {
    let words: Vec<_> = words(rows, epoch)?.iter().map(|word| format!("'{word}'")).collect();
    Ok(format!("ns {} {}", script.display(), words.join(" ")))
}

/// The arguments of the script.
fn words(rows: &[Row], epoch: f64) -> Result<Vec<String>> {
    let row = &rows[0];
    let cbr = reference::parse_cbr(&row.cbr)?;
    Ok(vec![
        row.agent.clone(),
        if row.newreno_mode == "slow-but-steady" { "0" } else { "1" }.to_owned(),
        row.bw_bps.to_string(),
        row.delay_oneway_s.to_string(),
        row.access_bw_bps.to_string(),
        row.access_delay_s.to_string(),
        row.buffer_limit_pkts.to_string(),
        row.payload.to_string(),
        row.segments.to_string(),
        row.iw.to_string(),
        row.window_pkts.to_string(),
        row.init_ssthresh_pkts.to_string(),
        row.delack_s.to_string(),
        row.limtran.to_string(),
        row.syn_exchange.to_string(),
        row.drop_indices.clone(),
        cbr.map_or(String::new(), |cbr| format!("{} {}", cbr.bytes, cbr.interval_s)),
        rows.iter().map(|r| r.start_s.to_string()).collect::<Vec<_>>().join(" "),
        epoch.to_string(),
    ])
}

fn run_ns(rows: &[Row], epoch: f64, script: &Path) -> Result<Vec<Figures>> {
    let output = Command::new("ns")
        .arg(script)
        .args(words(rows, epoch)?)
        .output()
        .context("cannot start `ns`: install ns-2 (Debian: apt-get install ns2)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<Figures> = text.lines().filter_map(parse_flow).collect();
    if figures.len() != rows.len() {
        bail!(
            "{}: ns gave {} flows, expected {}:\n{text}{}",
            rows[0].id,
            figures.len(),
            rows.len(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(figures)
}

/// A line `FLOW t_ack t_rx sent retransmits timeouts cuts` of the script.
fn parse_flow(line: &str) -> Option<Figures> {
    let mut words = line.strip_prefix("FLOW ")?.split_whitespace();
    let mut next = || words.next().and_then(|w| w.parse::<f64>().ok());
    let (t_ack, t_rx) = (next()?, next()?);
    let mut count = || next().map(|n| n as u64);
    Some(Figures { t_ack, t_rx, sent: count()?, retransmits: count()?, timeouts: count()?, cuts: count()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_command_starts_at_the_epoch() {
        let rows = crate::draw::scenario(1, 3);
        let line = command(&rows, 0.25, Path::new("scenario.tcl")).expect("its traffic is valid");
        assert!(line.starts_with("ns scenario.tcl '") && line.ends_with(" '0.25'"), "{line}");
    }
}
