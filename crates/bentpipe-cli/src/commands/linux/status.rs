//! What a command in real time shows while it runs.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write as _};

use bentpipe_emulator::Emulator;
use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_study::scenario::Scenario;

use super::intervals::Intervals;
use super::realtime::span_of;
use crate::output;

/// Interval of status updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// The status display, on standard error if that is a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The current line.
    Line,
    /// The terminal's title, because the lines belong to another program.
    Title,
    /// Nowhere.
    Hidden,
}

/// One line about the links' current state, and the table of intervals.
pub(super) struct Status {
    place: Place,
    next: Time,
    since: Time,
    bytes: u64,
    intervals: Option<Intervals>,
}

impl Status {
    /// `every`: the length of the table's intervals, whose lines take the place of the status line.
    pub(super) fn new(place: Place, every: Option<std::time::Duration>, emulator: &Emulator) -> Self {
        let place = match place {
            Place::Line if every.is_some() => Place::Hidden,
            place if std::io::stderr().is_terminal() && has_sequences(std::env::var_os("TERM").as_deref()) => place,
            _ => Place::Hidden,
        };
        let intervals = every.map(|every| Intervals::new(Duration::from_nanos(every.as_nanos() as u64), emulator));
        Status { place, next: Time::ZERO, since: Time::ZERO, bytes: 0, intervals }
    }

    /// Time of the next update.
    pub(super) fn next(&self) -> Option<Time> {
        let line = (self.place != Place::Hidden).then_some(self.next);
        Time::earliest(line, self.intervals.as_ref().map(Intervals::next))
    }

    /// Writes what is due.
    pub(super) fn show(&mut self, scenario: &Scenario, emulator: &Emulator) {
        let now = emulator.clock().now();
        if let Some(intervals) = self.intervals.as_mut().filter(|intervals| intervals.next() <= now) {
            intervals.show(scenario, emulator);
        }
        if self.place == Place::Hidden || now < self.next {
            return;
        }
        let line = self.line(scenario, emulator, now);
        self.next = now + INTERVAL;
        // Errors of a closed terminal are ignored.
        let _ = match self.place {
            Place::Line => write!(std::io::stderr(), "\r\x1b[K{}", clipped(&line, width())),
            Place::Title => write!(std::io::stderr(), "\x1b]2;{}: {line}\x07", scenario.name),
            Place::Hidden => Ok(()),
        };
    }

    /// Leaves the terminal clean, and ends the table.
    pub(super) fn end(&mut self, scenario: &Scenario, emulator: &Emulator) {
        if let Some(intervals) = self.intervals.take() {
            intervals.end(scenario, emulator);
        }
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

/// True if the terminal of this name understands sequences for its title and for clearing a line.
fn has_sequences(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term != "dumb")
}

/// Width of the terminal on standard error.
fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// The part of a line that leaves the last column free: a longer one would go on in the next line, which is not cleared.
fn clipped(line: &str, width: usize) -> &str {
    let end = line.char_indices().nth(width.saturating_sub(1)).map_or(line.len(), |(end, _)| end);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_in_the_terminal() {
        assert_eq!(clipped("12 µs late", 80), "12 µs late");
        assert_eq!(clipped("12 µs late", 11), "12 µs late");
        assert_eq!(clipped("12 µs late", 6), "12 µs");
        assert_eq!(clipped("12 µs late", 0), "");
    }

    #[test]
    fn dumb_terminals_get_no_sequences() {
        assert!(has_sequences(None) && has_sequences(Some(OsStr::new("xterm"))));
        assert!(!has_sequences(Some(OsStr::new("dumb"))));
    }
}
