//! The rate of a link from a packet-delivery trace of mahimahi: a file or a list of times in milliseconds.

use bentpipe_engine::link::{BadTrace, RateTrace};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::reader::Item;

use super::beside::Beside;
use super::grammar::{MILLIS, RATE_TRACE};

const EXPECTED: &str = "milliseconds in ascending order, one per line, the last above 0";

/// The trace to which an item refers or which it contains.
pub(crate) fn rate_trace(item: &Item<'_>, beside: Beside<'_>, problems: &mut Problems) -> Option<RateTrace> {
    if let Value::List(_) = item.node.value {
        let entries = item.list(&RATE_TRACE, problems)?;
        let millis: Option<Vec<u64>> = entries.iter().map(|entry| entry.count(MILLIS, problems)).collect();
        return match RateTrace::new(millis?) {
            Ok(trace) => Some(trace),
            Err(bad) => {
                let at = match bad {
                    BadTrace::Backwards(index) | BadTrace::TooLate(index) => &entries[index],
                    BadTrace::Empty | BadTrace::NoLength => item,
                };
                at.refuse(problems, message(bad), Some(EXPECTED.to_owned()));
                None
            }
        };
    }
    let Some(name) = item.as_text() else {
        item.mismatch(problems, &RATE_TRACE);
        return None;
    };
    let (text, source) = beside.text(name, item, "a packet-delivery trace beside the scenario", problems)?;
    parse((name, &text), source, &item.path, problems)
}

fn message(bad: BadTrace) -> &'static str {
    match bad {
        BadTrace::Empty => "the trace has no times",
        BadTrace::Backwards(_) => "a time is earlier than the previous one",
        BadTrace::NoLength => "the trace ends at 0 ms, so it has no length",
        BadTrace::TooLate(_) => "a time is later than 1 000 000 000 ms",
    }
}

fn parse((name, text): (&str, &str), source: usize, key: &str, problems: &mut Problems) -> Option<RateTrace> {
    let (mut millis, mut spans, mut at) = (Vec::new(), Vec::new(), 0);
    let mut sound = true;
    let help = |content: &str| {
        content.contains(',').then(|| format!("for a CSV file of rates, rate_trace = {{ file = \"{name}\" }}"))
    };
    for line in text.split_inclusive('\n') {
        let span = Span::new(source, at..at + line.trim_end().len());
        at += line.len();
        let content = line.trim();
        if content.is_empty() {
            continue;
        }
        // Only digits are accepted: `parse` would also accept a plus sign.
        let digits = content.bytes().all(|byte| byte.is_ascii_digit());
        match content.parse() {
            Ok(instant) if digits => {
                millis.push(instant);
                spans.push(span);
            }
            _ => {
                let mistake = Mistake::new(key, format!("`{content}` is not a time in milliseconds"));
                let help = help(content).filter(|_| sound);
                problems.add(span, mistake.expected(EXPECTED).help(help));
                sound = false;
            }
        }
        // A file of another kind has a mistake in every line.
        if problems.count() > 20 {
            return None;
        }
    }
    if !sound {
        return None;
    }
    match RateTrace::new(millis) {
        Ok(trace) => Some(trace),
        Err(bad) => {
            let span = match bad {
                BadTrace::Backwards(index) | BadTrace::TooLate(index) => spans[index],
                BadTrace::Empty => Span::new(source, 0..0),
                BadTrace::NoLength => spans[spans.len() - 1],
            };
            problems.add(span, Mistake::new(key, message(bad)).expected(EXPECTED));
            None
        }
    }
}
