//! CPU time of whole processes, run in turns, and instruction counts by callgrind.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// Medians over pairs of runs; of an even number the larger middle value.
pub(crate) struct Paired {
    /// Seconds of CPU, ours.
    pub(crate) ours: f64,
    /// Seconds of CPU, the peer's.
    pub(crate) peer: f64,
    /// Peer over ours, pair by pair.
    pub(crate) ratio: f64,
}

fn cpu_seconds(who: UsageWho) -> Result<f64> {
    let usage = getrusage(who).context("getrusage")?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Pins this process and its children to one core, the last allowed one; migrations slowed our short runs by up to 50 %, varying from
/// run to run. Does nothing without permission.
pub(crate) fn stay_on_one_core() {
    let Ok(allowed) = sched_getaffinity(Pid::this()) else { return };
    let last = (0..CpuSet::count()).rev().find(|&core| allowed.is_set(core).unwrap_or(false));
    let mut one = CpuSet::new();
    if last.is_some_and(|core| one.set(core).is_ok()) {
        let _ = sched_setaffinity(Pid::this(), &one);
    }
}

/// CPU time of this process so far.
pub(crate) fn cpu_seconds_of_self() -> Result<f64> {
    cpu_seconds(UsageWho::RUSAGE_SELF)
}

/// CPU time of a command, including start-up.
fn time(command: &mut Command) -> Result<f64> {
    let before = cpu_seconds(UsageWho::RUSAGE_CHILDREN)?;
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(cpu_seconds(UsageWho::RUSAGE_CHILDREN)? - before)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both in turns after one warm-up, so that slow phases of the machine affect both.
pub(crate) fn paired(mut ours: Command, mut peer: Command, pairs: usize) -> Result<Paired> {
    time(&mut ours)?;
    time(&mut peer)?;
    let mut runs = Vec::new();
    for _ in 0..pairs.max(1) {
        runs.push((time(&mut ours)?, time(&mut peer)?));
    }
    Ok(Paired {
        ours: median(runs.iter().map(|r| r.0).collect()),
        peer: median(runs.iter().map(|r| r.1).collect()),
        ratio: median(runs.iter().map(|r| r.1 / r.0).collect()),
    })
}

/// Instructions that a command executes, counted by `valgrind --tool=callgrind`.
pub(crate) fn instructions(command: Command) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(command.get_program())
        .args(command.get_args())
        .output()
        .context("cannot start `valgrind`")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("Collected"));
    let count = line.and_then(|line| line.rsplit(' ').next()).and_then(|word| word.parse().ok());
    count.with_context(|| format!("valgrind printed no count: {text}"))
}
