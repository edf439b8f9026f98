//! `--interval`: a table of the links that grows while they run, on standard error.

use std::fmt::Write as _;
use std::io::Write as _;

use bentpipe_emulator::Emulator;
use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_study::scenario::Scenario;

use crate::output;

/// Lines under a header before it is repeated: it stays on a terminal of 24 lines.
const REPEAT: usize = 20;

/// The table. A link has lines from the first interval on in which it was offered a packet.
pub(super) struct Intervals {
    every: Duration,
    next: Time,
    /// Start of the interval, and of the table.
    since: Time,
    start: Time,
    /// The links' counters at these times.
    last: Vec<LinkCounters>,
    first: Vec<LinkCounters>,
    /// Lines since the header.
    lines: usize,
}

impl Intervals {
    /// A table whose first interval begins now.
    pub(super) fn new(every: Duration, emulator: &Emulator) -> Self {
        let (now, counters) = (emulator.clock().now(), emulator.counters());
        Intervals {
            every,
            next: now + every,
            since: now,
            start: now,
            last: counters.clone(),
            first: counters,
            lines: 0,
        }
    }

    /// End of the interval.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Writes the lines of the interval that ends now.
    pub(super) fn show(&mut self, scenario: &Scenario, emulator: &Emulator) {
        let now = emulator.clock().now();
        let counters = emulator.counters();
        let mut text = String::new();
        if self.lines == 0 || self.lines >= REPEAT {
            text.push_str(&header(scenario));
            self.lines = 0;
        }
        let mut was_used = false;
        for (link, (name, counters)) in LinkId::first(counters.len()).zip(names(scenario).zip(&counters)) {
            if counters.offered > self.first[link.index()].offered {
                let of = Row::between(&self.last[link.index()], counters, emulator.backlog(link));
                let _ = writeln!(text, "{}", of.line((self.since, now), name, width(scenario)));
                self.lines += 1;
                was_used = true;
            }
        }
        if !was_used {
            let _ = writeln!(text, "{}  no packet yet", span((self.since, now)));
            self.lines += 1;
        }
        write(&text);
        (self.last, self.since) = (counters, now);
        // A late line does not shift those behind it.
        while self.next <= now {
            self.next += self.every;
        }
    }

    /// Writes the last interval, which may be shorter, and the sums.
    pub(super) fn end(mut self, scenario: &Scenario, emulator: &Emulator) {
        self.show(scenario, emulator);
        let mut text =
            format!("{}\n", "- ".repeat((header(scenario).trim_end().chars().count() / 2).max(1)).trim_end());
        for ((name, first), last) in names(scenario).zip(&self.first).zip(&self.last) {
            if last.offered > first.offered {
                let of = Row::between(first, last, None);
                let _ = writeln!(text, "{}", of.line((self.start, self.since), name, width(scenario)));
            }
        }
        write(&text);
    }
}

/// What a link did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    bytes: u64,
    packets: u64,
    dropped: u64,
    /// What waits at its end; unknown for a link in cells, and without meaning for a sum.
    queue: Option<Duration>,
}

impl Row {
    fn between(before: &LinkCounters, after: &LinkCounters, queue: Option<Duration>) -> Self {
        Row {
            bytes: after.delivered_bytes - before.delivered_bytes,
            packets: after.delivered - before.delivered,
            dropped: after.dropped() - before.dropped(),
            queue,
        }
    }

    fn line(self, (from, to): (Time, Time), name: &str, width: usize) -> String {
        let seconds = to.saturating_since(from).as_secs_f64();
        let rate = if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 };
        let queue = self.queue.map_or("–".to_owned(), |queue| format!("{:.0} ms", queue.as_millis_f64()));
        let (span, rate) = (span((from, to)), output::rate(rate));
        format!("{span}  {name:<width$}  {rate:>13}  {:>9}  {:>8}  {queue:>9}", self.packets, self.dropped)
    }
}

fn header(scenario: &Scenario) -> String {
    let (interval, width) = ("seconds", width(scenario));
    format!("{interval:>15}  {:<width$}  {:>13}  {:>9}  {:>8}  {:>9}\n", "link", "rate", "packets", "dropped", "queue")
}

fn span((from, to): (Time, Time)) -> String {
    format!("{:>15}", format!("{:.1} - {:.1}", from.as_secs_f64(), to.as_secs_f64()))
}

fn names(scenario: &Scenario) -> impl Iterator<Item = &str> {
    scenario.links.iter().map(|link| link.name.as_str())
}

fn width(scenario: &Scenario) -> usize {
    names(scenario).map(|name| name.chars().count()).max().unwrap_or(0)
}

/// A closed standard error ends nothing.
fn write(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_came_in_its_interval() {
        let before =
            LinkCounters { delivered: 10, delivered_bytes: 15_000, dropped_full: 1, ..LinkCounters::default() };
        let after = LinkCounters {
            delivered: 1_010,
            delivered_bytes: 1_515_000,
            dropped_full: 3,
            dropped_channel: 2,
            ..LinkCounters::default()
        };
        let row = Row::between(&before, &after, Some(Duration::from_millis(250)));
        assert_eq!((row.bytes, row.packets, row.dropped), (1_500_000, 1000, 4));
        let second = |n: u64| Time::ZERO + Duration::from_secs(n);
        let line = row.line((second(3), second(5)), "sat/forward", 12);
        assert_eq!(line, "      3.0 - 5.0  sat/forward        6 Mbit/s       1000         4     250 ms");
    }
}
