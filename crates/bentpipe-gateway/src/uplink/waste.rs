//! Notices when a single box sends near its configured rate and much of it is retransmitted: a rate above the link's
//! does this to a sender without congestion control.

use std::fmt;

use bentpipe_engine::units::{Duration, Rate, Time};

use super::UplinkStats;
use crate::log::megabits;

/// Counters are compared at this interval.
const SPAN: Duration = Duration::from_secs(60);
/// A sender that sends less than this part of its rate does not fill the link.
const BUSY: f64 = 0.7;
/// Retransmissions above this share are many; below the second one they are few again.
const MANY: f64 = 0.1;
const FEW: f64 = 0.05;

/// What to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Per cent of the segments, and the rate of sending in bit/s.
    Many {
        percent: u64,
        sent: u64,
        told: Rate,
    },
    Few,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Many { percent, sent, told } => write!(
                f,
                "{percent} % of the segments sent to clients in the last minute were retransmissions, at {}: the link loses as much, or \
                 `satellite.rate` ({}) is more than it carries; then lower it, or set `sender = \"kernel\"`",
                megabits(*sent),
                megabits(told.bits_per_second())
            ),
            Said::Few => f.write_str("few segments to clients are retransmitted again"),
        }
    }
}

/// The counters at the last look.
#[derive(Debug, Default)]
pub(super) struct Waste {
    before: Option<(Time, UplinkStats)>,
    is_said: bool,
}

impl Waste {
    /// Compares the counters, at most once a minute.
    pub(super) fn look(&mut self, now: Time, told: Rate, counted: impl FnOnce() -> UplinkStats) -> Option<Said> {
        let is_due = self.before.as_ref().is_none_or(|(at, _)| now.saturating_since(*at) >= SPAN);
        if !is_due {
            return None;
        }
        let after = counted();
        let (at, before) = self.before.replace((now, after))?;
        let span = now.saturating_since(at).as_secs_f64();
        let sent = (after.bytes.saturating_sub(before.bytes) as f64 * 8.0 / span) as u64;
        let [segments, again] =
            [after.segments.saturating_sub(before.segments), after.retransmits.saturating_sub(before.retransmits)];
        let is_busy = sent as f64 >= BUSY * told.bits_per_second() as f64;
        let share = if segments == 0 { 0.0 } else { again as f64 / segments as f64 };
        match self.is_said {
            false if is_busy && share >= MANY => {
                self.is_said = true;
                Some(Said::Many { percent: (100.0 * share).round() as u64, sent, told })
            }
            true if is_busy && share < FEW => {
                self.is_said = false;
                Some(Said::Few)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes of a sender at 8 Mbit/s: (megabytes, segments, retransmissions) of each.
    #[test]
    fn many_retransmissions_are_said_once() {
        let rate = Rate::from_bits_per_second(8_000_000).expect("not zero");
        let (mut waste, mut counted, mut now) = (Waste::default(), UplinkStats::default(), Time::ZERO);
        let mut said = Vec::new();
        let minutes = [
            (60, 1000, 90),
            (30, 1000, 500),
            (60, 1000, 500),
            (60, 1000, 500),
            (60, 1000, 60),
            (5, 10, 0),
            (60, 1000, 40),
        ];
        for (megabytes, segments, retransmits) in minutes {
            said.push(waste.look(now, rate, || counted));
            assert_eq!(waste.look(now + Duration::from_secs(59), rate, || panic!("it is early")), None);
            counted.bytes += megabytes * 1_000_000;
            counted.segments += segments;
            counted.retransmits += retransmits;
            now += SPAN;
        }
        said.push(waste.look(now, rate, || counted));
        let many = Said::Many { percent: 50, sent: 8_000_000, told: rate };
        assert_eq!(said, [None, None, None, Some(many), None, None, None, Some(Said::Few)]);
        let line = many.to_string();
        assert!(line.contains("retransmissions, at 8.000 Mbit/s: ") && line.contains("(8.000 Mbit/s)"), "{line}");
    }
}
