//! A recorded series of values, from a file or a list: `delay_trace`, `loss_trace`, and a `rate_trace` with rates of a
//! link.

use bentpipe_engine::link::{BadTrack, Change, Track};
use bentpipe_engine::units::{Duration, Probability};
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::quantity::{DURATION, RATE, format_duration, parse_probability};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::{Field, Shape};

use super::beside::Beside;
use super::grammar::{DELAY_TRACE, LOSS_TRACE, RATE_SERIES, TIMED_LOSS, TIMED_RATE};

/// A kind of series.
pub(super) struct Kind {
    fields: &'static [Field],
    columns: &'static str,
    expected: &'static str,
    /// What is expected of values at a fixed interval.
    regular: &'static str,
    pair: Shape,
    /// Reads a value of a list.
    read: fn(&Item<'_>, &mut Problems) -> Option<u64>,
    /// Parses a value of a file.
    parse: fn(&str) -> Result<u64, String>,
}

/// Delays, in ticks.
pub(super) const DELAYS: Kind = Kind {
    fields: DELAY_TRACE,
    columns: "time_s,delay_ms",
    expected: "times in seconds in ascending order, each with a delay in milliseconds",
    regular: "delays in milliseconds",
    pair: Shape::Pair(&Shape::DURATION),
    read: |item, problems| item.duration(problems).map(|delay| delay.as_ticks()),
    parse: |text| {
        let nanos = DURATION.parse(&format!("{text} ms")).map_err(|bad| bad.message)?;
        Ok(Duration::from_nanos(nanos).as_ticks())
    },
};

/// Rates, in bits per second.
pub(super) const RATES: Kind = Kind {
    fields: RATE_SERIES,
    columns: "time_s,rate_mbps",
    expected: "times in seconds in ascending order, each with a rate in Mbit/s",
    regular: "rates in Mbit/s",
    pair: TIMED_RATE,
    read: |item, problems| item.quantity(RATE, problems),
    parse: |text| RATE.parse(&format!("{text} Mbit/s")).map_err(|bad| bad.message),
};

/// Losses, as values of a track.
pub(super) const LOSSES: Kind = Kind {
    fields: LOSS_TRACE,
    columns: "time_s,loss",
    expected: "times in seconds in ascending order, each with a probability of loss",
    regular: "probabilities of loss, one in a line if it has a \"%\"",
    pair: TIMED_LOSS,
    read: |item, problems| item.probability(problems).map(Track::of_probability),
    parse: |text| {
        let value = parse_probability(text).map_err(|bad| bad.message)?;
        let value = Probability::new(value).ok_or_else(|| format!("`{text}` is no probability"))?;
        Ok(Track::of_probability(value))
    },
};

/// Maximum number of reported mistakes: a file of another kind has a mistake in every line.
const MAX_PROBLEMS: usize = 20;

/// The values with their times, and the place where each was written.
#[derive(Default)]
struct Read {
    values: Vec<(Duration, u64)>,
    spans: Vec<Span>,
}

impl Kind {
    /// The track to which an item refers or which it contains.
    pub(super) fn track(&self, item: &Item<'_>, beside: Beside<'_>, problems: &mut Problems) -> Option<Track> {
        let as_file = item.as_text().is_some();
        let view = if as_file { None } else { Some(item.table(self.fields, problems)?) };
        let get = |key: &str| view.as_ref().and_then(|view| view.get(key));
        let (file, text) = (if as_file { Some(item.clone()) } else { get("file") }, get("text"));
        let values = get("values");
        if [&file, &text, &values].iter().filter(|given| given.is_some()).count() != 1 {
            let message = format!("`{}` must have exactly one of `file`, `text` and `values`", item.path);
            item.refuse(problems, message, Some(format!("a CSV file with the columns {}", self.columns)));
            return None;
        }
        let interval = self.interval(view.as_ref(), values.is_some(), problems)?;
        let read = if let Some(file) = file {
            self.file(&file, interval, beside, problems)?
        } else if let Some(text) = text {
            let content = text.text(problems)?;
            self.parse_all(content, interval, &text.path, &|_| text.node.span, problems)?
        } else {
            self.values(&values?, problems)?
        };
        let period = match get("period") {
            Some(period) => period.duration(problems)?,
            None => self.period(&read.values, interval),
        };
        let expected = if interval.is_some() { self.regular } else { self.expected };
        join(item, read, period, expected, problems)
    }

    fn interval(&self, view: Option<&View<'_>>, excluded: bool, problems: &mut Problems) -> Option<Option<Duration>> {
        let Some(item) = view.and_then(|view| view.get("interval")) else { return Some(None) };
        let interval = item.duration(problems)?;
        if excluded {
            let message = format!("`{}` does not fit here: each of `values` has its time", item.path);
            item.refuse(problems, message, Some("`file` or `text` beside it".to_owned()));
            return None;
        }
        if interval < Track::MIN_PERIOD {
            item.refuse(problems, format!("`{}` is too short", item.path), Some("at least \"1 ms\"".to_owned()));
            return None;
        }
        Some(Some(interval))
    }

    /// The period: the last value lasts as long as the one before it.
    fn period(&self, values: &[(Duration, u64)], interval: Option<Duration>) -> Duration {
        let last = values.last().map_or(Duration::ZERO, |value| value.0);
        let before = values.len().checked_sub(2).map(|n| values[n].0);
        let held = interval.or(before.map(|before| last - before));
        last + held.unwrap_or(Duration::from_secs(1))
    }

    fn values(&self, item: &Item<'_>, problems: &mut Problems) -> Option<Read> {
        let mut read = Read::default();
        for entry in item.list(&Shape::List(&Shape::Pair(&Shape::Text)), problems)? {
            let inner: &'static Shape = match self.pair {
                Shape::Pair(inner) => inner,
                _ => &Shape::Text,
            };
            let [at, value] = entry.pair(inner, problems)?;
            read.values.push((at.duration(problems)?, (self.read)(&value, problems)?));
            read.spans.push(entry.node.span);
        }
        Some(read)
    }

    fn file(
        &self,
        item: &Item<'_>,
        interval: Option<Duration>,
        beside: Beside<'_>,
        problems: &mut Problems,
    ) -> Option<Read> {
        let (text, source) = beside.text(item.text(problems)?, item, "a trace beside the scenario", problems)?;
        self.parse_all(&text, interval, &item.path, &|at| Span::new(source, at), problems)
    }

    /// Reads the content of a file; `place` gives the place of a part of it.
    fn parse_all(
        &self,
        text: &str,
        interval: Option<Duration>,
        key: &str,
        place: &dyn Fn(std::ops::Range<usize>) -> Span,
        problems: &mut Problems,
    ) -> Option<Read> {
        let (mut read, mut at, mut sound) = (Read::default(), 0, true);
        let expected = if interval.is_some() { self.regular } else { self.expected };
        let mut needs_header = interval.is_none();
        for line in text.split_inclusive('\n') {
            let span = place(at..at + line.trim_end().len());
            at += line.len();
            let content = line.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if needs_header {
                needs_header = false;
                if content.replace(' ', "") != self.columns {
                    problems.add(span, Mistake::new(key, "the trace has other columns").expected(self.columns));
                    return None;
                }
                continue;
            }
            // A probability such as "1 %" contains a space.
            let parts: Vec<&str> = match interval {
                Some(_) if !content.contains('%') => content.split_whitespace().collect(),
                _ => vec![content],
            };
            for part in parts {
                let value = match interval {
                    Some(interval) => {
                        (self.parse)(part).map(|value| (interval.saturating_mul(read.values.len() as u64), value))
                    }
                    None => self.row(part),
                };
                match value {
                    Ok(value) => {
                        read.values.push(value);
                        read.spans.push(span);
                    }
                    Err(message) => {
                        problems.add(span, Mistake::new(key, message).expected(expected));
                        sound = false;
                    }
                }
                if problems.count() > MAX_PROBLEMS {
                    return None;
                }
            }
        }
        sound.then_some(read)
    }

    fn row(&self, content: &str) -> Result<(Duration, u64), String> {
        let (at, value) = content.split_once(',').ok_or("the line does not have two columns")?;
        let at = DURATION.parse(&format!("{} s", at.trim())).map_err(|bad| bad.message)?;
        Ok((Duration::from_nanos(at), (self.parse)(value.trim())?))
    }
}

/// The track of these values.
fn join(
    item: &Item<'_>,
    read: Read,
    period: Duration,
    expected: &'static str,
    problems: &mut Problems,
) -> Option<Track> {
    let Some(&(_, initial)) = read.values.first() else {
        item.refuse(problems, "the trace has no values", Some(expected.to_owned()));
        return None;
    };
    // Many values at a long interval: the text of the scenario would have times that cannot be read.
    if let Err(bad) = DURATION.parse(&format_duration(period)) {
        item.refuse(problems, format!("the trace is too long: {}", bad.message), None);
        return None;
    }
    let changes = read.values.iter().map(|&(at, value)| Change { at, over: Duration::ZERO, value }).collect();
    let (message, span) = match Track::new(initial, changes, Some(period)) {
        Ok(track) => {
            if let Some(n) = track.never_holds() {
                let message = format!("the value never holds: at {} the trace starts again", format_duration(period));
                let help = "a longer `period`, if it should hold".to_owned();
                problems.warn(read.spans[n], Mistake::new(&item.path, message).help(help));
            }
            return Some(track);
        }
        Err(BadTrack::Overlaps(n)) => ("a time is earlier than the previous one", read.spans[n]),
        Err(BadTrack::AfterPeriod(n)) => ("a time is after the period", read.spans[n]),
        Err(BadTrack::ShortPeriod) => ("the trace is shorter than 1 ms", item.node.span),
    };
    problems.add(span, Mistake::new(&item.path, message).expected(expected));
    None
}
