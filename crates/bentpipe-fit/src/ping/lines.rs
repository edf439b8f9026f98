//! The lines of a ping log.

use std::io::{BufRead, Read};
use std::path::Path;

use crate::error::FitError;

/// Maximum length of a line: `ping` prints fewer than 200 bytes.
const MAX_LINE: u64 = 4096;
/// Maximum number of answers kept: ten pings a second for four days.
const MAX_ANSWERS: usize = 4_000_000;
/// Numbers are 16 bits in ICMP and wrap.
const NUMBERS: i64 = 1 << 16;
/// Maximum number of consecutive missing numbers that count as losses: a day of pings at one per second.
const MAX_MISSING: i64 = 100_000;

/// Seconds by which the time of an answer may be wrong: `ping` may be held up before it writes a line.
const MAX_ERROR: f64 = 1.0;

/// An answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    /// Seconds of the log's clock.
    pub(super) at: f64,
    /// Number of the ping, which does not wrap.
    pub(super) number: i64,
    /// Round trip, seconds.
    pub(super) took: f64,
    /// Value of the last digit of `took` in the log, seconds. `ping` rounds to three or four digits: 44.5 ms, 612 ms.
    pub(super) digit: f64,
}

/// The content of a log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Lines {
    /// In order of their numbers.
    pub(super) answers: Vec<Answer>,
    /// Bytes of a ping on the line.
    pub(super) packet: Option<u32>,
    /// Number of answers that arrived twice.
    pub(super) copies: u64,
}

/// A relevant line.
enum Line {
    Answer { answer: Answer, wraps: bool },
    Size(u32),
    Other,
}

/// Reads a log.
///
/// # Errors
/// Fails with file and line if an answer is not understood.
pub(super) fn read(mut source: impl BufRead, path: &Path) -> Result<Lines, FitError> {
    let mut lines = Lines::default();
    let mut bytes = Vec::new();
    for count in 1.. {
        bytes.clear();
        let wrong = |message: &str| FitError::Line { path: path.to_owned(), line: count, message: message.to_owned() };
        let read = source.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
        if read.map_err(|error| FitError::Io { path: path.to_owned(), error })? == 0 {
            break;
        }
        let text = std::str::from_utf8(&bytes);
        let text = text
            .ok()
            .filter(|_| (bytes.len() as u64) < MAX_LINE)
            .ok_or_else(|| wrong("expected a capture (pcap, pcapng), or lines of `ping -D`"))?;
        // Editors on Windows write a byte order mark in front of the first line.
        let text = if count == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        match line(text.trim()).map_err(&wrong)? {
            Line::Answer { answer, wraps } => {
                if lines.answers.len() == MAX_ANSWERS {
                    return Err(wrong("too many answers: expected at most 4 000 000"));
                }
                lines.add(answer, wraps).map_err(&wrong)?;
            }
            Line::Size(packet) => lines.packet = Some(packet),
            Line::Other => {}
        }
    }
    lines.answers.sort_by_key(|answer| answer.number);
    let all = lines.answers.len();
    lines.answers.dedup_by_key(|answer| answer.number);
    lines.copies += (all - lines.answers.len()) as u64;
    Ok(lines)
}

impl Lines {
    fn add(&mut self, mut answer: Answer, wraps: bool) -> Result<(), &'static str> {
        let number = answer.number;
        answer.number = match self.answers.last() {
            // The same number, or the next one that has these 16 bits, or one before: that ping was not sent later.
            Some(last) if wraps => {
                let ahead = (number - last.number).rem_euclid(NUMBERS);
                let is_later = answer.at - answer.took > last.at - last.took + MAX_ERROR;
                last.number + if ahead > NUMBERS / 2 && !is_later { ahead - NUMBERS } else { ahead }
            }
            _ => number,
        };
        if self.answers.last().is_some_and(|last| (answer.number - last.number).abs() > MAX_MISSING) {
            return Err("more than 100000 pings are missing: expected one log");
        }
        self.answers.push(answer);
        Ok(())
    }
}

fn line(text: &str) -> Result<Line, &'static str> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    // A TOML table header is not a mistake in a log.
    if let Some((at, rest)) = bracketed.filter(|(at, rest)| seconds(at).is_some() || rest.contains("icmp_seq=")) {
        let at = seconds(at).ok_or("expected a time in brackets, in seconds, as of `ping -D`")?;
        return answer(at, rest);
    }
    if let Some(rest) = text.strip_prefix("PING ") {
        // PING host (address) 56(84) bytes of data.
        let size = rest.split_whitespace().find_map(|word| word.split_once('(')?.1.strip_suffix(')')?.parse().ok());
        return Ok(size.map_or(Line::Other, Line::Size));
    }
    if text.contains("icmp_seq=") && text.contains("time=") {
        return Err("expected the time of each answer in brackets: use `ping -D`");
    }
    let mut words = text.split_whitespace();
    let [Some(at), Some(number), Some(took), None] = std::array::from_fn(|_| words.next()) else {
        return Ok(Line::Other);
    };
    let (Some(at), Ok(number), Some(millis)) = (seconds(at), number.parse::<u32>(), seconds(took)) else {
        return Ok(Line::Other);
    };
    // In such tables, a ping without an answer has no round trip.
    let answered = Line::Answer { answer: answered(at, number, millis, took), wraps: false };
    Ok(if millis > 0.0 { answered } else { Line::Other })
}

/// The rest of a line of `ping -D`.
fn answer(at: f64, rest: &str) -> Result<Line, &'static str> {
    let after = |key: &str| rest.split_once(key).and_then(|(_, value)| value.split_whitespace().next());
    let (Some(number), Some(took)) = (after("icmp_seq="), after("time=")) else {
        if rest.contains("icmp_seq=") && rest.contains(" ttl=") {
            return Err("expected time= in an answer: use `LC_ALL=C ping -D`, with 16 bytes of data or more");
        }
        // "no answer yet", or a network error: the number is then missing among the answers.
        return Ok(Line::Other);
    };
    let number = number.parse::<u32>().map_err(|_| "expected a number after icmp_seq=")?;
    let millis = seconds(took).filter(|took| *took >= 0.0).ok_or("expected a time in milliseconds after time=")?;
    Ok(Line::Answer { answer: answered(at, number, millis, took), wraps: true })
}

/// `text` is the round trip as written, in milliseconds.
fn answered(at: f64, number: u32, millis: f64, text: &str) -> Answer {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Answer { at, number: i64::from(number), took: millis / 1e3, digit: 1e-3 / 10_f64.powi(decimals.min(9) as i32) }
}

fn seconds(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite() && value.abs() < 1e12)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Lines, String> {
        read(text.as_bytes(), Path::new("log")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_output_of_ping() {
        let text = "PING host (192.0.2.1) 56(84) bytes of data.\n\
                    [100.5] 64 bytes from 192.0.2.1: icmp_seq=65535 ttl=50 time=44.5 ms\n\
                    [101.4] no answer yet for icmp_seq=0\n\
                    [102.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=40 ms\n\
                    [102.6] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=41 ms (DUP!)\n\
                    --- host ping statistics ---\n";
        let found = lines(text).expect("a log");
        let numbers: Vec<_> = found.answers.iter().map(|answer| (answer.number, answer.took, answer.digit)).collect();
        assert_eq!(numbers, [(65_535, 0.0445, 1e-4), (65_537, 0.04, 1e-3)]);
        assert_eq!((found.packet, found.copies), (Some(84), 1));
    }

    /// Answers may come out of order, over the end of the 16 bits as well.
    #[test]
    fn answers_out_of_order() {
        let line = |number: u32| format!("[1] 64 bytes from 192.0.2.1: icmp_seq={number} ttl=50 time=44.5 ms\n");
        let found = lines(&[65_535, 1, 0, 2].map(line).concat()).expect("a log");
        let numbers: Vec<_> = found.answers.iter().map(|answer| answer.number).collect();
        assert_eq!(numbers, [65_535, 65_536, 65_537, 65_538]);
    }

    /// A hundred pings a second, and an outage of 400 s: number 40 001 is not 25 535 pings before number 1.
    #[test]
    fn an_outage_longer_than_half_of_the_numbers() {
        let line =
            |at: f64, number: u32| format!("[{at}] 64 bytes from 192.0.2.1: icmp_seq={number} ttl=50 time=44.5 ms\n");
        let found = lines(&[line(0.0, 0), line(0.01, 1), line(400.01, 40_001)].concat()).expect("a log");
        let numbers: Vec<_> = found.answers.iter().map(|answer| answer.number).collect();
        assert_eq!(numbers, [0, 1, 40_001]);
    }

    #[test]
    fn three_columns() {
        let found = lines("1694477135.68\t1\t44.5\n1694477135.82\t3\t40.9\n1694477136.1 4 0\n").expect("a table");
        assert_eq!(found.answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let answer = "[100.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=44.5 ms\n";
        for text in [answer, "1694477135.68\t1\t44.5\n"] {
            assert_eq!(lines(&format!("\u{feff}{text}")), lines(text), "{text}");
        }
    }

    #[test]
    fn mistakes_have_their_line() {
        assert_eq!(
            lines("\n[x] icmp_seq=1 time=3\n").unwrap_err(),
            "log:2: expected a time in brackets, in seconds, as of `ping -D`"
        );
        assert!(lines("[[links]]\nname = \"sat\"\n").expect("no log at all").answers.is_empty());
        let plain = "64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=44.5 ms\n";
        assert_eq!(lines(plain).unwrap_err(), "log:1: expected the time of each answer in brackets: use `ping -D`");
        assert!(lines(&"x".repeat(5000)).is_err());
        assert!(read(&b"\xff\xfe"[..], Path::new("log")).is_err());
        assert!(lines("1 1 5\n2 900000 5\n").is_err());
        assert!(lines("1 900000 5\n2 1 5\n").is_err());
        // ping's own texts are translated; with less than 16 bytes of data it has no times.
        for time in [" Zeit=44.5 ms", ""] {
            let answer = format!("[1] 64 Bytes von 192.0.2.1: icmp_seq=1 ttl=50{time}\n");
            let told = lines(&answer).unwrap_err();
            assert!(told.starts_with("log:1: expected time= in an answer: use `LC_ALL=C ping -D`"), "{told}");
        }
        let negative = "[1] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=-5 ms\n";
        assert_eq!(lines(negative).unwrap_err(), "log:1: expected a time in milliseconds after time=");
    }
}
