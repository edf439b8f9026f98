//! The plot of `verify` and `verify-hosts`: the kernel's senders beside simulated ones.

use std::path::Path;

use bentpipe_emulator::Snapshot;
use bentpipe_emulator::sockets::Went;
use bentpipe_engine::units::Time;
use bentpipe_sim::record::{Measured, Sequence};
use bentpipe_sim::{Observer, Timers, run_with};
use bentpipe_study::report::{Figure, Panel};
use bentpipe_study::scenario::Scenario;

use crate::commands::plots;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Remake;

/// Maximum number of senders in a figure: each takes a row.
const ROWS: usize = 4;

/// The name of the kernel's curves.
const KERNEL: &str = "Linux";

/// Fails if the file cannot be written, or if a figure has no room for this many senders.
pub(super) fn check(path: &Path, senders: usize, what: &str, help: &str) -> Result<(), Failure> {
    plots::check(path)?;
    if senders > ROWS {
        let message = format!("a plot has room for {ROWS} {what}, but there are {senders}");
        return Err(Failure::usage(message, Some(help.to_owned())));
    }
    Ok(())
}

/// When each flow's last byte arrived in virtual time.
pub(super) fn simulate<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Vec<Option<Time>>, Failure> {
    let result = run_with(scenario, scenario.seed, observer, Timers::Lazy, |_| !interrupt::asked());
    Ok(result.map_err(Failure::broken)?.flows.iter().map(|flow| flow.received_at).collect())
}

/// The panels of the flows, with their titles: the simulated senders beside the kernel's.
pub(super) fn panels(titles: &[String], sequence: &Sequence, went: &[Went]) -> Vec<Panel> {
    let rows = titles.iter().zip(went).enumerate();
    rows.flat_map(|(n, (title, went))| sequence.beside(n, title, KERNEL, &measured(&went.snapshots))).collect()
}

fn measured(snapshots: &[Snapshot]) -> Measured {
    let all = || snapshots.iter().map(|shot| (shot.at.as_secs_f64(), shot));
    Measured {
        windows: all().map(|(at, shot)| (at, f64::from(shot.cwnd))).collect(),
        thresholds: all().filter_map(|(at, shot)| Some((at, f64::from(shot.ssthresh?)))).collect(),
        round_trips: all().map(|(at, shot)| (at, shot.srtt.as_millis_f64())).filter(|point| point.1 > 0.0).collect(),
    }
}

/// The kernel's release.
pub(super) fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Writes the figure.
pub(super) fn write(path: &Path, panels: Vec<Panel>, remake: &Remake) -> Result<(), Failure> {
    let title = format!("Linux {} beside the simulation", release());
    plots::write(path, &Figure { title, panels }, remake)
}
