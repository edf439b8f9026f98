//! Shared by the commands in real time: errors, captures, the summary at the end.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use bentpipe_emulator::{EmulateError, Emulator, HostId, Tap, Unsupported};
use bentpipe_engine::units::Duration;
use bentpipe_io::{Clock, Lateness};
use bentpipe_language::suggest::did_you_mean;
use bentpipe_sim::record::{ChannelSummary, channels};
use bentpipe_study::scenario::{NodeId, Scenario};
use serde::Serialize;

use super::boxes::{self, BoxLine};
use crate::args::World;
use crate::args::realtime::Watch;
use crate::failure::Failure;
use crate::output::Remake;
use crate::{output, source};

/// The word for every host.
const ALL: &str = "all";

/// Nodes by their names.
pub(super) fn nodes(scenario: &Scenario, names: &[String]) -> Result<Vec<NodeId>, Failure> {
    let find = |name: &String| {
        scenario.node(name).ok_or_else(|| {
            let help = did_you_mean(name, scenario.nodes.iter().map(String::as_str));
            let help = help.unwrap_or_else(|| format!("there are {}", scenario.nodes.join(", ")));
            Failure::usage(format!("the scenario has no node `{name}`"), Some(help))
        })
    };
    names.iter().map(find).collect()
}

/// Starts the capture of `--pcap`, of the hosts of `--tap`: by default of the one at `usual`.
pub(super) fn capture(
    watch: &Watch,
    scenario: &Scenario,
    remake: &Remake,
    emulator: &mut Emulator,
    hosts: &[&str],
    usual: usize,
) -> Result<(), Failure> {
    let Some(path) = &watch.pcap else { return Ok(()) };
    let taps = taps(&watch.taps, hosts, usual)?;
    emulator.tap(tap(path, &taps, scenario, remake, emulator.clock()).map_err(Failure::broken)?);
    Ok(())
}

/// A capture of these hosts, which says how to make it again.
pub(super) fn tap(
    path: &Path,
    hosts: &[(HostId, &str)],
    scenario: &Scenario,
    remake: &Remake,
    clock: Clock,
) -> io::Result<Tap> {
    Tap::create(path, hosts, &format!("{}\n{}", remake.line(), scenario.to_toml()), clock)
}

/// The hosts to capture, with their names, in their order.
fn taps<'a>(names: &[String], hosts: &[&'a str], usual: usize) -> Result<Vec<(HostId, &'a str)>, Failure> {
    if let Some(unknown) = names.iter().find(|name| *name != ALL && !hosts.contains(&name.as_str())) {
        let help = did_you_mean(unknown, hosts.iter().copied());
        let help = help.unwrap_or_else(|| format!("there are {} and {ALL}", hosts.join(", ")));
        return Err(Failure::usage(format!("no host `{unknown}` can be captured"), Some(help)));
    }
    let is_wanted = |(id, host): &(HostId, &str)| match names {
        [] => id.index() == usual,
        names => names.iter().any(|name| name == ALL || name == host),
    };
    Ok(HostId::first(hosts.len()).zip(hosts.iter().copied()).filter(is_wanted).collect())
}

/// An error for a valid scenario that the command cannot use, at its position in the text.
fn refuse(world: &World, key: &str, message: &str, expected: &str) -> Failure {
    // Standard input has already been read.
    let text = if world.file == "-" { None } else { source::text(&world.file).ok() };
    match text {
        Some((text, name)) => Failure::Scenario(Scenario::refusal(&text, &name, &world.sets, key, message, expected)),
        None => Failure::usage(format!("`{key}`: {message}; expected {expected}"), None),
    }
}

/// Converts an emulation error into the command's failure.
pub(super) fn refused(world: &World) -> impl Fn(EmulateError) -> Failure {
    |error| match error {
        EmulateError::Unsupported(Unsupported { key, what, expected }) => refuse(world, &key, &what, expected),
        EmulateError::Lacking { what, help } => Failure::usage(what, Some(help)),
        EmulateError::System { .. } => Failure::broken(error),
    }
}

/// A duration in a readable unit.
pub(crate) fn span_of(span: Duration) -> String {
    let micros = span.as_nanos() as f64 / 1e3;
    if micros < 1000.0 { format!("{micros:.0} us") } else { format!("{:.1} ms", micros / 1e3) }
}

/// A warning about a stall of this length.
pub(crate) fn stall(worst: &str) -> String {
    format!(
        "warning: the machine stalled for {worst}: a sender may have timed out because of that, not because of the link"
    )
}

/// The warning about packets dropped before any link, if any.
pub(crate) fn overrun(count: Option<u64>) -> Option<String> {
    let what = match count {
        Some(0) => return None,
        Some(1) => {
            "the machine could not keep up: one send (a single packet, or a train of up to 128) was dropped at a full \
                    device, before any link"
                .to_owned()
        }
        Some(count) => format!(
            "the machine could not keep up: {count} sends (single packets, or trains of up to 128) were dropped at full \
             devices, before any link"
        ),
        None => "packets dropped at the devices could not be counted: a device was removed".to_owned(),
    };
    // A device that is gone tells nothing about the machine.
    let help = if count.is_some() { OVERRUN_HELP } else { "" };
    Some(format!("warning: {what}; losses and rates were not those of the scenario{help}"))
}

/// Where such drops come from, and what helps.
const OVERRUN_HELP: &str = ". A host sent 4096 of them while the emulator had no processor: end other programs, or \
                            let hosts send less at once";

/// Counters of the links.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    seconds: f64,
    links: Vec<LinkLine>,
    /// Counters of link layers, without idle channels.
    channels: Vec<ChannelSummary>,
    /// Packets without a destination.
    foreign: u64,
    /// Packets that hosts did not accept.
    refused: u64,
    /// Trains and single packets of hosts that the kernel dropped at full devices; `null` if a device is gone.
    overruns: Option<u64>,
    wakeups: u64,
    late_median_us: f64,
    late_p99_us: f64,
    late_max_us: f64,
    /// No overruns, and half of the wake-ups at most 1 ms late.
    kept_up: bool,
    #[serde(skip)]
    is_late: bool,
    /// True if the machine stalled for so long that a sender may have timed out.
    stalled: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gateways: Vec<BoxLine>,
}

#[derive(Debug, Serialize)]
struct LinkLine {
    name: String,
    offered: u64,
    delivered: u64,
    delivered_bytes: u64,
    dropped_queue: u64,
    dropped_early: u64,
    dropped_channel: u64,
    dropped_listed: u64,
    dropped_too_long: u64,
    marked: u64,
}

impl Summary {
    pub(crate) fn new(scenario: &Scenario, emulator: &Emulator) -> Self {
        let lateness: &Lateness = emulator.lateness();
        let overruns = emulator.overruns().ok();
        let micros = |span: Duration| span.as_nanos() as f64 / 1e3;
        let links = scenario.links.iter().zip(emulator.counters()).map(|(link, count)| LinkLine {
            name: link.name.clone(),
            offered: count.offered,
            delivered: count.delivered,
            delivered_bytes: count.delivered_bytes,
            dropped_queue: count.dropped_full,
            dropped_early: count.dropped_early,
            dropped_channel: count.dropped_channel,
            dropped_listed: count.dropped_listed,
            dropped_too_long: count.dropped_too_long,
            marked: count.marked,
        });
        Summary {
            seconds: emulator.clock().now().as_secs_f64(),
            links: links.collect(),
            channels: channels(scenario, &emulator.layer_stats()),
            foreign: emulator.traffic().foreign,
            refused: emulator.refused(),
            overruns,
            wakeups: lateness.count(),
            late_median_us: micros(lateness.median()),
            late_p99_us: micros(lateness.p99()),
            late_max_us: micros(lateness.max()),
            is_late: lateness.is_too_great(),
            kept_up: overruns == Some(0) && !lateness.is_too_great(),
            stalled: lateness.stall().is_some(),
            gateways: Vec::new(),
        }
    }

    /// The same with what the gateways have done.
    pub(crate) fn with_gateways(self, gateways: Vec<BoxLine>) -> Self {
        Summary { gateways, ..self }
    }

    /// The text form.
    pub(crate) fn text(&self) -> String {
        let rows = self.links.iter().filter(|link| link.offered > 0).map(|link| {
            let reasons = [
                (link.dropped_queue, "queue"),
                (link.dropped_early, "early"),
                (link.dropped_channel, "channel"),
                (link.dropped_listed, "listed"),
                (link.dropped_too_long, "too long"),
                (link.marked, "marked"),
            ];
            let given: Vec<_> = reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
            vec![
                link.name.clone(),
                link.offered.to_string(),
                link.delivered.to_string(),
                output::bytes(link.delivered_bytes),
                if given.is_empty() { "0".to_owned() } else { given.join(", ") },
            ]
        });
        let mut text = if self.links.iter().any(|link| link.offered > 0) {
            output::table(&["link", "offered", "delivered", "data", "dropped"], 1, rows)
        } else {
            "No packet reached a link.".to_owned()
        };
        if !self.channels.is_empty() {
            let _ = write!(text, "\n\n{}", crate::commands::run::channels(&self.channels));
        }
        if !self.gateways.is_empty() {
            let _ = write!(text, "\n\n{}", boxes::table(&self.gateways));
        }
        let us = |micros: f64| span_of(Duration::from_nanos((micros * 1e3) as u64));
        let _ = write!(text, "\n\n{:.1} s", self.seconds);
        // Without a wake-up there is no lateness.
        if self.wakeups > 0 {
            let _ = write!(
                text,
                ", {}, late by {} (median), {} (99 %), {} (worst)",
                output::counted(self.wakeups, "wake-up"),
                us(self.late_median_us),
                us(self.late_p99_us),
                us(self.late_max_us),
            );
        }
        if self.refused > 0 {
            let _ = write!(text, "\n{} not accepted by a host's stack", output::counted(self.refused, "packet"));
        }
        if let Some(overrun) = overrun(self.overruns) {
            let _ = write!(text, "\n{overrun}");
        }
        if self.is_late {
            text.push_str(
                "\nwarning: the machine could not keep up: half of the wake-ups were more than 1 ms late, so delays and \
                 rates were not those of the scenario",
            );
        }
        if self.stalled {
            let _ = write!(text, "\n{}", stall(&us(self.late_max_us)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_is_captured_unless_more_are_named() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            taps(&names, &["net", "me"], 1)
        };
        assert_eq!(of(&[]).expect("the usual one"), [(HostId(1), "me")]);
        assert_eq!(of(&["net"]).expect("known"), [(HostId(0), "net")]);
        assert_eq!(of(&["me", "all"]).expect("known"), [(HostId(0), "net"), (HostId(1), "me")]);
        assert!(of(&["sat"]).is_err());
    }

    #[test]
    fn what_hosts_refuse_is_counted_in_words() {
        let text = |refused| {
            let (late_median_us, late_p99_us, late_max_us) = (0.0, 0.0, 0.0);
            let (links, channels, gateways) = (Vec::new(), Vec::new(), Vec::new());
            let (foreign, overruns, wakeups) = (0, Some(0), 0);
            let (kept_up, is_late, stalled, seconds) = (true, false, false, 1.0);
            Summary {
                seconds,
                links,
                channels,
                foreign,
                refused,
                overruns,
                wakeups,
                late_median_us,
                late_p99_us,
                late_max_us,
                kept_up,
                is_late,
                stalled,
                gateways,
            }
            .text()
        };
        assert!(text(1).ends_with("\n1 packet not accepted by a host's stack"), "{}", text(1));
        assert!(text(2).ends_with("\n2 packets not accepted by a host's stack") && !text(0).contains("accepted"));
    }

    #[test]
    fn overruns_are_a_warning() {
        assert_eq!(overrun(Some(0)), None);
        let some = overrun(Some(336_355)).expect("a warning");
        assert!(some.starts_with("warning: the machine could not keep up: 336355 sends "), "{some}");
        assert!(some.contains("end other programs"), "{some}");
        let one = overrun(Some(1)).expect("a warning");
        assert!(one.contains(": one send (") && one.contains(" was dropped at a full device,"), "{one}");
        let unknown = overrun(None).expect("a warning");
        assert!(unknown.contains("could not be counted") && !unknown.contains("end other programs"), "{unknown}");
    }
}
