//! Shared by the commands in real time: errors, the status line, the summary at the end.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use bentpipe_emulator::{EmulateError, Emulator, Unsupported};
use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Lateness;
use bentpipe_language::suggest::did_you_mean;
use bentpipe_sim::record::{ChannelSummary, channels};
use bentpipe_study::scenario::{NodeId, Scenario};
use serde::Serialize;

use crate::args::World;
use crate::failure::Failure;
use crate::{output, source};

/// Interval of status updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// Interval of checks whether the command runs: the signal of one that ends at once may be delivered to the thread that
/// started it.
pub(super) const LOOK: Duration = Duration::from_millis(100);

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

/// Converts an emulation error into the command's failure.
pub(super) fn refused(world: &World) -> impl Fn(EmulateError) -> Failure {
    |error| match error {
        EmulateError::Unsupported(Unsupported { key, what, expected }) => source::refuse(world, &key, &what, expected),
        EmulateError::Lacking { what, help } => Failure::usage(what, Some(help)),
        EmulateError::System { .. } => Failure::broken(error),
    }
}

/// The status display, on standard error if that is a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The current line.
    Line,
    /// The terminal's title, because the lines belong to another program.
    Title,
    /// Nowhere.
    Hidden,
}

/// One line about the links' current state.
pub(crate) struct Status {
    place: Place,
    next: Time,
    since: Time,
    bytes: u64,
}

impl Status {
    pub(crate) fn new(place: Place) -> Self {
        let place = if std::io::stderr().is_terminal() { place } else { Place::Hidden };
        Status { place, next: Time::ZERO, since: Time::ZERO, bytes: 0 }
    }

    /// Time of the next update.
    pub(crate) fn next(&self) -> Option<Time> {
        (self.place != Place::Hidden).then_some(self.next)
    }

    /// Writes it when due.
    pub(crate) fn show(&mut self, scenario: &Scenario, emulator: &Emulator) {
        let now = emulator.clock().now();
        if self.place == Place::Hidden || now < self.next {
            return;
        }
        let line = self.line(scenario, emulator, now);
        self.next = now + INTERVAL;
        // Errors of a closed terminal are ignored.
        let _ = match self.place {
            Place::Line => write!(std::io::stderr(), "\r\x1b[K{line}"),
            Place::Title => write!(std::io::stderr(), "\x1b]2;{}: {line}\x07", scenario.name),
            Place::Hidden => Ok(()),
        };
    }

    /// Leaves the terminal clean.
    pub(crate) fn clear(&self) {
        let _ = match self.place {
            Place::Line => write!(std::io::stderr(), "\r\x1b[K"),
            Place::Title => write!(std::io::stderr(), "\x1b]2;\x07"),
            Place::Hidden => Ok(()),
        };
    }

    fn line(&mut self, scenario: &Scenario, emulator: &Emulator, now: Time) -> String {
        let bytes = emulator.traffic().arrived_bytes;
        let span = now.saturating_since(self.since).as_secs_f64();
        let rate = if span > 0.0 { (bytes - self.bytes) as f64 * 8.0 / span } else { 0.0 };
        (self.bytes, self.since) = (bytes, now);
        let backlogs = LinkId::first(scenario.links.len()).filter_map(|link| emulator.backlog(link));
        let backlog = backlogs.max().unwrap_or_default();
        let dropped: u64 = emulator.counters().iter().map(LinkCounters::dropped).sum();
        format!(
            "{:.0} s  {}  queue {:.0} ms  dropped {dropped}  late {} (99 %: {})",
            now.as_secs_f64(),
            output::rate(rate),
            backlog.as_millis_f64(),
            span_of(emulator.lateness().median()),
            span_of(emulator.lateness().p99()),
        )
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
        Some(count) => format!(
            "the machine could not keep up: {count} sends (single packets, or trains of up to 128) were dropped at full \
             devices, before any link"
        ),
        None => "packets dropped at the devices could not be counted: a device is gone".to_owned(),
    };
    Some(format!("warning: {what}; losses and rates were not those of the scenario"))
}

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
        }
    }

    /// The text form.
    pub(crate) fn text(&self) -> String {
        let rows = self.links.iter().filter(|link| link.offered > 0).map(|link| {
            let reasons = [
                (link.dropped_queue, "queue"),
                (link.dropped_early, "RED"),
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
        let mut text = output::table(&["link", "offered", "delivered", "data", "dropped"], 1, rows);
        if !self.channels.is_empty() {
            let _ = write!(text, "\n\n{}", super::run::channels(&self.channels));
        }
        let us = |micros: f64| span_of(Duration::from_nanos((micros * 1e3) as u64));
        let _ = write!(
            text,
            "\n\n{:.1} s, {} wake-ups, late by {} (median), {} (99 %), {} (worst)",
            self.seconds,
            self.wakeups,
            us(self.late_median_us),
            us(self.late_p99_us),
            us(self.late_max_us),
        );
        if self.refused > 0 {
            let _ = write!(text, "\n{} packets were not accepted by a host's stack", self.refused);
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
    fn overruns_are_a_warning() {
        assert_eq!(overrun(Some(0)), None);
        let some = overrun(Some(336_355)).expect("a warning");
        assert!(some.starts_with("warning: the machine could not keep up: 336355 sends "), "{some}");
        let unknown = overrun(None).expect("a warning");
        assert!(unknown.contains("could not be counted"), "{unknown}");
    }
}
