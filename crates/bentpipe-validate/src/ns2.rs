//! Against ns-2: completion times within 0.5 %, counts of retransmissions and timeouts exact.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Time;
use bentpipe_sim::{FlowResult, run};

use crate::reference::{self, Row};
use crate::show::Show;

/// ns-2 rounds its round trips to ticks of 1 ms that begin at a random phase, which moves timeouts by a few
/// milliseconds; and its own times move by up to 0.84 % (row D2, columns `pert_t_rx_*`) when the access delay changes
/// by 1 %. Half a per cent is stricter than the latter, and wide enough for the former from 1 s on.
const TOLERANCE: f64 = 0.005;

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

    /// Whether they agree: times within the tolerance, counts exactly.
    fn agrees(&self, other: &Figures) -> bool {
        let close = |a: f64, b: f64| (a / b - 1.0).abs() <= TOLERANCE;
        close(self.t_ack, other.t_ack)
            && close(self.t_rx, other.t_rx)
            && self.sent == other.sent
            && self.retransmits == other.retransmits
            && self.timeouts == other.timeouts
    }
}

/// Compares every row, then the real `ns` on a sample. Whether all agree.
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

/// Prints what happens in one scenario of the table.
pub(crate) fn show(table: &Path, id: &str) -> Result<bool> {
    let scenarios = reference::read(table)?;
    let rows = scenarios.iter().find(|rows| rows[0].id == id);
    let rows = rows.with_context(|| format!("{}: no scenario \"{id}\"", table.display()))?;
    let mut show = Show { payload: rows[0].payload as u64, syn: rows[0].syn_exchange != 0 };
    run(&reference::scenario(rows)?, 1, &mut show)?;
    Ok(true)
}

/// Draws scenarios of the table's kinds, runs `ns` and us on each, and compares. Whether all agree but for `allowed`.
pub(crate) fn explore(count: u64, seed: u64, script: &Path) -> Result<bool> {
    let (mut good, mut total) = (0, 0);
    for n in 0..count {
        let rows = crate::draw::scenario(seed, n);
        let theirs = run_ns(&rows, script)?;
        let result = run(&reference::scenario(&rows)?, 1, &mut NoProbe)?;
        for ((row, theirs), flow) in rows.iter().zip(theirs).zip(&result.flows) {
            let ours = Figures::of_run(flow);
            total += 1;
            if ours.agrees(&theirs) {
                good += 1;
            } else {
                println!(
                    "{} flow {} of {} DIFFERS: {row:?}\n  ns-2 {theirs:?}\n  ours {ours:?}",
                    row.id,
                    row.flow,
                    rows.len()
                );
            }
        }
    }
    println!("{good} of {total} flows of {count} drawn scenarios agree with ns itself (seed {seed})");
    Ok(good == total)
}

/// Runs `ns` itself on a sample spread over the table: the table is really ns-2's, and ns-2 is still what it was.
fn rerun_sample(scenarios: &[Vec<Row>], count: usize, script: &Path) -> Result<bool> {
    let step = scenarios.len().div_ceil(count.min(scenarios.len()));
    let (mut good, mut total) = (0, 0);
    for rows in scenarios.iter().step_by(step) {
        for (row, figures) in rows.iter().zip(run_ns(rows, script)?) {
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
    println!("ns itself: {good} of {total} rows of the sample are as in the table");
    Ok(good == total)
}

fn run_ns(rows: &[Row], script: &Path) -> Result<Vec<Figures>> {
    let row = &rows[0];
    let cbr = reference::parse_cbr(&row.cbr)?;
    let words: Vec<String> = vec![
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
    ];
    let output = Command::new("ns")
        .arg(script)
        .args(&words)
        .output()
        .context("cannot start `ns`: install ns-2 (Debian: apt-get install ns2)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<Figures> = text.lines().filter_map(parse_flow).collect();
    if figures.len() != rows.len() {
        bail!(
            "{}: ns gave {} flows, expected {}:\n{text}{}",
            row.id,
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
