//! The minimum recent round trip: an estimate of the path's round trip with empty queues.

use crate::units::{Duration, Time};

/// Length of a span. The minimum covers the current and the previous span, so at most half a minute (BBR: ten seconds;
/// Cardwell et al. 2016).
const SPAN: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// The minima of the current and the previous span.
    spans: [Option<Duration>; 2],
    since: Time,
}

impl MinRtt {
    pub(super) fn new() -> Self {
        MinRtt { spans: [None; 2], since: Time::ZERO }
    }

    pub(super) fn on_sample(&mut self, now: Time, rtt: Duration) {
        let age = now.saturating_since(self.since);
        if age >= SPAN {
            // After a pause both may be over.
            let over = age.as_ticks() / SPAN.as_ticks();
            self.since += SPAN.saturating_mul(over);
            self.spans = [None, self.spans[0].filter(|_| over == 1)];
        }
        self.spans[0] = Some(self.spans[0].map_or(rtt, |known| known.min(rtt)));
    }

    /// The minimum; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.spans.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans of 15 s: the minimum of the first is forgotten with the second.
    #[test]
    fn a_minimum_lasts_two_spans() {
        let mut min = MinRtt::new();
        let samples = [
            (1, 500),
            (14, 700),
            (15, 600),
            (29, 650),
            (31, 640),
            (45, 620),
            (46, 900),
            (61, 800),
            (62, 700),
            (75, 900),
        ];
        let seen = samples.map(|(at, rtt)| {
            min.on_sample(Time::ZERO + Duration::from_secs(at), Duration::from_millis(rtt));
            min.get().map(|min| min.as_nanos() / 1_000_000)
        });
        assert_eq!(seen, [500, 500, 500, 500, 600, 620, 620, 620, 620, 700].map(Some));
    }

    /// A pause leaves no minimum of more than half a minute before, however long it was.
    #[test]
    fn a_pause_ends_spans_too() {
        for (next, expected) in
            [(15, [500, 500, 800]), (29, [500, 500, 800]), (30, [500, 800, 800]), (600, [500, 800, 800])]
        {
            let mut min = MinRtt::new();
            let seen = [(1, 500), (next, 800), (next + 15, 900)].map(|(at, rtt)| {
                min.on_sample(Time::ZERO + Duration::from_secs(at), Duration::from_millis(rtt));
                min.get().map(|min| min.as_nanos() / 1_000_000)
            });
            assert_eq!(seen, expected.map(Some), "{next} s");
        }
    }
}
