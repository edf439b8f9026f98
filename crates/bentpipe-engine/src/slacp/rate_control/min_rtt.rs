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
        if now.saturating_since(self.since) >= SPAN {
            self.since = now;
            self.spans = [None, self.spans[0]];
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

    /// Spans begin at 0 s, 15 s and 31 s: the minimum of the first is forgotten with the second.
    #[test]
    fn a_minimum_lasts_two_spans() {
        let mut min = MinRtt::new();
        let seen =
            [(1, 500), (14, 700), (15, 600), (29, 650), (31, 640), (45, 620), (46, 900), (61, 800)].map(|(at, rtt)| {
                min.on_sample(Time::ZERO + Duration::from_secs(at), Duration::from_millis(rtt));
                min.get().map(|min| min.as_nanos() / 1_000_000)
            });
        assert_eq!(seen, [500, 500, 500, 500, 600, 600, 620, 800].map(Some));
    }
}
